/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/recorder-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "record/cachestat.h"
#include "record/residency.h"
#include "volume/mount-table.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sysmacros.h>
#include <time.h>

#define REAP_USEC (USEC_PER_SEC / 2)

/* Between stages the runs that are over are forgotten when there are so many, and twice as many as
 * were left the last time. */
#define RUNS_BETWEEN_STAGES_MAX 5000U

Recorder *recorder_free(Recorder *r)
{
    if (!r)
        return NULL;
    recorder_give_back_read_ahead(r);
    sd_event_source_disable_unref(r->timer);
    sd_event_source_disable_unref(r->mounts);
    sd_event_unref(r->event);
    if (r->mountinfo_fd >= 0)
        close(r->mountinfo_fd);
    if (r->connector_fd >= 0)
        close(r->connector_fd);
    sampling_done(&r->sampling);
    following_free(r->following);
    fanotify_free(r->fanotify);
    process_table_free(r->processes);
    proc_reader_free(r->proc);
    event_log_free(r->log);
    volume_table_done(&r->volumes);
    for (size_t i = 0; i < r->n_watched; i++) {
        range_set_done(&r->watched[i].resident_before);
        range_set_done(&r->watched[i].seen_before);
        range_set_done(&r->watched[i].resident_since);
    }
    free(r->watched);
    free(r->limits);
    free(r->root);
    free(r->run_dir);
    free(r);
    return NULL;
}

const char *recorder_limits(const Recorder *r)
{
    return r->limits;
}

/* Adds a clause to the line that says what is missing. */
static void note_limit(Recorder *r, const char *text)
{
    char *more;

    if (asprintf(&more, "%s%s%s", r->limits ? r->limits : "", r->limits ? "; " : "", text) < 0)
        return;
    free(r->limits);
    r->limits = more;
}

/* True if a filesystem is mounted that is not watched, or the other way round. Reads only
 * mountinfo: mounts change often while a machine boots, filesystems on disks seldom. */
static int volumes_changed(const Recorder *r)
{
    _cleanup_mount_table_ MountTable t = {0};
    _cleanup_free_ size_t *chosen = NULL;
    size_t n, known = 0;
    int k;

    k = mount_table_read(AT_FDCWD, &t);
    if (k >= 0)
        k = mount_table_select(&t, r->root, &chosen, &n);
    if (k < 0)
        return k;
    for (size_t i = 0; i < n; i++) {
        const Mount *m = &t.mounts[chosen[i]];

        known += !!volume_by_mount(&r->volumes, m);
    }
    return known != n || known != r->volumes.n;
}

static WatchedVolume *find_watched(Recorder *r, uint64_t st_dev)
{
    for (size_t i = 0; i < r->n_watched; i++)
        if (r->watched[i].st_dev == st_dev)
            return &r->watched[i];
    return NULL;
}

/* Watches what is mounted now and was not before; what is mounted no more may come back as another.
 * 0 or an error. */
static int watch_volumes(Recorder *r)
{
    _cleanup_volume_table_ VolumeTable t = {0};
    int k;

    k = volume_table_read(AT_FDCWD, r->root, &t);
    if (k < 0)
        return k;
    for (size_t i = 0; i < r->n_watched; i++)
        if (r->watched[i].mounted && !volume_by_dev(&t, r->watched[i].st_dev)) {
            fanotify_unwatch(r->fanotify, r->watched[i].st_dev);
            r->watched[i].mounted = false;
            r->watched[i].st_dev = 0;
        }
    for (size_t i = 0; i < t.n; i++) {
        if (find_watched(r, t.volumes[i].st_dev))
            continue;
        k = grow_array(&r->watched, &r->allocated_watched, r->n_watched + 1, sizeof(WatchedVolume));
        if (k >= 0)
            k = fanotify_watch(r->fanotify, &t.volumes[i], (uint32_t)r->n_watched);
        if (k == -ENOMEM || (k == -EPERM && r->n_watched == 0))
            return k;
        if (k < 0) {
            log_debug_errno(k, "Cannot watch %s, ignoring: %m", t.volumes[i].target);
            continue;
        }
        /* What comes after the stage began had nothing resident before. */
        r->watched[r->n_watched++] = (WatchedVolume){
                .st_dev = t.volumes[i].st_dev,
                .mounted = true,
                .has_snapshot = true,
        };
    }
    volume_table_done(&r->volumes);
    r->volumes = t;
    t = (VolumeTable){0};
    return 0;
}

static usec_t since_start(const Recorder *r)
{
    return clock_now(CLOCK_BOOTTIME) - r->start_boottime;
}

