/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Filesystems that are mounted after the sweep: /home and /var of their own, at an early boot. */

#include "base/time-util.h"

#include <signal.h>

typedef struct MountWatch {
    const char *root; /* NULL: it watches nothing */
    int fd;
    uint64_t seen; /* what was mounted when it was looked at last */
} MountWatch;

/* Watches from now on what is mounted of local block filesystems at and below `root`, which is
 * absolute, without symlinks, and outlives it. 0 or a negative errno. */
int mount_watch_start(MountWatch *w, const char *root);
void mount_watch_stop(MountWatch *w);
#define _cleanup_mount_watch_ _cleanup_(mount_watch_stop)

/* Waits until that differs from what was seen last, at most until `until` (CLOCK_MONOTONIC). The
 * signals, which are blocked, end it. Reads no disk. 1: it differs; 0: time is up or a signal came
 * (*ret_signal, else 0); or a negative errno. */
int mount_watch_wait(MountWatch *w, usec_t until, const sigset_t *signals, int *ret_signal);
