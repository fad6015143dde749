/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Selects the located objects that a plan keeps. Pure. */

#include "plan/plan.h"

typedef struct PlanCut {
    bool *keep_metadata;   /* metadata range -> it is kept */
    bool *keep_files;      /* file -> it is opened */
    bool *keep_maps;       /* map (of all files, one file after another) -> it is read */
    size_t *first_map;     /* file -> index of its first map in keep_maps */
    uint64_t budget_bytes; /* the rest of the budget */
    uint64_t n_skipped[_PLAN_SKIP_MAX];
} PlanCut;

void plan_cut_done(PlanCut *c);

/* Return the class and the profile of the volume's device. The class selects the number of parallel
 * requests of replay (execute/operations.c). For a device that does not seek, the class follows
 * from the measured profile and not from the name. With the class of a faster device, replay would
 * send more requests than this device serves at once, and the surplus would only delay other
 * readers. */
DeviceClass plan_device_class(const Volume *v, const PlanParameters *p);
const DeviceProfile *plan_device_profile(const Volume *v, const PlanParameters *p);

/* Returns the volume of a part of a pack, or NULL if it is not mounted. */
const Volume *plan_volume_of(const VolumeTable *t, const PackContentVolume *g);

/* Selects objects by the rules in the comment of plan_compile() (plan.h). The selection fits the
 * budget and the limits of plan.h. `n_skipped` counts only the objects that this function skipped.
 * Returns 0 or -ENOMEM. */
int plan_cut(const LocatedPlan *l, const PlanParameters *p, PlanCut *ret);
