/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "execute/superblock.h"

#include <string.h>

static const struct {
    const char *fstype;
    size_t magic_at;
    const char *magic;
    size_t magic_size;
    size_t uuid_at;
    bool serial; /* four bytes, little-endian, in place of a UUID */
} superblocks[] = {
        {"ext2", 1024 + 0x38, "\x53\xef", 2, 1024 + 0x68, false},
        {"ext3", 1024 + 0x38, "\x53\xef", 2, 1024 + 0x68, false},
        {"ext4", 1024 + 0x38, "\x53\xef", 2, 1024 + 0x68, false},
        {"xfs", 0, "XFSB", 4, 32, false},
        {"btrfs", 65536 + 0x40, "_BHRfS_M", 8, 65536 + 0x20, false},
        {"f2fs", 1024, "\x10\x20\xf5\xf2", 4, 1024 + 0x6c, false},
        {"erofs", 1024, "\xe2\xe1\xf5\xe0", 4, 1024 + 0x30, false},
        {"vfat", 0x52, "FAT32   ", 8, 0x43, true},
        {"vfat", 0x36, "FAT1", 4, 0x27, true},
        {"exfat", 3, "EXFAT   ", 8, 0x64, true},
        {"jfs", 0x8000, "JFS1", 4, 0x8000 + 0x88, false},
        {"nilfs2", 1024 + 6, "\x34\x34", 2, 1024 + 0x98, false},
        /* Version 3.6, also with a journal that is not in its usual place. Version 3.5 has no UUID.
         */
        {"reiserfs", 65536 + 0x34, "ReIsEr2Fs", 9, 65536 + 0x54, false},
        {"reiserfs", 65536 + 0x34, "ReIsEr3Fs", 9, 65536 + 0x54, false},
};

bool superblock_is_known(const char *fstype)
{
    for (size_t i = 0; i < ELEMENTSOF(superblocks); i++)
        if (strcmp(superblocks[i].fstype, fstype) == 0)
            return true;
    return false;
}

int superblock_uuid(const char *fstype, const uint8_t *head, size_t size, uint8_t ret[16])
{
    int r = -EOPNOTSUPP;

    for (size_t i = 0; i < ELEMENTSOF(superblocks); i++) {
        size_t at = superblocks[i].uuid_at, n = superblocks[i].serial ? 4 : 16;

        if (strcmp(superblocks[i].fstype, fstype) != 0)
            continue;
        r = -EBADMSG;
        if (superblocks[i].magic_at + superblocks[i].magic_size > size || at + n > size ||
            memcmp(head + superblocks[i].magic_at, superblocks[i].magic,
                   superblocks[i].magic_size) != 0)
            continue;
        memset(ret, 0, 16);
        if (superblocks[i].serial)
            for (size_t k = 0; k < 4; k++)
                ret[12 + k] = head[at + 3 - k];
        else
            memcpy(ret, head + at, 16);
        return 0;
    }
    return r;
}
