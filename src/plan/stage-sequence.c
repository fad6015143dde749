/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/stage-time-internal.h"

#include "base/ranges.h"

#include <math.h>

/* The size of the kernel's read-ahead for a process that reads sequentially. A window of read-ahead
 * begins with 16 KiB and doubles up to 128 KiB. This value is half of the largest window. */
#define READ_AHEAD UINT64_C(65536)

/* The largest part of a range that the stage reads at once: the largest window of read-ahead.
 * Replay may come to the rest of the range before the stage does. */
#define PART UINT64_C(131072)

void stage_device_init(StageDeviceState *d, const StageDevice *s)
{
    *d = (StageDeviceState){.p = s->profile, .size = s->size_bytes};
    d->depth = MAX(MIN(s->profile->depth, DEVICE_DEPTH_MAX), 1U);
}

unsigned stage_device_slot(const StageDeviceState *d)
{
    unsigned best = 0;

    for (unsigned i = 1; i < d->depth; i++)
        if (d->slots[i] < d->slots[best])
            best = i;
    return best;
}

double stage_device_serve(StageDeviceState *d, double at, uint64_t place, uint64_t length)
{
    unsigned slot = stage_device_slot(d);
    double latency = fmax(at, d->slots[slot]) + d->p->fixed_usec;

    if (place != PHYSICAL_UNKNOWN) {
        latency += cost_move_usec(d->p, d->head, place, d->size);
        d->head = place + length;
    }
    d->link_free = fmax(latency, d->link_free) + (double)length / d->p->rate_bytes_per_usec;
    return d->slots[slot] = d->link_free;
}

void stage_sequence_done(StageSequence *s)
{
    free(s->parts);
    free(s->read);
    free(s->order);
    free(s->think);
}

int stage_compare_keyed(const void *a, const void *b)
{
    const StageKeyed *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->second != y->second)
        return x->second < y->second ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

/* Returns the k-th of a sequence of positions in [0, 1): multiples of the golden ratio, without
 * their integer part. The positions are spread evenly, and successive ones are far apart. */
static double scattered(size_t k)
{
    double x = (double)(k + 1) * 0.6180339887498949;

    return x - floor(x);
}

/* Returns when read i is needed. Traces do not say when metadata was read: its reads are spread
 * evenly over the time from 0 to `last`, the last need of data. */
static usec_t need_of(const StageFacts *f, size_t i, usec_t last)
{
    if (f->reads[i].need != USEC_INFINITY)
        return MIN(f->reads[i].need, last);
    return (usec_t)(scattered(i) * (double)last);
}

static usec_t last_need(const StageFacts *f)
{
    usec_t last = 0;

    for (size_t i = 0; i < f->n_reads; i++)
        if (f->reads[i].need != USEC_INFINITY && (f->ready == 0 || f->reads[i].need <= f->ready))
            last = MAX(last, f->reads[i].need);
    return last;
}

double stage_read_cold(StageDeviceState *d, double at, const StageRead *r)
{
    for (uint64_t done = 0; done < r->length; done += READ_AHEAD)
        at = stage_device_serve(d, at, r->place == PHYSICAL_UNKNOWN ? r->place : r->place + done,
                                MIN(r->length - done, READ_AHEAD));
    return at;
}

/* Simulates one process that reads all parts in their order and computes nothing. Stores in
 * ret_each the wait for each part, multiplied by the part's probability. Returns the sum of these
 * products, or -1 if memory runs out. */
static double serial_usec(const StageSequence *s, double *ret_each)
{
    _cleanup_free_ StageDeviceState *devices =
            calloc(s->f->n_devices + 1, sizeof(StageDeviceState));
    double now = 0, sum = 0;

    if (!devices)
        return -1;
    for (size_t i = 0; i < s->f->n_devices; i++)
        stage_device_init(&devices[i], &s->f->devices[i]);
    for (size_t k = 0; k < s->n; k++) {
        const StageRead *r = &s->parts[s->order[k]];
        double end = stage_read_cold(&devices[r->device], now, r);

        ret_each[k] = (end - now) * r->probability;
        sum += ret_each[k];
        now = end;
    }
    return sum;
}

/* Distributes the computing time of the stage over its parts. The share before a part is
 * proportional to the time between the use of the previous part and that of this part, less the
 * wait for the previous part. */
