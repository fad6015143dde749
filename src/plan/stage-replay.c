/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/stage-time-internal.h"

#include "base/ranges.h"

#include <math.h>

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
/* The same for a start of an application: headstartd is told of the execution, and reads the pack,
 * which is in memory. */
#define LAUNCH_USEC 1000.0

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
    const StageSequence *s;
    StageDeviceState *devices;
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

/* Returns the number of the group to which data belong. Replay reads one group after the other. */
static uint64_t group_of(const StageRead *r, const StageReplay *replay)
{
    usec_t turn = r->need - r->advance;

    if (replay->bin == 0 && r->place == PHYSICAL_UNKNOWN)
        return 2;
    if (replay->bin == 0)
        return r->volume == replay->sweep_volume && r->place < replay->sweep_start ? 2 : 1;
    return turn == USEC_INFINITY ? UINT64_MAX : 1 + turn / replay->bin;
}

static int fill_stream(Timeline *m, uint32_t device, const StageReplay *replay)
{
    Stream *s = &m->streams[device];
    _cleanup_free_ StageKeyed *keys = calloc(m->s->n + 1, sizeof(StageKeyed));
    size_t n = 0;

    s->queue = calloc(m->s->n + 1, sizeof(uint32_t));
    if (!keys || !s->queue)
        return -ENOMEM;
    for (size_t i = 0; i < m->s->n; i++) {
        const StageRead *r = &m->s->parts[i];
        uint64_t group = r->metadata ? 0 : group_of(r, replay);

        if (r->device != device || (replay->metadata_only && !r->metadata))
            continue;
        s->n_metadata += r->metadata;
        s->left += r->length;
        keys[n++] = (StageKeyed){group, r->place, (uint32_t)i};
    }
    qsort(keys, n, sizeof(StageKeyed), stage_compare_keyed);
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

    if (f->start)
        return LAUNCH_USEC;
    return START_USEC + PROGRAM_REQUESTS * (p->fixed_usec + fmax(move, 0)) +
           (double)(PROGRAM_BYTES + f->pack_bytes) / p->rate_bytes_per_usec;
}

static int timeline_make(Timeline *m, const StageSequence *s, const StageReplay *replay)
{
    const StageFacts *f = s->f;
    double begin = start_usec(f);
    int r = 0;

    *m = (Timeline){
            .s = s,
            .devices = calloc(f->n_devices + 1, sizeof(StageDeviceState)),
            .streams = calloc(f->n_devices + 1, sizeof(Stream)),
            .resident = calloc(s->n + 1, sizeof(double)),
    };
    if (!m->devices || !m->streams || !m->resident)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        m->resident[i] = NOT_READ;
    for (uint32_t i = 0; r >= 0 && i < f->n_devices; i++) {
        stage_device_init(&m->devices[i], &f->devices[i]);
        m->streams[i].begin = m->streams[i].done = begin;
        r = fill_stream(m, i, replay);
        m->streams[i].last = begin;
        if (m->streams[i].n_metadata == 0 || f->opens_first)
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
    const StageDeviceState *d = &m->devices[device];
    const DeviceEngine *engine = m->s->f->devices[device].engine;
    const Stream *s = &m->streams[device];
    double slot = d->slots[stage_device_slot(d)], bytes, requests = 0;
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
        /* Where replay reads no metadata, and on btrfs and xfs, it opens all files before it reads
         * data. Elsewhere reading data opens the file, which takes no longer than the request
         * before it. */
        if (s->data_begin == 0)
            s->data_begin = s->n_metadata > 0 && !m->s->f->opens_first
                                    ? begin
                                    : s->done + (double)m->s->f->n_opens * OPEN_USEC;
        begin = s->data_begin;
    }
    return fmax(begin, window_opens(m, device));
}

/* Replay joins the parts of one read, and data that lies together on the device, where the
 * filesystem can do so. */
static bool are_joined(const StageSequence *s, uint32_t part, uint32_t next)
{
    const StageRead *a = &s->parts[part], *b = &s->parts[next];

    if (s->read[part] == s->read[next])
        return next == part + 1;
    return !a->metadata && !b->metadata && !a->alone && !b->alone && a->place != PHYSICAL_UNKNOWN &&
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

    s->done = fmax(s->done, stage_device_serve(&m->devices[device], at, r->place, length));
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
    const StageSequence *s = m->s;

    for (size_t k = 0; k < s->n; k++) {
        uint32_t part = s->order[k];
        const StageRead *r = &s->parts[part];
        double end;

        now += s->think[k];
        advance_streams(m, now);
        if (m->resident[part] == NOT_READ) {
            end = stage_read_cold(&m->devices[r->device], now, r);
            m->resident[part] = end;
            now += (end - now) * r->probability * s->overlap;
        } else if (m->resident[part] > now)
            now += (m->resident[part] - now) * r->probability;
    }
    return now + s->think[s->n];
}

int stage_play(const StageSequence *s, const StageReplay *replay, usec_t *ret_usec,
               usec_t *ret_hold)
{
    _cleanup_(timeline_done) Timeline m;
    const usec_t hold = replay->hold;
    int r = timeline_make(&m, s, replay);
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
