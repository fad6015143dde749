/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Operations on ranges of one file or device. Unless a function says otherwise, they are sorted by
 * offset and disjoint. Pure. */

#include "model/prediction.h"

/* Clips n maps to a file of `size` bytes. Drops empty maps, and trims or drops maps that are out of
 * order, so that the result is sorted and disjoint for any input. The caller frees *ret (NULL if
 * *ret_n is 0). Returns 0 or -ENOMEM; outputs are untouched on failure. */
int maps_clip(const PredictedRange *maps, size_t n, uint64_t size, PredictedRange **ret,
              size_t *ret_n);

/* Makes n maps sorted and disjoint. The maps may overlap and have any order. Where they overlap,
 * the highest probability counts. Errors and ownership are those of maps_clip(). */
int maps_flatten(const PredictedRange *maps, size_t n, PredictedRange **ret, size_t *ret_n);

/* Computes the union of both sets. Where the sets overlap, the higher probability counts. The sets
 * belong to two names of one file (hard links). The two names share their pages, so the two
 * probabilities are not independent evidence. Errors and ownership are those of maps_clip(). */
int maps_union(const PredictedRange *a, size_t n_a, const PredictedRange *b, size_t n_b,
               PredictedRange **ret, size_t *ret_n);
