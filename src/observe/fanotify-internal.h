/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the source files of fanotify.h share. */

#include "observe/fanotify.h"
#include "volume/mountinfo.h"

#include <sys/vfs.h>

/* A watched filesystem. It is not held open, so that it can be unmounted. */
typedef struct Watch {
    uint32_t number;
    uint64_t st_dev, mount_dev;
    uint64_t call_dev; /* for disk_call() */
    char *target;
    int mount_fd; /* for open_by_handle_at(2), while objects are being resolved; unused if call_dev
                     is not 0 */
    fsid_t fsid;
    bool by_descriptor;
    bool gone; /* it is not mounted now */
} Watch;

struct Fanotify {
    int handle_fd;     /* the group in file-handle mode */
    int descriptor_fd; /* the group in descriptor mode; -EBADF until needed */
    int adopted_fd;    /* a group whose queue must still be read, or -EBADF */
    bool adopted_by_descriptor;
    bool adopted_is_watched; /* its marks included a filesystem that is watched */
    bool unlimited;          /* the kernel does not bound the queue of either group */
    uint64_t mask;           /* kinds of events to report */
    Watch *watches;
    size_t n_watches, allocated_watches;
    MountTable mounts; /* while objects are being resolved that are known by their path */
    char *buf;
    char *taken; /* of TAKEN_SIZE bytes; NULL until needed */
    size_t taken_size;
    uint64_t taken_overflows;
};

/* The buffer of one read(2): some 1,500 events. */
#define READ_SIZE (128U * 1024)

/* Makes a Fanotify of an open group in file-handle mode. Takes ownership of the group on success.
 * Returns 0 or -ENOMEM. */
int fanotify_of_group(int handle_fd, bool unlimited, Fanotify **ret);

/* Returns the watch with this number, also of a filesystem that is not mounted; NULL: there is
 * none. */
static inline Watch *watch_by_number(const Fanotify *f, uint32_t number)
{
    for (size_t i = 0; i < f->n_watches; i++)
        if (f->watches[i].number == number)
            return &f->watches[i];
    return NULL;
}
