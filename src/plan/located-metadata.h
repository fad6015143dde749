/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Collects the metadata of a LocatedPlan: adds ranges, and makes them disjoint. Pure. */

#include "plan/plan.h"
#include "volume/metadata-deriver.h"

/* Appends a range of the volume's block device. `item` is all zero for a range that is read from
 * the device. Returns 0 or -ENOMEM. */
int located_metadata_add(LocatedPlan *l, uint32_t volume, PredictedRange range, MetadataItem item);

/* Appends a range that was derived. A block that all subvolumes of a filesystem share is stored
 * once, with its highest probability. A range that the sweep may pass (DerivedMetadata.passing)
 * goes to `l->passing`, unless it reaches beyond the end of the volume. Returns 0 or -ENOMEM. */
int located_metadata_add_derived(LocatedPlan *l, uint32_t volume, const DerivedMetadata *d);

/* Sorts the ranges by volume and place, and makes them disjoint. Where ranges overlap, the highest
 * probability counts: what one session in ten has read may overlap what each session has read.
 * Returns 0, or -ENOMEM with an incomplete result that can be freed. */
int located_metadata_make_disjoint(LocatedPlan *l);
