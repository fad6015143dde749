/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Determines which blocks of metadata a filesystem reads to look up and open given files, and to
 * read their data.
 *
 * - ext2, ext3, ext4: libext2fs finds inode tables, directories, extent trees and xattr blocks of
 *   the files and of all directories above them. The planner uses a deriver for filesystems whose
 *   metadata was never observed. For other filesystems it uses one only for files that no session
 *   can have shown.
 * - btrfs: the leaves with inodes, names, extents and checksums (volume/btrfs-trees.h).
 * - xfs: the blocks with inodes, whose place follows from their numbers, and the blocks with the
 *   entries of directories of which most are needed.
 *
 * On btrfs and xfs a range comes with the item for which the filesystem is asked, because it keeps
 * its metadata in a cache of its own. */

#include "base/metadata-item.h"
#include "base/ranges.h"
#include "volume/volume.h"

typedef struct DerivedMetadata {
    PredictedRange range; /* of the block device */
    MetadataItem item;
    bool shared;  /* all subvolumes of the filesystem use it */
    bool passing; /* no process waits for it; see metadata_deriver_want_bitmaps() */
} DerivedMetadata;

typedef struct MetadataDeriver MetadataDeriver;

/* Makes a deriver for the volume `v`, of which it copies what it needs. `volume_fd` is a descriptor
 * of the mount point of the volume, which the caller closes. Returns 0, -ENOMEM, or the error of
 * fcntl(2). */
int metadata_deriver_new(const Volume *v, int volume_fd, MetadataDeriver **ret);
MetadataDeriver *metadata_deriver_free(MetadataDeriver *d);
DEFINE_CLEANUP(MetadataDeriver *, metadata_deriver_free);

/* A file or directory for metadata_deriver_note(). */
typedef struct NotedFile {
    const char *path; /* below the mount point; "." is the mount point itself */
    uint64_t inode;
    bool listed; /* a directory of which the entries are read */
    double probability;
} NotedFile;

/* Notes the file and every directory above it, each with the highest probability that was noted.
 * Returns 0 or -ENOMEM. */
int metadata_deriver_note(MetadataDeriver *d, const NotedFile *f);

/* Notes that this range of the file's data will be read; the filesystem has it at that place, as
 * FIEMAP says. Returns 0 or -ENOMEM. */
int metadata_deriver_note_data(MetadataDeriver *d, uint64_t inode, const PredictedRange *range,
                               uint64_t place);

/* Asks for the block bitmaps, too, if the filesystem is ext2, ext3 or ext4. ext4 itself reads most
 * of them soon after the mount, and no process waits for them. Reading them is
 * therefore worthwhile only where a sweep passes them. */
void metadata_deriver_want_bitmaps(MetadataDeriver *d);

/* Finds the ranges. *ret is an array of *ret_n disjoint ranges of the block device, sorted by
 * offset. The block bitmaps come after the other ranges. The caller frees the array. A file that
 * was deleted since it was noted has no ranges. Returns 0 (with no ranges if nothing was noted or
 * asked for), -ENOMEM, -EOPNOTSUPP (another filesystem), or the error of
 * ext2_metadata_open_volume() or btrfs_trees_open_volume(). On failure *ret and *ret_n are
 * untouched. */
int metadata_deriver_finish(MetadataDeriver *d, DerivedMetadata **ret, size_t *ret_n);
