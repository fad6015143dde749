/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The trees of a btrfs, as a failing disk may contain them. The input has the superblock, which
 * takes 4096 bytes, and then nodes of 4096 bytes, each after its place on the device (8 bytes). */

#include "fuzz.h"

#include "volume/btrfs-trees.h"

#include <string.h>
#include <unistd.h>

#define BLOCK      4096U
#define SUPERBLOCK 65536
#define DEVICE_MAX (UINT64_C(1) << 32)

/* Checks what is promised of each leaf. */
static int visit(void *arg, const BtrfsLeaf *leaf)
{
    uint64_t *n = arg, end;

    FUZZ_CHECK(leaf->length > 0 && !__builtin_add_overflow(leaf->place, leaf->length, &end));
    return ++*n > 100000 ? -ENOSPC : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const BtrfsKey first = {0},
                          last = {.object = UINT64_MAX, .type = UINT8_MAX, .offset = UINT64_MAX};
    int fd = fuzz_memory_file("", 0);
    BtrfsTrees *t;
    uint64_t n = 0;

    if (size >= BLOCK)
        FUZZ_CHECK(pwrite(fd, data, BLOCK, SUPERBLOCK) == BLOCK);
    for (size_t at = BLOCK; at + sizeof(uint64_t) + BLOCK <= size; at += sizeof(uint64_t) + BLOCK) {
        uint64_t place;

        memcpy(&place, data + at, sizeof(place));
        if (place < DEVICE_MAX)
            FUZZ_CHECK(pwrite(fd, data + at + sizeof(place), BLOCK, (off_t)place) == BLOCK);
    }
    if (btrfs_trees_open(fd, 0, &t) >= 0) {
        for (BtrfsTree tree = 0; tree < _BTRFS_TREE_MAX; tree++)
            (void)btrfs_trees_visit(t, tree, &first, &last, visit, &n);
        btrfs_trees_free(t);
    }
    fuzz_count(n > 0);
    close(fd);
    return 0;
}
