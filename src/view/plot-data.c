/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/plot-internal.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/rooted.h"
#include "execute/operations.h"
#include "measure/history.h"
#include "state/packs.h"
#include "state/replay-status.h"
#include "state/state.h"
#include "state/trace-store.h"
#include "system/kernel.h"
#include "view/unit-starts.h"
#include "volume/extents.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* The session of a trace is searched only among this many of the newest sessions. */
#define HISTORY_SEARCHED 256U

int plot_read_trace(int state_fd, const char *name, TraceChoice choice, Trace **ret)
{
    _cleanup_free_ char *path = NULL, *error = NULL;
    _cleanup_trace_ Trace *t = NULL;
    int r;

    if (asprintf(&path, STATE_TRACES "/%s", name) < 0)
        return -ENOMEM;
    r = state_read_trace(state_fd, path, &t, &error);
    if (r == -ENOMEM)
        return r;
    if (r < 0 || (choice == TRACE_NEWEST_REPLAYED && !(t->flags & TRACE_REPLAYED)) ||
        (choice == TRACE_NEWEST_CONTROL && t->flags & (TRACE_REPLAYED | TRACE_EXACT)))
        return -ENOENT;
    *ret = TAKE_PTR(t);
    return 0;
}

static bool is_other_of_user(const Trace *t, const Trace *of)
{
    bool same = t->start_realtime == of->start_realtime && t->flags == of->flags &&
                strcmp(t->boot_id, of->boot_id) == 0;

    return t->uid == of->uid && !same;
}

/* `of`: only other traces of the user of this one count; NULL: all do. */
static int find_trace(int state_fd, Stage stage, TraceChoice choice, const Trace *of, Trace **ret)
{
    _cleanup_trace_names_ TraceNames names = {0};
    int r = state_list_traces(state_fd, &names);

    for (size_t i = names.n; r >= 0 && i-- > 0;) {
        _cleanup_trace_ Trace *t = NULL;

        if (names.items[i].stage != stage)
            continue;
        r = plot_read_trace(state_fd, names.items[i].name, choice, &t);
        if (r == -ENOENT || (r >= 0 && of && !is_other_of_user(t, of))) {
            r = 0;
            continue;
        }
        if (r >= 0)
            *ret = TAKE_PTR(t);
        return r;
    }
    return r < 0 ? r : -ENOENT;
}

int plot_find_trace(int state_fd, Stage stage, TraceChoice choice, Trace **ret)
{
    return find_trace(state_fd, stage, choice, NULL, ret);
}

int plot_find_control(int state_fd, const Trace *t, Trace **ret)
{
    return find_trace(state_fd, t->stage, TRACE_NEWEST_CONTROL, t, ret);
}

typedef struct Places {
    int root_fd;
    usec_t deadline; /* CLOCK_MONOTONIC */
    ExtentList extents;
} Places;

/* Finds the place of the first extent of a file. Returns false if the deadline has passed, if the
 * path now names another inode than in the trace, or if the file has no extent that can be read. */
static bool find_place(void *arg, const TraceFile *f, const char *path, uint64_t *ret_place,
                       uint64_t *ret_length)
{
    Places *p = arg;
    _cleanup_close_ int fd = -EBADF;
    struct stat st;

    if (clock_now(CLOCK_MONOTONIC) > p->deadline)
        return false;
    fd = rooted_open(p->root_fd, path, O_PATH | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != f->inode)
        return false;
    closep(&fd);
    fd = rooted_open(p->root_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || extents_read(fd, EXTENTS_PER_FILE_MAX, &p->extents) < 0 || p->extents.n == 0)
        return false;
    *ret_place = p->extents.extents[0].physical;
    *ret_length = p->extents.extents[0].length;
    return true;
}

/* Finds the time of the replay of the trace's stage, on CLOCK_BOOTTIME. The status files are those
 * of the present boot, so only traces of this boot get the time. */
static void find_replay(const Context *c, const Trace *t, TimelineSources *s)
{
    _cleanup_close_ int fd = rooted_open(c->system_fd, "/run/headstart", O_PATH | O_DIRECTORY);
    _cleanup_replay_status_ ReplayStatusList l = {0};
    char boot_id[KERNEL_BOOT_ID_SIZE];

    if (fd < 0 || kernel_boot_id(c->system_fd, boot_id) < 0 || strcmp(boot_id, t->boot_id) != 0 ||
        replay_status_read(fd, t->stage, &l) < 0)
        return;
    for (size_t i = 0; i < l.n; i++) {
        uint64_t start, duration;

        if ((l.items[i].uid != UID_INVALID && l.items[i].uid != t->uid) ||
            json_get_u64(l.items[i].object, "start_boottime_usec", UINT64_MAX / 4, &start) < 0 ||
            json_get_u64(l.items[i].object, "duration_usec", UINT64_MAX / 4, &duration) < 0)
            continue;
        s->replay_start = start;
        s->replay_end = start + duration;
    }
}