/* Finds the object, or adds it at the user's expense. 0; -E2BIG if the user's share or the log is
 * used up; -EINVAL, -ENOMEM. */
static int intern_for(Recorder *r, uint16_t user, const LoggedObject *o, uint32_t *ret)
{
    size_t bytes = event_log_object_bytes(o);
    int k = event_log_intern(r->log, o, false, ret);

    if (k != -ENOENT)
        return k;
    if (user_shares_left(&r->shares, user, SHARED_OBJECTS) < 1 ||
        user_shares_left(&r->shares, user, SHARED_OBJECT_BYTES) < bytes)
        return -E2BIG;
    k = event_log_intern(r->log, o, true, ret);
    if (k >= 0) {
        user_shares_charge(&r->shares, user, SHARED_OBJECTS, 1);
        user_shares_charge(&r->shares, user, SHARED_OBJECT_BYTES, bytes);
    }
    return k;
}

/* What a process runs, as an object of the log: its executable's path. */
static int object_of_exe(Recorder *r, const ProcFacts *f, uint32_t *ret, bool *ret_own)
{
    const char *slash = strrchr(f->exe, '/');
    LoggedObject o = {
            .filesystem = f->remote ? EVENT_LOG_REMOTE : 0,
            .name = f->exe,
            .name_size = (uint16_t)strlen(f->exe),
    };

    *ret = PROCESS_NONE;
    *ret_own = slash && is_own_name(slash + 1);
    if (!slash || o.name_size > 4095)
        return 0;
    return intern_for(r, user_shares_row(&r->shares, f->uid), &o, ret);
}

static int add_process(uint32_t pid, const ProcFacts *f, void *arg)
{
    Recorder *r = arg;
    uint32_t object;
    bool own;
    int k = object_of_exe(r, f, &object, &own);

    if (k < 0 && k != -E2BIG)
        return k;
    return process_table_add(r->processes, pid, object, f->uid, 0, own);
}

/* What a process runs that no exec event named. True if it lies where exec events come from. */
static bool name_process(void *arg, uint32_t pid, uint32_t *ret_object, bool *ret_own)
{
    Recorder *r = arg;
    ProcFacts f;

    if (proc_facts_read(r->proc, pid, &f) < 0)
        return true; /* it is gone, and most programs do */
    if (f.exe_dev != 0 && find_watched(r, f.exe_dev))
        return true;
    if (object_of_exe(r, &f, ret_object, ret_own) < 0)
        *ret_object = PROCESS_NONE;
    return false;
}

/* A process nobody told us of, that opens something: its parent's application, else what /proc says
 * it runs. */
static int learn_process(Recorder *r, uint32_t pid, bool exec, usec_t at)
{
    ProcFacts f;
    int k = proc_facts_read(r->proc, pid, &f);

    if (k < 0) {
        /* Gone already: remembered until the batch is over, so that we ask once. */
        k = process_table_add(r->processes, pid, PROCESS_NONE, UID_INVALID, at, false);
        process_table_exit(r->processes, pid, at);
        return k;
    }
    if (exec) /* and what it runs the event itself says */
        return process_table_uid(r->processes, pid, f.uid);
    if (process_table_knows(r->processes, f.parent) && r->connector_fd < 0) {
        k = process_table_fork(r->processes, f.parent, pid);
        return k < 0 ? k : process_table_uid(r->processes, pid, f.uid);
    }
    return add_process(pid, &f, r);
}

static int log_open(Recorder *r, const LoggedEvent *e)
{
    size_t n_runs;
    const ProcessRun *runs = process_table_runs(r->processes, &n_runs);

    if (!r->recording)
        return 0;
    if (e->run < n_runs && runs[e->run].own) {
        r->n_own++;
        return 0;
    }
    if (e->object == PROCESS_NONE || !user_shares_take(&r->shares, e->user, SHARED_EVENTS, 1)) {
        r->shares.users[e->user].n_events_left_out++;
        return 0;
    }
    return event_log_add(r->log, e);
}

/* The object of an open, PROCESS_NONE if there is no room for it, and what it says of the open.
 * 0 or -ENOMEM. */
static int log_object(Recorder *r, const LoggedObject *o, uint16_t user, uint32_t *ret,
                      unsigned *ret_flags)
{
    LoggedObject known;
    int k = intern_for(r, user, o, ret);

    if (k == -E2BIG || k == -EINVAL) {
        *ret = PROCESS_NONE;
        return 0;
    }
    if (k < 0)
        return k;
    event_log_object(r->log, *ret, &known);
    *ret_flags |= (known.loader ? OPEN_LOADER : 0) | (known.env ? OPEN_ENV : 0) |
                  (known.own ? OPEN_OWN : 0);
    return 0;
}

