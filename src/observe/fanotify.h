/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reports which files and directories are opened, with fanotify(7). Only the notification class is
 * used, so that a recorder that hangs blocks no other process. File-handle mode is used where the
 * filesystem supports it: the kernel opens no descriptor for an event, and paths are resolved when
 * the stage has ended. The paths of executables are resolved earlier if applications are reported
 * (recorder_follow()). Descriptor mode serves the filesystems that refuse file-handle mode, such as
 * btrfs subvolumes (EXDEV). */

#include "observe/event-log.h"
#include "volume/volume.h"

typedef struct Fanotify Fanotify;

/* Called for each open. The filesystem of `object` is the number given to fanotify_watch().
 * `object` is valid only during the call. Returns 0 or a negative errno. */
typedef int (*fanotify_handler_t)(void *arg, const LoggedObject *object, uint32_t pid, bool exec);

/* Opens a group in file-handle mode. `unlimited`: the kernel does not bound its queue
 * (FAN_UNLIMITED_QUEUE). A bounded queue (fs.fanotify.max_queued_events, 16,384 by default)
 * overflows when a user opens files faster than the recorder reads. The events of all users are
 * lost then. The memory of an unlimited queue is charged to the recorder's control group. The
 * recorder bounds how much it keeps for each user (observe/user-shares.h). Returns 0; -EPERM (no
 * CAP_SYS_ADMIN), -ENOSYS (no fanotify), -EINVAL (a kernel before 5.9), -ENOMEM, or another
 * negative errno. */
int fanotify_new(bool unlimited, Fanotify **ret);

/* Like fanotify_new() with a bounded queue, but reports only executions. They are rare enough to be
 * read one by one, as they come. */
int fanotify_new_exec(Fanotify **ret);

/* Returns the descriptors to poll for events: ret[0] of the group in file-handle mode, ret[1] of
 * the group in descriptor mode (-EBADF: there is none yet; fanotify_watch() may open it). The
 * caller must not close them. */
void fanotify_get_groups(const Fanotify *f, int ret[static 2]);

/* Like fanotify_new() with an unlimited queue, but takes over the events of a group that another
 * process has opened and marked (record/handover.h). fanotify_drain() reads the queue of that group
 * first, and closes the group. Takes ownership of the descriptor on success. */
int fanotify_adopt(int group_fd, bool by_descriptor, Fanotify **ret);
/* Ends the marks of the adopted group; its queued events remain. Call it when all filesystems are
 * watched, because the other process may have marked one that is not. fanotify_watch() calls it
 * earlier, when it has marked the filesystem that was marked there. Returns true if that was
 * the case. */
bool fanotify_end_adopted(Fanotify *f);
Fanotify *fanotify_free(Fanotify *f);

/* Opens a group, in file-handle or in descriptor mode, that another process will adopt. Returns its
 * descriptor or a negative errno. */
int fanotify_open_group(bool unlimited, bool by_descriptor);
/* Makes such a group report the whole filesystem that contains `target`. Returns 0 or a negative
 * errno. */
int fanotify_mark_filesystem(int group_fd, const char *target);
/* Returns true if the error of fanotify_mark_filesystem() means that only descriptor mode can
 * record the filesystem: it is a subvolume whose fsid differs from that of its superblock, it has
 * no fsid, or it has no file handles. */
bool fanotify_needs_descriptors(int error);

/* Watches the whole filesystem of the volume; its events carry `number`. Keeps nothing open, so
 * that the filesystem can be unmounted. Returns 0, -EALREADY (it is watched already), or a negative
 * errno. */
int fanotify_watch(Fanotify *f, const Volume *v, uint32_t number);

/* Forgets a filesystem that is no longer mounted, because another one may get its st_dev. A
 * filesystem that is watched again gets its old number, unless many others have been watched since:
 * objects that were logged with the old number can then not be resolved. */
void fanotify_unwatch(Fanotify *f, uint64_t st_dev);

/* Returns true if the filesystem is watched, but the kernel has dropped its mark: it was unmounted
 * and may have been mounted again since. Reads only /proc. */
bool fanotify_lost_mark(const Fanotify *f, uint64_t st_dev);

/* Returns the number of the watched filesystem with that st_dev, or EVENT_LOG_UNWATCHED. */
uint32_t fanotify_number(const Fanotify *f, uint64_t st_dev);

/* Reads the queued events without blocking and calls the handler for each event. `before` is called
 * after each read(2), before the events of that read are handled, and also after a read that finds
 * the queue empty. Stops reading after about FANOTIFY_DRAIN_EVENTS events, so that the event loop
 * can handle other sources. In descriptor mode the kernel drops an event if it cannot open the file
 * at once, for example because a user holds a lease on it. Returns the number of events, the first
 * negative value that one of the two functions returned, or -EPROTO if an event has an unknown
 * format. *overflows is raised by one for each overflow of the queue. */
#define FANOTIFY_DRAIN_EVENTS 100000
typedef int (*fanotify_before_t)(void *arg);
int fanotify_drain(Fanotify *f, fanotify_before_t before, fanotify_handler_t handler, void *arg,
                   uint64_t *overflows);

/* Reads the queued events in descriptor mode, and closes their descriptors. Until then each of
 * these events keeps its filesystem from being unmounted (EBUSY). The next fanotify_drain() handles
 * the events first. It must follow soon, because there is room for some thousand events only;
 * further events stay queued. Returns 0, -ENOMEM, or -EPROTO. */
int fanotify_take_descriptors(Fanotify *f);

/* Writes the path of the object, as this process sees it, and opens it with O_PATH. Enters no mount
 * below that of the object's filesystem, because a user may have made it. Of a path that is looked
 * up each mount must be local. Returns the descriptor; -EREMOTE if the lookup may hang; -ETIMEDOUT
 * if the disk does not answer; -EXDEV or -ESTALE if another mount hides the object; -ENOENT or
 * -ESTALE if it is gone; or another negative errno. */
int fanotify_resolve(Fanotify *f, const LoggedObject *o, char *path, size_t size);
/* Returns the first argument of disk_call() for the filesystem of the object. */
uint64_t fanotify_call_dev(const Fanotify *f, const LoggedObject *o);
/* Closes the descriptors that resolving keeps open for each filesystem. */
void fanotify_resolve_done(Fanotify *f);

/* Returns 0 if this process may resolve handles of the filesystem of `path`; -EPERM without
 * CAP_DAC_READ_SEARCH; -EOPNOTSUPP if the filesystem has no handles; or another negative errno. */
int fanotify_can_resolve(const char *path);
