/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Over 500 lines in one file: one simulation of a stage, whose reads, replay and readers share one
 * clock and one device. */

#include "plan/stage-time.h"

#include "base/ranges.h"
#include "plan/cost-model.h"

#include <math.h>
#include <string.h>

/* The size of the kernel's read-ahead for a process that reads sequentially. A window of read-ahead
 * begins with 16 KiB and doubles up to 128 KiB. This value is half of the largest window. */
#define READ_AHEAD UINT64_C(65536)

/* The largest part of a range that the stage reads at once: the largest window of read-ahead.
 * Replay may come to the rest of the range before the stage does. */
#define PART UINT64_C(131072)

/* The largest request of replay. */
#define REPLAY_REQUEST UINT64_C(1048576)

/* The cost of headstart-replay itself: bytes and requests of a cold start, and CPU time until the
 * first request and for each file that it opens. The program is linked statically, takes 1 MB, and
 * requests its whole file with its first instructions. Besides the program, the disk reads the
 * directory of the pack and the pack. */
#define PROGRAM_BYTES    UINT64_C(1048576)
#define PROGRAM_REQUESTS 3
#define START_USEC       10000.0
#define OPEN_USEC        12.0

/* --- devices ---------------------------------------------------------------------------------- */

typedef struct Device {
    const DeviceProfile *p;
    uint64_t size, head;
    unsigned depth;
    double slots[DEVICE_DEPTH_MAX]; /* when each slot is free */
    double link_free;
} Device;

static void device_init(Device *d, const StageDevice *s)
{
    *d = (Device){.p = s->profile, .size = s->size_bytes};
    d->depth = MAX(MIN(s->profile->depth, DEVICE_DEPTH_MAX), 1U);
}

static unsigned next_slot(const Device *d)
{
    unsigned best = 0;

    for (unsigned i = 1; i < d->depth; i++)
        if (d->slots[i] < d->slots[best])
            best = i;
    return best;
}

/* Returns when a request that arrives at the time `at` is done. */
static double serve(Device *d, double at, uint64_t place, uint64_t length)
{
    unsigned slot = next_slot(d);
    double latency = fmax(at, d->slots[slot]) + d->p->fixed_usec;

    if (place != PHYSICAL_UNKNOWN) {
        latency += cost_move_usec(d->p, d->head, place, d->size);
        d->head = place + length;
    }
    d->link_free = fmax(latency, d->link_free) + (double)length / d->p->rate_bytes_per_usec;
    return d->slots[slot] = d->link_free;
}

/* --- the stage -------------------------------------------------------------------------------- */

/* The reads of the stage in their order. */
typedef struct Sequence {
    const StageFacts *f;
    StageRead *parts; /* f->reads, divided into parts of at most PART bytes */
    uint32_t *read;   /* part -> the read that it belongs to */
    size_t n;
    uint32_t *order; /* into parts, by first use */
    double *think;   /* computing time before each part; n + 1 values: the last is the time after
                        all parts */
    double overlap;
    double warm; /* sum of `think` */
} Sequence;

static void sequence_done(Sequence *s)
{
    free(s->parts);
    free(s->read);
    free(s->order);
    free(s->think);
}

typedef struct Keyed {
    uint64_t first, second;
    uint32_t part;
} Keyed;

