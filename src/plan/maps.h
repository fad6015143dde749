/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sets of maps of one file: sorted by offset, disjoint. Pure. */

#include "model/prediction.h"

/* *ret = those of n maps that lie in a file of `size` bytes, clipped to it; what is empty, or out
 * of order with what came before, is dropped or trimmed, so that the result is sorted and disjoint
 * whatever the input was. The caller frees *ret (NULL if *ret_n is 0). 0 or -ENOMEM; outputs
 * untouched on failure. */
int maps_clip(const PredictedRange *maps, size_t n, uint64_t size, PredictedRange **ret,
              size_t *ret_n);

/* *ret = what either has; where both have something, the higher probability: names of one file
 * (hard links) see the same pages, so what they say is no independent evidence. The same of errors
 * and ownership. */
int maps_union(const PredictedRange *a, size_t n_a, const PredictedRange *b, size_t n_b,
               PredictedRange **ret, size_t *ret_n);
