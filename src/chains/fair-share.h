/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Max-min fairness. Pure. */

#include "base/macros.h"

/* Returns the size to which n sizes are reduced if they exceed it, so that each is at most `each`
 * and their sum is at most `all`. Sizes below the limit stay whole. Returns `each` if the sum needs
 * no cut. Sorts the sizes. */
uint64_t fair_share(uint64_t *sizes, size_t n, uint64_t each, uint64_t all);