/* --- the reads of the replay ------------------------------------------------------------------ */

/* The fixed cost of a request, as the bytes that a disk transfers in the same time. It only
 * determines how the reads are distributed over the time of the replay. */
#define REQUEST_BYTES UINT64_C(65536)

static TimelineRead read_of(const Pack *p, const Operation *o)
{
    TimelineRead r = {.series = READ_REPLAY, .place = PHYSICAL_UNKNOWN};
    uint64_t offset;

    operation_range(p, o, &offset, &r.length);
    r.bytes = r.length;
    if (operation_is_metadata(o))
        r.place = offset;
    else if (le64toh(p->data[o->index].physical) != PACK_PHYSICAL_UNKNOWN)
        r.place = le64toh(p->data[o->index].physical);
    return r;
}

/* Returns the cost of an operation, which determines its part of the time of the replay. An open
 * costs nothing, because its metadata was read before. */
static double cost_of(const Pack *p, const Operation *o)
{
    return o->kind == OPERATION_OPEN ? 0 : (double)(read_of(p, o).bytes + REQUEST_BYTES);
}

/* Spreads the reads of one disk over the time of the replay, in their order. */
static int add_stream(const Pack *p, const Operation *v, size_t n, usec_t start, usec_t end,
                      Timeline *t)
{
    double all = 0, done = 0;

    for (size_t i = 0; i < n; i++)
        all += cost_of(p, &v[i]);
    for (size_t i = 0; i < n; i++) {
        TimelineRead r;

        if (v[i].kind == OPERATION_OPEN)
            continue;
        r = read_of(p, &v[i]);
        done += cost_of(p, &v[i]);
        r.at = start + (usec_t)((double)(end - start) * done / all);
        if (r.at <= t->duration)
            CHECK(timeline_add_read(t, &r));
    }
    return 0;
}

/* Adds the ranges of the pack that the replay read. The begin and the end of the replay are
 * recorded, and the pack contains the order of the reads. The times of the reads are
 * interpolated. */
static int add_replayed(const TimelineSources *s, Timeline *t)
{
    _cleanup_operation_list_ OperationList l = {0};
    _cleanup_free_ VolumeFacts *facts = NULL;
    usec_t start, end;
    uint32_t n;

    if (!s->pack || !timeline_replay_time(s, &start, &end) || end <= start)
        return 0;
    n = le32toh(s->pack->header->n_volumes);
    facts = calloc(n + 1, sizeof(*facts));
    if (!facts)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        facts[i] = (VolumeFacts){.mounted = true, .device = true, .items = true};
    CHECK(operations_from_pack(s->pack, facts,
                               s->launch ? (Policy)s->pack->header->policy : s->trace->policy, &l));
    for (size_t i = 0; i < l.n_streams; i++)
        CHECK(add_stream(s->pack, l.operations + l.streams[i].first, l.streams[i].n, start, end,
                         t));
    return timeline_add_note(t,
                             "The reads of replay have the order of the %s; their times are spread "
                             "between the begin and the end of replay",
                             s->launch ? "launch set" : "pack");
}

/* --- units and stages ------------------------------------------------------------------------- */

static int add_units(const Context *c, const Trace *t, usec_t deadline, Timeline *timeline)
{
    int r = unit_starts_add(c, t, deadline, timeline);

    if (r == -ENOMEM)
        return r;
    if (r == -ETIMEDOUT)
        return timeline_add_note(timeline, "The journal was not read in time; units are missing");
    if (r <= 0)
        return timeline_add_note(timeline, "The journal has no starts of units of this %s",
                                 stage_to_string(t->stage));
    return 0;
}

/* Finds the record of the trace's session in the history. Returns false if there is no such
 * record. */
static bool find_session(int state_fd, const Trace *t, SessionRecord *ret)
{
    _cleanup_history_ History h = {0};

    if (state_fd < 0 || history_read(state_fd, HISTORY_SEARCHED, &h) < 0)
        return false;
    for (size_t i = h.n; i-- > 0;)
        if (h.sessions[i].stage == t->stage &&
            h.sessions[i].start_realtime_usec == t->start_realtime) {
            *ret = h.sessions[i];
            return true;
        }
    return false;
}

