/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "device/probe.h"

#include "device/estimate.h"
#include "device/profile.h"

/* The number of samples of each kind in one plan. */
#define STREAMS       3U
#define FARS          16U
#define NEARS_ZERO    8U /* of the next block */
#define GAP_MIN       (UINT64_C(32) << 10)
#define GAPS          6U /* gaps, each twice as long as the previous one */
#define CANDIDATES    16U
#define STREAM_USEC   40000.0
#define STREAM_MIN    (512.0 * 1024)
#define STREAM_LENGTH (UINT32_C(512) << 10)

/* The plan stops doubling the depth after two doublings in a row that have each gained less than
 * this factor. */
#define DEPTH_GAIN 1.15

/* Smaller devices are not measured. */
#define SIZE_MIN (UINT64_C(16) << 20)

/* Returns the number of samples of a kind that this plan took. */
static unsigned count(const DeviceSamples *s, DeviceSampleKind k, uint32_t plan)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->n[k]; i++)
        n += s->items[k][i].plan == plan;
    return n;
}

/* Returns the throughput that this plan measured at that depth, in requests per usec; 0 if it did
 * not measure it. */
static double throughput(const DeviceSamples *s, uint32_t plan, uint32_t depth)
{
    DeviceSampleKind k = depth == 1 ? DEVICE_SAMPLE_FAR : DEVICE_SAMPLE_PARALLEL;
    double requests = 0, usec = 0;

    for (unsigned i = 0; i < s->n[k]; i++)
        if (s->items[k][i].plan == plan && s->items[k][i].depth == depth) {
            requests += s->items[k][i].requests;
            usec += (double)s->items[k][i].usec;
        }
    return usec > 0 ? requests / usec : 0;
}

/* Returns the depth that this plan measures next; 0: none. */
static uint32_t next_depth(const DeviceSamples *s, uint32_t plan)
{
    unsigned flat = 0;

    for (uint32_t depth = 2; depth <= DEVICE_DEPTH_MAX; depth *= 2) {
        double now = throughput(s, plan, depth), before = throughput(s, plan, depth / 2);

        if (now <= 0)
            return depth;
        flat = now < DEPTH_GAIN * before ? flat + 1 : 0;
        if (flat == 2)
            return 0;
    }
    return 0;
}

bool device_probe_wanted(const DeviceSamples *s)
{
    unsigned parallel = 0;
    int slow = device_seeks_slowly(s);

    for (unsigned i = 0; i < s->n[DEVICE_SAMPLE_PARALLEL]; i++)
        parallel += s->items[DEVICE_SAMPLE_PARALLEL][i].depth == 2;
    return s->n[DEVICE_SAMPLE_STREAM] < DEVICE_PROBE_PLANS * STREAMS ||
           s->n[DEVICE_SAMPLE_FAR] < DEVICE_PROBE_PLANS * FARS || slow < 0 ||
           (slow > 0 && s->n[DEVICE_SAMPLE_NEAR] < DEVICE_PROBE_PLANS * (NEARS_ZERO + GAPS)) ||
           (slow == 0 && parallel < DEVICE_PROBE_PLANS);
}

/* Draws a number below n with xorshift64* (Vigna, An experimental exploration of Marsaglia's
 * xorshift generators, 2016). */
static uint64_t draw(DeviceProbeRun *r, uint64_t n)
{
    r->random ^= r->random >> 12;
    r->random ^= r->random << 25;
    r->random ^= r->random >> 27;
    return (r->random * UINT64_C(2685821657736338717) >> 11) % MAX(n, UINT64_C(1));
}

/* Returns the offset of a random block of `length` bytes where the device has data. */
static uint64_t draw_offset(DeviceProbeRun *r, uint64_t length)
{
    uint64_t last = r->size_bytes - length, offset, total = 0;

    for (size_t i = 0; i < r->n_places; i++)
        total += r->places[i].length;
    offset = draw(r, total > 0 ? total : last);
    for (size_t i = 0; total > 0 && i < r->n_places; i++) {
        if (offset < r->places[i].length) {
            offset += r->places[i].offset;
            break;
        }
        offset -= r->places[i].length;
    }
    return ALIGN_DOWN(MIN(offset, last), (uint64_t)DEVICE_PROBE_BLOCK);
}

