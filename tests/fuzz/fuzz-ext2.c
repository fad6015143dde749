/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The image of an ext2/3/4 filesystem, as a USB stick or a failing disk may contain it. libext2fs
 * parses it to find the metadata. */

#include "fuzz.h"

#include "volume/ext2-metadata.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_range_set_ RangeSet ranges = {0}, resident = {0}, kept = {0};
    int fd = fuzz_memory_file(data, size), r;
    Ext2Metadata *m;
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    r = ext2_metadata_open(path, &m);
    fuzz_count(r >= 0);
    if (r >= 0) {
        for (uint64_t inode = 0; inode < 24; inode++)
            (void)ext2_metadata_of_inode(m, inode, &ranges);
        FUZZ_CHECK(range_set_insert(&resident, 0, size + 4096) >= 0);
        (void)ext2_metadata_filter(m, &resident, &kept);
        ext2_metadata_free(m);
    }
    close(fd);
    return 0;
}
