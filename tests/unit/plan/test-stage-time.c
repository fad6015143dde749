/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the predicted time of a stage: plan/stage-time.h. Known answers for stages of a few reads,
 * and properties of random ones. */

#include "plan/stage-time.c" // NOLINT(bugprone-suspicious-include)

#include "base/ranges.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Computes the stage's time if replay reads everything (`metadata_only`: only metadata) in bins of
 * width `bin` and holds the stage for `hold`; USEC_INFINITY holds it until everything is read.
 * *ret_hold (may be NULL) is the time for which the stage was held. Returns 0 or -ENOMEM. */
static int stage_time_replayed(const StageFacts *f, bool metadata_only, usec_t bin, usec_t hold,
                               usec_t *ret_usec, usec_t *ret_hold)
{
    _cleanup_(stage_sequence_done) StageSequence s = {0};
    int r = stage_sequence_make(f, &s);

    return r < 0 ? r
                 : stage_play(&s, &(StageReplay){metadata_only, bin, hold, 0, 0}, ret_usec,
                              ret_hold);
}

#define MB   UINT64_C(1000000)
#define MSEC USEC_PER_MSEC

/* 100 MB/s, 1 ms per request, one at a time. */
static const DeviceProfile flash = {.rate_bytes_per_usec = 100, .fixed_usec = 1000, .depth = 1};
static const DeviceProfile deep = {.rate_bytes_per_usec = 100, .fixed_usec = 3000, .depth = 64};

#define READS_MAX 400

typedef struct Example {
    StageDevice device;
    StageRead reads[READS_MAX];
    StageFacts f;
} Example;

/* Makes an example of `n` reads of `length` bytes at scattered places, needed one after the other.
 */
static void example(Example *x, const DeviceProfile *p, size_t n, uint64_t length, usec_t ready,
                    usec_t stalled)
{
    *x = (Example){.device = {p, 8000 * MB}};
    for (size_t i = 0; i < n; i++)
        x->reads[i] = (StageRead){
                .place = (i * 7919) % 8000 * MB,
                .length = length,
                .need = ready * i / n,
                .probability = 1,
        };
    x->f = (StageFacts){
            .devices = &x->device,
            .n_devices = 1,
            .reads = x->reads,
            .n_reads = n,
            .n_opens = n,
            .ready = ready,
            .stalled = stalled,
            .deadline = 10 * USEC_PER_SEC,
    };
}

static StagePrediction predict(const Example *x)
{
    StagePrediction p;

    assert_int_equal(stage_time_predict(&x->f, &p), 0);
    return p;
}

#define assert_about(a, b, part) \
    assert_true(fabs((double)(a) - (double)(b)) <= (part) * (double)(b) + 1)

/* The recorded time is the time without replay, whatever the model of the device says. */
static void a_stage_without_replay_takes_what_was_measured(void **state)
{
    Example x;

    example(&x, &flash, 100, 100000, USEC_PER_SEC, 100 * MSEC);
    assert_int_equal(predict(&x).usec[POLICY_OFF], USEC_PER_SEC);
}

static void nothing_is_gained_where_nothing_waits(void **state)
{
    Example x;
    StagePrediction p;

    example(&x, &flash, 1, 4096, 5 * USEC_PER_SEC, 0);
    p = predict(&x);
    assert_int_equal(p.best, POLICY_OFF);
    assert_int_equal(p.reason, POLICY_REASON_NO_GAIN);
    example(&x, &flash, 0, 0, 5 * USEC_PER_SEC, 0);
    assert_int_equal(predict(&x).best, POLICY_OFF);
    /* The stage waited for a server, or until data was written. */
    example(&x, &flash, 0, 0, 5 * USEC_PER_SEC, 2 * USEC_PER_SEC);
    assert_int_equal(predict(&x).best, POLICY_OFF);
    example(&x, &flash, 1, 4096, 5 * USEC_PER_SEC, 2 * USEC_PER_SEC);
    p = predict(&x);
    assert_true(p.usec[POLICY_CONCURRENT] >= 4800 * MSEC);
}

/* A stage that only reads takes at least as long as the device needs. Each of the 200 reads of 100
 * kB takes 1 + 1 ms, 400 ms in all. At least 5 % of a stage count as computing, so 380 ms are
 * reading. */
