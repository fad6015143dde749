/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests bisection with a known residency: every subset of few pages, then random ones. */

#include "observe/resident-ranges.h"
#include "util/range-util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define PAGE 4096U

typedef struct Device {
    const bool *resident;
    uint64_t n;
    unsigned asked;
    unsigned fail_at;   /* the call that fails; 0: none */
    unsigned change_at; /* from this call on no page is resident */
} Device;

static int64_t count(void *arg, uint64_t offset, uint64_t length)
{
    Device *d = arg;
    int64_t n = 0;

    assert_true(length > 0);
    assert_int_equal(offset % PAGE, 0);
    if (++d->asked == d->fail_at)
        return -EPERM;
    if (d->change_at && d->asked >= d->change_at)
        return 0;
    for (uint64_t i = offset / PAGE; i < DIV_ROUND_UP(offset + length, (uint64_t)PAGE); i++) {
        assert_true(i < d->n);
        n += d->resident[i];
    }
    return n;
}

static int search(count_resident_t f, void *arg, uint64_t size, RangeSet *ret, unsigned *ret_calls)
{
    return search_resident(
            &(ResidencySearch){
                    .count = f, .arg = arg, .page_bytes = PAGE, .calls_max = CACHESTAT_CALLS_MAX},
            size, ret, ret_calls);
}

/* Computes the expected ranges by a simple loop. */
static void expected(const bool *resident, uint64_t n, uint64_t size, RangeSet *ret)
{
    for (uint64_t i = 0; i < n; i++)
        if (resident[i])
            assert_int_equal(range_set_insert_span(ret, i * PAGE, MIN((i + 1) * PAGE, size)), 0);
}

static void check(const bool *resident, uint64_t n, uint64_t size)
{
    _cleanup_range_set_ RangeSet found = {0}, wanted = {0};
    Device d = {.resident = resident, .n = n};
    unsigned calls = 0;

    expected(resident, n, size, &wanted);
    assert_int_equal(search(count, &d, size, &found, &calls), 0);
    assert_true(range_set_equal(&found, &wanted));
    assert_int_equal(calls, d.asked);
}

static void test_every_subset(void **state)
{
    for (uint64_t n = 1; n <= 11; n++)
        for (unsigned set = 0; set < 1U << n; set++) {
            bool resident[11];

            for (uint64_t i = 0; i < n; i++)
                resident[i] = set >> i & 1;
            check(resident, n, n * PAGE);
            check(resident, n, n * PAGE - 1000); /* the last page is incomplete */
        }
}

static void test_random(void **state)
{
    static bool resident[5000];

    srandom(1);
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < ELEMENTSOF(resident); i++)
            resident[i] = false;
        for (long runs = random() % 50; runs >= 0; runs--)
            for (long at = random() % 4900, n = random() % 100; n >= 0; n--)
                resident[at + n] = true;
        check(resident, ELEMENTSOF(resident), sizeof(resident) * PAGE);
    }
}

/* Counts the one resident page of a file, at *arg. The number of calls grows with the logarithm of
 * the size, not with the size. */
static int64_t count_one(void *arg, uint64_t offset, uint64_t length)
{
    uint64_t at = *(uint64_t *)arg;

    return at >= offset && at < offset + length;
}

static void test_few_calls(void **state)
{
    _cleanup_range_set_ RangeSet found = {0};
    uint64_t size = UINT64_C(20) << 30, at = UINT64_C(13) << 30;
    unsigned calls;

    assert_int_equal(search(count_one, &at, size, &found, &calls), 0);
    assert_int_equal(range_set_total(&found), PAGE);
    assert_true(range_set_contains(&found, at));
    assert_true(calls <= 25);
}

/* The page size is an argument. */
static void test_page_sizes(void **state)
{
    static const uint64_t pages[] = {4096, 16384, 65536};

    for (size_t i = 0; i < ELEMENTSOF(pages); i++) {
        _cleanup_range_set_ RangeSet found = {0};
        uint64_t at = 1000 * pages[i];

        assert_int_equal(search_resident(&(ResidencySearch){.count = count_one,
                                                            .arg = &at,
                                                            .page_bytes = pages[i],
                                                            .calls_max = 1000},
                                         UINT64_C(1) << 40, &found, NULL),
                         0);
        assert_int_equal(found.n, 1);
        assert_int_equal(found.ranges[0].offset, at);
        assert_int_equal(found.ranges[0].length, pages[i]);
    }
}

/* A file of up to 8 EiB with pages in few places, searched in windows as residency.c does. */
#define WINDOW (1024 * PAGE)

typedef struct Sparse {
    const uint64_t *pages; /* offsets, rising */
    size_t n;
    unsigned counts, windows;
    uint64_t window_bytes;
    unsigned expire_at; /* after this many calls the time is up; 0: never */
} Sparse;

static bool is_expired(const Sparse *s)
{
    return s->expire_at && s->counts + s->windows > s->expire_at;
}

static int64_t count_sparse(void *arg, uint64_t offset, uint64_t length)
{
    Sparse *s = arg;
    int64_t n = 0;

    s->counts++;
    if (is_expired(s))
        return -ETIME;
    for (size_t i = 0; i < s->n; i++)
        n += s->pages[i] >= offset && s->pages[i] - offset < length;
    return n;
}

