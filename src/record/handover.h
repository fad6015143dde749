/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A recording that begins before headstartd starts. headstart-init marks the root filesystem as
 * soon as it is mounted. Until headstartd takes the descriptors over, the kernel queues the events.
 * headstartd reads this queue, and continues with a group of its own.
 * This file needs only libc.
 *
 * headstart-init calls handover_begin(). In an initrd that systemd runs it then calls
 * handover_store(). Elsewhere it forks a process that only runs handover_offer(). headstartd calls
 * handover_from_descriptors() or handover_claim(), and then fanotify_adopt(). */

#include "base/time-util.h"
#include "record/moment.h"

#include <stdbool.h>

/* The socket (SOCK_SEQPACKET) in the runtime directory on which headstart-init offers the
 * descriptors. */
#define HANDOVER_SOCKET "handover"

/* The names of the descriptors in the store of systemd (sd_listen_fds_with_names(3)). The last one
 * is a memfd that contains the other fields of a Handover. */
#define HANDOVER_NAME_GROUP     "headstart-fanotify"
#define HANDOVER_NAME_CONNECTOR "headstart-connector"
#define HANDOVER_NAME_FACTS     "headstart-facts"

/* More descriptors than any unit of headstart stores. */
#define HANDOVER_DESCRIPTORS_MAX 16

/* A group that is offered on the socket and was not claimed is closed after this time. */
#define HANDOVER_OFFER_USEC (60 * USEC_PER_SEC)

/* headstartd waits at most this long for the answer to its claim. The process that answers does
 * nothing else. */
#define HANDOVER_CLAIM_USEC (2 * USEC_PER_SEC)

typedef struct Handover {
    int fanotify_fd;    /* group whose only mark is the root filesystem; -EBADF: none */
    bool by_descriptor; /* the group reports descriptors, not file handles (btrfs subvolume) */
    int connector_fd;   /* the proc connector's socket; -EBADF: none */
    Moment start;       /* when the mark was set */
} Handover;

#define HANDOVER_NULL                                                       \
    {                                                                       \
        .fanotify_fd = -EBADF, .connector_fd = -EBADF, .start = MOMENT_NULL \
    }

/* Closes the descriptors. */
void handover_done(Handover *h);
#define _cleanup_handover_ _cleanup_(handover_done)

/* Makes the group, marks the filesystem of `root`, and opens the proc connector. A missing proc
 * connector is no error. `unlimited`: the kernel does not bound the queue of the group. Returns 0,
 * -ENODEV (headstartd does not record the type of the filesystem), -EPERM (no CAP_SYS_ADMIN),
 * -ENOSYS (no fanotify), or the negative errno of fanotify_init(2) or fanotify_mark(2). */
int handover_begin(const char *root, bool unlimited, Handover *ret);

/* Binds the socket `path`, which must not exist, in a directory that only root writes to. Returns
 * its descriptor or a negative errno. */
int handover_listen(const char *path);

/* Waits at most `timeout` for a claim by a process of root and answers it. Returns 0, -ETIMEDOUT,
 * or another negative errno. The caller closes the descriptors and removes the socket. */
int handover_offer(int listen_fd, const Handover *h, usec_t timeout);

/* Claims the group that is offered at `path`. Removes the socket after the claim, even if the claim
 * failed. The socket stays if the function cannot connect, or returns -EPERM. Returns 0; -ENOENT or
 * -ECONNREFUSED: nothing is offered; -EPERM: the process that offers it is not root's; -ETIMEDOUT;
 * -EPROTO: another version offers it, for example from an initrd that is older than the package;
 * -EBADMSG: not a handover; or a negative errno. */
int handover_claim(const char *path, Handover *ret);

/* Gives copies of the descriptors to the system manager at the address `manager`, as in
 * $NOTIFY_SOCKET. Returns 0 or a negative errno. */
int handover_store(const char *manager, const Handover *h);

/* Makes a Handover of descriptors that the system manager has passed, `n` of them, with their names
 * in the order of the descriptors. Takes ownership of the descriptors that belong to a handover,
 * also on failure, and does not touch the others. Returns 0; -ENOENT: no handover is among them;
 * -EPROTO or -EBADMSG, which mean the same as for handover_claim(); or another negative errno. */
int handover_from_descriptors(const int *fds, char *const *names, int n, Handover *ret);
