/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart-replay: reads one pack and executes it. It starts from a cold disk, where every library
 * is a seek: libc alone, no JSON reader, nothing allocated that is not needed. */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/kernel.h"
#include "base/log.h"
#include "base/options.h"
#include "base/parse.h"
#include "config-paths.h"
#include "replay/executor.h"
#include "replay/notify.h"
#include "replay/report.h"
#include "replay/sweep.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#define EXIT_USAGE 2

/* The manager does not wait longer for the pack to be read, whatever the pack may then ask for. */
#define LOAD_HELD_MAX (2 * USEC_PER_SEC)

typedef struct Arguments {
    char **packs; /* the first that is there; NULL after the last */
    const char *root;
    const char *status; /* file to write the result to, or NULL */
    Policy policy;      /* _POLICY_INVALID: what the pack says */
    int io_class;       /* 0: what the policy says */
    usec_t settle;      /* wait so long at most until it is quiet; 0: not at all */
    usec_t mount_wait;  /* and so long for filesystems that are not mounted yet */
    usec_t timeout;     /* and so long for all of it */
    bool hurry;         /* a login has begun */
    bool wait, dry_run, json, force;
} Arguments;

enum {
    OPTION_HELP = 1,
    OPTION_VERSION,
    OPTION_ROOT,
    OPTION_WAIT,
    OPTION_HURRY,
    OPTION_SETTLE,
    OPTION_MOUNT_WAIT,
    OPTION_TIMEOUT,
    OPTION_DRY_RUN,
    OPTION_POLICY,
    OPTION_IOPRIO,
    OPTION_FORCE,
    OPTION_STATUS,
    OPTION_JSON,
};

static const Option options[] = {
        {OPTION_HELP, 'h', "help", NULL, "Show this help"},
        {OPTION_VERSION, 0, "version", NULL, "Show the version"},
        {OPTION_ROOT, 0, "root", "DIR", "Replay only filesystems mounted at or below DIR"},
        {OPTION_WAIT, 0, "wait", NULL, "Return when everything is in the page cache"},
        {OPTION_HURRY, 0, "hurry", NULL,
         "Read at best-effort priority and the likeliest\ndata first: a login has begun"},
        {OPTION_SETTLE, 0, "settle", "TIME", "Start when the disk is quiet, after TIME at most"},
        {OPTION_MOUNT_WAIT, 0, "mount-wait", "TIME", "Wait up to TIME for later mounts"},
        {OPTION_TIMEOUT, 0, "timeout", "TIME", "Stop after TIME"},
        {OPTION_DRY_RUN, 0, "dry-run", NULL, "Print the operations, read nothing"},
        {OPTION_POLICY, 0, "policy", "POLICY",
         "Override the pack's policy: metadata,\nconcurrent, gate or idle. Also replays in a\n"
         "control session"},
        {OPTION_IOPRIO, 0, "ioprio", "CLASS", "I/O priority: idle or best-effort"},
        {OPTION_FORCE, 0, "force", NULL, "Replay in a control session and with headstart=0"},
        {OPTION_STATUS, 0, "status", "FILE", "Write the result to FILE as JSON"},
        {OPTION_JSON, 0, "json", NULL, "Print the result as JSON"},
        {0},
};

static void help(void)
{
    puts("headstart-replay [OPTIONS…] PACK…\n\n"
         "Read the first PACK that exists into the page cache.\n\n"
         "Options:");
    options_print(options);
    puts("\nSee the headstart-replay(8) man page for details.");
}

/* 1: go on; 0: --help or --version was printed; -EINVAL: wrong usage, reported. */
static int parse_arguments(int argc, char **argv, Arguments *ret)
{
    Arguments a = {.root = "/", .policy = _POLICY_INVALID, .timeout = TIMEOUT_MAX};
    Options o = {.own = options, .argc = argc, .argv = argv};
    const char *value;
    int k, n;

    while ((k = options_next(&o, &value)) > 0)
        switch (k) {
        case OPTION_HELP:
            help();
            return 0;
        case OPTION_VERSION:
            printf("headstart-replay %s\n", HEADSTART_VERSION);
            return 0;
        case OPTION_ROOT:
            a.root = value;
            break;
        case OPTION_WAIT:
            a.wait = true;
            break;
        case OPTION_DRY_RUN:
            a.dry_run = true;
            break;
        case OPTION_POLICY:
            a.policy = policy_from_string(value);
            if ((int)a.policy < 0)
                return options_refuse("headstart-replay", "no such policy: '%s'", value);
            break;
        case OPTION_IOPRIO:
            a.io_class = strcmp(value, "idle") == 0          ? IO_CLASS_IDLE
                         : strcmp(value, "best-effort") == 0 ? IO_CLASS_BEST_EFFORT
                                                             : 0;
            if (!a.io_class)
                return options_refuse("headstart-replay", "no such I/O priority: '%s'", value);
            break;
        case OPTION_MOUNT_WAIT:
            if (parse_timespan(value, &a.mount_wait) < 0 || a.mount_wait > MOUNT_WAIT_MAX)
                return options_refuse("headstart-replay",
                                      "--mount-wait=%s: not a time span up to 5min", value);
            break;
        case OPTION_TIMEOUT:
            if (parse_timespan(value, &a.timeout) < 0 || a.timeout == 0 || a.timeout > TIMEOUT_MAX)
                return options_refuse("headstart-replay",
                                      "--timeout=%s: not a time span above zero and up to 1h",
                                      value);
            break;
        case OPTION_HURRY:
            a.hurry = true;
            break;
        case OPTION_SETTLE:
            if (parse_timespan(value, &a.settle) < 0 || a.settle > SETTLE_MAX)
                return options_refuse("headstart-replay", "--settle=%s: not a time span up to 5min",
                                      value);
            break;
        case OPTION_FORCE:
            a.force = true;
            break;
        case OPTION_STATUS:
            a.status = value;
            break;
        case OPTION_JSON:
            a.json = true;
            break;
        }
    if (k < 0)
        return options_refuse("headstart-replay", "%s", o.message);
    a.packs = options_arguments(&o, &n);
    if (n == 0)
        return options_refuse("headstart-replay", "no pack given");
    *ret = a;
    return 1;
}

