/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads a pack without compression from standard input, removes the planned hold, and writes the
 * pack to standard output. The replay of this pack holds the boot until the sweep is over, however
 * fast the machine is. */

#define XXH_INLINE_ALL
#include "pack/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

int main(void)
{
    static uint8_t pack[PACK_SIZE_MAX];
    size_t size = fread(pack, 1, sizeof(pack), stdin);
    PackHeader *h = (PackHeader *)pack;

    if (size < sizeof(*h) || memcmp(h->magic, PACK_MAGIC, sizeof(h->magic)) != 0 ||
        le64toh(h->file_size) != size) {
        fprintf(stderr, "hold-until-swept: not a pack\n");
        return EXIT_FAILURE;
    }
    h->hold_usec = 0;
    h->checksum = 0;
    h->checksum = htole64(XXH3_64bits(pack, size));
    if (fwrite(pack, 1, size, stdout) != size || fflush(stdout) != 0) {
        perror("hold-until-swept");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