static void only_reads(void **state)
{
    Example x;
    StagePrediction p;
    usec_t t, hold;

    example(&x, &flash, 200, 100000, 400 * MSEC, 400 * MSEC);
    p = predict(&x);
    for (Policy k = 0; k <= POLICY_GATE; k++)
        assert_true(p.usec[k] >= 380 * MSEC);
    /* A device that serves 64 requests at once: 20 MB take 200 ms, and the latencies overlap. */
    example(&x, &deep, 200, 100000, 800 * MSEC, 760 * MSEC);
    assert_int_equal(stage_time_replayed(&x.f, false, 0, USEC_INFINITY, &t, &hold), 0);
    assert_true(hold > 200 * MSEC && hold < 260 * MSEC); /* 200 ms, and the program's start */
    assert_about(t, hold + 40 * MSEC, 0.01);             /* 5 % of 800 ms are computed */
    assert_true(predict(&x).usec[POLICY_GATE] <= t);
}

/* A held stage continues when replay has submitted its last request. Each of 200 reads of 100 kB
 * takes 2 ms, and so many of them are in flight then. */
static void a_hold_ends_with_the_last_request(void **state)
{
    DeviceEngine engine = {.window_bytes = 5 * MB, .window_requests = 1000};
    Example x;
    usec_t all, part, t, hold;

    example(&x, &flash, 200, 100000, USEC_PER_SEC, 400 * MSEC);
    assert_int_equal(stage_time_replayed(&x.f, false, 0, USEC_INFINITY, &t, &all), 0);
    x.device.engine = &engine;
    assert_int_equal(stage_time_replayed(&x.f, false, 0, USEC_INFINITY, &t, &hold), 0);
    assert_int_equal(all - hold, 100 * MSEC); /* 50 reads */
    engine.window_requests = 20;
    assert_int_equal(stage_time_replayed(&x.f, false, 0, USEC_INFINITY, &t, &hold), 0);
    assert_int_equal(all - hold, 40 * MSEC);
    /* A hold that is planned to be longer ends at that moment, too. */
    assert_int_equal(stage_time_replayed(&x.f, false, 0, 2 * USEC_PER_SEC, &t, &part), 0);
    assert_int_equal(part, hold);
    assert_int_equal(stage_time_replayed(&x.f, false, 0, 200 * MSEC, &t, &part), 0);
    assert_int_equal(part, 200 * MSEC);
    /* The window holds everything: nothing but the metadata and the opening of files is waited
     * for. */
    engine = (DeviceEngine){.window_bytes = 100 * MB, .window_requests = 1000};
    for (size_t i = 0; i < 50; i++)
        x.reads[i].metadata = true;
    assert_int_equal(stage_time_replayed(&x.f, false, 0, USEC_INFINITY, &t, &hold), 0);
    assert_int_equal(all - hold, 300 * MSEC); /* 150 reads */
    /* The stage still waits for what it needs, and computes for 460 ms. Its own reads would take
     * 90 % of 600 ms, because each of them makes two requests. */
    assert_true(t >= all && t + MSEC >= hold + 460 * MSEC);
}

/* A read that replay has not begun waits behind the requests in flight: behind all of a deep
 * device, or behind a small window. */
static void a_small_window_lets_readers_pass(void **state)
{
    DeviceEngine engine = {
            .window_bytes = 64 * MB, .window_requests = 512, .beside_bytes = 64 * MB};
    Example x;
    usec_t wide, narrow;

    /* 50 large reads are needed at the end of the stage, and ten small ones early. */
    example(&x, &deep, 60, 2 * MB, 10 * USEC_PER_SEC, USEC_PER_SEC);
    for (size_t i = 0; i < 60; i++) {
        x.reads[i].place = (i < 10 ? 100 + i : i) * 4 * MB;
        x.reads[i].length = i < 10 ? 50000 : 2 * MB;
        x.reads[i].need = i < 10 ? i * MSEC : 1900 * MSEC;
    }
    x.device.engine = &engine;
    assert_int_equal(stage_time_replayed(&x.f, false, 0, 0, &wide, NULL), 0);
    engine.beside_bytes = 2 * MB;
    assert_int_equal(stage_time_replayed(&x.f, false, 0, 0, &narrow, NULL), 0);
    assert_true(narrow + 200 * MSEC < wide);
}

