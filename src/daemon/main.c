/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstartd: records stages and writes their traces. */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "base/parse.h"
#include "config-paths.h"
#include "daemon/prefetcher.h"
#include "state/rerecord.h"
#include "daemon/stages.h"
#include "record/read-ahead.h"
#include "record/recorder.h"
#include "state/trace-store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <systemd/sd-daemon.h>

typedef struct Arguments {
    const char *root;
    const char *state;
    const char *run;
    Stage stages[_STAGE_MAX];
    size_t n_stages;
    bool automatic; /* the system says when they are, not SIGUSR1 */
    RecorderOptions recorder;
    uint32_t uid; /* whose login and session it is, where nobody else says */
    bool restore;
} Arguments;

typedef struct Daemon {
    Arguments a;
    Recorder *recorder;
    StageSource *stages;
    Prefetcher *session; /* while that stage is recorded */
    int root_fd;
    sd_event *event;
    Rerecord rerecord;
    Stage recording; /* STAGE_PAUSE: none */
    const char *waits_for;
    bool failed; /* a trace could not be made or written */
} Daemon;

enum {
    OPTION_HELP = 1,
    OPTION_VERSION,
    OPTION_ROOT,
    OPTION_STATE,
    OPTION_RUN,
    OPTION_STAGE,
    OPTION_UID,
    OPTION_EXACT,
    OPTION_RESTORE,
    OPTION_PRETEND,
};

static const Option options[] = {
        {OPTION_HELP, 'h', "help", NULL, "Show this help"},
        {OPTION_VERSION, 0, "version", NULL, "Show the version"},
        {OPTION_ROOT, 0, "root", "DIR", "Record only below DIR; paths are relative to it"},
        {OPTION_STATE, 0, "state", "DIR", "State directory [" HEADSTART_STATE_DIR "]"},
        {OPTION_RUN, 0, "run", "DIR", "Runtime directory [" HEADSTART_RUN_DIR "]"},
        {OPTION_STAGE, 0, "stage", "STAGE[,…]",
         "Record these stages; SIGUSR1 ends a stage and\nbegins the next. auto, or auto,STAGE[,…]: "
         "follow\nsystemd and logind, record all or only these"},
        {OPTION_UID, 0, "uid", "UID", "User of the recorded login and session"},
        {OPTION_EXACT, 0, "exact", NULL, "Lower read-ahead to record exact ranges; slower"},
        {OPTION_RESTORE, 0, "restore", NULL, "Restore read-ahead after a crash, and exit"},
        {OPTION_PRETEND, 0, "pretend", "no-THING[,…]",
         "Do without cachestat, proc-connector, fowner or\nunlimited-queue"},
        {0},
};

static void help(void)
{
    puts("headstartd [OPTIONS…]\n\n"
         "Record what a boot, a login and a session read.\n\n"
         "Options:");
    options_print(options);
    puts("\nSee the headstartd(8) man page for details.");
}

static int parse_stages(const char *value, Arguments *a)
{
    _cleanup_free_ char *list = strdup(value);

    if (!list)
        return log_oom();
    a->n_stages = 0;
    a->automatic = false;
    for (char *save = NULL, *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        Stage s = stage_from_string(w);

        if (w == list && strcmp(w, "auto") == 0) {
            a->automatic = true;
            continue;
        }
        if ((int)s < 0 || a->n_stages >= _STAGE_MAX)
            return options_refuse("headstartd", "--stage=%s: no such stage: '%s'", value, w);
        a->stages[a->n_stages++] = s;
    }
    return 0;
}

static int parse_pretend(const char *value, RecorderOptions *o)
{
    _cleanup_free_ char *list = strdup(value);

    if (!list)
        return log_oom();
    for (char *save = NULL, *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (strcmp(w, "no-cachestat") == 0)
            o->no_cachestat = true;
        else if (strcmp(w, "no-proc-connector") == 0)
            o->no_proc_connector = true;
        else if (strcmp(w, "no-fowner") == 0)
            o->no_fowner = true;
        else if (strcmp(w, "no-unlimited-queue") == 0)
            o->no_unlimited_queue = true;
        else
            return options_refuse("headstartd", "--pretend=%s: cannot pretend '%s'", value, w);
    }
    return 0;
}

