/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the measurement of a device: probes and estimate against the simulated disk of tests/bench,
 * whose true parameters are known. */

#include "bench/diskmodel.h"
#include "device/estimate.h"
#include "device/probe.h"
#include "plan/cost-model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SIZE (UINT64_C(8) << 30)

/* A device in simulated time. */
typedef struct Simulation {
    Disk disk;
    uint64_t now_nsec;
    unsigned random;
    double noise;             /* each time varies by this share */
    unsigned outlier_percent; /* this share of the probes takes ten times as long */
    uint64_t busy_nsec; /* other load: adds up to this time to a read, and moves the head elsewhere
                         */
    unsigned busy_percent;
    uint64_t read_bytes;
    usec_t spent_usec;
    uint64_t zero_from; /* from here on the device is thin: it returns zeros at once */
    uint64_t free_from; /* from here on the device returns zeros, but reads them like other data */
    bool *loaded;       /* per part of PART_BYTES: it was read before; NULL: all were */
} Simulation;

/* The first read of a part of a lazily loaded volume takes this much longer. */
#define PART_BYTES (512U << 10)
#define LOAD_NSEC  35000000U

static double uniform(Simulation *s)
{
    s->random = s->random * 1103515245U + 12345U;
    return (s->random >> 8 & 0xffffff) / (double)0x1000000;
}

/* Returns when the request that arrives at `arrival` is done. */
static uint64_t serve(Simulation *s, uint64_t offset, uint64_t length, uint64_t arrival)
{
    DiskRequest r = {.offset = offset, .length = length, .arrival_nsec = arrival};

    s->read_bytes += length;
    if (offset >= s->zero_from)
        return arrival + 20000;
    if (uniform(s) * 100 < s->busy_percent) {
        r.arrival_nsec += (uint64_t)((double)s->busy_nsec * uniform(s));
        s->disk.head = (uint64_t)((double)SIZE * uniform(s));
    }
    if (s->loaded && !s->loaded[offset / PART_BYTES]) {
        s->loaded[offset / PART_BYTES] = true;
        r.arrival_nsec += LOAD_NSEC;
    }
    return disk_serve(&s->disk, &r).finish_nsec;
}

static usec_t run_probe(Simulation *s, const DeviceProbe *p)
{
    uint64_t start, last = 0, done[DEVICE_SAMPLE_REQUESTS_MAX];
    double usec;

    if (p->lead != UINT64_MAX)
        s->now_nsec = serve(s, p->lead, DEVICE_PROBE_BLOCK, s->now_nsec);
    start = s->now_nsec;
    for (uint32_t i = 0; i < p->requests; i++) {
        /* `depth` requests run at once: the completion of a request starts the one that is `depth`
         * places later in the list. */
        done[i] = serve(s, p->offsets[i], p->length, i < p->depth ? start : done[i - p->depth]);
        last = MAX(last, done[i]);
    }
    s->now_nsec = last;
    usec = (double)(last - start) / 1000;
    usec *= 1 + s->noise * (2 * uniform(s) - 1);
    if (uniform(s) * 100 < s->outlier_percent)
        usec *= 10;
    return (usec_t)(usec + 0.5);
}

/* Runs the probes of one plan. */
static void measure(Simulation *s, DeviceSamples *samples, uint32_t plan, const Range *places,
                    size_t n_places)
{
    DeviceProbeRun r = {
            .samples = samples,
            .plan = plan,
            .size_bytes = SIZE,
            .places = places,
            .n_places = n_places,
            .random = 88172645463325252U * (s->random | 1U) + plan,
            .budget = {DEVICE_PROBE_TIME_MAX, DEVICE_PROBE_BYTES_MAX},
    };
    DeviceProbe p;

    s->read_bytes = 0;
    s->spent_usec = 0;
    while (device_probe_next(&r, &p)) {
        usec_t usec = run_probe(s, &p);

        for (uint32_t i = 0; i < p.requests; i++) {
            assert_true(p.offsets[i] % DEVICE_PROBE_BLOCK == 0);
            assert_true(p.offsets[i] + p.length <= SIZE);
        }
        s->spent_usec += usec;
        device_probe_done(&r, &p, usec, p.offsets[0] >= MIN(s->zero_from, s->free_from));
    }
}

