/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Long, because its thread, the queue that feeds it and how it is ended share one lock; where files
 * lie and what was brought in are apart (places.c, brought.c). */

#include "session/resident.h"

#include "base/clock.h"
#include "base/pressure.h"
#include "base/ranges.h"
#include "record/cachestat.h"
#include "record/residency.h"
#include "session/brought.h"
#include "session/resident-internal.h"
#include "volume/extents.h"
#include "volume/volume.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define IOPRIO_IDLE   (3U << 13)
#define WHO_PROCESS   1
#define STACK_BYTES   (512U * 1024)
#define CHUNK         (128U * 1024)
#define FILES_AT_ONCE 128U /* descriptors held until their pieces are read */
#define STOP_USEC     USEC_PER_SEC
#define PASSES_MAX    64U /* of one prediction */
/* Nobody else waits for the disk: over so long, for at most so much of it. Not looked for longer.
 */
#define QUIET_USEC     (200 * USEC_PER_MSEC)
#define QUIET_PERCENT  10U
#define QUIET_MAX_USEC (10 * USEC_PER_SEC)

/* What is wanted of one file, the worthiest first. */
typedef struct JobFile {
    char *path; /* as this process sees it; of metadata the filesystem's UUID */
    CycleKind kind;
    RangeSet ranges;
} JobFile;

typedef struct Job {
    JobFile *files;
    size_t n;
} Job;

/* A missing part of an open file. */
typedef struct Piece {
    int fd;
    const char *path;       /* the job's */
    uint64_t dev, physical; /* UINT64_MAX: nowhere on the disk, or not known */
    uint64_t offset, length;
} Piece;

typedef struct Pass {
    Places places;
    int fds[FILES_AT_ONCE];
    size_t n_fds;
    Piece *pieces;
    size_t n_pieces, allocated_pieces;
    ExtentList extents;
    uint64_t missing_bytes;
    uint64_t n_files;
} Pass;

struct Resident {
    char *root;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows; never held over I/O */
    pthread_cond_t wake;
    Job *job; /* the next one, or NULL */
    ResidentReport report;
    atomic_uint generation; /* rises with each job: the pass under way is over */
    atomic_bool stop;
    /* The thread's own */
    Brought *brought;
    VolumeTable volumes; /* as they were when metadata was first wanted */
    bool volumes_read;
    bool cachestat;
    Pressure pressure;
};

static Job *job_free(Job *j)
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
DEFINE_CLEANUP(Job *, job_free);

static bool is_over(Resident *r, unsigned generation)
{
    return atomic_load(&r->stop) || atomic_load(&r->generation) != generation;
}

/* Reading */

