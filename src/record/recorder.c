/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Over 500 lines in one file: one object whose set-up, event loop and stages share its fields. */

#include "record/recorder.h"

#include "base/clock.h"
#include "base/log.h"
#include "boot/read-ahead.h"
#include "observe/page-reader.h"
#include "observe/proc-connector.h"
#include "observe/residency.h"
#include "record/following.h"
#include "record/observer.h"
#include "record/read-ahead.h"
#include "record/take-over.h"
#include "record/trace-builder.h"
#include "record/trace-facts.h"
#include "system/cachestat.h"
#include "system/capability.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

/* The time between two samples of metadata in a session. A session may last for hours, no pack
 * replays it, and a sample of a large device takes milliseconds. In other stages metadata is
 * sampled with each round of the files. */
#define SESSION_METADATA_USEC (60 * USEC_PER_SEC)

/* The maximum number of times that the queues are read when a stage ends. These reads return up to
 * 1,000,000 events and take half a second. */
#define DRAINS_AT_END 10

struct Recorder {
    RecorderOptions options;
    char *root;
    char *run_dir;
    StageRecord stage;
    Observer observer;
    Following *following; /* NULL: applications are not reported */
    PageReader *page_reader;
    recorder_report_t report;
    void *report_arg;
    bool read_ahead_lowered;
    bool complained;       /* a warning about unreadable events was logged */
    usec_t interval_began; /* on CLOCK_BOOTTIME */
    /* When headstart-init marked the root filesystem. If the first stage is a boot, the events
     * queued since then belong to it. The first stage resets `is_marked` when it begins. */
    bool is_marked;
    Moment marked;
    char *limits;

    sd_event *event;
    sd_event_source *timer, *mounts;
    sd_event_source *descriptors, *pause; /* NULL: nothing is watched in descriptor mode */
    usec_t drain_interval;
    int mountinfo_fd;
};

static usec_t since_start(const Recorder *recorder)
{
    return clock_now(CLOCK_BOOTTIME) - recorder->stage.zero_boottime;
}

/* --- read-ahead ------------------------------------------------------------------------------- */

static void read_ahead_record(const Recorder *recorder, char *ret, size_t size)
{
    snprintf(ret, size, "%s/" READ_AHEAD_RECORD, recorder->run_dir);
}

static int restore_read_ahead(Recorder *recorder)
{
    char path[PATH_MAX + sizeof(READ_AHEAD_RECORD) + 1];
    int r;

    read_ahead_record(recorder, path, sizeof(path));
    r = read_ahead_restore(path);
    if (r < 0)
        return log_warning_errno(r, "Cannot restore read-ahead, ignoring: %m");
    recorder->read_ahead_lowered = false;
    return 0;
}

/* Lowers read-ahead, but only with --exact: with one page for each request, reading is three times
 * slower even on an SSD. With or without --exact, restores the values that a killed recorder left
 * lowered. */
static void lower_read_ahead(Recorder *recorder)
{
    char path[PATH_MAX + sizeof(READ_AHEAD_RECORD) + 1];
    int r;

    if (!recorder->run_dir || recorder->read_ahead_lowered)
        return;
    if (recorder->options.exact_kb == 0) {
        (void)restore_read_ahead(recorder);
        return;
    }
    read_ahead_record(recorder, path, sizeof(path));
    r = read_ahead_lower(&recorder->observer.volumes.table, recorder->options.exact_kb, path);
    if (r < 0)
        log_warning_errno(r, "Cannot lower read-ahead, recording less exactly: %m");
    else
        recorder->read_ahead_lowered = true;
}

/* --- applications ----------------------------------------------------------------------------- */

/* A following_name_t: returns the path of an executable that has just started. It reads nothing
 * from a disk. */
static char *name_object(void *arg, uint32_t object)
{
    Recorder *recorder = arg;
    const WatchedVolumes *w = &recorder->observer.volumes;
    _cleanup_close_ int fd = -EBADF;
    char path[PATH_MAX];
    const char *below;
    LoggedObject o;
    struct stat st;

    event_log_object(recorder->stage.log, object, &o);
    if (o.filesystem == EVENT_LOG_REMOTE) {
        below = trace_path_below(recorder->root, o.name);
        return below ? strdup(below) : NULL;
    }
    fd = fanotify_resolve(recorder->observer.fanotify, &o, path, sizeof(path));
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return NULL;
    if (!watched_volumes_may_name(w, volume_by_dev(&w->table, st.st_dev), fd))
        return NULL;
    below = trace_path_below(recorder->root, path);
    return below ? strdup(below) : NULL;
}