/* Adds a mark for a moment on CLOCK_BOOTTIME. */
static void add_moment(Timeline *t, const char *name, uint64_t at, usec_t start)
{
    if (at != SESSION_UNKNOWN && at > start)
        timeline_add_mark(t, name, at - start);
}

/* Returns false if the moment is at most 2 % of the trace's duration away from timing.ready, which
 * already has a mark. */
static bool is_other_moment(const Trace *t, usec_t at)
{
    usec_t ready = t->timing.ready;

    return ready == 0 || MAX(at, ready) - MIN(at, ready) > t->duration / 50;
}

static void add_stages(int state_fd, const Trace *t, Timeline *timeline)
{
    SessionRecord s;

    if (!find_session(state_fd, t, &s))
        return;
    if (t->stage == STAGE_BOOT && s.initrd_usec != SESSION_UNKNOWN) {
        add_moment(timeline, "initrd", s.kernel_usec, t->start_boottime);
        add_moment(timeline, "system", s.kernel_usec + s.initrd_usec, t->start_boottime);
    } else if (t->stage == STAGE_BOOT)
        add_moment(timeline, "system", s.kernel_usec, t->start_boottime);
    if (s.ready_usec == SESSION_UNKNOWN)
        return;
    if (t->stage == STAGE_BOOT || s.began_usec != SESSION_UNKNOWN)
        s.ready_usec -= MIN(s.ready_usec, t->start_boottime);
    if (is_other_moment(t, s.ready_usec))
        timeline_add_mark(timeline, t->stage == STAGE_LOGIN ? "settled" : "greeter ready",
                          s.ready_usec);
}

int plot_set_title(const Trace *t, const char *what, bool replayed, Timeline *ret)
{
    char when[64] = "";
    time_t seconds = (time_t)(t->start_realtime / USEC_PER_SEC);
    struct tm local;

    if (localtime_r(&seconds, &local))
        strftime(when, sizeof(when), " of %Y-%m-%d %H:%M", &local);
    return timeline_set_title(ret, "%s%s, %s", what, when,
                              replayed ? "replayed" : "without replay");
}

/* --- timelines -------------------------------------------------------------------------------- */

static int make_stage(const Context *c, int state_fd, const TimelineSources *s, usec_t deadline,
                      Timeline *ret)
{
    static const char *const names[_STAGE_MAX] = {"Boot", "Login", "Session"};
    const Trace *t = s->trace;

    CHECK(add_units(c, t, deadline, ret));
    add_stages(state_fd, t, ret);
    if (s->pack && t->flags & TRACE_REPLAYED &&
        le64toh(s->pack->header->created_realtime_usec) > t->start_realtime)
        CHECK(timeline_add_note(ret,
                                "The pack was planned again since; it is compared as it is now"));
    return plot_set_title(t, names[t->stage], (t->flags & TRACE_REPLAYED) != 0, ret);
}

int plot_make_part(const Context *c, int state_fd, const Trace *t, const TimelineSources *part,
                   usec_t timeout, Timeline *ret)
{
    _cleanup_close_ int root_fd = open(c->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    usec_t deadline = clock_now(CLOCK_MONOTONIC) + timeout;
    Places places = {.root_fd = root_fd, .deadline = deadline};
    _cleanup_timeline_ Timeline timeline = {0};
    TimelineSources s = *part;
    _cleanup_free_ char *buf = NULL;
    Pack p;
    int r;

    s.trace = t;
    s.place = root_fd < 0 ? NULL : find_place;
    s.place_arg = &places;
    if (!s.launch && packs_read_of(state_fd, t->stage, t->uid, &buf, &p) >= 0)
        s.pack = &p;
    if (!s.launch)
        find_replay(c, t, &s);
    r = timeline_from_trace(&s, &timeline);
    extent_list_done(&places.extents);
    if (r >= 0 && (!s.chosen || s.launch))
        r = add_replayed(&s, &timeline);
    if (r >= 0 && !s.chosen)
        r = make_stage(c, state_fd, &s, deadline, &timeline);
    if (r < 0)
        return r;
    *ret = timeline;
    timeline = (Timeline){0};
    return 0;
}

int plot_make_timeline(const Context *c, int state_fd, const Trace *t, usec_t timeout,
                       Timeline *ret)
{
    return plot_make_part(c, state_fd, t, &(TimelineSources){0}, timeout, ret);
}
