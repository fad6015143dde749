/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests what ranges of a file save and cost: plan/price.h. Known answers. */

#include "plan/price.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MB UINT64_C(1000000)

/* 100 MB/s, 1 ms per request, one at a time. */
static const DeviceProfile flash = {.rate_bytes_per_usec = 100, .fixed_usec = 1000, .depth = 1};
/* A disk of 100 GB on which each seek takes 8 ms, half a rotation included. */
static const DeviceProfile disk = {.rate_bytes_per_usec = 100,
                                   .fixed_usec = 100,
                                   .depth = 1,
                                   .seek_min_usec = 4000,
                                   .seek_max_usec = 4000,
                                   .half_rotation_usec = 4000,
                                   .wait_bytes = MB};
#define DISK_SIZE (100000 * MB)
/* A network disk that serves 10 requests at once. */
static const DeviceProfile deep = {.rate_bytes_per_usec = 100, .fixed_usec = 3000, .depth = 10};

static void assert_price(const Price *p, double saved, double cost)
{
    assert_float_equal(p->saved_usec, saved, 1);
    assert_float_equal(p->cost_usec, cost, 1);
}

static void test_flash(void **state)
{
    const Range sweep[] = {{10 * MB, MB}}, own[] = {{5 * MB, MB}, {20 * MB, MB}};
    Price p;

    (void)state;
    /* Without seeks the order does not matter: two requests of 1 ms and two transfers of 10 ms. */
    assert_int_equal(price_of_placed_ranges(&flash, DISK_SIZE, sweep, 1, own, 2, &p), 0);
    assert_price(&p, 22000, 22000);
    p = price_of_unplaced_ranges(&flash, 2 * MB, 2);
    assert_price(&p, 22000, 22000);
}

static void test_deep(void **state)
{
    const Range sweep[] = {{10 * MB, MB}}, own[] = {{5 * MB, MB}, {20 * MB, MB}};
    Price p;

    (void)state;
    /* A reader waits for both latencies. In the sweep they pass while the first range is read. */
    assert_int_equal(price_of_placed_ranges(&deep, DISK_SIZE, sweep, 1, own, 2, &p), 0);
    assert_price(&p, 26000, 20000);
}

static void test_between(void **state)
{
    /* The head passes the range: it is 0.1 MB behind the first range of the sweep, and 0.1 MB
     * before the second. */
    const Range sweep[] = {{10 * MB, MB}, {11 * MB + 300000, MB}},
                own[] = {{11 * MB + 100000, 100000}};
    Price p;

    (void)state;
    assert_int_equal(price_of_placed_ranges(&disk, DISK_SIZE, sweep, 2, own, 1, &p), 0);
    /* A reader alone pays the request, the seek and the transfer. In the sweep the head waits for
     * the same stretch with and without the range, so the range costs one request. The stretch of
     * 0.3 MB takes 3 ms, and waiting for it is less than a seek. */
    assert_price(&p, 100 + 8000 + 1000, 100);
}

static void test_far(void **state)
{
    const Range sweep[] = {{10 * MB, MB}}, before[] = {{5 * MB, MB}}, after[] = {{50000 * MB, MB}};
    Price p;

    (void)state;
    /* A seek of its own: nothing is cheaper in the sweep than for a reader. */
    assert_int_equal(price_of_placed_ranges(&disk, DISK_SIZE, sweep, 1, after, 1, &p), 0);
    assert_price(&p, 18100, 18100);
    assert_int_equal(price_of_placed_ranges(&disk, DISK_SIZE, sweep, 1, before, 1, &p), 0);
    assert_price(&p, 18100, 18100);
    /* In an empty sweep, too. */
    assert_int_equal(price_of_placed_ranges(&disk, DISK_SIZE, NULL, 0, after, 1, &p), 0);
    assert_price(&p, 18100, 18100);
    /* No ranges have no price. */
    assert_int_equal(price_of_placed_ranges(&disk, DISK_SIZE, sweep, 1, NULL, 0, &p), 0);
    assert_price(&p, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_flash),
            cmocka_unit_test(test_deep),
            cmocka_unit_test(test_between),
            cmocka_unit_test(test_far),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
