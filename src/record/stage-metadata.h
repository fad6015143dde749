/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which metadata of a volume a stage has brought in, for its trace: what cachestat observed, or
 * else what libext2fs derives from the inodes that were opened. Zeroed is valid. */

#include "record/volume-snapshots.h"
#include "trace/trace.h"
#include "volume/metadata-deriver.h"

typedef struct StageMetadata {
    RangeSet ranges; /* bytes of the block device */
    MetadataSource source;
    MetadataDeriver *deriver; /* NULL until it is needed */
    int volume_fd;            /* of the deriver */
} StageMetadata;

void stage_metadata_done(StageMetadata *m);

/* Takes what the snapshots observed, if they could. Call it first when the stage has ended, before
 * anything else reads the volume. 0 or -ENOMEM. */
int stage_metadata_observe(StageMetadata *m, const VolumeSnapshots *s, const Volume *v);

/* Adds a file or directory of the stage, by its path on this machine, and the directories above it:
 * a lookup reads them all. 0 or -ENOMEM. */
int stage_metadata_add(StageMetadata *m, const Volume *v, const char *path, uint64_t inode);

/* Ends it: of what was observed, keeps what can be metadata by libext2fs; where nothing was
 * observed, derives the metadata of the files that were added. 0 or -ENOMEM. */
int stage_metadata_finish(StageMetadata *m, const Volume *v);
