/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which of the located objects a plan keeps. Pure. */

#include "plan/plan.h"

typedef struct PlanCut {
    bool *keep_metadata;   /* metadata range -> kept */
    bool *keep_files;      /* file -> opened */
    bool *keep_maps;       /* map of all files, one file after another -> read */
    size_t *first_map;     /* file -> index of its first map in keep_maps */
    uint64_t budget_bytes; /* the rest of the budget */
    uint64_t n_skipped[_PLAN_SKIP_MAX];
} PlanCut;

void plan_cut_done(PlanCut *c);

/* The class and the profile of the volume's device. The class selects how many requests replay
 * makes at once (replay/operations.c): what was measured of a device that does not seek counts more
 * than its name, since more requests than the device serves at once only delay those of others. */
DeviceClass plan_device_class(const Volume *v, const PlanParameters *p);
const DeviceProfile *plan_device_profile(const Volume *v, const PlanParameters *p);

/* Selects as plan_compile() (plan.h) describes. The selection fits the budget and the limits of
 * plan.h. `n_skipped` counts only what was skipped here. 0 or -ENOMEM. */
int plan_cut(const LocatedPlan *l, const PlanParameters *p, PlanCut *ret);
