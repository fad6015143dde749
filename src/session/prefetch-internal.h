/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "session/prefetch-thread.h"
#include "session/refetch-backoff.h"
#include "volume/volume.h"

#include <sys/stat.h>

/* A filesystem that may be looked into. */
typedef struct MountDir {
    char *target;
    uint64_t dev; /* as mountinfo says */
    int fd;       /* O_PATH; -EBADF: it could not be opened */
} MountDir;

typedef struct MountDirs {
    MountDir *places;
    size_t n, allocated;
} MountDirs;

void mount_dirs_done(MountDirs *p);
#define _cleanup_mount_dirs_ _cleanup_(mount_dirs_done)

/* The local block-backed filesystems mounted at or below the root. 0 or a negative errno. */
int mount_dirs_read(const char *root, MountDirs *ret);

/* True if the filesystem of that number is mounted there. */
bool mount_dirs_contain(const MountDirs *p, uint64_t dev);

/* Looks the path up, as a mere place: which brings in its inode. A descriptor (O_PATH) of a regular
 * file or directory on one of them, or a negative errno; -EXDEV if it lies elsewhere, -EINVAL if it
 * is something else. */
int mount_dirs_open_path(const MountDirs *p, const char *path, struct stat *ret);

/* What is wanted of one file, the worthiest first. */
typedef struct PrefetchFile {
    char *path; /* as this process sees it; of metadata the filesystem's UUID */
    PrefetchKind kind;
    RangeSet ranges;
} PrefetchFile;

/* What a pass leaves to the next. Zeroed but for what is set before the first is valid. */
typedef struct PrefetchState {
    const char *root; /* borrowed */
    uint32_t uid;     /* of the session: see base/ownership.h */
    bool cachestat;   /* the kernel has it */
    bool (*is_over)(void *arg);
    void (*tell)(void *arg, const PrefetchReport *more); /* to be added, now */
    void (*refuse)(void *arg, const PrefetchFile *f);    /* f must not be asked for again */
    void *arg;
    RefetchBackoff *backoff;
    VolumeTable volumes; /* as they were when metadata was first wanted */
    bool volumes_read;
} PrefetchState;

/* Looks at the files in turn, from number *at on, until a pass has enough or is over, and reads
 * what is missing. True if it had enough: the next goes on at *at. */
bool prefetch_pass_run(PrefetchState *s, const PrefetchFile *files, size_t n, size_t *at);

void prefetch_state_done(PrefetchState *s);
