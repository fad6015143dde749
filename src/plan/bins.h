/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The bins of first use in which the set of a starting application is read from a disk that seeks:
 * the earlier bins first, each in a sweep. Pure. */

#include "pack/pack-writer.h"
#include "plan/plan.h"

/* Returns the width of the bins, or 0 if no device of the set seeks slowly. What an application
 * needs soon is read before the rest, and each bin is a sweep of its own. A start that takes long
 * has wider bins, because each sweep begins with a long seek. */
usec_t bins_choose_width(const PackContent *c);

/* What comes along with a bin may take this long, for each filesystem: the rest of the bin has to
 * wait for it. */
#define BINS_DELAY_USEC (100 * USEC_PER_MSEC)

/* Lets data come along with an earlier bin (PlacedRange.advance). The data of one bin form
 * clusters: the head reaches each range from the one before without a seek. A cluster comes along
 * with an earlier bin if it is near data of that bin, and if reading it then takes no longer than
 * the seek to it and the moves within it take in its own bin. What is probably in memory
 * (`in_memory`, as in plan_predict_start()) takes part in nothing, because replay does not read it.
 * c->bin_usec is the width, not 0. Returns 0, or -ENOMEM with an incomplete result that can be
 * used. */
int bins_gather(const VolumeTable *t, const PlanParameters *p, const Prediction *in_memory,
                PackContent *c);
