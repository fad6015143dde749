/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The filesystems whose opens are recorded: every local block-backed one that is mounted at or
 * below the root. */

#include "observe/fanotify.h"

typedef struct WatchedVolume {
    uint64_t st_dev;
} WatchedVolume;

/* A zeroed struct is valid and watches nothing. */
typedef struct WatchedVolumes {
    VolumeTable table; /* what is mounted now */
    WatchedVolume *items;
    size_t n, allocated;
    uint32_t next_number; /* for fanotify_watch() */
    const char *store;    /* directory where traces are stored; NULL: the names of all files may be
                             stored. Borrowed; the caller sets it. */
    Encryption store_encryption; /* as of the last update */
} WatchedVolumes;

void watched_volumes_done(WatchedVolumes *w);

/* Marks the filesystems that were mounted since the last call, also those that were unmounted and
 * mounted again, and drops those that are no longer
 * mounted, because another filesystem may get their st_dev. A filesystem that is encrypted better
 * than the store is not marked (volume/encryption.h); one line is logged. A filesystem that cannot
 * be marked is left out. Returns 0, -ENOMEM, -EPERM (the first mark was refused), or the error of
 * reading mountinfo or the encryption of the store. */
int watched_volumes_update(WatchedVolumes *w, Fanotify *f, const char *root);

/* Returns 1 if watched_volumes_update() would find another set of filesystems, or one that has been
 * unmounted and mounted again, 0 if not, or the negative errno of reading mountinfo. It reads only
 * /proc: mounts change often while a machine boots, but filesystems on disks rarely do. */
int watched_volumes_changed(const WatchedVolumes *w, const Fanotify *f, const char *root);

/* Returns true if the trace may name this opened file of a filesystem (NULL: an unknown
 * filesystem). Keys that encrypt single files count, too. */
bool watched_volumes_may_name(const WatchedVolumes *w, const Volume *v, int fd);

/* Returns true if opens on the filesystem with that st_dev are recorded. */
bool watched_volumes_have(const WatchedVolumes *w, uint64_t st_dev);
