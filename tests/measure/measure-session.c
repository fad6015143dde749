/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Measures the cost of the session cycle: the processor time of a cycle, the share of one core if a
 * cycle begins every 20 s, and the memory.
 *
 *     measure-session DIR [STATE [APPLICATIONS MAPS [CYCLES]]]
 *
 * The defaults are 100 applications, 1000 maps and 500 cycles. DIR must be on a local filesystem on
 * a block device. The program makes MAPS/2 files of two maps each below DIR/m, a model in which
 * every application uses sixty of these files, and habits of groups of twenty applications. Then it
 * runs cycles one after the other. An application starts or exits before each cycle. The program
 * waits until each pass is over, and prints the means at the end. With STATE the model is written
 * there, too, so that headstartd can run on it: --root=DIR --state=STATE --stage=session. */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/rooted.h"
#include "evaluate/random.h"
#include "session/machine.h"
#include "session/prefetch-thread.h"
#include "util/range-util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <string.h>
#include <sys/resource.h>

#define GROUP 20U
#define USES  60U
#define PAGE  4096U
#define BYTES (16U * PAGE)

typedef struct Measure {
    const char *dir; /* as realpath(3) returns it */
    uint32_t n_applications, n_files;
    Random random;
    usec_t at, realtime;
    Cycle *cycle;
    uint8_t *running;
    uint32_t group;
} Measure;

static int add_file(Trace *t, const char *path, uint32_t *ret)
{
    uint32_t p;
    int r = trace_add_path(t, path, &p);

    return r < 0 ? r : trace_add_file(t, p, TRACE_NONE, false, ret);
}

static int make_files(const Measure *m)
{
    static char bytes[BYTES];
    char path[PATH_MAX];
    int r;

    snprintf(path, sizeof(path), "%s/m", m->dir);
    r = make_directories(path, 0755);
    for (uint32_t i = 0; r >= 0 && i < m->n_files; i++) {
        memset(bytes, (int)i, sizeof(bytes));
        snprintf(path, sizeof(path), "%s/m/%05u", m->dir, i);
        if (access(path, F_OK) < 0)
            r = atomic_file_write(AT_FDCWD, path, bytes, sizeof(bytes), 0644);
    }
    return r;
}

/* Makes a model from one session in which every application opens its files. */
static int make_model(Measure *m, Model **ret)
{
    Trace *t = trace_new(STAGE_SESSION);
    char path[PATH_MAX];
    int r = t ? 0 : -ENOMEM;

    if (r < 0)
        return r;
    t->uid = 1000;
    t->start_realtime = m->realtime;
    t->duration = 60 * USEC_PER_SEC;
    for (uint32_t a = 0; r >= 0 && a < m->n_applications; a++) {
        uint32_t file, application = 0;

        snprintf(path, sizeof(path), "/bin/application-%u", a);
        r = add_file(t, path, &file);
        if (r >= 0)
            r = trace_add_application(t, file, &application);
        for (uint32_t i = 0; r >= 0 && i < USES; i++) {
            TraceAccess x = {.at = a, .application = application};

            snprintf(path, sizeof(path), "/m/%05u",
                     (a * (m->n_files / m->n_applications) + 11 * i) % m->n_files);
            r = add_file(t, path, &x.file);
            if (r >= 0 && t->files[x.file].size_bytes == 0) {
                t->files[x.file].size_bytes = BYTES;
                r = range_set_insert_span(&t->files[x.file].resident, 0, 4 * PAGE);
                if (r >= 0)
                    r = range_set_insert_span(&t->files[x.file].resident, 8 * PAGE, BYTES);
            }
            if (r >= 0)
                r = trace_add_access(t, &x);
        }
    }
    if (r >= 0)
        *ret = model_new(DECAYED_SUM_HALFLIFE_DEFAULT);
    if (r >= 0)
        r = *ret ? model_learn(ret, t, m->realtime) : -ENOMEM;
    trace_free(t);
    return r;
}

static int event(Measure *m, usec_t after)
{
    uint32_t a = random_below(&m->random, 50) == 0
                         ? random_below(&m->random, m->n_applications)
                         : (m->group + random_below(&m->random, GROUP)) % m->n_applications;
    char path[64];
    int r;

    m->at += after;
    snprintf(path, sizeof(path), "/bin/application-%u", a);
    r = cycle_observe(m->cycle,
                      &(CycleEvent){{m->at, m->realtime + m->at}, 1000, !m->running[a], path});
    m->running[a] = !m->running[a];
    return r;
}

static int begin(Measure *m)
{
    cycle_end(m->cycle, (EventTime){m->at, m->realtime + m->at});
    m->at += USEC_PER_HOUR;
    m->group = random_below(&m->random, m->n_applications / GROUP + 1) * GROUP;
    memset(m->running, 0, m->n_applications);
    return cycle_begin(m->cycle, (EventTime){m->at, m->realtime + m->at});
}

