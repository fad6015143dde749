/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/page-reader.h"

#include "base/clock.h"
#include "base/rooted.h"
#include "observe/mapping.h"
#include "system/thread.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define STACK_BYTES (256U * 1024)
#define STOP_USEC   USEC_PER_SEC
#define CHUNK       4096U /* entries of pagemap that are read at once */
#define STAT_BYTES  4096U /* of the text of /proc/PID/stat, at most */

/* A process that was read. */
typedef struct Remembered {
    uint64_t serial; /* of the run */
    uint64_t faults; /* page faults before it was read; 0: unknown, or the entry is unused */
} Remembered;

struct PageReader {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a request was queued, or the thread must end */
    unsigned refs;          /* the owner, and each thread that runs */
    pthread_t thread;
    bool started;
    unsigned generation; /* of the thread that may work; another one ends, or was left behind */
    unsigned newest;     /* generation of the thread that was started last */
    PageRequest queue[PAGE_READER_QUEUE];
    unsigned first, n;
    PageRequest running; /* the thread reads this process … */
    usec_t since;        /* … since then (CLOCK_MONOTONIC); 0: none */
    PageResult results[PAGE_READER_QUEUE];
    unsigned n_results;
    Remembered remembered[PAGE_READER_REMEMBERED]; /* index: the serial modulo the size */
    uint32_t hung[PAGE_READER_HUNG_MAX];           /* users, one for each thread left behind */
    unsigned n_hung;
};

/* --- one process ------------------------------------------------------------------------------ */

/* One process that is examined. */
typedef struct Examined {
    PageResult *result;
    int pagemap_fd;
    uint64_t page_bytes;
    uint64_t n_pages; /* examined so far */
    usec_t deadline;  /* on CLOCK_MONOTONIC */
} Examined;

/* Reads the touched pages of one mapping. Returns 1, 0 if a limit was reached or the process is
 * gone, or -ENOMEM. */
static int read_mapping(Examined *x, const Mapping *m, RangeSet *ret)
{
    uint64_t entries[CHUNK];

    for (uint64_t at = m->start; at < m->end;) {
        size_t n = (size_t)MIN((m->end - at) / x->page_bytes, (uint64_t)CHUNK);
        ssize_t got;
        int r;

        x->n_pages += n;
        if (n == 0 || x->n_pages > PAGE_READER_PAGES || clock_now(CLOCK_MONOTONIC) > x->deadline)
            return 0;
        got = pread(x->pagemap_fd, entries, n * sizeof(uint64_t),
                    (off_t)(at / x->page_bytes * sizeof(uint64_t)));
        if (got < (ssize_t)sizeof(uint64_t))
            return 0;
        n = (size_t)got / sizeof(uint64_t);
        r = mapping_add_touched(m, at, entries, n, x->page_bytes, ret);
        if (r < 0)
            return r;
        at += n * x->page_bytes;
    }
    return 1;
}

static void drop_empty_row(PageResult *p)
{
    if (p->n > 0 && p->files[p->n - 1].ranges.n == 0)
        p->n--;
}

/* Adds the pages of one mapping. A mapping of the file of the last row extends that row. Returns
 * the result of read_mapping(). */
static int add_mapping(Examined *x, const Mapping *m)
{
    PageResult *p = x->result;
    const TouchedFile *last = p->n > 0 ? &p->files[p->n - 1] : NULL;
    uint64_t dev = makedev(m->dev_major, m->dev_minor);

    if (!last || last->dev != dev || last->inode != m->inode) {
        drop_empty_row(p);
        if (p->n == PAGE_READER_FILES)
            return 0;
        if (grow_array(&p->files, &p->allocated, p->n + 1, sizeof(TouchedFile)) < 0)
            return -ENOMEM;
        p->files[p->n++] = (TouchedFile){p->request.serial, dev, m->inode, {0}};
    }
    return read_mapping(x, m, &p->files[p->n - 1].ranges);
}

uint64_t page_reader_count_faults(const char *text)
{
    const char *after = strrchr(text, ')'); /* the name of the program may contain anything */
    uint64_t minor, major;

    /* state, parent, group, session, terminal, its group, flags, minflt, cminflt, majflt */
    if (!after || sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64, &minor,
                         &major) != 2)
        return 0;
    return minor + major;
}