static int read_sparse(void *arg, uint64_t offset, uint64_t length, RangeSet *ranges)
{
    Sparse *s = arg;
    int r = 0;

    s->windows++;
    assert_true(length <= WINDOW);
    if (is_expired(s))
        return -ETIME;
    s->window_bytes += length;
    for (size_t i = 0; r >= 0 && i < s->n; i++)
        if (s->pages[i] >= offset && s->pages[i] - offset < length)
            r = range_set_insert_span(ranges, s->pages[i],
                                      MIN(s->pages[i] + PAGE, offset + length));
    return r;
}

static int search_sparse(Sparse *s, uint64_t size, unsigned calls_max, RangeSet *ret)
{
    return search_resident(&(ResidencySearch){.count = count_sparse,
                                              .read_window = read_sparse,
                                              .window_bytes = WINDOW,
                                              .arg = s,
                                              .page_bytes = PAGE,
                                              .calls_max = calls_max},
                           size, ret, NULL);
}

/* In sparse files of any size, the search makes one count if nothing is cached. For each window
 * that contains pages, the number of counts grows with the logarithm of the size. */
static void test_sparse(void **state)
{
    static const uint64_t sizes[] = {UINT64_C(1) << 32, UINT64_C(16) << 40, INT64_MAX};

    for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
        uint64_t size = sizes[i], last = ALIGN_DOWN(size - 1, (uint64_t)PAGE);
        const uint64_t pages[] = {0, PAGE, size / 3 / WINDOW * WINDOW, last};
        _cleanup_range_set_ RangeSet none = {0}, found = {0};
        Sparse empty = {0}, few = {.pages = pages, .n = ELEMENTSOF(pages)};

        assert_int_equal(search_sparse(&empty, size, 1000, &none), 0);
        assert_int_equal(none.n, 0);
        assert_int_equal(empty.counts, 1);
        assert_int_equal(empty.windows, 0);

        assert_int_equal(search_sparse(&few, size, 1000, &found), 0);
        assert_int_equal(found.n, 3);
        assert_true(range_set_contains(&found, PAGE));
        assert_true(range_set_contains(&found, pages[2]));
        assert_true(range_set_contains(&found, size - 1));
        assert_int_equal(range_end(&found.ranges[2]), size);
        assert_int_equal(few.windows, 3);
        assert_true(few.counts <= 3 * 42);
        assert_true(few.window_bytes <= UINT64_C(3) * WINDOW);
    }
}

/* When the calls or the time are used up, the ranges before that point have been found, and no
 * further call is made. */
static void test_budget(void **state)
{
    uint64_t pages[200];
    Sparse all = {.pages = pages, .n = ELEMENTSOF(pages)};
    _cleanup_range_set_ RangeSet complete = {0};
    const uint64_t size = UINT64_C(16) << 40;

    for (size_t i = 0; i < ELEMENTSOF(pages); i++)
        pages[i] = i * (size / ELEMENTSOF(pages)) / PAGE * PAGE;
    assert_int_equal(search_sparse(&all, size, 100000, &complete), 0);
    assert_int_equal(complete.n, ELEMENTSOF(pages));
    for (unsigned calls = 1; calls < all.counts + all.windows; calls += 13)
        for (int by_time = 0; by_time < 2; by_time++) {
            _cleanup_range_set_ RangeSet part = {0};
            Sparse s = {.pages = pages, .n = ELEMENTSOF(pages)};

            if (by_time)
                s.expire_at = calls;
            assert_int_equal(search_sparse(&s, size, by_time ? 100000 : calls, &part), 1);
            assert_int_equal(s.counts + s.windows, calls + by_time);
            assert_true(part.n < complete.n);
            for (size_t i = 0; i < part.n; i++)
                assert_int_equal(part.ranges[i].offset, pages[i]);
        }
}

static void test_error_and_nothing(void **state)
{
    bool resident[8] = {false, true, false, true, true, false, false, true};
    RangeSet found = {.n = 77};
    _cleanup_range_set_ RangeSet none = {0};

    for (unsigned at = 1; at <= 5; at++) {
        Device d = {.resident = resident, .n = 8, .fail_at = at};

        assert_int_equal(search(count, &d, sizeof(resident) * PAGE, &found, NULL), -EPERM);
        assert_int_equal(found.n, 77); /* untouched */
    }
    assert_int_equal(search(count, NULL, 0, &none, NULL), 0);
    assert_int_equal(none.n, 0);
}

/* Pages disappear while they are counted: the search ends, and finds nothing beyond the end of the
 * file. */
static void test_changing(void **state)
{
    bool resident[64];

    for (size_t i = 0; i < 64; i++)
        resident[i] = i % 3 != 0;
    for (unsigned at = 1; at < 100; at++) {
        _cleanup_range_set_ RangeSet found = {0};
        Device d = {.resident = resident, .n = 64, .change_at = at};

        assert_int_equal(search(count, &d, sizeof(resident) * PAGE, &found, NULL), 0);
        assert_true(range_set_valid(&found));
        assert_true(found.n == 0 ||
                    range_end(&found.ranges[found.n - 1]) <= sizeof(resident) * PAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_every_subset), cmocka_unit_test(test_random),
            cmocka_unit_test(test_few_calls),    cmocka_unit_test(test_error_and_nothing),
            cmocka_unit_test(test_changing),     cmocka_unit_test(test_sparse),
            cmocka_unit_test(test_budget),       cmocka_unit_test(test_page_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
