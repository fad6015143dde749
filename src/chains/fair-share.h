/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Max-min fairness. Pure. */

#include "base/macros.h"

/* Returns the limit to which n sizes must be reduced. Each is then at most `each`, and their sum at
 * most `all`. Smaller sizes stay whole. The limit is `each` if the sum needs no cut. Sorts the
 * sizes. */
uint64_t fair_share(uint64_t *sizes, size_t n, uint64_t each, uint64_t all);
