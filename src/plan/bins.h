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

/* Lets data come along with an earlier bin (PlacedRange.advance) if reading them with their
 * neighbours of that bin takes no longer than the move to them takes in their own bin. What comes
 * along with a bin takes at most BINS_DELAY_USEC, because the rest of the bin has to wait for that.
 * c->bin_usec is the width, not 0. */
#define BINS_DELAY_USEC (100 * USEC_PER_MSEC)
void bins_gather(const VolumeTable *t, const PlanParameters *p, PackContent *c);
