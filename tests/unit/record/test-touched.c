/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests which pages of mapped files count as touched, with the page tables of this process. */

#include "record/mapping.h"
#include "record/touched-rows.h"
#include "record/touched.h"

#include "util/range-util.h"
#include "util/root-util.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

/* The kernel maps up to 16 pages around the one that is touched, so the file has many. */
static void pages_of_this_process(void **state)
{
    const uint32_t pid = (uint32_t)getpid(), uid = getuid();
    const ProcessRun runs[] = {
            {.serial = 1, .pid = pid, .uid = uid, .n_processes = 1, .same_as = PROCESS_NONE},
            {.serial = 2,
             .pid = pid,
             .uid = uid,
             .n_processes = 1,
             .same_as = PROCESS_NONE,
             .start = USEC_PER_SEC,
             .own = true},
            {.serial = 4,
             .pid = pid,
             .uid = uid,
             .n_processes = 1,
             .same_as = PROCESS_NONE,
             .start = USEC_PER_SEC},
            {.serial = 5,
             .pid = pid,
             .uid = uid,
             .n_processes = 1,
             .same_as = 2,
             .start = USEC_PER_SEC},
            {.serial = 6,
             .pid = pid,
             .uid = uid,
             .n_processes = 0,
             .same_as = PROCESS_NONE,
             .start = USEC_PER_SEC},
            {.serial = 8,
             .pid = pid,
             .uid = uid,
             .n_processes = 1,
             .same_as = PROCESS_NONE,
             .start = 2 * USEC_PER_SEC},
    };
    const usec_t early = USEC_PER_SEC + TOUCHED_EARLY_USEC;
    UserShares shares = {0};
    Touched t = {0};
    TestRoot root;
    struct stat st;
    volatile char *map;
    const TouchedFile *f;
    size_t n;
    int fd;

    assert_int_equal(test_root_make(&root), 0);
    test_root_put(&root, "file", "");
    fd = openat(root.fd, "file", O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    for (unsigned i = 0; i < 200; i++) {
        char page[4096] = {(char)i};

        assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
    }
    assert_int_equal(fstat(fd, &st), 0);
    map = mmap(NULL, 200 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    assert_true(map != MAP_FAILED);
    (void)map[3 * PAGE];
    map[100 * PAGE] = 1; /* a private copy of the page, which was read first */

    assert_int_equal(touched_run(&t, runs, ELEMENTSOF(runs), &shares, early - 1), 0);
    assert_int_equal(t.n, 0);
    assert_int_equal(touched_run(&t, runs, ELEMENTSOF(runs), &shares, early), 0);
    f = row_of(&t, 4, st.st_ino);
    assert_non_null(f);
    assert_int_equal(f->dev, st.st_dev);
    assert_true(contains(&f->ranges, 3));
    assert_true(contains(&f->ranges, 100));
    assert_false(contains(&f->ranges, 50));
    assert_false(contains(&f->ranges, 150));
    for (size_t i = 0; i < t.n; i++)
        assert_int_equal(t.files[i].serial, 4);
    n = t.n;
    assert_int_equal(touched_run(&t, runs, ELEMENTSOF(runs), &shares, early), 0);
    assert_int_equal(t.n, n); /* each process once at each age */

    (void)map[150 * PAGE];
    assert_int_equal(
            touched_run(&t, runs, ELEMENTSOF(runs), &shares, USEC_PER_SEC + TOUCHED_LATE_USEC), 0);
    assert_non_null(row_of(&t, 8, st.st_ino)); /* has become old enough meanwhile */
    assert_true(t.n > 2 * n);
    assert_true(user_shares_left(&shares, user_shares_row(&shares, uid), SHARED_TOUCHED_RANGES) <
                user_shares_left(&(UserShares){0}, 1, SHARED_TOUCHED_RANGES));
    touched_done(&t);
    munmap((void *)map, 200 * PAGE);
    close(fd);
    assert_int_equal(test_root_remove(&root), 0);
}

/* A user who has used up the share adds nothing. */
static void the_share_of_a_user(void **state)
{
    const ProcessRun run = {.serial = 1,
                            .pid = (uint32_t)getpid(),
                            .uid = 1000,
                            .n_processes = 1,
                            .same_as = PROCESS_NONE,
                            .start = 1};
    UserShares shares = {0};
    uint16_t row = user_shares_row(&shares, 1000);
    Touched t = {0};

    user_shares_charge(&shares, row, SHARED_TOUCHED_RANGES,
                       user_shares_left(&shares, row, SHARED_TOUCHED_RANGES));
    assert_int_equal(touched_run(&t, &run, 1, &shares, USEC_PER_HOUR), 0);
    assert_int_equal(t.n, 0);
    touched_done(&t);
    shares = (UserShares){0};
    row = user_shares_row(&shares, 1000);
    user_shares_charge(&shares, row, SHARED_TOUCHED_USEC,
                       user_shares_left(&shares, row, SHARED_TOUCHED_USEC));
    assert_int_equal(touched_run(&t, &run, 1, &shares, USEC_PER_HOUR), 0);
    assert_int_equal(t.n, 0);
    touched_done(&t);
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
            cmocka_unit_test(lines_of_maps),         cmocka_unit_test(entries_of_pagemap),
            cmocka_unit_test(pages_of_this_process), cmocka_unit_test(the_share_of_a_user),
            cmocka_unit_test(rows_of_the_trace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
