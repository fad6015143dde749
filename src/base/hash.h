/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* XXH3-64 of xxHash, in its inline form, which needs no library at run time. Pure. */

#include <stddef.h>
#include <stdint.h>

/* Returns the hash of `size` bytes with the seed. */
uint64_t hash64(const void *data, size_t size, uint64_t seed);

/* Returns the hash of `size` bytes, with seed 0, as if the `n_zeros` bytes from `at` were zero.
 * These bytes must lie within `data`, and n_zeros must be at most 8. */
uint64_t hash64_with_zeros(const void *data, size_t size, size_t at, size_t n_zeros);
