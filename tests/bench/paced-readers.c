/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* paced-readers VARIANT FIRST_USEC LAST_USEC READS HELD_MIB OTHER_FILE OTHER_MB_PER_SEC STAT FILE…:
 * reads the files in turn, 4 KB at a time, and measures each read. The pause between two reads
 * falls evenly from FIRST_USEC to LAST_USEC. VARIANT:
 *
 *     kernel   the kernel's read-ahead alone
 *     paced    a prefetcher keeps the window of execute/read-window.h ahead of the reader as well;
 * the reader reports its position fixed    as `paced`, but the window is always
 * READ_WINDOW_LIMIT_BYTES
 *
 * HELD_MIB of memory is held. A thread reads OTHER_FILE at that rate over and over, so that pages
 * are evicted where memory is limited; with a rate of 0 it does not run. STAT is the memory.stat of
 * the control group that has the limit, or "-". Prints JSON: the latency of each read in
 * microseconds; read, window and ideal at each update of the first file's window. */

#include "base/clock.h"
#include "base/rooted.h"
#include "execute/read-window.h"
#include "session/machine.h"
#include "system/memory.h"

#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES  4096U
#define CHUNK_BYTES (128U << 10) /* of one request, as in the session cycle */
#define FILES_MAX   16U
#define UPDATES_MAX 65536U
#define FACTS_USEC  (20 * USEC_PER_MSEC) /* the facts of memory are read again after this time */
#define OTHER_BYTES (256U << 10)

typedef struct Stream {
    int fd;
    uint64_t size;
    atomic_uint_fast64_t position; /* the reader has read so far */
    atomic_uint_fast64_t mark;     /* the prefetcher is woken when the reader is there */
    uint64_t requested;
    ReadWindow window;
} Stream;

typedef struct Update {
    uint64_t read, window_bytes, ideal_bytes;
} Update;

static Stream streams[FILES_MAX];
static size_t n_streams;
static sem_t wake;
static atomic_bool stop;
static bool fixed;
static const char *stat_path;
static Update updates[UPDATES_MAX];
static size_t n_updates;

static void read_facts(ReadSnapshot *s)
{
    MemoryFacts m;
    CacheFacts c;

    if (memory_facts_read_own(AT_FDCWD, &m) < 0 || cache_facts_read_own(AT_FDCWD, &c) < 0)
        errx(EXIT_FAILURE, "cannot read the facts of memory");
    if (strcmp(stat_path, "-") != 0) {
        _cleanup_free_ char *text = NULL;

        if (rooted_read(AT_FDCWD, stat_path, 1U << 16, &text, NULL) < 0)
            errx(EXIT_FAILURE, "%s cannot be read", stat_path);
        cache_facts_apply_group(text, &c);
        m.available_bytes = MIN(m.available_bytes, MAX(c.inactive_bytes, UINT64_C(1)));
    }
    s->inactive_bytes = c.inactive_bytes;
    s->evicted_bytes = c.evicted_bytes;
    s->refaulted_bytes = c.refaulted_bytes;
    s->available_bytes = m.available_bytes;
    s->memory_stall = machine_memory_pressure(AT_FDCWD);
}

/* Returns how many bytes are requested now: 0 while more than half of the window lies before the
 * reader, so that each request is large, and otherwise what fills the window. */
static uint64_t missing_bytes(uint64_t window, uint64_t position, uint64_t requested)
{
    uint64_t ahead = requested - MIN(position, requested);

    return ahead > window / 2 ? 0 : window - ahead;
}

/* Requests what is missing in the window of the stream. */
static void pace(Stream *x, ReadSnapshot *facts)
{
    uint64_t position = atomic_load(&x->position), missing, end;

    facts->now = clock_now(CLOCK_MONOTONIC);
    facts->position_bytes = position;
    read_window_update(&x->window, facts);
    if (fixed)
        x->window.window_bytes = READ_WINDOW_LIMIT_BYTES;
    if (x == &streams[0] && n_updates < UPDATES_MAX)
        updates[n_updates++] = (Update){position / READ_BYTES * n_streams, x->window.window_bytes,
                                        x->window.ideal_bytes};
    missing = missing_bytes(x->window.window_bytes, position, x->requested);
    x->requested = MAX(x->requested, position);
    end = MIN(x->requested + missing, x->size);
    while (x->requested < end) {
        uint64_t length = MIN(end - x->requested, (uint64_t)CHUNK_BYTES);

        (void)posix_fadvise(x->fd, (off_t)x->requested, (off_t)length, POSIX_FADV_WILLNEED);
        x->requested += length;
    }
    atomic_store(&x->mark,
                 x->requested >= x->size ? UINT64_MAX : x->requested - x->window.window_bytes / 2);
}

static void *prefetch(void *arg)
{
    ReadSnapshot facts = {0};
    usec_t due = 0;

    while (!atomic_load(&stop)) {
        if (clock_now(CLOCK_MONOTONIC) >= due) {
            read_facts(&facts);
            due = clock_now(CLOCK_MONOTONIC) + FACTS_USEC;
        }
        for (size_t i = 0; i < n_streams; i++)
            if (atomic_load(&streams[i].position) >= atomic_load(&streams[i].mark))
                pace(&streams[i], &facts);
        while (sem_wait(&wake) < 0)
            ;
    }
    return arg;
}

