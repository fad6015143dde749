/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* XXH3-64, from xxHash in its inline form: no library at run time. Pure. */

#include <stddef.h>
#include <stdint.h>

/* The checksum of `size` bytes with that seed. */
uint64_t pack_hash(const void *data, size_t size, uint64_t seed);

/* The checksum of a whole pack, computed as if its checksum field were zero. `size` is at least a
 * header. */
uint64_t pack_checksum(const void *pack, size_t size);