static int compare_keyed(const void *a, const void *b)
{
    const Keyed *x = a, *y = b;

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

/* Returns when a reader that begins at `at` has read a part that was not prefetched. */
static double read_cold(Device *d, double at, const StageRead *r)
{
    for (uint64_t done = 0; done < r->length; done += READ_AHEAD)
        at = serve(d, at, r->place == PHYSICAL_UNKNOWN ? r->place : r->place + done,
                   MIN(r->length - done, READ_AHEAD));
    return at;
}

/* Simulates one process that reads all parts in their order and computes nothing. Stores in
 * ret_each the wait for each part, multiplied by the part's probability. Returns the sum of these
 * products, or -1 if memory runs out. */
static double serial_usec(const Sequence *s, double *ret_each)
{
    _cleanup_free_ Device *devices = calloc(s->f->n_devices + 1, sizeof(Device));
    double now = 0, sum = 0;

    if (!devices)
        return -1;
    for (size_t i = 0; i < s->f->n_devices; i++)
        device_init(&devices[i], &s->f->devices[i]);
    for (size_t k = 0; k < s->n; k++) {
        const StageRead *r = &s->parts[s->order[k]];
        double end = read_cold(&devices[r->device], now, r);

        ret_each[k] = (end - now) * r->probability;
        sum += ret_each[k];
        now = end;
    }
    return sum;
}

/* Distributes the computing time of the stage over its parts. The share before a part is
 * proportional to the time between the use of the previous part and that of this part, less the
 * wait for the previous part. */
static void distribute_think(Sequence *s, const Keyed *by_use, const double *each)
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
static void split_time(Sequence *s, double serial)
{
    const StageFacts *f = s->f;
    double expected = serial * default_overlap(f), ready = (double)f->ready;

    if (f->ready == 0) {
        s->overlap = default_overlap(f);
        s->warm = (double)f->n_opens * STAGE_TIME_OPEN_USEC;
        return;
    }
    s->warm = ready - fmin(fmax((double)f->stalled, expected), ready * 0.95);
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
static void split_reads(Sequence *s, Keyed *keys)
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
            keys[s->n] = (Keyed){need_of(f, i, last), 0, (uint32_t)s->n};
            s->read[s->n] = (uint32_t)i;
            s->parts[s->n++] = part;
        } while (done < f->reads[i].length);
    }
}

static int sequence_make(const StageFacts *f, Sequence *ret)
{
    size_t n = count_parts(f);
    _cleanup_(sequence_done) Sequence s = {.f = f};
    _cleanup_free_ Keyed *keys = calloc(n + 1, sizeof(Keyed));
    _cleanup_free_ double *each = calloc(n + 1, sizeof(double));
    double serial;

    s.parts = calloc(n + 1, sizeof(StageRead));
    s.read = calloc(n + 1, sizeof(uint32_t));
    s.order = calloc(n + 1, sizeof(uint32_t));
    s.think = calloc(n + 1, sizeof(double));
    if (!keys || !each || !s.parts || !s.read || !s.order || !s.think)
        return -ENOMEM;
    split_reads(&s, keys);
    qsort(keys, n, sizeof(Keyed), compare_keyed);
    for (size_t i = 0; i < n; i++)
        s.order[i] = keys[i].part;
    serial = serial_usec(&s, each);
    if (serial < 0)
        return -ENOMEM;
    split_time(&s, serial);
    distribute_think(&s, keys, each);
    *ret = s;
    s = (Sequence){0};
    return 0;
}

/* --- replay ----------------------------------------------------------------------------------- */

#define NOT_READ (-1.0)

/* More requests than this are never in flight next to a reader. */
#define WINDOW_REQUESTS 256U

typedef struct Stream {
    uint32_t *queue; /* into parts: metadata, then data */
    size_t n, next;
    size_t n_metadata;
    double begin;      /* no request is made before this time */
    double data_begin; /* no request for data is made before this time; 0: not known yet */
    uint64_t left;     /* bytes of the queue that were not requested yet */
    double done;       /* end of the last request so far */
    double ends[WINDOW_REQUESTS]; /* ring of the ends of the newest requests */
    size_t n_requests;
    double last; /* when the last request can be submitted, if nobody else reads */
} Stream;

typedef struct Timeline {
    const Sequence *s;
    Device *devices;
    Stream *streams;
    double *resident; /* part -> when it is in memory, or NOT_READ */
    bool beside;      /* the reader runs next to replay */
} Timeline;

static void timeline_done(Timeline *m)
{
    for (size_t i = 0; m->streams && i < m->s->f->n_devices; i++)
        free(m->streams[i].queue);
    free(m->streams);
    free(m->devices);
    free(m->resident);
}

