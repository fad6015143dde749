/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the bins in which the set of a starting application is read: plan/bins.h. */

#include "plan/bins.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define KB    UINT64_C(1000)
#define WIDTH (250 * USEC_PER_MSEC)
#define N_MAX 64

static char mountpoint[] = "/", path[] = "lib/x.so";
static PackContentFile file = {.path = path};

/* A filesystem on a hard disk of 100 MB/s. Gaps of up to 256 KiB take no seek. A seek takes 5.2 ms.
 */
typedef struct Example {
    Volume volume;
    VolumeTable table;
    PlacedRange data[N_MAX];
    PackContentVolume content_volume;
    PackContent content;
} Example;

static const PlanParameters parameters = {.device_class = DEVICE_CLASS_HDD};

static void example(Example *x, DeviceClass class, const PlacedRange *data, size_t n)
{
    *x = (Example){
            .volume = {.mountpoint = mountpoint, .size_bytes = 8000000 * KB},
            .content_volume = {.mountpoint = mountpoint,
                               .device_class = class,
                               .files = &file,
                               .n_files = 1,
                               .n_data = n},
            .content = {.bin_usec = WIDTH, .n_volumes = 1},
    };
    for (size_t i = 0; i < n; i++)
        x->data[i] = data[i];
    x->table = (VolumeTable){.volumes = &x->volume, .n = 1};
    x->content_volume.data = x->data;
    x->content.volumes = &x->content_volume;
}

/* Gathers the bins, and checks in which bin each range is read; INFINITE: its use is unknown. */
#define INFINITE 99
static void assert_bins(DeviceClass class, const PlacedRange *data, size_t n, const unsigned *bins)
{
    Example x;

    example(&x, class, data, n);
    assert_int_equal(bins_gather(&x.table, &parameters, NULL, &x.content), 0);
    for (size_t i = 0; i < n; i++) {
        usec_t turn = x.data[i].need - x.data[i].advance;

        assert_int_equal(turn == USEC_INFINITY ? INFINITE : turn / WIDTH, bins[i]);
        assert_int_equal(x.data[i].need, data[i].need);
    }
}

static void neighbours_come_along(void **state)
{
    static const PlacedRange data[] = {
            {.physical = 0, .length = 10 * KB, .need = 2 * WIDTH}, /* too far from 400 KB */
            {.physical = 200 * KB, .length = 10 * KB, .need = USEC_INFINITY},
            {.physical = 400 * KB, .length = 10 * KB, .need = WIDTH / 2},
            {.physical = 600 * KB, .length = 10 * KB, .need = 3 * WIDTH},
            {.physical = 900 * KB, .length = 10 * KB, .need = 3 * WIDTH}, /* too far */
            {.physical = 990 * KB, .length = 10 * KB, .need = 2 * WIDTH},
            {.physical = PHYSICAL_UNKNOWN, .length = 10 * KB, .need = 4 * WIDTH},
            {.physical = PHYSICAL_UNKNOWN, .length = 10 * KB, .need = 0},
    };

    (void)state;
    assert_bins(DEVICE_CLASS_HDD, data, 8, (const unsigned[]){2, 0, 0, 0, 2, 2, 4, 0});
    assert_bins(DEVICE_CLASS_SSD, data, 8, (const unsigned[]){2, INFINITE, 0, 3, 3, 2, 4, 0});
}

/* One of the neighbours takes less time than the seek to it in its own bin, three take longer. */
static void a_seek_is_saved_once(void **state)
{
    static const PlacedRange data[] = {
            {.physical = 0, .length = 10 * KB, .need = 0},
            {.physical = 10 * KB, .length = 300 * KB, .need = 2 * WIDTH},
            {.physical = 310 * KB, .length = 300 * KB, .need = 2 * WIDTH},
            {.physical = 610 * KB, .length = 300 * KB, .need = 2 * WIDTH},
    };

    (void)state;
    assert_bins(DEVICE_CLASS_HDD, data, 2, (const unsigned[]){0, 0});
    assert_bins(DEVICE_CLASS_HDD, data, 4, (const unsigned[]){0, 2, 2, 2});
    assert_bins(DEVICE_CLASS_HDD, data + 1, 1, (const unsigned[]){2});
}

