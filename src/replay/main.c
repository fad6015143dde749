/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart-replay: reads one pack and executes it. It starts from a cold disk, where every library
 * is a seek: libc alone, no JSON reader, nothing allocated that is not needed. */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rooted.h"
#include "config-paths.h"
#include "replay/executor.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

/* linux/ioprio.h, which Debian 12 has, older ones do not */
#define IOPRIO_CLASS_SHIFT 13
#define IOPRIO_CLASS_BE    2
#define IOPRIO_CLASS_IDLE  3
#define IOPRIO_WHO_PROCESS 1

typedef struct Arguments {
    const char *pack;
    const char *root;
    const char *status; /* file to write the result to, or NULL */
    Policy policy;      /* _POLICY_INVALID: what the pack says */
    int ioprio_class;   /* 0: what the policy says */
    bool wait, dry_run, json, force;
} Arguments;

static atomic_bool stop;

static void on_signal(int sig _unused_)
{
    atomic_store(&stop, true);
}

static void help(void)
{
    printf("headstart-replay [OPTIONS...] PACK\n\n"
           "Brings what a pack names into the page cache.\n\n"
           "  -h --help             Show this help\n"
           "     --version          Show version\n"
           "     --root=DIR         Replay below DIR: only filesystems mounted there count\n"
           "     --wait             Return when everything is resident\n"
           "     --dry-run          Print the operations instead of carrying them out\n"
           "     --policy=POLICY    metadata, beside, gate or idle, instead of the pack's own\n"
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
static int parse_arguments(int argc, char **argv, Arguments *a)
{
    enum { OPT_VERSION = 256, OPT_ROOT, OPT_WAIT, OPT_DRY_RUN, OPT_POLICY, OPT_IOPRIO, OPT_FORCE,
           OPT_STATUS, OPT_JSON };
    static const struct option options[] = {
            {"help", no_argument, NULL, 'h'},
            {"version", no_argument, NULL, OPT_VERSION},
            {"root", required_argument, NULL, OPT_ROOT},
            {"wait", no_argument, NULL, OPT_WAIT},
            {"dry-run", no_argument, NULL, OPT_DRY_RUN},
            {"policy", required_argument, NULL, OPT_POLICY},
            {"ioprio", required_argument, NULL, OPT_IOPRIO},
            {"force", no_argument, NULL, OPT_FORCE},
            {"status", required_argument, NULL, OPT_STATUS},
            {"json", no_argument, NULL, OPT_JSON},
            {NULL, 0, NULL, 0},
    };
    int c;

    *a = (Arguments){.root = "/", .policy = _POLICY_INVALID};
    while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
        switch (c) {
        case 'h':
            help();
            return 0;
        case OPT_VERSION:
            printf("headstart-replay %s\n", HEADSTART_VERSION);
            return 0;
        case OPT_ROOT:
            a->root = optarg;
            break;
        case OPT_WAIT:
            a->wait = true;
            break;
        case OPT_DRY_RUN:
            a->dry_run = true;
            break;
        case OPT_POLICY:
            a->policy = policy_from_string(optarg);
            if ((int)a->policy < 0)
                return usage_error("unknown policy", optarg);
            break;
        case OPT_IOPRIO:
            a->ioprio_class = strcmp(optarg, "idle") == 0          ? IOPRIO_CLASS_IDLE
                              : strcmp(optarg, "best-effort") == 0 ? IOPRIO_CLASS_BE
                                                                   : 0;
            if (!a->ioprio_class)
                return usage_error("unknown I/O priority class", optarg);
            break;
        case OPT_FORCE:
            a->force = true;
            break;
        case OPT_STATUS:
            a->status = optarg;
            break;
        case OPT_JSON:
            a->json = true;
            break;
        default:
            return -EINVAL; /* getopt said why */
        }
    if (optind + 1 != argc)
        return usage_error(optind == argc ? "which pack?" : "one pack at a time", NULL);
    a->pack = argv[optind];
    return 1;
}

/* Tells systemd, sd_notify(3), without its library. Failing is no reason to fail. */
static void notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t l = path ? strlen(path) : 0;
    int fd;

    if (l == 0 || l >= sizeof(sa.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(sa.sun_path, path, l);
    if (sa.sun_path[0] == '@')
        sa.sun_path[0] = 0;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sa,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + l)) < 0)
        log_debug_errno(errno, "Cannot notify the service manager, ignoring: %m");
    close(fd);
}

