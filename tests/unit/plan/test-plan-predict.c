/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests what the planner stores in a pack: for which applications it chooses launch replay
 * (plan_predict_start()), and where the sweep of a boot begins (plan_predict()). */

#include "plan/plan-predict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define RANGES 200U
#define BYTES  UINT64_C(16384)
#define FAR    UINT64_C(1000000) /* from range to range on the device */

/* A set of RANGES files of the filesystem /srv, with one range each, in a random order. */
typedef struct Example {
    Volume volume;
    VolumeTable table;
    char names[RANGES][16];
    PackContentFile files[RANGES];
    PlacedRange data[RANGES];
    PackContentVolume content_volume;
    PackContent content;
    PlanParameters parameters;
    usec_t ready;
} Example;

static void example(Example *x, DeviceClass class, usec_t ready)
{
    *x = (Example){
            .volume = {.mountpoint = (char *)"/srv",
                       .disk = (char *)"sda",
                       .uuid = (char *)"own",
                       .size_bytes = RANGES * FAR},
            .parameters = {.device_class = class},
            .ready = ready,
    };
    x->table = (VolumeTable){.volumes = &x->volume, .n = 1};
    for (unsigned i = 0; i < RANGES; i++) {
        snprintf(x->names[i], sizeof(x->names[i]), "lib/%03u.so", i);
        x->files[i] = (PackContentFile){.path = x->names[i]};
        x->data[i] = (PlacedRange){.file = i,
                                   .length = BYTES,
                                   .physical = i * 73 % RANGES * FAR,
                                   .probability = 1,
                                   .need = i * USEC_PER_MSEC};
    }
    x->content_volume = (PackContentVolume){.mountpoint = (char *)"/srv",
                                            .fstype = (char *)"ext4",
                                            .files = x->files,
                                            .n_files = RANGES,
                                            .data = x->data,
                                            .n_data = RANGES};
    x->content = (PackContent){.stage = STAGE_SESSION,
                               .volumes = &x->content_volume,
                               .n_volumes = 1,
                               .bin_usec = class == DEVICE_CLASS_HDD ? USEC_PER_SEC : 0,
                               .policy = _POLICY_INVALID};
}

/* Predicts that the login reads the first `n` files with that probability, and files of the same
 * names on another filesystem. */
static Policy choose(Example *x, unsigned n, double probability)
{
    PredictedRange whole = {0, BYTES - 1000, probability}, other_whole = {0, BYTES, 1};
    PredictedRange small = {0, BYTES / 4, probability};
    char paths[2 * RANGES][32];
    PredictedFile files[2 * RANGES];
    const Prediction login = {.files = files, .n_files = RANGES + n};

    for (unsigned i = 0; i < RANGES + n; i++) {
        bool other = i < RANGES;

        snprintf(paths[i], sizeof(paths[i]), "%s/lib/%03u.so", other ? "" : "/srv", i % RANGES);
        files[i] = (PredictedFile){.path = paths[i],
                                   .probability = other ? 1 : probability,
                                   .maps = other                 ? &other_whole
                                           : i == RANGES + n - 1 ? &small
                                                                 : &whole,
                                   .n_maps = 1};
    }
    assert_int_equal(plan_predict_start(&x->table, &x->parameters, &login, x->ready, &x->content),
                     0);
    return x->content.policy;
}

static void what_the_login_reads_saves_nothing(void **state)
{
    Example x;

    (void)state;
    example(&x, DEVICE_CLASS_HDD, 0);
    assert_int_equal(plan_predict_start(&x.table, &x.parameters, NULL, 0, &x.content), 0);
    assert_int_equal(x.content.policy, POLICY_CONCURRENT);
    assert_int_equal(x.content.reason, POLICY_REASON_FASTEST);
    assert_true(x.content.predicted_usec[POLICY_OFF] >
                x.content.predicted_usec[POLICY_CONCURRENT] + USEC_PER_SEC / 2);
    assert_int_equal(x.content.predicted_usec[POLICY_GATE], 0);

    assert_int_equal(choose(&x, RANGES, 1), POLICY_OFF);
    assert_int_equal(x.content.reason, POLICY_REASON_NO_GAIN);
    assert_int_equal(choose(&x, RANGES, 0.6), POLICY_OFF);
    assert_int_equal(choose(&x, RANGES, 0.4), POLICY_CONCURRENT);
    assert_int_equal(choose(&x, RANGES / 2, 1), POLICY_CONCURRENT);
}

/* With a bin for each range the disk seeks for each. In one bin it sweeps. */
static void data_that_come_along_take_no_seek(void **state)
{
    usec_t alone;
    Example x;

    (void)state;
    example(&x, DEVICE_CLASS_HDD, 0);
    x.content.bin_usec = USEC_PER_MSEC;
    assert_int_equal(plan_predict_start(&x.table, &x.parameters, NULL, 0, &x.content), 0);
    alone = x.content.predicted_usec[POLICY_CONCURRENT];
    for (unsigned i = 0; i < RANGES; i++)
        x.data[i].advance = x.data[i].need;
    assert_int_equal(plan_predict_start(&x.table, &x.parameters, NULL, 0, &x.content), 0);
    assert_true(x.content.predicted_usec[POLICY_CONCURRENT] < alone * 9 / 10);
}