static int compare_pieces(const void *a, const void *b)
{
    const Piece *x = a, *y = b;

    if (x->dev != y->dev)
        return x->dev < y->dev ? -1 : 1;
    if (x->physical != y->physical)
        return x->physical < y->physical ? -1 : 1;
    if (x->fd != y->fd)
        return x->fd < y->fd ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Waits until the chunk's last page is there. */
static void await(int fd, uint64_t end)
{
    char byte;

    if (pread(fd, &byte, 1, (off_t)(end - 1)) < 0)
        return;
}

/* Asks for a chunk, then waits for the one before: two are under way at most, so that on devices
 * without a scheduler, too, others come first. */
static void read_pieces(Resident *r, Pass *p, unsigned generation)
{
    uint64_t n_reads = 0, bytes = 0, before_end = 0;
    int before = -1;

    if (p->n_pieces > 0)
        qsort(p->pieces, p->n_pieces, sizeof(*p->pieces), compare_pieces);
    for (size_t i = 0; i < p->n_pieces; i++) {
        const Piece *x = &p->pieces[i];
        uint64_t at = x->offset, end = x->offset + x->length;

        while (at < end && !is_over(r, generation)) {
            uint64_t length = MIN(end - at, (uint64_t)CHUNK);

            if (readahead(x->fd, (off_t)at, length) < 0)
                break;
            at += length;
            if (before >= 0)
                await(before, before_end);
            before = x->fd;
            before_end = at;
            n_reads++;
            bytes += length;
        }
        /* Out of memory: then it may be read once too often. */
        if (at > x->offset)
            (void)brought_note(&r->brought, x->path, clock_now(CLOCK_MONOTONIC),
                               (Range){x->offset, at});
    }
    if (before >= 0)
        await(before, before_end);
    for (size_t i = 0; i < p->n_fds; i++)
        close(p->fds[i]);
    p->n_fds = p->n_pieces = 0;
    pthread_mutex_lock(&r->lock);
    r->report.n_reads += n_reads;
    r->report.read_bytes += bytes;
    pthread_mutex_unlock(&r->lock);
}

/* What is missing */

static int add_piece(Pass *p, const Piece *x)
{
    int r = grow_array(&p->pieces, &p->allocated_pieces, p->n_pieces + 1, sizeof(*p->pieces));

    if (r >= 0)
        p->pieces[p->n_pieces++] = *x;
    return r;
}

/* A missing range, cut where it goes on elsewhere on the disk. */
static int add_range(Pass *p, int fd, uint64_t dev, const char *path, Range range)
{
    size_t e = 0;

    while (range.start < range.end) {
        Piece x = {
                .fd = fd, .path = path, .dev = dev, .physical = UINT64_MAX, .offset = range.start};
        uint64_t end = range.end;
        int r;

        for (; e < p->extents.n; e++) {
            const Extent *t = &p->extents.extents[e];

            if (t->logical + t->length <= range.start)
                continue;
            if (t->logical > range.start) {
                end = MIN(end, t->logical);
            } else {
                x.physical = t->physical + (range.start - t->logical);
                end = MIN(end, t->logical + t->length);
            }
            break;
        }
        x.length = end - range.start;
        r = add_piece(p, &x);
        if (r < 0)
            return r;
        range.start = end;
    }
    return 0;
}

/* True if all of it is there, as far as cachestat can say. */
static bool is_resident(const Resident *r, int fd, Range x)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t start = ALIGN_DOWN(x.start, page), end = ALIGN_UP(x.end, page);

    return r->cachestat && cachestat_count(fd, CACHESTAT_RESIDENT, start, end - start) >=
                                   (int64_t)((end - start) / page);
}

static bool are_resident(const Resident *r, int fd, const RangeSet *wanted)
{
    for (size_t i = 0; i < wanted->n; i++)
        if (!is_resident(r, fd, wanted->ranges[i]))
            return false;
    return true;
}

/* What of it lies before the end. 0 or -ENOMEM. */
static int clip(const RangeSet *wanted, uint64_t size, RangeSet *ret)
{
    Range whole = {0, size};

    return range_set_intersect(wanted, &(RangeSet){&whole, size > 0, size > 0}, ret);
}

/* What of the file is wanted and not there. 0 or a negative errno. */
static int find_missing(const Resident *r, int fd, uint64_t size, const RangeSet *wanted,
                        RangeSet *ret)
{
    _cleanup_range_set_ RangeSet resident = {0}, there = {0};
    int k = clip(wanted, size, &there);

    if (k < 0 || are_resident(r, fd, &there))
        return k;
    k = residency_read(fd, size, &resident);
    /* Not told: reading what is there costs no I/O. */
    if (k < 0 && k != -ENOMEM)
        k = 0;
    return k < 0 ? k : range_set_subtract(&there, &resident, ret);
}

static int look_at_file(Resident *r, Pass *p, int path_fd, const struct stat *st, const JobFile *f)
{
    _cleanup_range_set_ RangeSet missing = {0};
    _cleanup_close_ int fd = -EBADF;
    int k;

    if (f->ranges.n == 0)
        return 0; /* its inode was wanted */
    fd = places_open(path_fd, false);
    if (fd < 0)
        return fd;
    k = find_missing(r, fd, (uint64_t)st->st_size, &f->ranges, &missing);
    if (k >= 0)
        k = brought_filter(r->brought, f->path, clock_now(CLOCK_MONOTONIC), &missing);
    if (k < 0 || missing.n == 0)
        return k;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* nothing beyond */
    if (extents_read(fd, &p->extents) < 0)
        p->extents.n = 0; /* then in the order of the file */
    for (size_t i = 0; k >= 0 && i < missing.n; i++)
        k = add_range(p, fd, st->st_dev, f->path, missing.ranges[i]);
    p->missing_bytes += range_set_total(&missing);
    p->fds[p->n_fds++] = TAKE_FD(fd);
    return k;
}

