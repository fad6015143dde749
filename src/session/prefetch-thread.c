/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The thread, the queue that feeds it, and how it ends. */

#include "session/prefetch-thread.h"

#include "base/clock.h"
#include "base/pressure.h"
#include "record/cachestat.h"
#include "session/prefetch-internal.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>

#define IOPRIO_IDLE (3U << 13)
#define WHO_PROCESS 1
#define STACK_BYTES (512U * 1024)
#define STOP_USEC   USEC_PER_SEC
/* Nobody else waits for the disk: over so long, for at most so much of it. Not looked for longer.
 */
#define QUIET_USEC     (200 * USEC_PER_MSEC)
#define QUIET_PERCENT  10U
#define QUIET_MAX_USEC (10 * USEC_PER_SEC)

typedef struct PrefetchJob {
    PrefetchFile *files;
    size_t n;
} PrefetchJob;

struct PrefetchThread {
    char *root;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows; never held over I/O */
    pthread_cond_t wake;
    PrefetchJob *job; /* the next one, or NULL */
    PrefetchReport report;
    PrefetchPaths refused;
    atomic_uint generation; /* rises with each job: the pass under way is over */
    atomic_bool stop;
    /* The thread's own */
    PrefetchState pass;
    unsigned current; /* generation of its job */
    Pressure pressure;
};

static PrefetchJob *prefetch_job_free(PrefetchJob *j)
{
    if (!j)
        return NULL;
    for (size_t i = 0; i < j->n; i++) {
        free(j->files[i].path);
        range_set_done(&j->files[i].ranges);
    }
    free(j->files);
    free(j);
    return NULL;
}
DEFINE_CLEANUP(PrefetchJob *, prefetch_job_free);

static bool is_over(void *arg)
{
    PrefetchThread *r = arg;

    return atomic_load(&r->stop) || atomic_load(&r->generation) != r->current;
}

static void tell(void *arg, const PrefetchReport *more)
{
    PrefetchThread *r = arg;
    PrefetchReport *sum = &r->report;

    pthread_mutex_lock(&r->lock);
    sum->n_passes += more->n_passes;
    sum->n_files += more->n_files;
    sum->n_skipped += more->n_skipped;
    sum->n_directories += more->n_directories;
    sum->n_reads += more->n_reads;
    sum->read_bytes += more->read_bytes;
    if (more->n_passes > 0) {
        sum->pass_files = more->pass_files;
        sum->pass_missing_bytes = more->pass_missing_bytes;
    }
    pthread_mutex_unlock(&r->lock);
}

void prefetch_paths_done(PrefetchPaths *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->paths[i]);
    free(p->paths);
    *p = (PrefetchPaths){0};
}

/* What precedes a path of the model in this process's view. */
static const char *path_prefix(const PrefetchThread *r, PrefetchKind kind)
{
    return kind == PREFETCH_METADATA || strcmp(r->root, "/") == 0 ? "" : r->root;
}

static void refuse(void *arg, const PrefetchFile *f)
{
    PrefetchThread *r = arg;
    PrefetchPaths *p = &r->refused;
    char *path = strdup(f->path + strlen(path_prefix(r, f->kind)));

    pthread_mutex_lock(&r->lock);
    r->report.n_refused++;
    /* Out of memory, or nobody takes them: then the path is refused again in the next pass. */
    if (path && p->n < PREFETCH_REFUSED_MAX &&
        grow_array(&p->paths, &p->allocated, p->n + 1, sizeof(*p->paths)) >= 0)
        p->paths[p->n++] = TAKE_PTR(path);
    pthread_mutex_unlock(&r->lock);
    free(path);
}

void prefetch_thread_take_refused(PrefetchThread *r, PrefetchPaths *ret)
{
    pthread_mutex_lock(&r->lock);
    *ret = r->refused;
    r->refused = (PrefetchPaths){0};
    pthread_mutex_unlock(&r->lock);
}

/* An application that has just started reads for itself: what comes after it can wait until that is
 * done. What we wait for counts as pressure, too, so the look comes before we read; a start while
 * we do brings a new job, and with it another look. */
static void give_way(PrefetchThread *r)
{
    usec_t end = clock_now(CLOCK_MONOTONIC) + QUIET_MAX_USEC;
    uint64_t before, after;

    if (pressure_read(&r->pressure, &before) < 0)
        return;
    for (bool quiet = false; !quiet && !is_over(r); before = after) {
        usleep(QUIET_USEC);
        if (pressure_read(&r->pressure, &after) < 0)
            return;
        quiet = after - before <= QUIET_USEC / 100 * QUIET_PERCENT ||
                clock_now(CLOCK_MONOTONIC) > end;
    }
}

static void work_on(PrefetchThread *r, const PrefetchJob *job)
{
    bool more = true;
    size_t at = 0;

    while (more) {
        give_way(r);
        more = prefetch_pass_run(&r->pass, job->files, job->n, &at);
    }
}