/* The neighbour of an earlier bin is in memory, so that replay does not go there. */
static void nothing_comes_along_with_what_is_in_memory(void **state)
{
    static const PlacedRange data[] = {
            {.file = 0, .physical = 0, .length = 16384, .need = 0},
            {.file = 1, .physical = 16384, .length = 16384, .need = 2 * WIDTH},
    };
    PredictedRange all = {0, 16384, 1};
    PredictedFile known = {.path = (char *)"/lib/x.so", .maps = &all, .n_maps = 1};
    const Prediction in_memory = {.files = &known, .n_files = 1};
    PackContentFile files[] = {{.path = path}, {.path = (char *)"lib/y.so"}};
    Example x;

    (void)state;
    example(&x, DEVICE_CLASS_HDD, data, 2);
    x.content_volume.files = files;
    assert_int_equal(bins_gather(&x.table, &parameters, &in_memory, &x.content), 0);
    assert_int_equal(x.data[1].advance, 0);
    assert_int_equal(bins_gather(&x.table, &parameters, NULL, &x.content), 0);
    assert_int_equal(x.data[1].advance, 2 * WIDTH);
}

/* A pack has the times at which replay reads the data. */
static void a_pack_has_the_advance(void **state)
{
    static const PlacedRange data[] = {
            {.length = 4096, .need = 3 * WIDTH, .advance = 2 * WIDTH},
    };
    static char fstype[] = "ext4";
    _cleanup_free_ void *buf = NULL;
    size_t size;
    Example x;
    Pack pack;

    (void)state;
    example(&x, DEVICE_CLASS_HDD, data, 1);
    x.content_volume.fstype = fstype;
    file.size_bytes = 4096;
    assert_int_equal(pack_write(&x.content, &buf, &size), 0);
    assert_int_equal(pack_open(buf, size, &pack, NULL), 0);
    assert_int_equal(le32toh(pack.data[0].need_msec), WIDTH / USEC_PER_MSEC);
}

/* Each range of the second bin would take a seek. The first bin takes along what the disk transfers
 * in 100 ms: 25 ranges of 4 ms. */
static void a_bin_does_not_wait_long(void **state)
{
    PlacedRange data[60] = {0};
    unsigned bins[60];

    (void)state;
    for (unsigned i = 0; i < 60; i += 2) {
        data[i] = (PlacedRange){.physical = i * 400 * KB, .length = 400 * KB};
        data[i + 1] = (PlacedRange){
                .physical = (i + 1) * 400 * KB, .length = 400 * KB, .need = 2 * WIDTH};
        bins[i] = 0;
        bins[i + 1] = i / 2 < 25 ? 0 : 2;
    }
    assert_bins(DEVICE_CLASS_HDD, data, 60, bins);
}

static void the_width_follows_from_the_last_need(void **state)
{
    static const PlacedRange soon = {.length = KB, .need = USEC_PER_SEC};
    static const PlacedRange late[] = {{.length = KB, .need = 16 * USEC_PER_SEC},
                                       {.length = KB, .need = USEC_INFINITY}};
    Example x;

    (void)state;
    example(&x, DEVICE_CLASS_HDD, &soon, 1);
    assert_int_equal(bins_choose_width(&x.content), WIDTH);
    example(&x, DEVICE_CLASS_HDD, late, 2);
    assert_int_equal(bins_choose_width(&x.content), 2 * USEC_PER_SEC + 1);
    example(&x, DEVICE_CLASS_EMMC, late, 2);
    assert_int_equal(bins_choose_width(&x.content), 0);
    x.content_volume.flags = PACK_VOLUME_SEEKS_SLOWLY;
    assert_int_equal(bins_choose_width(&x.content), 2 * USEC_PER_SEC + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(neighbours_come_along),
            cmocka_unit_test(a_seek_is_saved_once),
            cmocka_unit_test(nothing_comes_along_with_what_is_in_memory),
            cmocka_unit_test(a_pack_has_the_advance),
            cmocka_unit_test(a_bin_does_not_wait_long),
            cmocka_unit_test(the_width_follows_from_the_last_need),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
