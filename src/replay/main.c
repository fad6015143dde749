/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart-replay: reads one pack and executes it. It starts from a cold disk, where every library
 * costs a seek. Therefore it links only libc and zlib (statically where the build can), contains no
 * JSON reader, and allocates only what it needs. */

#include "base/clock.h"
#include "base/compressed-file.h"
#include "base/log.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/rooted.h"
#include "boot/early-delay.h"
#include "config-paths.h"
#include "execute/marker.h"
#include "replay/control.h"
#include "replay/notify.h"
#include "replay/pack-load.h"
#include "replay/report.h"
#include "replay/settle.h"
#include "replay/sweep.h"
#include "system/call-filter.h"
#include "system/kernel.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

#define EXIT_USAGE 2

typedef struct Arguments {
    char **packs; /* pack_load() chooses one; NULL-terminated */
    const char *root;
    const char *status; /* file to write the result to, or NULL */
    const char *marker; /* file that exists while no other replay is needed, or NULL */
    const char *except[REPLAY_EARLIER_MAX]; /* packs; NULL: none */
    Policy policy;                          /* _POLICY_INVALID: that of the pack */
    int io_class;                           /* 0: that of the policy */
    usec_t settle;                          /* longest wait for a quiet disk; 0: none */
    usec_t mount_wait; /* longest wait for filesystems that are not mounted yet; 0: none */
    usec_t timeout;    /* limit of the whole program */
    bool hurry;        /* a login has begun */
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
    OPTION_MARKER,
    OPTION_EXCEPT,
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
        {OPTION_MARKER, 0, "marker", "FILE",
         "Create FILE when the pack needs no further replay,\nremove it if filesystems are missing"},
        {OPTION_EXCEPT, 0, "except", "PACK",
         "Leave out what the replay of PACK has read in\nthis boot; at most twice"},
        {OPTION_JSON, 0, "json", NULL, "Print the result as JSON"},
        {0},
};

static void help(void)
{
    puts("headstart-replay [OPTIONS…] PACK…\n\n"
         "Read the first PACK that exists into the page cache. Of packs with the same file\n"
         "name, read the newest.\n\n"
         "Options:");
    options_print(options);
    puts("\nSee the headstart-replay(8) man page for details.");
}

/* Parses a time span from `min` to `max`; `limit` describes the bounds in words. Returns 0 or
 * -EINVAL, reported. */
static int parse_limited(const char *option, const char *value, usec_t min, usec_t max,
                         const char *limit, usec_t *ret)
{
    usec_t t;

    if (parse_timespan(value, &t) < 0 || t < min || t > max)
        return options_refuse("headstart-replay", "%s%s: not a time span %s", option, value, limit);
    *ret = t;
    return 0;
}

static int parse_policy(const char *value, Policy *ret)
{
    Policy p = policy_from_string(value);

    if ((int)p < 0)
        return options_refuse("headstart-replay", "no such policy: '%s'", value);
    *ret = p;
    return 0;
}

static int parse_io_class(const char *value, int *ret)
{
    if (strcmp(value, "idle") == 0)
        *ret = IO_CLASS_IDLE;
    else if (strcmp(value, "best-effort") == 0)
        *ret = IO_CLASS_BEST_EFFORT;
    else
        return options_refuse("headstart-replay", "no such I/O priority: '%s'", value);
    return 0;
}

static int add_except(const char *value, Arguments *a)
{
    for (size_t i = 0; i < REPLAY_EARLIER_MAX; i++)
        if (!a->except[i]) {
            a->except[i] = value;
            return 0;
        }
    return options_refuse("headstart-replay", "--except= is given more than %u times",
                          REPLAY_EARLIER_MAX);
}

/* Applies one option. Returns 0, or -EINVAL if its value is wrong, reported. */
static int apply_option(int id, const char *value, Arguments *a)
{
    switch (id) {
    case OPTION_ROOT:
        a->root = value;
        return 0;
    case OPTION_WAIT:
        a->wait = true;
        return 0;
    case OPTION_DRY_RUN:
        a->dry_run = true;
        return 0;
    case OPTION_POLICY:
        return parse_policy(value, &a->policy);
    case OPTION_IOPRIO:
        return parse_io_class(value, &a->io_class);
    case OPTION_MOUNT_WAIT:
        return parse_limited("--mount-wait=", value, 0, MOUNT_WAIT_MAX, "up to 5min",
                             &a->mount_wait);
    case OPTION_TIMEOUT:
        return parse_limited("--timeout=", value, 1, TIMEOUT_MAX, "above zero and up to 1h",
                             &a->timeout);
    case OPTION_HURRY:
        a->hurry = true;
        return 0;
    case OPTION_SETTLE:
        return parse_limited("--settle=", value, 0, SETTLE_MAX, "up to 5min", &a->settle);
    case OPTION_FORCE:
        a->force = true;
        return 0;
    case OPTION_STATUS:
        a->status = value;
        return 0;
    case OPTION_MARKER:
        a->marker = value;
        return 0;
    case OPTION_EXCEPT:
        return add_except(value, a);
    case OPTION_JSON:
        a->json = true;
        return 0;
    default:
        return 0;
    }
}

