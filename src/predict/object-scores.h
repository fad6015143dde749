/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From applications to objects (preload thesis, equation 4.16): an object is needed with the
 * probability 1 - product over the applications that use it of (1 - P(application starts)). The
 * product is computed as a sum of logarithms (5.8.1). This probability is exact if applications
 * start independently of one another. If not every run of an application needs the object,
 * P(application starts) P(object | application) takes the place of P(application starts) (4.15).
 * Pure. */

#include "predict/guesses.h"

/* The objects of an item: parts[first .. first + n). */
typedef struct ItemParts {
    uint32_t first, n;
} ItemParts;

typedef struct ObjectTable {
    const ItemParts *items; /* by item */
    size_t n_items;
    const uint32_t *parts; /* objects */
    size_t n_objects;
    const float *chances; /* by part: P(object | its item), 0..1; NULL: all are 1 */
    const double *worth;  /* by object: object_worth(); NULL: all are worth the same */
} ObjectTable;

typedef struct ObjectScore {
    double probability;
    double worth; /* probability times the object's worth in the table */
    uint32_t object;
    uint32_t order; /* position in the order in which the guesses first use the objects: objects of
                       the likeliest item come first */
} ObjectScore;

/* A zeroed struct is valid and empty. Use one struct for many computations: it keeps its memory. */
typedef struct ObjectScores {
    ObjectScore *scores; /* by falling worth, then order */
    size_t n, allocated;
    double *log_not; /* by object: log P(not needed); 0 for objects without a score */
    size_t n_objects, allocated_log_not;
} ObjectScores;

/* Returns the time that one byte of budget saves if it is spent on an object of this size that will
 * surely be needed. The unit is the transfer time of a byte. The read takes a seek and a transfer,
 * so the result is 1 + seek_bytes / bytes. `seek_bytes` is the number of bytes that the device
 * transfers in the time of a seek. Among equally likely objects the small ones come first, because
 * each saves a whole seek for little memory. The thesis orders by probability alone (5.1), as if
 * `seek_bytes` were 0. In that order one large file displaces a hundred small ones that are hardly
 * less likely. */
double object_worth(uint64_t bytes, uint64_t seek_bytes);

void object_scores_done(ObjectScores *s);
#define _cleanup_object_scores_ _cleanup_(object_scores_done)

/* Replaces the scores by those that follow from the guesses. Items beyond the table are ignored.
 * Returns 0 or -ENOMEM. */
int object_scores_compute(ObjectScores *s, const ObjectTable *table, const Guesses *guesses);

/* Returns the probability that the object is needed; 0 for an object beyond the table. */
double object_scores_probability(const ObjectScores *s, uint32_t object);
