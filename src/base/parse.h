/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parsers of small values. Pure; outputs untouched on failure. */

#include "base/time-util.h"

#include <stdbool.h>

/* Parses a number of decimal digits, without sign or blanks. Returns 0, -EINVAL, -ERANGE. */
int parse_u64(const char *s, uint64_t *ret);

/* Parses "1/yes/y/true/t/on" or "0/no/n/false/f/off" (as systemd does). Returns 0 or -EINVAL. */
int parse_boolean(const char *s, bool *ret);

/* Parses a byte count: a number with an optional suffix B, K, M, G or T (powers of 1024). Returns
 * 0, -EINVAL, -ERANGE. */
int parse_bytes(const char *s, uint64_t *ret);

/* Parses a time span: "20", "20s", "150ms", "1h", "2min", "infinity". A number without a unit means
 * seconds. Returns 0, -EINVAL, -ERANGE. */
int parse_timespan(const char *s, usec_t *ret);

/* Parses a percentage from -100 to 100 with an optional "%". Returns 0, -EINVAL, -ERANGE. */
int parse_percent(const char *s, int *ret);