static int fill_stream(Timeline *m, uint32_t device, bool metadata_only, usec_t bin)
{
    Stream *s = &m->streams[device];
    _cleanup_free_ Keyed *keys = calloc(m->s->n + 1, sizeof(Keyed));
    size_t n = 0;

    s->queue = calloc(m->s->n + 1, sizeof(uint32_t));
    if (!keys || !s->queue)
        return -ENOMEM;
    for (size_t i = 0; i < m->s->n; i++) {
        const StageRead *r = &m->s->parts[i];
        uint64_t group = 0;

        if (r->device != device || (metadata_only && !r->metadata))
            continue;
        if (!r->metadata)
            group = bin == 0 ? 1 : r->need == USEC_INFINITY ? UINT64_MAX : 1 + r->need / bin;
        s->n_metadata += r->metadata;
        s->left += r->length;
        keys[n++] = (Keyed){group, r->place, (uint32_t)i};
    }
    qsort(keys, n, sizeof(Keyed), compare_keyed);
    for (size_t i = 0; i < n; i++)
        s->queue[i] = keys[i].part;
    s->n = n;
    return 0;
}

/* Returns the time until replay makes its first request. */
static double start_usec(const StageFacts *f)
{
    const DeviceProfile *p = f->n_devices > 0 ? f->devices[0].profile
                                              : device_profile_of_class(DEVICE_CLASS_UNKNOWN);
    double move =
            (double)cost_seek_bytes(p) / p->rate_bytes_per_usec - p->fixed_usec / MAX(p->depth, 1U);

    return START_USEC + PROGRAM_REQUESTS * (p->fixed_usec + fmax(move, 0)) +
           (double)(PROGRAM_BYTES + f->pack_bytes) / p->rate_bytes_per_usec;
}

static int timeline_make(Timeline *m, const Sequence *s, bool metadata_only, usec_t bin)
{
    const StageFacts *f = s->f;
    double begin = start_usec(f);
    int r = 0;

    *m = (Timeline){
            .s = s,
            .devices = calloc(f->n_devices + 1, sizeof(Device)),
            .streams = calloc(f->n_devices + 1, sizeof(Stream)),
            .resident = calloc(s->n + 1, sizeof(double)),
    };
    if (!m->devices || !m->streams || !m->resident)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        m->resident[i] = NOT_READ;
    for (uint32_t i = 0; r >= 0 && i < f->n_devices; i++) {
        device_init(&m->devices[i], &f->devices[i]);
        m->streams[i].begin = m->streams[i].done = begin;
        r = fill_stream(m, i, metadata_only, bin);
        m->streams[i].last = begin;
        if (m->streams[i].n_metadata == 0)
            m->streams[i].last += (double)f->n_opens * OPEN_USEC;
    }
    return r;
}

/* Skips parts that the stage itself has read: replay does not request them again. */
static void skip_resident(Timeline *m, Stream *s)
{
    while (s->next < s->n && m->resident[s->queue[s->next]] != NOT_READ)
        s->next++;
}

/* Returns when so little is in flight that replay may make its next request. Next to a reader,
 * replay keeps a window of requests in the queue of a device that serves them in the order of
 * arrival. The queue of a disk that seeks is in another order; there replay makes a request when
 * the disk is free. */
static double window_opens(const Timeline *m, uint32_t device)
{
    const Device *d = &m->devices[device];
    const DeviceEngine *engine = m->s->f->devices[device].engine;
    const Stream *s = &m->streams[device];
    double slot = d->slots[next_slot(d)], bytes, requests = 0;
    size_t window;

    if (!m->beside || !engine)
        return slot;
    bytes = d->link_free - (double)engine->beside_bytes / d->p->rate_bytes_per_usec;
    if (d->p->seek_max_usec > 0)
        return fmax(slot, bytes);
    window = MIN(engine->beside_requests, WINDOW_REQUESTS);
    if (s->n_requests >= window)
        requests = s->ends[(s->n_requests - window) % WINDOW_REQUESTS];
    return fmax(bytes, requests);
}

