/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the data of one file costs and saves on the devices of this machine. */

#include "command/cli.h"
#include "model/model.h"
#include "pack/pack.h"
#include "plan/price.h"
#include "volume/volume.h"

/* The devices and the memory of this machine. */
typedef struct PriceFacts {
    VolumeTable volumes;   /* with the measured profiles */
    bool *measured;        /* per volume: its device was measured */
    uint64_t budget_bytes; /* of a plan that is made now; COUNT_UNKNOWN: memory is not known */
} PriceFacts;

/* Reads mounts, STATE/devices.json and /proc/meminfo, and measures nothing. A fact that
 * cannot be read stays empty. Files then have no price. */
void price_facts_read(const Context *c, int state_fd, PriceFacts *ret);
void price_facts_done(PriceFacts *m);

typedef struct FilePrice {
    const Volume *volume; /* NULL: the price is not known, and the other fields are zero */
    bool measured;        /* the device was measured, so `volume->profile` is not the typical one of
                             its class */
    uint64_t bytes;       /* of the file's data */
    Price price;
} FilePrice;

/* Computes the price of the data that the pack contains of its file `file` on its volume
 * `volume`. A file without data in the pack has no price. */
void price_in_pack(const PriceFacts *m, const Pack *p, uint32_t volume, uint32_t file,
                   FilePrice *ret);

/* Computes the price of the data of a file that is not in the pack: of the ranges that sessions
 * used and whose probability is at least PLAN_MIN_PROBABILITY_DEFAULT. `needed` is the probability
 * of the file, `path` its path below the root. `p` is the pack to which the file would be added, or
 * NULL. Opens the file and reads its extents; no data is read. A file has no price in three
 * cases: no session used such a range, the file does not exist, or it is not a regular file on a
 * local block device. */
void price_outside_pack(const Context *c, const PriceFacts *m, const Pack *p, const char *path,
                        const ModelStageFile *f, double needed, FilePrice *ret);
