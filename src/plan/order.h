/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From maps and extents to pieces in physical order. Pure. */

#include "model/prediction.h"
#include "volume/extents.h"

/* A run of a file that lies in one run on the device. */
typedef struct Piece {
    uint32_t file;
    uint64_t offset;   /* bytes in the file */
    uint64_t length;
    uint64_t physical; /* PACK_PHYSICAL_UNKNOWN where no extent covers it */
    double probability;
    usec_t need;
} Piece;

typedef struct PieceList {
    Piece *pieces;
    size_t n, allocated;
} PieceList;

void piece_list_done(PieceList *l);

/* Cuts the map at the extents' borders and adds each part; holes give nothing if there are extents
 * at all (there is nothing to read), the whole map with unknown place if there are none. Maps are
 * widened to whole pages first. `extents` rise. 0 or -ENOMEM. */
int pieces_add_map(PieceList *l, uint32_t file, const PredictedMap *map, usec_t need,
                   const Extent *extents, size_t n_extents);

/* Sorts by place on the device, unknown places last by file and offset. */
void pieces_sort(PieceList *l);

/* Joins neighbours of one file that touch, or whose gap, the same in the file and on the device, is
 * at most max_gap. The joined piece keeps the higher probability and the earlier need. Returns the
 * bytes of gap that are now read as well. The list is sorted before and after. */
uint64_t pieces_merge(PieceList *l, uint64_t max_gap);
