/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The checksum of a whole pack (XXH3-64), computed as if its checksum field were zero. `size` is at
 * least a header. */
uint64_t pack_checksum(const void *pack, size_t size);
