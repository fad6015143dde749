/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Association rules (Rutt and Parthasarathy, section 3.2) by Apriori: which files are accessed
 * within the same window, in whatever order. A transaction is the set of items in one position of a
 * window of `association_window` accesses that slides over a session (a session shorter than the
 * window is one transaction); so A B C A Z Y gives {A B C Z} and {A B C Y Z}, and with them the
 * rules of the paper's figure 2. Support of a rule is the share of transactions with all its items,
 * confidence the share of those with its antecedent that hold its consequent, one item.
 *
 * The rules whose antecedent lies within the last window - 1 accesses predict, best first: by
 * support, confidence, length of the antecedent (the longer first, then the older rule), at most
 * `association_guesses` different items. A guess's probability is its rule's confidence.
 *
 * Mined again whenever what was observed has grown by a quarter, so that mining costs a constant
 * factor a event; what is mined is the last ASSOCIATION_HISTORY accesses. */

#include "evaluate/predictor.h"

#define ASSOCIATION_HISTORY 65536U

/* Mines what has been observed so far, now. 0 or -ENOMEM. */
int association_mine(Predictor *p);

/* The number of rules, and the support and confidence of one of them (items in any order).
 * -ENOENT if there is no such rule. */
size_t association_n_rules(const Predictor *p);
int association_lookup(const Predictor *p, const uint32_t *antecedent, size_t n,
                       uint32_t consequent, double *ret_support, double *ret_confidence);