static void *work(void *arg)
{
    PrefetchThread *r = arg;

    /* Of this thread alone; not allowed, then at the usual priority, and still paced. */
    syscall(SYS_ioprio_set, WHO_PROCESS, 0, IOPRIO_IDLE);
    pthread_mutex_lock(&r->lock);
    while (!atomic_load(&r->stop)) {
        PrefetchJob *job = r->job;

        r->current = atomic_load(&r->generation);
        r->job = NULL;
        r->report.working = job != NULL;
        if (!job) {
            pthread_cond_wait(&r->wake, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        work_on(r, job);
        prefetch_job_free(job);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Jobs */

/* Which want is of which file: by the cycle's own strings, one a file. */
typedef struct Rank {
    const char *path;
    size_t want;
} Rank;

static int compare_ranks(const void *a, const void *b)
{
    const Rank *x = a, *y = b;

    if (x->path != y->path)
        return (uintptr_t)x->path < (uintptr_t)y->path ? -1 : 1;
    return x->want < y->want ? -1 : x->want > y->want;
}

/* Appends the file that requests[want] names. */
static int add_job_file(const PrefetchThread *r, PrefetchJob *j, const PrefetchRequest *w)
{
    PrefetchFile f = {.kind = w->kind};

    if (asprintf(&f.path, "%s%s", path_prefix(r, w->kind), w->path) < 0)
        return -ENOMEM;
    j->files[j->n++] = f;
    return 0;
}

static int make_job(const PrefetchThread *r, const PrefetchRequest *requests, size_t n,
                    PrefetchJob **ret)
{
    _cleanup_(prefetch_job_freep) PrefetchJob *j = calloc(1, sizeof(*j));
    _cleanup_free_ Rank *ranks = calloc(n + 1, sizeof(*ranks));
    _cleanup_free_ size_t *first =
            calloc(n + 1, sizeof(*first));                      /* want -> likeliest of its file */
    _cleanup_free_ size_t *file = calloc(n + 1, sizeof(*file)); /* that -> file of the job */
    int k = 0;

    if (!j || !ranks || !first || !file)
        return -ENOMEM;
    j->files = calloc(n + 1, sizeof(*j->files));
    if (!j->files)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        ranks[i] = (Rank){requests[i].path, i};
    qsort(ranks, n, sizeof(*ranks), compare_ranks);
    for (size_t i = 0; i < n; i++)
        first[ranks[i].want] = i > 0 && ranks[i].path == ranks[i - 1].path
                                       ? first[ranks[i - 1].want]
                                       : ranks[i].want;
    for (size_t i = 0; k >= 0 && i < n; i++) {
        const PrefetchRequest *w = &requests[i];

        if (first[i] == i) {
            file[i] = j->n;
            k = add_job_file(r, j, w);
        }
        if (k >= 0 && w->length > 0 && w->length <= UINT64_MAX - w->offset)
            k = range_set_add(&j->files[file[first[i]]].ranges, w->offset, w->offset + w->length);
    }
    if (k < 0)
        return k;
    *ret = TAKE_PTR(j);
    return 0;
}

int prefetch_thread_request(PrefetchThread *r, const PrefetchRequest *requests, size_t n)
{
    PrefetchJob *job = NULL;
    int k = n > 0 ? make_job(r, requests, n, &job) : 0;

    if (k < 0)
        return k;
    pthread_mutex_lock(&r->lock);
    prefetch_job_free(r->job);
    r->job = job;
    atomic_fetch_add(&r->generation, 1);
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    return 0;
}

void prefetch_thread_report(PrefetchThread *r, PrefetchReport *ret)
{
    pthread_mutex_lock(&r->lock);
    *ret = r->report;
    ret->working = ret->working || r->job;
    pthread_mutex_unlock(&r->lock);
}

static void release(PrefetchThread *r)
{
    prefetch_state_done(&r->pass);
    prefetch_paths_done(&r->refused);
    prefetch_job_free(r->job);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    free(r->root);
    free(r);
}

int prefetch_thread_new(const char *root, uint32_t uid, PrefetchThread **ret)
{
    PrefetchThread *r = calloc(1, sizeof(*r));
    pthread_attr_t attributes;
    int k;

    if (!r)
        return -ENOMEM;
    r->root = strdup(root);
    r->pass.root = r->root;
    r->pass.uid = uid;
    r->pass.cachestat = cachestat_available();
    r->pass.is_over = is_over;
    r->pass.tell = tell;
    r->pass.refuse = refuse;
    r->pass.arg = r;
    r->pressure.root_fd = AT_FDCWD;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->wake, NULL);
    k = r->root ? pthread_attr_init(&attributes) : ENOMEM;
    if (k == 0) {
        k = pthread_attr_setstacksize(&attributes, STACK_BYTES);
        if (k == 0)
            k = pthread_create(&r->thread, &attributes, work, r);
        pthread_attr_destroy(&attributes);
    }
    if (k != 0) {
        release(r);
        return -k;
    }
    *ret = r;
    return 0;
}

PrefetchThread *prefetch_thread_free(PrefetchThread *r)
{
    usec_t end = clock_now(CLOCK_REALTIME) + STOP_USEC;
    struct timespec deadline = timespec_of(end);

    if (!r)
        return NULL;
    pthread_mutex_lock(&r->lock);
    atomic_store(&r->stop, true);
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    if (pthread_timedjoin_np(r->thread, NULL, &deadline) != 0) {
        pthread_detach(r->thread); /* in a disk that does not answer: it ends with the process */
        return NULL;
    }
    release(r);
    return NULL;
}