static int look_at_directory(Resident *r, int path_fd, const JobFile *f)
{
    _cleanup_close_ int fd = -EBADF;

    if (!brought_list_due(&r->brought, f->path, clock_now(CLOCK_MONOTONIC), RESIDENT_LIST_USEC))
        return 0;
    fd = places_open(path_fd, true);
    if (fd < 0)
        return fd;
    list_directory(fd);
    pthread_mutex_lock(&r->lock);
    r->report.n_directories++;
    pthread_mutex_unlock(&r->lock);
    return 0;
}

/* The block device of the filesystem with that UUID, if its metadata is in the page cache of that
 * and it is still mounted. A descriptor or a negative errno. */
static int open_volume(Resident *r, const Pass *p, const char *uuid, uint64_t *ret_dev)
{
    if (!r->volumes_read) {
        int k = volume_table_read(AT_FDCWD, r->root, &r->volumes);

        if (k < 0)
            return k;
        r->volumes_read = true;
    }
    for (size_t i = 0; i < r->volumes.n; i++) {
        const Volume *v = &r->volumes.volumes[i];

        if (strcmp(v->uuid, uuid) != 0)
            continue;
        if (strncmp(v->fstype, "ext", 3) != 0 || !places_have(&p->places, v->mount_dev))
            return -EOPNOTSUPP;
        *ret_dev = v->block_dev;
        return volume_open_device(v);
    }
    return -ENODEV;
}

/* Metadata lies where its range says. Where cachestat cannot tell, all of it counts as missing, and
 * reading what is there costs no I/O. */
static int look_at_metadata(Resident *r, Pass *p, const JobFile *f)
{
    _cleanup_range_set_ RangeSet there = {0}, missing = {0};
    _cleanup_close_ int fd = -EBADF;
    uint64_t dev = 0;
    off_t size;
    int k;

    fd = open_volume(r, p, f->path, &dev);
    if (fd < 0)
        return fd;
    size = lseek(fd, 0, SEEK_END);
    k = clip(&f->ranges, size > 0 ? (uint64_t)size : 0, &there);
    for (size_t i = 0; k >= 0 && i < there.n; i++)
        if (!is_resident(r, fd, there.ranges[i]))
            k = range_set_add(&missing, there.ranges[i].start, there.ranges[i].end);
    if (k >= 0)
        k = brought_filter(r->brought, f->path, clock_now(CLOCK_MONOTONIC), &missing);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    for (size_t i = 0; k >= 0 && i < missing.n; i++) {
        Range x = missing.ranges[i];

        k = add_piece(p, &(Piece){fd, f->path, dev, x.start, x.start, x.end - x.start});
    }
    p->missing_bytes += range_set_total(&missing);
    p->fds[p->n_fds++] = TAKE_FD(fd);
    return k;
}

static int look_at(Resident *r, Pass *p, const JobFile *f)
{
    _cleanup_close_ int fd = -EBADF;
    struct stat st;

    if (f->kind == CYCLE_METADATA)
        return look_at_metadata(r, p, f);
    fd = places_find(&p->places, f->path, &st);
    if (fd < 0)
        return fd;
    if ((f->kind == CYCLE_DIRECTORY) != !!S_ISDIR(st.st_mode))
        return -EINVAL;
    return S_ISDIR(st.st_mode) ? look_at_directory(r, fd, f) : look_at_file(r, p, fd, &st, f);
}

/* An application that has just started reads for itself: what comes after it can wait until that is
 * done. What we wait for counts as pressure, too, so the look comes before we read; a start while
 * we do brings a new job, and with it another look. */
static void give_way(Resident *r, unsigned generation)
{
    usec_t end = clock_now(CLOCK_MONOTONIC) + QUIET_MAX_USEC;
    uint64_t before, after;

    if (pressure_read(&r->pressure, &before) < 0)
        return;
    for (bool quiet = false; !quiet && !is_over(r, generation); before = after) {
        usleep(QUIET_USEC);
        if (pressure_read(&r->pressure, &after) < 0)
            return;
        quiet = after - before <= QUIET_USEC / 100 * QUIET_PERCENT ||
                clock_now(CLOCK_MONOTONIC) > end;
    }
}

