/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Association rules (Rutt and Parthasarathy, section 3.2), mined by Apriori: sets of files that are
 * accessed within one window, in any order. A window of `association_window` accesses slides over a
 * session. The set of items at each of its positions is a transaction; a session that is shorter
 * than the window is one transaction. A B C A Z Y gives {A B C Z} and {A B C Y Z}, and with them
 * the rules of the paper's figure 2. The support of a rule is the share of transactions that
 * contain all its items. Its confidence is the share of the transactions with its antecedent that
 * also contain its consequent, which is one item.
 *
 * A rule applies if its antecedent lies within the last window - 1 accesses. The rules that apply
 * predict at most `association_guesses` different items, in the order of support, confidence and
 * length of the antecedent (the longer first, then the older rule). The probability of a guess is
 * the confidence of its rule.
 *
 * Rules are mined again when the number of observed accesses has grown by a quarter, so that mining
 * costs a constant factor per event. The last ASSOCIATION_HISTORY accesses are mined. */

#include "evaluate/predictor.h"

#define ASSOCIATION_HISTORY 65536U

/* Mines the accesses observed so far. 0 or -ENOMEM. */
int association_mine(Predictor *p);

/* The number of rules, and the support and confidence of one of them (items in any order).
 * -ENOENT if there is no such rule. */
size_t association_n_rules(const Predictor *p);
int association_lookup(const Predictor *p, const uint32_t *antecedent, size_t n,
                       uint32_t consequent, double *ret_support, double *ret_confidence);