/* A reader waits for a read that has begun: 10 MB take 100 ms. */
static void a_read_on_its_way_is_awaited(void **state)
{
    Example x;
    usec_t t;

    example(&x, &deep, 1, 10 * MB, 500 * MSEC, 400 * MSEC);
    x.reads[0].need = 10 * MSEC;
    assert_int_equal(stage_time_replayed(&x.f, false, 1000, 0, &t, NULL), 0);
    assert_true(t >= 200 * MSEC && t <= 260 * MSEC); /* 100 ms of reading, 100 ms of computing, and
                                                        the start of the replay program */
}

/* Half of the time is computation and half is waiting. Reading ahead hides the waits. */
static void reading_overlaps_with_computing(void **state)
{
    Example x;
    StagePrediction p;

    example(&x, &flash, 100, 100000, 400 * MSEC, 200 * MSEC);
    p = predict(&x);
    assert_true(p.usec[POLICY_CONCURRENT] >= 200 * MSEC);
    assert_true(p.usec[POLICY_CONCURRENT] <= 260 * MSEC);
    /* A gate that reads everything first cannot overlap reading with computing, but a gate that
     * reads only a part first can. */
    assert_true(p.usec[POLICY_GATE] <= p.usec[POLICY_CONCURRENT] + 20 * MSEC);
    assert_true(p.best == POLICY_CONCURRENT || (p.best == POLICY_GATE && !p.gate_whole));
    assert_int_equal(p.reason, POLICY_REASON_FASTEST);
}

/* A replay of metadata alone gains the share that metadata has in the reads. */
/* Replay reads neighbours on the device with one request of at most REPLAY_REQUEST bytes. The
 * stage's own reads are not joined. */
static void neighbours_are_read_together(void **state)
{
    Example x;
    usec_t apart, together, hold, other_hold;

    example(&x, &flash, 100, 20000, USEC_PER_SEC, 100 * MSEC);
    assert_int_equal(stage_time_replayed(&x.f, false, 0, USEC_INFINITY, &apart, &hold), 0);
    for (size_t i = 0; i < 100; i++)
        x.reads[i].place = 1000 * MB + i * 20000;
    assert_int_equal(stage_time_replayed(&x.f, false, 0, USEC_INFINITY, &together, &other_hold), 0);
    /* 2 MB are 2 requests instead of 100. */
    assert_int_equal(hold - other_hold, 98 * MSEC);
    /* In the order of need, no read follows its neighbour. */
    for (size_t i = 0; i < 100; i++)
        x.reads[i].need = (99 - i) * 10 * MSEC;
    assert_int_equal(
            stage_time_replayed(&x.f, false, 10 * MSEC, USEC_INFINITY, &together, &other_hold), 0);
    assert_int_equal(hold, other_hold);
    /* Gaps of one byte. */
    for (size_t i = 0; i < 100; i++)
        x.reads[i].place += i;
    assert_int_equal(stage_time_replayed(&x.f, false, 0, USEC_INFINITY, &apart, &other_hold), 0);
    assert_int_equal(hold, other_hold);
}

static void metadata_gains_its_share(void **state)
{
    Example x;
    usec_t all, some;

    example(&x, &flash, 200, 8192, USEC_PER_SEC, 800 * MSEC);
    for (size_t i = 0; i < 100; i++)
        x.reads[2 * i].metadata = true;
    assert_int_equal(stage_time_replayed(&x.f, true, 0, 0, &some, NULL), 0);
    assert_int_equal(stage_time_replayed(&x.f, false, 1000, 0, &all, NULL), 0);
    assert_true(all < some && some < USEC_PER_SEC);
    assert_true(some > 550 * MSEC); /* 200 ms of computing and half of 800 ms of waiting */
}

