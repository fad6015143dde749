/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the pack of headstart-replay without delaying the boot if the disk hangs. */

#include "pack/pack.h"

/* The service manager waits at most this long for the pack, even if the pack states a later
 * deadline. */
#define PACK_LOAD_HELD_MAX (2 * USEC_PER_SEC)

typedef struct LoadedPack {
    const char *path; /* borrowed: the path that was read */
    char *buf;        /* the buffer into which `pack` points */
    Pack pack;
    bool ready_sent; /* READY=1 was sent because the pack took longer than PACK_LOAD_HELD_MAX */
} LoadedPack;

void loaded_pack_done(LoadedPack *p);
#define _cleanup_loaded_pack_ _cleanup_(loaded_pack_done)

/* Reads the first file of `paths` that exists, as a whole and in a separate thread, and validates
 * it. `paths` ends with NULL and has at least one path. The file is not mapped, so that it cannot
 * change after validation. Returns 0, or a negative errno after one line was logged. */
int pack_load(char *const *paths, LoadedPack *ret);
