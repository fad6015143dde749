/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files that make plan_locate() share. */

#include "plan/plan.h"

/* Which blocks of an ext2/3/4 filesystem the opening of some files needs: for a filesystem whose
 * UUID the model does not know (it was made anew, or the model comes from another machine). */
typedef struct MetadataDeriver MetadataDeriver;

/* `volume` is the index; `volume_fd` its mount point, which stays the caller's. 0 or -ENOMEM. */
int metadata_deriver_new(const Volume *v, uint32_t volume, int volume_fd, MetadataDeriver **ret);
MetadataDeriver *metadata_deriver_free(MetadataDeriver *d);

/* Notes the file and every directory above it, with that probability. 0 or -ENOMEM. */
int metadata_deriver_note(MetadataDeriver *d, const char *path, uint64_t inode, double probability);

/* Asks libext2fs and appends the ranges to l->metadata, sorted and disjoint. 1 if there are any, 0
 * if none (also if the device cannot be read: the opening pass will read them then), -ENOMEM. */
int metadata_deriver_finish(MetadataDeriver *d, LocatedPlan *l);