/* Reads and checks the pack. It is read whole, not mapped: what was checked stays what is used. On
 * failure one line was logged. */
static int load_pack(const char *path, char **ret_buf, Pack *ret)
{
    _cleanup_free_ char *buf = NULL;
    const char *reason = NULL;
    size_t size;
    int r;

    r = file_read_whole(AT_FDCWD, path, PACK_SIZE_MAX, &buf, &size);
    if (r == -EBADMSG)
        return log_error_errno(r, "headstart-replay: %s: not a regular file", path);
    if (r == -E2BIG)
        return log_error_errno(r, "headstart-replay: %s: larger than a pack may be", path);
    if (r < 0)
        return log_error_errno(r, "headstart-replay: %s: %m", path);
    r = pack_open(buf, size, ret, &reason);
    if (r < 0)
        return log_error_errno(r, "headstart-replay: %s: %s", path,
                               size == 0 ? "empty file" : reason);
    *ret_buf = TAKE_PTR(buf);
    return 0;
}

/* A pack that is read by a thread: the disk may hang. */
typedef struct Loading {
    char *const *packs;
    const char *path; /* which of them it is */
    char *buf;
    Pack pack;
    int error;
    bool done;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} Loading;

static void *load(void *arg)
{
    Loading *l = arg;
    char *const *path = l->packs;
    int r;

    /* The filesystem of the first may not be mounted yet. */
    while (path[1] && access(*path, F_OK) < 0)
        path++;
    r = load_pack(*path, &l->buf, &l->pack);
    pthread_mutex_lock(&l->lock);
    l->path = *path;
    l->error = r;
    l->done = true;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Waits for that. The manager is told after a while that it need not: *ret_told. 0, or a negative
 * errno after one line was logged. */
static int await_pack(Loading *l, bool *ret_told)
{
    struct timespec ts = timespec_of(clock_now(CLOCK_MONOTONIC) + LOAD_HELD_MAX);
    pthread_condattr_t attributes;
    pthread_t thread;
    int r;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&l->changed, &attributes);
    pthread_mutex_init(&l->lock, NULL);
    r = -pthread_create(&thread, NULL, load, l);
    if (r < 0)
        return log_error_errno(r, "headstart-replay: cannot start: %m");
    pthread_mutex_lock(&l->lock);
    while (!l->done && pthread_cond_timedwait(&l->changed, &l->lock, &ts) == 0)
        continue;
    *ret_told = !l->done;
    if (!l->done)
        notify_manager("READY=1\nSTATUS=Waiting for the disk");
    while (!l->done)
        pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
    pthread_join(thread, NULL);
    return l->error;
}

static bool is_control_session(const Pack *p)
{
    char id[KERNEL_BOOT_ID_SIZE];

    return kernel_boot_id(AT_FDCWD, id) >= 0 && pack_is_control(p, id);
}

/* What this session asks for, before anything is done. */
static ReplayOutcome decide(const Arguments *a, const Pack *p, Policy policy)
{
    if (!a->force && kernel_command_line_has(AT_FDCWD, "headstart=0"))
        return REPLAY_OUTCOME_DISABLED;
    /* A policy that was asked for is an order. */
    if (!a->force && (int)a->policy < 0 && is_control_session(p))
        return REPLAY_OUTCOME_CONTROL;
    if (policy == POLICY_OFF)
        return REPLAY_OUTCOME_OFF;
    return a->dry_run ? REPLAY_OUTCOME_DRY_RUN : REPLAY_OUTCOME_DONE;
}

