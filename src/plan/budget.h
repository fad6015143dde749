/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Computes how much memory a plan may fill. Pure. */

#include "base/macros.h"

typedef struct MemoryFacts {
    uint64_t total_bytes;
    uint64_t free_bytes;
    uint64_t available_bytes; /* 0: not reported (before Linux 3.14) */
    uint64_t cached_bytes;
} MemoryFacts;

typedef enum BudgetFormula {
    BUDGET_AVAILABLE, /* half of the memory that is available now; the other half is for the login
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

/* Parses the text of /proc/meminfo. -EBADMSG if MemTotal or MemFree is missing. */
int memory_facts_parse(const char *meminfo, MemoryFacts *ret);

/* Returns the budget in bytes. BUDGET_THESIS: max(0, total * total_percent + free * free_percent) +
 * cached * cached_percent (thesis eq. 5.1). BUDGET_AVAILABLE uses that formula if MemAvailable is
 * not reported. */
uint64_t budget_bytes(const MemoryFacts *m, const BudgetParameters *p);
