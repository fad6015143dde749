/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Max-min fairness. Pure. */

#include "base/macros.h"

/* Returns the limit to which n sizes are cut so that each is at most `each` and their sum at most
 * `all`. Sizes below the limit stay whole. Returns `each` if the sum needs no cut. Sorts the
 * sizes. */
uint64_t fair_share(uint64_t *sizes, size_t n, uint64_t each, uint64_t all);
