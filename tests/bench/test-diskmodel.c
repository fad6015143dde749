/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the disk model with times computed by hand, and the time of a sequence with the sum of
 * the single costs. */

#include "diskmodel.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MSEC UINT64_C(1000000)
#define USEC UINT64_C(1000)
#define MB   UINT64_C(1000000)
#define GB   UINT64_C(1000000000)
#define KIB  UINT64_C(1024)

static const DiskProfile *profile(const char *name)
{
    const DiskProfile *p = disk_profile_by_name(name);

    assert_non_null(p);
    return p;
}

static void test_profiles(void **state)
{
    unsigned n = 0;

    for (const DiskProfile *p = disk_profiles; p->name; p++, n++) {
        assert_ptr_equal(disk_profile_by_name(p->name), p);
        assert_true(p->rate > 0);
        assert_in_range(p->depth, 1, DISK_DEPTH_MAX);
        assert_true(p->tags >= p->depth);
        assert_true(p->seek_min_nsec <= p->seek_max_nsec);
        /* One head serves one request at a time. */
        assert_true(!p->rotational || p->depth == 1);
    }
    assert_int_equal(n, 9);
    assert_null(disk_profile_by_name("drum"));
    assert_null(disk_profile_by_name(""));
}

static void test_cost_by_hand(void **state)
{
    Disk d = disk_init(profile("hdd7200"), 8 * GB);

    /* The head is already there: 100 us, and 1 MB at 100 MB/s. */
    assert_int_equal(disk_cost_nsec(&d, 0, 1 * MB), 100 * USEC + 10 * MSEC);
    /* A seek over a quarter of the stroke, in ms: 0.1 for the request, 1 + 11 * sqrt(1 / 4) for the
     * seek, 4.17 for half a rotation and 0.04096 for the transfer. */
    assert_int_equal(disk_cost_nsec(&d, 2 * GB, 4096), 10770 * USEC + 40960);
    /* The whole stroke. */
    assert_int_equal(disk_seek_nsec(&d, 8 * GB), 12 * MSEC + 4170 * USEC);
    /* A distance beyond the stroke is not slower. */
    assert_int_equal(disk_seek_nsec(&d, 80 * GB), 12 * MSEC + 4170 * USEC);

    /* A gap behind the head cannot be read over, however small it is. */
    d.head = 1 * GB;
    assert_true(disk_seek_nsec(&d, 1 * GB - 4096) >= 5170 * USEC);
    assert_int_equal(disk_seek_nsec(&d, 1 * GB), 0);
}

static void test_gap(void **state)
{
    Disk d = disk_init(profile("hdd7200"), 8 * GB);

    d.head = 1 * GB;
    assert_int_equal(disk_seek_nsec(&d, 1 * GB + 100000), 1 * MSEC);
    assert_int_equal(disk_seek_nsec(&d, 1 * GB + 256 * KIB), 2621440);
    /* One byte more is a seek: 1 + 11 * sqrt(0.262145 / 8000) + 4.17 ms. */
    double expected = 5.17 + 11 * sqrt(262145.0 / 8e9);
    assert_true(fabs((double)disk_seek_nsec(&d, 1 * GB + 256 * KIB + 1) / 1e6 - expected) < 1e-3);

    /* If reading over a gap takes longer than seeking, the disk seeks. */
    DiskProfile slow = *d.profile;
    slow.rate = 10 * MB;
    d.profile = &slow;
    assert_true(disk_seek_nsec(&d, 1 * GB + 256 * KIB) < 26 * MSEC);
    assert_true(disk_seek_nsec(&d, 1 * GB + 256 * KIB) > 5 * MSEC);
}

static void test_seek_grows(void **state)
{
    Disk d = disk_init(profile("hdd5400"), 8 * GB);
    uint64_t last = 0;

    for (uint64_t distance = 300 * KIB; distance < 8 * GB; distance *= 2) {
        uint64_t nsec = disk_seek_nsec(&d, distance);
        assert_true(nsec > last);
        last = nsec;
    }
    assert_true(last <= 16 * MSEC + 5560 * USEC);
}

static void test_no_mechanics(void **state)
{
    Disk d = disk_init(profile("sd"), 8 * GB);

    assert_int_equal(disk_cost_nsec(&d, 5 * GB, 40000), 700 * USEC + 1 * MSEC);
    assert_int_equal(disk_cost_nsec(&d, 0, 40000), 700 * USEC + 1 * MSEC);
}

