/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Recognizes the name under which an upgrade installs the successor of a file: libfoo.so.1.2.4
 * succeeds libfoo.so.1.2.3, and modules of 6.1.0-31-amd64 succeed those of 6.1.0-30-amd64. Pure. */

#include "base/macros.h"

/* Returns true if both names contain numbers, differ, and are equal if the values of the numbers
 * are ignored. A run of digits, or of digits with dots between them, is one number. */
bool versions_alike(const char *a, const char *b);

/* Returns the successor of `gone` among the n names: the name that versions_alike() accepts and
 * that has the highest version (strverscmp). Returns NULL if there is none. */
const char *versions_successor(const char *gone, char *const *names, size_t n);
