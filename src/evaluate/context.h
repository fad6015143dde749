/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Partitioned Context Models (Kroeger and Long 2001, sections 2.1 to 2.3).
 *
 * PCM: a trie of the patterns seen, each node with the number of times its pattern occurred, cut
 * into one partition a first-order node, of at most `partition_nodes` nodes (the first-order node
 * is one of them). A node needed in a full partition halves all the partition's counts; nodes that
 * reach zero go, the first-order node excepted. If that frees nothing, the access is ignored.
 * `partition_order` is the longest pattern kept; the paper's PCM figures use small ones (default
 * 3).
 *
 * EPCM: orders to 75-85 % of the partition (64 nodes, order 45), and one new node for each instance
 * of a pattern, as Lempel-Ziv coding grows: an instance that leaves what is known adds the node
 * where it left, and ends.
 *
 * Likelihood of a child is its count over the counts of all children: of the pattern's instances,
 * those whose successor was seen. That is what the paper's example means (CA, three times, its last
 * successor not yet seen, gives A and C 0.5 each), and, unlike the count of the parent, it stays a
 * distribution after halving.
 *
 * PCM predicts the children of the longest current context that has any. EPCM follows the likeliest
 * child while the likelihood of the whole run is over `partition_threshold`, from the longest
 * context whose likeliest child is; with `partition_jump` n > 0 a run that reaches a leaf goes on
 * in the partition that begins with its last n symbols (the paper's section 6). */

#include "evaluate/predictor.h"

/* Adds a pattern of n symbols seen `count` times (its prefixes must exist): for tests, and to
 * restore a stored trie. 0, -ENOENT (prefix missing), -ENOSPC (partition full), -ENOMEM. */
int context_add(Predictor *p, const uint32_t *pattern, size_t n, uint32_t count);

/* How often the pattern was seen, as stored; 0 if it is not. */
uint32_t context_count(const Predictor *p, const uint32_t *pattern, size_t n);

/* Nodes in the partition of that first-order symbol. */
size_t context_partition_nodes(const Predictor *p, uint32_t symbol);
