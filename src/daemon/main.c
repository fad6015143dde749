/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstartd: records stages and writes their traces. */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "config-paths.h"
#include "daemon/session.h"
#include "daemon/stages.h"
#include "record/read-ahead.h"
#include "record/recorder.h"
#include "trace/trace-store.h"

#include <getopt.h>
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
    RecorderOptions recorder;
    uint32_t uid; /* whose login and session it is, where nobody else says */
    bool restore;
} Arguments;

typedef struct Daemon {
    Arguments a;
    Recorder *recorder;
    StageSource *stages;
    Session *session; /* while that stage is recorded */
    sd_event *event;
    bool failed; /* a trace could not be made or written */
} Daemon;

static void help(void)
{
    printf("headstartd [OPTIONS...]\n\n"
           "Records what a boot, a login and a session read.\n\n"
           "  -h --help               Show this help\n"
           "     --version            Show version\n"
           "     --root=DIR           Record below DIR only; paths start there\n"
           "     --state=DIR          Write traces below DIR (default " HEADSTART_STATE_DIR ")\n"
           "     --run=DIR            Runtime directory (default " HEADSTART_RUN_DIR ")\n"
           "     --stage=STAGE[,...]  Record these stages; SIGUSR1 ends one and begins the next\n"
           "     --uid=UID            Whose login and session it is\n"
           "     --exact              Lower read-ahead while recording: ranges are what was touched\n"
           "     --restore            Give back read-ahead after a crash, and exit\n"
           "     --pretend=no-THING[,...]  Do without cachestat, proc-connector or fowner\n\n"
           "See headstartd(8).\n");
}

static int parse_stages(char *list, Arguments *a)
{
    a->n_stages = 0;
    for (char *save = NULL, *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        Stage s = stage_from_string(w);

        if ((int)s < 0 || a->n_stages >= _STAGE_MAX) {
            log_error("headstartd: unknown stage: %s", w);
            return -EINVAL;
        }
        a->stages[a->n_stages++] = s;
    }
    return 0;
}

static int parse_pretend(char *list, RecorderOptions *o)
{
    for (char *save = NULL, *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (strcmp(w, "no-cachestat") == 0)
            o->no_cachestat = true;
        else if (strcmp(w, "no-proc-connector") == 0)
            o->no_proc_connector = true;
        else if (strcmp(w, "no-fowner") == 0)
            o->no_fowner = true;
        else {
            log_error("headstartd: cannot pretend: %s", w);
            return -EINVAL;
        }
    }
    return 0;
}

/* 1 go on, 0 done (help was asked for), < 0 wrong usage */
static int parse_arguments(int argc, char **argv, Arguments *a)
{
    enum {
        OPT_VERSION = 256,
        OPT_ROOT,
        OPT_STATE,
        OPT_RUN,
        OPT_STAGE,
        OPT_UID,
        OPT_EXACT,
        OPT_RESTORE,
        OPT_PRETEND
    };
    static const struct option options[] = {
            {"help", no_argument, NULL, 'h'},
            {"version", no_argument, NULL, OPT_VERSION},
            {"root", required_argument, NULL, OPT_ROOT},
            {"state", required_argument, NULL, OPT_STATE},
            {"run", required_argument, NULL, OPT_RUN},
            {"stage", required_argument, NULL, OPT_STAGE},
            {"uid", required_argument, NULL, OPT_UID},
            {"exact", no_argument, NULL, OPT_EXACT},
            {"restore", no_argument, NULL, OPT_RESTORE},
            {"pretend", required_argument, NULL, OPT_PRETEND},
            {NULL, 0, NULL, 0},
    };
    uint64_t number;
    int c;

    *a = (Arguments){.root = "/", .state = HEADSTART_STATE_DIR, .uid = UINT32_MAX};
    while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
        switch (c) {
        case 'h':
            help();
            return 0;
        case OPT_VERSION:
            printf("headstartd %s\n", HEADSTART_VERSION);
            return 0;
        case OPT_ROOT:
            a->root = optarg;
            break;
        case OPT_STATE:
            a->state = optarg;
            break;
        case OPT_RUN:
            a->run = optarg;
            break;
        case OPT_STAGE:
            if (parse_stages(optarg, a) < 0)
                return -EINVAL;
            break;
        case OPT_UID:
            if (parse_u64(optarg, &number) < 0 || number >= UINT32_MAX) {
                log_error("headstartd: not a user id: %s", optarg);
                return -EINVAL;
            }
            a->uid = (uint32_t)number;
            break;
        case OPT_EXACT:
            a->recorder.exact = true;
            break;
        case OPT_RESTORE:
            a->restore = true;
            break;
        case OPT_PRETEND:
            if (parse_pretend(optarg, &a->recorder) < 0)
                return -EINVAL;
            break;
        default:
            return -EINVAL; /* getopt said why */
        }
    if (optind < argc) {
        log_error("headstartd: unexpected argument: %s", argv[optind]);
        return -EINVAL;
    }
    /* Another root's recorder has no business with this machine's /run. */
    if (!a->run && strcmp(a->root, "/") == 0)
        a->run = HEADSTART_RUN_DIR;
    a->recorder.root = a->root;
    a->recorder.run_dir = a->run;
    return 1;
}