static int one_cycle(Measure *m, PrefetchThread *thread)
{
    CycleSnapshot s;
    CycleDecision d;
    PrefetchReport report;
    int r = machine_snapshot(AT_FDCWD, &s);

    m->at += 20 * USEC_PER_SEC;
    if (r >= 0)
        r = cycle_decide(m->cycle, (EventTime){m->at, m->realtime + m->at}, &s, &d);
    if (r >= 0)
        r = prefetch_thread_request(thread, d.requests, d.n_requests);
    do {
        usleep(500);
        prefetch_thread_report(thread, &report);
    } while (r >= 0 && report.working);
    return r;
}

static uint64_t memory_kib(const char *key)
{
    _cleanup_free_ char *text = NULL;
    const char *p;

    if (rooted_read(AT_FDCWD, "/proc/self/status", 65536, &text, NULL) < 0)
        return 0;
    p = strstr(text, key);
    return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

static int save(const Measure *m, Model *model, const char *state)
{
    _cleanup_close_ int fd = -EBADF;
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = make_directories(state, 0700);

    if (r >= 0)
        r = cycle_learned(m->cycle, &model->chains);
    if (r >= 0)
        r = model_to_json(model, &text, &size);
    fd = r < 0 ? -EBADF : open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? (r < 0 ? r : -errno) : atomic_file_write(fd, "model.json", text, size, 0600);
}

static int measure(Measure *m, const char *state, unsigned n_cycles)
{
    _cleanup_model_ Model *model = NULL;
    _cleanup_(prefetch_thread_freep) PrefetchThread *thread = NULL;
    CycleParameters p;
    CycleDecision d;
    CycleSnapshot s;
    PrefetchReport report;
    usec_t cpu;
    int r = make_files(m);

    cycle_parameters_init(&p);
    if (r >= 0)
        r = make_model(m, &model);
    if (r >= 0)
        r = cycle_new(&p, model, DECAYED_SUM_HALFLIFE_DEFAULT, 1000, &m->cycle);
    for (unsigned i = 0; r >= 0 && i < 10000; i++) {
        r = i % 200 == 0 ? begin(m) : 0;
        if (r >= 0)
            r = event(m, (5 + random_below(&m->random, 60)) * USEC_PER_SEC);
    }
    if (r >= 0 && state)
        r = save(m, model, state);
    model = model_free(model);
    malloc_trim(0);
    if (r >= 0)
        r = prefetch_thread_new(m->dir, 0, &thread);
    if (r >= 0)
        r = begin(m);
    for (unsigned i = 0; r >= 0 && i < 5; i++) /* each cycle reads what is missing */
        r = one_cycle(m, thread);
    cpu = clock_now(CLOCK_PROCESS_CPUTIME_ID);
    for (unsigned i = 0; r >= 0 && i < n_cycles; i++) {
        r = event(m, 0);
        if (r >= 0)
            r = one_cycle(m, thread);
    }
    if (r < 0)
        return r;
    cpu = clock_now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    prefetch_thread_report(thread, &report);
    r = machine_snapshot(AT_FDCWD, &s);
    if (r >= 0)
        r = cycle_decide(m->cycle, (EventTime){m->at, m->realtime + m->at}, &s, &d);
    if (r < 0)
        return r;
    printf("applications %u, files %u, requested %zu maps (%" PRIu64
           " bytes), files looked up in a pass "
           "%" PRIu64 ", read %" PRIu64 " bytes in %" PRIu64 " reads\n",
           m->n_applications, m->n_files, d.n_requests, d.requested_bytes, report.pass_files,
           report.read_bytes, report.n_reads);
    printf("CPU a cycle %.3f ms: %.4f %% of a core at 20 s; RSS %.1f MiB (anonymous %.1f), at most "
           "%.1f MiB\n",
           (double)cpu / 1e3 / n_cycles, (double)cpu / n_cycles / 20e6 * 100,
           (double)memory_kib("VmRSS:") / 1024, (double)memory_kib("RssAnon:") / 1024,
           (double)memory_kib("VmHWM:") / 1024);
    return 0;
}

int main(int argc, char **argv)
{
    Measure m = {.random = {1}, .realtime = clock_now(CLOCK_REALTIME)};
    _cleanup_free_ char *dir = argc > 1 ? realpath(argv[1], NULL) : NULL;
    unsigned n_cycles = argc > 5 ? (unsigned)atoi(argv[5]) : 500;
    int r;

    if (!dir || n_cycles == 0) {
        fprintf(stderr, "usage: measure-session DIR [STATE [APPLICATIONS MAPS [CYCLES]]]\n");
        return 2;
    }
    m.dir = dir;
    m.n_applications = argc > 4 ? MAX((unsigned)atoi(argv[3]), 1U) : 100;
    m.n_files = argc > 4 ? MAX((unsigned)atoi(argv[4]) / 2, m.n_applications) : 500;
    m.running = calloc(m.n_applications, 1);
    r = m.running ? measure(&m, argc > 2 && *argv[2] ? argv[2] : NULL, n_cycles) : -ENOMEM;
    cycle_free(m.cycle);
    free(m.running);
    if (r < 0)
        fprintf(stderr, "measure-session: %s\n", strerror(-r));
    return r < 0;
}
