/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Computes how much memory a plan may fill. Pure. */

#include "system/memory.h"

typedef enum BudgetFormula {
    BUDGET_AVAILABLE, /* half of the memory that is available now; the other half is for the stage
                         itself */
    BUDGET_THESIS,    /* eq. 5.1 */
    BUDGET_FIXED,
} BudgetFormula;

typedef struct BudgetParameters {
    BudgetFormula formula;
    uint64_t fixed_bytes;
    int total_percent;  /* eq. 5.1: model.memtotal, default -10 */
    int free_percent;   /* model.memfree, default 100 */
    int cached_percent; /* model.memcached, default 30 */
} BudgetParameters;

#define BUDGET_PARAMETERS_DEFAULT                                               \
    (BudgetParameters)                                                          \
    {                                                                           \
        .formula = BUDGET_AVAILABLE, .total_percent = -10, .free_percent = 100, \
        .cached_percent = 30                                                    \
    }

/* Returns the budget in bytes. BUDGET_THESIS: max(0, total * total_percent + free * free_percent) +
 * cached * cached_percent (thesis eq. 5.1). BUDGET_AVAILABLE uses that formula if MemAvailable is
 * not reported. */
uint64_t budget_bytes(const MemoryFacts *m, const BudgetParameters *p);