static uint64_t distance_between(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

/* Draws the offset of the k-th FAR probe of a plan. The FAR probes are spread evenly over the root
 * of the distance. */
static uint64_t draw_far_offset(DeviceProbeRun *r, unsigned k)
{
    double root = ((k % FARS) + 0.5) / FARS;
    uint64_t lo = r->n_places > 0 ? r->places[0].offset : 0;
    uint64_t hi = r->n_places > 0 ? range_end(&r->places[r->n_places - 1]) : r->size_bytes;
    uint64_t aim = (uint64_t)(root * root * (double)(hi - MIN(lo, hi)));
    uint64_t best = draw_offset(r, DEVICE_PROBE_BLOCK);

    for (unsigned i = 0; i < CANDIDATES; i++) {
        uint64_t offset = draw_offset(r, DEVICE_PROBE_BLOCK);

        if (distance_between(distance_between(offset, r->head), aim) <
            distance_between(distance_between(best, r->head), aim))
            best = offset;
    }
    return best;
}

static void make_far(DeviceProbeRun *r, unsigned k, DeviceProbe *p)
{
    *p = (DeviceProbe){.kind = DEVICE_SAMPLE_FAR,
                       .length = DEVICE_PROBE_BLOCK,
                       .requests = 1,
                       .depth = 1,
                       .lead = UINT64_MAX};
    p->offsets[0] = draw_far_offset(r, k);
    p->distance = distance_between(p->offsets[0], r->head);
}

static bool make_near(const DeviceProbeRun *r, unsigned k, DeviceProbe *p)
{
    uint64_t gap = k < NEARS_ZERO ? 0 : GAP_MIN << (k - NEARS_ZERO) % GAPS;

    *p = (DeviceProbe){.kind = DEVICE_SAMPLE_NEAR,
                       .distance = gap,
                       .length = DEVICE_PROBE_BLOCK,
                       .requests = 1,
                       .depth = 1,
                       .lead = UINT64_MAX};
    p->offsets[0] = r->head + gap;
    return p->offsets[0] + p->length <= r->size_bytes;
}

static void make_parallel(DeviceProbeRun *r, uint32_t depth, DeviceProbe *p)
{
    *p = (DeviceProbe){.kind = DEVICE_SAMPLE_PARALLEL,
                       .length = DEVICE_PROBE_BLOCK,
                       .requests = 3 * depth,
                       .depth = depth,
                       .lead = UINT64_MAX};
    for (uint32_t i = 0; i < p->requests; i++)
        p->offsets[i] = draw_offset(r, p->length);
}

/* Makes a stream that takes about STREAM_USEC at the rate of the last stream. */
static void make_stream(DeviceProbeRun *r, DeviceProbe *p)
{
    const DeviceSample *last = NULL;
    double bytes = STREAM_MIN;
    uint64_t at;

    if (r->samples->n[DEVICE_SAMPLE_STREAM] > 0)
        last = &r->samples->items[DEVICE_SAMPLE_STREAM][r->samples->n[DEVICE_SAMPLE_STREAM] - 1];
    if (last)
        bytes = STREAM_USEC * last->length * last->requests / (double)MAX(last->usec, 1U);
    bytes = MIN(MAX(bytes, STREAM_MIN), (double)DEVICE_PROBE_LENGTH_MAX);
    *p = (DeviceProbe){.kind = DEVICE_SAMPLE_STREAM, .length = STREAM_LENGTH};
    while (p->length > DEVICE_PROBE_BLOCK && bytes < 4.0 * p->length)
        p->length /= 2;
    p->requests = p->depth = (uint32_t)(bytes / p->length);
    at = p->lead = draw_offset(r, DEVICE_PROBE_BLOCK + (uint64_t)p->length * p->requests);
    at += DEVICE_PROBE_BLOCK;
    for (uint32_t i = 0; i < p->requests; i++, at += p->length)
        p->offsets[i] = at;
}

static uint64_t bytes_of(const DeviceProbe *p)
{
    return (uint64_t)p->length * p->requests + (p->lead != UINT64_MAX ? DEVICE_PROBE_BLOCK : 0);
}

/* Makes a FAR or a NEAR probe: these take turns. There is no further NEAR probe once it is known
 * that the device does not seek slowly. Returns false if this plan has enough probes of both kinds.
 */
static bool make_single(DeviceProbeRun *r, DeviceProbe *p)
{
    unsigned far = count(r->samples, DEVICE_SAMPLE_FAR, r->plan);
    unsigned near = count(r->samples, DEVICE_SAMPLE_NEAR, r->plan);
    int slow = device_seeks_slowly(r->samples);
    unsigned nears = slow > 0 ? NEARS_ZERO + GAPS : slow == 0 ? 0 : NEARS_ZERO;

    if (near < MIN(far, nears) && make_near(r, near, p))
        return true;
    if (far >= FARS)
        return false;
    make_far(r, far, p);
    return true;
}

static bool make_probe(DeviceProbeRun *r, DeviceProbe *p)
{
    unsigned streams = count(r->samples, DEVICE_SAMPLE_STREAM, r->plan);
    uint32_t depth;

    /* The first stream is short and only shows how long the next ones must be. */
    if (r->samples->n[DEVICE_SAMPLE_STREAM] == 0) {
        make_stream(r, p);
        return true;
    }
    if (make_single(r, p))
        return true;
    if (streams < 2) {
        make_stream(r, p);
        return true;
    }
    if (device_seeks_slowly(r->samples) == 0 && (depth = next_depth(r->samples, r->plan)) > 0) {
        make_parallel(r, depth, p);
        return true;
    }
    if (streams < STREAMS) {
        make_stream(r, p);
        return true;
    }
    return false;
}

bool device_probe_next(DeviceProbeRun *r, DeviceProbe *ret)
{
    if (r->size_bytes < SIZE_MIN || r->budget.usec == 0 || !device_probe_wanted(r->samples) ||
        !make_probe(r, ret))
        return false;
    return bytes_of(ret) <= r->budget.bytes;
}

void device_probe_done(DeviceProbeRun *r, const DeviceProbe *p, usec_t usec, bool zeroed)
{
    const DeviceSample s = {
            .distance = p->distance,
            .length = p->length,
            .requests = p->requests,
            .depth = p->depth,
            .plan = r->plan,
            .usec = MIN(usec, DEVICE_SAMPLE_USEC_MAX),
            .zeroed = zeroed,
    };

    device_samples_add(r->samples, p->kind, &s);
    r->head = p->offsets[p->requests - 1] + p->length;
    r->budget.usec -= MIN(usec, r->budget.usec);
    r->budget.bytes -= MIN(bytes_of(p), r->budget.bytes);
}
