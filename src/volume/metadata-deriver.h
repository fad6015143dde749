/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Determines which blocks of an ext2/3/4 filesystem must be read to look up and open given files.
 * libext2fs finds these blocks: inode tables, directories, extent trees and xattr blocks of the
 * files and of all directories above them. The planner uses a deriver for filesystems whose
 * metadata was never observed. For other filesystems it uses one only for files that no session can
 * have shown. */

#include "base/ranges.h"
#include "volume/volume.h"

typedef struct MetadataDeriver MetadataDeriver;

/* Makes a deriver for the volume `v`, of which it copies what it needs. `volume_fd` is a descriptor
 * of the mount point of the volume. The caller keeps it open as long as the deriver exists, and
 * closes it. Returns 0 or -ENOMEM. */
int metadata_deriver_new(const Volume *v, int volume_fd, MetadataDeriver **ret);
MetadataDeriver *metadata_deriver_free(MetadataDeriver *d);
DEFINE_CLEANUP(MetadataDeriver *, metadata_deriver_free);

/* Notes a file or directory by its path below the mount point ("." is the mount point itself) and
 * every directory above it, each with the highest probability that was noted. Returns 0 or
 * -ENOMEM. */
int metadata_deriver_note(MetadataDeriver *d, const char *path, uint64_t inode, double probability);

/* Finds the ranges with libext2fs. *ret is an array of *ret_n disjoint ranges of the block device,
 * sorted by offset. The caller frees it. A file that was deleted since it was noted has no ranges.
 * Returns 0 (with no ranges if nothing was noted), -ENOMEM, or the error of
 * ext2_metadata_open_volume(). On failure *ret and *ret_n are untouched. */
int metadata_deriver_finish(MetadataDeriver *d, PredictedRange **ret, size_t *ret_n);
