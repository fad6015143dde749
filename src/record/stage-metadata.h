/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which metadata of a filesystem a stage has brought in: a part of stage-end.c. By cachestat where
 * that can be asked, else derived by libext2fs from the inodes that were opened. Zeroed is valid.
 */

#include "record/recorder-internal.h"
#include "volume/metadata-deriver.h"

typedef struct StageMetadata {
    RangeSet ranges; /* bytes of the block device */
    MetadataSource source;
    MetadataDeriver *deriver; /* NULL until it is needed */
    int volume_fd;            /* of the deriver */
} StageMetadata;

void stage_metadata_done(StageMetadata *e);

/* First of all when a stage ends. Blocks resident now, or seen so meanwhile, that were not when the
 * stage began; and those that were brought in and reclaimed since. 0 or -ENOMEM. */
int stage_metadata_snapshot(StageMetadata *e, Recorder *r, const Volume *v);

/* A file or directory of the stage, by its path on this machine. 0 or -ENOMEM. */
int stage_metadata_note(StageMetadata *e, const Volume *v, const char *path, uint64_t inode);

/* Last: keeps what libext2fs agrees is metadata; asks it for all where cachestat could not be
 * asked. 0 or -ENOMEM. */
int stage_metadata_finish(StageMetadata *e, const Volume *v);
