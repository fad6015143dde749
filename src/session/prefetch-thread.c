/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The prefetch thread, its queue of one job, and the way in which it ends. */

#include "session/prefetch-thread.h"

#include "base/clock.h"
#include "session/prefetch-hold.h"
#include "session/prefetch-internal.h"
#include "system/cachestat.h"
#include "system/pressure.h"
#include "system/thread.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#define STACK_BYTES (512U * 1024)
#define STOP_USEC   USEC_PER_SEC
/* A pass begins when tasks have waited for I/O at most QUIET_PERCENT of a period of QUIET_USEC, or
 * QUIET_MAX_USEC after its first job began to wait. */
#define QUIET_USEC     (200 * USEC_PER_MSEC)
#define QUIET_PERCENT  10U
#define QUIET_MAX_USEC (10 * USEC_PER_SEC)

/* Filesystems have up to three numbers each. */
#define ROOT_DEVS_MAX 48U

typedef struct PrefetchJob {
    PrefetchFile *files;
    size_t n;
} PrefetchJob;

struct PrefetchThread {
    char *root;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the members up to `refused`; never held during I/O */
    pthread_cond_t wake;
    PrefetchJob *job;           /* the next job, or NULL */
    const PrefetchJob *running; /* the present job, or NULL; the thread frees it */
    PrefetchReport report;
    PrefetchPaths refused;
    bool ended, left;       /* left: nobody waits for the thread, which frees this itself */
    atomic_uint generation; /* rises with each job; this cancels the pass under way */
    atomic_bool stop;
    atomic_uint_least64_t touched;     /* the number that touch() got last … */
    atomic_uint_least64_t since;       /* … and when (CLOCK_MONOTONIC) */
    uint64_t root_dev;                 /* st_dev of `root` */
    uint64_t root_devs[ROOT_DEVS_MAX]; /* numbers of the filesystems on its disk; constant after the
                                          first touch() */
    size_t n_root_devs;
    /* Used by the thread alone */
    PrefetchState state;
    unsigned current; /* generation of the thread's job; written under `lock` */
    Pressure pressure;
    usec_t quiet_end; /* CLOCK_MONOTONIC; 0 while no job waits for a quiet disk */
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

void prefetch_paths_done(PrefetchPaths *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->paths[i]);
    free(p->paths);
    *p = (PrefetchPaths){0};
}

/* Returns the prefix that makes the path of a request a path that this process sees. */
static const char *path_prefix(const PrefetchThread *t, PrefetchKind kind)
{
    return kind == PREFETCH_METADATA || strcmp(t->root, "/") == 0 ? "" : t->root;
}

/* --- the thread ------------------------------------------------------------------------------- */

static bool is_cancelled(void *arg)
{
    PrefetchThread *t = arg;

    return atomic_load(&t->stop) || atomic_load(&t->generation) != t->current || prefetch_is_held();
}

static void add_report(void *arg, const PrefetchReport *more)
{
    PrefetchThread *t = arg;
    PrefetchReport *sum = &t->report;

    pthread_mutex_lock(&t->lock);
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
    pthread_mutex_unlock(&t->lock);
}

static void refuse(void *arg, const PrefetchFile *f)
{
    PrefetchThread *t = arg;
    PrefetchPaths *p = &t->refused;
    char *path = strdup(f->path + strlen(path_prefix(t, f->kind)));

    pthread_mutex_lock(&t->lock);
    t->report.n_refused++;
    /* If memory or the list is full, the path is dropped and refused again in the next pass. */
    if (path && p->n < PREFETCH_REFUSED_MAX &&
        grow_array(&p->paths, &p->allocated, p->n + 1, sizeof(*p->paths)) >= 0)
        p->paths[p->n++] = TAKE_PTR(path);
    pthread_mutex_unlock(&t->lock);
    free(path);
}