/* Reads the pack whole: it is replaced whole when it changes, so what was checked stays what is
 * used. */
static int load_pack(const char *path, const void **ret, size_t *ret_size)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    void *map;

    if (fd < 0)
        return log_error_errno(errno, "headstart-replay: %s: %m", path);
    if (fstat(fd, &st) < 0)
        return log_error_errno(errno, "headstart-replay: %s: %m", path);
    if (!S_ISREG(st.st_mode))
        return log_error_errno(EMEDIUMTYPE, "headstart-replay: %s: not a regular file", path);
    if (st.st_size == 0)
        return log_error_errno(EBADMSG, "headstart-replay: %s: empty file", path);
    if ((uint64_t)st.st_size > PACK_SIZE_MAX)
        return log_error_errno(E2BIG, "headstart-replay: %s: larger than a pack may be", path);
    map = malloc((size_t)st.st_size);
    if (!map)
        return log_oom();
    for (off_t at = 0; at < st.st_size;) {
        ssize_t n = pread(fd, (char *)map + at, (size_t)(st.st_size - at), at);

        if (n < 0) {
            free(map);
            return log_error_errno(errno, "headstart-replay: %s: %m", path);
        }
        if (n == 0)
            break;
        at += n;
    }
    *ret = map;
    *ret_size = (size_t)st.st_size;
    return 0;
}

static bool switched_off(void)
{
    _cleanup_free_ char *cmdline = NULL;

    if (rooted_read(AT_FDCWD, "/proc/cmdline", 65536, &cmdline, NULL) < 0)
        return false;
    for (char *save = NULL, *w = strtok_r(cmdline, " \n", &save); w; w = strtok_r(NULL, " \n", &save))
        if (strcmp(w, "headstart=0") == 0)
            return true;
    return false;
}

static bool is_control_session(const Pack *p)
{
    _cleanup_free_ char *text = NULL;
    char id[33];
    size_t n = 0;

    if (rooted_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 256, &text, NULL) < 0)
        return false;
    for (const char *c = text; *c && n < 32; c++)
        if (*c != '-' && *c != '\n')
            id[n++] = *c;
    id[n] = 0;
    return n == 32 && pack_is_control(p, id);
}

static void print_operation(const Pack *p, const Operation *op, bool json)
{
    const char *kind = operation_kind_to_string(op->kind);

    if (op->kind == OPERATION_METADATA) {
        const PackMetadata *m = &p->metadata[op->index];

        printf(json ? "{\"operation\":\"%s\",\"segment\":%u,\"offset\":%" PRIu64
                      ",\"length\":%" PRIu64 "}\n"
                    : "%-8s %u %" PRIu64 "+%" PRIu64 "\n",
               kind, op->segment, le64toh(m->offset), le64toh(m->length));
        return;
    }
    const PackData *d = op->kind == OPERATION_DATA ? &p->data[op->index] : NULL;
    const PackFile *f = &p->files[d ? le32toh(d->file) : op->index];
    const char *path = pack_string(p, f->path);

    if (json)
        printf("{\"operation\":\"%s\",\"segment\":%u,\"inode\":%" PRIu64, kind, op->segment,
               le64toh(f->inode));
    else
        printf("%-8s %u %" PRIu64, kind, op->segment, le64toh(f->inode));
    if (d)
        printf(json ? ",\"offset\":%" PRIu64 ",\"length\":%" PRIu64 ",\"physical\":%" PRId64
                    : " %" PRIu64 "+%" PRIu64 " @%" PRId64,
               le64toh(d->offset), le64toh(d->length), (int64_t)le64toh(d->physical));
    if (!json) {
        printf(" %s\n", path);
        return;
    }
    printf(",\"path\":\"");
    for (const unsigned char *c = (const unsigned char *)path; *c; c++)
        printf(*c < 0x20 || *c == '"' || *c == '\\' ? "\\u%04x" : "%c", *c);
    printf("\"}\n");
}