static Simulation simulate(const char *profile)
{
    const DiskProfile *p = disk_profile_by_name(profile);

    assert_non_null(p);
    return (Simulation){.disk = disk_init(p, SIZE),
                        .random = 1,
                        .zero_from = UINT64_MAX,
                        .free_from = UINT64_MAX};
}

static void assert_near(double value, double expected, double tolerance, const char *what)
{
    if (fabs(value - expected) > tolerance * expected)
        fail_msg("%s: %g, expected %g", what, value, expected);
}

/* Checks that the profile predicts the time that the true disk needs for reads of `length`, at
 * random places or sorted. */
static void assert_predicts(const DiskProfile *truth, const DeviceProfile *d, uint64_t length,
                            bool sorted, double tolerance)
{
    enum { N = 300 };
    DiskRequest requests[N];
    Range costs[N];
    Simulation s = {.random = 7};
    double expected, predicted;

    for (unsigned i = 0; i < N; i++) {
        uint64_t at = sorted ? SIZE / N * i : (uint64_t)((double)(SIZE - length) * uniform(&s));

        requests[i] = (DiskRequest){.offset = at, .length = length};
        costs[i] = (Range){at, length};
    }
    expected = (double)disk_sequence_nsec(truth, SIZE, requests, N) / 1000;
    predicted = cost_sequence_usec(d, costs, N, SIZE);
    assert_near(predicted, expected, tolerance, truth->name);
}

static void check(const DiskProfile *truth, const DeviceEstimate *e, double tolerance)
{
    const DeviceProfile *d = &e->profile;

    assert_true(e->seeks_clear);
    assert_true(e->rate_measured && e->latency_measured && e->depth_measured);
    assert_int_equal(e->seeks_slowly, truth->rotational);
    assert_near(d->rate_bytes_per_usec, (double)truth->rate / 1e6, tolerance, truth->name);
    assert_near(d->fixed_usec, (double)truth->fixed_nsec / 1000, tolerance, truth->name);
    if (truth->rotational) {
        assert_near(d->seek_min_usec + d->half_rotation_usec,
                    (double)(truth->seek_min_nsec + truth->half_rotation_nsec) / 1000, tolerance,
                    truth->name);
        assert_near(d->seek_max_usec - d->seek_min_usec,
                    (double)(truth->seek_max_nsec - truth->seek_min_nsec) / 1000, tolerance,
                    truth->name);
        assert_int_equal(d->wait_bytes, truth->gap_bytes);
    } else
        assert_true(d->seek_max_usec <= 0);
    assert_predicts(truth, d, 4096, false, tolerance);
    assert_predicts(truth, d, 4096, true, tolerance);
    assert_predicts(truth, d, 128 * 1024, false, tolerance);
}

/* Returns the profile of the device class that the device would have before it is measured. */
static const DeviceProfile *start_of(const DiskProfile *p)
{
    return device_profile_of_class(p->rotational ? DEVICE_CLASS_HDD : DEVICE_CLASS_UNKNOWN);
}

static void measures_every_profile(void **state)
{
    for (const DiskProfile *p = disk_profiles; p->name; p++) {
        DeviceSamples *samples = calloc(1, sizeof(*samples));
        Simulation s = simulate(p->name);
        DeviceEstimate e;

        assert_non_null(samples);
        for (uint32_t plan = 1; plan <= DEVICE_PROBE_PLANS; plan++) {
            assert_true(device_probe_wanted(samples));
            measure(&s, samples, plan, NULL, 0);
            assert_true(s.read_bytes <= DEVICE_PROBE_BYTES_MAX);
            /* The last probe may end after the budget. */
            assert_true(s.spent_usec <= DEVICE_PROBE_TIME_MAX + 100 * USEC_PER_MSEC);
        }
        assert_false(device_probe_wanted(samples));
        measure(&s, samples, 4, NULL, 0);
        assert_int_equal(s.read_bytes, 0);
        device_estimate(samples, SIZE, start_of(p), &e);
        check(p, &e, 0.1);
        assert_false(e.slow_first_reads);
        free(samples);
    }
}