/* Returns when the stream can make its next request, or INFINITY if it has none left. */
static double stream_ready(Timeline *m, uint32_t device)
{
    Stream *s = &m->streams[device];
    double begin = s->begin;

    skip_resident(m, s);
    if (s->next >= s->n)
        return INFINITY;
    if (s->next >= s->n_metadata) {
        /* Where replay reads no metadata, it opens all files before it reads data. Elsewhere
         * reading data opens the file, which takes no longer than the request before it. */
        if (s->data_begin == 0)
            s->data_begin =
                    s->n_metadata > 0 ? begin : s->done + (double)m->s->f->n_opens * OPEN_USEC;
        begin = s->data_begin;
    }
    return fmax(begin, window_opens(m, device));
}

/* Replay joins the parts of one read, and data that lies together on the device. */
static bool are_joined(const Sequence *s, uint32_t part, uint32_t next)
{
    const StageRead *a = &s->parts[part], *b = &s->parts[next];

    if (s->read[part] == s->read[next])
        return next == part + 1;
    return !a->metadata && !b->metadata && a->place != PHYSICAL_UNKNOWN &&
           b->place == a->place + a->length;
}

/* Returns the number of parts, from the next one of the queue on, that replay joins to one request,
 * and stores their length. */
static size_t count_joined(const Timeline *m, const Stream *s, uint64_t *ret_length)
{
    uint64_t length = m->s->parts[s->queue[s->next]].length;
    size_t n = 1;

    for (; s->next + n < s->n; n++) {
        uint32_t part = s->queue[s->next + n];
        uint64_t more = m->s->parts[part].length;

        if (!are_joined(m->s, s->queue[s->next + n - 1], part) || length + more > REPLAY_REQUEST ||
            m->resident[part] != NOT_READ)
            break;
        length += more;
    }
    *ret_length = length;
    return n;
}

/* Notes the end of the request of `length` bytes that was submitted last. Replay submits its last
 * request when that and all others that are not done fit into the window. It opens the files after
 * it has read the metadata. */
static void note_last(const StageFacts *f, uint32_t device, bool metadata, uint64_t length,
                      Stream *s)
{
    const DeviceEngine *engine = f->devices[device].engine;
    uint64_t window = engine ? engine->window_bytes : 0;

    if (metadata)
        s->last = s->done + (double)f->n_opens * OPEN_USEC;
    else if (s->left > window || (engine && s->n - s->next > engine->window_requests))
        s->last = fmax(s->last, s->done);
    s->left -= MIN(length, s->left);
}

static void stream_submit(Timeline *m, uint32_t device, double at)
{
    Stream *s = &m->streams[device];
    const StageRead *r = &m->s->parts[s->queue[s->next]];
    uint64_t length;
    size_t n = count_joined(m, s, &length);

    s->done = fmax(s->done, serve(&m->devices[device], at, r->place, length));
    s->ends[s->n_requests++ % WINDOW_REQUESTS] = s->done;
    note_last(m->s->f, device, r->metadata, length, s);
    for (size_t end = s->next + n; s->next < end; s->next++)
        m->resident[s->queue[s->next]] = s->done;
}

/* Makes all requests of replay that come before `until`. */
static void advance_streams(Timeline *m, double until)
{
    for (;;) {
        uint32_t first = 0;
        double at = INFINITY;

        for (uint32_t i = 0; i < m->s->f->n_devices; i++) {
            double t = stream_ready(m, i);

            if (t < at) {
                at = t;
                first = i;
            }
        }
        if (!(at < until))
            return;
        stream_submit(m, first, at);
    }
}

static double all_submitted(const Timeline *m)
{
    double last = 0;

    for (size_t i = 0; i < m->s->f->n_devices; i++)
        last = fmax(last, m->streams[i].last);
    return last;
}

/* Simulates the reader from `now` on; returns when it is done. */
static double play_reader(Timeline *m, double now)
{
    const Sequence *s = m->s;

    for (size_t k = 0; k < s->n; k++) {
        uint32_t part = s->order[k];
        const StageRead *r = &s->parts[part];
        double end;

        now += s->think[k];
        advance_streams(m, now);
        if (m->resident[part] == NOT_READ) {
            end = read_cold(&m->devices[r->device], now, r);
            m->resident[part] = end;
            now += (end - now) * r->probability * s->overlap;
        } else if (m->resident[part] > now)
            now += (m->resident[part] - now) * r->probability;
    }
    return now + s->think[s->n];
}

