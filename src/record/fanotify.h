/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The fanotify side of recording: which files and directories are opened. Notification class only, so
 * that a stuck recorder never blocks anyone. File-handle mode where the filesystem has it (no
 * descriptor is opened per event, paths are resolved after the stage); descriptor mode for btrfs
 * subvolumes, which refuse handles (EXDEV). */

#include "record/event-log.h"
#include "volume/volume.h"

typedef struct Fanotify Fanotify;

/* One open, as the kernel reports it. `object` is complete but for the filesystem number, which is
 * given by fanotify_watch(). Borrowed: valid during the call. */
typedef int (*fanotify_handler_t)(void *arg, const LoggedObject *object, uint32_t pid, bool exec);

/* 0; -EPERM (no CAP_SYS_ADMIN), -ENOSYS (no fanotify), -EINVAL (a kernel before 5.9), or another
 * negative errno. */
int fanotify_new(Fanotify **ret);
Fanotify *fanotify_free(Fanotify *f);

/* Watches the whole filesystem of the volume; its events carry `number`. 0, -EALREADY, or a
 * negative errno. */
int fanotify_watch(Fanotify *f, const Volume *v, uint32_t number);

/* Reads everything that is queued, without blocking, and hands it to the handler. The number of
 * events, or a negative errno of the handler. *overflows is raised by one for each overflow of the
 * queue. */
int fanotify_drain(Fanotify *f, fanotify_handler_t handler, void *arg, uint64_t *overflows);

/* Resolves an object to a path, as this process sees it, and leaves it open as a mere place
 * (O_PATH). A descriptor; -ENOENT or -ESTALE if it is gone; or a negative errno. */
int fanotify_resolve(Fanotify *f, const LoggedObject *o, char *path, size_t size);