static int format_json(const Pack *p, Policy policy, const ReplayResult *r,
                       usec_t start, char **ret)
{
    _cleanup_free_ char *skipped = strdup("");

    for (int i = 0; skipped && i < _REPLAY_SKIP_MAX; i++) {
        char *more;

        if (r->n_skipped[i] == 0)
            continue;
        if (asprintf(&more, "%s%s\"%s\":%" PRIu64, skipped, *skipped ? "," : "",
                     replay_skip_to_string((ReplaySkip)i), r->n_skipped[i]) < 0)
            more = NULL;
        free(skipped);
        skipped = more;
    }
    if (!skipped ||
        asprintf(ret,
                 "{\"stage\":\"%s\",\"policy\":\"%s\",\"start_boottime_usec\":%" PRIu64
                 ",\"duration_usec\":%" PRIu64 ",\"resident\":%s,\"metadata_ranges\":%" PRIu64
                 ",\"metadata_bytes\":%" PRIu64 ",\"files\":%" PRIu64 ",\"data_ranges\":%" PRIu64
                 ",\"data_bytes\":%" PRIu64 ",\"skipped\":{%s}}\n",
                 stage_to_string((Stage)p->header->stage), policy_to_string(policy), start,
                 r->duration_usec, r->waited ? "true" : "false", r->n_metadata, r->metadata_bytes,
                 r->n_opened, r->n_data, r->data_bytes, skipped) < 0)
        return log_oom();
    return 0;
}

static void print_summary(const Arguments *a, const ReplayResult *r)
{
    char metadata[FORMAT_BYTES_MAX], data[FORMAT_BYTES_MAX], time[FORMAT_TIMESPAN_MAX];
    uint64_t skipped = 0;
    const char *separator = " (";

    for (int i = 0; i < _REPLAY_SKIP_MAX; i++)
        skipped += r->n_skipped[i];
    printf("%s: %" PRIu64 " metadata ranges (%s), %" PRIu64 " files, %" PRIu64
           " data ranges (%s) %s in %s; skipped %" PRIu64,
           a->pack, r->n_metadata, format_bytes(metadata, sizeof(metadata), r->metadata_bytes),
           r->n_opened, r->n_data, format_bytes(data, sizeof(data), r->data_bytes),
           r->waited ? "resident" : "requested",
           format_timespan(time, sizeof(time), r->duration_usec), skipped);
    for (int i = 0; i < _REPLAY_SKIP_MAX; i++)
        if (r->n_skipped[i] > 0) {
            printf("%s%" PRIu64 " %s", separator, r->n_skipped[i],
                   replay_skip_to_string((ReplaySkip)i));
            separator = ", ";
        }
    printf("%s\n", skipped > 0 ? ")" : "");
}

/* The sweep, in a thread of its own when the main one must stay free to say READY=1. */
typedef struct Sweep {
    const Pack *pack;
    const OperationList *list;
    const MountedSegment *mounted;
    ReplayOptions options;
    ReplayResult result;
    int r;
    int done_fd;
} Sweep;

static void *sweep(void *arg)
{
    Sweep *s = arg;

    s->r = replay_execute(s->pack, s->list, s->mounted, &s->options, &s->result);
    if (s->done_fd >= 0 && write(s->done_fd, "", 1) < 0)
        s->done_fd = -EBADF; /* the other side polls with a timeout anyway */
    return NULL;
}

/* `gate`: READY=1 when the sweep is done, or at the deadline while it goes on. The main thread does
 * no disk I/O from here on, so that a request that never returns holds nothing up. */
