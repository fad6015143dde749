/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/observer.h"

#include "base/clock.h"
#include "observe/proc-connector.h"

#include <signal.h>
#include <string.h>

void observer_done(Observer *o)
{
    if (o->connector_fd >= 0)
        close(o->connector_fd);
    fanotify_free(o->fanotify);
    watched_volumes_done(&o->volumes);
    process_table_free(o->processes);
    proc_reader_free(o->proc);
    subordinate_uids_done(&o->subordinate);
}

static usec_t since_start(const Observer *o)
{
    return clock_now(CLOCK_BOOTTIME) - o->stage->zero_boottime;
}

static uint32_t msec_of(usec_t t)
{
    return (uint32_t)MIN(t / USEC_PER_MSEC, (usec_t)UINT32_MAX);
}

/* --- users ------------------------------------------------------------------------------------ */

/* Returns the row of the user's shares. Reads which UIDs are subordinate when it meets the first
 * UID that may be one. Without subuid(5) every UID is a user of its own. */
static uint16_t row_of(Observer *o, uint32_t uid)
{
    UserShares *shares = &o->stage->shares;

    if (!shares->subordinate && subordinate_uid_is_possible(uid)) {
        subordinate_uids_read(o->root, &o->subordinate);
        shares->subordinate = &o->subordinate;
    }
    return user_shares_row(shares, uid);
}

/* --- objects ---------------------------------------------------------------------------------- */

/* Finds the object, or adds it and charges it to the user's share. Returns 0; -E2BIG if the user's
 * share or the log is used up; or -EINVAL or -ENOMEM, as event_log_intern() returns them. */
static int intern_for(StageRecord *s, uint16_t user, const LoggedObject *object, uint32_t *ret)
{
    size_t bytes = event_log_object_bytes(object);
    int r = event_log_intern(s->log, object, false, ret);

    if (r != -ENOENT)
        return r;
    if (user_shares_left(&s->shares, user, SHARED_OBJECTS) < 1 ||
        user_shares_left(&s->shares, user, SHARED_OBJECT_BYTES) < bytes)
        return -E2BIG;
    r = event_log_intern(s->log, object, true, ret);
    if (r >= 0) {
        user_shares_charge(&s->shares, user, SHARED_OBJECTS, 1);
        user_shares_charge(&s->shares, user, SHARED_OBJECT_BYTES, bytes);
    }
    return r;
}

/* Adds the executable of a process to the log as an object with its path. */
static int intern_exe(Observer *o, const ProcFacts *f, uint32_t *ret, bool *ret_own)
{
    const char *slash = strrchr(f->exe, '/');
    LoggedObject object = {
            .filesystem = f->remote ? EVENT_LOG_REMOTE : fanotify_number(o->fanotify, f->exe_dev),
            .name = f->exe,
            .name_size = (uint16_t)strlen(f->exe),
    };

    *ret = PROCESS_NONE;
    *ret_own = slash && is_own_name(slash + 1);
    if (!slash || object.name_size > 4095)
        return 0;
    return intern_for(o->stage, row_of(o, f->uid), &object, ret);
}

/* --- processes -------------------------------------------------------------------------------- */

static int add_process(uint32_t pid, const ProcFacts *f, void *arg)
{
    Observer *o = arg;
    uint32_t object;
    bool own;
    int r = intern_exe(o, f, &object, &own);

    if (r < 0 && r != -E2BIG)
        return r;
    return process_table_add(o->processes, pid, object, f->uid, 0, own);
}

int observer_scan_processes(Observer *o)
{
    return proc_scan(o->proc, add_process, o);
}

/* A process_name_t: names the program of a process that no exec event named. Returns true if the
 * program is on a volume that reports exec events. */
static bool name_process(void *arg, uint32_t pid, uint32_t *ret_object, bool *ret_own)
{
    Observer *o = arg;
    ProcFacts f;

    if (proc_facts_read(o->proc, pid, &f) < 0)
        return true; /* the process is gone; most programs are on such a volume */
    if (f.exe_dev != 0 && watched_volumes_have(&o->volumes, f.exe_dev))
        return true;
    if (intern_exe(o, &f, ret_object, ret_own) < 0)
        *ret_object = PROCESS_NONE;
    return false;
}

