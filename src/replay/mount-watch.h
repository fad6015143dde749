/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Waits for filesystems that are mounted after the sweep, such as /home and /var early in a boot.
 */

#include "base/time-util.h"

#include <signal.h>

typedef struct MountWatch {
    const char *root; /* NULL: nothing is watched */
    int fd;
    uint64_t seen; /* fingerprint of the mounts at the last check */
} MountWatch;

/* Starts watching the mounts of local block filesystems at and below `root`, an absolute path
 * without symlinks that outlives the watch. Returns 0 or a negative errno. */
int mount_watch_start(MountWatch *w, const char *root);
void mount_watch_stop(MountWatch *w);
#define _cleanup_mount_watch_ _cleanup_(mount_watch_stop)

/* Waits until the mounts differ from those of the last check, until the time `until`
 * (CLOCK_MONOTONIC), or until one of the signals arrives. The caller has blocked these signals.
 * Reads no disk. Returns 1 if the mounts differ; 0 if the time is up (*ret_signal is 0) or a signal
 * arrived (*ret_signal is its number); or a negative errno. */
int mount_watch_wait(MountWatch *w, usec_t until, const sigset_t *signals, int *ret_signal);
