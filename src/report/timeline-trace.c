/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/timeline-trace.h"

#include "base/names.h"
#include "measure/pack-usage.h"
#include "report/axis.h"

#include <string.h>

typedef struct Building {
    const TimelineSources *s;
    Timeline *t;
    Names prepared;          /* paths of files that were in the pack of the replay */
    Names packed;            /* paths of files of the pack with a known position, … */
    const PackData **places; /* … and their first range */
    size_t allocated_places;
    int error;
} Building;

static void building_done(Building *b)
{
    names_done(&b->prepared);
    names_done(&b->packed);
    free(b->places);
}

/* --- the pack --------------------------------------------------------------------------------- */

static int add_place(Building *b, const PackVolume *v, const PackData *d)
{
    const Pack *p = b->s->pack;
    const char *mountpoint = pack_string(p, v->mountpoint);
    const char *name = pack_string(p, p->files[le32toh(d->file)].path);
    char path[TRACE_PATH_MAX];
    uint32_t number;
    size_t n = b->packed.n;
    int r;

    if (le64toh(d->physical) == PACK_PHYSICAL_UNKNOWN ||
        (size_t)snprintf(path, sizeof(path), "%s/%s",
                         strcmp(mountpoint, "/") == 0 ? "" : mountpoint, name) >= sizeof(path))
        return 0;
    r = names_add(&b->packed, path, UINT32_MAX, &number);
    if (r < 0)
        return r;
    if (grow_array(&b->places, &b->allocated_places, b->packed.n, sizeof(const PackData *)) < 0)
        return -ENOMEM;
    if (b->packed.n > n || le64toh(d->offset) < le64toh(b->places[number]->offset))
        b->places[number] = d;
    return 0;
}

static int add_places(Building *b)
{
    const Pack *p = b->s->pack;
    int r = 0;

    for (uint32_t i = 0; p && i < le32toh(p->header->n_volumes); i++) {
        const PackVolume *v = &p->volumes[i];

        for (uint32_t k = 0; r >= 0 && k < le32toh(v->n_data); k++)
            r = add_place(b, v, &p->data[le32toh(v->first_data) + k]);
    }
    return r;
}

static bool find_place(const Building *b, const TraceFile *f, const char *path, TimelineRead *r)
{
    uint32_t number;

    if (names_find(&b->packed, path, &number) >= 0) {
        r->place = le64toh(b->places[number]->physical);
        r->length = le64toh(b->places[number]->length);
        return true;
    }
    return b->s->place && b->s->place(b->s->place_arg, f, path, &r->place, &r->length);
}

static void note_usage(void *arg, const FileUsage *f)
{
    Building *b = arg;
    uint32_t number;

    if (f->use == FILE_USE_HIT && b->error >= 0)
        b->error = names_add(&b->prepared, f->path, UINT32_MAX, &number);
}

/* Adds what the start used of its launch set, and whether the set was replayed. */
static int add_set_notes(Building *b, const PackUsage *u)
{
    static const char *const what[_LAUNCH_REPLAYED_MAX] = {
            "The launch set was not replayed at this start",
            "The launch set was not replayed at this start, because it was a control session",
            "The launch set was replayed at this start",
    };
    LaunchReplayed replayed = b->s->replayed;
    char hit[AXIS_LABEL_MAX], waste[AXIS_LABEL_MAX], miss[AXIS_LABEL_MAX];

    CHECK(timeline_add_note(b->t, "%s",
                            (int)replayed >= 0 && replayed < _LAUNCH_REPLAYED_MAX
                                    ? what[replayed]
                                    : "It was not recorded whether the launch set was replayed"));
    return timeline_add_note(
            b->t, "The start used %s of the set and did not use %s; it read %s that the set lacks",
            axis_bytes((double)u->hit_bytes, hit), axis_bytes((double)u->waste_bytes, waste),
            axis_bytes((double)u->miss_bytes, miss));
}

static int find_in_set(Building *b)
{
    const TimelineSources *s = b->s;
    PackUsage usage;

    if (!s->pack)
        return timeline_add_note(b->t, "The application has no launch set");
    CHECK(pack_usage_compare_start(s->pack, s->trace, s->application, s->from, s->duration,
                                   note_usage, b, &usage));
    return b->error < 0 ? b->error : add_set_notes(b, &usage);
}

static int find_prepared(Building *b)
{
    PackUsage usage;
    int r;

    if (b->s->launch)
        return find_in_set(b);
    if (!b->s->pack || !(b->s->trace->flags & TRACE_REPLAYED))
        return 0;
    r = pack_usage_compare(b->s->pack, b->s->trace, note_usage, b, &usage);
    return r < 0 ? r : b->error;
}

