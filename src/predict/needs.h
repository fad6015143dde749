/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From applications to maps: thesis equation 4.16, P(map needed) = 1 - product over the
 * applications that use it of (1 - P(application starts)), as a sum of logarithms (5.8.1). Under
 * competing risks this is exact: rates of independent starts add. Where a map is not needed by
 * every run of its application, P(application starts) P(map | application) stands for P(application
 * starts) (4.15). Pure. */

#include "predict/predictor.h"

/* What an item is made of: parts[first .. first + n). */
typedef struct NeedsItem {
    uint32_t first, n;
} NeedsItem;

typedef struct NeedsTable {
    const NeedsItem *items; /* by item */
    size_t n_items;
    const uint32_t *parts; /* objects */
    size_t n_objects;
    const float *chances; /* by part: P(needed | its item is), 0..1; NULL: all are certain */

    const double *worth; /* by object: needs_worth(); NULL: all are worth the same */
} NeedsTable;

typedef struct Need {
    double probability;
    double worth; /* probability times the table's worth */
    uint32_t object;
    uint32_t order; /* in which the guesses first named it: the likeliest application's first */
} Need;

/* Zeroed is valid and empty. Use one for many inferences: it keeps its memory. */
typedef struct Needs {
    Need *needs; /* by falling worth, then order */
    size_t n, allocated;
    double *log_not; /* by object; 0 for those that are not needed */
    size_t n_objects, allocated_log_not;
} Needs;

/* What a byte of budget is worth if it is spent on an object of so many bytes that is surely
 * needed: the time its read saves, seek and transfer, over its transfer, 1 + seek_bytes / bytes,
 * where `seek_bytes` are transferred in the time of a seek. Among the equally likely the small come
 * first, which cost a seek for a little memory. The thesis orders by probability alone (5.1;
 * seek_bytes 0), which lets one large file keep out a hundred small ones over a hair's breadth of
 * probability. */
double needs_worth(uint64_t bytes, uint64_t seek_bytes);

void needs_done(Needs *s);
#define _cleanup_needs_ _cleanup_(needs_done)

/* What the guesses mean for the objects. Items beyond the table are passed over. 0, -ENOMEM. */
int needs_infer(Needs *s, const NeedsTable *table, const PredictorGuesses *guesses);

/* Probability that the object is needed; of an object beyond the table 0. */
double needs_probability(const Needs *s, uint32_t object);
