/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What an upgrade calls a file that it replaces: libfoo.so.1.2.3 becomes libfoo.so.1.2.4, modules
 * of 6.1.0-30-amd64 those of 6.1.0-31-amd64. Pure. */

#include "base/macros.h"

/* True if both names are equal but for their numbers, and they have such: runs of digits, and of
 * digits with dots between, count as one number whatever it is. Equal names are not alike. */
bool versions_alike(const char *a, const char *b);

/* Which of n names succeeds `gone`: of those alike the highest version (strverscmp). NULL if
 * there is none. */
const char *versions_successor(const char *gone, char *const *names, size_t n);
