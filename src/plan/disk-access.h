/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Accesses of the planner to files, which end if the disk of the files does not answer. `call_dev`
 * is the first argument of disk_call() (system/disk-call.h). Each function also returns -ETIMEDOUT
 * if the disk does not answer. */

#include "volume/extents.h"
#include "volume/metadata-deriver.h"

/* Like open_beneath(). */
int disk_open_beneath(uint64_t call_dev, int dir_fd, const char *path);

/* Opens the file of the descriptor (O_PATH), and calls extents_read(). */
int disk_read_extents(uint64_t call_dev, int path_fd, size_t max, ExtentList *ret);

/* Like metadata_deriver_finish(). Takes ownership of the deriver. */
int disk_finish_metadata(uint64_t call_dev, MetadataDeriver *d, DerivedMetadata **ret,
                         size_t *ret_n);