/* Ends the current stage, if one is being recorded, and writes its trace. */
static void finish_stage(Daemon *d)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_trace_ Trace *t = NULL;
    char duration[FORMAT_TIMESPAN_MAX];
    unsigned flags = session_end(TAKE_PTR(d->session));
    int r = recorder_end_stage(d->recorder, &t);

    if (r == -ESRCH)
        return;
    if (r >= 0)
        t->flags |= flags;
    if (r >= 0)
        r = trace_store(d->a.state, t, &path);
    if (r < 0) {
        log_error_errno(r, "headstartd: cannot write the trace of this stage below %s: %m",
                        d->a.state);
        d->failed = true;
        return;
    }
    log_info("headstartd: recorded %s: %zu accesses to %zu files by %zu applications in %s: %s",
             stage_to_string(t->stage), t->n_accesses, t->n_files, t->n_applications,
             format_timespan(duration, sizeof(duration), t->duration), path);
    if (t->flags & TRACE_INCOMPLETE)
        log_warning("headstartd: the event queue overflowed %" PRIu64
                    " times: this trace is incomplete",
                    t->n_overflows);
    /* What the stage needed is of no use to the next. */
    t = trace_free(t);
    malloc_trim(0);
}

static int begin_stage(Daemon *d, Stage stage, uint32_t uid)
{
    int r;

    if (stage != STAGE_BOOT && uid == UINT32_MAX)
        uid = d->a.uid;
    r = recorder_begin_stage(d->recorder, stage, uid);
    if (r < 0)
        return log_error_errno(r, "headstartd: cannot record %s: %m", stage_to_string(stage));
    if (stage == STAGE_SESSION) {
        const SessionOptions o = {.root = d->a.root, .state = d->a.state, .run_dir = d->a.run};

        (void)session_new(&o, d->recorder, d->event, uid, &d->session);
    }
    sd_notifyf(false, "READY=1\nSTATUS=Recording %s", stage_to_string(stage));
    return 0;
}

static int on_stage_changed(void *arg, Stage next, uint32_t uid)
{
    Daemon *d = arg;

    finish_stage(d);
    if ((int)next < 0)
        return sd_event_exit(d->event, 0);
    return begin_stage(d, next, uid) < 0 ? sd_event_exit(d->event, 1) : 0;
}

static int run(Daemon *d)
{
    _cleanup_free_ char *why = NULL;
    int r;

    r = recorder_new(&d->a.recorder, &d->recorder, &why);
    if (r < 0)
        return log_error_errno(r, "headstartd: %s%s%m", why ? why : "", why ? ": " : "");
    if (recorder_limits(d->recorder))
        log_notice("headstartd: %s", recorder_limits(d->recorder));
    r = recorder_attach(d->recorder, d->event);
    if (r < 0)
        return log_error_errno(r, "headstartd: cannot set up the event loop: %m");
    r = begin_stage(d, stage_source_first(d->stages), UINT32_MAX);
    if (r < 0)
        return r;
    r = sd_event_loop(d->event);
    sd_notify(false, "STOPPING=1");
    finish_stage(d);
    return r < 0 ? log_error_errno(r, "headstartd: the event loop failed: %m") : r;
}

static int set_up(Daemon *d)
{
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
    if (r >= 0)
        r = stage_source_new_list(d->event, d->a.stages, d->a.n_stages, on_stage_changed, d,
                                  &d->stages);
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
    Daemon d = {0};
    int r;

    log_parse_environment();
    r = parse_arguments(argc, argv, &d.a);
    if (r <= 0)
        return r < 0 ? 2 : 0;
    if (d.a.restore)
        return restore(d.a.run) < 0 ? 1 : 0;
    if (d.a.run && make_directories(d.a.run, 0700) < 0)
        d.a.recorder.run_dir = NULL; /* then nothing is lowered, and nothing is to be restored */
    if (d.a.n_stages == 0) {
        d.a.stages[0] = STAGE_BOOT;
        d.a.n_stages = 1;
    }

    r = set_up(&d);
    if (r >= 0)
        r = run(&d);
    recorder_free(d.recorder);
    stage_source_free(d.stages);
    sd_event_unref(d.event);
    return r != 0 || d.failed ? 1 : 0;
}