/* A plan reads fewer parts for the first time than the plans before it. */
static void first_reads_of_a_lazily_loaded_volume_are_slow(void **state)
{
    for (unsigned seed = 1; seed <= 20; seed++) {
        DeviceSamples *samples = calloc(1, sizeof(*samples));
        const DeviceProfile *start =
                device_profile_of_class(seed % 2 ? DEVICE_CLASS_NETDISK : DEVICE_CLASS_SSD);
        Simulation s = simulate("netdisk");
        DeviceEstimate e;

        assert_non_null(samples);
        s.loaded = calloc(SIZE / PART_BYTES + 1, sizeof(bool));
        assert_non_null(s.loaded);
        s.random = seed;
        for (uint32_t plan = 1; plan <= DEVICE_PROBE_PLANS; plan++) {
            measure(&s, samples, plan, NULL, 0);
            device_estimate(samples, SIZE, start, &e);
            assert_true(e.slow_first_reads);
        }
        free(s.loaded);
        free(samples);
    }
}

static void noise_and_outliers_change_little(void **state)
{
    for (const DiskProfile *p = disk_profiles; p->name; p++)
        for (unsigned seed = 1; seed <= 20; seed++) {
            DeviceSamples *samples = calloc(1, sizeof(*samples));
            Simulation s = simulate(p->name);
            DeviceEstimate e;

            assert_non_null(samples);
            s.random = seed;
            s.noise = 0.1;
            s.outlier_percent = 5;
            for (uint32_t plan = 1; plan <= DEVICE_PROBE_PLANS; plan++)
                measure(&s, samples, plan, NULL, 0);
            device_estimate(samples, SIZE, start_of(p), &e);
            check(p, &e, 0.2);
            free(samples);
        }
}

static void one_plan_decides_whether_a_disk_seeks(void **state)
{
    for (const DiskProfile *p = disk_profiles; p->name; p++) {
        DeviceSamples *samples = calloc(1, sizeof(*samples));
        Simulation s = simulate(p->name);

        assert_non_null(samples);
        assert_int_equal(device_seeks_slowly(samples), -ENODATA);
        measure(&s, samples, 1, NULL, 0);
        assert_int_equal(device_seeks_slowly(samples), p->rotational);
        free(samples);
    }
}

/* Other processes use the disk, and many reads of the probes wait for theirs. */
static void load_does_not_hide_a_hard_disk(void **state)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        DeviceSamples *samples = calloc(1, sizeof(*samples));
        Simulation s = simulate("hdd7200");
        DeviceEstimate e;

        assert_non_null(samples);
        s.random = seed;
        s.busy_percent = 33;
        s.busy_nsec = 40000000;
        for (uint32_t plan = 1; plan <= DEVICE_PROBE_PLANS; plan++) {
            measure(&s, samples, plan, NULL, 0);
            assert_true(device_seeks_slowly(samples) != 0);
        }
        device_estimate(samples, SIZE, start_of(s.disk.profile), &e);
        assert_true(e.seeks_clear && e.seeks_slowly);
        assert_near(e.profile.seek_min_usec + e.profile.half_rotation_usec, 5170, 0.5,
                    "seek under load");
        free(samples);
    }
}

/* All data is within 1 MiB: some reads only wait until the next block passes the head. */
static void short_seeks_do_not_hide_a_hard_disk(void **state)
{
    const Range places[] = {{SIZE / 2, UINT64_C(1) << 20}};

    for (const DiskProfile *p = disk_profiles; p->name; p++)
        for (unsigned seed = 1; p->rotational && seed <= 50; seed++) {
            DeviceSamples *samples = calloc(1, sizeof(*samples));
            Simulation s = simulate(p->name);

            assert_non_null(samples);
            s.random = seed;
            for (uint32_t plan = 1; plan <= DEVICE_PROBE_PLANS; plan++) {
                measure(&s, samples, plan, places, 1);
                assert_int_equal(device_seeks_slowly(samples), 1);
            }
            free(samples);
        }
}

