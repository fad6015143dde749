/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Chooses the policy of a pack by the predicted time of its stage (stage-time.h). Pure. */

#include "pack/pack-writer.h"
#include "plan/plan.h"

/* The measured times of the stage without replay (model/prediction.h); 0: unknown. */
typedef struct StageMeasured {
    usec_t ready, stalled;
} StageMeasured;

/* Predicts the stage's time with this pack under each policy, and stores it in the content. Sets
 * policy, reason, hold and order of the pack. If `configured` is _POLICY_INVALID, the policy with
 * the least time is set. Any other value of `configured` is set as it is. Hold and order are the
 * best for that policy. A login is not held: replay reads before the login begins, at idle
 * priority. If a policy must be chosen without measured times (`measured.ready` is 0), the times of
 * the stage are estimated. Returns 0 or -ENOMEM; *c is untouched on failure. */
int plan_predict(const VolumeTable *volumes, const PlanParameters *p, Policy configured,
                 StageMeasured measured, PackContent *c);