static int play(const Sequence *s, bool metadata_only, usec_t bin, usec_t hold, usec_t *ret_usec,
                usec_t *ret_hold)
{
    _cleanup_(timeline_done) Timeline m;
    int r = timeline_make(&m, s, metadata_only, bin);
    double begin = start_usec(s->f);

    if (r < 0)
        return r;
    if (hold > 0) {
        advance_streams(&m, hold == USEC_INFINITY ? INFINITY : fmax(begin, (double)hold));
        begin = hold == USEC_INFINITY ? all_submitted(&m)
                                      : fmax(begin, fmin((double)hold, all_submitted(&m)));
    }
    m.beside = true;
    *ret_usec = (usec_t)play_reader(&m, begin);
    if (ret_hold)
        *ret_hold = (usec_t)begin;
    return 0;
}

static double cold_usec(const Sequence *s)
{
    _cleanup_free_ double *each = calloc(s->n + 1, sizeof(double));
    double serial = each ? serial_usec(s, each) : -1;

    return serial < 0 ? -1 : s->f->ready > 0 ? (double)s->f->ready : s->warm + serial * s->overlap;
}

/* --- the choice ------------------------------------------------------------------------------- */

static const usec_t bins[] = {
        1 * USEC_PER_MSEC,   20 * USEC_PER_MSEC,  50 * USEC_PER_MSEC, 100 * USEC_PER_MSEC,
        200 * USEC_PER_MSEC, 500 * USEC_PER_MSEC, 1 * USEC_PER_SEC,   0};

/* The parts of the time of a whole sweep, in per cent, for which the stage may be held. */
static const unsigned holds_percent[] = {10, 20, 30, 40, 50, 60, 70, 80, 90};

/* For stages with more reads, predictions try only every fourth of these bins and hold times. The
 * time of a prediction grows with the number of reads, and large stages gain little if all are
 * tried. */
#define READS_MANY 20000U

static size_t stride_of(const Sequence *s)
{
    return s->n > READS_MANY ? 4 : 1;
}

static bool seeks(const StageFacts *f)
{
    for (size_t i = 0; i < f->n_devices; i++)
        if (f->devices[i].profile->seek_max_usec > 0)
            return true;
    return false;
}

static int predict_concurrent(const Sequence *s, StagePrediction *p)
{
    for (size_t i = 0; i < ELEMENTSOF(bins); i += stride_of(s)) {
        usec_t t = 0;
        int r = play(s, false, bins[i], 0, &t, NULL);

        if (r < 0)
            return r;
        if (t < p->usec[POLICY_CONCURRENT]) {
            p->usec[POLICY_CONCURRENT] = t;
            p->concurrent_bin = bins[i];
        }
    }
    return 0;
}

/* Chooses between two forms of `gate`: to hold the stage for a whole sweep in physical order, or
 * for a part of a sweep in bins. A whole sweep does not depend on the times of first use, which may
 * be wrong. If a whole sweep fits the deadline, a part is therefore chosen only if it gains more
 * than 2 %. */
static int predict_gate(const Sequence *s, StagePrediction *p)
{
    usec_t whole = 0, least = USEC_INFINITY;
    int r = play(s, false, 0, USEC_INFINITY, &p->usec[POLICY_GATE], &whole);

    if (r < 0)
        return r;
    p->hold = whole;
    p->gate_whole = true;
    if (whole <= s->f->deadline)
        least = p->usec[POLICY_GATE] - p->usec[POLICY_GATE] / 50;
    /* On a disk that seeks, a part of a sweep is not tried if a whole sweep fits the deadline: the
     * cost of readers during the rest of the sweep was not measured. */
    if (seeks(s->f) && whole <= s->f->deadline)
        return 0;
    for (size_t i = 0; r >= 0 && i < ELEMENTSOF(bins); i += stride_of(s))
        for (size_t k = 0; r >= 0 && k < ELEMENTSOF(holds_percent); k += stride_of(s)) {
            usec_t hold = whole * holds_percent[k] / 100, t = USEC_INFINITY;

            r = play(s, false, bins[i], hold, &t, NULL);
            if (r >= 0 && t < least && hold <= s->f->deadline) {
                p->usec[POLICY_GATE] = least = t;
                p->hold = hold;
                p->gate_whole = false;
                p->gate_bin = bins[i];
            }
        }
    if (p->hold > s->f->deadline)
        p->usec[POLICY_GATE] = USEC_INFINITY;
    return r;
}