/* Other processes delay 60 % of the reads by up to 40 ms, which is longer than a seek. */
static void load_does_not_make_a_device_seek(void **state)
{
    unsigned wrong = 0, all = 0;

    for (const DiskProfile *p = disk_profiles; p->name; p++)
        for (unsigned seed = 1; !p->rotational && seed <= 50; seed++, all++) {
            DeviceSamples *samples = calloc(1, sizeof(*samples));
            Simulation s = simulate(p->name);

            assert_non_null(samples);
            s.random = seed;
            s.busy_percent = 60;
            s.busy_nsec = 40000000;
            for (uint32_t plan = 1; plan <= DEVICE_PROBE_PLANS; plan++)
                measure(&s, samples, plan, NULL, 0);
            wrong += device_seeks_slowly(samples) == 1;
            free(samples);
        }
    if (wrong * 50 > all)
        fail_msg("%u of %u devices", wrong, all);
}

/* Two thirds of the device were never written: reads there return zeros at once. */
static void thin_ranges_count_only_if_there_is_nothing_else(void **state)
{
    DeviceSamples *samples = calloc(1, sizeof(*samples));
    Simulation s = simulate("netdisk");
    const Range places[] = {{UINT64_C(1) << 20, UINT64_C(1) << 20},
                            {SIZE / 4, SIZE / 3 - SIZE / 4}};
    DeviceEstimate e;

    assert_non_null(samples);
    s.zero_from = SIZE / 3;
    for (uint32_t plan = 1; plan <= DEVICE_PROBE_PLANS; plan++)
        measure(&s, samples, plan, NULL, 0);
    device_estimate(samples, SIZE, start_of(s.disk.profile), &e);
    assert_near(e.profile.fixed_usec, 3000, 0.1, "latency of a thin device");

    /* If the places of data are known, the probes read only there. */
    memset(samples, 0, sizeof(*samples));
    for (uint32_t plan = 1; plan <= DEVICE_PROBE_PLANS; plan++)
        measure(&s, samples, plan, places, 2);
    for (unsigned i = 0; i < samples->n[DEVICE_SAMPLE_FAR]; i++)
        assert_false(samples->items[DEVICE_SAMPLE_FAR][i].zeroed);
    device_estimate(samples, SIZE, start_of(s.disk.profile), &e);
    check(s.disk.profile, &e, 0.1);
    free(samples);
}

/* The first plan of a new installation measures the disk before anything was learned. Most of the
 * disk is free and returns zeros, which take as long as data. */
static void free_blocks_of_a_disk_count(void **state)
{
    DeviceSamples *samples = calloc(1, sizeof(*samples));

    assert_non_null(samples);
    for (unsigned share = 0; share <= 8; share++)
        for (unsigned seed = 0; seed < 50; seed++) {
            Simulation s = simulate("hdd7200");

            memset(samples, 0, sizeof(*samples));
            s.random = seed;
            s.free_from = SIZE / 8 * share;
            measure(&s, samples, 1, NULL, 0);
            assert_int_equal(device_seeks_slowly(samples), 1);
        }
    free(samples);
}

static void without_samples_the_start_stands(void **state)
{
    DeviceSamples *samples = calloc(1, sizeof(*samples));
    DeviceEstimate e;

    assert_non_null(samples);
    for (DeviceClass c = 0; c < _DEVICE_CLASS_MAX; c++) {
        const DeviceProfile *start = device_profile_of_class(c);

        device_estimate(samples, SIZE, start, &e);
        assert_memory_equal(&e.profile, start, sizeof(*start));
        assert_false(e.rate_measured || e.latency_measured || e.seeks_clear);
    }
    free(samples);
}