/* A following_report_t: passes the start or exit of an application to the caller of
 * recorder_follow(). */
static void report(void *arg, const char *name, const ProcessRun *run, bool started)
{
    Recorder *recorder = arg;
    usec_t at = started ? run->start : MAX(run->start, run->end);

    recorder->report(recorder->report_arg,
                     &(RecordedApplication){
                             .path = name,
                             .pid = run->pid,
                             .uid = run->uid,
                             .at_boottime = recorder->stage.zero_boottime + at,
                             .started = started,
                     });
}

static int report_applications(Recorder *recorder)
{
    const ProcessRun *runs;
    size_t n;
    int r;

    if (!recorder->following)
        return 0;
    runs = process_table_runs(recorder->observer.processes, &n);
    r = following_update(recorder->following, runs, n, since_start(recorder), name_object, report,
                         recorder);
    fanotify_resolve_done(recorder->observer.fanotify);
    return r;
}

int recorder_follow(Recorder *recorder, recorder_report_t f, void *arg)
{
    Following *following = f ? following_new() : NULL;

    if (f && !following)
        return -ENOMEM;
    following_free(recorder->following);
    recorder->following = following;
    recorder->report = f;
    recorder->report_arg = arg;
    return 0;
}

/* --- events ----------------------------------------------------------------------------------- */

/* Returns the serial of the first run that must still be reported. */
static uint64_t keep_from(const Recorder *recorder)
{
    return recorder->following ? following_first_waiting(recorder->following) : UINT64_MAX;
}

/* Forgets events and runs that no stage needs, except runs that must still be reported. */
static int forget(Recorder *recorder)
{
    return observer_forget(&recorder->observer, keep_from(recorder));
}

int recorder_drain(Recorder *recorder)
{
    int events = observer_drain(&recorder->observer), r;

    r = report_applications(recorder);
    if (r >= 0 && observer_is_full(&recorder->observer))
        r = forget(recorder);
    return r < 0 ? r : events;
}

/* Notes that an interval begins. If intervals are recorded, takes the first snapshot of metadata
 * for this interval and for the stage after it. Returns 0 or -ENOMEM. */
static int start_interval(Recorder *recorder)
{
    recorder->interval_began = clock_now(CLOCK_BOOTTIME);
    return recorder->options.intervals ? volume_snapshots_begin(&recorder->stage.snapshots,
                                                                &recorder->observer.volumes.table)
                                       : 0;
}

/* Restarts an interval that has become too long, unless files were opened since the timer last
 * elapsed, because these opens can be the beginning of a login. Returns 0 or -ENOMEM. */
static int limit_interval(Recorder *recorder, int n_opens)
{
    size_t n;
    int r;

    event_log_events(recorder->stage.log, &n);
    if (!recorder->stage.interval || n_opens > 0 || n == 0 ||
        clock_now(CLOCK_BOOTTIME) < recorder->interval_began + RECORDER_INTERVAL_MAX_USEC)
        return 0;
    r = forget(recorder);
    return r < 0 ? r : start_interval(recorder);
}

void recorder_drop_interval(Recorder *recorder)
{
    recorder->stage.interval = false;
}

/* Returns true if a pack of the stage is replayed. Pages and metadata are then not sampled: samples
 * would show what replay has read, and would take processor time from the session. The model
 * ignores the metadata of such a stage. It uses the pages only for files of which it knows no
 * better ones (model-learn.c), and for these the trace builder reads them once, at the end. */
static bool is_replayed(Recorder *recorder, usec_t now)
{
    StageRecord *s = &recorder->stage;

    /* Before the first round, replay may not have begun. */
    if (!s->replay_checked && stage_record_time(s, now) >= SAMPLING_ROUND_USEC) {
        s->replayed = trace_is_replayed(recorder->run_dir, s->stage, s->uid);
        s->replay_checked = true;
    }
    return s->replayed;
}

/* Finds out what applications that were started in a session touch. Returns 0 or -ENOMEM. */
static int find_touched(Recorder *recorder, usec_t now)
{
    StageRecord *s = &recorder->stage;
    const ProcessRun *runs;
    size_t n;

    if (s->stage != STAGE_SESSION)
        return 0;
    runs = process_table_runs(recorder->observer.processes, &n);
    return touched_run(&s->touched, recorder->page_reader, runs, n, &s->shares, now);
}

