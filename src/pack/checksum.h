/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the checksum of a whole pack (XXH3-64), computed as if its checksum field were zero.
 * `size` must be at least the size of the header. */
uint64_t pack_checksum(const void *pack, size_t size);