static int add_file(Building *b, const TraceAccess *a, size_t *n_unplaced)
{
    const TraceFile *f = &b->s->trace->files[a->file];
    char path[TRACE_PATH_MAX];
    uint32_t number;
    TimelineRead r = {
            .at = a->at - b->s->from,
            .place = PHYSICAL_UNKNOWN,
            .bytes = range_set_total(&f->resident),
            .series = READ_DEMAND,
    };

    if (f->directory || r.bytes == 0)
        return 0;
    if (trace_format_path(b->s->trace, f->path, path, sizeof(path)) < 0)
        return 0;
    if (names_find(&b->prepared, path, &number) >= 0)
        r.series = READ_PREPARED;
    *n_unplaced += !find_place(b, f, path, &r);
    r.length = MIN(r.length, r.bytes);
    return timeline_add_read(b->t, &r);
}

/* --- the trace -------------------------------------------------------------------------------- */

/* Returns true if the moment is in the part that is drawn. */
static bool is_drawn(const TimelineSources *s, usec_t at)
{
    return at >= s->from && (s->duration == 0 || at - s->from <= s->duration);
}

static bool is_chosen(const TimelineSources *s, uint32_t application)
{
    return !s->chosen || (application != TRACE_NONE && s->chosen[application]);
}

/* Adds the first open of each file. */
static int add_reads(Building *b)
{
    const Trace *t = b->s->trace;
    _cleanup_free_ bool *seen = calloc(t->n_files + 1, sizeof(*seen));
    size_t n_unplaced = 0;
    int r = seen ? 0 : -ENOMEM;

    for (size_t i = 0; r >= 0 && i < t->n_accesses; i++) {
        const TraceAccess *a = &t->accesses[i];

        if (!seen[a->file] && is_drawn(b->s, a->at) && is_chosen(b->s, a->application)) {
            seen[a->file] = true;
            r = add_file(b, a, &n_unplaced);
        }
    }
    if (r >= 0 && n_unplaced > 0 && !timeline_has_places(b->t))
        r = timeline_add_note(b->t,
                              "No place on the disk of the %zu files is known, so they are not "
                              "drawn",
                              b->t->n_reads);
    else if (r >= 0 && n_unplaced > 0)
        r = timeline_add_note(b->t, "The place of %zu of %zu files is not known", n_unplaced,
                              b->t->n_reads);
    return r;
}

/* Adds an application. Its name in the picture is the last part of its path. */
static int add_application(Building *b, const TraceLifetime *l, const uint64_t *weights)
{
    const Trace *t = b->s->trace;
    const TraceFile *f = &t->files[t->applications[l->application].file];
    char path[TRACE_PATH_MAX];
    const char *slash;
    TimelineSpan span = {
            .start = l->start - b->s->from,
            .end = l->end == USEC_INFINITY ? l->end : l->end - b->s->from,
            .weight = weights[l->application],
    };

    if (trace_format_path(t, f->path, path, sizeof(path)) < 0)
        return 0;
    slash = strrchr(path, '/');
    span.name = slash && slash[1] ? (char *)slash + 1 : path;
    return timeline_add_application(b->t, &span);
}

/* Adds each application once, from its first start to its first exit. Its weight is the number of
 * its accesses. */
static int add_applications(Building *b)
{
    const Trace *t = b->s->trace;
    _cleanup_free_ uint64_t *weights = calloc(t->n_applications + 1, sizeof(*weights));
    _cleanup_free_ bool *seen = calloc(t->n_applications + 1, sizeof(*seen));
    int r = weights && seen ? 0 : -ENOMEM;

    for (size_t i = 0; r >= 0 && i < t->n_accesses; i++)
        if (t->accesses[i].application != TRACE_NONE)
            weights[t->accesses[i].application]++;
    for (size_t i = 0; r >= 0 && i < t->n_lifetimes; i++) {
        const TraceLifetime *l = &t->lifetimes[i];

        if (!seen[l->application] && is_drawn(b->s, l->start) && is_chosen(b->s, l->application)) {
            seen[l->application] = true;
            r = add_application(b, l, weights);
        }
    }
    return r;
}

/* Returns the time of the replay of the launch set, as timeline_replay_time() does. */
static bool set_replay_time(const TimelineSources *s, usec_t *ret_start, usec_t *ret_end)
{
    usec_t from = s->trace->start_boottime + s->from;

    if (!s->pack || s->replayed != LAUNCH_REPLAYED || s->replay_end <= from)
        return false;
    *ret_start = s->replay_start - MIN(s->replay_start, from);
    *ret_end = s->replay_end - from;
    return true;
}