static int on_open(void *arg, const LoggedObject *o, uint32_t pid, bool exec)
{
    Recorder *r = arg;
    LoggedEvent e = {.kind = exec && !o->directory ? ACCESS_EXEC : ACCESS_OPEN};
    unsigned flags = r->connector_fd >= 0 ? OPEN_REPORTED : 0;
    usec_t at = since_start(r);
    int k;

    if (pid == (uint32_t)getpid()) {
        r->n_own++;
        return 0;
    }
    exec = exec && !o->directory;
    e.at_msec = (uint32_t)MIN(at / USEC_PER_MSEC, (usec_t)UINT32_MAX);
    if (exec || r->recording) {
        if ((!exec || r->connector_fd < 0) && !process_table_knows(r->processes, pid)) {
            k = learn_process(r, pid, exec, at);
            if (k < 0)
                return k;
        }
        e.user = user_shares_row(&r->shares, process_table_uid_of(r->processes, pid));
        flags |= exec ? OPEN_EXEC : 0;
        k = log_object(r, o, e.user, &e.object, &flags);
        if (k < 0)
            return k;
        r->n_starts += exec && !(flags & (OPEN_LOADER | OPEN_OWN));
    }
    k = process_table_open(r->processes, pid, e.object, flags, at, &e.run);
    return k < 0 ? k : log_open(r, &e);
}