static void a_slow_disk_is_swept(void **state)
{
    const DeviceProfile *hdd = device_profile_of_class(DEVICE_CLASS_HDD);
    Example x;
    StagePrediction p;

    example(&x, hdd, 400, 50000, 6 * USEC_PER_SEC, 5700 * MSEC);
    for (size_t i = 0; i < 400; i++)
        x.reads[i].place = (i * 7919) % 400 * 60000; /* near each other, in disorder */
    p = predict(&x);
    assert_int_equal(p.best, POLICY_GATE);
    assert_true(p.usec[POLICY_GATE] < 2 * USEC_PER_SEC);
    assert_true(p.usec[POLICY_CONCURRENT] > p.usec[POLICY_GATE]);
    /* No hold is longer than the deadline. */
    x.f.deadline = 20 * MSEC;
    p = predict(&x);
    assert_true(p.usec[POLICY_GATE] == USEC_INFINITY);
    x.f.deadline = 300 * MSEC;
    p = predict(&x);
    assert_true(p.usec[POLICY_GATE] < 6 * USEC_PER_SEC);
    assert_true(!p.gate_whole && p.hold <= 300 * MSEC);
    x.f.deadline = 0;
    assert_true(predict(&x).best != POLICY_GATE);
}

static uint32_t main_volume_of(const Example *x)
{
    _cleanup_(stage_sequence_done) StageSequence s = {0};

    assert_int_equal(stage_sequence_make(&x->f, &s), 0);
    return main_volume(&s);
}

/* The stage needs first what lies last on the disk. A sweep that ends there would let it wait. */
static void a_sweep_ends_with_what_is_needed_last(void **state)
{
    const DeviceProfile *hdd = device_profile_of_class(DEVICE_CLASS_HDD);
    const DeviceEngine engine = {.window_bytes = 5 * MB, .window_requests = 100};
    StageDevice disks[2];
    usec_t straight;
    StagePrediction p;
    Example x;

    example(&x, hdd, 400, 100000, 8400 * MSEC, 7400 * MSEC);
    x.device.engine = &engine;
    for (size_t i = 0; i < 400; i++)
        x.reads[i].place = (i + 300) % 400 * 2 * MB;
    assert_int_equal(stage_time_replayed(&x.f, false, 0, USEC_INFINITY, &straight, NULL), 0);
    p = predict(&x);
    assert_true(p.gate_whole && p.sweep_volume == 0);
    /* 50 requests are in flight at the end. At least 25 of them are for the first 50 MB, which are
     * needed later than the rest of the 50. */
    assert_in_range(p.sweep_start, 50 * MB, 600 * MB);
    assert_true(p.usec[POLICY_GATE] < straight - straight / 100);
    /* The other volume of the disk has most data. */
    for (size_t i = 0; i < 400; i++)
        x.reads[i].volume = i % 10 != 0;
    p = predict(&x);
    assert_true(p.sweep_volume == 1 && p.sweep_start > 0);
    /* Most data lie on another disk, which does not seek. */
    disks[0] = x.device;
    disks[1] = (StageDevice){&flash, 8000 * MB, NULL};
    x.f.devices = disks;
    x.f.n_devices = 2;
    for (size_t i = 0; i < 400; i++) {
        x.reads[i].device = i % 4 == 0;
        x.reads[i].volume = i % 4 == 0 ? 0 : 1;
        x.reads[i].length = i % 4 == 0 ? 1000000 : 100000;
    }
    p = predict(&x);
    assert_true(p.sweep_start == 0 || p.sweep_volume == 1);
    assert_int_equal(main_volume_of(&x), 1);
    x.f.devices = &x.device;
    x.f.n_devices = 1;
    for (size_t i = 0; i < 400; i++)
        x.reads[i].device = 0;
    /* What is needed first lies first. */
    for (size_t i = 0; i < 400; i++)
        x.reads[i].place = i * 2 * MB;
    assert_int_equal(predict(&x).sweep_start, 0);
    /* A disk that does not seek reads in any order equally fast. */
    example(&x, &flash, 400, 100000, 8400 * MSEC, 7400 * MSEC);
    assert_int_equal(predict(&x).sweep_start, 0);
}

