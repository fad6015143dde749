/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "pack/checksum.h"

#include "pack/pack.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t pack_hash(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

uint64_t pack_checksum(const void *pack, size_t size)
{
    static const uint8_t zero[sizeof(le64_t)];
    const size_t at = offsetof(PackHeader, checksum), after = at + sizeof(zero);
    XXH3_state_t state;

    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, pack, at);
    XXH3_64bits_update(&state, zero, sizeof(zero));
    XXH3_64bits_update(&state, (const uint8_t *)pack + after, size - after);
    return XXH3_64bits_digest(&state);
}
