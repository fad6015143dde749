/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstartd: records stages and writes their traces; prefetches in a session.
 *
 * Its threads:
 *
 * - The main thread runs the event loop: it reads fanotify and the proc connector
 *   (record/recorder.h), talks to systemd and logind (stages-system.c), feeds the state machine of
 *   the stages (stages-decide.h), makes and writes traces (recording-stage.h), and runs the session
 *   cycle (prefetcher.h). The end of a stage is the only time when it reads files that users
 *   opened, and it reads events meanwhile.
 * - The prefetch thread (session/prefetch-thread.h) lives as long as a session. If the users of the
 *   session change, this thread and the launch thread are replaced. It reads what the cycle
 *   requests, at idle I/O priority. It shares with the main thread one job, its report and the
 *   paths that it has refused, under one mutex that is never held during I/O. A thread that hangs
 *   is left behind, and another one continues without its disk.
 * - The launch thread (session/launch-thread.h) lives from the first set that is to be replayed to
 *   the end of the session (prefetcher.c). It waits for executions and replays launch sets, each in
 *   threads of the executor (execute/executor.h). It shares with the main thread only its report,
 *   under a mutex of its own.
 * - The save thread (prefetcher-model.h) lives as long as one save of model.json. It owns a copy of
 *   the chains. The main thread waits for it only when the session ends or on SIGHUP. The save in
 *   turn waits at most three seconds for the lock on the state directory.
 * - The store thread (recording-stage.c) lives while the trace of a stage and its line of the
 *   history are written. Meanwhile the main thread reads events, and touches neither.
 * - The threads of disk-call.c look files up for the others on another disk than that of the root
 *   filesystem, because a disk may never answer. They live as long as the process.
 * - Two threads of stop-limit.c wait for SIGTERM and for its time limit. They end the process if
 *   the main thread, or what it has to do before the end, waits for a disk.
 *
 * All signals that the daemon handles are blocked before the first thread begins. */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/journal.h"
#include "base/log.h"
#include "base/uid.h"
#include "boot/read-ahead.h"
#include "config-paths.h"
#include "daemon/arguments.h"
#include "daemon/recording-stage.h"
#include "daemon/stages.h"
#include "daemon/stop-limit.h"
#include "record/read-ahead.h"
#include "record/recorder.h"
#include "state/state.h"
#include "system/call-filter.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <systemd/sd-daemon.h>

typedef struct Daemon {
    Arguments arguments;
    int root_fd; /* with --stage=auto */
    sd_event *event;
    Recorder *recorder;
    StageSource *stages;
    RecordingStage recording;
    const char *awaits; /* the condition that ends the stage; NULL: not known */
} Daemon;

/* Sets the status that systemctl shows. Without --stage=auto, the first call sends the first
 * READY=1, from which a test sees that headstartd records. */
static void notify_status(const Daemon *d)
{
    const char *stage = stage_to_string(d->recording.stage);
    const char *awaits = d->awaits;

    sd_notifyf(false, "READY=1\nSTATUS=%s%s%s%s", stage ? "Recording " : "", stage ? stage : "",
               !awaits ? ""
               : stage ? ", waiting for "
                       : "Waiting for ",
               awaits ? awaits : "");
}

/* Starts the replay of the user's login pack. Hooks of display managers and user@.service start the
 * same replay earlier. But not every display manager has a hook, and the user@.service of a user
 * with lingering has been running since the boot. */
static void start_login_replay(const Daemon *d, uint32_t uid)
{
    const Arguments *a = &d->arguments;
    char name[64], path[4096];
    int r;

    if (!a->automatic || !a->run || uid == UID_INVALID)
        return;
    snprintf(path, sizeof(path), "%s/replay-login@%" PRIu32 ".json", a->run, uid);
    if (access(path, F_OK) == 0)
        return;
    snprintf(name, sizeof(name), "headstart-replay-user@%" PRIu32 ".service", uid);
    r = stage_source_start_unit(d->stages, name);
    if (r < 0)
        log_debug_errno(r, "headstartd: cannot start %s, ignoring: %m", name);
}

/* --- callbacks of the stage source ------------------------------------------------------------ */

