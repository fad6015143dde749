/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests which pages of mapped files count as touched, with the page tables of this process. The
 * linker wraps rooted_read(), so that the maps of a process can hang, and clock_now(). */

#include "observe/mapping.h"
#include "observe/page-reader.h"
#include "observe/touched.h"
#include "record/touched-rows.h"

#include "base/clock.h"
#include "base/rooted.h"

#include "util/range-util.h"
#include "util/root-util.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE UINT64_C(4096)
#define IN   (UINT64_C(1) << 63)
#define OUT  (UINT64_C(1) << 62) /* swapped out */

static void lines_of_maps(void **state)
{
    static const char *const refused[] = {
            "",
            "7f00-",
            "7f0000000000-7f0000004000 rw-p 00000000 00:00 0 ", /* anonymous */
            "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]",
            "7f0000004000-7f0000004000 r--p 00000000 fd:01 42 /empty",
            "7f0000000000-7f0000004000 r--p 00000000 00:05 42 socket:[42]",
            "7f0000000000-7f0000004000 r--p fffffffffffff000 fd:01 42 /beyond",
            "7f0000000000-7f0000004000 r--p 00000000 fd:01 /no/inode",
            "x",
            "7f0000000000-7f0000004000 r--p 00000000 fd-01 42 /a",
            "7f0000000000-7f0040000000 rw-s 00000000 00:01 57   /SYSV00000000 (deleted)",
            "7f0000000000-7f0040000000 rw-s 00000000 00:01 58   /memfd:pool (deleted)\n",
    };
    Mapping m;

    assert_true(mapping_parse("7f0000000000-7f0000004000 r-xp 00002000 fd:01 1234567 /usr/lib/a b",
                              &m));
    assert_int_equal(m.start, 0x7f0000000000);
    assert_int_equal(m.end, 0x7f0000004000);
    assert_int_equal(m.offset, 0x2000);
    assert_int_equal(m.dev_major, 0xfd);
    assert_int_equal(m.dev_minor, 1);
    assert_int_equal(m.inode, 1234567);
    for (size_t i = 0; i < ELEMENTSOF(refused); i++)
        assert_false(mapping_parse(refused[i], &m));
}

static void all_lines_of_maps(void **state)
{
    char text[] = "5000-9000 r-xp 00000000 fd:01 7 /four\n"
                  "a000-b000 rw-p 00000000 00:00 0\n"
                  "b000-d000 r--p 00000000 fd:01 8 /two\n"
                  "d000-e000 r--p 00000000 fd:01 7 (deleted)\n"
                  "e000-f000 r--p 00000000 fd:01 9 /one (deleted) (not)\n"
                  "10000-12000 r--p 00000000 fd:01 8 /two";
    static const uint64_t starts[] = {0xe000, 0xb000, 0x10000, 0x5000};
    char none[] = "";
    _cleanup_free_ Mapping *mappings = NULL, *nothing = NULL;
    size_t n;

    (void)state;
    assert_int_equal(mapping_parse_all(text, &mappings, &n), 0);
    assert_int_equal(n, ELEMENTSOF(starts));
    for (size_t i = 0; i < n; i++)
        assert_int_equal(mappings[i].start, starts[i]);
    assert_int_equal(mapping_parse_all(none, &nothing, &n), 0);
    assert_int_equal(n, 0);
}

static void entries_of_pagemap(void **state)
{
    static const uint64_t entries[] = {IN, 0, IN, OUT | 5, 0, 0, IN};
    const Mapping m = {.start = 0x10000, .end = 0x20000, .offset = 3 * PAGE, .inode = 1};
    _cleanup_range_set_ RangeSet found = {0}, wanted = {0};

    assert_int_equal(mapping_add_touched(&m, 0x11000, entries, ELEMENTSOF(entries), PAGE, &found),
                     0);
    range_set_insert(&wanted, 4 * PAGE, PAGE);
    range_set_insert(&wanted, 6 * PAGE, 2 * PAGE);
    range_set_insert(&wanted, 10 * PAGE, PAGE);
    assert_true(range_set_equal(&found, &wanted));
    assert_int_equal(mapping_add_touched(&m, 0x11000, entries, 0, PAGE, &found), 0);
    assert_true(range_set_equal(&found, &wanted));
}

static bool contains(const RangeSet *s, uint64_t page)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->ranges[i].offset <= page * PAGE && page * PAGE < range_end(&s->ranges[i]))
            return true;
    return false;
}

