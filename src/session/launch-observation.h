/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Observes what a control start of an application reads: samples the page cache when the
 * application is executed, and again when the start is over (session/launch-control.h). It
 * samples the block devices of all filesystems, for metadata of ext2/3/4, and the files of the
 * launch set.
 *
 * The sampling itself reads nothing from a disk. A file whose name is not in the kernel's cache of
 * names is therefore not opened. In the first sample it counts as not in memory: the kernel drops a
 * name only when it needs memory, and usually drops the pages of the file, too. If it did not,
 * these pages count as read. Between the two samples no thread of headstart may read from a
 * disk. */

#include "session/launch-use.h"
#include "state/launch-packs.h"
#include "volume/volume.h"

/* How long the files of a set may be sampled. The files that are left are not observed. */
#define LAUNCH_OBSERVATION_USEC (100 * USEC_PER_MSEC)

typedef struct LaunchObservation LaunchObservation;

/* Takes the first sample. `t`: the filesystems that are mounted below `root`; `p` is the launch
 * set, in *buf, which the observation takes over on success. Returns 0, -ENOMEM, or the error of
 * reading mountinfo. */
int launch_observation_begin(LaunchKey key, const char *root, const VolumeTable *t, char **buf,
                             const Pack *p, LaunchObservation **ret);

/* Takes the second sample and computes what the start needed. The caller frees *ret. Returns 0;
 * -E2BIG, if too much has changed; -ENOMEM, or the error of reading mountinfo. */
int launch_observation_end(LaunchObservation *o, const VolumeTable *t, LaunchUse *ret);

LaunchObservation *launch_observation_free(LaunchObservation *o);
DEFINE_CLEANUP(LaunchObservation *, launch_observation_free);

/* Returns what is observed. */
LaunchKey launch_observation_key(const LaunchObservation *o);
