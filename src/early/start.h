/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Starts the recording and the replay of a boot before the system manager runs, in separate
 * processes, and waits for the replay no longer than the pack allows. */

#include <stdbool.h>

typedef struct EarlyOptions {
    const char *root;   /* where the root filesystem is mounted */
    const char *run;    /* the runtime directory, below /run; made if it is missing */
    const char *replay; /* the program headstart-replay, as seen from the root filesystem */
    /* The process continues after the switch to the system manager. False in an initrd that systemd
     * runs, since systemd kills the processes that remain at the switch. */
    bool survives;
    /* The address of the system manager that keeps descriptors (FDSTORE=), as in $NOTIFY_SOCKET;
     * NULL: a process keeps them. */
    const char *manager;
    char *const *words; /* further words of a kernel command line, ended by NULL */
} EarlyOptions;

/* Returns when the boot may continue: when headstart-replay has finished its sweep, has no reason
 * to hold the boot, or has ended. Returns at the latest 50 ms after the deadline of the pack
 * (EXTEND_TIMEOUT_USEC=), or after HOLD_UNREAD_MAX if headstart-replay has sent nothing. Both times
 * count from this call, and hold_limit() limits both. The function reads nothing from a disk, so a
 * disk that hangs cannot block it. A child process that meets an error logs it in one line. If no
 * child process can be started, the function returns at once, without a message.
 *
 * If `root` is not "/", headstart-replay runs in a mount namespace of its own below that directory,
 * so that the switch of the root does not affect it. */
void early_start(const EarlyOptions *o);
