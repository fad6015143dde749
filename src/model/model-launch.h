/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds out for which applications a trace's accesses were made. Pure. Shared by the files of
 * src/model only.
 *
 * An access counts for its own application. In a session it also counts for an application that has
 * started a short time before, because other processes read on its behalf. For example, the panel
 * reads the icon of the new window, and a service starts on the application's request. An access
 * counts for the latest LAUNCH_OTHERS_MAX of the starts in the LAUNCH_OTHERS_USEC before it,
 * whichever process makes the access. Such an access may be made by chance, so it is marked
 * (LaunchUser.other). If its program opens the file at other times, too, it does not count
 * (model/model-uses.h). If this happens in few sessions, the file's share of the sessions stays
 * small.
 *
 * A start lasts until neither the application nor its helpers have opened anything for
 * LAUNCH_GAP_USEC, but at most LAUNCH_MAX_USEC. Its helpers are the applications that were started
 * during that time. What they access during that time counts for the start, too. A further process
 * of the same application in that time belongs to the start.
 *
 * Executing a program opens it and its loader before the kernel reports the execution, and may wait
 * for a disk meanwhile. The times of accesses are those of a coarser clock, so that the first
 * libraries seem to be opened before the start, too. What an application accesses in the
 * LAUNCH_EARLY_USEC before its start therefore belongs to the start. */

#include "model/model.h"

#define LAUNCH_OTHERS_USEC (3 * USEC_PER_SEC)
#define LAUNCH_OTHERS_MAX  3U

#define LAUNCH_EARLY_USEC (500 * USEC_PER_MSEC)

/* The search for the starts of an access is limited to this many starts before it, because a build
 * starts hundreds of processes a second. */
#define LAUNCH_LOOK_BACK 64U

/* The most applications for which one access counts. */
#define LAUNCH_USERS_MAX 8U

typedef struct LaunchUser {
    uint32_t application; /* index into the applications of the stage */
    usec_t delay;         /* since its start; USEC_INFINITY: the access is no part of a start */
    bool other;           /* neither the application nor a helper of its start makes the access */
} LaunchUser;

typedef struct Launches Launches;

/* Lists the starts of a trace for launches_feed(). `applications[i]` is the number that application
 * i of the trace has in the stage, which has n_applications. The function copies what it needs.
 * Returns 0 or -ENOMEM. */
int launches_new(const Trace *t, const uint32_t *applications, size_t n_applications,
                 Launches **ret);
Launches *launches_free(Launches *l);
DEFINE_CLEANUP(Launches *, launches_free);

/* Takes the next access of the trace. Fills `ret` with the applications for which the access
 * counts, its own first and none twice, and returns their number. */
size_t launches_feed(Launches *l, usec_t at, uint32_t application,
                     LaunchUser ret[static LAUNCH_USERS_MAX]);

/* Returns true if a start of that application was observed. */
bool launches_observed(const Launches *l, uint32_t application);