bool timeline_replay_time(const TimelineSources *s, usec_t *ret_start, usec_t *ret_end)
{
    const Trace *t = s->trace;

    if (s->launch)
        return set_replay_time(s, ret_start, ret_end);
    if (!(t->flags & TRACE_REPLAYED) || (!t->replay.known && s->replay_end == 0))
        return false;
    *ret_start = t->replay.known ? t->replay.start
                                 : s->replay_start - MIN(s->replay_start, t->start_boottime);
    *ret_end =
            t->replay.known ? t->replay.end : s->replay_end - MIN(s->replay_end, t->start_boottime);
    return true;
}

/* Adds the marks of the replay, or a note with the reason for their absence. */
static int add_replay(Building *b)
{
    usec_t start, end;

    /* A start has a note about its set (add_set_notes()). */
    if (b->s->launch && (!b->s->pack || b->s->replayed != LAUNCH_REPLAYED))
        return 0;
    if (!b->s->launch && !(b->s->trace->flags & TRACE_REPLAYED))
        return timeline_add_note(b->t, "Replay was off");
    if (!timeline_replay_time(b->s, &start, &end))
        return timeline_add_note(b->t, "The time of the replay was not recorded%s",
                                 b->s->launch ? ", so its reads are not drawn" : "");
    if (end == 0)
        return timeline_add_note(b->t, "The replay ended before this stage began");
    timeline_add_mark(b->t, "replay begins", start);
    timeline_add_mark(b->t, "replay ends", end);
    return 0;
}

/* Returns the share of the processors' time between two samples that was used; -1: unknown. */
static double cpu_share(const Trace *t, const TraceSample *from, const TraceSample *to)
{
    if (t->timing.n_cpus == 0)
        return -1;
    return (double)(to->busy - from->busy) / (double)(to->at - from->at) / t->timing.n_cpus;
}

static int add_samples(Building *b)
{
    const Trace *t = b->s->trace;
    TraceSample before = {0};
    int r = 0;

    if (t->n_samples == 0)
        return timeline_add_note(b->t, "CPU and pressure were not recorded");
    if (t->timing.n_cpus == 0)
        r = timeline_add_note(b->t, "The number of processors was not recorded");
    if (r >= 0)
        r = timeline_add_sample(b->t, &(TimelineSample){0});
    for (size_t i = 0; r >= 0 && i < t->n_samples; i++) {
        const TraceSample *s = &t->samples[i];
        double waiting = (double)(s->stalled - before.stalled) / (double)(s->at - before.at);

        if (is_drawn(b->s, s->at) && s->at > b->s->from)
            r = timeline_add_sample(b->t, &(TimelineSample){.at = s->at - b->s->from,
                                                            .cpu = cpu_share(t, &before, s),
                                                            .waiting = waiting});
        before = *s;
    }
    return r;
}

static void name_series(const TimelineSources *s, Timeline *t)
{
    bool compared = s->launch ? s->pack != NULL : (s->trace->flags & TRACE_REPLAYED) != 0;

    t->series_names[READ_REPLAY] = "read by replay";
    t->series_names[READ_PREPARED] =
            s->launch ? "opened, in the launch set" : "opened, in the pack";
    t->series_names[READ_DEMAND] = s->launch ? "opened, not in the set" : "opened, not in the pack";
    if (!compared) {
        t->series_names[READ_PREPARED] = NULL;
        t->series_names[READ_DEMAND] = "opened";
    }
}

int timeline_from_trace(const TimelineSources *s, Timeline *ret)
{
    static const char *const titles[_STAGE_MAX] = {"Boot", "Login", "Session"};
    _cleanup_timeline_ Timeline t = {
            .duration = s->duration > 0 ? s->duration : s->trace->duration,
    };
    Building b = {.s = s, .t = &t};
    int r = timeline_set_title(&t, "%s", titles[s->trace->stage]);

    name_series(s, &t);
    if (r >= 0)
        r = add_places(&b);
    if (r >= 0)
        r = find_prepared(&b);
    if (r >= 0)
        r = add_reads(&b);
    if (r >= 0)
        r = add_applications(&b);
    /* With `chosen` the start of one application is drawn. The replay of the stage did not serve
     * that start, so it is not shown, but the replay of the launch set is. */
    if (r >= 0 && (!s->chosen || s->launch))
        r = add_replay(&b);
    if (r >= 0)
        r = add_samples(&b);
    building_done(&b);
    if (r < 0)
        return r;
    if (s->trace->timing.ready > 0 && !s->chosen)
        timeline_add_mark(&t, "ready", s->trace->timing.ready);
    *ret = t;
    t = (Timeline){0};
    return 0;
}
