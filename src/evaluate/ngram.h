/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* p-s-gram+ (Rutt and Parthasarathy, section 3.2, figure 2): for each order up to p a table from
 * the last predecessors to the s accesses that followed them the last time. The longest order that
 * contains the present predecessors predicts. p = s = 1 is the last-successor model (Kroeger and
 * Long), p = 2, s = 1 the 2-gram+.
 *
 * A value is stored once all s successors have been observed, as the tables of the figure show: the
 * second A of A B C A Z Y changes nothing. The paper gives no probabilities. Here the probability
 * comes from earlier guesses of the same order at the same place of the stored value: (right + 1) /
 * (made + 2). A guess is right if it came true within s accesses. */

#include "evaluate/predictor.h"

/* Finds the stored successors of `key`, which is n predecessors, oldest first. Returns their number
 * (0: none) and points *ret at them until the next observation. `p` must be one of the n-gram
 * predictors. */
size_t ngram_lookup(const Predictor *p, const uint32_t *key, size_t n, const uint32_t **ret);