static void distribute_think(StageSequence *s, const StageKeyed *by_use, const double *each)
{
    size_t n = s->n;
    double sum = 0;

    for (size_t k = 0; k <= n; k++) {
        double since = k > 0 ? (double)by_use[k - 1].first : 0;
        double until = k < n ? (double)by_use[k].first : (double)MAX(s->f->ready, (usec_t)since);

        s->think[k] = fmax(until - since - (k > 0 ? each[k - 1] * s->overlap : 0), 0) + 1;
        sum += s->think[k];
    }
    for (size_t k = 0; k <= n; k++)
        s->think[k] *= s->warm / sum;
}

static double default_overlap(const StageFacts *f)
{
    for (size_t i = 0; i < f->n_devices; i++)
        if (f->devices[i].profile->depth > 1)
            return STAGE_TIME_OVERLAP_DEEP;
    return STAGE_TIME_OVERLAP_SERIAL;
}

/* Splits the stage's time into computing and waiting. The kernel's measure of waiting is too low if
 * waiting tasks move between processors. Therefore the time that the device needs counts if it is
 * longer. */
static void split_time(StageSequence *s, double serial)
{
    const StageFacts *f = s->f;
    double expected = serial * default_overlap(f), ready = (double)f->ready;
    double waits = fmin((double)f->stalled, serial + (double)f->n_reads * STAGE_TIME_READ_USEC_MAX);

    if (f->ready == 0) {
        s->overlap = default_overlap(f);
        s->warm = (double)f->n_opens * STAGE_TIME_OPEN_USEC;
        return;
    }
    s->warm = ready - fmin(fmax(waits, expected), ready * 0.95);
    s->overlap = serial > 0 ? (ready - s->warm) / serial : 0;
}

static size_t count_parts(const StageFacts *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n_reads; i++)
        n += MAX((f->reads[i].length + PART - 1) / PART, 1U);
    return n;
}

/* Divides the reads into parts. Stores when each part is needed: the stage needs all parts of a
 * read at the same time. */
static void split_reads(StageSequence *s, StageKeyed *keys)
{
    const StageFacts *f = s->f;
    usec_t last = last_need(f);

    for (size_t i = 0; i < f->n_reads; i++) {
        uint64_t done = 0;

        do {
            StageRead part = f->reads[i];

            part.length = MIN(part.length - done, PART);
            if (part.place != PHYSICAL_UNKNOWN)
                part.place += done;
            done += part.length;
            keys[s->n] = (StageKeyed){need_of(f, i, last), 0, (uint32_t)s->n};
            s->read[s->n] = (uint32_t)i;
            s->parts[s->n++] = part;
        } while (done < f->reads[i].length);
    }
}

int stage_sequence_make(const StageFacts *f, StageSequence *ret)
{
    size_t n = count_parts(f);
    _cleanup_(stage_sequence_done) StageSequence s = {.f = f};
    _cleanup_free_ StageKeyed *keys = calloc(n + 1, sizeof(StageKeyed));
    _cleanup_free_ double *each = calloc(n + 1, sizeof(double));
    double serial;

    s.parts = calloc(n + 1, sizeof(StageRead));
    s.read = calloc(n + 1, sizeof(uint32_t));
    s.order = calloc(n + 1, sizeof(uint32_t));
    s.think = calloc(n + 1, sizeof(double));
    if (!keys || !each || !s.parts || !s.read || !s.order || !s.think)
        return -ENOMEM;
    split_reads(&s, keys);
    qsort(keys, n, sizeof(StageKeyed), stage_compare_keyed);
    for (size_t i = 0; i < n; i++)
        s.order[i] = keys[i].part;
    serial = serial_usec(&s, each);
    if (serial < 0)
        return -ENOMEM;
    split_time(&s, serial);
    distribute_think(&s, keys, each);
    *ret = s;
    s = (StageSequence){0};
    return 0;
}

double stage_cold_usec(const StageSequence *s)
{
    _cleanup_free_ double *each = calloc(s->n + 1, sizeof(double));
    double serial = each ? serial_usec(s, each) : -1;

    return serial < 0 ? -1 : s->f->ready > 0 ? (double)s->f->ready : s->warm + serial * s->overlap;
}