/* The more a start computes, the more it can read meanwhile. */
static void reading_overlaps_with_computing(void **state)
{
    Example x;

    (void)state;
    example(&x, DEVICE_CLASS_EMMC, 2 * USEC_PER_SEC);
    assert_int_equal(choose(&x, RANGES - 100, 1), POLICY_OFF); /* under 5 % */
    x.ready = 300 * USEC_PER_MSEC;
    assert_int_equal(choose(&x, RANGES - 100, 1), POLICY_CONCURRENT);
    assert_int_equal(x.content.predicted_usec[POLICY_OFF], x.ready);
    assert_int_equal(choose(&x, RANGES - 30, 1), POLICY_OFF); /* under 20 ms */
}

/* Returns the predicted time of a start without replay whose set has only metadata. The login reads
 * `blocks` of each four blocks with that probability. */
static usec_t time_of_metadata(Example *x, const char *uuid, uint64_t blocks, double probability)
{
    PackContentMetadata metadata[RANGES];
    PredictedMetadata known[RANGES];
    const Prediction login = {.metadata = known, .n_metadata = RANGES};

    for (unsigned i = 0; i < RANGES; i++) {
        metadata[i] = (PackContentMetadata){i * FAR, UINT64_C(4) * 4096, 1, {0}};
        known[i] = (PredictedMetadata){.uuid = (char *)uuid,
                                       .range = {i * FAR, blocks * 4096, probability}};
    }
    x->content_volume.n_data = 0;
    x->content_volume.metadata = metadata;
    x->content_volume.n_metadata = RANGES;
    assert_int_equal(plan_predict_start(&x->table, &x->parameters, &login, x->ready, &x->content),
                     0);
    x->content_volume.metadata = NULL;
    return x->content.predicted_usec[POLICY_OFF];
}

static void metadata_that_the_login_reads_saves_nothing(void **state)
{
    Example x;
    usec_t cold;

    (void)state;
    example(&x, DEVICE_CLASS_HDD, 0);
    cold = time_of_metadata(&x, "own", 4, 0.4);
    assert_true(time_of_metadata(&x, "own", 4, 0.6) + USEC_PER_SEC / 2 < cold);
    assert_true(time_of_metadata(&x, "own", 3, 1) + USEC_PER_SEC / 2 > cold);
    assert_int_equal(time_of_metadata(&x, "another", 4, 1), cold);
}

/* The boot needs first what lies at the end of the disk. */
static void the_begin_of_the_sweep_is_stored(void **state)
{
    const StageMeasured measured = {6 * USEC_PER_SEC, 3800 * USEC_PER_MSEC};
    PackContentVolume volumes[2];
    Volume table[2];
    Example x;

    (void)state;
    example(&x, DEVICE_CLASS_HDD, 0);
    for (unsigned i = 0; i < RANGES; i++) {
        x.data[i].physical = i * FAR;
        x.data[i].need = (i + RANGES / 5) % RANGES * 30 * USEC_PER_MSEC;
    }
    /* The first volume of the pack has no data. */
    table[0] = table[1] = x.volume;
    table[0].mountpoint = (char *)"/boot";
    table[0].uuid_bytes[0] = 1;
    volumes[0] = (PackContentVolume){
            .mountpoint = (char *)"/boot", .fstype = (char *)"ext4", .uuid = {1}};
    volumes[1] = x.content_volume;
    x.table = (VolumeTable){.volumes = table, .n = 2};
    x.content = (PackContent){.stage = STAGE_BOOT, .volumes = volumes, .n_volumes = 2};
    x.parameters.deadline_usec = 30 * USEC_PER_SEC;
    assert_int_equal(plan_predict(&x.table, &x.parameters, _POLICY_INVALID, measured, &x.content),
                     0);
    assert_int_equal(x.content.policy, POLICY_GATE);
    assert_int_equal(volumes[0].sweep_start, 0);
    assert_in_range(volumes[1].sweep_start, FAR, RANGES * FAR);
    /* Another policy reads in another order. */
    assert_int_equal(plan_predict(&x.table, &x.parameters, POLICY_IDLE, measured, &x.content), 0);
    assert_int_equal(volumes[1].sweep_start, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(what_the_login_reads_saves_nothing),
            cmocka_unit_test(data_that_come_along_take_no_seek),
            cmocka_unit_test(reading_overlaps_with_computing),
            cmocka_unit_test(the_begin_of_the_sweep_is_stored),
            cmocka_unit_test(metadata_that_the_login_reads_saves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