static void test_pick_nearest(void **state)
{
    Disk d = disk_init(profile("hdd7200"), 8 * GB);
    DiskRequest q[] = {{.offset = 4 * GB, .length = 4096, .arrival_nsec = 10},
                       {.offset = 1 * GB, .length = 4096, .arrival_nsec = 20},
                       {.offset = 2 * GB, .length = 4096, .arrival_nsec = 20}};

    /* An idle disk takes the first request, because the others have not arrived yet. */
    assert_int_equal(disk_pick(&d, q, 3), 0);
    /* A busy disk finds all of them queued and takes the nearest. */
    d.finish[0] = 30;
    assert_int_equal(disk_pick(&d, q, 3), 1);
    d.head = 3100 * MB;
    assert_int_equal(disk_pick(&d, q, 3), 0);
    d.head = 2 * GB;
    assert_int_equal(disk_pick(&d, q, 3), 2);
    /* The nearest has not arrived when the choice is made. */
    q[2].arrival_nsec = 31;
    assert_int_equal(disk_pick(&d, q, 3), 1);

    /* Reading over 200 kB ahead takes less time than a seek 50 kB back. */
    d.head = 3 * GB;
    q[0].offset = 3 * GB + 200000;
    q[1].offset = 3 * GB - 50000;
    assert_int_equal(disk_pick(&d, q, 3), 0);
}

static void test_age_limit(void **state)
{
    Disk d = disk_init(profile("hdd7200"), 8 * GB);
    DiskRequest q[] = {{.offset = 1 * GB, .length = 4096, .arrival_nsec = 600 * MSEC},
                       {.offset = 7 * GB, .length = 4096, .arrival_nsec = 400 * MSEC}};

    d.finish[0] = 650 * MSEC;
    assert_int_equal(disk_pick(&d, q, 2), 0);
    d.finish[0] = 650 * MSEC + 1;
    assert_int_equal(disk_pick(&d, q, 2), 1);
}

static void test_arrival_order(void **state)
{
    static const char *const names[] = {"usb2", "sd", "emmc", "ssd", "netdisk", "lazy"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        Disk d = disk_init(profile(names[i]), 8 * GB);
        DiskRequest q[] = {{.offset = 0, .length = 4096, .arrival_nsec = 3},
                           {.offset = 7 * GB, .length = 4096, .arrival_nsec = 2},
                           {.offset = 0, .length = 4096, .arrival_nsec = 4}};
        d.finish[0] = 100;
        assert_int_equal(disk_pick(&d, q, 3), 1);
    }
}

static void test_serve_one_head(void **state)
{
    Disk d = disk_init(profile("hdd7200"), 8 * GB);
    DiskService s = disk_serve(&d, &(DiskRequest){0, 1 * MB, 5 * MSEC});

    assert_int_equal(s.start_nsec, 5 * MSEC);
    assert_int_equal(s.finish_nsec, 15100 * USEC);
    assert_int_equal(d.head, 1 * MB);
    assert_int_equal(disk_free_nsec(&d), s.finish_nsec);

    /* This request arrives while the first one is served, and begins when that one ends, even if
     * the caller asks later. */
    s = disk_serve(&d, &(DiskRequest){1 * MB, 1 * MB, 6 * MSEC});
    assert_int_equal(s.start_nsec, 15100 * USEC);
    assert_int_equal(s.finish_nsec, 25200 * USEC);

    /* After a pause a request begins at once. */
    s = disk_serve(&d, &(DiskRequest){2 * MB, 1 * MB, 100 * MSEC});
    assert_int_equal(s.start_nsec, 100 * MSEC);
    assert_int_equal(s.finish_nsec, 110100 * USEC);
}

static void test_serve_parallel(void **state)
{
    /* The 64 latencies of 3 ms overlap; the 65th request waits for the first to end. */
    Disk d = disk_init(profile("netdisk"), 8 * GB);
    DiskService s = {};

    for (unsigned i = 0; i < 64; i++) {
        s = disk_serve(&d, &(DiskRequest){0, 1000, 0});
        assert_int_equal(s.start_nsec, 0);
        assert_int_equal(s.finish_nsec, 3 * MSEC + (i + 1) * 10 * USEC);
    }
    s = disk_serve(&d, &(DiskRequest){0, 1000, 0});
    assert_int_equal(s.start_nsec, 3 * MSEC + 10 * USEC);
    assert_int_equal(s.finish_nsec, 6 * MSEC + 20 * USEC);

    /* Two large requests share the link. */
    d = disk_init(profile("ssd"), 8 * GB);
    disk_serve(&d, &(DiskRequest){0, 5 * MB, 0});
    s = disk_serve(&d, &(DiskRequest){0, 5 * MB, 0});
    assert_int_equal(s.finish_nsec, 100 * USEC + 20 * MSEC);
}

