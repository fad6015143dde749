/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the pack of headstart-replay without holding the boot if the disk hangs. */

#include "pack/pack.h"

/* The service manager waits at most so long for the pack, whatever deadline the pack then names. */
#define PACK_LOAD_HELD_MAX (2 * USEC_PER_SEC)

typedef struct LoadedPack {
    const char *path; /* borrowed: the one of the given paths that was read */
    char *buf;        /* what `pack` points into */
    Pack pack;
    bool ready_sent; /* READY=1 was sent because the pack took longer than PACK_LOAD_HELD_MAX */
} LoadedPack;

void loaded_pack_done(LoadedPack *p);
#define _cleanup_loaded_pack_ _cleanup_(loaded_pack_done)

/* Reads the first of the paths (NULL-terminated, at least one) that exists, whole, in a thread of
 * its own, and validates it. It is not mapped: what was validated stays what is used. 0, or a
 * negative errno after one line was logged. */
int pack_load(char *const *paths, LoadedPack *ret);
