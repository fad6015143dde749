/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Measures how long `headstart status`, `explain` and `report` take on a large state: 3,000
 * sessions in the history, as many starts of applications as their files hold, and a model of 1,000
 * applications. Prints the least, the median and the
 * largest wall-clock time of each in milliseconds, and fails if a median is above its limit.
 *
 *     measure-cli HEADSTART [RUNS [SESSIONS APPLICATIONS]]   default 15 3000 1000 */

#include "base/clock.h"
#include "measure/history.h"
#include "model/model.h"
#include "predict/mixture.h"
#include "state/state.h"
#include "state/trace-store.h"
#include "util/synthetic.h"

#include <err.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define START     (UINT64_C(1760000000) * USEC_PER_SEC)
#define RUNS_MAX  1000U
#define LOGINS    40U /* the chains learn from this many logins */
#define USED_EACH 60U /* applications that each login starts */

#define MUST(call)                                              \
    do {                                                        \
        int _r = (call);                                        \
        if (_r < 0)                                             \
            errx(EXIT_FAILURE, "%s: %s", #call, strerror(-_r)); \
    } while (0)

/* Sets nearly all remaining members, so that the lines are as long as those of a real machine. */
static void add_machine(SessionRecord *s)
{
    s->firmware_usec = s->loader_usec = s->kernel_usec = s->initrd_usec = 2345678;
    s->finished_usec = s->io_some_usec = s->io_full_usec = 3456789;
    s->disk_reads = 2711;
    s->disk_read_bytes = s->replay_data_bytes = 139000000;
    s->replay_usec = s->predicted_usec = 2712345;
    s->replay_files = 2345;
    s->replay_metadata_bytes = s->usage.waste_bytes = s->usage.miss_bytes = 6123456;
    s->usage.waste_files = s->usage.miss_files = 34;
    s->memory_bytes = UINT64_C(24) << 30;
    snprintf(s->boot_id, sizeof(s->boot_id), "0123456789abcdef0123456789abcdef");
    snprintf(s->kernel, sizeof(s->kernel), "6.12.48+deb13-amd64");
    snprintf(s->distribution, sizeof(s->distribution), "debian 13");
    snprintf(s->device, sizeof(s->device), "nvme0n1p2");
    snprintf(s->scheduler, sizeof(s->scheduler), "mq-deadline");
}

static void make_history(int state_fd, size_t n)
{
    _cleanup_free_ SessionRecord *sessions = calloc(n + 1, sizeof(*sessions));

    if (!sessions)
        errx(EXIT_FAILURE, "out of memory");
    for (size_t i = 0; i < n; i++) {
        SessionRecord *s = &sessions[i];
        bool control = i % 12 < 2;

        *s = session_record_empty(i % 2 == 0 ? STAGE_BOOT : STAGE_LOGIN);
        s->start_realtime_usec = START + i * 12 * USEC_PER_HOUR;
        s->ready_usec = (control ? 9000 : 4000) * USEC_PER_MSEC + i * 7919 % 500000;
        s->policy = POLICY_GATE;
        s->flags = control ? SESSION_CONTROL : 0;
        s->packages_usec = START;
        s->usage = (PackUsage){.source = USAGE_PER_FILE, .hit_files = 900, .hit_bytes = 50000000};
        s->usage.planned[9] = 900;
        s->usage.opened[9] = 890;
        snprintf(s->outcome, sizeof(s->outcome), "%s", control ? "control" : "done");
        add_machine(s);
    }
    MUST(history_replace(state_fd, sessions, n));
}

/* Writes starts of 40 applications until the files were rotated, so that they are as large as they
 * become. Each of a user's days is a boot with one start of each application. */
static void make_launches(int state_fd)
{
    enum { APPLICATIONS = 40, DAYS = 75 };

    for (size_t day = 0; day < DAYS; day++) {
        _cleanup_launch_records_ LaunchRecords l = {0};

        l.items = calloc(APPLICATIONS, sizeof(LaunchRecord));
        if (!l.items)
            errx(EXIT_FAILURE, "out of memory");
        for (; l.n < APPLICATIONS; l.n++) {
            LaunchRecord *x = &l.items[l.n];
            bool control = (day + l.n) % 8 == 3;

            *x = (LaunchRecord){
                    .uid = 1000,
                    .start_realtime_usec = START + (day * 24 + l.n % 10) * USEC_PER_HOUR,
                    .took_usec = (control ? 2000 : 1200) * USEC_PER_MSEC + day * 7919 % 500000,
                    .files = 300 + l.n,
                    .replayed = control ? LAUNCH_CONTROL : LAUNCH_REPLAYED,
                    .packages_usec = START,
            };
            snprintf(x->application, sizeof(x->application), "/usr/bin/application-%zu", l.n);
            snprintf(x->boot_id, sizeof(x->boot_id), "%032zx", day);
        }
        MUST(launches_append(state_fd, &l));
    }
}

static const char *application_name(const Trace *t, size_t i, char buf[static TRACE_PATH_MAX])
{
    const TraceFile *f = &t->files[t->applications[i % t->n_applications].file];

    MUST(trace_format_path(t, f->path, buf, TRACE_PATH_MAX));
    return buf;
}

/* Makes chains from logins in which applications start one after the other. The sets of
 * applications of successive logins overlap. */
static void make_chains(const Trace *t, Model *m)
{
    EventTime now = {.at = USEC_PER_SEC, .realtime = START};
    char name[TRACE_PATH_MAX];

    MUST(chains_new(DECAYED_SUM_HALFLIFE_DEFAULT, MIXTURE_CHAIN_WINDOW, &m->chains));
    for (unsigned login = 0; login < LOGINS; login++) {
        chains_set_time(m->chains, now);
        MUST(chains_begin(m->chains, 1000));
        for (unsigned i = 0; i < USED_EACH; i++) {
            uint32_t id;

            now.at += 2 * USEC_PER_SEC;
            now.realtime += 2 * USEC_PER_SEC;
            chains_set_time(m->chains, now);
            MUST(chains_add_name(
                    m->chains, application_name(t, (size_t)login * 25 + i * (1 + login % 3), name),
                    &id));
            MUST(chains_start(m->chains, id));
        }
        chains_end(m->chains);
    }
}

/* Writes the model and the traces of a boot and a login. *ret_application becomes the path of an
 * application. */
static void make_model(const char *state, int state_fd, size_t n_applications,
                       char ret_application[static TRACE_PATH_MAX])
{
    _cleanup_model_ Model *m = model_new(DECAYED_SUM_HALFLIFE_DEFAULT);

    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        SyntheticParameters p = synthetic_login(s);
        _cleanup_trace_ Trace *t = NULL;
        _cleanup_free_ char *path = NULL;

        p.stage = s;
        p.n_applications = n_applications;
        p.start_realtime = START;
        MUST(synthetic_trace(&p, &t));
        MUST(model_learn(&m, t, START + USEC_PER_HOUR));
        MUST(trace_store(state, t, &path));
        if (s == STAGE_LOGIN) {
            make_chains(t, m);
            application_name(t, t->n_applications / 2, ret_application);
        }
    }
    MUST(state_write_model(state_fd, m));
    printf("%zu files, %zu + %zu applications, %zu chains\n", m->n_files,
           m->stages[0].n_applications, m->stages[1].n_applications,
           m->chains->histories[0]->n_pairs);
}