static void sweep_behind_gate(Sweep *s, usec_t deadline)
{
    pthread_t thread;
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0) {
        sweep(s);
        return;
    }
    s->done_fd = fds[1];
    if (pthread_create(&thread, NULL, sweep, s) != 0)
        sweep(s);
    else {
        struct pollfd p = {.fd = fds[0], .events = POLLIN};

        while (poll(&p, 1, (int)MIN(deadline / USEC_PER_MSEC, (usec_t)INT32_MAX)) < 0 &&
               errno == EINTR && !atomic_load(&stop))
            ;
        notify("READY=1");
        pthread_join(thread, NULL);
    }
    close(fds[0]);
    close(fds[1]);
}

static int replay(const Arguments *a, const Pack *p)
{
    Policy policy = (int)a->policy >= 0 ? a->policy : (Policy)p->header->policy;
    int ioprio = a->ioprio_class ? a->ioprio_class
                                 : policy == POLICY_IDLE ? IOPRIO_CLASS_IDLE : IOPRIO_CLASS_BE;
    _cleanup_operation_list_ OperationList list = {0};
    _cleanup_free_ char *json = NULL;
    MountedSegment *mounted = NULL;
    usec_t start = clock_now(CLOCK_BOOTTIME);
    Sweep s;
    int r;

    r = operations_from_pack(p, policy, &list);
    if (r < 0)
        return log_oom();
    if (a->dry_run) {
        for (size_t i = 0; i < list.n; i++)
            print_operation(p, &list.operations[i], a->json);
        return 0;
    }
    r = mounted_segments_find(p, a->root, &mounted);
    if (r < 0)
        return log_error_errno(r, "headstart-replay: cannot read the mount table: %m");
    if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
                ioprio << IOPRIO_CLASS_SHIFT | (ioprio == IOPRIO_CLASS_BE ? 4 : 0)) < 0)
        log_debug_errno(errno, "Cannot set the I/O priority, ignoring: %m");

    s = (Sweep){
            .pack = p,
            .list = &list,
            .mounted = mounted,
            .options = {.wait = a->wait, .stop = &stop, .window_bytes = REPLAY_WINDOW_DEFAULT},
            .done_fd = -EBADF,
    };
    if (policy == POLICY_GATE && getenv("NOTIFY_SOCKET"))
        sweep_behind_gate(&s, le64toh(p->header->deadline_usec));
    else {
        notify("READY=1");
        sweep(&s);
    }
    mounted_segments_free(mounted, le32toh(p->header->n_segments));
    if (s.r < 0)
        return log_oom();

    r = format_json(p, policy, &s.result, start, &json);
    if (r < 0)
        return r;
    if (a->json)
        fputs(json, stdout);
    else
        print_summary(a, &s.result);
    if (a->status) {
        r = atomic_file_write(AT_FDCWD, a->status, json, strlen(json), 0600);
        if (r < 0)
            log_warning_errno(r, "headstart-replay: cannot write %s, ignoring: %m", a->status);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct sigaction sa = {.sa_handler = on_signal};
    const void *buf = NULL;
    const char *reason = NULL;
    size_t size = 0;
    Arguments a;
    Pack p;
    int r;

    log_parse_environment();
    r = parse_arguments(argc, argv, &a);
    if (r <= 0)
        return r < 0 ? 2 : 0;
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);

    if (load_pack(a.pack, &buf, &size) < 0)
        return 1;
    r = pack_open(buf, size, &p, &reason);
    if (r < 0)
        log_error("headstart-replay: %s: %s", a.pack, reason);
    else if (!a.force && !a.dry_run && (switched_off() || is_control_session(&p))) {
        notify("READY=1");
        printf("%s: nothing replayed: %s\n", a.pack,
               switched_off() ? "headstart=0 is on the kernel command line" : "a control session");
    } else
        r = replay(&a, &p);
    free((void *)buf);
    return r < 0 ? 1 : 0;
}