/* Parses the command line. Returns 1 if the program is to continue; 0 if --help or --version was
 * printed; -EINVAL, reported, if the usage is wrong. */
static int parse_arguments(int argc, char **argv, Arguments *ret)
{
    Arguments a = {.root = "/", .policy = _POLICY_INVALID, .timeout = TIMEOUT_MAX};
    Options o = {.own = options, .argc = argc, .argv = argv};
    const char *value;
    int k, n, r;

    while ((k = options_next(&o, &value)) > 0) {
        if (k == OPTION_HELP) {
            help();
            return 0;
        }
        if (k == OPTION_VERSION) {
            printf("headstart-replay %s\n", HEADSTART_VERSION);
            return 0;
        }
        r = apply_option(k, value, &a);
        if (r < 0)
            return r;
    }
    if (k < 0)
        return options_refuse("headstart-replay", "%s", o.message);
    a.packs = options_arguments(&o, &n);
    if (n == 0)
        return options_refuse("headstart-replay", "no pack given");
    *ret = a;
    return 1;
}

/* Decides what the replay does, before anything is done. */
static ReplayOutcome decide(const Arguments *a, const LoadedPack *p, Policy policy)
{
    if (!a->force && kernel_command_line_has(AT_FDCWD, "headstart=0"))
        return REPLAY_OUTCOME_DISABLED;
    /* --policy= replays in a control session too. */
    if (!a->force && (int)a->policy < 0 && p->is_control)
        return REPLAY_OUTCOME_CONTROL;
    if (policy == POLICY_OFF)
        return REPLAY_OUTCOME_OFF;
    return a->dry_run ? REPLAY_OUTCOME_DRY_RUN : REPLAY_OUTCOME_DONE;
}

/* Prints the operations and executes none. */
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
        s->n_metadata += operation_is_metadata(o);
        s->n_opened += o->kind == OPERATION_OPEN;
        s->n_data += o->kind == OPERATION_DATA;
        *(operation_is_metadata(o) ? &s->metadata_bytes : &s->data_bytes) += length;
    }
    return 0;
}

/* Returns the path of the status file: the argument of --status=, or, in a service of headstart,
 * the file that `headstart status` and the recorder read. The caller frees it. NULL: none. */
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
    if (!as_json && report->outcome != REPLAY_OUTCOME_DRY_RUN && report_to_journal(report, text))
        return 0;
    puts(text);
    if (fflush(stdout) != 0)
        log_warning_errno(errno, "headstart-replay: cannot print the result, ignoring: %m");
    return 0;
}

/* Waits for a quiet disk. Returns the signal that ended the wait, or 0. */
static int wait_for_quiet_disk(usec_t max)
{
    sigset_t signals, before;
    int sig;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, &before);
    notify_manager("READY=1\nSTATUS=Waiting for a quiet disk");
    sig = settle(AT_FDCWD, max, &signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return sig;
}

/* Loads the pack of --except= if its replay has read it in this boot. The report of that replay is
 * in the directory of this report. Otherwise *ret stays empty: the replay of that pack reports its
 * errors. */
static void load_earlier(const char *path, const Report *report, LoadedPack *buf, EarlierPack *ret)
{
    _cleanup_free_ char *status = NULL;
    const char *slash = report->status ? strrchr(report->status, '/') : NULL;
    EarlierReplay earlier;
    size_t size;

    if (!slash || compressed_file_read(AT_FDCWD, path, PACK_SIZE_MAX, &buf->buf, &size, NULL) < 0 ||
        pack_open(buf->buf, size, &buf->pack, NULL) < 0 ||
        asprintf(&status, "%.*s/replay-%s.json", (int)(slash - report->status), report->status,
                 stage_to_string((Stage)buf->pack.header->stage)) < 0)
        return;
    earlier = report_read_earlier(status, &buf->pack);
    if (earlier != EARLIER_REPLAY_NONE)
        *ret = (EarlierPack){.pack = &buf->pack, .running = earlier == EARLIER_REPLAY_RUNNING};
}

/* With the outcome REPLAY_OUTCOME_STOPPED, threads may still use the packs of --except=, so these
 * are never freed. */
static int run_sweep(const Arguments *a, const LoadedPack *p, const char *root, Report *report)
{
    static LoadedPack earlier[REPLAY_EARLIER_MAX];
    SweepOptions o = {
            .root = root,
            .policy = report->policy,
            .io_class = a->io_class                     ? (IoClass)a->io_class
                        : report->policy == POLICY_IDLE ? IO_CLASS_IDLE
                                                        : IO_CLASS_BEST_EFFORT,
            .mount_wait = a->mount_wait,
            .timeout = a->timeout,
            .wait = a->wait,
            .hurry = a->hurry,
            .ready = p->ready_sent,
            .marker = a->marker,
    };

    for (size_t i = 0; i < REPLAY_EARLIER_MAX && a->except[i]; i++)
        load_earlier(a->except[i], report, &earlier[i], &o.earlier[i]);
    return sweep(&p->pack, &o, report);
}