/* True if it has ended because it had enough: more is missing. */
static bool run_pass(Resident *r, const Job *job, unsigned generation)
{
    Pass p = {0};
    uint64_t n_skipped = 0;
    size_t i = 0;

    give_way(r, generation);
    if (places_read(r->root, &p.places) >= 0)
        for (; i < job->n && p.missing_bytes < RESIDENT_PASS_BYTES &&
               p.n_files < RESIDENT_PASS_FILES && !is_over(r, generation);
             i++) {
            n_skipped += look_at(r, &p, &job->files[i]) < 0;
            p.n_files++;
            if (p.n_fds == FILES_AT_ONCE)
                read_pieces(r, &p, generation);
        }
    read_pieces(r, &p, generation);
    places_done(&p.places);
    extent_list_done(&p.extents);
    free(p.pieces);
    pthread_mutex_lock(&r->lock);
    r->report.n_passes++;
    r->report.n_files += p.n_files;
    r->report.n_skipped += n_skipped;
    r->report.pass_files = p.n_files;
    r->report.pass_missing_bytes = p.missing_bytes;
    pthread_mutex_unlock(&r->lock);
    return i < job->n && !is_over(r, generation);
}

static void *work(void *arg)
{
    Resident *r = arg;

    /* Of this thread alone; not allowed, then at the usual priority, and still paced. */
    syscall(SYS_ioprio_set, WHO_PROCESS, 0, IOPRIO_IDLE);
    pthread_mutex_lock(&r->lock);
    while (!atomic_load(&r->stop)) {
        Job *job = r->job;
        unsigned generation = atomic_load(&r->generation);

        r->job = NULL;
        r->report.working = job != NULL;
        if (!job) {
            pthread_cond_wait(&r->wake, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        for (unsigned i = 0; run_pass(r, job, generation) && i < PASSES_MAX; i++)
            ; /* each gives way anew */
        job_free(job);
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

/* Appends the file that wants[want] names. */
static int add_job_file(const Resident *r, Job *j, const CycleWant *w)
{
    const char *root = w->kind == CYCLE_METADATA || strcmp(r->root, "/") == 0 ? "" : r->root;
    JobFile f = {.kind = w->kind};

    if (asprintf(&f.path, "%s%s", root, w->path) < 0)
        return -ENOMEM;
    j->files[j->n++] = f;
    return 0;
}

static int make_job(const Resident *r, const CycleWant *wants, size_t n, Job **ret)
{
    _cleanup_(job_freep) Job *j = calloc(1, sizeof(*j));
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
        ranks[i] = (Rank){wants[i].path, i};
    qsort(ranks, n, sizeof(*ranks), compare_ranks);
    for (size_t i = 0; i < n; i++)
        first[ranks[i].want] = i > 0 && ranks[i].path == ranks[i - 1].path
                                       ? first[ranks[i - 1].want]
                                       : ranks[i].want;
    for (size_t i = 0; k >= 0 && i < n; i++) {
        const CycleWant *w = &wants[i];

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

int resident_want(Resident *r, const CycleWant *wants, size_t n)
{
    Job *job = NULL;
    int k = n > 0 ? make_job(r, wants, n, &job) : 0;

    if (k < 0)
        return k;
    pthread_mutex_lock(&r->lock);
    job_free(r->job);
    r->job = job;
    atomic_fetch_add(&r->generation, 1);
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    return 0;
}

void resident_report(Resident *r, ResidentReport *ret)
{
    pthread_mutex_lock(&r->lock);
    *ret = r->report;
    ret->working = ret->working || r->job;
    pthread_mutex_unlock(&r->lock);
}

static void release(Resident *r)
{
    r->brought = brought_free(r->brought);
    volume_table_done(&r->volumes);
    job_free(r->job);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    free(r->root);
    free(r);
}

int resident_new(const char *root, Resident **ret)
{
    Resident *r = calloc(1, sizeof(*r));
    pthread_attr_t attributes;
    int k;

    if (!r)
        return -ENOMEM;
    r->root = strdup(root);
    r->cachestat = cachestat_available();
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

Resident *resident_free(Resident *r)
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
