/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From maps and extents to pieces in physical order. Pure. */

#include "model/prediction.h"
#include "volume/extents.h"

/* A run of a file that lies in one run on the device. */
typedef struct Piece {
    uint32_t file;
    uint64_t offset; /* bytes in the file */
    uint64_t length;
    uint64_t physical;     /* PACK_PHYSICAL_UNKNOWN where no extent covers it */
    uint64_t physical_end; /* where the last byte's neighbour lies; differs from physical + length
                              once pieces with something between them were joined */
    size_t run; /* pieces of one file and one run lie in one stretch of the device, and so does all
                   of the file that is between them */
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

/* Joins neighbours of one file that overlap; that touch in the file and are at most max_gap apart
 * on the device (what is between them there is not read); and those of one run with at most max_gap
 * between them, which is read as well as long as *budget_bytes pays for it. The joined piece keeps
 * the higher probability and the earlier need. Returns the bytes of gap that are now read, and
 * takes them off the budget. The list is sorted before and after. */
uint64_t pieces_merge(PieceList *l, uint64_t max_gap, uint64_t *budget_bytes);
