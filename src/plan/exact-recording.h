/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides whether the next boot is to be recorded exactly, together with an automatic login that
 * the boot pack contains. With the usual read-ahead a third of what a boot reads is never used, but
 * the recorder cannot tell which pages those are, so the pack contains them. A device that does not
 * seek replays the smaller set in less time. Pure. */

#include "base/time-util.h"
#include "base/vocabulary.h"
#include "device/profile.h"

#include <stdint.h>

/* An exact recording is made at most once in this time, because its boot is not replayed. */
#define EXACT_RECORDING_USEC (28 * 24 * USEC_PER_HOUR)

/* No exact recording is requested if the newest recording of a boot is older than this: the
 * recorder may have stopped working, and a request keeps the boot from being replayed. */
#define EXACT_RECORDING_SEEN_USEC (7 * 24 * USEC_PER_HOUR)

/* Returns the read-ahead in KiB of an exact recording, at least 16, or 0 if an exact recording is
 * not worth its cost. The read-ahead is the largest power of two whose transfer takes at most half
 * as long as the latency of a request: the recorded boot is then not much slower than others
 * without replay. If more than half of the usual read-ahead would remain, the read-ahead is a
 * quarter of the usual one. That boot is slower, and the smaller pack must make up for the
 * difference within 50 boots. If it does not, or if the device seeks, returns 0. `usual_kb`: the
 * usual read-ahead in KiB. */
unsigned exact_recording_read_ahead(const DeviceProfile *d, uint64_t usual_kb);

/* The planner requests no exact recording before headstart has replayed this many boots. A new user
 * thus first sees what replay gains, as with control sessions. */
#define EXACT_RECORDING_REPLAYED 3U

/* An exact recording takes the place of a control session (measure/benefit.h), because neither is
 * replayed. Once replay was shown to gain time, an exact recording follows only after more replayed
 * boots than this, so that it does not take the place of every control session. */
#define EXACT_RECORDING_DISTANCE 200U

typedef struct ExactRecordingFacts {
    Policy policy;             /* of the boot pack */
    uint64_t n_replayed;       /* boots of the history that were replayed */
    uint64_t n_replayed_since; /* replayed boots since the newest exact recording */
    usec_t recorded;           /* wall clock: the newest recorded boot; 0: none */
    usec_t exact;              /* wall clock: the newest boot that was recorded exactly, or was
                                  requested to be; 0: none */
    bool shown;                /* replay was shown to gain time */
    bool drawn;                /* the next boot may be a control session */
} ExactRecordingFacts;

/* Returns true if the next boot is to be recorded exactly. `now` is wall-clock time. */
bool exact_recording_is_due(const ExactRecordingFacts *f, usec_t now);
