/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which parts of files are moved next to each other, and in which order, and states what
 * reading them costs. Pure. */

#include "device/profile.h"
#include "pack/pack.h"
#include "volume/placed-ranges.h"

/* Parts of a file with at most this gap between them are moved together, because a disk passes a
 * smaller gap faster than it seeks. */
#define RELOCATION_GAP (UINT64_C(256) * 1024)

/* A range of a file, in bytes. */
typedef struct RelocationPart {
    uint32_t file; /* a number that the owner of the list assigns */
    uint64_t offset, length;
} RelocationPart;

/* Computes the parts to move from the ranges that replay reads. Files keep the order in which
 * `needed` first names them. The parts of a file are consecutive, rise, are aligned to `align`
 * bytes and end at most at the file's size rounded up. A file of which at least half is needed is
 * moved as a whole, because it then stays contiguous. `sizes` has one entry for each of the
 * n_files files. The caller frees *ret. Returns 0 or -ENOMEM; outputs are untouched on failure. */
int relocation_join(const RelocationPart *needed, size_t n, const uint64_t *sizes, size_t n_files,
                    uint64_t align, RelocationPart **ret, size_t *ret_n);

typedef struct RelocationCost {
    size_t n_fragments; /* runs of contiguous bytes on the device */
    double usec;        /* time of one sweep over them */
} RelocationCost;

/* Computes what a sweep over the ranges costs on a device of `size` bytes. Sorts the list. Returns
 * 0 or -ENOMEM. */
int relocation_cost(const DeviceProfile *d, uint64_t size, PlacedRangeList *l, RelocationCost *ret);

/* `headstart status` suggests to relocate if this gains more than a second. */
#define RELOCATION_SUGGESTED_USEC 1e6

/* Returns an upper bound of the time that a sweep would gain if the pack's data lay next to each
 * other, on ext4 filesystems of disks that seek slowly; 0 if memory runs out. The places are those
 * that the plan stored. Files that would stay are not known, and count as moved. */
double relocation_gain_usec(const Pack *p);
