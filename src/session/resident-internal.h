/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "session/brought.h"
#include "session/resident.h"
#include "volume/volume.h"

#include <sys/stat.h>

/* A filesystem that may be looked into. */
typedef struct Place {
    char *target;
    uint64_t dev; /* as mountinfo says */
    int fd;       /* O_PATH; -EBADF: it could not be opened */
} Place;

typedef struct Places {
    Place *places;
    size_t n, allocated;
} Places;

void places_done(Places *p);
#define _cleanup_places_ _cleanup_(places_done)

/* The local block-backed filesystems mounted at or below the root. 0 or a negative errno. */
int places_read(const char *root, Places *ret);

/* True if the filesystem of that number is mounted there. */
bool places_have(const Places *p, uint64_t dev);

/* Looks the path up, as a mere place: which brings in its inode. A descriptor (O_PATH) of a regular
 * file or directory on one of them, or a negative errno; -EXDEV if it lies elsewhere, -EINVAL if it
 * is something else. */
int places_find(const Places *p, const char *path, struct stat *ret);

/* What is wanted of one file, the worthiest first. */
typedef struct JobFile {
    char *path; /* as this process sees it; of metadata the filesystem's UUID */
    CycleKind kind;
    RangeSet ranges;
} JobFile;

/* What a pass leaves to the next. Zeroed but for what is set before the first is valid. */
typedef struct PassState {
    const char *root; /* borrowed */
    uint32_t uid;     /* of the session: see base/ownership.h */
    bool cachestat;   /* the kernel has it */
    bool (*is_over)(void *arg);
    void (*tell)(void *arg, const ResidentReport *more); /* to be added, now */
    void (*refuse)(void *arg, const JobFile *f);         /* f must not be asked for again */
    void *arg;
    Brought *brought;
    VolumeTable volumes; /* as they were when metadata was first wanted */
    bool volumes_read;
} PassState;

/* Looks at the files in turn, from number *at on, until a pass has enough or is over, and reads
 * what is missing. True if it had enough: the next goes on at *at. */
bool pass_run(PassState *s, const JobFile *files, size_t n, size_t *at);

void pass_state_done(PassState *s);
