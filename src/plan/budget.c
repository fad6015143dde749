/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/budget.h"

uint64_t budget_bytes(const MemoryFacts *m, const BudgetParameters *p)
{
    double b;

    if (p->formula == BUDGET_FIXED)
        return p->fixed_bytes;
    if (p->formula == BUDGET_AVAILABLE && m->available_bytes > 0)
        return m->available_bytes / 2;
    b = (double)m->total_bytes * p->total_percent / 100 +
        (double)m->free_bytes * p->free_percent / 100;
    b = MAX(b, 0.0) + (double)m->cached_bytes * p->cached_percent / 100;
    return b > 0 ? (uint64_t)b : 0;
}