/* Returns how many page faults the process has had; 0: unknown. */
static uint64_t read_faults(uint32_t pid)
{
    _cleanup_free_ char *text = NULL;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    return rooted_read(AT_FDCWD, path, STAT_BYTES, &text, NULL) < 0
                   ? 0
                   : page_reader_count_faults(text);
}

/* Reads all mappings of the process. A result without files is valid. */
static void examine(PageResult *p)
{
    _cleanup_close_ int fd = -EBADF;
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ Mapping *mappings = NULL;
    usec_t start = clock_now(CLOCK_MONOTONIC);
    size_t n = 0;
    char path[64];
    Examined x;
    int r = 1;

    snprintf(path, sizeof(path), "/proc/%u/pagemap", p->request.pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/%u/maps", p->request.pid);
    if (fd < 0 || rooted_read(AT_FDCWD, path, PAGE_READER_MAPS_BYTES, &text, NULL) < 0 ||
        mapping_parse_all(text, &mappings, &n) < 0)
        n = 0;
    x = (Examined){
            .result = p,
            .pagemap_fd = fd,
            .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
            .deadline = clock_now(CLOCK_MONOTONIC) + PAGE_READER_PROCESS_USEC,
    };
    for (size_t i = 0; r > 0 && i < n; i++)
        r = add_mapping(&x, &mappings[i]);
    drop_empty_row(p);
    p->took = clock_now(CLOCK_MONOTONIC) - start;
}

void page_result_done(PageResult *x)
{
    for (size_t i = 0; i < x->n; i++)
        range_set_done(&x->files[i].ranges);
    free(x->files);
    *x = (PageResult){0};
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Call it with the lock, which it releases. */
static void unref(PageReader *r)
{
    bool last = --r->refs == 0;

    pthread_mutex_unlock(&r->lock);
    if (!last)
        return;
    for (unsigned i = 0; i < r->n_results; i++)
        page_result_done(&r->results[i]);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* Takes the next request. Returns false if this thread must end. Call it with the lock. */
static bool next_request(PageReader *r, unsigned generation, PageRequest *ret)
{
    while (r->generation == generation && r->n == 0)
        pthread_cond_wait(&r->changed, &r->lock);
    if (r->generation != generation)
        return false;
    *ret = r->queue[r->first];
    r->first = (r->first + 1) % PAGE_READER_QUEUE;
    r->n--;
    return true;
}

/* Returns what is remembered of the run, or of another one in its place. Call it with the lock. */
static Remembered *remembered(PageReader *r, uint64_t serial)
{
    return &r->remembered[serial % PAGE_READER_REMEMBERED];
}

/* Reads the process of p->request, unless it has had no page fault since its last result. Returns
 * how many it had before; 0: unknown. */
static uint64_t read_process(PageReader *r, PageResult *p)
{
    uint64_t faults = read_faults(p->request.pid);
    Remembered last;

    pthread_mutex_lock(&r->lock);
    last = *remembered(r, p->request.serial);
    pthread_mutex_unlock(&r->lock);
    if (faults == 0 || last.serial != p->request.serial || last.faults != faults)
        examine(p);
    return faults;
}

/* Accepts requests of that user again, because the thread that hung at one of the user's processes
 * ends. Does nothing if the thread was dismissed for another reason. Call it with the lock. */
static void forget_hung(PageReader *r, uint32_t uid)
{
    for (unsigned i = 0; i < r->n_hung; i++)
        if (r->hung[i] == uid) {
            r->hung[i] = r->hung[--r->n_hung];
            return;
        }
}

static void *work(void *arg)
{
    PageReader *r = arg;
    unsigned generation;
    PageRequest q;

    pthread_mutex_lock(&r->lock);
    generation = r->newest;
    while (next_request(r, generation, &q)) {
        PageResult p = {.request = q};
        uint64_t faults;

        r->running = q;
        r->since = clock_now(CLOCK_MONOTONIC);
        pthread_mutex_unlock(&r->lock);
        faults = read_process(r, &p);
        pthread_mutex_lock(&r->lock);
        if (r->generation != generation) {
            forget_hung(r, q.uid);
            page_result_done(&p);
            break;
        }
        r->since = 0;
        if (r->n_results < PAGE_READER_QUEUE) {
            r->results[r->n_results++] = p;
            *remembered(r, q.serial) = (Remembered){q.serial, faults};
        } else
            page_result_done(&p);
    }
    unref(r);
    return NULL;
}

/* Dismisses the thread, which ends as soon as it can. Call it with the lock. */
static void dismiss(PageReader *r)
{
    r->generation++;
    r->since = 0;
    r->started = false;
    pthread_cond_broadcast(&r->changed);
}

/* Call it with the lock. */
static bool start(PageReader *r)
{
    if (r->started)
        return true;
    if (r->n_hung == PAGE_READER_HUNG_MAX)
        return false;
    r->refs++;
    r->newest = r->generation;
    r->started = thread_start(&r->thread, STACK_BYTES, work, r) >= 0;
    r->refs -= !r->started;
    return r->started;
}

/* Removes the requests of that user from the queue. Call it with the lock. */
static void drop_requests(PageReader *r, uint32_t uid)
{
    unsigned n = r->n;

    r->n = 0;
    for (unsigned i = 0; i < n; i++) {
        PageRequest q = r->queue[(r->first + i) % PAGE_READER_QUEUE];

        if (q.uid != uid)
            r->queue[(r->first + r->n++) % PAGE_READER_QUEUE] = q;
    }
}

/* Leaves the thread behind, and stops reading the processes of the user whose process hangs. The
 * user has no entry yet, because there was no request of the user since an entry was made. The
 * empty result makes the caller charge the user for the time that the other users waited. Call it
 * with the lock. */
static void leave_behind(PageReader *r)
{
    r->hung[r->n_hung++] = r->running.uid;
    drop_requests(r, r->running.uid);
    if (r->n_results < PAGE_READER_QUEUE)
        r->results[r->n_results++] =
                (PageResult){.request = r->running, .took = PAGE_READER_HANG_USEC};
    pthread_detach(r->thread);
    dismiss(r);
}

/* Leaves the thread behind if it hangs, and lets another one continue if requests wait. Call it
 * with the lock. */
static void check(PageReader *r)
{
    if (r->since > 0 && clock_now(CLOCK_MONOTONIC) >= r->since + PAGE_READER_HANG_USEC)
        leave_behind(r);
    if (r->n > 0)
        (void)start(r);
}

/* --- the owner -------------------------------------------------------------------------------- */

PageReader *page_reader_new(void)
{
    PageReader *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->refs = 1;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    return r;
}

PageReader *page_reader_free(PageReader *r)
{
    pthread_t thread;
    bool started;

    if (!r)
        return NULL;
    pthread_mutex_lock(&r->lock);
    thread = r->thread;
    started = r->started;
    dismiss(r);
    unref(r);
    if (started)
        (void)thread_join(thread, STOP_USEC);
    return NULL;
}

static bool is_refused(const PageReader *r, uint32_t uid)
{
    for (unsigned i = 0; i < r->n_hung; i++)
        if (r->hung[i] == uid)
            return true;
    return false;
}

PageVerdict page_reader_request(PageReader *r, PageRequest q)
{
    PageVerdict verdict = PAGE_QUEUED;

    pthread_mutex_lock(&r->lock);
    check(r);
    if (is_refused(r, q.uid) || !start(r))
        verdict = PAGE_REFUSED;
    else if (r->n == PAGE_READER_QUEUE)
        verdict = PAGE_FULL;
    else {
        r->queue[(r->first + r->n++) % PAGE_READER_QUEUE] = q;
        pthread_cond_signal(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return verdict;
}

bool page_reader_take(PageReader *r, PageResult *ret)
{
    bool found;

    pthread_mutex_lock(&r->lock);
    check(r);
    found = r->n_results > 0;
    if (found) {
        *ret = r->results[0];
        r->n_results--;
        memmove(r->results, r->results + 1, r->n_results * sizeof(PageResult));
    }
    pthread_mutex_unlock(&r->lock);
    return found;
}

void page_reader_drop(PageReader *r)
{
    pthread_mutex_lock(&r->lock);
    r->n = 0;
    for (unsigned i = 0; i < r->n_results; i++)
        page_result_done(&r->results[i]);
    r->n_results = 0;
    memset(r->remembered, 0, sizeof(r->remembered));
    pthread_mutex_unlock(&r->lock);
}
