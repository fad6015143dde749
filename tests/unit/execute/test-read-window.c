/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "execute/read-window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)

/* A reader that uses `rate` bytes per second for `sec` seconds, with an update each 10 ms, while
 * `lost` bytes per second are evicted from `inactive` bytes. */
static uint64_t follow(ReadWindow *w, ReadSnapshot *s, double sec, uint64_t rate, uint64_t lost)
{
    uint64_t window = 0;

    for (unsigned i = 0; i < sec * 100; i++) {
        s->now += 10 * USEC_PER_MSEC;
        s->position_bytes += rate / 100;
        s->evicted_bytes += lost / 100;
        window = read_window_update(w, s);
    }
    return window;
}

static void the_window_doubles_then_grows_linearly_up_to_the_limit(void **state)
{
    ReadSnapshot s = {.inactive_bytes = 1024 * MIB};
    ReadWindow w = {0};
    uint64_t before = 0, window;
    unsigned n = 0;

    (void)state;
    for (window = 16 * KIB; window <= 256 * KIB; window *= 2)
        assert_int_equal(follow(&w, &s, 0.01, 50 * MIB, 0), window);
    for (window = 320 * KIB; window <= 2 * MIB; window += 64 * KIB)
        assert_int_equal(follow(&w, &s, 0.01, 50 * MIB, 0), window);
    for (; n < 100; n++, before = window)
        window = follow(&w, &s, 0.01, 50 * MIB, 0);
    assert_int_equal(before, READ_WINDOW_LIMIT_BYTES);
}

static void the_window_stops_at_the_ideal_and_falls_to_it_at_once(void **state)
{
    /* 10 MiB/s are used and 20 MiB/s lost of 4 MiB: lifetime 0.2 s, ideal 10 * 0.2 / 2 MiB. */
    ReadSnapshot s = {.inactive_bytes = 4 * MIB};
    ReadWindow w = {0};

    (void)state;
    follow(&w, &s, 1, 10 * MIB, 20 * MIB);
    assert_int_equal(w.window_bytes, w.ideal_bytes);
    assert_in_range(w.ideal_bytes, MIB - 40 * KIB, MIB + 8 * KIB);
    /* The cache shrinks to a half: the shorter average follows within some half-lives. */
    s.inactive_bytes = 2 * MIB;
    follow(&w, &s, 2, 10 * MIB, 20 * MIB);
    assert_int_equal(w.window_bytes, w.ideal_bytes);
    assert_in_range(w.ideal_bytes, MIB / 2 - 20 * KIB, MIB / 2 + 8 * KIB);
    /* Memory becomes short within one update. */
    s.available_bytes = MIB;
    assert_int_equal(follow(&w, &s, 0.01, 10 * MIB, 20 * MIB), 64 * KIB);
    /* Growth begins again from there. */
    s.available_bytes = 0;
    assert_int_equal(follow(&w, &s, 0.01, 10 * MIB, 20 * MIB), 128 * KIB);
}

static void the_rate_is_the_larger_and_the_lifetime_the_smaller_average(void **state)
{
    ReadSnapshot s = {.inactive_bytes = 10 * MIB};
    ReadWindow w = {0};

    (void)state;
    follow(&w, &s, 20, 10 * MIB, 0);
    assert_true(w.lifetime == 60); /* nothing was evicted */
    /* A fast second, with eviction: both follow it quickly. */
    follow(&w, &s, 1, 40 * MIB, 10 * MIB);
    assert_true(w.rate > 37e6);
    assert_true(w.lifetime < 1.2);
    /* A slow and quiet second: both still remember the fast one. */
    follow(&w, &s, 1, MIB, 0);
    assert_true(w.rate > 9e6);
    assert_true(w.lifetime < 10);
    follow(&w, &s, 60, MIB, 0);
    assert_true(w.rate < 1.2e6);
    assert_true(w.lifetime == 60);
}

static void a_refaulted_page_counts_as_a_second_eviction(void **state)
{
    ReadSnapshot s = {.inactive_bytes = 10 * MIB};
    ReadWindow w = {0};

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        s.refaulted_bytes += 10 * MIB / 100;
        follow(&w, &s, 0.01, MIB, 10 * MIB);
    }
    assert_true(w.lifetime > 0.49 && w.lifetime < 0.51);
}

static void waiting_for_memory_shortens_the_window(void **state)
{
    ReadSnapshot s = {.inactive_bytes = 4 * MIB, .memory_stall = 5};
    ReadWindow w = {0};

    (void)state;
    follow(&w, &s, 1, 10 * MIB, 20 * MIB);
    assert_in_range(w.ideal_bytes, MIB / 2 - 20 * KIB, MIB / 2 + 8 * KIB);
    s.memory_stall = READ_WINDOW_STALL_MAX;
    assert_int_equal(follow(&w, &s, 0.01, 10 * MIB, 20 * MIB), 0);
    s.memory_stall = 100;
    assert_int_equal(follow(&w, &s, 0.01, 10 * MIB, 20 * MIB), 0);
}

