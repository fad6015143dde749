/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/exact-recording.h"

/* Below this read-ahead an exact recording slows down the boot that it observes, and finds few
 * further unused pages. */
#define READ_AHEAD_MIN_KB 16U

unsigned exact_recording_read_ahead(const DeviceProfile *d, uint64_t usual_kb)
{
    double kb = d->rate_bytes_per_usec * d->fixed_usec / 2 / 1024; /* the transfer takes half */
    unsigned n = READ_AHEAD_MIN_KB;

    if (d->seek_max_usec > 0)
        return 0;
    while (n <= kb / 2 && n < usual_kb)
        n *= 2;
    return n <= usual_kb / 2 ? n : 0;
}

bool exact_recording_is_due(const ExactRecordingFacts *f, usec_t now)
{
    return (f->policy == POLICY_GATE || f->policy == POLICY_CONCURRENT) && f->drawn &&
           f->n_replayed >= EXACT_RECORDING_REPLAYED && f->recorded > 0 &&
           now < f->recorded + EXACT_RECORDING_SEEN_USEC &&
           (f->exact == 0 || (now >= f->exact + EXACT_RECORDING_USEC &&
                              (!f->shown || f->n_replayed_since > EXACT_RECORDING_DISTANCE)));
}
