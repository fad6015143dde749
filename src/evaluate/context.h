/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Partitioned Context Models (Kroeger and Long 2001, sections 2.1 to 2.3).
 *
 * PCM is a trie of the observed patterns. Each node counts how often its pattern occurred. The trie
 * is cut into one partition for each first-order node, of at most `partition_nodes` nodes including
 * that one. If a full partition needs another node, all its counts are halved, and nodes whose
 * count becomes zero are dropped, except the first-order node. If that frees nothing, the access is
 * ignored. `partition_order` is the length of the longest pattern. The paper's figures for PCM use
 * small lengths (default 3).
 *
 * EPCM allows orders up to 75-85 % of the partition (64 nodes, order 45). It adds one new node for
 * each instance of a pattern, as in Lempel-Ziv coding: an instance that leaves the known patterns
 * adds the node where it leaves them, and ends.
 *
 * The likelihood of a child is its count over the counts of all children, that is, over the
 * instances of the pattern whose successor was observed. The paper's example confirms this: CA
 * occurs three times, its last successor is not yet known, and A and C get 0.5 each. Unlike a share
 * of the parent's count, the likelihoods remain a distribution after halving.
 *
 * PCM predicts the children of the longest current context that has children. EPCM starts from the
 * longest context whose likeliest child exceeds `partition_threshold`. It follows the likeliest
 * child while the likelihood of the whole run exceeds the threshold. With `partition_jump` n > 0 a
 * run that reaches a leaf continues in the partition that begins with its last n symbols (the
 * paper's section 6). */

#include "evaluate/predictor.h"

/* Adds a pattern of n symbols that was seen `count` times; its prefixes must exist. 0, -ENOENT (a
 * prefix is missing), -ENOSPC (the partition is full), -ENOMEM. */
int context_add(Predictor *p, const uint32_t *pattern, size_t n, uint32_t count);

/* The stored count of the pattern; 0 if the pattern is not stored. */
uint32_t context_count(const Predictor *p, const uint32_t *pattern, size_t n);

/* Nodes in the partition of that first-order symbol. */
size_t context_partition_nodes(const Predictor *p, uint32_t symbol);