static int change_stage(Daemon *d, const StageChange *c)
{
    int r = 0;

    recording_stage_end(&d->recording, c->drop, c->settled_ago);
    d->recording.automatic = c->automatic;
    if (c->next == STAGE_LOGIN)
        start_login_replay(d, c->uid);
    if ((int)c->next < 0)
        return sd_event_exit(d->event, 0);
    if (c->next != STAGE_PAUSE)
        r = recording_stage_begin(&d->recording, c->next, c->uid, c->others);
    if (r < 0)
        return sd_event_exit(d->event, 1);
    /* A source that knows the end condition of the stage reports it after this function has
     * returned. */
    if (!d->awaits)
        notify_status(d);
    return 0;
}

static int on_change(void *arg, const StageChange *c)
{
    Daemon *d = arg;

    switch ((int)c->next) {
    case STAGE_SHARED:
        recorder_set_uid(d->recorder, c->uid);
        return 0;
    case STAGE_ENOUGH:
        recording_stage_finish(&d->recording, false, USEC_INFINITY);
        recorder_drop_interval(d->recorder);
        return 0;
    case STAGE_USERS:
        recording_stage_change_users(&d->recording, c->uid, c->others);
        return 0;
    default:
        return change_stage(d, c);
    }
}

static void on_awaits(void *arg, const char *condition)
{
    Daemon *d = arg;

    d->awaits = condition;
    notify_status(d);
}

static void on_ready(void *arg, Stage stage, usec_t age)
{
    Daemon *d = arg;

    recorder_note_ready(d->recorder, stage, age);
}

static uint64_t count_starts(void *arg)
{
    Daemon *d = arg;

    return recorder_n_starts(d->recorder);
}

/* --- beginning and end ------------------------------------------------------------------------ */

/* Returns 1 to continue; 0 with --stage=auto if this kernel or machine never allows recording,
 * which is then no failure; or a negative errno that was reported. */
static int start_recorder(Daemon *d)
{
    _cleanup_free_ char *why = NULL;
    int r = recorder_new(&d->arguments.recorder, &d->recorder, &why);

    if ((r == -ENOSYS || r == -ENODEV) && d->arguments.automatic) {
        log_notice("headstartd: %s",
                   why ? why : "this kernel does not report which files are opened");
        sd_notify(false, "STATUS=Nothing can be recorded here");
        return 0;
    }
    if (r < 0)
        return log_error_errno(r, "headstartd: %s%s%m", why ? why : "", why ? ": " : "");
    if (recorder_limits(d->recorder))
        log_notice("headstartd: %s", recorder_limits(d->recorder));
    r = recorder_attach(d->recorder, d->event);
    return r < 0 ? log_error_errno(r, "headstartd: cannot set up the event loop: %m") : 1;
}

static int run(Daemon *d)
{
    RecordingStage *s = &d->recording;
    int r = start_recorder(d);

    if (r <= 0)
        return r;
    s->recorder = d->recorder;
    s->stages = d->stages;
    s->root_fd = d->root_fd;
    r = recording_stage_begin(s, stage_source_first(d->stages), UID_INVALID, false);
    if (r < 0)
        return r;
    if (!d->awaits)
        notify_status(d);
    r = sd_event_loop(d->event);
    sd_notify(false, "STOPPING=1");
    stop_limit_begin();
    /* With --stage=auto the stage was cut short and gets no trace, so that a shutdown does not wait
     * for one. */
    recording_stage_end(s, d->arguments.automatic, USEC_INFINITY);
    return r < 0 ? log_error_errno(r, "headstartd: the event loop failed: %m") : r;
}

static int block_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    sigaddset(&signals, SIGHUP);
    return sigprocmask(SIG_BLOCK, &signals, NULL) < 0 ? -errno : 0;
}

