/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds what a pack contains of one file. */

#include "base/macros.h"
#include "pack/pack.h"

/* A pack, and what it contains of one file. */
typedef struct PackEntry {
    bool has_pack, found;
    Pack pack;
    char *buf;             /* of the pack */
    uint32_t volume, file; /* indexes in the pack, if found */
    double probability;    /* of the file */
    double least;          /* lowest probability of a file of the pack */
    uint64_t bytes;        /* of the file in the pack */
    uint64_t total;        /* of the pack's data and metadata */
} PackEntry;

void pack_entry_done(PackEntry *e);
#define _cleanup_pack_entry_ _cleanup_(pack_entry_done)

/* Reads the pack of that name, and finds the file in it. `path` is the path of the file below the
 * root. *ret is untouched on failure. Returns 0 or the error of packs_read(). */
int pack_entry_read(int state_fd, const char *name, const char *path, PackEntry *ret);
