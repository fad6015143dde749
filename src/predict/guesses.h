/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Probabilities of items (applications, or files), as a list. Pure. */

#include "base/macros.h"

typedef struct Guess {
    uint32_t item;
    double probability; /* 0..1 */
} Guess;

/* A zeroed struct is valid and empty. */
typedef struct Guesses {
    Guess *guesses;
    size_t n, allocated;
} Guesses;

void guesses_done(Guesses *g);
#define _cleanup_guesses_ _cleanup_(guesses_done)

/* Adds a guess. A probability that is not above 0 (or not a number) adds nothing. A probability
 * above 1 counts as 1. Returns 0 or -ENOMEM. */
int guesses_add(Guesses *g, uint32_t item, double probability);

/* Sorts by falling probability, then by rising item, and keeps the likeliest guess of each item. */
void guesses_sort(Guesses *g);
