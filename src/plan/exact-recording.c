/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/exact-recording.h"

/* Below this read-ahead an exact recording slows down the boot that it observes, and finds few
 * further unused pages. */
#define READ_AHEAD_MIN_KB 16U

/* If the exact recording takes longer than other boots without replay, its pack must make up for
 * the difference within this number of boots. */
#define BOOTS_UNTIL_SAVED 50

unsigned exact_recording_read_ahead(const DeviceProfile *d, uint64_t usual_kb)
{
    /* What the device transfers within the latency of one request. */
    double latency_kb = d->rate_bytes_per_usec * d->fixed_usec / 1024;
    unsigned n = READ_AHEAD_MIN_KB;

    if (d->seek_max_usec > 0)
        return 0;
    while (n <= latency_kb / 4 && n < usual_kb)
        n *= 2;
    if (n <= usual_kb / 2)
        return n;
    /* A quarter of the usual read-ahead needs up to three further requests for each of the usual
     * ones: 3 * latency_kb. It saves about a quarter of the bytes in each later boot: n. The kernel
     * rounds the value down to whole pages. */
    n = (unsigned)ALIGN_DOWN(usual_kb / 4, (uint64_t)READ_AHEAD_MIN_KB);
    return n > 0 && 3 * latency_kb / n <= BOOTS_UNTIL_SAVED ? n : 0;
}

bool exact_recording_is_due(const ExactRecordingFacts *f, usec_t now)
{
    return (f->policy == POLICY_GATE || f->policy == POLICY_CONCURRENT) && f->drawn &&
           f->n_replayed >= EXACT_RECORDING_REPLAYED && f->recorded > 0 &&
           now < f->recorded + EXACT_RECORDING_SEEN_USEC &&
           (f->exact == 0 || (now >= f->exact + EXACT_RECORDING_USEC &&
                              (!f->shown || f->n_replayed_since > EXACT_RECORDING_DISTANCE)));
}
