/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Computes from the recorded starts what replay gains when applications start: for each
 * application, and for all together. Pure. */

#include "measure/benefit.h"
#include "measure/launch-record.h"

/* Why a start is left out of the comparison. */
typedef enum LaunchExclusion {
    LAUNCH_EXCLUSION_NONE,
    LAUNCH_EXCLUSION_FIRST,    /* the packages before this start are unknown */
    LAUNCH_EXCLUSION_AGAIN,    /* the application has already started in this boot: its files are in
                                  memory */
    LAUNCH_EXCLUSION_UPGRADED, /* packages changed since the previous start of the application */
    LAUNCH_EXCLUSION_OLD,      /* enough newer starts of the application are compared */
    LAUNCH_EXCLUSION_ALONE,    /* the user has no other start of the application with replay */
    _LAUNCH_EXCLUSION_MAX,
    _LAUNCH_EXCLUSION_INVALID = -EINVAL,
} LaunchExclusion;

/* Returns a text for people, such as "first start after an upgrade", or NULL for
 * LAUNCH_EXCLUSION_NONE. */
const char *launch_exclusion_to_string(LaunchExclusion e);

/* What replay gains for one application. */
typedef struct LaunchBenefit {
    const char *application; /* borrowed from the records */
    Benefit benefit;         /* of all users; each user has a level of its own */
} LaunchBenefit;

typedef struct LaunchBenefits {
    Benefit all;          /* of all applications together; each has a level of its own */
    LaunchBenefit *items; /* the application with the most comparable starts first */
    size_t n;
    LaunchExclusion *exclusions; /* by record; NONE: the effect of its application counts it */
} LaunchBenefits;

void launch_benefits_done(LaunchBenefits *b);
#define _cleanup_launch_benefits_ _cleanup_(launch_benefits_done)

/* Computes the benefits as of `now` (wall clock). The records must outlive *ret. Returns 0 or
 * -ENOMEM. */
int launch_benefits_compute(const LaunchRecords *l, usec_t now, LaunchBenefits *ret);

/* Returns the benefit for the application with that path. If nothing was recorded of the
 * application, the benefit has no starts. */
Benefit launch_benefits_find(const LaunchBenefits *b, const char *application);

/* Returns how long a start of the application by this user takes without replay: the median of the
 * newest such starts, each the user's first one of its boot. 0: none was recorded. */
usec_t launch_benefits_unreplayed_usec(const LaunchRecords *l, const char *application,
                                       uint32_t uid);

/* Returns the time of the last control start of the application by this user (UID_INVALID: by
 * anybody). Only such starts show which metadata the application needs. A time after `now` (wall
 * clock) comes from a wrong clock and counts as 0. USEC_INFINITY: none is recorded, because a start
 * of few files has no record. */
usec_t launch_benefits_observed_until(const LaunchRecords *l, const char *application, uint32_t uid,
                                      usec_t now);
