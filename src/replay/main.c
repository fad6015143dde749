/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart-replay: reads one pack and executes it. It starts from a cold disk, where every library
 * is a seek: libc alone, no JSON reader, nothing allocated that is not needed. */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/kernel.h"
#include "base/log.h"
#include "base/parse.h"
#include "config-paths.h"
#include "replay/executor.h"
#include "replay/notify.h"
#include "replay/report.h"
#include "replay/sweep.h"

#include <fcntl.h>
#include <getopt.h>
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

static void help(void)
{
    printf("headstart-replay [OPTIONS...] PACK...\n\n"
           "Brings what a pack names into the page cache; of several the first that is there.\n\n"
           "  -h --help             Show this help\n"
           "     --version          Show version\n"
           "     --root=DIR         Replay below DIR: only filesystems mounted there count\n"
           "     --wait             Return when everything is resident\n"
           "     --hurry            A login has begun: at best-effort priority, the likeliest first\n"
           "     --settle=TIME      Begin when little is read, after TIME at the latest\n"
           "     --mount-wait=TIME  Wait so long for filesystems that are mounted later\n"
           "     --timeout=TIME     Leave what has not been read after TIME\n"
           "     --dry-run          Print the operations instead of carrying them out\n"
           "     --policy=POLICY    metadata, concurrent, gate or idle, instead of the pack's\n"
           "                        own, also in a control session\n"
           "     --ioprio=CLASS     idle or best-effort, instead of the policy's own\n"
           "     --force            Replay even in a control session or with headstart=0\n"
           "     --status=FILE      Write the result to FILE, as JSON\n"
           "     --json             Print the result as JSON\n\n"
           "See headstart-replay(8).\n");
}

static int usage_error(const char *message, const char *value)
{
    log_error("headstart-replay: %s%s%s", message, value ? ": " : "", value ? value : "");
    return -EINVAL;
}

/* 1 go on, 0 done (help was asked for), < 0 wrong usage */
static int parse_arguments(int argc, char **argv, Arguments *ret)
{
    enum {
        OPTION_VERSION = 256,
        OPTION_ROOT,
        OPTION_WAIT,
        OPTION_DRY_RUN,
        OPTION_POLICY,
        OPTION_IOPRIO,
        OPTION_FORCE,
        OPTION_SETTLE,
        OPTION_HURRY,
        OPTION_MOUNT_WAIT,
        OPTION_TIMEOUT,
        OPTION_STATUS,
        OPTION_JSON,
    };
    static const struct option options[] = {
            {"help", no_argument, NULL, 'h'},
            {"version", no_argument, NULL, OPTION_VERSION},
            {"root", required_argument, NULL, OPTION_ROOT},
            {"wait", no_argument, NULL, OPTION_WAIT},
            {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
            {"policy", required_argument, NULL, OPTION_POLICY},
            {"ioprio", required_argument, NULL, OPTION_IOPRIO},
            {"mount-wait", required_argument, NULL, OPTION_MOUNT_WAIT},
            {"timeout", required_argument, NULL, OPTION_TIMEOUT},
            {"hurry", no_argument, NULL, OPTION_HURRY},
            {"settle", required_argument, NULL, OPTION_SETTLE},
            {"force", no_argument, NULL, OPTION_FORCE},
            {"status", required_argument, NULL, OPTION_STATUS},
            {"json", no_argument, NULL, OPTION_JSON},
            {NULL, 0, NULL, 0},
    };
    Arguments a = {.root = "/", .policy = _POLICY_INVALID, .timeout = TIMEOUT_MAX};
    int c;

    while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
        switch (c) {
        case 'h':
            help();
            return 0;
        case OPTION_VERSION:
            printf("headstart-replay %s\n", HEADSTART_VERSION);
            return 0;
        case OPTION_ROOT:
            a.root = optarg;
            break;
        case OPTION_WAIT:
            a.wait = true;
            break;
        case OPTION_DRY_RUN:
            a.dry_run = true;
            break;
        case OPTION_POLICY:
            a.policy = policy_from_string(optarg);
            if ((int)a.policy < 0)
                return usage_error("unknown policy", optarg);
            break;
        case OPTION_IOPRIO:
            a.io_class = strcmp(optarg, "idle") == 0          ? IO_CLASS_IDLE
                         : strcmp(optarg, "best-effort") == 0 ? IO_CLASS_BEST_EFFORT
                                                              : 0;
            if (!a.io_class)
                return usage_error("unknown I/O priority class", optarg);
            break;
        case OPTION_MOUNT_WAIT:
            if (parse_timespan(optarg, &a.mount_wait) < 0 || a.mount_wait > MOUNT_WAIT_MAX)
                return usage_error("not a time span of at most 5min", optarg);
            break;
        case OPTION_TIMEOUT:
            if (parse_timespan(optarg, &a.timeout) < 0 || a.timeout == 0 || a.timeout > TIMEOUT_MAX)
                return usage_error("not a time span of at most 1h", optarg);
            break;
        case OPTION_HURRY:
            a.hurry = true;
            break;
        case OPTION_SETTLE:
            if (parse_timespan(optarg, &a.settle) < 0 || a.settle > SETTLE_MAX)
                return usage_error("not a time span of at most 5min", optarg);
            break;
        case OPTION_FORCE:
            a.force = true;
            break;
        case OPTION_STATUS:
            a.status = optarg;
            break;
        case OPTION_JSON:
            a.json = true;
            break;
        default:
            return -EINVAL; /* getopt said why */
        }
    if (optind == argc)
        return usage_error("which pack?", NULL);
    a.packs = argv + optind;
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
        const SweepOptions options = {
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

        r = sweep(&loading.pack, &options, &report);
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