static const TouchedFile *row_of(const Touched *t, uint64_t serial, ino_t inode)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->files[i].serial == serial && t->files[i].inode == inode)
            return &t->files[i];
    return NULL;
}

/* The process whose maps hang, and the number of reads that hang. */
static uint32_t hanging_pid;
static unsigned n_hanging;
static pthread_mutex_t hang = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hang_changed = PTHREAD_COND_INITIALIZER;

static _Atomic usec_t passed; /* by which the clock is fast */

usec_t __real_clock_now(clockid_t clock);
usec_t __wrap_clock_now(clockid_t clock);

usec_t __wrap_clock_now(clockid_t clock)
{
    return __real_clock_now(clock) + passed;
}

int __real_rooted_read(int root_fd, const char *path, size_t max_size, char **ret,
                       size_t *ret_size);
int __wrap_rooted_read(int root_fd, const char *path, size_t max_size, char **ret,
                       size_t *ret_size);

int __wrap_rooted_read(int root_fd, const char *path, size_t max_size, char **ret, size_t *ret_size)
{
    char maps[64];

    pthread_mutex_lock(&hang);
    snprintf(maps, sizeof(maps), "/proc/%u/maps", hanging_pid);
    if (strcmp(path, maps) == 0) {
        n_hanging++;
        pthread_cond_broadcast(&hang_changed);
        while (hanging_pid > 0)
            pthread_cond_wait(&hang_changed, &hang);
        n_hanging--;
        pthread_cond_broadcast(&hang_changed);
    }
    pthread_mutex_unlock(&hang);
    return __real_rooted_read(root_fd, path, max_size, ret, ret_size);
}

/* Waits until that many reads hang. */
static void await_hanging(unsigned n)
{
    pthread_mutex_lock(&hang);
    while (n_hanging != n)
        pthread_cond_wait(&hang_changed, &hang);
    pthread_mutex_unlock(&hang);
}

static void hang_at(uint32_t pid)
{
    pthread_mutex_lock(&hang);
    hanging_pid = pid;
    pthread_cond_broadcast(&hang_changed);
    pthread_mutex_unlock(&hang);
}

/* A file of 200 pages, and a private mapping of it. */
typedef struct Mapped {
    TestRoot root;
    struct stat st;
    volatile char *map;
} Mapped;

