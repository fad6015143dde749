/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The fanotify side of recording: which files and directories are opened. Notification class only,
 * so that a stuck recorder never blocks anyone. File-handle mode where the filesystem has it (no
 * descriptor is opened per event, paths are resolved after the stage); descriptor mode for btrfs
 * subvolumes, which refuse handles (EXDEV). */

#include "record/event-log.h"
#include "volume/volume.h"

typedef struct Fanotify Fanotify;

/* One open, as the kernel reports it. `object` is complete but for the filesystem number, which is
 * given by fanotify_watch(). Borrowed: valid during the call. */
typedef int (*fanotify_handler_t)(void *arg, const LoggedObject *object, uint32_t pid, bool exec);

/* `unlimited`: the kernel's queue has no bound of its own (FAN_UNLIMITED_QUEUE). A bounded one
 * (fs.fanotify.max_queued_events, 16,384 by default) overflows when one user opens files faster
 * than the recorder reads for a moment, and then the events of everybody are lost. What an
 * unlimited queue holds is charged to the recorder's control group. The recorder bounds what it
 * keeps by itself, per user (record/user-shares.h). 0; -EPERM (no CAP_SYS_ADMIN), -ENOSYS (no
 * fanotify), -EINVAL (a kernel before 5.9), -ENOMEM, or another negative errno. */
int fanotify_new(bool unlimited, Fanotify **ret);
Fanotify *fanotify_free(Fanotify *f);

/* Watches the whole filesystem of the volume; its events carry `number`. Holds nothing open, so
 * that it can be unmounted. 0, -EALREADY, or a negative errno. */
int fanotify_watch(Fanotify *f, const Volume *v, uint32_t number);

/* It is mounted no more: another filesystem may get its st_dev. If it comes back, it has its old
 * number. */
void fanotify_unwatch(Fanotify *f, uint64_t st_dev);

/* Reads everything that is queued, without blocking, and hands it to the handler. `before` is
 * called each time something was read and before it is handed over, and once at the end. The number
 * of events, or the first negative return of either. *overflows is raised by one for each overflow
 * of the queue. */
typedef int (*fanotify_before_t)(void *arg);
int fanotify_drain(Fanotify *f, fanotify_before_t before, fanotify_handler_t handler, void *arg,
                   uint64_t *overflows);

/* Resolves an object to a path, as this process sees it, and leaves it open as a mere place
 * (O_PATH). A descriptor; -EREMOTE if it may hang; -ENOENT or -ESTALE if it is gone; or a negative
 * errno. */
int fanotify_resolve(Fanotify *f, const LoggedObject *o, char *path, size_t size);
/* Closes what resolving keeps open on each filesystem. */
void fanotify_resolve_done(Fanotify *f);

/* 0 if this process may resolve handles of that directory's filesystem; -EPERM without
 * CAP_DAC_READ_SEARCH; -EOPNOTSUPP if it has none; or another negative errno. */
int fanotify_can_resolve(const char *path);