/* Prints the result and writes the status file. */
static int finish(const Arguments *a, Report *report)
{
    int r;

    if (report->duration_usec == 0)
        report->duration_usec = clock_now(CLOCK_MONOTONIC) - report->hold.start;
    r = print(report, a->json);
    if (r < 0)
        return r;
    r = report_save(report);
    if (r < 0)
        log_warning_errno(r, "headstart-replay: cannot write %s, ignoring: %m", report->status);
    return 0;
}

/* Returns how long headstart-init has held this boot, from the file beside the status file. */
static usec_t read_early_hold(const char *status)
{
    const char *slash = status ? strrchr(status, '/') : NULL;
    _cleanup_free_ char *dir = slash > status ? strndup(status, (size_t)(slash - status)) : NULL;
    _cleanup_close_ int fd = dir ? open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -EBADF;
    uint64_t usec;

    return fd >= 0 && rooted_read_u64(fd, EARLY_DELAY_FILE, &usec) >= 0 ? usec : 0;
}

/* Reads the time from which the boot waits, and the limit of the kernel command line. A replay that
 * headstart-init has not started continues the work of the replay that headstart-init started. */
static void set_hold(const Arguments *a, Hold *x)
{
    const char *begin = getenv(HOLD_BEGIN_VARIABLE);
    uint64_t from;

    x->max = hold_limit(AT_FDCWD);
    if (begin && parse_u64(begin, &from) >= 0 && from <= x->start && x->start - from <= HOLD_MAX)
        x->from = from;
    else if (!begin)
        x->held = read_early_hold(a->status);
}

/* Loads the pack. If that fails, saves a report that says so. */
static int load(const Arguments *a, Report *report, LoadedPack *ret)
{
    const PackLoadOptions o = {.paths = a->packs, .policy = a->policy, .timeout = a->timeout};
    int r;

    report->status = a->dry_run ? NULL : a->status;
    report->outcome = REPLAY_OUTCOME_LOADING;
    r = pack_load(&o, report, ret);
    if (r >= 0)
        return r;
    report->outcome = REPLAY_OUTCOME_FAILED;
    report->duration_usec = clock_now(CLOCK_MONOTONIC) - report->hold.start;
    (void)report_save(report);
    /* A later replay could not use this pack either. */
    marker_set(a->marker, true);
    if (r == -ETIMEDOUT)
        _exit(EXIT_FAILURE);
    return r;
}

static int run(Arguments *a)
{
    _cleanup_free_ char *status = NULL, *root = NULL;
    _cleanup_loaded_pack_ LoadedPack p = {0};
    Report report = {0};
    bool settled = false;
    int r;

    /* Even reading the pack would delay a greeter that is still reading from the disk. */
    if (a->settle > 0 && !a->hurry && !a->dry_run) {
        int sig = wait_for_quiet_disk(a->settle);

        if (sig == SIGTERM || sig == SIGINT)
            return 0;
        a->hurry = sig == SIGUSR1;
        settled = true;
    }
    report_start(&report);
    set_hold(a, &report.hold);
    r = load(a, &report, &p);
    if (r < 0)
        return r;
    root = realpath(a->root, NULL); /* the mount table has no symlinks */
    if (!root)
        return log_error_errno(errno, "headstart-replay: %s: %m", a->root);
    report.pack = p.path;
    report.checksum = le64toh(p.pack.header->checksum);
    report.stage = (Stage)p.pack.header->stage;
    report.policy = (int)a->policy >= 0 ? a->policy : (Policy)p.pack.header->policy;
    report.reason =
            (int)a->policy >= 0 ? POLICY_REASON_CONFIGURED : (PolicyReason)p.pack.header->reason;
    p.ready_sent = p.ready_sent || settled;
    report.outcome = decide(a, &p, report.policy);
    report.status = status = status_path(a, report.stage);

    if (report.outcome == REPLAY_OUTCOME_DRY_RUN)
        r = dry_run(a, &p.pack, root, &report);
    else if (report.outcome == REPLAY_OUTCOME_DONE)
        r = run_sweep(a, &p, root, &report);
    else {
        marker_set(a->marker, true);
        if (!p.ready_sent)
            notify_manager("READY=1");
    }
    if (r >= 0)
        r = finish(a, &report);
    if (report.outcome == REPLAY_OUTCOME_CONTROL && report.stage == STAGE_BOOT)
        control_read_ahead(&p.pack, root);
    /* Threads may still use the pack, so the process ends without waiting for them and without
     * freeing the pack. */
    if (report.outcome == REPLAY_OUTCOME_STOPPED)
        _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
    return r;
}

int main(int argc, char **argv)
{
    Arguments a = {0};
    sigset_t hurry;
    int r;

    (void)call_filter_complete(); /* without it, the unit's own filter still applies */
    /* The signal is blocked until the sweep waits for it, because a login may begin before the pack
     * is read. */
    sigemptyset(&hurry);
    sigaddset(&hurry, SIGUSR1);
    sigprocmask(SIG_BLOCK, &hurry, NULL);
    log_parse_environment();
    r = parse_arguments(argc, argv, &a);
    if (r <= 0)
        return r < 0 ? EXIT_USAGE : EXIT_SUCCESS;
    return run(&a) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