static void test_granules(void **state)
{
    bool touched[8] = {false};
    Disk d = disk_init(profile("lazy"), 8 * 512 * KIB);
    DiskService s;

    assert_int_equal(disk_granules(d.profile, 8 * 512 * KIB), 8);
    assert_int_equal(disk_granules(d.profile, 7 * 512 * KIB + 1), 8);
    assert_int_equal(disk_granules(profile("ssd"), 8 * 512 * KIB), 0);

    /* Without the list of granules, all count as read. */
    s = disk_serve(&d, &(DiskRequest){0, 125000, 0});
    assert_int_equal(s.finish_nsec, 1800 * USEC);

    d = disk_init(d.profile, 8 * 512 * KIB);
    d.touched = touched;
    s = disk_serve(&d, &(DiskRequest){0, 125000, 0});
    assert_int_equal(s.finish_nsec, 36 * MSEC);
    assert_true(touched[0] && !touched[1]);
    /* The second read of a granule. */
    s = disk_serve(&d, &(DiskRequest){4096, 125000, 100 * MSEC});
    assert_int_equal(s.finish_nsec, 101800 * USEC);

    /* The read needs the granules 1 and 2, whose fetches begin 1/300 s apart and take 35 ms each:
     * the second one ends after 38.33 ms. */
    s = disk_serve(&d, &(DiskRequest){512 * KIB, 512 * KIB + 1, 200 * MSEC});
    assert_true(touched[1] && touched[2] && !touched[3]);
    assert_true(s.finish_nsec >= 238333333 && s.finish_nsec <= 243 * MSEC);

    /* At most 300 fetches begin in a second, even if more are requested at once. The last of these
     * five begins after 4/300 s and ends after 48.33 ms. */
    for (unsigned i = 3; i < 8; i++)
        s = disk_serve(&d, &(DiskRequest){i * 512 * KIB, 1, 1000 * MSEC});
    assert_true(s.finish_nsec >= 1048333000 && s.finish_nsec <= 1049 * MSEC);

    /* disk_touch() takes no time, and the read afterwards costs as much as a second read. */
    memset(touched, 0, sizeof(touched));
    disk_touch(&d, 512 * KIB, 2);
    assert_true(touched[1] && !touched[0] && !touched[2]);
    s = disk_serve(&d, &(DiskRequest){512 * KIB, 125000, 2000 * MSEC});
    assert_int_equal(s.finish_nsec, 2001800 * USEC);
}

static void test_finish_never_decreases(void **state)
{
    uint32_t x = 1;

    for (const DiskProfile *p = disk_profiles; p->name; p++) {
        Disk d = disk_init(p, 1 * GB);
        uint64_t now = 0, last = 0;

        for (unsigned i = 0; i < 10000; i++) {
            x = x * 1664525 + 1013904223;
            now += x % 300000;
            DiskRequest r = {(uint64_t)(x >> 4) * 4, 512 + x % 500000, now};
            DiskService s = disk_serve(&d, &r);
            assert_true(s.finish_nsec >= last);
            assert_true(s.start_nsec >= now);
            assert_true(s.finish_nsec >= s.start_nsec + p->fixed_nsec);
            last = s.finish_nsec;
        }
    }
}

static void test_sequence(void **state)
{
    /* The time is the sum of the single costs, and the sorted order is faster than a random one. */
    const DiskProfile *p = profile("hdd7200");
    DiskRequest requests[64], sorted[64];
    uint32_t x = 7;

    for (unsigned i = 0; i < 64; i++) {
        sorted[i] = requests[i] = (DiskRequest){.offset = i * 100 * MB, .length = 4096};
        x = x * 1664525 + 1013904223;
        unsigned j = (x >> 8) % (i + 1);
        DiskRequest swap = requests[i];
        requests[i] = requests[j];
        requests[j] = swap;
    }
    Disk d = disk_init(p, 8 * GB);
    uint64_t sum = 0;
    for (unsigned i = 0; i < 64; i++) {
        sum += disk_cost_nsec(&d, requests[i].offset, requests[i].length);
        d.head = requests[i].offset + requests[i].length;
    }
    assert_int_equal(disk_sequence_nsec(p, 8 * GB, requests, 64), sum);
    assert_true(disk_sequence_nsec(p, 8 * GB, sorted, 64) < sum);
    assert_int_equal(disk_sequence_nsec(p, 8 * GB, requests, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_profiles),
            cmocka_unit_test(test_cost_by_hand),
            cmocka_unit_test(test_gap),
            cmocka_unit_test(test_seek_grows),
            cmocka_unit_test(test_no_mechanics),
            cmocka_unit_test(test_pick_nearest),
            cmocka_unit_test(test_age_limit),
            cmocka_unit_test(test_arrival_order),
            cmocka_unit_test(test_serve_one_head),
            cmocka_unit_test(test_serve_parallel),
            cmocka_unit_test(test_granules),
            cmocka_unit_test(test_finish_never_decreases),
            cmocka_unit_test(test_sequence),
    };

    return cmocka_run_group_tests_name("diskmodel", tests, NULL, NULL);
}
