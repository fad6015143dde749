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

/* The class and the profile of the volume's device. The class selects the number of parallel
 * requests of replay (replay/operations.c). For a device that does not seek, its measured profile
 * counts more than its name, because more requests than the device serves at once only delay other
 * readers. */
DeviceClass plan_device_class(const Volume *v, const PlanParameters *p);
const DeviceProfile *plan_device_profile(const Volume *v, const PlanParameters *p);

/* Selects as plan_compile() (plan.h) describes. The selection fits the budget and the limits of
 * plan.h. `n_skipped` counts only the objects that this function skipped. 0 or -ENOMEM. */
int plan_cut(const LocatedPlan *l, const PlanParameters *p, PlanCut *ret);
