/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "pack/checksum.h"

#include "base/hash.h"
#include "pack/pack.h"

uint64_t pack_checksum(const void *pack, size_t size)
{
    return hash64_with_zeros(pack, size, offsetof(PackHeader, checksum), sizeof(le64_t));
}