static void heat_and_short_memory_stop_every_read(void **state)
{
    ReadSnapshot s = {.inactive_bytes = 1024 * MIB};
    ReadWindow w = {0};

    (void)state;
    assert_true(follow(&w, &s, 1, 10 * MIB, 0) > 0);
    s.hot = true;
    assert_int_equal(follow(&w, &s, 0.01, 10 * MIB, 0), 0);
    s.hot = false;
    s.memory_short = true;
    assert_int_equal(follow(&w, &s, 0.01, 10 * MIB, 0), 0);
    s.memory_short = false;
    assert_int_equal(follow(&w, &s, 0.01, 10 * MIB, 0), READ_WINDOW_FIRST_BYTES);
}

static void a_battery_stops_idle_reads_alone(void **state)
{
    ReadSnapshot s = {.inactive_bytes = 1024 * MIB, .battery = true};
    ReadWindow w = {0};

    (void)state;
    assert_true(follow(&w, &s, 1, 10 * MIB, 0) > 0);
    s.idle = true;
    assert_int_equal(follow(&w, &s, 0.01, 10 * MIB, 0), 0);
}

static void idle_reads_bound_the_wait_of_others(void **state)
{
    /* 5 ms of 40 MiB/s. */
    ReadSnapshot s = {.inactive_bytes = 1024 * MIB, .idle = true};
    ReadWindow w = {0};
    uint64_t alone = follow(&w, &s, 1, 40 * MIB, 0);

    (void)state;
    assert_in_range(alone, 200 * KIB, 206 * KIB);
    /* Half of the requests on the device are ours. */
    s.queue_known = true;
    s.queue_requests = 4;
    s.own_requests = 2;
    assert_in_range(follow(&w, &s, 0.01, 40 * MIB, 0), alone / 2 - KIB, alone / 2 + KIB);
    s.own_requests = 0;
    assert_int_equal(follow(&w, &s, 0.01, 40 * MIB, 0), 0);
    s.queue_requests = 0;
    s.own_requests = 5; /* they have been completed since they were counted */
    s.io_stall = 100;   /* perhaps on another device */
    follow(&w, &s, 0.1, 40 * MIB, 0);
    assert_in_range(w.window_bytes, alone - KIB, alone + KIB);
    s.queue_known = false;
    s.io_stall = 10;
    follow(&w, &s, 0.1, 40 * MIB, 0);
    assert_in_range(w.window_bytes, alone / 2 - KIB, alone / 2 + KIB);
    s.io_stall = READ_WINDOW_IO_STALL_MAX;
    assert_int_equal(follow(&w, &s, 0.01, 40 * MIB, 0), 0);
    /* A slow disk: at least one request, also after a pause, and none while others wait. */
    s.io_stall = 0;
    follow(&w, &s, 60, 0, 0);
    assert_int_equal(w.window_bytes, READ_WINDOW_IDLE_BYTES);
    s.io_stall = READ_WINDOW_IO_STALL_MAX;
    assert_int_equal(follow(&w, &s, 0.01, MIB, 0), 0);
    /* Reads for a waiting reader do not yield. */
    s.idle = false;
    assert_true(follow(&w, &s, 1, 40 * MIB, 0) > alone);
}

static void counters_that_fall_and_clocks_that_stand_change_nothing(void **state)
{
    ReadSnapshot s = {.inactive_bytes = 10 * MIB};
    ReadWindow w = {0};
    double rate, lifetime;

    (void)state;
    follow(&w, &s, 1, 10 * MIB, 10 * MIB);
    rate = w.rate;
    lifetime = w.lifetime;
    s.position_bytes = UINT64_MAX;
    read_window_update(&w, &s); /* at the same time as the last one */
    assert_true(w.rate == rate && w.lifetime == lifetime);
    s.now -= USEC_PER_SEC;
    read_window_update(&w, &s);
    assert_true(w.rate == rate && w.lifetime == lifetime);
    s.now += USEC_PER_SEC + 10 * USEC_PER_MSEC;
    s.position_bytes = s.evicted_bytes = s.refaulted_bytes = 0;
    read_window_update(&w, &s);
    assert_true(w.rate <= rate && w.lifetime >= lifetime);
    assert_true(w.window_bytes <= READ_WINDOW_LIMIT_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_window_doubles_then_grows_linearly_up_to_the_limit),
            cmocka_unit_test(the_window_stops_at_the_ideal_and_falls_to_it_at_once),
            cmocka_unit_test(the_rate_is_the_larger_and_the_lifetime_the_smaller_average),
            cmocka_unit_test(a_refaulted_page_counts_as_a_second_eviction),
            cmocka_unit_test(waiting_for_memory_shortens_the_window),
            cmocka_unit_test(heat_and_short_memory_stop_every_read),
            cmocka_unit_test(a_battery_stops_idle_reads_alone),
            cmocka_unit_test(idle_reads_bound_the_wait_of_others),
            cmocka_unit_test(counters_that_fall_and_clocks_that_stand_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
