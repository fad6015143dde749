/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Moves bytes of files on ext4 with EXT4_IOC_MOVE_EXT, which exchanges the blocks of two files in
 * the journal: after a crash at any moment each file has its content, at the old or at the new
 * place. A filesystem without a journal gives no such promise. */

#include "volume/extents.h"

/* Returns whether the ext4 filesystem on the block device has a journal. Returns false if the
 * superblock cannot be read. */
bool filesystem_has_journal(uint64_t block_dev);

/* Allocates `bytes` bytes of contiguous space, or of as few runs as several attempts find, in a
 * file without a name, below the directory root_fd. If the process is killed, the kernel frees the
 * file. *ret is its descriptor, and *extents states its places. Returns 0, -ENOSPC (less space is
 * free for unprivileged users than a tenth more than `bytes`), -EROFS, or another negative
 * errno. A second or later attempt leaves a twentieth of the filesystem free for others. */
int donor_make(int root_fd, uint64_t bytes, int *ret, ExtentList *extents);

/* Moves `length` bytes at `offset` of the file to the blocks that the donor has at `donor_offset`.
 * The file must be open for reading and writing. All three numbers are multiples of the page size.
 * Returns 0; -EBUSY if the kernel moved less; or the negative errno of the kernel, for example
 * -EOPNOTSUPP. */
int move_extents(int fd, int donor_fd, uint64_t offset, uint64_t donor_offset, uint64_t length);
