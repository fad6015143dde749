/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Timelines of starts of applications. */

#include "view/plot-internal.h"

#include "measure/history.h"
#include "state/launch-packs.h"
#include "state/state.h"
#include "state/trace-store.h"

#include <string.h>

/* The time that is drawn after the last open of a start. */
#define LAUNCH_MARGIN_USEC (100 * USEC_PER_MSEC)

void plot_launch_done(PlotLaunch *l)
{
    trace_free(l->trace);
}

/* Returns true if `name` is the path of the application or the last part of this path. */
static bool has_name(const Trace *t, uint32_t application, const char *name)
{
    char path[TRACE_PATH_MAX];
    const char *slash;

    if (trace_format_path(t, t->files[t->applications[application].file].path, path, sizeof(path)) <
        0)
        return false;
    slash = strrchr(path, '/');
    return strcmp(path, name) == 0 || (slash && strcmp(slash + 1, name) == 0);
}

/* Returns an array with the number of accesses of each application. The caller frees the array.
 * NULL: no memory. */
static size_t *count_opens(const Trace *t)
{
    size_t *n = calloc(t->n_applications + 1, sizeof(*n));

    for (size_t i = 0; n && i < t->n_accesses; i++)
        if (t->accesses[i].application != TRACE_NONE)
            n[t->accesses[i].application]++;
    return n;
}

/* Returns the line of the history for the start to which a process of the application belongs that
 * began at `start` (wall clock), or NULL. A second process of the application belongs to the same
 * start. */
static const LaunchRecord *find_record(const LaunchRecords *l, usec_t start,
                                       const char *application)
{
    for (size_t i = l->n; i-- > 0;) {
        const LaunchRecord *x = &l->items[i];

        if (x->start_realtime_usec <= start && start - x->start_realtime_usec <= x->took_usec &&
            strcmp(x->application, application) == 0)
            return x;
    }
    return NULL;
}

/* Returns true if the start was replayed. In a session that read ahead for other starts, it may be
 * a control start, so its own line decides. Without a line the flag of the trace decides. */
static bool was_replayed(const LaunchRecords *records, const Trace *t, const TraceLifetime *l)
{
    const LaunchRecord *x = NULL;
    char path[TRACE_PATH_MAX];

    if (trace_format_path(t, t->files[t->applications[l->application].file].path, path,
                          sizeof(path)) >= 0)
        x = find_record(records, t->start_realtime + l->start, path);
    return x ? x->replayed == LAUNCH_REPLAYED : (t->flags & TRACE_REPLAYED) != 0;
}

/* Finds a start in the trace, but not one that began at `except` (wall clock). `records` decide
 * which starts were replayed; NULL: `choice` is TRACE_NEWEST. */
static int find_start(const Trace *t, const char *name, usec_t except, TraceChoice choice,
                      const LaunchRecords *records, uint32_t *ret_application, usec_t *ret_at)
{
    _cleanup_free_ size_t *opens = count_opens(t);
    const TraceLifetime *best = NULL;

    if (!opens)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_lifetimes; i++) {
        const TraceLifetime *l = &t->lifetimes[i];

        /* An application whose start is 0 already ran when the stage began. */
        if (l->start == 0 || (name && !has_name(t, l->application, name)) ||
            t->start_realtime + l->start == except ||
            (choice != TRACE_NEWEST &&
             was_replayed(records, t, l) != (choice == TRACE_NEWEST_REPLAYED)))
            continue;
        if (!best || opens[l->application] > opens[best->application] ||
            (l->application == best->application && l->start > best->start))
            best = l;
    }
    if (!best)
        return -ENOENT;
    *ret_application = best->application;
    *ret_at = best->start;
    return 0;
}

int plot_find_launch_in(const Trace *t, const char *name, uint32_t *ret_application, usec_t *ret_at)
{
    return find_start(t, name, USEC_INFINITY, TRACE_NEWEST, NULL, ret_application, ret_at);
}

int plot_find_launch(int state_fd, const char *name, TraceChoice choice, const PlotLaunch *other,
                     PlotLaunch *ret)
{
    usec_t except = other ? other->trace->start_realtime + other->at : USEC_INFINITY;
    _cleanup_launch_records_ LaunchRecords records = {0};
    _cleanup_trace_names_ TraceNames names = {0};
    int r = state_list_traces(state_fd, &names);

    if (choice != TRACE_NEWEST && launches_read(state_fd, &records) == -ENOMEM)
        return -ENOMEM;

    for (size_t i = names.n; r >= 0 && i-- > 0;) {
        _cleanup_trace_ Trace *t = NULL;
        PlotLaunch l;

        if (names.items[i].stage == STAGE_BOOT)
            continue;
        r = plot_read_trace(state_fd, names.items[i].name, TRACE_NEWEST, &t);
        if (r >= 0 && other && t->uid != other->trace->uid)
            r = -ENOENT;
        if (r >= 0)
            r = find_start(t, name, except, choice, &records, &l.application, &l.at);
        if (r == -ENOENT) {
            r = 0;
            continue;
        }
        if (r < 0)
            return r;
        l.trace = TAKE_PTR(t);
        *ret = l;
        return 0;
    }
    return r < 0 ? r : -ENOENT;
}

