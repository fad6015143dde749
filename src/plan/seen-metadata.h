/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Limits the metadata of a start to what the sessions have read. Pure.
 *
 * The planner derives the metadata that a start may read from its files: their inodes, and all
 * blocks of the directories above them. The kernel keeps names and inodes that the login has looked
 * up in caches of its own, and then the start reads no block for them. No session shows such a
 * block as read, because sessions do not count what was in memory when they began. */

#include "plan/plan.h"

/* Removes from the located metadata what is not in Prediction.seen. Metadata of a filesystem of
 * which nothing was seen stays. The metadata is sorted and disjoint, before and after. Returns 0 or
 * -ENOMEM. */
int seen_metadata_keep(LocatedPlan *l, const Prediction *p);