static void map_file(Mapped *m)
{
    int fd;

    assert_int_equal(test_root_make(&m->root), 0);
    test_root_put(&m->root, "file", "");
    fd = openat(m->root.fd, "file", O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    for (unsigned i = 0; i < 200; i++) {
        char page[4096] = {(char)i};

        assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
    }
    assert_int_equal(fstat(fd, &m->st), 0);
    m->map = mmap(NULL, 200 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    assert_true(m->map != MAP_FAILED);
    close(fd);
}

static void unmap_file(Mapped *m)
{
    munmap((void *)m->map, 200 * PAGE);
    assert_int_equal(test_root_remove(&m->root), 0);
}

/* A run of this process. */
static ProcessRun run_of(uint64_t serial, usec_t start, uint32_t uid)
{
    return (ProcessRun){
            .serial = serial,
            .pid = (uint32_t)getpid(),
            .uid = uid,
            .n_processes = 1,
            .same_as = PROCESS_NONE,
            .start = start,
    };
}

/* Calls touched_run() until it has added rows of that run. */
static const TouchedFile *await_row(Touched *t, PageReader *reader, const ProcessRun *runs,
                                    size_t n_runs, UserShares *shares, usec_t now, uint64_t serial,
                                    ino_t inode)
{
    const TouchedFile *f = NULL;

    for (unsigned i = 0; i < 10000 && !f; i++) {
        assert_int_equal(touched_run(t, reader, runs, n_runs, shares, now), 0);
        f = row_of(t, serial, inode);
        if (!f)
            usleep(1000);
    }
    assert_non_null(f);
    return f;
}

/* Calls touched_run() until the row of the run has that page. */
static void await_page(Touched *t, PageReader *reader, const ProcessRun *runs, size_t n_runs,
                       UserShares *shares, usec_t now, uint64_t serial, ino_t inode, uint64_t page)
{
    bool found = false;

    for (unsigned i = 0; i < 10000 && !found; i++) {
        const TouchedFile *f = row_of(t, serial, inode);

        assert_int_equal(touched_run(t, reader, runs, n_runs, shares, now), 0);
        found = f && contains(&f->ranges, page);
        if (!found)
            usleep(1000);
    }
    assert_true(found);
}

static void page_faults(void **state)
{
    (void)state;
    assert_int_equal(page_reader_count_faults("7 (a) b) S 1 7 7 0 -1 4194560 900 1000 20 3 0 0"),
                     920);
    assert_int_equal(page_reader_count_faults("7 (a) S 1 7 7 0 -1 4194560 900 1000"), 0);
    assert_int_equal(page_reader_count_faults("7 a S 1 7"), 0);
    assert_int_equal(page_reader_count_faults(""), 0);
}

/* Lets the reader read the process. */
static PageResult result_of(PageReader *reader, pid_t pid)
{
    const PageRequest q = {.serial = 300, .pid = (uint32_t)pid, .uid = 1000};
    PageResult p = {0};

    assert_int_equal(page_reader_request(reader, q), PAGE_QUEUED);
    while (!page_reader_take(reader, &p))
        usleep(1000);
    return p;
}

/* Returns how many files the reader finds in the process. */
static size_t read_process(PageReader *reader, pid_t pid)
{
    PageResult p = result_of(reader, pid);
    size_t n = p.n;

    page_result_done(&p);
    return n;
}

/* A mapping that is larger than the limit of one process hides no other. The kernel usually places
 * it before the others, because it is the newest. */
static void a_large_mapping(void **state)
{
    const size_t size = ((size_t)PAGE_READER_PAGES + 1) * PAGE;
    PageReader *reader = page_reader_new();
    bool found = false;
    PageResult p;
    Mapped m;
    char *large;
    int fd;

    (void)state;
    /* Under qemu-arm a look does not find the small mapping. The cause is not known. */
    if (sizeof(void *) == 4 && getenv("HEADSTART_TEST_EMULATED"))
        skip();
    map_file(&m);
    (void)m.map[0];
    fd = openat(m.root.fd, "large", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    large = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(large != MAP_FAILED);
    close(fd);
    p = result_of(reader, getpid());
    for (size_t i = 0; i < p.n; i++)
        found = found || (p.files[i].inode == m.st.st_ino && contains(&p.files[i].ranges, 0));
    assert_true(found);
    page_result_done(&p);
    page_reader_free(reader);
    munmap(large, size);
    unmap_file(&m);
}

/* Waits until the process waits. */
static void await_asleep(pid_t pid)
{
    _cleanup_free_ char *text = NULL;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    do {
        free(text);
        text = NULL;
        assert_int_equal(rooted_read(AT_FDCWD, path, 4096, &text, NULL), 0);
    } while (!strstr(text, ") S "));
}

/* A process that has not changed since its last look is not read again. */
static void an_unchanged_process(void **state)
{
    PageReader *reader = page_reader_new();
    int to[2], from[2];
    char byte = 0;
    Mapped m;
    pid_t pid;

    (void)state;
    /* Under an emulator the process changes between two looks. */
    if (getenv("HEADSTART_TEST_EMULATED"))
        skip();
    map_file(&m);
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(to[1]);
        for (size_t i = 0; read(to[0], &byte, 1) == 1; i++) {
            (void)*(volatile char *)&m.map[i * 64 * PAGE];
            if (write(from[1], &byte, 1) != 1)
                break;
        }
        _exit(0);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(write(to[1], &byte, 1), 1);
        assert_int_equal(read(from[0], &byte, 1), 1);
        await_asleep(pid);
        assert_true(read_process(reader, pid) > 0);
        assert_int_equal(read_process(reader, pid), 0);
    }
    page_reader_drop(reader);
    assert_true(read_process(reader, pid) > 0);
    close(to[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(to[0]);
    close(from[0]);
    close(from[1]);
    page_reader_free(reader);
    unmap_file(&m);
}

/* The kernel maps up to 16 pages around the one that is touched, so the file has many. */
static void pages_of_this_process(void **state)
{
    const uint32_t uid = getuid();
    ProcessRun runs[] = {
            run_of(1, USEC_PER_SEC / 2, uid), run_of(2, USEC_PER_SEC, uid),
            run_of(4, USEC_PER_SEC, uid),     run_of(5, USEC_PER_SEC, uid),
            run_of(6, USEC_PER_SEC, uid),     run_of(8, 2 * USEC_PER_SEC, uid),
    };
    const usec_t early = USEC_PER_SEC + TOUCHED_FIRST_USEC, late = early + TOUCHED_INTERVAL_USEC,
                 last = early + (TOUCHED_LOOKS - 1) * TOUCHED_INTERVAL_USEC;
    PageReader *reader = page_reader_new();
    UserShares shares = {0};
    Touched t = {.from = USEC_PER_SEC / 2}; /* the first run began before the stage */
    const TouchedFile *f;
    Mapped m;
    size_t n;

    /* Under qemu-arm and qemu-s390x a look sometimes lacks page 100. The cause is not known. */
    if (getenv("HEADSTART_TEST_EMULATED"))
        skip();
    runs[1].own = true;
    runs[3].same_as = 2;
    runs[4].n_processes = 0;
    map_file(&m);
    (void)m.map[3 * PAGE];
    m.map[100 * PAGE] = 1; /* a private copy of the page, which was read first */
    assert_int_equal(touched_run(&t, reader, runs, ELEMENTSOF(runs), &shares, early - 1), 0);
    assert_int_equal(t.next[0], 2); /* the second run is too young */
    f = await_row(&t, reader, runs, ELEMENTSOF(runs), &shares, early, 4, m.st.st_ino);
    assert_int_equal(f->dev, m.st.st_dev);
    assert_true(contains(&f->ranges, 3));
    assert_true(contains(&f->ranges, 100));
    assert_false(contains(&f->ranges, 50));
    assert_false(contains(&f->ranges, 150));
    n = t.n;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(t.files[i].serial, 4);

    (void)m.map[150 * PAGE];
    f = await_row(&t, reader, runs, ELEMENTSOF(runs), &shares, late, 8, m.st.st_ino);
    assert_true(contains(&f->ranges, 150));
    await_page(&t, reader, runs, ELEMENTSOF(runs), &shares, late, 4, m.st.st_ino, 150);
    (void)m.map[199 * PAGE];
    await_page(&t, reader, runs, ELEMENTSOF(runs), &shares, last, 4, m.st.st_ino, 199);
    for (size_t i = 0; i < t.n; i++) {
        assert_true(t.files[i].serial == 4 || t.files[i].serial == 8);
        assert_true(i == 0 || t.files[i - 1].serial <= t.files[i].serial);
        for (size_t k = 0; k < i; k++) /* several looks make one row */
            assert_false(t.files[i].serial == t.files[k].serial &&
                         t.files[i].inode == t.files[k].inode && t.files[i].dev == t.files[k].dev);
    }
    assert_true(user_shares_left(&shares, user_shares_row(&shares, uid), SHARED_TOUCHED_RANGES) <
                user_shares_left(&(UserShares){0}, 1, SHARED_TOUCHED_RANGES));
    touched_done(&t);
    page_reader_free(reader);
    unmap_file(&m);
}

/* A user who has used up the share of the time is not examined; one without room for ranges adds
 * none. */
static void the_share_of_a_user(void **state)
{
    static const Shared what[] = {SHARED_TOUCHED_USEC, SHARED_TOUCHED_RANGES};
    const ProcessRun runs[] = {run_of(1, 1, 1000), run_of(2, 1, 1001)};

    for (size_t i = 0; i < ELEMENTSOF(what); i++) {
        PageReader *reader = page_reader_new();
        UserShares shares = {0};
        uint16_t row = user_shares_row(&shares, 1000);
        Touched t = {0};
        Mapped m;

        map_file(&m);
        (void)m.map[3 * PAGE];
        user_shares_charge(&shares, row, what[i], user_shares_left(&shares, row, what[i]));
        (void)await_row(&t, reader, runs, ELEMENTSOF(runs), &shares, USEC_PER_HOUR, 2, m.st.st_ino);
        assert_null(row_of(&t, 1, m.st.st_ino));
        touched_done(&t);
        page_reader_free(reader);
        unmap_file(&m);
    }
}

/* Waits for a result, at most for ten seconds, and checks its run. */
static void await_result(PageReader *reader, uint64_t serial, PageResult *ret)
{
    bool found = false;

    for (unsigned i = 0; i < 10000 && !found; i++) {
        found = page_reader_take(reader, ret);
        if (!found)
            usleep(1000);
    }
    assert_true(found);
    assert_int_equal(ret->request.serial, serial);
}

/* Lets the thread count as hanging, and checks the result of the process at which it hangs. */
static void let_hang(PageReader *reader, uint64_t serial)
{
    PageResult result;

    passed += PAGE_READER_HANG_USEC;
    assert_true(page_reader_take(reader, &result));
    assert_int_equal(result.request.serial, serial);
    assert_int_equal(result.n, 0);
    assert_int_equal(result.took, PAGE_READER_HANG_USEC);
    page_result_done(&result);
}

/* The lock of a process's address space is held by a user: the recorder goes on, and examines no
 * process of this user meanwhile. */
static void a_process_that_hangs(void **state)
{
    const PageRequest stuck = {1, (uint32_t)getppid(), 1000}, own = {2, (uint32_t)getpid(), 1001};
    PageReader *reader = page_reader_new();
    PageResult result;

    hang_at(stuck.pid);
    assert_int_equal(page_reader_request(reader, stuck), PAGE_QUEUED);
    assert_int_equal(page_reader_request(reader, own), PAGE_QUEUED);
    await_hanging(1);
    let_hang(reader, 1);
    await_result(reader, 2, &result); /* although the first request hangs */
    page_result_done(&result);
    assert_int_equal(page_reader_request(reader, stuck), PAGE_REFUSED);
    assert_int_equal(page_reader_request(reader, own), PAGE_QUEUED);
    passed = 0;
    page_reader_free(reader); /* while a thread hangs */
    hang_at(0);
    await_hanging(0);
}

/* A user whose processes all hang makes one thread hang. When it ends, the user's processes are
 * read again. */
static void many_processes_of_a_user_hang(void **state)
{
    const PageRequest own = {2, (uint32_t)getpid(), 1001};
    PageRequest stuck = {10, (uint32_t)getppid(), 1000};
    PageReader *reader = page_reader_new();
    PageResult result;

    (void)state;
    hang_at(stuck.pid);
    for (; stuck.serial < 10 + 2 * PAGE_READER_HUNG_MAX; stuck.serial++)
        assert_int_equal(page_reader_request(reader, stuck), PAGE_QUEUED);
    assert_int_equal(page_reader_request(reader, own), PAGE_QUEUED);
    await_hanging(1);
    let_hang(reader, 10);
    await_result(reader, 2, &result);
    assert_true(result.n > 0);
    page_result_done(&result);
    await_hanging(1);
    assert_int_equal(page_reader_request(reader, stuck), PAGE_REFUSED);
    hang_at(0);
    for (unsigned i = 0; i < 10000 && page_reader_request(reader, stuck) == PAGE_REFUSED; i++)
        usleep(1000);
    await_result(reader, stuck.serial, &result);
    page_result_done(&result);
    passed = 0;
    page_reader_free(reader);
    await_hanging(0);
}

/* Each user can make one thread hang, and a few users together all of them, until one ends. */
static void many_users_hang(void **state)
{
    const PageRequest own = {2, (uint32_t)getpid(), 1};
    PageReader *reader = page_reader_new();
    PageResult result;

    hang_at((uint32_t)getppid());
    for (uint32_t i = 0; i < PAGE_READER_HUNG_MAX; i++) {
        assert_int_equal(
                page_reader_request(reader, (PageRequest){1, (uint32_t)getppid(), 1000 + i}),
                PAGE_QUEUED);
        if (i == PAGE_READER_HUNG_MAX - 1)
            assert_int_equal(page_reader_request(reader, own), PAGE_QUEUED);
        await_hanging(i + 1);
        let_hang(reader, 1);
        assert_false(page_reader_take(reader, &result));
    }
    assert_int_equal(page_reader_request(reader, own), PAGE_REFUSED);
    hang_at(0);
    await_result(reader, 2, &result); /* which waits in the queue */
    page_result_done(&result);
    passed = 0;
    page_reader_free(reader);
    await_hanging(0);
}

static void a_full_queue(void **state)
{
    PageReader *reader = page_reader_new();
    PageRequest q = {1, (uint32_t)getppid(), 1000};

    hang_at(q.pid);
    assert_int_equal(page_reader_request(reader, q), PAGE_QUEUED);
    await_hanging(1);
    for (unsigned i = 0; i < PAGE_READER_QUEUE; i++)
        assert_int_equal(page_reader_request(reader, q), PAGE_QUEUED);
    assert_int_equal(page_reader_request(reader, q), PAGE_FULL);
    page_reader_drop(reader);
    assert_int_equal(page_reader_request(reader, q), PAGE_QUEUED);
    page_reader_free(reader);
    hang_at(0);
    await_hanging(0);
}

static uint32_t add_file(Trace *t, const char *name, uint64_t inode, bool directory)
{
    uint32_t path, file;

    assert_int_equal(trace_add_path(t, name, &path), 0);
    assert_int_equal(trace_add_file(t, path, 0, directory, &file), 0);
    t->files[file].inode = inode;
    t->files[file].size_bytes = directory ? 0 : 10 * PAGE + 1;
    return file;
}

static void add_touched(Touched *t, uint64_t serial, uint64_t dev, uint64_t inode, uint64_t from,
                        uint64_t to)
{
    assert_int_equal(grow_array(&t->files, &t->allocated, t->n + 1, sizeof(TouchedFile)), 0);
    t->files[t->n] = (TouchedFile){serial, dev, inode, {0}};
    range_set_insert(&t->files[t->n++].ranges, from * PAGE, (to - from) * PAGE);
}

static void rows_of_the_trace(void **state)
{
    static const uint64_t devs[] = {77};
    static const ProcessRun runs[] = {{.serial = 3}, {.serial = 5}, {.serial = 9}};
    static const uint32_t applications[] = {1, 0, TRACE_NONE};
    TraceVolume v = {.uuid = (char *)"u", .fstype = (char *)"ext4"};
    _cleanup_trace_ Trace *t = trace_new(STAGE_SESSION);
    _cleanup_range_set_ RangeSet wanted = {0};
    uint32_t a, b, library, id;
    Touched touched = {0};

    assert_int_equal(trace_add_volume(t, &v, &id), 0);
    library = add_file(t, "/lib", 30, false);
    assert_int_equal(trace_add_application(t, add_file(t, "/a", 10, false), &a), 0);
    assert_int_equal(trace_add_application(t, add_file(t, "/b", 20, false), &b), 0);
    add_file(t, "/link", 40, false);
    add_file(t, "/other-link", 40, false);
    add_file(t, "/d", 50, true);

    add_touched(&touched, 3, 77, 30, 0, 2); /* run 0 is application 1 */
    add_touched(&touched, 3, 77, 30, 5, 6); /* the gap of three pages is short */
    add_touched(&touched, 3, 77, 10, 0, 1);
    add_touched(&touched, 5, 77, 30, 1, 2);   /* run 1 is application 0 */
    add_touched(&touched, 5, 77, 30, 7, 20);  /* beyond the end of the file */
    add_touched(&touched, 9, 77, 30, 3, 4);   /* its application is not in the trace */
    add_touched(&touched, 4, 77, 30, 3, 4);   /* no such run */
    add_touched(&touched, 3, 78, 30, 3, 4);   /* another filesystem */
    add_touched(&touched, 3, 77, 31, 3, 4);   /* not in the trace */
    add_touched(&touched, 3, 77, 40, 0, 1);   /* two names */
    add_touched(&touched, 3, 77, 50, 0, 1);   /* a directory */
    add_touched(&touched, 3, 77, 20, 11, 12); /* only beyond the end */
    assert_int_equal(touched_add_rows(&touched, devs, runs, ELEMENTSOF(runs), applications, t), 0);
    touched_done(&touched);

    assert_int_equal(trace_validate(t), 0);
    assert_int_equal(t->n_touched, 3);
    assert_int_equal(t->touched[0].application, 0);
    assert_int_equal(t->touched[0].file, library);
    range_set_insert(&wanted, PAGE, PAGE);
    range_set_insert(&wanted, 7 * PAGE, 3 * PAGE + 1);
    assert_true(range_set_equal(&t->touched[0].ranges, &wanted));
    assert_int_equal(t->touched[1].application, 1);
    assert_int_equal(t->touched[1].file, library);
    assert_int_equal(t->touched[1].ranges.n, 1);
    assert_int_equal(t->touched[1].ranges.ranges[0].length, 6 * PAGE);
    assert_int_equal(t->touched[2].file, t->applications[0].file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(lines_of_maps),
            cmocka_unit_test(entries_of_pagemap),
            cmocka_unit_test(all_lines_of_maps),
            cmocka_unit_test(a_large_mapping),
            cmocka_unit_test(pages_of_this_process),
            cmocka_unit_test(the_share_of_a_user),
            cmocka_unit_test(rows_of_the_trace),
            cmocka_unit_test(a_process_that_hangs),
            cmocka_unit_test(page_faults),
            cmocka_unit_test(an_unchanged_process),
            cmocka_unit_test(many_users_hang),
            cmocka_unit_test(a_full_queue),
            cmocka_unit_test(many_processes_of_a_user_hang),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
