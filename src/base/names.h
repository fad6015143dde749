/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Gives numbers to names: each new string gets the next number, beginning with 0. Names are bytes,
 * as the kernel has them; nothing is escaped. Pure. */

#include "base/macros.h"

/* A zeroed struct is valid and empty. */
typedef struct Names {
    char **names; /* by number; owned by the index */
    size_t n, allocated;
    struct NamesEntry *index; /* name -> number */
} Names;

void names_done(Names *n);

/* Finds the number of a name. Returns 0, or -ENOENT if the name has none. */
int names_find(const Names *n, const char *name, uint32_t *ret);

/* Finds the number of a name. A name without a number gets the next one and is copied. Returns 0,
 * -E2BIG (there are `max` names already), -ENOMEM. */
int names_add(Names *n, const char *name, size_t max, uint32_t *ret);