static void touch(void *arg, uint64_t dev)
{
    PrefetchThread *t = arg;

    prefetch_note_access();
    atomic_store(&t->touched, 0);
    atomic_store(&t->since, clock_now(CLOCK_MONOTONIC));
    atomic_store(&t->touched, dev);
}

/* Lists the filesystems on the disk of the root filesystem. A btrfs has other numbers in mountinfo
 * than its files have. Runs in the thread, before its first access: the main thread reads the list
 * only after that. */
static void list_root_disk(PrefetchThread *t)
{
    _cleanup_volume_table_ VolumeTable volumes = {0};

    if (volume_table_read(AT_FDCWD, t->root, &volumes) < 0)
        return;
    for (size_t i = 0; i < volumes.n; i++) {
        const Volume *v = &volumes.volumes[i];
        const uint64_t devs[] = {v->st_dev, v->mount_dev, v->block_dev};

        for (size_t k = 0; v->with_root && k < ELEMENTSOF(devs); k++)
            if (t->n_root_devs < ROOT_DEVS_MAX)
                t->root_devs[t->n_root_devs++] = devs[k];
    }
}

static bool is_on_root_disk(const PrefetchThread *t, uint64_t dev)
{
    bool found = dev == t->root_dev;

    for (size_t i = 0; i < t->n_root_devs; i++)
        found = found || t->root_devs[i] == dev;
    return found;
}

/* Returns the filesystem that does not answer, or 0. The disk of the root filesystem counts as
 * slow: nothing works without it. */
static uint64_t hung_device(PrefetchThread *t)
{
    uint64_t dev = atomic_load(&t->touched);

    if (dev == 0 || clock_now(CLOCK_MONOTONIC) < atomic_load(&t->since) + PREFETCH_HANG_USEC)
        return 0;
    return is_on_root_disk(t, dev) ? 0 : dev;
}

/* Waits while others wait for the disk, because the reads of an application that has just started
 * must come first. The thread's own reads also count as pressure, so it measures before a pass and
 * not during one. If an application starts during a pass and other requests follow from that, the
 * new job begins with another measurement. A job that replaces a waiting job does not wait longer,
 * because otherwise frequent jobs would prevent every pass on a busy disk. */
static void wait_for_quiet(PrefetchThread *t)
{
    usec_t now = clock_now(CLOCK_MONOTONIC);
    uint64_t before, after;

    if (t->quiet_end == 0)
        t->quiet_end = now + QUIET_MAX_USEC;
    if (pressure_read(&t->pressure, &before) < 0)
        return;
    for (bool quiet = false; !quiet && !is_cancelled(t); before = after) {
        usleep(QUIET_USEC);
        if (pressure_read(&t->pressure, &after) < 0)
            return;
        quiet = after - before <= QUIET_USEC / 100 * QUIET_PERCENT ||
                clock_now(CLOCK_MONOTONIC) > t->quiet_end;
    }
}

static void run_job(PrefetchThread *t, const PrefetchJob *job)
{
    bool more = true;
    size_t at = 0;

    while (more) {
        wait_for_quiet(t);
        if (is_cancelled(t))
            return;
        t->quiet_end = 0;
        more = prefetch_pass_run(&t->state, job->files, job->n, &at);
    }
}

static void release(PrefetchThread *t)
{
    prefetch_state_done(&t->state);
    prefetch_paths_done(&t->refused);
    prefetch_job_free(t->job);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    free(t->root);
    free(t);
}
DEFINE_CLEANUP(PrefetchThread *, release);

static void *run_thread(void *arg)
{
    PrefetchThread *t = arg;
    bool left;

    /* If the kernel refuses the idle priority, a pass still limits the requests under way. */
    thread_set_io_class(IO_CLASS_IDLE);
    list_root_disk(t);
    pthread_mutex_lock(&t->lock);
    while (!atomic_load(&t->stop)) {
        PrefetchJob *job = TAKE_PTR(t->job);

        t->current = atomic_load(&t->generation);
        t->running = job;
        t->report.working = job != NULL;
        if (!job) {
            t->quiet_end = 0;
            pthread_cond_wait(&t->wake, &t->lock);
            continue;
        }
        pthread_mutex_unlock(&t->lock);
        run_job(t, job);
        pthread_mutex_lock(&t->lock);
        t->running = NULL;
        prefetch_job_free(job);
    }
    t->ended = true;
    left = t->left;
    pthread_mutex_unlock(&t->lock);
    if (left)
        release(t);
    return NULL;
}