/* Whatever a stored file contains, the profile stays usable. */
static void extreme_samples_make_a_usable_profile(void **state)
{
    static const usec_t times[] = {0, 1, 3000, DEVICE_SAMPLE_USEC_MAX};
    DeviceSamples *samples = calloc(1, sizeof(*samples));

    assert_non_null(samples);
    for (unsigned far = 0; far < ELEMENTSOF(times); far++)
        for (unsigned near = 0; near < ELEMENTSOF(times); near++)
            for (unsigned stream = 0; stream < ELEMENTSOF(times); stream++) {
                DeviceEstimate e;
                DeviceSample x = {.length = 4096, .requests = 1, .depth = 1};

                memset(samples, 0, sizeof(*samples));
                for (unsigned i = 0; i < DEVICE_SAMPLES_MAX + 5; i++) {
                    x.requests = 1;
                    x.distance = i % 2 ? UINT64_MAX : i;
                    x.usec = times[far];
                    device_samples_add(samples, DEVICE_SAMPLE_FAR, &x);
                    x.distance = i % 3 ? 0 : 65536;
                    x.usec = times[near];
                    device_samples_add(samples, DEVICE_SAMPLE_NEAR, &x);
                    x.distance = 0;
                    x.requests = 2;
                    x.usec = times[stream];
                    device_samples_add(samples, DEVICE_SAMPLE_STREAM, &x);
                    x.depth = 2;
                    device_samples_add(samples, DEVICE_SAMPLE_PARALLEL, &x);
                    x.depth = 1;
                }
                device_estimate(samples, 0, device_profile_of_class(DEVICE_CLASS_SSD), &e);
                assert_true(e.profile.rate_bytes_per_usec > 0);
                assert_true(isfinite(e.profile.rate_bytes_per_usec));
                assert_true(e.profile.fixed_usec > 0 && isfinite(e.profile.fixed_usec));
                assert_in_range(e.profile.depth, 1, DEVICE_DEPTH_MAX);
                assert_true(e.profile.seek_min_usec >= 0 && isfinite(e.profile.seek_max_usec));
                assert_true(e.profile.seek_max_usec >= e.profile.seek_min_usec);
                assert_true(e.profile.half_rotation_usec >= 0);
            }
    free(samples);
}

static void the_class_follows_the_profile(void **state)
{
    for (DeviceClass c = DEVICE_CLASS_UNKNOWN + 1; c < _DEVICE_CLASS_MAX; c++)
        assert_int_equal(device_class_of_profile(device_profile_of_class(c)), c);
}

static void sweeps_correct_a_profile_that_is_far_off(void **state)
{
    const DeviceProfile hdd = *device_profile_of_class(DEVICE_CLASS_HDD);
    DeviceSweep s[] = {{100, 160}, {100, 150}, {100, 900}, {0, 5}, {100, 140}};
    DeviceProfile d = hdd;

    device_refine(&d, s, 2);
    assert_memory_equal(&d, &hdd, sizeof(d));
    /* The factor is the median of the measured ones, 1.4, 1.5, 1.6 and 9. */
    device_refine(&d, s, 5);
    assert_near(d.rate_bytes_per_usec, hdd.rate_bytes_per_usec / 1.55, 1e-9, "rate");
    assert_near(d.fixed_usec, hdd.fixed_usec * 1.55, 1e-9, "latency");
    assert_near(d.seek_max_usec, hdd.seek_max_usec * 1.55, 1e-9, "seek");
    /* A time that is close enough to the predicted one changes nothing. */
    d = hdd;
    s[0].measured_usec = s[1].measured_usec = s[2].measured_usec = 124;
    device_refine(&d, s, 3);
    assert_memory_equal(&d, &hdd, sizeof(d));
    /* The factor is limited to 2 in both directions. */
    s[0].measured_usec = s[1].measured_usec = s[2].measured_usec = 1;
    device_refine(&d, s, 3);
    assert_near(d.rate_bytes_per_usec, hdd.rate_bytes_per_usec * 2, 1e-9, "rate");
    d = hdd;
    s[0].measured_usec = s[1].measured_usec = s[2].measured_usec = UINT64_MAX;
    device_refine(&d, s, 3);
    assert_near(d.rate_bytes_per_usec, hdd.rate_bytes_per_usec / 2, 1e-9, "rate");
}

