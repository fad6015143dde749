/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Puts the touched pages of a stage into its trace. Pure. */

#include "observe/touched.h"
#include "trace/trace.h"

/* A gap of this length between two touched ranges of a file counts as touched, too: reading over it
 * takes less time than a further request. */
#define TOUCHED_JOIN_BYTES 16384U

/* Adds a row to the trace for each of its applications and files that `touched` knows. The runs are
 * in rising order of their serials; applications[i] is the application of run i, or a number that
 * the trace does not have. devs[i] is the device of the trace's volume i, as in mountinfo. What
 * several processes of an application touched is united, and clipped to the size of the file. A
 * file is left out if another one of the trace has its device and inode: a hard link, or a file of
 * another subvolume of btrfs. Returns 0, -E2BIG or -ENOMEM. */
int touched_add_rows(const Touched *touched, const uint64_t *devs, const ProcessRun *runs,
                     size_t n_runs, const uint32_t *applications, Trace *t);
