/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Determines which metadata of a volume a stage has read, for its trace. cachestat observes it;
 * without cachestat, libext2fs derives it from the inodes that were opened. Zeroed is valid.
 * Nothing is recorded of a foreign volume (volume_is_foreign()): libext2fs must not parse it, so
 * nothing tells its metadata from other blocks, and users can attach any number of such volumes. */

#include "observe/volume-snapshots.h"
#include "trace/trace.h"
#include "volume/metadata-deriver.h"

typedef struct StageMetadata {
    RangeSet ranges; /* bytes of the block device */
    MetadataSource source;
    Volume *volume;           /* what libext2fs needs of it; NULL until it is needed */
    MetadataDeriver *deriver; /* NULL until it is needed */
    int volume_fd;            /* used by the deriver */
    bool lost;                /* the disk does not answer: nothing is known */
} StageMetadata;

void stage_metadata_done(StageMetadata *m);

/* Takes over the metadata that the snapshots have observed, if there is any. Call it first when the
 * stage has ended, before anything else reads the volume. Returns 0 or -ENOMEM. */
int stage_metadata_observe(StageMetadata *m, const VolumeSnapshots *s, const Volume *v);

/* Adds a file or directory of the stage, by its path on this machine, and the directories above it:
 * a lookup reads them all. Returns 0 or -ENOMEM. */
int stage_metadata_add(StageMetadata *m, const Volume *v, const char *path, uint64_t inode);

/* Ends the collection. Of the observed ranges it keeps those that libext2fs confirms to be
 * metadata. If nothing was observed, it derives the metadata of the files that were added. Returns
 * 0 or -ENOMEM. */
int stage_metadata_finish(StageMetadata *m, const Volume *v);
