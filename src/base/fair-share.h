/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Max-min fairness. Pure. */

#include "base/macros.h"

/* The size to which the largest of n are cut so that each is at most `each` and their sum at most
 * `all`: whoever needs less than the others keeps all of it. Returns `each` if nobody need be cut
 * for the sum. Sorts the sizes. */
uint64_t fair_share(uint64_t *sizes, size_t n, uint64_t each, uint64_t all);