/* 1: go on; 0: --help or --version was printed; < 0: wrong usage, reported. */
static int parse_arguments(int argc, char **argv, Arguments *a)
{
    Options o = {.own = options, .argc = argc, .argv = argv};
    const char *value;
    uint64_t number;
    int k, n;

    *a = (Arguments){.root = "/", .state = HEADSTART_STATE_DIR, .uid = UID_INVALID};
    while ((k = options_next(&o, &value)) > 0)
        switch (k) {
        case OPTION_HELP:
            help();
            return 0;
        case OPTION_VERSION:
            printf("headstartd %s\n", HEADSTART_VERSION);
            return 0;
        case OPTION_ROOT:
            a->root = value;
            break;
        case OPTION_STATE:
            a->state = value;
            break;
        case OPTION_RUN:
            a->run = value;
            break;
        case OPTION_STAGE:
            if (parse_stages(value, a) < 0)
                return -EINVAL;
            break;
        case OPTION_UID:
            if (parse_u64(value, &number) < 0 || number >= UID_INVALID)
                return options_refuse("headstartd", "--uid=%s: not a user id", value);
            a->uid = (uint32_t)number;
            break;
        case OPTION_EXACT:
            a->recorder.exact = true;
            break;
        case OPTION_RESTORE:
            a->restore = true;
            break;
        case OPTION_PRETEND:
            if (parse_pretend(value, &a->recorder) < 0)
                return -EINVAL;
            break;
        }
    if (k < 0)
        return options_refuse("headstartd", "%s", o.message);
    value = *options_arguments(&o, &n);
    if (n > 0)
        return options_refuse("headstartd", "unexpected argument: '%s'", value);
    /* Another root's recorder has no business with this machine's /run. */
    if (!a->run && strcmp(a->root, "/") == 0)
        a->run = HEADSTART_RUN_DIR;
    a->recorder.root = a->root;
    a->recorder.run_dir = a->run;
    return 1;
}

/* headstart-learn.path looks at this file. */
#define LOGIN_RECORDED "login-recorded"
/* There is no second boot, unless userspace was rebooted alone: then this has stayed. */
#define BOOT_RECORDED "boot-recorded"