static usec_t run_once(char *const *argv)
{
    usec_t start = clock_now(CLOCK_MONOTONIC);
    pid_t child = fork();
    int status;

    if (child == 0) {
        int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(fd, STDOUT_FILENO);
        execv(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
        errx(EXIT_FAILURE, "%s failed", argv[2]);
    return clock_now(CLOCK_MONOTONIC) - start;
}

static int by_time(const void *a, const void *b)
{
    const usec_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Measures one verb. Returns true if the median is within the limit. */
static bool measure(const char *headstart, const char *state, const char *verb,
                    const char *argument, size_t runs, usec_t limit)
{
    _cleanup_free_ char *option = NULL;
    usec_t times[RUNS_MAX];
    char *argv[] = {(char *)headstart, NULL, (char *)verb, (char *)argument, NULL};

    if (asprintf(&option, "--state=%s", state) < 0)
        errx(EXIT_FAILURE, "out of memory");
    argv[1] = option;
    run_once(argv);
    for (size_t i = 0; i < runs; i++)
        times[i] = run_once(argv);
    qsort(times, runs, sizeof(*times), by_time);
    printf("%-8s %7.1f %7.1f %7.1f ms, limit %.0f ms\n", verb, (double)times[0] / 1e3,
           (double)times[runs / 2] / 1e3, (double)times[runs - 1] / 1e3, (double)limit / 1e3);
    return times[runs / 2] <= limit;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *w)
{
    return remove(path);
}

static void remove_state(const char *state)
{
    if (nftw(state, remove_one, 8, FTW_DEPTH | FTW_PHYS) < 0)
        warn("%s", state);
}

int main(int argc, char **argv)
{
    size_t runs = argc > 2 ? strtoul(argv[2], NULL, 10) : 15;
    size_t n_sessions = argc > 4 ? strtoul(argv[3], NULL, 10) : 3000;
    size_t n_applications = argc > 4 ? strtoul(argv[4], NULL, 10) : 1000;
    char state[] = "/tmp/measure-cli.XXXXXX", application[TRACE_PATH_MAX];
    _cleanup_close_ int fd = -EBADF;
    bool fast;

    if (argc < 2 || runs == 0 || runs > RUNS_MAX)
        errx(EXIT_FAILURE, "usage: measure-cli HEADSTART [RUNS [SESSIONS APPLICATIONS]]");
    if (!mkdtemp(state) || (fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        err(EXIT_FAILURE, "%s", state);
    make_history(fd, n_sessions);
    make_launches(fd);
    make_model(state, fd, n_applications, application);
    fast = measure(argv[1], state, "status", NULL, runs, 50 * USEC_PER_MSEC);
    fast &= measure(argv[1], state, "explain", application, runs, 100 * USEC_PER_MSEC);
    fast &= measure(argv[1], state, "report", NULL, runs, USEC_PER_SEC);
    remove_state(state);
    return fast ? EXIT_SUCCESS : EXIT_FAILURE;
}