/* On a slow disk `gate` is chosen although `concurrent` is predicted to be up to a third faster. */
static void a_slow_disk_is_swept_in_doubt(void **state)
{
    const DeviceProfile *hdd = device_profile_of_class(DEVICE_CLASS_HDD);
    Example x;
    StagePrediction p;

    example(&x, hdd, 400, 100000, 8400 * MSEC, 7400 * MSEC);
    for (size_t i = 0; i < 400; i++)
        x.reads[i].place = i * 20 * MB;
    p = predict(&x);
    assert_int_equal(p.best, POLICY_GATE);
    assert_true(p.usec[POLICY_CONCURRENT] < p.usec[POLICY_GATE] / 10 * 9);
}

static void a_login_is_read_before(void **state)
{
    Example x;
    StagePrediction p;

    example(&x, &flash, 200, 100000, USEC_PER_SEC, 700 * MSEC);
    x.f.waits = true;
    p = predict(&x);
    assert_int_equal(p.best, POLICY_IDLE);
    assert_int_equal(p.usec[POLICY_IDLE], 300 * MSEC);
    assert_true(p.usec[POLICY_GATE] == USEC_INFINITY && p.usec[POLICY_CONCURRENT] == USEC_INFINITY);
}

/* A stage that was never measured is estimated, and replayed. */
static void an_unmeasured_stage_is_replayed(void **state)
{
    Example x;
    StagePrediction p;

    example(&x, &flash, 300, 100000, 0, 0);
    p = predict(&x);
    assert_true(p.best != POLICY_OFF && p.best != POLICY_GATE);
    assert_true(p.usec[POLICY_OFF] > 300 * MSEC && p.usec[POLICY_OFF] < 2 * USEC_PER_SEC);
    x.f.n_reads = 0;
    assert_true(predict(&x).best != POLICY_OFF);
}

static void reads_of_unknown_place_and_need(void **state)
{
    Example x;
    StagePrediction p;

    example(&x, &flash, 300, 100000, USEC_PER_SEC, 600 * MSEC);
    for (size_t i = 0; i < 300; i++) {
        if (i % 2)
            x.reads[i].place = PHYSICAL_UNKNOWN;
        if (i % 3)
            x.reads[i].need = USEC_INFINITY;
    }
    p = predict(&x);
    assert_true(p.best != POLICY_OFF && p.usec[p.best] < USEC_PER_SEC);
}

static uint64_t seed = 1;

static uint64_t chance(uint64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % n;
}

/* A device that is faster in everything makes no stage slower, if the time of the stage was not
 * measured. */
static void a_faster_device_takes_no_longer(void **state)
{
    for (int round = 0; round < 100; round++) {
        DeviceProfile slow = {
                .rate_bytes_per_usec = (double)(10 + chance(400)),
                .fixed_usec = (double)(50 + chance(3000)),
                .depth = 1,
        };
        DeviceProfile fast = slow;
        Example x;
        StagePrediction a, b;

        fast.rate_bytes_per_usec *= 2;
        fast.fixed_usec /= 2;
        example(&x, &slow, 50 + chance(300), 4096 * (1 + chance(40)), 0, 0);
        for (size_t i = 0; i < x.f.n_reads; i++)
            x.reads[i].need = chance(USEC_PER_SEC);
        a = predict(&x);
        x.device.profile = &fast;
        b = predict(&x);
        for (Policy k = 0; k <= POLICY_GATE; k++)
            assert_true(b.usec[k] <= a.usec[k]);
        assert_true(a.usec[a.best] <= a.usec[POLICY_CONCURRENT]);
    }
}

/* A hold adds at most its own length, and 500 ms of computing follow it. It ends with the sweep. */
static void a_hold_costs_at_most_itself(void **state)
{
    Example x;
    usec_t none, t, held;

    example(&x, &flash, 300, 60000, USEC_PER_SEC, 500 * MSEC);
    assert_int_equal(stage_time_replayed(&x.f, false, 1000, 0, &none, NULL), 0);
    for (usec_t hold = 0; hold <= USEC_PER_SEC; hold += 100 * MSEC) {
        assert_int_equal(stage_time_replayed(&x.f, false, 1000, hold, &t, &held), 0);
        assert_true(held <= MAX(hold, 30 * MSEC));
        assert_true(hold > 490 * MSEC || held >= hold);
        assert_true(t <= none + held + MSEC);
        assert_true(t + MSEC >= held + 500 * MSEC);
    }
}