/* Leaves a file in the runtime directory. True if it was there. */
static bool mark_run(const Daemon *d, const char *name)
{
    _cleanup_close_ int fd = -EBADF;
    bool found;
    int r;

    if (!d->a.automatic || !d->a.run)
        return false;
    fd = open(d->a.run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    found = fd >= 0 && faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    r = fd < 0 ? -errno : atomic_file_write(fd, name, "", 0, 0600);
    if (r < 0)
        log_warning_errno(r, "headstartd: cannot leave %s/%s, ignoring: %m", d->a.run, name);
    return found;
}

/* Ends the current stage, if one is being recorded, and writes its trace, or drops it. */
static void finish_stage(Daemon *d, bool drop)
{
    unsigned flags = prefetcher_trace_flags(d->session);
    _cleanup_free_ char *path = NULL, *left_out = NULL;
    _cleanup_trace_ Trace *t = NULL;
    char duration[FORMAT_TIMESPAN_MAX];
    int r = drop ? recorder_drop_stage(d->recorder) : recorder_end_stage(d->recorder, &t);

    if (r == -ESRCH)
        return;
    if (r >= 0 && drop) {
        log_info("headstartd: %s did not come to its end, dropped", stage_to_string(d->recording));
        return;
    }
    if (r >= 0) {
        t->flags |= flags;
        if (t->stage == STAGE_BOOT && mark_run(d, BOOT_RECORDED))
            t->flags |= TRACE_SOFT_REBOOT;
        r = trace_store(d->a.state, t, &path);
    }
    if (r < 0) {
        log_error_errno(r, "headstartd: cannot write the trace of this stage below %s: %m",
                        d->a.state);
        d->failed = true;
        return;
    }
    log_info("headstartd: recorded %s: %zu accesses to %zu files by %zu applications in %s: %s",
             stage_to_string(t->stage), t->n_accesses, t->n_files, t->n_applications,
             format_timespan(duration, sizeof(duration), t->duration), path);
    left_out = trace_describe_left_out(t);
    if (left_out)
        log_notice("headstartd: left out of this trace, beyond the shares of users: %s", left_out);
    if (t->flags & TRACE_INCOMPLETE)
        log_warning("headstartd: events are missing, the queue overflowed %" PRIu64
                    " times: this trace is incomplete",
                    t->n_overflows);
    if (d->a.automatic) {
        r = rerecord_done(d->a.state, &d->rerecord, t->stage, t->uid);
        if (r < 0)
            log_warning_errno(r, "headstartd: %s: cannot note what was recorded anew, ignoring: %m",
                              d->a.state);
        if (t->stage == STAGE_LOGIN)
            (void)mark_run(d, LOGIN_RECORDED);
    }
    /* What the stage needed is of no use to the next. */
    t = trace_free(t);
    malloc_trim(0);
}

/* Also says that we are ready, to whoever starts us by hand: that we listen. */
static void tell_status(const Daemon *d)
{
    const char *stage = stage_to_string(d->recording);

    sd_notifyf(false, "READY=1\nSTATUS=%s%s%s%s", stage ? "Recording " : "", stage ? stage : "",
               !d->waits_for ? ""
               : stage       ? ", waiting for "
                             : "Waiting for ",
               d->waits_for ? d->waits_for : "");
}

static bool is_wanted(const Daemon *d, Stage stage, uint32_t uid)
{
    if (!d->a.automatic)
        return true;
    if (rerecord_asked(&d->rerecord) && !rerecord_wants(&d->rerecord, stage, uid))
        return false;
    for (size_t i = 0; i < d->a.n_stages; i++)
        if (d->a.stages[i] == stage)
            return true;
    return d->a.n_stages == 0;
}

/* `others`: users besides `uid` are logged in. */
static int begin_stage(Daemon *d, Stage stage, uint32_t uid, bool others)
{
    int r = 0;

    d->recording = STAGE_PAUSE;
    if (stage != STAGE_BOOT && uid == UID_INVALID)
        uid = d->a.uid;
    if (stage != STAGE_PAUSE && is_wanted(d, stage, uid)) {
        recorder_set_exact(d->recorder,
                           d->a.recorder.exact || (rerecord_wants(&d->rerecord, stage, uid) &&
                                                   d->rerecord.stages[stage].exact));
        r = recorder_begin_stage(d->recorder, stage, uid);
        if (r < 0)
            return log_error_errno(r, "headstartd: cannot record %s: %m", stage_to_string(stage));
        d->recording = stage;
        if (stage == STAGE_SESSION) {
            const PrefetcherOptions o = {
                    .root = d->a.root, .state = d->a.state, .run_dir = d->a.run};

            /* The trace is that of `uid`, but the cycle works for everyone who is logged in:
             * applications of all of them count, and files that root owns. */
            (void)prefetcher_new(&o, d->recorder, d->event, others ? UID_INVALID : uid,
                                 &d->session);
        }
    }
    /* Whoever waits for something else now says so in a moment. */
    if (!d->waits_for)
        tell_status(d);
    return 0;
}

/* Somebody is here and waits. Display managers' hooks, and the start of user@.service, were sooner;
 * but not every display manager has one, and a user who lingers has that service since the boot. */
static void hurry_login(const Daemon *d, uint32_t uid)
{
    char name[64], path[4096];
    int r;

    if (!d->a.automatic || !d->a.run || uid == UID_INVALID)
        return;
    snprintf(path, sizeof(path), "%s/replay-login@%" PRIu32 ".json", d->a.run, uid);
    if (access(path, F_OK) == 0)
        return;
    snprintf(name, sizeof(name), "headstart-replay-user@%" PRIu32 ".service", uid);
    r = stage_source_start_unit(d->stages, name);
    if (r < 0)
        log_debug_errno(r, "headstartd: cannot start %s: %m", name);
}

static int on_stage_changed(void *arg, const StageChange *c)
{
    Daemon *d = arg;

    if (c->next == STAGE_SHARED) {
        recorder_set_uid(d->recorder, c->uid);
        return 0;
    }
    if (c->next == STAGE_ENOUGH) {
        finish_stage(d, false);
        return 0;
    }
    finish_stage(d, c->drop);
    d->session = prefetcher_end(d->session);
    if (c->next == STAGE_LOGIN)
        hurry_login(d, c->uid);
    if ((int)c->next < 0)
        return sd_event_exit(d->event, 0);
    return begin_stage(d, c->next, c->uid, c->others) < 0 ? sd_event_exit(d->event, 1) : 0;
}

static void on_awaits(void *arg, const char *condition)
{
    Daemon *d = arg;

    d->waits_for = condition;
    tell_status(d);
}

static uint64_t count_starts(void *arg)
{
    Daemon *d = arg;

    return recorder_n_starts(d->recorder);
}

static int run(Daemon *d)
{
    _cleanup_free_ char *why = NULL;
    int r;

    r = recorder_new(&d->a.recorder, &d->recorder, &why);
    if ((r == -ENOSYS || r == -ENODEV) && d->a.automatic) {
        /* On such a kernel, or without a local disk, there is nothing to do, at every boot: no
         * failure. */
        log_notice("headstartd: %s", why ? why : "this kernel cannot tell what is opened");
        sd_notify(false, "STATUS=Nothing can be recorded here");
        return 0;
    }
    if (r < 0)
        return log_error_errno(r, "headstartd: %s%s%m", why ? why : "", why ? ": " : "");
    if (recorder_limits(d->recorder))
        log_notice("headstartd: %s", recorder_limits(d->recorder));
    r = recorder_attach(d->recorder, d->event);
    if (r < 0)
        return log_error_errno(r, "headstartd: cannot set up the event loop: %m");
    r = begin_stage(d, stage_source_first(d->stages), UID_INVALID, false);
    if (r < 0)
        return r;
    r = sd_event_loop(d->event);
    sd_notify(false, "STOPPING=1");
    /* A machine that shuts down does not wait for us; and what is not over is no boot, no login. */
    finish_stage(d, d->a.automatic);
    d->session = prefetcher_end(d->session);
    return r < 0 ? log_error_errno(r, "headstartd: the event loop failed: %m") : r;
}

static int set_up(Daemon *d)
{
    const StageCallbacks callbacks = {on_stage_changed, on_awaits, count_starts, d};
    sigset_t signals;
    int r;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    sigaddset(&signals, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
        return -errno;
    r = sd_event_default(&d->event);
    if (r >= 0)
        r = sd_event_add_signal(d->event, NULL, SIGTERM, NULL, NULL);
    if (r >= 0)
        r = sd_event_add_signal(d->event, NULL, SIGINT, NULL, NULL);
    if (r >= 0 && d->a.automatic) {
        d->root_fd = open(d->a.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        r = d->root_fd < 0 ? -errno
                           : stage_source_new_system(d->event, d->root_fd, &callbacks, &d->stages);
    }
    if (r >= 0 && !d->a.automatic)
        r = stage_source_new_list(d->event, d->a.stages, d->a.n_stages, &callbacks, &d->stages);
    return r < 0 ? log_error_errno(r, "headstartd: cannot set up the event loop: %m") : 0;
}

static int restore(const char *run)
{
    char path[4200];
    int r;

    snprintf(path, sizeof(path), "%s/read-ahead", run ? run : HEADSTART_RUN_DIR);
    r = read_ahead_restore(path);
    return r < 0 ? log_error_errno(r, "headstartd: cannot give back read-ahead: %m") : 0;
}

int main(int argc, char **argv)
{
    Daemon d = {.root_fd = -EBADF, .recording = STAGE_PAUSE};
    int r;

    log_parse_environment();
    r = parse_arguments(argc, argv, &d.a);
    if (r <= 0)
        return r < 0 ? 2 : 0;
    if (d.a.restore)
        return restore(d.a.run) < 0 ? 1 : 0;
    /* Nobody is ordered after it, but systemd's boot is not over while the job is open: on a slow
     * machine it takes seconds until we listen. */
    if (d.a.automatic)
        sd_notify(false, "READY=1\nSTATUS=Starting to listen");
    if (d.a.run && make_directories(d.a.run, 0700) < 0)
        d.a.recorder.run_dir = NULL; /* then nothing is lowered, and nothing is to be restored */
    if (d.a.automatic) {
        r = rerecord_read(d.a.state, clock_now(CLOCK_REALTIME), &d.rerecord);
        if (r < 0)
            log_warning_errno(r, "headstartd: %s: cannot tell what is to be recorded anew: %m",
                              d.a.state);
    } else if (d.a.n_stages == 0) {
        d.a.stages[0] = STAGE_BOOT;
        d.a.n_stages = 1;
    }

    r = set_up(&d);
    if (r >= 0)
        r = run(&d);
    recorder_free(d.recorder);
    stage_source_free(d.stages);
    sd_event_unref(d.event);
    closep(&d.root_fd);
    return r != 0 || d.failed ? 1 : 0;
}