static void a_sweep_counts_if_nothing_disturbed_it(void **state)
{
    const DeviceSweepReport swept = {
            .policy = POLICY_GATE,
            .done = true,
            .start_realtime = 2000,
            .duration_usec = 1000,
            .held_usec = 1000,
            .data_bytes = 95,
    };
    DeviceSweepReport r = swept;

    assert_true(device_sweep_counts(&r, 1999, 100));
    assert_false(device_sweep_counts(&r, 2000, 100)); /* of an older pack */
    assert_false(device_sweep_counts(&r, 1999, 110)); /* much of the pack was not read */
    /* The boot read as well after its hold had ended, or was not held at all. */
    r.held_usec = 900;
    assert_true(device_sweep_counts(&r, 1999, 100));
    r.held_usec = 899;
    assert_false(device_sweep_counts(&r, 1999, 100));
    r.held_usec = 0;
    assert_false(device_sweep_counts(&r, 1999, 100));
    r = swept;
    r.done = false;
    assert_false(device_sweep_counts(&r, 1999, 100));
    /* A sweep of no time, or one that a suspended machine prolonged. */
    r = swept;
    r.duration_usec = 0;
    assert_false(device_sweep_counts(&r, 1999, 100));
    r.duration_usec = r.held_usec = DEVICE_SAMPLE_USEC_MAX + 1;
    assert_false(device_sweep_counts(&r, 1999, 100));
    /* An idle sweep is not held, and has to become resident. */
    r = swept;
    r.policy = POLICY_IDLE;
    r.held_usec = 0;
    assert_false(device_sweep_counts(&r, 1999, 100));
    r.resident = true;
    assert_true(device_sweep_counts(&r, 1999, 100));
    r.policy = POLICY_CONCURRENT;
    assert_false(device_sweep_counts(&r, 1999, 100));
    r.policy = _POLICY_INVALID;
    assert_false(device_sweep_counts(&r, 1999, 100));
}

static void the_oldest_sample_goes_first(void **state)
{
    DeviceSamples *s = calloc(1, sizeof(*s));
    DeviceSample x = {.length = 1, .requests = 1, .depth = 1};

    assert_non_null(s);
    for (x.plan = 0; x.plan < DEVICE_SAMPLES_MAX + 10; x.plan++)
        device_samples_add(s, DEVICE_SAMPLE_FAR, &x);
    assert_int_equal(s->n[DEVICE_SAMPLE_FAR], DEVICE_SAMPLES_MAX);
    assert_int_equal(s->items[DEVICE_SAMPLE_FAR][0].plan, 10);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(measures_every_profile),
            cmocka_unit_test(first_reads_of_a_lazily_loaded_volume_are_slow),
            cmocka_unit_test(noise_and_outliers_change_little),
            cmocka_unit_test(one_plan_decides_whether_a_disk_seeks),
            cmocka_unit_test(load_does_not_hide_a_hard_disk),
            cmocka_unit_test(short_seeks_do_not_hide_a_hard_disk),
            cmocka_unit_test(load_does_not_make_a_device_seek),
            cmocka_unit_test(thin_ranges_count_only_if_there_is_nothing_else),
            cmocka_unit_test(free_blocks_of_a_disk_count),
            cmocka_unit_test(without_samples_the_start_stands),
            cmocka_unit_test(extreme_samples_make_a_usable_profile),
            cmocka_unit_test(the_class_follows_the_profile),
            cmocka_unit_test(sweeps_correct_a_profile_that_is_far_off),
            cmocka_unit_test(a_sweep_counts_if_nothing_disturbed_it),
            cmocka_unit_test(the_oldest_sample_goes_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
