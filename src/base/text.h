/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Names in text for people and programs. Names of files and programs are bytes that any user may
 * choose. Pure. */

#include "base/macros.h"

/* Reads one character of UTF-8 (RFC 3629). Returns its length in bytes, 1 to 4, or 0 if the bytes
 * are not valid UTF-8. The string ends with a NUL, which counts as a character. */
size_t text_read_character(const char *s, uint32_t *ret);

/* Returns true for characters that are controls (C0 and C1) or invisible, change the direction of
 * the text, or end a line, and for code points that are not characters of XML. */
bool text_is_hidden(uint32_t c);

/* Returns the ending of an English noun that follows the number n. */
static inline const char *text_plural_s(size_t n)
{
    return n == 1 ? "" : "s";
}

/* Replaces each hidden character, and each byte that is not valid UTF-8, by "?". */
void text_neutralize(char *s);
