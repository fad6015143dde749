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

/* Predicts what the replay of a launch set gains, and sets the policy: `concurrent`, or `off` if it
 * gains too little. `ready` is how long a start takes without replay; 0: not known. `in_memory` is
 * what the boot and the login read, as prediction_append() sorts it: ranges and metadata that they
 * probably read are in memory when the application starts. NULL: nothing is. The pack keeps its
 * order. Returns 0 or -ENOMEM; *c is untouched on failure. */
int plan_predict_start(const VolumeTable *volumes, const PlanParameters *p,
                       const Prediction *in_memory, usec_t ready, PackContent *c);

/* Returns how many bytes of data range k are probably not in memory (`in_memory` as above; NULL:
 * nothing is). A range may reach the end of the last page of a file, where a learned range ends
 * with the file. Less than a page therefore counts as nothing. */
uint64_t plan_missing_bytes(const PackContentVolume *g, size_t k, const Prediction *in_memory);