static bool is_alive(uint32_t pid)
{
    return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

/* What the connector has reported is handed in before the opens that were read before it: whoever
 * opened something is known then (processes.h). */
static int before_opens(void *arg)
{
    Recorder *r = arg;
    uint64_t lost = r->n_lost;
    int k;

    if (r->connector_fd < 0)
        return 0;
    k = proc_connector_drain(r->connector_fd, r->processes, r->start_boottime, &r->n_lost);
    if (r->n_lost != lost) {
        process_table_lost(r->processes);
        process_table_reap(r->processes, is_alive, since_start(r));
    }
    return k < 0 ? k : 0;
}

/* Objects of processes that go on, taken over into a new log. */
typedef struct Carry {
    const EventLog *from;
    EventLog *to;
} Carry;

static uint32_t carry_object(uint32_t object, void *arg)
{
    Carry *c = arg;
    LoggedObject o;
    uint32_t new;

    event_log_object(c->from, object, &o);
    return event_log_intern(c->to, &o, true, &new) < 0 ? PROCESS_NONE : new;
}

/* Begins a new log with what goes on; `new_stage`: the clock begins anew, too. Runs that are to be
 * reported yet stay. */
static int renew_log(Recorder *r, bool new_stage)
{
    Carry c = {r->log, event_log_new()};
    uint64_t keep_from = r->following ? following_first_waiting(r->following) : UINT64_MAX;
    size_t n_runs;
    int k;

    if (!c.to)
        return -ENOMEM;
    k = new_stage ? process_table_new_stage(r->processes, carry_object, &c)
                  : process_table_compact(r->processes, keep_from, carry_object, &c);
    if (k < 0) {
        event_log_free(c.to);
        return k;
    }
    event_log_free(r->log);
    r->log = c.to;
    r->shares = (UserShares){0};
    process_table_runs(r->processes, &n_runs);
    r->compact_at = MAX(2 * n_runs, (size_t)RUNS_BETWEEN_STAGES_MAX);
    return 0;
}

int recorder_begin_log(Recorder *r)
{
    return renew_log(r, true);
}

int recorder_drain(Recorder *r)
{
    size_t n_runs;
    int k, events;

    events = fanotify_drain(r->fanotify, before_opens, on_open, r, &r->n_overflows);
    if (r->connector_fd < 0 && since_start(r) > r->last_reap + REAP_USEC) {
        r->last_reap = since_start(r);
        process_table_reap(r->processes, is_alive, r->last_reap);
    }
    process_table_settle(r->processes, name_process, r);
    k = recorder_tell(r);
    if (k < 0)
        return k;
    process_table_runs(r->processes, &n_runs);
    if (!r->recording && n_runs > r->compact_at) {
        k = renew_log(r, false);
        if (k < 0)
            return k;
    }
    return events;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
    Recorder *r = arg;
    int k = recorder_drain(r);
    uint64_t now;

    if (k < 0) {
        if (!r->complained)
            log_error_errno(k, "Cannot read events, the recording will be incomplete: %m");
        r->complained = true;
        r->n_overflows++;
    }
    if (recorder_sample(r, since_start(r)) < 0)
        log_debug("Out of memory while sampling, ignoring.");
    r->drain_interval = k > 0 || (r->following && following_waits(r->following))
                                ? RECORDER_DRAIN_USEC
                                : MIN(2 * r->drain_interval, RECORDER_DRAIN_IDLE_USEC);
    if (sd_event_now(r->event, CLOCK_MONOTONIC, &now) < 0)
        now = usec;
    k = sd_event_source_set_time(s, now + r->drain_interval);
    return k < 0 ? k : sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static int on_mounts(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_,
                     void *arg)
{
    int k = volumes_changed(arg);

    if (k > 0) {
        recorder_drain(arg); /* what was opened there before */
        k = watch_volumes(arg);
    }
    if (k < 0)
        log_warning_errno(k, "Cannot follow a change of mounts, ignoring: %m");
    return 0;
}

int recorder_attach(Recorder *r, sd_event *event)
{
    int k;

    r->event = sd_event_ref(event);
    k = sd_event_add_time_relative(event, &r->timer, CLOCK_MONOTONIC, RECORDER_DRAIN_USEC,
                                   2 * USEC_PER_MSEC, on_timer, r);
    if (k < 0)
        return k;
    r->mountinfo_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (r->mountinfo_fd < 0)
        return -errno;
    return sd_event_add_io(event, &r->mounts, r->mountinfo_fd, EPOLLPRI, on_mounts, r);
}

static int say(char **ret_error, int error, const char *text)
{
    if (ret_error)
        *ret_error = strdup(text);
    return error;
}

int recorder_new(const RecorderOptions *o, Recorder **ret, char **ret_error)
{
    _cleanup_recorder_ Recorder *r = calloc(1, sizeof(Recorder));
    int k;

    if (ret_error)
        *ret_error = NULL;
    if (!r)
        return -ENOMEM;
    r->options = *o;
    r->connector_fd = r->mountinfo_fd = -EBADF;
    r->start_boottime = clock_now(CLOCK_BOOTTIME);
    r->drain_interval = RECORDER_DRAIN_USEC;
    r->root = realpath(o->root, NULL);
    if (!r->root)
        return say(ret_error, -errno, "the root directory is not there");
    r->run_dir = o->run_dir ? strdup(o->run_dir) : NULL;
    r->processes = process_table_new();
    r->log = event_log_new();
    if (!r->processes || !r->log || (o->run_dir && !r->run_dir))
        return -ENOMEM;

    k = fanotify_new(!o->no_unlimited_queue, &r->fanotify);
    if (k == -EPERM)
        return say(ret_error, k, "recording needs CAP_SYS_ADMIN (fanotify)");
    if (k == -ENOSYS || k == -EINVAL)
        return say(ret_error, -ENOSYS,
                   "this kernel has no fanotify with directory handles (Linux 5.9, "
                   "CONFIG_FANOTIFY)");
    if (k < 0)
        return say(ret_error, k, "cannot set up fanotify");
    k = watch_volumes(r);
    if (k == -EPERM)
        return say(ret_error, k, "recording needs CAP_SYS_ADMIN (fanotify marks)");
    if (k < 0)
        return say(ret_error, k, "cannot read which filesystems are mounted");
    if (r->n_watched == 0)
        return say(ret_error, -ENODEV, "no local block-backed filesystem to record below the root");
    if (fanotify_can_resolve(r->root) == -EPERM)
        return say(ret_error, -EPERM, "recording needs CAP_DAC_READ_SEARCH (file handles)");

    r->observable = residency_is_observable() && !o->no_fowner;
    if (!r->observable)
        note_limit(r, "no CAP_FOWNER: page ranges of files are not known, whole files are assumed");
    r->connector_fd = o->no_proc_connector ? -EPERM : proc_connector_open();
    if (r->connector_fd < 0)
        note_limit(r, "no proc connector (CAP_NET_ADMIN): short-lived processes stay unknown");
    if (o->no_cachestat || !cachestat_available())
        note_limit(r, "no cachestat (Linux 6.5): metadata is derived from what was opened");
    k = proc_reader_new(&r->proc);
    if (k >= 0)
        k = proc_scan(r->proc, add_process, r);
    if (k < 0)
        return say(ret_error, k, "cannot read /proc");
    *ret = TAKE_PTR(r);
    return 0;
}
