/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash64(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

uint64_t hash64_with_zeros(const void *data, size_t size, size_t at, size_t n_zeros)
{
    static const uint8_t zeros[8];
    XXH3_state_t state;

    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, data, at);
    XXH3_64bits_update(&state, zeros, n_zeros);
    XXH3_64bits_update(&state, (const uint8_t *)data + at + n_zeros, size - at - n_zeros);
    return XXH3_64bits_digest(&state);
}