/* Samples residency and touched pages, if that is due. Returns 0 or -ENOMEM. */
static int sample(Recorder *recorder)
{
    StageRecord *s = &recorder->stage;
    usec_t now = since_start(recorder);
    usec_t interval = s->stage == STAGE_SESSION ? SESSION_METADATA_USEC : SAMPLING_ROUND_USEC;
    int r = 1;

    if (!s->recording)
        return 0;
    if (stage_record_wants_sample(s, clock_now(CLOCK_BOOTTIME))) {
        Moment moment;

        moment_read(&moment);
        stage_record_add_sample(s, &moment);
    }
    if (find_touched(recorder, now) < 0)
        return -ENOMEM;
    if (is_replayed(recorder, now))
        return 0;
    if (s->residency_known)
        r = sampling_run(&s->sampling, s->log, &s->shares, recorder->observer.fanotify, now);
    if (r <= 0 || now < s->metadata_sampled + interval)
        return r < 0 ? r : 0;
    s->metadata_sampled = now;
    return volume_snapshots_sample(&s->snapshots, &recorder->observer.volumes.table);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *arg)
{
    Recorder *recorder = arg;
    int r = recorder_drain(recorder), limited = limit_interval(recorder, r);
    uint64_t now;

    r = limited < 0 ? limited : r;
    if (r < 0) {
        if (!recorder->complained)
            log_error_errno(r, "Cannot read events, the recording will be incomplete: %m");
        recorder->complained = true;
        recorder->stage.n_overflows++;
    }
    if (sample(recorder) < 0)
        log_debug("Out of memory while sampling, ignoring.");
    recorder->drain_interval =
            r > 0 || (recorder->following && following_waits(recorder->following))
                    ? RECORDER_DRAIN_USEC
                    : MIN(2 * recorder->drain_interval, RECORDER_DRAIN_IDLE_USEC);
    if (sd_event_now(recorder->event, CLOCK_MONOTONIC, &now) < 0)
        now = usec;
    r = sd_event_source_set_time(source, now + recorder->drain_interval);
    return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* Closes the descriptors of queued events, so that filesystems can be unmounted, and then pauses. A
 * failure is ignored: the timer reads these events, too. */
static int on_descriptors(sd_event_source *source _unused_, int fd _unused_,
                          uint32_t revents _unused_, void *arg)
{
    Recorder *recorder = arg;
    int r = fanotify_take_descriptors(recorder->observer.fanotify);

    if (r < 0)
        log_debug_errno(r, "Cannot take descriptors, ignoring: %m");
    r = sd_event_source_set_time_relative(recorder->pause, RECORDER_DESCRIPTORS_USEC);
    return r < 0 ? r : sd_event_source_set_enabled(recorder->pause, SD_EVENT_ONESHOT);
}

static int on_pause(sd_event_source *source _unused_, uint64_t usec _unused_, void *arg)
{
    Recorder *recorder = arg;

    return sd_event_source_set_enabled(recorder->descriptors, SD_EVENT_ONESHOT);
}

/* Follows the group in descriptor mode, if there is one. */
static int follow_descriptors(Recorder *recorder)
{
    int groups[2], r;

    fanotify_get_groups(recorder->observer.fanotify, groups);
    if (!recorder->event || recorder->descriptors || groups[1] < 0)
        return 0;
    if (!recorder->pause) {
        r = sd_event_add_time_relative(recorder->event, &recorder->pause, CLOCK_MONOTONIC, 0, 1,
                                       on_pause, recorder);
        if (r < 0)
            return r;
    }
    r = sd_event_add_io(recorder->event, &recorder->descriptors, groups[1], EPOLLIN, on_descriptors,
                        recorder);
    return r < 0 ? r : sd_event_source_set_enabled(recorder->descriptors, SD_EVENT_ONESHOT);
}

static int update_volumes(Recorder *recorder)
{
    WatchedVolumes *w = &recorder->observer.volumes;
    int r = watched_volumes_update(w, recorder->observer.fanotify, recorder->root);

    if (r >= 0)
        volume_snapshots_keep(&recorder->stage.snapshots, &w->table);
    return r < 0 ? r : follow_descriptors(recorder);
}

static int on_mounts(sd_event_source *source _unused_, int fd _unused_, uint32_t revents _unused_,
                     void *arg)
{
    Recorder *recorder = arg;
    int r = watched_volumes_changed(&recorder->observer.volumes, recorder->observer.fanotify,
                                    recorder->root);

    if (r > 0) {
        recorder_drain(recorder); /* reads the opens that happened on the old filesystems */
        r = update_volumes(recorder);
    }
    if (r < 0)
        log_warning_errno(r, "Cannot follow a change of mounts, ignoring: %m");
    return 0;
}

int recorder_attach(Recorder *recorder, sd_event *event)
{
    int r;

    recorder->event = sd_event_ref(event);
    r = sd_event_add_time_relative(event, &recorder->timer, CLOCK_MONOTONIC, RECORDER_DRAIN_USEC,
                                   2 * USEC_PER_MSEC, on_timer, recorder);
    if (r < 0)
        return r;
    recorder->mountinfo_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (recorder->mountinfo_fd < 0)
        return -errno;
    r = sd_event_add_io(event, &recorder->mounts, recorder->mountinfo_fd, EPOLLPRI, on_mounts,
                        recorder);
    return r < 0 ? r : follow_descriptors(recorder);
}

/* --- stages ----------------------------------------------------------------------------------- */

static void begin_record(Recorder *recorder, Stage stage, uint32_t uid, const Moment *start)
{
    recorder->complained = false;
    recorder->stage.exact = recorder->read_ahead_lowered;
    recorder->stage.late =
            recorder->options.take_over && stage == STAGE_BOOT && start != &recorder->marked;
    stage_record_begin(&recorder->stage, stage, uid, start);
}

/* Begins the boot at the moment when the root filesystem was marked, right after it was mounted.
 * The queued events belong to the boot, and no metadata of the filesystem was resident before that
 * moment. */
static int begin_marked_stage(Recorder *recorder, uint32_t uid)
{
    const VolumeTable nothing = {0};
    int r = volume_snapshots_begin(&recorder->stage.snapshots, &nothing);

    if (r >= 0)
        r = observer_begin_stage(&recorder->observer);
    if (r < 0)
        return r;
    begin_record(recorder, STAGE_BOOT, uid, &recorder->marked);
    recorder->is_marked = false;
    recorder->observer.own_start = true;
    return 0;
}

int recorder_begin_stage(Recorder *recorder, Stage stage, uint32_t uid)
{
    StageRecord *s = &recorder->stage;
    Moment now;
    int r;

    if (s->recording)
        return -EBUSY;
    lower_read_ahead(recorder);
    if (recorder->is_marked && stage == STAGE_BOOT)
        return begin_marked_stage(recorder, uid);
    recorder->is_marked = false;
    s->interval = s->interval && stage != STAGE_BOOT;
    r = s->interval ? 0 : volume_snapshots_begin(&s->snapshots, &recorder->observer.volumes.table);
    if (r >= 0)
        r = recorder_drain(recorder); /* the queued events are older than now: they belong to the
                                         interval, or are dropped */
    if (r >= 0 && !s->interval)
        r = observer_begin_stage(&recorder->observer);
    if (r < 0)
        return r;
    moment_read(&now);
    begin_record(recorder, stage, uid, &now);
    /* The clock of the runs may have started long before the interval. */
    if (recorder->interval_began > s->zero_boottime)
        s->touched.from = recorder->interval_began - s->zero_boottime;
    return 0;
}

void recorder_note_ready(Recorder *recorder, Stage stage, usec_t age)
{
    Moment now;

    if (!recorder->stage.recording || recorder->stage.stage != stage)
        return;
    moment_read(&now);
    stage_record_note_ready(&recorder->stage, &now, age);
}

bool recorder_was_suspended(const Recorder *recorder)
{
    Moment now;

    moment_read(&now);
    return recorder->stage.recording && moment_suspended(&recorder->stage.start, &now);
}

static void drain_in_pause(void *arg)
{
    (void)recorder_drain(arg);
}

/* Makes the builder of the trace, and gives it the record of the stage. */
static int begin_trace(Recorder *recorder, TraceBuilder **ret)
{
    _cleanup_trace_builder_ TraceBuilder *b = NULL;
    int r = trace_builder_new(&recorder->observer, &b);

    /* The builder has compared the snapshots of metadata, so the first snapshot of the next
     * interval may be taken. */
    if (r >= 0)
        r = start_interval(recorder);
    /* Drains twice, because the connector's reports are settled one batch later. Continues while a
     * drain stops at its maximum: more events are queued then, because the recorder did not run for
     * a while. The number of rounds is bounded, because files may be opened all the time. */
    for (int i = 0; r >= 0 && i < DRAINS_AT_END && (i < 2 || r >= FANOTIFY_DRAIN_EVENTS); i++)
        r = recorder_drain(recorder);
    if (r >= 0)
        r = trace_builder_take(b, keep_from(recorder), drain_in_pause, recorder);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(b);
    return 0;
}

/* Ends the stage. If intervals are recorded, one begins. `taken`: a trace builder has the record of
 * the stage. */
static int stop_recording(Recorder *recorder, bool taken)
{
    int r;

    recorder->stage.recording = false;
    if (recorder->read_ahead_lowered)
        (void)restore_read_ahead(recorder);
    sampling_done(&recorder->stage.sampling);
    touched_done(&recorder->stage.touched);
    page_reader_drop(recorder->page_reader);
    r = taken ? 0 : forget(recorder);
    recorder->stage.interval = r >= 0 && recorder->options.intervals;
    return r;
}

int recorder_end_stage(Recorder *recorder, Trace **ret)
{
    _cleanup_trace_builder_ TraceBuilder *b = NULL;
    int r, stopped;

    if (!recorder->stage.recording)
        return -ESRCH;
    if (find_touched(recorder, since_start(recorder)) < 0)
        log_debug("Out of memory while taking touched pages, ignoring.");
    r = begin_trace(recorder, &b);
    stopped = stop_recording(recorder, b);
    /* What is opened from now on belongs to the interval, and is read while the trace is built. */
    if (r >= 0 && stopped >= 0)
        r = trace_builder_build(b, recorder->root, recorder->run_dir, ret);
    return r < 0 ? r : stopped;
}

int recorder_drop_stage(Recorder *recorder, bool cut_short)
{
    int r, stopped;

    if (!recorder->stage.recording)
        return -ESRCH;
    recorder->stage.n_logins -= cut_short && recorder->stage.stage == STAGE_LOGIN;
    r = start_interval(recorder);
    stopped = stop_recording(recorder, false);
    return r < 0 ? r : stopped;
}

void recorder_note_login(Recorder *recorder)
{
    recorder->stage.n_logins = MAX(recorder->stage.n_logins, 1U);
}

void recorder_set_uid(Recorder *recorder, uint32_t uid)
{
    recorder->stage.uid = uid;
}

void recorder_set_exact(Recorder *recorder, unsigned kb)
{
    recorder->options.exact_kb = kb;
}

uint64_t recorder_n_starts(const Recorder *recorder)
{
    return recorder->observer.n_starts;
}

const char *recorder_limits(const Recorder *recorder)
{
    return recorder->limits;
}

/* --- set-up ----------------------------------------------------------------------------------- */

Recorder *recorder_free(Recorder *recorder)
{
    if (!recorder)
        return NULL;
    if (recorder->read_ahead_lowered)
        (void)restore_read_ahead(recorder);
    sd_event_source_disable_unref(recorder->timer);
    sd_event_source_disable_unref(recorder->mounts);
    sd_event_source_disable_unref(recorder->descriptors);
    sd_event_source_disable_unref(recorder->pause);
    sd_event_unref(recorder->event);
    if (recorder->mountinfo_fd >= 0)
        close(recorder->mountinfo_fd);
    following_free(recorder->following);
    page_reader_free(recorder->page_reader);
    observer_done(&recorder->observer);
    stage_record_done(&recorder->stage);
    free(recorder->limits);
    free(recorder->root);
    free(recorder->run_dir);
    free(recorder);
    return NULL;
}

/* Adds a clause to the line that lists what is missing. */
static void note_limit(Recorder *recorder, const char *text)
{
    char *more;

    if (asprintf(&more, "%s%s%s", recorder->limits ? recorder->limits : "",
                 recorder->limits ? "; " : "", text) < 0)
        return;
    free(recorder->limits);
    recorder->limits = more;
}

static int fail(char **ret_error, int error, const char *text)
{
    if (ret_error)
        *ret_error = strdup(text);
    return error;
}

static int open_fanotify(Recorder *recorder, char **ret_error)
{
    Observer *o = &recorder->observer;
    int r = 0;

    if (recorder->options.take_over && recorder->run_dir)
        r = take_over_recording(recorder->run_dir, o, &recorder->marked);
    recorder->is_marked = r > 0;
    if (r == 0)
        r = fanotify_new(!recorder->options.no_unlimited_queue, &o->fanotify);
    if (r == -EPERM)
        return fail(ret_error, r, "recording needs CAP_SYS_ADMIN (fanotify)");
    if (r == -ENOSYS || r == -EINVAL)
        return fail(ret_error, -ENOSYS,
                    "this kernel has no fanotify with directory handles (Linux 5.9, "
                    "CONFIG_FANOTIFY)");
    return r < 0 ? fail(ret_error, r, "cannot set up fanotify") : 0;
}

/* Opens the connector, unless it was taken over, and drops CAP_NET_ADMIN, which only this needs. If
 * the kernel refuses to drop the capability, the recorder records nevertheless. Only this thread
 * and threads that it starts later lose it. Threads that the caller started before must drop it
 * themselves. */
static void open_connector(Recorder *recorder)
{
    Observer *o = &recorder->observer;

    if (o->connector_fd < 0)
        o->connector_fd = recorder->options.no_proc_connector ? -EPERM : proc_connector_open();
    (void)capability_drop(CAP_NET_ADMIN);
}

static int watch_volumes(Recorder *recorder, char **ret_error)
{
    Observer *o = &recorder->observer;
    int r;

    r = update_volumes(recorder);
    /* headstart-init may have marked a filesystem that is not recorded. */
    recorder->is_marked = fanotify_end_adopted(o->fanotify) && recorder->is_marked;
    if (r == -EPERM)
        return fail(ret_error, r, "recording needs CAP_SYS_ADMIN (fanotify marks)");
    if (r < 0)
        return fail(ret_error, r, "cannot read which filesystems are mounted");
    if (o->volumes.n == 0)
        return fail(ret_error, -ENODEV,
                    "no local block-backed filesystem to record below the root");
    if (fanotify_can_resolve(recorder->root) == -EPERM)
        return fail(ret_error, -EPERM, "recording needs CAP_DAC_READ_SEARCH (file handles)");
    return 0;
}

/* Finds out what the kernel and the privileges of this process offer, and notes what is missing. */
static void find_limits(Recorder *recorder)
{
    const RecorderOptions *o = &recorder->options;
    StageRecord *s = &recorder->stage;

    s->residency_known = residency_is_observable() && !o->no_fowner;
    if (!s->residency_known)
        note_limit(recorder,
                   "no CAP_FOWNER: page ranges of files are not known, whole files are assumed");
    s->has_connector = recorder->observer.connector_fd >= 0;
    if (!s->has_connector)
        note_limit(recorder,
                   "no proc connector (CAP_NET_ADMIN): short-lived processes stay unknown");
    s->snapshots.no_cachestat = o->no_cachestat;
    if (o->no_cachestat || !cachestat_available())
        note_limit(recorder, "no cachestat (Linux 6.5): metadata is derived from what was opened");
}

static int start_processes(Recorder *recorder, char **ret_error)
{
    Observer *o = &recorder->observer;
    int r = proc_reader_new(&o->proc);

    if (r >= 0)
        r = observer_scan_processes(o);
    return r < 0 ? fail(ret_error, r, "cannot read /proc") : 0;
}

int recorder_new(const RecorderOptions *o, Recorder **ret, char **ret_error)
{
    _cleanup_recorder_ Recorder *recorder = calloc(1, sizeof(Recorder));
    int r;

    if (ret_error)
        *ret_error = NULL;
    if (!recorder)
        return -ENOMEM;
    recorder->options = *o;
    recorder->observer.stage = &recorder->stage;
    recorder->observer.connector_fd = recorder->mountinfo_fd = -EBADF;
    recorder->observer.volumes.store = o->store;
    recorder->observer.compact_at = OBSERVER_RUNS_MAX;
    recorder->drain_interval = RECORDER_DRAIN_USEC;
    r = stage_record_init(&recorder->stage);
    if (r < 0)
        return r;
    recorder->stage.n_logins = o->had_login;
    recorder->stage.start.boottime = recorder->stage.zero_boottime = clock_now(CLOCK_BOOTTIME);
    recorder->root = realpath(o->root, NULL);
    if (!recorder->root)
        return fail(ret_error, -errno, "the root directory is not there");
    recorder->observer.root = recorder->root;
    recorder->run_dir = o->run_dir ? strdup(o->run_dir) : NULL;
    recorder->observer.processes = process_table_new();
    recorder->page_reader = page_reader_new();
    if (!recorder->observer.processes || !recorder->page_reader ||
        (o->run_dir && !recorder->run_dir))
        return -ENOMEM;

    r = open_fanotify(recorder, ret_error);
    if (r < 0)
        return r;
    open_connector(recorder);
    r = watch_volumes(recorder, ret_error);
    if (r < 0)
        return r;
    find_limits(recorder);
    r = start_processes(recorder, ret_error);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(recorder);
    return 0;
}