typedef struct Other {
    int fd;
    uint64_t bytes_per_sec;
} Other;

static void *read_other(void *arg)
{
    static char buffer[OTHER_BYTES];
    const Other *o = arg;
    off_t at = 0;

    while (!atomic_load(&stop)) {
        ssize_t n = pread(o->fd, buffer, sizeof(buffer), at);

        at = n > 0 ? at + n : 0;
        usleep((useconds_t)(USEC_PER_SEC * sizeof(buffer) / o->bytes_per_sec));
    }
    return arg;
}

/* Holds memory that cannot be reclaimed. */
static void hold(uint64_t bytes)
{
    void *p = bytes > 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)
                        : NULL;

    if (p == MAP_FAILED || (p && mlock(p, bytes) < 0))
        err(EXIT_FAILURE, "cannot hold memory");
}

static void read_all(const char *variant, double first_usec, double last_usec, size_t n,
                     double *ret_latency)
{
    static char buffer[READ_BYTES];
    bool prefetches = strcmp(variant, "kernel") != 0;

    for (size_t i = 0; i < n; i++) {
        Stream *x = &streams[i % n_streams];
        double pause = first_usec + (last_usec - first_usec) * (double)i / (double)n;
        uint64_t position = atomic_load(&x->position);
        struct timespec t[2], sleep = timespec_of(0);

        clock_gettime(CLOCK_MONOTONIC, &t[0]);
        if (pread(x->fd, buffer, READ_BYTES, (off_t)position) != READ_BYTES)
            errx(EXIT_FAILURE, "a file is too short");
        clock_gettime(CLOCK_MONOTONIC, &t[1]);
        ret_latency[i] = (double)(timespec_nsec(&t[1]) - timespec_nsec(&t[0])) / 1000;
        position += READ_BYTES;
        atomic_store(&x->position, position);
        if (prefetches && position >= atomic_load(&x->mark))
            sem_post(&wake);
        sleep.tv_nsec = (long)(pause * 1000);
        nanosleep(&sleep, NULL);
    }
}

static void print(const double *latency, size_t n)
{
    printf("{\"latency\": [");
    for (size_t i = 0; i < n; i++)
        printf("%s%.1f", i ? "," : "", latency[i]);
    printf("], \"window\": [");
    for (size_t i = 0; i < n_updates; i++)
        printf("%s[%llu,%llu,%llu]", i ? "," : "", (unsigned long long)updates[i].read,
               (unsigned long long)updates[i].window_bytes,
               (unsigned long long)updates[i].ideal_bytes);
    printf("]}\n");
}

static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOATIME);

    if (fd < 0)
        err(EXIT_FAILURE, "%s", path);
    return fd;
}

static pthread_t start(void *(*function)(void *), void *arg)
{
    pthread_t t;

    if (pthread_create(&t, NULL, function, arg) != 0)
        errx(EXIT_FAILURE, "cannot start a thread");
    return t;
}

int main(int argc, char **argv)
{
    pthread_t prefetcher = 0, other_reader = 0;
    Other other;
    double *latency;
    size_t n;

    if (argc < 10 || argc > 9 + (int)FILES_MAX)
        errx(EXIT_FAILURE, "usage: paced-readers VARIANT FIRST_USEC LAST_USEC READS HELD_MIB "
                           "OTHER_FILE OTHER_MB_PER_SEC STAT FILE…");
    fixed = strcmp(argv[1], "fixed") == 0;
    n = strtoul(argv[4], NULL, 10);
    latency = calloc(n + 1, sizeof(*latency));
    if (!latency)
        errx(EXIT_FAILURE, "no memory");
    hold(strtoull(argv[5], NULL, 10) << 20);
    other = (Other){open_file(argv[6]), strtoull(argv[7], NULL, 10) * 1000000};
    stat_path = argv[8];
    for (int i = 9; i < argc; i++) {
        struct stat st;
        Stream *x = &streams[n_streams++];

        x->fd = open_file(argv[i]);
        if (fstat(x->fd, &st) < 0)
            err(EXIT_FAILURE, "%s", argv[i]);
        x->size = (uint64_t)st.st_size;
    }
    sem_init(&wake, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    if (other.bytes_per_sec > 0) {
        other_reader = start(read_other, &other);
        sleep(2); /* until memory is full */
    }
    if (strcmp(argv[1], "kernel") != 0)
        prefetcher = start(prefetch, NULL);
    read_all(argv[1], strtod(argv[2], NULL), strtod(argv[3], NULL), n, latency);
    atomic_store(&stop, true);
    sem_post(&wake);
    if (strcmp(argv[1], "kernel") != 0)
        pthread_join(prefetcher, NULL);
    if (other.bytes_per_sec > 0)
        pthread_join(other_reader, NULL);
    print(latency, n);
    free(latency);
    return 0;
}
