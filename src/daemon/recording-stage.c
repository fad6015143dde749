/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/recording-stage.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/journal.h"
#include "base/log.h"
#include "daemon/launch-rows.h"
#include "daemon/session-history.h"
#include "daemon/state-write.h"
#include "state/trace-store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <unistd.h>

/* Files in the runtime directory. headstart-learn.path watches the first. The second shows that the
 * boot is in the history, and the third that a login of this boot has ended. The last two still
 * exist if only userspace was rebooted, or if headstartd was restarted. */
#define LOGIN_RECORDED "login-recorded"
#define BOOT_RECORDED  "boot-recorded"
#define HAD_LOGIN      "had-login"

/* headstart-record-late.service makes this directory in a boot that is not recorded. */
#define BOOT_OVER "boot-over"

/* Creates or replaces an empty file in the runtime directory. Returns true if the file existed
 * already. */
static bool touch_run_file(const RecordingStage *s, const char *name)
{
    const char *run = s->arguments->run;
    _cleanup_close_ int fd = -EBADF;
    bool found;
    int r;

    if (!s->arguments->automatic || !run)
        return false;
    fd = open(run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    found = fd >= 0 && faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    r = fd < 0 ? -errno : atomic_file_write(fd, name, "", 0, 0600);
    if (r < 0)
        log_warning_errno(r, "headstartd: cannot write %s/%s, ignoring: %m", run, name);
    return found;
}

static void log_trace(const Trace *t, const char *path)
{
    _cleanup_free_ char *left_out = trace_describe_left_out(t);
    char duration[FORMAT_TIMESPAN_MAX];
    JournalEntry e;

    journal_entry_begin(&e, JOURNAL_RECORDED, LOG_INFO);
    journal_entry_add(&e, "HEADSTART_STAGE", "%s", stage_to_string(t->stage));
    journal_entry_add(&e, "HEADSTART_DURATION_USEC", "%" PRIu64, t->duration);
    journal_entry_add(&e, "HEADSTART_ACCESSES", "%zu", t->n_accesses);
    journal_entry_add(&e, "HEADSTART_FILES", "%zu", t->n_files);
    journal_entry_add(&e, "HEADSTART_TRACE", "%s", path);
    journal_log(&e, LOG_INFO,
                "headstartd: recorded %s: %zu accesses to %zu files by %zu applications in %s: %s",
                stage_to_string(t->stage), t->n_accesses, t->n_files, t->n_applications,
                format_timespan(duration, sizeof(duration), t->duration), path);
    if (left_out)
        log_notice("headstartd: left out of this trace, because users exceeded their shares: %s",
                   left_out);
    if (t->flags & TRACE_INCOMPLETE)
        log_warning("headstartd: events are missing, the queue overflowed %" PRIu64
                    " times: this trace is incomplete",
                    t->n_overflows);
}

/* Updates the files that show other programs that the stage was recorded. */
static void announce_trace(RecordingStage *s, const Trace *t)
{
    int r;

    if (!s->arguments->automatic)
        return;
    r = rerecord_done(s->arguments->state, &s->rerecord, t->stage, t->uid);
    if (r < 0)
        log_warning_errno(r, "headstartd: %s: cannot remove the request to record %s, ignoring: %m",
                          s->arguments->state, stage_to_string(t->stage));
    if (t->stage == STAGE_LOGIN)
        (void)touch_run_file(s, LOGIN_RECORDED);
}

/* Collects what the history contains about the stage. */
static void complete_ended(const RecordingStage *s, EndedStage *e)
{
    e->state = s->arguments->state;
    e->run_dir = s->arguments->run;
    e->root_fd = s->root_fd;
    e->system_fd = strcmp(s->arguments->root, "/") == 0 ? AT_FDCWD : s->root_fd;
    e->boot = stage_source_boot_times(s->stages);
    e->begin = s->begin;
    e->launches_since = s->results.launches_since;
    e->launch_log = s->results.launch_log;
    e->requested = rerecord_matches(&s->rerecord, e->trace->stage, e->trace->uid);
    e->exact = e->requested && s->rerecord.stages[e->trace->stage].exact;
}

/* What is written when a stage has ended. */
typedef struct Store {
    StateWrite write;
    EndedStage ended;
    Trace *trace;
    const char *state;
    bool history;
    char *path; /* of the trace */
    int r;
} Store;

static void store_free(StateWrite *w)
{
    Store *x = (Store *)w;

    trace_free(x->trace);
    free(x->path);
    free(x);
}

static void store(StateWrite *w)
{
    Store *x = (Store *)w;

    x->r = trace_store(x->state, x->trace, &x->path);
    if (x->r >= 0 && x->history) /* else it would fail for the same reason: one line is enough */
        session_history_append(&x->ended);
}

/* Writes the record of a boot that was not recorded. */
static void store_light(StateWrite *w)
{
    session_history_append_light(&((Store *)w)->ended);
}

/* Writes the trace and the history in another thread. Takes ownership of *x. Returns 0, or a
 * negative errno if the trace was not written. */
static int store_meanwhile(RecordingStage *s, Store *x)
{
    int r = state_write_start(&x->write);

    if (r >= 0) {
        r = state_write_finish(&x->write, s->recorder);
        if (r < 0)
            return r;
    } else if (r == -ETIMEDOUT)
        x->r = r;
    else
        store(&x->write);
    r = x->r;
    if (r >= 0) {
        log_trace(x->trace, x->path);
        announce_trace(s, x->trace);
    }
    store_free(&x->write);
    return r < 0 ? r : 0;
}

/* Adds what the present prefetcher has done to the results of the session. `uid`: the user of the
 * trace. */
static void collect_results(RecordingStage *s, uint32_t uid)
{
    SessionResults more;

    prefetcher_take_results(s->prefetcher, uid, &more);
    session_results_add(&s->results, &more);
}

/* Adds to the trace what the prefetchers of its session have done, and what control starts needed.
 * Without the latter the trace is valid. */
static void add_results(RecordingStage *s, Trace *t)
{
    int r;

    collect_results(s, t->uid);
    t->flags |= s->results.flags;
    r = launch_rows_add(&s->results.launch_uses, t);
    if (r < 0)
        log_debug_errno(r, "headstartd: the trace lacks what control starts needed: %m");
}

static int write_trace(RecordingStage *s, usec_t settled_ago)
{
    Store *x = calloc(1, sizeof(*x));
    Trace *t;
    int r;

    if (!x)
        return -ENOMEM;
    *x = (Store){
            .write = {.run = store, .free = store_free},
            .ended = {.end = machine_counters_read(s->root_fd),
                      .end_boottime = clock_now(CLOCK_BOOTTIME),
                      .settled_ago = settled_ago},
            .state = s->arguments->state,
            .history = s->arguments->automatic,
    };
    r = recorder_end_stage(s->recorder, &x->trace);
    if (r < 0) {
        store_free(&x->write);
        return r;
    }
    t = x->trace;
    add_results(s, t);
    if (t->stage == STAGE_BOOT && touch_run_file(s, BOOT_RECORDED))
        t->flags |= TRACE_SOFT_REBOOT;
    if (t->stage == STAGE_LOGIN && s->automatic)
        t->flags |= TRACE_AUTOLOGIN;
    x->ended.trace = t;
    if (x->history)
        complete_ended(s, &x->ended);
    return store_meanwhile(s, x);
}

/* Adds the boot to the history without a trace, once, if it was over before the recorder was
 * started. */
static void append_light_boot(const RecordingStage *s)
{
    const Arguments *a = s->arguments;
    char path[4096];
    Store *x;

    if (s->stage != STAGE_BOOT || !a->automatic || !a->run)
        return;
    snprintf(path, sizeof(path), "%s/" BOOT_OVER, a->run);
    x = calloc(1, sizeof(*x));
    if (!x)
        return;
    *x = (Store){
            .write = {.run = store_light, .free = store_free},
            .ended = {.state = a->state,
                      .root_fd = s->root_fd,
                      .boot = stage_source_boot_times(s->stages)},
    };
    if (x->ended.boot.finish_usec == 0 || access(path, F_OK) < 0 ||
        touch_run_file(s, BOOT_RECORDED)) {
        store_free(&x->write);
        return;
    }
    x->ended.end = machine_counters_read(s->root_fd);
    x->ended.end_boottime = clock_now(CLOCK_BOOTTIME);
    if (state_write_start(&x->write) >= 0 && state_write_finish(&x->write, s->recorder) < 0)
        return; /* it is left behind */
    store_free(&x->write);
}

/* Returns true if the machine was suspended during the boot or login, so that its times say
 * nothing. The time of an automatic login contains the boot. */
static bool was_suspended(const RecordingStage *s)
{
    return s->arguments->automatic && s->stage != STAGE_SESSION &&
           (recorder_was_suspended(s->recorder) ||
            (s->stage == STAGE_LOGIN && s->automatic && s->boot_suspended));
}

/* Drops a stage during which the machine was suspended. A requested recording is due again in the
 * next boot. */
static int drop_suspended(RecordingStage *s)
{
    s->rerecord.stages[s->stage].requested = false;
    if (s->stage == STAGE_BOOT) {
        s->boot_suspended = true;
        (void)touch_run_file(s, BOOT_RECORDED);
    }
    return recorder_drop_stage(s->recorder, false);
}

void recording_stage_finish(RecordingStage *s, bool drop, usec_t settled_ago)
{
    bool suspended = !drop && was_suspended(s);
    int r = drop        ? recorder_drop_stage(s->recorder, true)
            : suspended ? drop_suspended(s)
                        : write_trace(s, settled_ago);

    s->recorded = false;
    session_results_done(&s->results);
    prefetcher_end_recording(s->prefetcher);
    if (r == -ESRCH) /* nothing is being recorded */
        return;
    if (s->stage == STAGE_LOGIN && !drop)
        (void)touch_run_file(s, HAD_LOGIN);
    if (r < 0) {
        log_error_errno(r, "headstartd: cannot write the trace of this stage below %s: %m",
                        s->arguments->state);
        s->failed = true;
    } else if (drop || suspended) {
        log_info("headstartd: %s was %s: dropped", stage_to_string(s->stage),
                 suspended ? "interrupted by a suspend" : "cut short");
        append_light_boot(s);
    }
    malloc_trim(0); /* the next stage begins with an empty record */
}

void recording_stage_end(RecordingStage *s, bool drop, usec_t settled_ago)
{
    recording_stage_finish(s, drop, settled_ago);
    s->prefetcher = prefetcher_end(s->prefetcher);
    s->stage = _STAGE_INVALID;
}

bool recording_stage_had_login(const Arguments *a)
{
    char path[4096];

    if (!a->automatic || !a->run)
        return false;
    snprintf(path, sizeof(path), "%s/" HAD_LOGIN, a->run);
    return access(path, F_OK) == 0;
}

/* Returns true if the options select the stage. */
static bool is_selected(const Arguments *a, Stage stage)
{
    for (size_t i = 0; i < a->n_stages; i++)
        if (a->stages[i] == stage)
            return true;
    return !a->automatic || a->n_stages == 0;
}

/* Returns true if only other stages are recorded, because their recording is requested. */
static bool others_are_requested(const RecordingStage *s, Stage stage, uint32_t uid)
{
    return s->arguments->automatic && rerecord_is_requested(&s->rerecord) &&
           !rerecord_matches(&s->rerecord, stage, uid);
}

/* Drops the requests that have expired since headstartd was started. Otherwise a request for a user
 * who does not log in would keep all other stages from being recorded, as a machine that is only
 * suspended may not be booted for weeks. */
static void expire_requests(RecordingStage *s)
{
    int r;

    if (!s->arguments->automatic || state_write_disk_hangs())
        return;
    r = rerecord_expire(s->arguments->state, clock_now(CLOCK_REALTIME), &s->rerecord);
    if (r < 0)
        log_warning_errno(r, "headstartd: %s: cannot remove an expired request, ignoring: %m",
                          s->arguments->state);
}

/* Starts the prefetcher of a session whose trace belongs to `uid`. If `others` are logged in, the
 * session cycle follows the applications of all users, and reads only files of root
 * (model/ownership.h). `known_boottime` is that of PrefetcherOptions. A failure is logged and has
 * no other effect. */
static void start_prefetcher(RecordingStage *s, uint32_t uid, bool others, usec_t known_boottime)
{
    const PrefetcherOptions o = {
            .root = s->arguments->root,
            .state = s->arguments->state,
            .run_dir = s->arguments->run,
            .known_boottime = known_boottime,
    };

    if (state_write_disk_hangs()) {
        log_warning("headstartd: %s does not answer: nothing is predicted in this session",
                    s->arguments->state);
        return;
    }
    (void)prefetcher_new(&o, s->recorder, s->event, others ? UID_INVALID : uid, &s->prefetcher);
}

int recording_stage_begin(RecordingStage *s, Stage stage, uint32_t uid, bool others)
{
    bool exact;
    int r;

    if (stage != STAGE_BOOT && uid == UID_INVALID)
        uid = s->arguments->uid;
    if (stage == STAGE_SESSION) { /* its login may not have been recorded */
        (void)touch_run_file(s, HAD_LOGIN);
        recorder_note_login(s->recorder);
    }
    expire_requests(s);
    if (!is_selected(s->arguments, stage) || others_are_requested(s, stage, uid)) {
        recorder_drop_interval(s->recorder);
        if (stage == STAGE_SESSION && is_selected(s->arguments, stage)) {
            start_prefetcher(s, uid, others, 0);
            prefetcher_end_recording(s->prefetcher);
        }
        return 0;
    }
    exact = rerecord_matches(&s->rerecord, stage, uid) && s->rerecord.stages[stage].exact;
    recorder_set_exact(s->recorder, exact ? s->rerecord.stages[stage].read_ahead_kb
                                          : s->arguments->recorder.exact_kb);
    r = recorder_begin_stage(s->recorder, stage, uid);
    if (r < 0)
        return log_error_errno(r, "headstartd: cannot record %s: %m", stage_to_string(stage));
    s->stage = stage;
    s->uid = uid;
    s->recorded = true;
    s->results = SESSION_RESULTS_EMPTY;
    /* The counters of a boot are 0 when the kernel starts. */
    s->begin = stage == STAGE_BOOT ? (MachineCounters){0} : machine_counters_read(s->root_fd);
    if (stage == STAGE_SESSION)
        start_prefetcher(s, uid, others, 0);
    return 0;
}

void recording_stage_change_users(RecordingStage *s, uint32_t uid, bool others)
{
    usec_t now;

    if (!is_selected(s->arguments, STAGE_SESSION))
        return;
    if (s->recorded)
        collect_results(s, s->uid);
    now = s->prefetcher ? clock_now(CLOCK_BOOTTIME) : 0;
    s->prefetcher = prefetcher_end(s->prefetcher);
    start_prefetcher(s, uid, others, now);
    if (!s->recorded)
        prefetcher_end_recording(s->prefetcher);
}