#define N_CANDIDATES 4

/* Of candidates with equal times, the first one in these lists is chosen. On a disk that seeks,
 * several concurrent readers cost more than this model of one reader and one stream shows. The
 * model also takes a part of the recorded wait for computing, which makes the predicted times of
 * the two policies more similar than they are. On the bench's hard disk, it predicted 4.1 s for
 * `concurrent` and 4.7 s for `gate`; 3.8 s and 2.2 s were measured. A policy must therefore gain a
 * third to be chosen over `gate` there. */
static const Policy on_seeking[N_CANDIDATES] = {POLICY_IDLE, POLICY_GATE, POLICY_CONCURRENT,
                                                POLICY_METADATA};
static const Policy on_others[N_CANDIDATES] = {POLICY_IDLE, POLICY_CONCURRENT, POLICY_GATE,
                                               POLICY_METADATA};

/* What a hold costs a boot on a disk that does not seek, as a share of its computing time: a held
 * boot leaves the processors idle, and computes next to the rest of the replay afterwards. */
#define HOLD_COST 0.125

/* Returns whether the policy is faster than the best one so far, whose time is `best`. */
static bool is_faster(const Sequence *s, const StagePrediction *p, Policy candidate, usec_t best)
{
    usec_t t = p->usec[candidate];

    if (t != USEC_INFINITY && candidate == POLICY_GATE && p->best == POLICY_CONCURRENT &&
        !seeks(s->f))
        t += (usec_t)(s->warm * HOLD_COST);
    return t < best;
}

static void choose(const Sequence *s, StagePrediction *p)
{
    const StageFacts *f = s->f;
    usec_t off = p->usec[POLICY_OFF], margin = (usec_t)((double)off * STAGE_TIME_MARGIN);
    usec_t best = f->ready > 0 ? off - MIN(MAX(margin, STAGE_TIME_GAIN_MIN), off) : USEC_INFINITY;
    const Policy *candidates = seeks(f) ? on_seeking : on_others;

    p->best = POLICY_OFF;
    p->reason = POLICY_REASON_NO_GAIN;
    for (size_t i = 0; i < N_CANDIDATES; i++)
        /* On a device whose readers do not disturb each other, a boot that was never measured is
         * not held, because its predicted times are only estimates. */
        if (is_faster(s, p, candidates[i], best) &&
            (f->ready > 0 || seeks(f) || candidates[i] != POLICY_GATE)) {
            p->best = candidates[i];
            p->reason = POLICY_REASON_FASTEST;
            best = p->usec[p->best];
            if (seeks(f) && p->best == POLICY_GATE)
                best -= best / 3;
        }
}

int stage_time_predict(const StageFacts *f, StagePrediction *ret)
{
    _cleanup_(sequence_done) Sequence s = {0};
    StagePrediction p = {0};
    double cold;
    int r;

    for (Policy i = 0; i < _POLICY_MAX; i++)
        p.usec[i] = USEC_INFINITY;
    r = sequence_make(f, &s);
    if (r < 0)
        return r;
    cold = cold_usec(&s);
    if (cold < 0)
        return -ENOMEM;
    p.usec[POLICY_OFF] = (usec_t)cold;
    if (f->waits)
        p.usec[POLICY_IDLE] = (usec_t)s.warm;
    else {
        r = play(&s, true, 0, 0, &p.usec[POLICY_METADATA], NULL);
        if (r >= 0)
            r = predict_concurrent(&s, &p);
        if (r >= 0)
            r = predict_gate(&s, &p);
        if (r < 0)
            return r;
    }
    choose(&s, &p);
    *ret = p;
    return 0;
}
