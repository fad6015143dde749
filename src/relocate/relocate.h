/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Moves what the packs read of one ext4 filesystem next to each other. The process may be killed at
 * any moment: the files keep their content. */

#include "pack/pack.h"
#include "relocate/relocation.h"

/* Why a file stays where it is. */
typedef enum RelocateSkip {
    RELOCATE_SKIP_CHANGED,    /* the pack describes another file, or none */
    RELOCATE_SKIP_RUNNING,    /* a process executes it */
    RELOCATE_SKIP_WRITING,    /* a process has it open for writing, or it is written in place */
    RELOCATE_SKIP_ATTRIBUTES, /* immutable, append-only, encrypted, verity or data=journal */
    RELOCATE_SKIP_UNPLACED,   /* parts of it have no place yet, or lie in its inode */
    RELOCATE_SKIP_REFUSED,    /* the kernel refused to move it */
    _RELOCATE_SKIP_MAX,
    _RELOCATE_SKIP_INVALID = -EINVAL,
} RelocateSkip;

const char *relocate_skip_to_string(RelocateSkip s);

typedef struct RelocateFile {
    char *path; /* relative to the mount point */
    PackFile planned;
    RelocateSkip skip;          /* _RELOCATE_SKIP_INVALID: the file is moved */
    size_t first_part, n_parts; /* in Relocate.parts */
    RelocationCost cost;        /* of its parts alone, before */
    uint64_t checksum;          /* of its parts, before the move */
    bool moved, differs;        /* differs: the content after the move is not the one before */
} RelocateFile;

typedef struct RelocateNumber RelocateNumber;

typedef struct Relocate {
    const char *target; /* mount point; borrowed */
    const DeviceProfile *profile;
    uint64_t device_bytes, page_bytes;
    int root_fd;
    RelocateFile *files; /* in the order in which the packs first name them */
    size_t n_files, allocated_files;
    RelocateNumber *numbers; /* inode -> its file */
    RelocationPart *needed;  /* what the packs read, in their order */
    size_t n_needed, allocated_needed;
    RelocationPart *parts; /* what is moved, in its order on the device */
    size_t n_parts;
    uint64_t bytes;               /* of the files that are moved */
    uint64_t moved_bytes;         /* by relocate_run() */
    RelocationCost before, after; /* of all parts; relocate_inspect() assumes one run for what is
                                     moved, relocate_run() reads the places again */
} Relocate;

void relocate_done(Relocate *x);

/* Adds what the pack reads of its volume `volume`, in the order of first use. Returns 0 or
 * -ENOMEM. */
int relocate_add_pack(Relocate *x, const Pack *p, uint32_t volume);

typedef void (*relocate_progress_t)(void *arg, uint64_t done, uint64_t total);

/* Opens the files, decides which of them are moved, and computes the costs. Changes nothing. Calls
 * `progress` before each file. Returns 0 or a negative errno. */
int relocate_inspect(Relocate *x, relocate_progress_t progress, void *arg);

/* Moves the files after relocate_inspect(), writes everything to the device, compares the
 * checksums, and computes the cost again. A file that cannot be moved is skipped. Returns 0;
 * -EUCLEAN, -EIO, -EROFS or -ENOSPC if the filesystem allows no further move; -EBADMSG if the
 * content of a file differs after the move; or another negative errno. */
int relocate_run(Relocate *x, relocate_progress_t progress, void *arg);