/* Stops just before the act. */
static int dry_run(const Arguments *a, const Pack *p, const char *root, Report *report)
{
    _cleanup_mounted_table_ MountedTable mounted = {0};
    _cleanup_operation_list_ OperationList list = {0};
    ReplayResult *s = &report->result;
    int r;

    r = mounted_table_read(p, root, &mounted);
    if (r < 0)
        return log_error_errno(r, "headstart-replay: cannot read the mount table: %m");
    r = operations_from_pack(p, mounted.facts, report->policy, &list);
    if (r < 0)
        return log_oom();
    memcpy(s->n_skipped, list.n_skipped, sizeof(s->n_skipped));
    for (size_t i = 0; i < list.n; i++) {
        const Operation *o = &list.operations[i];
        _cleanup_free_ char *line =
                a->json ? operation_to_json(p, &mounted, o) : operation_to_text(p, &mounted, o);
        uint64_t offset, length;

        if (!line)
            return log_oom();
        puts(line);
        operation_range(p, o, &offset, &length);
        s->n_metadata += o->kind == OPERATION_METADATA;
        s->n_opened += o->kind == OPERATION_OPEN;
        s->n_data += o->kind == OPERATION_DATA;
        *(o->kind == OPERATION_METADATA ? &s->metadata_bytes : &s->data_bytes) += length;
    }
    return 0;
}

/* Where `headstart status` and the recorder look, when this is a service of ours. */
static char *status_path(const Arguments *a, Stage stage)
{
    const char *dir = getenv("RUNTIME_DIRECTORY");
    char *path = NULL;

    if (a->status)
        return strdup(a->status);
    if (a->dry_run || !dir || dir[0] != '/' || strchr(dir, ':'))
        return NULL;
    return asprintf(&path, "%s/replay-%s.json", dir, stage_to_string(stage)) < 0 ? NULL : path;
}

static int print(const Report *report, bool as_json)
{
    _cleanup_free_ char *text = as_json ? report_to_json(report) : report_to_text(report);

    if (!text)
        return log_oom();
    puts(text);
    if (fflush(stdout) != 0)
        log_warning_errno(errno, "headstart-replay: cannot print the result, ignoring: %m");
    return 0;
}

static int run(const Arguments *a)
{
    _cleanup_free_ char *status = NULL, *root = NULL, *buf = NULL;
    Loading loading = {.packs = a->packs};
    Report report = {0};
    bool told = false;
    int r;

    report_start(&report);
    r = await_pack(&loading, &told);
    if (r < 0)
        return r;
    buf = loading.buf;
    /* Mount points are written without symlinks. */
    root = realpath(a->root, NULL);
    if (!root)
        return log_error_errno(errno, "headstart-replay: %s: %m", a->root);
    report.pack = loading.path;
    report.stage = (Stage)loading.pack.header->stage;
    report.policy = (int)a->policy >= 0 ? a->policy : (Policy)loading.pack.header->policy;
    report.outcome = decide(a, &loading.pack, report.policy);
    report.status = status = status_path(a, report.stage);

    if (report.outcome == REPLAY_OUTCOME_DRY_RUN)
        r = dry_run(a, &loading.pack, root, &report);
    else if (report.outcome == REPLAY_OUTCOME_DONE) {
        const SweepOptions sweep_options = {
                .root = root,
                .policy = report.policy,
                .io_class = a->io_class                    ? (IoClass)a->io_class
                            : report.policy == POLICY_IDLE ? IO_CLASS_IDLE
                                                           : IO_CLASS_BEST_EFFORT,
                .settle = a->settle,
                .mount_wait = a->mount_wait,
                .timeout = a->timeout,
                .wait = a->wait,
                .hurry = a->hurry,
                .ready = told,
        };

        r = sweep(&loading.pack, &sweep_options, &report);
    } else
        notify_manager("READY=1");
    if (r < 0)
        return r;

    if (report.duration_usec == 0)
        report.duration_usec = clock_now(CLOCK_MONOTONIC) - report.start;
    r = print(&report, a->json);
    if (r < 0)
        return r;
    r = report_save(&report);
    if (r < 0)
        log_warning_errno(r, "headstart-replay: cannot write %s, ignoring: %m", report.status);
    /* Threads may be in the middle of something: their memory stays theirs. */
    if (report.outcome == REPLAY_OUTCOME_STOPPED)
        _exit(EXIT_SUCCESS);
    return 0;
}

int main(int argc, char **argv)
{
    Arguments a = {0};
    sigset_t hurry;
    int r;

    /* That a login has begun is kept until the sweep has. */
    sigemptyset(&hurry);
    sigaddset(&hurry, SIGUSR1);
    sigprocmask(SIG_BLOCK, &hurry, NULL);
    log_parse_environment();
    r = parse_arguments(argc, argv, &a);
    if (r <= 0)
        return r < 0 ? EXIT_USAGE : EXIT_SUCCESS;
    return run(&a) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