/* --- jobs ------------------------------------------------------------------------------------- */

/* Sorting by the pointer of the path finds the requests of one file, because the cycle has one
 * string for each file. */
typedef struct Rank {
    const char *path;
    size_t request;
} Rank;

static int compare_ranks(const void *a, const void *b)
{
    const Rank *x = a, *y = b;

    if (x->path != y->path)
        return (uintptr_t)x->path < (uintptr_t)y->path ? -1 : 1;
    return x->request < y->request ? -1 : x->request > y->request;
}

/* Sets first[i] to the first request for the file of request i. Returns 0 or -ENOMEM. */
static int find_first_requests(const PrefetchRequest *requests, size_t n, size_t *first)
{
    _cleanup_free_ Rank *ranks = calloc(n + 1, sizeof(*ranks));

    if (!ranks)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        ranks[i] = (Rank){requests[i].path, i};
    qsort(ranks, n, sizeof(*ranks), compare_ranks);
    for (size_t i = 0; i < n; i++)
        first[ranks[i].request] = i > 0 && ranks[i].path == ranks[i - 1].path
                                          ? first[ranks[i - 1].request]
                                          : ranks[i].request;
    return 0;
}

static int add_file(const PrefetchThread *t, PrefetchJob *j, const PrefetchRequest *q)
{
    PrefetchFile f = {.kind = q->kind};

    if (asprintf(&f.path, "%s%s", path_prefix(t, q->kind), q->path) < 0)
        return -ENOMEM;
    j->files[j->n++] = f;
    return 0;
}

/* Makes a job with one entry for each file, in the order of the files' first requests. */
static int make_job(const PrefetchThread *t, const PrefetchRequest *requests, size_t n,
                    PrefetchJob **ret)
{
    _cleanup_(prefetch_job_freep) PrefetchJob *j = calloc(1, sizeof(*j));
    _cleanup_free_ size_t *first = calloc(n + 1, sizeof(*first));
    _cleanup_free_ size_t *file = calloc(n + 1, sizeof(*file)); /* first request -> file */
    int r;

    if (!j || !first || !file)
        return -ENOMEM;
    j->files = calloc(n + 1, sizeof(*j->files));
    if (!j->files)
        return -ENOMEM;
    r = find_first_requests(requests, n, first);
    for (size_t i = 0; r >= 0 && i < n; i++) {
        const PrefetchRequest *q = &requests[i];

        if (first[i] == i) {
            file[i] = j->n;
            r = add_file(t, j, q);
        }
        if (r >= 0 && q->range.length > 0 && q->range.length <= UINT64_MAX - q->range.offset)
            r = range_set_insert(&j->files[file[first[i]]].ranges, q->range.offset,
                                 q->range.length);
    }
    if (r < 0)
        return r;
    *ret = TAKE_PTR(j);
    return 0;
}

static bool are_equal_ranges(const RangeSet *a, const RangeSet *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->ranges, b->ranges, a->n * sizeof(Range)) == 0);
}

static bool are_equal_jobs(const PrefetchJob *a, const PrefetchJob *b)
{
    if (!a || !b || a->n != b->n)
        return a == b;
    for (size_t i = 0; i < a->n; i++)
        if (a->files[i].kind != b->files[i].kind ||
            strcmp(a->files[i].path, b->files[i].path) != 0 ||
            !are_equal_ranges(&a->files[i].ranges, &b->files[i].ranges))
            return false;
    return true;
}

/* Returns the job that waits or, if none does, the one that is being executed and was not
 * cancelled. Returns NULL if there is none. Called under `lock`. */
