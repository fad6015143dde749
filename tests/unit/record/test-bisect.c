/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Bisection against a residency that is known: every subset of few pages, then random ones. */

#include "record/cachestat.h"

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
    unsigned change_at; /* from this call on everything is gone */
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

/* What the pages say, obviously. */
static void expected(const bool *resident, uint64_t n, uint64_t size, RangeSet *ret)
{
    for (uint64_t i = 0; i < n; i++)
        if (resident[i])
            assert_int_equal(range_set_add(ret, i * PAGE, MIN((i + 1) * PAGE, size)), 0);
}

static void check(const bool *resident, uint64_t n, uint64_t size)
{
    _cleanup_range_set_ RangeSet found = {0}, wanted = {0};
    Device d = {.resident = resident, .n = n};
    unsigned calls = 0;

    expected(resident, n, size, &wanted);
    assert_int_equal(bisect_resident(count, &d, size, PAGE, &found, &calls), 0);
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
            check(resident, n, n * PAGE - 1000); /* the last page is not a whole one */
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

/* 20 GB with one page in it: the logarithm, not the size. */
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

    assert_int_equal(bisect_resident(count_one, &at, size, PAGE, &found, &calls), 0);
    assert_int_equal(range_set_total(&found), PAGE);
    assert_true(range_set_contains(&found, at));
    assert_true(calls <= 25);
}

static void test_error_and_nothing(void **state)
{
    bool resident[8] = {false, true, false, true, true, false, false, true};
    RangeSet found = {.n = 77};
    _cleanup_range_set_ RangeSet none = {0};

    for (unsigned at = 1; at <= 5; at++) {
        Device d = {.resident = resident, .n = 8, .fail_at = at};

        assert_int_equal(bisect_resident(count, &d, sizeof(resident) * PAGE, PAGE, &found, NULL),
                         -EPERM);
        assert_int_equal(found.n, 77); /* untouched */
    }
    assert_int_equal(bisect_resident(count, NULL, 0, PAGE, &none, NULL), 0);
    assert_int_equal(none.n, 0);
}

/* Pages go while they are counted: no endless search, nothing outside the device. */
static void test_changing(void **state)
{
    bool resident[64];

    for (size_t i = 0; i < 64; i++)
        resident[i] = i % 3 != 0;
    for (unsigned at = 1; at < 100; at++) {
        _cleanup_range_set_ RangeSet found = {0};
        Device d = {.resident = resident, .n = 64, .change_at = at};

        assert_int_equal(bisect_resident(count, &d, sizeof(resident) * PAGE, PAGE, &found, NULL),
                         0);
        assert_true(range_set_valid(&found));
        assert_true(found.n == 0 || found.ranges[found.n - 1].end <= sizeof(resident) * PAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_every_subset), cmocka_unit_test(test_random),
            cmocka_unit_test(test_few_calls),    cmocka_unit_test(test_error_and_nothing),
            cmocka_unit_test(test_changing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
