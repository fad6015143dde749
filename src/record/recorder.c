/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/recorder-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "record/cachestat.h"
#include "record/read-ahead.h"
#include "record/residency.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#define READ_AHEAD_RECORD "read-ahead"
#define REAP_USEC         (USEC_PER_SEC / 2)

Recorder *recorder_free(Recorder *r)
{
    if (!r)
        return NULL;
    if (r->read_ahead_lowered) {
        char path[4200];

        snprintf(path, sizeof(path), "%s/" READ_AHEAD_RECORD, r->run_dir);
        read_ahead_restore(path);
    }
    sd_event_source_disable_unref(r->timer);
    sd_event_source_disable_unref(r->mounts);
    sd_event_unref(r->event);
    if (r->mountinfo_fd >= 0)
        close(r->mountinfo_fd);
    if (r->connector_fd >= 0)
        close(r->connector_fd);
    fanotify_free(r->fanotify);
    process_table_free(r->processes);
    event_log_free(r->log);
    event_log_free(r->carried);
    volume_table_done(&r->volumes);
    for (size_t i = 0; i < r->n_watched; i++)
        range_set_done(&r->watched[i].resident_before);
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

/* Watches what is mounted now and was not before. The number of filesystems added, or an error. */
static int watch_volumes(Recorder *r)
{
    VolumeTable t = {0};
    int added = 0, k;

    k = volume_table_read(AT_FDCWD, r->root, &t);
    if (k < 0)
        return k;
    for (size_t i = 0; i < t.n; i++) {
        k = grow_array(&r->watched, &r->allocated_watched, r->n_watched + 1,
                       sizeof(WatchedVolume));
        if (k >= 0)
            k = fanotify_watch(r->fanotify, &t.volumes[i], (uint32_t)r->n_watched);
        if (k == -EALREADY)
            continue;
        if (k == -ENOMEM || (k == -EPERM && r->n_watched == 0)) {
            volume_table_done(&t);
            return k;
        }
        if (k < 0) {
            log_debug_errno(k, "Cannot watch %s, ignoring: %m", t.volumes[i].target);
            continue;
        }
        /* What comes after the stage began had nothing resident before. */
        r->watched[r->n_watched++] = (WatchedVolume){
                .st_dev = t.volumes[i].st_dev,
                .has_snapshot = true,
        };
        added++;
    }
    volume_table_done(&r->volumes);
    r->volumes = t;
    return added;
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
    r->drain_interval = RECORDER_DRAIN_USEC;
    r->root = realpath(o->root, NULL);
    if (!r->root)
        return say(ret_error, -errno, "the root directory is not there");
    r->run_dir = o->run_dir ? strdup(o->run_dir) : NULL;
    r->processes = process_table_new();
    if (!r->processes || (o->run_dir && !r->run_dir))
        return -ENOMEM;

    k = fanotify_new(&r->fanotify);
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

    r->truth = residency_is_truth() && !o->no_fowner;
    if (!r->truth)
        note_limit(r, "no CAP_FOWNER: page ranges of files are not known, whole files are assumed");
    r->connector_fd = o->no_proc_connector ? -EPERM : proc_connector_open();
    if (r->connector_fd < 0)
        note_limit(r, "no proc connector (CAP_NET_ADMIN): short-lived processes stay unknown");
    *ret = TAKE_PTR(r);
    return 0;
}

static usec_t since_start(const Recorder *r)
{
    return clock_now(CLOCK_BOOTTIME) - r->start_boottime;
}

/* What a process runs, as an object of the log: its executable's path. */
static int object_of_exe(Recorder *r, const char *exe, uint32_t *ret, bool *ret_own)
{
    const char *slash = strrchr(exe, '/');
    LoggedObject o = {.name = exe, .name_size = (uint16_t)strlen(exe)};

    *ret = PROCESS_NONE;
    *ret_own = slash && is_own_name(slash + 1);
    if (!slash || o.name_size > 4095)
        return 0;
    return event_log_intern(r->log, &o, ret);
}

static int add_process(uint32_t pid, const ProcFacts *f, void *arg)
{
    Recorder *r = arg;
    uint32_t object;
    bool own;
    int k = object_of_exe(r, f->exe, &object, &own);

    if (k < 0 && k != -E2BIG)
        return k;
    return process_table_add(r->processes, pid, object, f->uid, 0, own);
}

/* A process nobody told us of: its parent's application, else what /proc says it runs. */
static int learn_process(Recorder *r, uint32_t pid, usec_t at)
{
    ProcFacts f;
    int k = proc_facts_read(pid, &f);

    if (k < 0) {
        /* Gone already: remembered until the batch is over, so that we ask once. */
        k = process_table_add(r->processes, pid, PROCESS_NONE, PROCESS_NONE, at, false);
        process_table_exit(r->processes, pid, at);
        return k;
    }
    if (process_table_knows(r->processes, f.parent) && r->connector_fd < 0) {
        k = process_table_fork(r->processes, f.parent, pid);
        process_table_uid(r->processes, pid, f.uid);
        return k;
    }
    return add_process(pid, &f, r);
}

static int on_open(void *arg, const LoggedObject *o, uint32_t pid, bool exec)
{
    Recorder *r = arg;
    size_t n_runs;
    const ProcessRun *runs;
    LoggedObject known;
    LoggedEvent e = {.kind = exec ? ACCESS_EXEC : ACCESS_OPEN};
    usec_t at = since_start(r);
    int k;

    if (pid == (uint32_t)getpid()) {
        r->n_own++;
        return 0;
    }
    k = event_log_intern(r->log, o, &e.object);
    if (k == -E2BIG || k == -EINVAL) {
        r->n_dropped++;
        return 0;
    }
    if (k < 0)
        return k;
    event_log_object(r->log, e.object, &known);
    if (!exec && !process_table_knows(r->processes, pid)) {
        k = learn_process(r, pid, at);
        if (k < 0)
            return k;
    }
    k = process_table_open(r->processes, pid, e.object, exec && !o->directory, known.loader,
                           known.own, at, &e.run);
    if (k < 0)
        return k;
    runs = process_table_runs(r->processes, &n_runs);
    if (e.run < n_runs && runs[e.run].own) {
        r->n_own++;
        return 0;
    }
    e.at_msec = (uint32_t)MIN(at / USEC_PER_MSEC, (usec_t)UINT32_MAX);
    k = event_log_add(r->log, &e);
    if (k == -E2BIG) {
        r->n_dropped++;
        k = 0;
    }
    return k;
}

static int ignore_open(void *arg _unused_, const LoggedObject *o _unused_, uint32_t pid _unused_,
                       bool exec _unused_)
{
    return 0;
}

static bool is_alive(uint32_t pid)
{
    return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

int recorder_drain(Recorder *r)
{
    int k;

    /* Forks first: the opens of a child are then known to be its family's. */
    if (r->connector_fd >= 0) {
        k = proc_connector_drain(r->connector_fd, r->processes, r->start_boottime, &r->n_lost);
        if (k < 0)
            return k;
    } else if (r->log && since_start(r) > r->last_reap + REAP_USEC) {
        r->last_reap = since_start(r);
        process_table_reap(r->processes, is_alive, r->last_reap);
    }
    k = fanotify_drain(r->fanotify, r->log ? on_open : ignore_open, r, &r->n_overflows);
    process_table_settle(r->processes);
    return k;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
    Recorder *r = arg;
    int k = recorder_drain(r);
    uint64_t now;

    if (k < 0)
        log_error_errno(k, "Cannot read events, the recording will be incomplete: %m");
    if (k < 0)
        r->n_overflows++;
    r->drain_interval = k != 0 ? RECORDER_DRAIN_USEC
                               : MIN(2 * r->drain_interval, RECORDER_DRAIN_IDLE_USEC);
    if (sd_event_now(r->event, CLOCK_MONOTONIC, &now) < 0)
        now = usec;
    k = sd_event_source_set_time(s, now + r->drain_interval);
    return k < 0 ? k : sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static int on_mounts(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_,
                     void *arg)
{
    int k = watch_volumes(arg);

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

int recorder_snapshot(Recorder *r, const Volume *v, RangeSet *ret)
{
    _cleanup_close_ int fd = -EBADF;

    if (strncmp(v->fstype, "ext", 3) != 0)
        return -EOPNOTSUPP;
    if (r->options.no_cachestat)
        return -ENOSYS;
    fd = volume_open_device(v);
    if (fd < 0)
        return fd;
    return cachestat_ranges(fd, v->size_bytes, ret);
}

static void take_start_snapshots(Recorder *r)
{
    for (size_t i = 0; i < r->n_watched; i++) {
        WatchedVolume *w = &r->watched[i];
        const Volume *v = volume_by_dev(&r->volumes, w->st_dev);
        RangeSet ranges = {0};

        range_set_done(&w->resident_before);
        w->has_snapshot = v && recorder_snapshot(r, v, &ranges) >= 0;
        if (w->has_snapshot)
            w->resident_before = ranges;
    }
}

/* Objects of processes that go on, taken over into the new stage's log. */
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
    return event_log_intern(c->to, &o, &new) < 0 ? PROCESS_NONE : new;
}

int recorder_begin_stage(Recorder *r, Stage stage, uint32_t uid)
{
    bool first = r->start_realtime == 0;
    int k;

    if (r->log)
        return -EBUSY;
    if (r->run_dir && !r->read_ahead_lowered) {
        char path[4200];

        snprintf(path, sizeof(path), "%s/" READ_AHEAD_RECORD, r->run_dir);
        if (r->options.exact) {
            k = read_ahead_lower(&r->volumes, true, path);
            if (k < 0)
                log_warning_errno(k, "Cannot lower read-ahead, recording less exactly: %m");
            else
                r->read_ahead_lowered = true;
        }
    }
    take_start_snapshots(r);
    k = recorder_drain(r); /* what was queued before is not this stage's */
    if (k < 0)
        return k;
    r->log = r->carried ? TAKE_PTR(r->carried) : event_log_new();
    if (!r->log)
        return -ENOMEM;
    r->stage = stage;
    r->uid = uid;
    r->n_overflows = r->n_lost = r->n_own = r->n_dropped = 0;
    r->last_reap = 0;
    r->start_boottime = clock_now(CLOCK_BOOTTIME);
    r->start_realtime = clock_now(CLOCK_REALTIME);
    return first ? proc_scan(add_process, r) : 0;
}

int recorder_end_stage(Recorder *r, Trace **ret)
{
    EventLog *old, *next;
    Carry carry;
    int k;

    if (!r->log)
        return -ESRCH;
    k = recorder_make_trace(r, ret);

    /* Processes that run on keep what they are, under the next log's numbers; that log begins with
     * them and is filled when the next stage begins. */
    old = r->log;
    next = event_log_new();
    if (next) {
        carry = (Carry){old, next};
        if (process_table_new_stage(r->processes, carry_object, &carry) < 0)
            k = k < 0 ? k : -ENOMEM;
    }
    event_log_free(old);
    r->log = NULL;
    event_log_free(r->carried);
    r->carried = next;
    return k;
}
