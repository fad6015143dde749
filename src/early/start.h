/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Starts the recording and the replay of a boot before the system manager runs, in processes of
 * their own, and waits for them no longer than the pack allows. */

#include <stdbool.h>

typedef struct EarlyOptions {
    const char *root;   /* where the root filesystem is mounted */
    const char *run;    /* the runtime directory, made if it is missing */
    const char *replay; /* the program headstart-replay */
    /* The process continues after the switch to the system manager, so that
     * headstart-replay-boot.service is not needed. In an initrd it may be killed. */
    bool survives;
    char *const *words; /* further words of a kernel command line, ended by NULL */
} EarlyOptions;

/* A process that hangs before its first message is waited for this long, in microseconds. */
#define EARLY_FIRST_MESSAGE_USEC 2000000U

/* Requests a whole program from the disk without waiting for its data: page faults would read it in
 * many small pieces. A failure has no other effect. */
void early_read_ahead(const char *path);

/* Returns when the boot may continue: headstart-replay has finished its sweep or has passed the
 * deadline of its pack, it has nothing to hold the boot for, it ended, or it said nothing for
 * EARLY_FIRST_MESSAGE_USEC. This function itself reads no file, so it never hangs in a disk. What
 * goes wrong is logged in one line by the process that it happens to. */
void early_start(const EarlyOptions *o);