/* Adds a process whose start no source has reported. If it is known from an exec event, that event
 * names the program. Without the connector it becomes part of the application of its parent, if the
 * parent is known. In all other cases /proc names the program. */
static int learn_process(Observer *o, uint32_t pid, bool exec, usec_t at)
{
    ProcFacts f;
    int r = proc_facts_read(o->proc, pid, &f);

    if (r < 0) {
        /* The process is gone already. The entry stays until the batch is over, so that /proc is
         * read only once. */
        r = process_table_add(o->processes, pid, PROCESS_NONE, UID_INVALID, at, false);
        process_table_exit(o->processes, pid, at);
        return r;
    }
    if (exec) {         /* the event itself names the program */
        if (f.uid == 0) /* a set-user-ID program without a session of its user */
            r = process_table_uid(o->processes, pid, process_table_uid_of(o->processes, f.parent));
        return r < 0 ? r : process_table_uid(o->processes, pid, f.uid);
    }
    if (process_table_knows(o->processes, f.parent) && o->connector_fd < 0) {
        r = process_table_fork(o->processes, f.parent, pid);
        return r < 0 ? r : process_table_uid(o->processes, pid, f.uid);
    }
    return add_process(pid, &f, o);
}

static bool is_alive(uint32_t pid)
{
    return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

/* --- opens ------------------------------------------------------------------------------------ */

static int log_open(Observer *o, const LoggedEvent *e)
{
    StageRecord *s = o->stage;
    size_t n_runs;
    const ProcessRun *runs = process_table_runs(o->processes, &n_runs);

    if (!s->recording && !s->interval)
        return 0;
    if (e->run < n_runs && runs[e->run].own) {
        s->n_own++;
        return 0;
    }
    if (e->object == PROCESS_NONE ||
        !user_shares_try_charge(&s->shares, e->user, SHARED_EVENTS, 1)) {
        s->shares.users[e->user].n_events_left_out++;
        return 0;
    }
    return event_log_add(s->log, e);
}

/* Sets the object of an open (PROCESS_NONE if there is no room for it), and adds the OpenFlags that
 * follow from its name. Returns 0 or -ENOMEM. */
static int log_object(Observer *o, const LoggedObject *object, LoggedEvent *e, unsigned *flags)
{
    LoggedObject known;
    int r = intern_for(o->stage, e->user, object, &e->object);

    if (r == -E2BIG || r == -EINVAL) {
        e->object = PROCESS_NONE;
        return 0;
    }
    if (r < 0)
        return r;
    event_log_object(o->stage->log, e->object, &known);
    *flags |= (known.loader ? OPEN_LOADER : 0) | (known.env ? OPEN_ENV : 0) |
              (known.own ? OPEN_OWN : 0);
    return 0;
}

/* Logs a file that this process opened when it started: its program, a library or a file of its
 * configuration. Returns 0 or -ENOMEM. */
static int log_own_start(Observer *o, const LoggedObject *object, LoggedEvent *e)
{
    unsigned flags = 0;
    int r;

    e->run = PROCESS_NONE;
    e->own_start = true;
    e->user = user_shares_row(&o->stage->shares, 0);
    r = log_object(o, object, e, &flags);
    return r < 0 ? r : log_open(o, e);
}

/* A fanotify_handler_t: assigns an open to a run and logs it. When neither a stage nor an interval
 * is recorded, only executions count. */
static int on_open(void *arg, const LoggedObject *object, uint32_t pid, bool exec)
{
    Observer *o = arg;
    usec_t at = since_start(o);
    LoggedEvent e = {
            .object = PROCESS_NONE,
            .at_msec = msec_of(at),
            .kind = exec && !object->directory ? ACCESS_EXEC : ACCESS_OPEN,
    };
    unsigned flags =
            (o->connector_fd >= 0 ? OPEN_REPORTED : 0) | (e.kind == ACCESS_EXEC ? OPEN_EXEC : 0);
    int r = 0;

    if (pid == (uint32_t)getpid()) {
        if (o->own_start)
            return log_own_start(o, object, &e);
        o->stage->n_own++;
        return 0;
    }
    exec = e.kind == ACCESS_EXEC;
    if (exec || o->stage->recording || o->stage->interval) {
        if ((!exec || o->connector_fd < 0) && !process_table_knows(o->processes, pid))
            r = learn_process(o, pid, exec, at);
        e.user = row_of(o, process_table_uid_of(o->processes, pid));
        if (r >= 0)
            r = log_object(o, object, &e, &flags);
        o->n_starts += exec && !(flags & (OPEN_LOADER | OPEN_OWN));
    }
    if (r >= 0)
        r = process_table_open(o->processes, pid, e.object, flags, at, &e.run);
    return r < 0 ? r : log_open(o, &e);
}

/* A fanotify_before_t: processes the connector's events before the opens of the same batch, so that
 * the process of each open is known (processes.h). */
static int before_opens(void *arg)
{
    Observer *o = arg;
    uint64_t lost = o->n_lost;
    int r;

    if (o->connector_fd < 0)
        return 0;
    r = proc_connector_drain(o->connector_fd, o->processes, o->stage->zero_boottime, &o->n_lost);
    if (o->n_lost != lost) {
        process_table_lost(o->processes);
        process_table_reap(o->processes, is_alive, since_start(o));
    }
    return r < 0 ? r : 0;
}

/* Returns true if the opens of a batch are spread evenly over the time of the batch. In a session
 * they are not: there the order of starts and opens counts, and a spread open could come before the
 * start of its application. */
static bool spreads_opens(const StageRecord *s)
{
    return s->recording && s->stage != STAGE_SESSION;
}

int observer_drain(Observer *o)
{
    size_t first;
    uint32_t now;
    int events;

    (void)event_log_events(o->stage->log, &first);
    events = fanotify_drain(o->fanotify, before_opens, on_open, o, &o->stage->n_overflows);
    now = msec_of(since_start(o));
    if (spreads_opens(o->stage))
        event_log_spread(o->stage->log, first, o->drained_msec, now);
    o->drained_msec = now;

    o->own_start = o->own_start && events >= FANOTIFY_DRAIN_EVENTS;
    if (o->connector_fd < 0 && since_start(o) > o->last_reap + OBSERVER_REAP_USEC) {
        o->last_reap = since_start(o);
        process_table_reap(o->processes, is_alive, o->last_reap);
    }
    process_table_settle(o->processes, name_process, o);
    return events;
}

/* --- stages ----------------------------------------------------------------------------------- */

/* The argument of carry_object(), which copies the objects of the runs that stay into a new log. */
typedef struct Carry {
    const EventLog *from;
    EventLog *to;
} Carry;

static uint32_t carry_object(uint32_t object, void *arg)
{
    Carry *c = arg;
    LoggedObject o;
    uint32_t ret;

    event_log_object(c->from, object, &o);
    return event_log_intern(c->to, &o, true, &ret) < 0 ? PROCESS_NONE : ret;
}

/* Replaces the log. *ret_old is the previous one. */
static int renew_log(Observer *o, bool new_stage, uint64_t keep_from, EventLog **ret_old)
{
    Carry c = {o->stage->log, event_log_new()};
    size_t n_runs;
    int r;

    if (!c.to)
        return -ENOMEM;
    r = new_stage ? process_table_new_stage(o->processes, carry_object, &c)
                  : process_table_compact(o->processes, keep_from, carry_object, &c);
    if (r < 0) {
        event_log_free(c.to);
        return r;
    }
    *ret_old = o->stage->log;
    o->stage->log = c.to;
    o->stage->shares = (UserShares){0};
    process_table_runs(o->processes, &n_runs);
    o->compact_at = MAX(2 * n_runs, (size_t)OBSERVER_RUNS_MAX);
    return 0;
}

int observer_begin_stage(Observer *o)
{
    EventLog *old = NULL;
    int r;

    o->last_reap = 0;
    o->drained_msec = 0;
    r = renew_log(o, true, 0, &old);
    event_log_free(old);
    return r;
}

int observer_hand_over(Observer *o, uint64_t keep_from, EventLog **ret_log)
{
    return renew_log(o, false, keep_from, ret_log);
}

int observer_forget(Observer *o, uint64_t keep_from)
{
    EventLog *old = NULL;
    int r = renew_log(o, false, keep_from, &old);

    event_log_free(old);
    return r;
}

bool observer_is_full(const Observer *o)
{
    size_t n_runs, n_events;

    process_table_runs(o->processes, &n_runs);
    event_log_events(o->stage->log, &n_events);
    return !o->stage->recording &&
           (n_runs > o->compact_at || n_events > OBSERVER_INTERVAL_EVENTS_MAX);
}