/* Returns an array with the first start of each application since `from`, or USEC_INFINITY for an
 * application without one. The caller frees the array. NULL: no memory. */
static usec_t *find_starts(const Trace *t, usec_t from)
{
    usec_t *starts = reallocarray(NULL, t->n_applications + 1, sizeof(*starts));

    if (!starts)
        return NULL;
    for (size_t i = 0; i <= t->n_applications; i++)
        starts[i] = USEC_INFINITY;
    for (size_t i = 0; i < t->n_lifetimes; i++)
        if (t->lifetimes[i].start >= from)
            starts[t->lifetimes[i].application] =
                    MIN(starts[t->lifetimes[i].application], t->lifetimes[i].start);
    return starts;
}

/* Marks the application as chosen. In a session, applications that start before this start has
 * ended are chosen, too. In a login they are not, because all applications start at the same time.
 * *ret_end becomes the time at which the start ended, since the start of the stage. Returns 0 or
 * -ENOMEM. */
static int choose_applications(const PlotLaunch *l, bool *chosen, usec_t *ret_end)
{
    const Trace *t = l->trace;
    _cleanup_free_ usec_t *starts = find_starts(t, l->at);
    usec_t latest = l->at;

    if (!starts)
        return -ENOMEM;
    chosen[l->application] = true;
    for (size_t i = 0; i < t->n_accesses; i++) {
        const TraceAccess *a = &t->accesses[i];

        if (a->at < l->at || a->application == TRACE_NONE)
            continue;
        if (a->at - latest > LAUNCH_GAP_USEC || a->at - l->at > LAUNCH_MAX_USEC)
            break;
        if (t->stage == STAGE_SESSION && starts[a->application] <= a->at)
            chosen[a->application] = true;
        if (chosen[a->application])
            latest = a->at;
    }
    *ret_end = latest;
    return 0;
}

/* Adds whether the launch set of the application was replayed at its start, and when, as the
 * history of starts says. */
static void find_replay(int state_fd, const PlotLaunch *p, const char *application,
                        TimelineSources *s)
{
    const Trace *t = p->trace;
    usec_t start = t->start_realtime + p->at;
    _cleanup_launch_records_ LaunchRecords l = {0};
    const LaunchRecord *x;

    s->replayed = _LAUNCH_REPLAYED_INVALID;
    if (state_fd < 0 || launches_read(state_fd, &l) < 0)
        return;
    x = find_record(&l, start, application);
    if (!x)
        return;
    s->replayed = x->replayed;
    if (x->replay_end_usec > 0) {
        usec_t begun = t->start_boottime + p->at - (start - x->start_realtime_usec);

        s->replay_start = begun + x->replay_begin_usec;
        s->replay_end = begun + x->replay_end_usec;
    }
}

/* Reads the launch set of an application that started in a session. *buf contains it; the caller
 * frees *buf. */
static void add_set(int state_fd, const PlotLaunch *l, const char *path, char **buf, Pack *p,
                    TimelineSources *s)
{
    s->launch = true;
    s->application = l->application;
    find_replay(state_fd, l, path, s);
    if (state_fd >= 0 &&
        launch_pack_read(state_fd, l->trace->uid, launch_pack_hash(path), buf, p) >= 0)
        s->pack = p;
}

int plot_make_launch(const Context *c, int state_fd, const PlotLaunch *l, usec_t timeout,
                     Timeline *ret)
{
    _cleanup_free_ bool *chosen = calloc(l->trace->n_applications + 1, sizeof(*chosen));
    _cleanup_free_ char *what = NULL, *buf = NULL;
    _cleanup_timeline_ Timeline t = {0};
    bool replayed = (l->trace->flags & TRACE_REPLAYED) != 0;
    Pack pack;
    char path[TRACE_PATH_MAX] = "";
    TimelineSources s = {.chosen = chosen, .from = l->at};
    const char *slash;
    usec_t end;

    if (!chosen)
        return -ENOMEM;
    CHECK(choose_applications(l, chosen, &end));
    (void)trace_format_path(l->trace,
                            l->trace->files[l->trace->applications[l->application].file].path, path,
                            sizeof(path));
    slash = strrchr(path, '/');
    if (asprintf(&what, "Start of %s", slash ? slash + 1 : path) < 0)
        return -ENOMEM;
    s.duration = MIN(end - l->at + LAUNCH_MARGIN_USEC,
                     l->trace->duration - MIN(l->at, l->trace->duration));
    if (l->trace->stage == STAGE_SESSION) {
        add_set(state_fd, l, path, &buf, &pack, &s);
        replayed = (int)s.replayed >= 0 ? s.replayed == LAUNCH_REPLAYED : replayed;
    }
    CHECK(plot_make_part(c, state_fd, l->trace, &s, timeout, &t));
    if (s.pack && le64toh(s.pack->header->created_realtime_usec) > l->trace->start_realtime + l->at)
        CHECK(timeline_add_note(
                &t, "The launch set was planned again since; it is compared as it is now"));
    CHECK(plot_set_title(l->trace, what, replayed, &t));
    *ret = t;
    t = (Timeline){0};
    return 0;
}
