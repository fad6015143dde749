/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The probability graph (Griffioen and Appleton, section 5). An arc A -> B counts the opens of B
 * within `graph_lookahead` opens after one of A. B is predicted if its chance reaches the minimum
 * chance.
 *
 * The paper's chance is arcs(A, B) over all arcs out of A. With a lookahead of L every open of A
 * adds up to L arcs, so that even a successor that always comes has a chance of about 1/L. The
 * printed ratio is a probability only for L = 1, and one minimum chance cannot serve different L.
 * Here the chance is the share of the opens of A (those with a successor) after which B was opened
 * within the lookahead, once or more often. For L = 1 both are the same. `graph_letter` selects the
 * printed ratio; the minimum chance is then divided by L.
 *
 * If a node has GRAPH_ARCS_MAX arcs, all its counts are halved and arcs that reach zero are
 * dropped. This is the pruning and aging that the paper announces. */

#include "evaluate/predictor.h"

#define GRAPH_ARCS_MAX 512U

/* The number of arcs A -> B and of all arcs out of A, as the paper counts them. */
void graph_lookup(const Predictor *p, uint32_t a, uint32_t b, uint64_t *ret_arcs,
                  uint64_t *ret_out);
