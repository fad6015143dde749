/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds out which names a stage has looked up without opening the files: symlinks, files whose
 * status was read, and directories on the way. Filesystems other than ext2, ext3 and ext4 keep
 * their metadata in caches of their own, so the recorder cannot see which blocks were read. But the
 * kernel keeps each name that was looked up in a cache, and openat2(2) with RESOLVE_CACHED tells
 * whether a name is there. */

#include "trace/trace.h"
#include "volume/volume.h"

/* The most names that are added to one trace. */
#define LOOKED_UP_MAX 2048U

/* Adds to the trace the directory and the names in it that were looked up and are not in the trace
 * yet, but at most *left of them, and lowers *left. `directory` is a path of the trace on its
 * volume `volume`; `volumes` are the volumes of the machine; `root` is the recorded root.
 * Directories that others than root may write are left out, because their users could fill the
 * trace. Directories with a key of their own (fscrypt) and directories that a mount hides now are
 * left out, too. Before Linux 5.12 nothing is added. Returns 0, -ENOMEM or -E2BIG. */
int looked_up_add(Trace *t, uint32_t directory, uint32_t volume, const VolumeTable *volumes,
                  const char *root, size_t *left);