static const PrefetchJob *present_job(const PrefetchThread *t)
{
    return t->job ? t->job : atomic_load(&t->generation) == t->current ? t->running : NULL;
}

int prefetch_thread_request(PrefetchThread *t, const PrefetchRequest *requests, size_t n)
{
    PrefetchJob *job = NULL;
    int r = n > 0 ? make_job(t, requests, n, &job) : 0;

    if (r < 0)
        return r;
    pthread_mutex_lock(&t->lock);
    if (job && are_equal_jobs(job, present_job(t)))
        prefetch_job_free(job);
    else {
        prefetch_job_free(t->job);
        t->job = job;
        atomic_fetch_add(&t->generation, 1);
        pthread_cond_signal(&t->wake);
    }
    pthread_mutex_unlock(&t->lock);
    return 0;
}

void prefetch_thread_report(PrefetchThread *t, PrefetchReport *ret)
{
    pthread_mutex_lock(&t->lock);
    *ret = t->report;
    ret->working = ret->working || t->job;
    pthread_mutex_unlock(&t->lock);
}

void prefetch_thread_move_refused(PrefetchThread *t, PrefetchPaths *ret)
{
    pthread_mutex_lock(&t->lock);
    *ret = t->refused;
    t->refused = (PrefetchPaths){0};
    pthread_mutex_unlock(&t->lock);
}

/* --- beginning and end ------------------------------------------------------------------------ */

/* `before`: the thread that the new one replaces, because it hangs in an access to the filesystem
 * `hung`; or NULL. */
static int new_thread(const char *root, uint32_t uid, PrefetchThread *before, uint64_t hung,
                      PrefetchThread **ret)
{
    _cleanup_(releasep) PrefetchThread *t = calloc(1, sizeof(*t));
    struct stat st;
    int r;

    if (!t)
        return -ENOMEM;
    t->root = strdup(root);
    t->state = (PrefetchState){
            .root = t->root,
            .uid = uid,
            .cachestat = cachestat_available(),
            .is_cancelled = is_cancelled,
            .add_report = add_report,
            .refuse = refuse,
            .touch = touch,
            .arg = t,
    };
    t->pressure.root_fd = t->state.pace.root_fd = t->state.pace.pressure.root_fd = AT_FDCWD;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    t->root_dev = stat(root, &st) < 0 ? 0 : st.st_dev;
    if (before) {
        memcpy(t->state.hung, before->state.hung, sizeof(t->state.hung));
        t->state.n_hung = before->state.n_hung;
        t->state.hung[t->state.n_hung++] = hung;
        prefetch_thread_report(before, &t->report);
    }
    r = t->root ? thread_start(&t->thread, STACK_BYTES, run_thread, t) : -ENOMEM;
    if (r >= 0)
        *ret = TAKE_PTR(t);
    return r;
}

int prefetch_thread_new(const char *root, uint32_t uid, PrefetchThread **ret)
{
    return new_thread(root, uid, NULL, 0, ret);
}

int prefetch_thread_check(PrefetchThread **t)
{
    PrefetchThread *old = *t, *next;
    uint64_t hung = hung_device(old);
    int r;

    if (hung == 0 || old->state.n_hung == PREFETCH_HUNG_MAX)
        return 0;
    r = new_thread(old->root, old->state.uid, old, hung, &next);
    if (r < 0)
        return r;
    prefetch_thread_free(old);
    *t = next;
    return 1;
}

PrefetchThread *prefetch_thread_free(PrefetchThread *t)
{
    if (!t)
        return NULL;
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->stop, true);
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    if (!thread_join(t->thread, STOP_USEC)) { /* a thread that has not ended still uses *t */
        bool ended;

        pthread_mutex_lock(&t->lock);
        ended = t->ended;
        t->left = true;
        pthread_mutex_unlock(&t->lock);
        if (!ended)
            return NULL;
    }
    release(t);
    return NULL;
}