static int open_stages(Daemon *d)
{
    const StageCallbacks callbacks = {on_change, on_awaits, on_ready, count_starts, d};
    const Arguments *a = &d->arguments;

    if (!a->automatic)
        return stage_source_new_list(d->event, a->stages, a->n_stages, &callbacks, &d->stages);
    d->root_fd = open(a->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (d->root_fd < 0)
        return -errno;
    return stage_source_new_system(d->event, d->root_fd, &callbacks, &d->stages);
}

/* Logs which stages are recorded anew. */
static void log_rerecord(const Rerecord *x)
{
    char stages[64] = "";
    JournalEntry e;
    size_t n = 0;

    for (Stage s = 0; s < _STAGE_MAX; s++)
        if (x->stages[s].requested)
            n += (size_t)snprintf(stages + n, sizeof(stages) - n, "%s%s", n > 0 ? ", " : "",
                                  stage_to_string(s));
    if (n == 0)
        return;
    journal_entry_begin(&e, JOURNAL_RERECORD, LOG_NOTICE);
    journal_entry_add(&e, "HEADSTART_STAGES", "%s", stages);
    journal_log(&e, LOG_NOTICE, "headstartd: recording without replay, as requested: %s", stages);
}

static int restore_read_ahead(const char *run)
{
    char path[PATH_MAX];
    int r;

    snprintf(path, sizeof(path), "%s/" READ_AHEAD_RECORD, run ? run : HEADSTART_RUN_DIR);
    r = read_ahead_restore(path);
    return r < 0 ? log_error_errno(r, "headstartd: cannot restore read-ahead: %m") : 0;
}

/* Makes the runtime directory. If another user has prepared it, or if it cannot be made, the daemon
 * runs without one. Then it does not lower read-ahead either, because nothing would restore it. */
static void make_runtime_directory(Arguments *a)
{
    _cleanup_close_ int fd = -EBADF;
    int r = a->run ? state_directory_open(a->run, true, &fd) : 0;

    if (r >= 0)
        return;
    log_warning_errno(r, "headstartd: %s cannot be used, continuing without it: %m", a->run);
    a->run = a->recorder.run_dir = NULL;
}

static int set_up(Daemon *d)
{
    Arguments *a = &d->arguments;
    int r;

    make_runtime_directory(a);
    a->recorder.had_login = recording_stage_had_login(a);
    if (a->automatic) {
        r = rerecord_read(a->state, clock_now(CLOCK_REALTIME), &d->recording.rerecord);
        if (r < 0)
            log_warning_errno(r, "headstartd: %s: cannot read which stages to record anew: %m",
                              a->state);
        log_rerecord(&d->recording.rerecord);
        /* headstart-init lowers read-ahead for the recording of a boot, and does not know that its
         * request has expired. */
        if (a->run && !d->recording.rerecord.stages[STAGE_BOOT].exact)
            (void)restore_read_ahead(a->run);
    }
    r = block_signals();
    if (r >= 0)
        r = stop_limit_watch();
    if (r >= 0)
        r = sd_event_default(&d->event);
    if (r >= 0)
        r = sd_event_add_signal(d->event, NULL, SIGTERM, NULL, NULL);
    if (r >= 0)
        r = sd_event_add_signal(d->event, NULL, SIGINT, NULL, NULL);
    if (r >= 0)
        r = open_stages(d);
    d->recording.event = d->event;
    return r < 0 ? log_error_errno(r, "headstartd: cannot set up the event loop: %m") : 0;
}

int main(int argc, char **argv)
{
    Daemon d = {
            .root_fd = -EBADF,
            .recording = {.stage = _STAGE_INVALID, .results = SESSION_RESULTS_EMPTY},
    };
    int r;

    (void)call_filter_complete(); /* without it, the unit's own filter still applies */
    log_parse_environment();
    r = arguments_parse(argc, argv, &d.arguments);
    if (r <= 0)
        return r < 0 ? 2 : 0;
    if (d.arguments.restore)
        return restore_read_ahead(d.arguments.run) < 0 ? 1 : 0;
    d.recording.arguments = &d.arguments;
    /* No unit is ordered after headstartd, but the boot is not finished while its start job runs.
     * On a slow machine the setup takes seconds, so READY=1 is sent before it. */
    if (d.arguments.automatic)
        sd_notify(false, "READY=1\nSTATUS=Starting to listen");
    r = set_up(&d);
    if (r >= 0)
        r = run(&d);
    recorder_free(d.recorder);
    stage_source_free(d.stages);
    sd_event_unref(d.event);
    closep(&d.root_fd);
    return r != 0 || d.recording.failed ? 1 : 0;
}