/* Next to a reader, replay keeps its window of requests in the queue of a device that serves them
 * in the order of arrival. The reader then finds more in memory, and makes fewer requests of its
 * own, which are smaller and therefore cost more. */
static void a_window_of_requests_is_in_the_queue(void **state)
{
    DeviceEngine engine = {.beside_bytes = 10 * MB, .beside_requests = 8};
    Example x;
    usec_t one, eight;

    example(&x, &flash, 200, 100000, 500 * MSEC, 450 * MSEC);
    x.device.engine = &engine;
    assert_int_equal(stage_time_replayed(&x.f, false, 0, 0, &eight, NULL), 0);
    engine.beside_requests = 1;
    assert_int_equal(stage_time_replayed(&x.f, false, 0, 0, &one, NULL), 0);
    assert_true(eight + eight / 10 < one);
    /* Fewer bytes in flight have the same effect. */
    engine = (DeviceEngine){.beside_bytes = 1, .beside_requests = 8};
    assert_int_equal(stage_time_replayed(&x.f, false, 0, 0, &one, NULL), 0);
    assert_true(eight + eight / 10 < one);
}

/* A reader that waits for the first part of a large range does not read the rest of it alone:
 * replay comes to it in the meantime. 20 MB take 200 ms. */
static void replay_takes_over_a_range(void **state)
{
    DeviceEngine engine = {.beside_bytes = 2 * MB, .beside_requests = 32};
    Example x;
    usec_t t;

    example(&x, &deep, 10, 2 * MB, 1500 * MSEC, 1400 * MSEC);
    x.device.engine = &engine;
    assert_int_equal(stage_time_replayed(&x.f, false, 1, 0, &t, NULL), 0);
    assert_true(t < 290 * MSEC);
}

/* On a disk that does not seek, a boot is held only if that gains more than an eighth of the
 * computing time. */
static void a_hold_has_a_price(void **state)
{
    StageSequence s = {.warm = 400 * MSEC};
    Example x;
    StagePrediction p = {.usec = {[POLICY_OFF] = 2000 * MSEC,
                                  [POLICY_METADATA] = USEC_INFINITY,
                                  [POLICY_CONCURRENT] = 1000 * MSEC,
                                  [POLICY_GATE] = 960 * MSEC,
                                  [POLICY_IDLE] = USEC_INFINITY}};

    example(&x, &flash, 10, 4096, 2000 * MSEC, 1000 * MSEC);
    s.f = &x.f;
    choose(&s, &p);
    assert_int_equal(p.best, POLICY_CONCURRENT);
    p.usec[POLICY_GATE] = 940 * MSEC;
    choose(&s, &p);
    assert_int_equal(p.best, POLICY_GATE);
    p.usec[POLICY_GATE] = USEC_INFINITY; /* the deadline is too short */
    choose(&s, &p);
    assert_int_equal(p.best, POLICY_CONCURRENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_stage_without_replay_takes_what_was_measured),
            cmocka_unit_test(nothing_is_gained_where_nothing_waits),
            cmocka_unit_test(only_reads),
            cmocka_unit_test(a_hold_ends_with_the_last_request),
            cmocka_unit_test(a_small_window_lets_readers_pass),
            cmocka_unit_test(a_read_on_its_way_is_awaited),
            cmocka_unit_test(reading_overlaps_with_computing),
            cmocka_unit_test(neighbours_are_read_together),
            cmocka_unit_test(metadata_gains_its_share),
            cmocka_unit_test(a_slow_disk_is_swept),
            cmocka_unit_test(a_slow_disk_is_swept_in_doubt),
            cmocka_unit_test(a_sweep_ends_with_what_is_needed_last),
            cmocka_unit_test(a_login_is_read_before),
            cmocka_unit_test(an_unmeasured_stage_is_replayed),
            cmocka_unit_test(reads_of_unknown_place_and_need),
            cmocka_unit_test(a_faster_device_takes_no_longer),
            cmocka_unit_test(a_hold_costs_at_most_itself),
            cmocka_unit_test(a_window_of_requests_is_in_the_queue),
            cmocka_unit_test(replay_takes_over_a_range),
            cmocka_unit_test(a_hold_has_a_price),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
