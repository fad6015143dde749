/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which control starts of a session are observed (session/launch-observation.h), when an
 * observation ends, and whether it counts. One thread observes; launch_controls_take() and
 * launch_controls_n() may be called by others. */

#include "session/launch-observation.h"

/* The most control starts that are observed at once. */
#define LAUNCH_CONTROLS_MAX 8U

/* A start is over when tasks have waited for I/O for at most LAUNCH_QUIET_STALL_USEC in
 * LAUNCH_QUIET_USEC, or LAUNCH_HELPER_MAX_USEC after it began. What is read after that is no part
 * of it. */
#define LAUNCH_QUIET_USEC       (3 * USEC_PER_SEC)
#define LAUNCH_QUIET_STALL_USEC (3 * USEC_PER_MSEC)
#define LAUNCH_QUIET_LOOK_USEC  (500 * USEC_PER_MSEC)

/* The most observations that a session begins. Those that fail count, too, because each of them
 * holds the prefetch thread. */
#define LAUNCH_BEGUN_MAX 64U

/* In a session of several users, the limits of one user are LAUNCH_CONTROLS_MAX, LAUNCH_BEGUN_MAX
 * and LAUNCH_USES_MAX divided by this. */
#define LAUNCH_USER_PART 4U

typedef struct LaunchControls LaunchControls;

/* Makes an object that observes only starts of `uid`, because the trace of the session lacks those
 * of other users. UID_INVALID: the session has several users or an unknown one. `root` is borrowed.
 * Returns 0 or -ENOMEM. */
int launch_controls_new(const char *root, uint32_t uid, LaunchControls **ret);
LaunchControls *launch_controls_free(LaunchControls *c);

/* Observes the start whose event came at `event` (CLOCK_MONOTONIC), if the limits above allow it
 * and no start with this key is being observed or has counted in the session. Holds the prefetch
 * thread until the observation ends (session/prefetch-hold.h). If it observes the start, takes over
 * *buf, which holds the pack. A failure has no other effect. */
void launch_controls_begin(LaunchControls *c, LaunchKey key, const VolumeTable *t, char **buf,
                           const Pack *p, usec_t event);

/* Makes the present observations invalid, because a set is being read. */
void launch_controls_spoil(LaunchControls *c);

/* Ends the observations of starts that are over, and keeps the results of those that count.
 * `stalled`: how long tasks have waited for I/O since the machine started (pressure_read_total());
 * USEC_INFINITY: not known. Returns the time of the next call, or USEC_INFINITY if nothing is
 * observed. */
usec_t launch_controls_end(LaunchControls *c, const VolumeTable *t, usec_t now, usec_t stalled);

/* Returns true if a start is observed. Only the thread that observes may call it. */
bool launch_controls_observe(const LaunchControls *c);

/* Moves the results to *ret, which the caller frees with launch_uses_done(). */
void launch_controls_take(LaunchControls *c, LaunchUses *ret);

/* Returns how many observations have counted. */
uint64_t launch_controls_n(LaunchControls *c);
