/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the operations of a pack: which objects may be read, and in which order. The packs are made
 * directly with the writer.
 */

#include "execute/operations.h"
#include "execute/pacer.h"
#include "execute/subtract.h"
#include "execute/superblock.h"
#include "pack/pack-writer.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define UNKNOWN PHYSICAL_UNKNOWN
#define NEVER   USEC_INFINITY

#define DATA(f, o, l, at, n, p)                                                          \
    {                                                                                    \
        .file = f, .offset = o, .length = l, .physical = at, .need = n, .probability = p \
    }

/* The contents of one volume of a test's pack. */
typedef struct Given {
    DeviceClass class;
    uint32_t flags;
    PackContentMetadata metadata[8];
    size_t n_metadata;
    PackContentFile files[8];
    size_t n_files;
    PlacedRange data[8];
    size_t n_data;
    uint64_t sweep_start;
} Given;

static void *made;

static Pack make(const Given *given, size_t n)
{
    PackContentVolume volumes[4] = {0};
    PackContent c = {
            .stage = STAGE_LOGIN, .policy = POLICY_IDLE, .volumes = volumes, .n_volumes = n};
    size_t size;
    Pack p;

    assert_true(n <= ELEMENTSOF(volumes));
    for (size_t i = 0; i < n; i++)
        volumes[i] = (PackContentVolume){
                .uuid = {(uint8_t)(i + 1)},
                .device_size = 1 << 30,
                .fstype = (char *)"ext4",
                .mountpoint = (char *)"/",
                .device_class = given[i].class,
                .flags = given[i].flags,
                .metadata = (PackContentMetadata *)given[i].metadata,
                .n_metadata = given[i].n_metadata,
                .files = (PackContentFile *)given[i].files,
                .n_files = given[i].n_files,
                .data = (PlacedRange *)given[i].data,
                .n_data = given[i].n_data,
                .sweep_start = given[i].sweep_start,
        };
    free(made);
    made = NULL;
    assert_int_equal(pack_write(&c, &made, &size), 0);
    assert_int_equal(pack_open(made, size, &p, NULL), 0);
    return p;
}

static int drop(void **state _unused_)
{
    free(made);
    made = NULL;
    return 0;
}

/* Compares the list with a text such as "m0 m1 o0 d1 | o2": the kind and the index of each
 * operation, and "|" between streams. */
static void expect(const OperationList *l, const char *expected)
{
    char text[512] = "";
    size_t n = 0;

    for (size_t s = 0; s < l->n_streams; s++) {
        const Stream *stream = &l->streams[s];

        if (s > 0)
            n += (size_t)snprintf(text + n, sizeof(text) - n, " |");
        for (size_t i = stream->first; i < stream->first + stream->n; i++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%c%u", n > 0 ? " " : "",
                                  "miod"[l->operations[i].kind], l -> operations[i].index);
    }
    assert_string_equal(text, expected);
}

static void expect_order(const Pack *p, const VolumeFacts *facts, Policy policy,
                         const char *expected)
{
    _cleanup_operation_list_ OperationList l = {0};

    assert_int_equal(operations_from_pack(p, facts, policy, &l), 0);
    expect(&l, expected);
}

#define FILE(i)                                                                  \
    {                                                                            \
        .path = (char *)"f" #i, .inode = i, .size_bytes = 1 << 20, .need = NEVER \
    }

static const Given one = {
        .class = DEVICE_CLASS_HDD,
        .flags = PACK_VOLUME_PHYSICAL,
        .metadata = {{4096, 4096, 0.5, {0}}, {1 << 20, 8192, 1, {0}}},
        .n_metadata = 2,
        .files = {FILE(11), FILE(12), FILE(13)},
        .n_files = 3,
        /* sorted by place, but neither by need nor by probability */
        .data = {DATA(2, 0, 4096, 1000, 300 * USEC_PER_MSEC, 0.25),
                 DATA(0, 4096, 8192, 2000, 100 * USEC_PER_MSEC, 0.5),
                 DATA(1, 0, 4096, 2000, NEVER, 0.75),
                 DATA(0, 0, 4096, UNKNOWN, 200 * USEC_PER_MSEC, 0.5)},
        .n_data = 4,
};

static const VolumeFacts here[4] = {{.mounted = true, .device = true, .disk = 7},
                                    {.mounted = true, .device = true, .disk = 7},
                                    {.mounted = true, .device = true, .disk = 7},
                                    {.mounted = true, .device = true, .disk = 7}};

/* The order next to the application with that executable. */
static void expect_beside(const Pack *p, const char *executable, const char *expected)
{
    _cleanup_operation_list_ OperationList l = {0};

    assert_int_equal(operations_from_pack(p, here, POLICY_IDLE, &l), 0);
    operations_beside_application(&l, p, executable);
    expect(&l, expected);
}

static void test_policies(void **state _unused_)
{
    Pack p = make(&one, 1);

    expect_order(&p, here, POLICY_OFF, "");
    expect_order(&p, here, POLICY_METADATA, "m0 m1");
    expect_order(&p, here, POLICY_IDLE, "m0 m1 d0 d1 d2 d3 o0 o1 o2");
    expect_order(&p, here, POLICY_GATE, "m0 m1 d0 d1 d2 d3 o0 o1 o2");
    /* The data is needed after 100, 200 and 300 ms, and at an unknown time. */
    expect_order(&p, here, POLICY_CONCURRENT, "m0 m1 d1 d3 d0 d2 o0 o1 o2");
}

static void test_sweep_start(void **state _unused_)
{
    Given turned[2] = {one, one};
    Pack p;

    turned[0].data[0].physical = turned[1].data[0].physical = 100000;
    turned[0].data[1].physical = turned[1].data[1].physical = 200000;
    turned[0].data[2].physical = turned[1].data[2].physical = 300000;
    turned[0].sweep_start = 200001;
    p = make(turned, 1);
    assert_int_equal(pack_sweep_start(&p, &p.volumes[0]), 300000);
    expect_order(&p, here, POLICY_GATE, "m0 m1 d2 d0 d1 d3 o0 o1 o2");
    /* The order by need does not change. */
    expect_order(&p, here, POLICY_CONCURRENT, "m0 m1 d1 d3 d0 d2 o0 o1 o2");
    /* The second volume lies on the same disk, and its sweep begins with its first data. */
    p = make(turned, 2);
    expect_order(&p, here, POLICY_GATE, "m0 m2 m1 m3 d4 d5 d2 d6 d0 d1 d3 d7 o0 o1 o2 o3 o4 o5");
    /* No data of a known place lies there. */
    turned[0].sweep_start = 300001;
    p = make(turned, 1);
    expect_order(&p, here, POLICY_GATE, "m0 m1 d0 d1 d2 d3 o0 o1 o2");
}

static void test_hurry(void **state _unused_)
{
    _cleanup_operation_list_ OperationList l = {0};
    Pack p = make(&one, 1);

    assert_int_equal(operations_from_pack(&p, here, POLICY_IDLE, &l), 0);
    /* m0 m1 have begun and stay. Equal probabilities: in physical order. */
    assert_int_equal(operations_sort(&p, here, REPLAY_ORDER_LIKELY, l.operations + 2, l.n - 2), 0);
    expect(&l, "m0 m1 d2 d1 d3 d0 o0 o1 o2");
    assert_int_equal(operations_sort(&p, here, REPLAY_ORDER_PHYSICAL, l.operations + 2, l.n - 2),
                     0);
    expect(&l, "m0 m1 d0 d1 d2 d3 o0 o1 o2");
}

/* The policy `metadata` also opens files, if only their opening reads their metadata. */
static void test_metadata_by_opening(void **state _unused_)
{
    Given own_cache = one, no_ranges = one;
    Pack p;

    own_cache.flags |= PACK_VOLUME_TOUCH_ENTRIES;
    p = make(&own_cache, 1);
    expect_order(&p, here, POLICY_METADATA, "m0 m1 o0 o1 o2");
    no_ranges.n_metadata = 0;
    p = make(&no_ranges, 1);
    expect_order(&p, here, POLICY_METADATA, "o0 o1 o2");
}

/* Items come in the order of place after the metadata of devices and before all opens, also with
 * the policy `metadata`. They are left out without the right to ask for them. */
static void test_items(void **state _unused_)
{
    Given two[2] = {one, one};
    VolumeFacts facts[2] = {here[0], here[1]};
    _cleanup_operation_list_ OperationList l = {0};
    Pack p;

    for (size_t i = 0; i < 2; i++)
        two[0].metadata[i].item = (MetadataItem){METADATA_BTRFS_ITEM, 1, 256 + i, 0};
    two[0].flags |= PACK_VOLUME_TOUCH_ENTRIES;
    p = make(two, 1);
    assert_int_equal(pack_item(&p.metadata[1]).reader, METADATA_BTRFS_ITEM);
    assert_int_equal(pack_item(&p.metadata[1]).object, 257);
    facts[0].items = true;
    facts[0].device = false;
    expect_order(&p, facts, POLICY_METADATA, "i0 i1 o0 o1 o2");
    expect_order(&p, facts, POLICY_IDLE, "i0 i1 o0 o1 o2 d0 d1 d2 d3");
    facts[0].items = false;
    facts[0].device = true;
    expect_order(&p, facts, POLICY_IDLE, "o0 o1 o2 d0 d1 d2 d3");
    assert_int_equal(operations_from_pack(&p, facts, POLICY_IDLE, &l), 0);
    for (int i = 0; i < _REPLAY_SKIP_MAX; i++)
        assert_int_equal(l.n_skipped[i], 0);
    facts[0].items = true;
    p = make(two, 2);
    expect_order(&p, facts, POLICY_METADATA, "m2 m3 i0 i1 o0 o1 o2");
}

/* A disk that is read by one worker gets further ones that ask for items. */
static void test_item_workers(void **state _unused_)
{
    _cleanup_operation_list_ OperationList l = {0};
    Given items = one;
    VolumeFacts facts = here[0];
    Pack p;

    for (size_t i = 0; i < 2; i++)
        items.metadata[i].item = (MetadataItem){.reader = METADATA_XFS_INODE, .object = 128 + i};
    items.n_files = items.n_data = 0;
    facts.items = true;
    p = make(&items, 1);
    assert_int_equal(operations_from_pack(&p, &facts, POLICY_GATE, &l), 0);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.streams[0].n_workers, 1);
    assert_int_equal(l.streams[0].n_openers, OPERATION_OPENERS);
}

/* Opens that read from the disk come before data, opens that read nothing come after it. */
static void test_open_late(void **state _unused_)
{
    Given two[2] = {one, one};
    VolumeFacts facts[2] = {here[0], here[1]};
    Pack p;

    two[0].n_metadata = 0;
    p = make(two, 2);
    expect_order(&p, here, POLICY_IDLE, "m0 m1 o0 o1 o2 d0 d4 d1 d2 d5 d6 d3 d7 o3 o4 o5");
    two[1].flags |= PACK_VOLUME_TOUCH_ENTRIES;
    p = make(two, 2);
    expect_order(&p, here, POLICY_IDLE, "m0 m1 o0 o1 o2 o3 o4 o5 d0 d4 d1 d2 d5 d6 d3 d7");
    facts[0].device = false;
    p = make(&one, 1);
    expect_order(&p, facts, POLICY_IDLE, "o0 o1 o2 d0 d1 d2 d3");
}

/* The number of operations that one request reads. */
static void test_run(void **state _unused_)
{
    Given g = {.class = DEVICE_CLASS_EMMC,
               .flags = PACK_VOLUME_PHYSICAL,
               .metadata = {{0, 4096, 1}, {4096, 4096, 1}},
               .n_metadata = 2,
               .files = {FILE(11), FILE(12), FILE(13)},
               .n_files = 3,
               .data = {DATA(0, 0, 4096, 40960, NEVER, 1), DATA(1, 0, 8192, 45056, NEVER, 1),
                        DATA(2, 0, 4096, 53248, NEVER, 1), DATA(2, 8192, 4096, 61440, NEVER, 1),
                        DATA(0, 8192, 4096, UNKNOWN, NEVER, 1),
                        DATA(1, 8192, 4096, UNKNOWN, NEVER, 1)},
               .n_data = 6};
    Operation o[9] = {
            {OPERATION_DATA, 0, 0}, {OPERATION_DATA, 0, 1},     {OPERATION_DATA, 0, 2},
            {OPERATION_DATA, 0, 3}, {OPERATION_DATA, 0, 4},     {OPERATION_DATA, 0, 5},
            {OPERATION_OPEN, 0, 0}, {OPERATION_METADATA, 0, 0}, {OPERATION_METADATA, 0, 1}};
    Pack p = make(&g, 1);

    assert_int_equal(operations_run(&p, o, 9, 1 << 20, 0), 3); /* then comes a gap */
    assert_int_equal(operations_run(&p, o, 2, 1 << 20, 0), 2);
    assert_int_equal(operations_run(&p, o, 9, 16384, 0), 3);
    assert_int_equal(operations_run(&p, o, 9, 16383, 0), 2);
    assert_int_equal(operations_run(&p, o, 9, 4096, 0), 1);
    assert_int_equal(operations_run(&p, o, 9, 1, 0), 1); /* longer than one request */
    for (size_t i = 2; i < 9; i++)
        assert_int_equal(operations_run(&p, o + i, 9 - i, 1 << 20, 0), 1);
    g.files[1].written_in_place = true;
    p = make(&g, 1);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(operations_run(&p, o + i, 9 - i, 1 << 20, 0), 1);
    o[1].volume = 1;
    g.files[1].written_in_place = false;
    p = make(&g, 1);
    assert_int_equal(operations_run(&p, o, 9, 1 << 20, 0), 1);
}

/* A gap is read if its bytes belong to the file. */
static void test_run_with_gap(void **state _unused_)
{
    Given g = {.class = DEVICE_CLASS_HDD,
               .flags = PACK_VOLUME_PHYSICAL,
               .files = {FILE(11), FILE(12)},
               .n_files = 2,
               .data = {DATA(0, 0, 4096, 40960, NEVER, 1), DATA(1, 4096, 4096, 45056, NEVER, 1),
                        DATA(1, 16384, 4096, 57344, NEVER, 1)},
               .n_data = 3};
    const Operation o[3] = {{OPERATION_DATA, 0, 0}, {OPERATION_DATA, 0, 1}, {OPERATION_DATA, 0, 2}};
    Pack p = make(&g, 1);

    assert_int_equal(operations_run(&p, o, 3, 1 << 20, 8192), 3);
    assert_int_equal(operations_run(&p, o, 3, 1 << 20, 8191), 2);
    assert_int_equal(operations_run(&p, o, 3, 20480, 8192), 3); /* the gap counts, too */
    assert_int_equal(operations_run(&p, o, 3, 20479, 8192), 2);
    assert_int_equal(operation_gap(&p.data[0], &p.data[1]), 0);
    assert_int_equal(operation_gap(&p.data[1], &p.data[2]), 8192);
    assert_true(operation_gap(&p.data[2], &p.data[1]) == UINT64_MAX);
    g.data[2].offset = 12288; /* another part of the file lies in the gap */
    p = make(&g, 1);
    assert_int_equal(operations_run(&p, o, 3, 1 << 20, 8192), 2);
    g.data[2].offset = 16384;
    g.data[2].file = 0;
    p = make(&g, 1);
    assert_int_equal(operations_run(&p, o, 3, 1 << 20, 8192), 2);
}

static void test_not_mounted(void **state _unused_)
{
    _cleanup_operation_list_ OperationList l = {0}, k = {0};
    VolumeFacts facts[2] = {{.mounted = false, .device = true}, {.mounted = true, .disk = 1}};
    Given two[2] = {one, one};
    Pack p = make(two, 2);

    assert_int_equal(operations_from_pack(&p, facts, POLICY_IDLE, &l), 0);
    /* The device of the second volume cannot be read: only its metadata is missing. */
    expect(&l, "o3 o4 o5 d4 d5 d6 d7");
    assert_int_equal(l.n_streams, 1);
    assert_int_equal(l.n_skipped[REPLAY_SKIP_UNMOUNTED], 2 + 3);
    assert_int_equal(l.n_skipped[REPLAY_SKIP_DEVICE], 2);

    facts[1].mounted = false;
    assert_int_equal(operations_from_pack(&p, facts, POLICY_IDLE, &k), 0);
    assert_int_equal(k.n, 0);
    assert_int_equal(k.n_streams, 0);
    assert_int_equal(k.n_skipped[REPLAY_SKIP_UNMOUNTED], 10);
}

/* Partitions of one disk share its head, and are read in one sweep. Each disk has its own sweep. */
static void test_disks(void **state _unused_)
{
    Given two[2] = {one, one};
    VolumeFacts facts[2] = {here[0], here[0]};
    Pack p = make(two, 2);

    facts[0].disk_offset = 1500;
    expect_order(&p, facts, POLICY_IDLE, "m2 m0 m3 m1 d4 d5 d6 d0 d1 d2 d3 d7 o0 o1 o2 o3 o4 o5");
    facts[0].disk_offset = UINT64_MAX - 4096; /* invalid, but without overflow */
    expect_order(&p, facts, POLICY_IDLE, "m2 m3 m0 m1 d4 d5 d6 d0 d1 d2 d3 d7 o0 o1 o2 o3 o4 o5");
    facts[0].disk_offset = 0;
    /* Where logical volumes lie on the disk is not known: one is read after the other. */
    facts[0].mapped = facts[1].mapped = true;
    expect_order(&p, facts, POLICY_IDLE, "m0 m1 m2 m3 d0 d1 d2 d4 d5 d6 d3 d7 o0 o1 o2 o3 o4 o5");
    facts[0].mapped = false;
    facts[0].disk_offset = 1500;
    expect_order(&p, facts, POLICY_IDLE, "m0 m1 m2 m3 d0 d1 d2 d4 d5 d6 d3 d7 o0 o1 o2 o3 o4 o5");
    facts[0].disk_offset = 0;
    facts[1].mapped = false;
    facts[1].disk = 8;
    expect_order(&p, facts, POLICY_IDLE, "m0 m1 d0 d1 d2 d3 o0 o1 o2 | m2 m3 d4 d5 d6 d7 o3 o4 o5");
}

/* A disk that seeks or may seek is read by one worker, in order. So is a disk of which one volume
 * seeks and another does not. */
static void test_engines(void **state _unused_)
{
    for (int class = 0; class < _DEVICE_CLASS_MAX; class ++) {
        _cleanup_operation_list_ OperationList l = {0}, k = {0};
        Given two[2] = {one, one};
        bool ordered = class == DEVICE_CLASS_HDD || class == DEVICE_CLASS_UNKNOWN;
        Pack p;

        two[0].class = (DeviceClass) class;
        p = make(two, 1);
        assert_int_equal(operations_from_pack(&p, here, POLICY_IDLE, &l), 0);
        assert_int_equal(l.n_streams, 1);
        assert_int_equal(l.streams[0].device_class, class);
        assert_true(ordered ? l.streams[0].n_workers == 1 : l.streams[0].n_workers > 1);
        assert_true(l.streams[0].window_bytes >= 1 << 20);
        assert_true(l.streams[0].window_requests >= l.streams[0].n_workers);

        two[0].class = DEVICE_CLASS_HDD;
        two[1].class = (DeviceClass) class;
        p = make(two, 2);
        assert_int_equal(operations_from_pack(&p, here, POLICY_IDLE, &k), 0);
        assert_int_equal(k.n_streams, 1);
        assert_int_equal(k.streams[0].n_workers, 1);
        operations_beside_application(&k, &p, "/none");
        assert_int_equal(k.streams[0].n_workers, OPERATION_WORKERS_BESIDE);
        assert_true(k.streams[0].beside_requests >= OPERATION_WORKERS_BESIDE);

        /* A disk that does not seek keeps its workers. */
        if (!ordered) {
            unsigned before = l.streams[0].n_workers;

            operations_beside_application(&l, &p, "/f11");
            assert_int_equal(l.streams[0].n_workers, before);
        }
    }
}

/* The window next to a stage is larger where first reads are slow, also if only one volume of the
 * disk was measured. */
static void test_slow_first_reads(void **state _unused_)
{
    _cleanup_operation_list_ OperationList l = {0}, k = {0};
    Given two[2] = {one, one};
    Pack p;

    two[0].class = two[1].class = DEVICE_CLASS_NETDISK;
    p = make(two, 2);
    assert_int_equal(operations_from_pack(&p, here, POLICY_CONCURRENT, &l), 0);
    two[0].flags |= PACK_VOLUME_SLOW_FIRST_READS;
    p = make(two, 2);
    assert_int_equal(operations_from_pack(&p, here, POLICY_CONCURRENT, &k), 0);
    assert_int_equal(k.n_streams, 1);
    assert_int_equal(k.streams[0].beside_bytes, 2 * l.streams[0].beside_bytes);
    assert_int_equal(k.streams[0].beside_requests, 2 * l.streams[0].beside_requests);
    assert_int_equal(k.streams[0].window_bytes, l.streams[0].window_bytes);
}

/* The data of the executable comes first, on a disk that seeks. */
static void test_executable(void **state _unused_)
{
    Given fast = one;
    Pack p = make(&one, 1);

    expect_beside(&p, "/none", "m0 m1 d0 d1 d2 d3 o0 o1 o2");
    expect_beside(&p, "f11", "m0 m1 d0 d1 d2 d3 o0 o1 o2");
    expect_beside(&p, "/f1", "m0 m1 d0 d1 d2 d3 o0 o1 o2");
    expect_beside(&p, "/f11", "d1 d3 m0 m1 d0 d2 o0 o1 o2");
    expect_beside(&p, "/f12", "d2 m0 m1 d0 d1 d3 o0 o1 o2");
    expect_beside(&p, "/f13", "d0 m0 m1 d1 d2 d3 o0 o1 o2");
    fast.class = DEVICE_CLASS_SSD;
    p = make(&fast, 1);
    expect_beside(&p, "/f12", "m0 m1 d0 d1 d2 d3 o0 o1 o2");
}

/* The order next to the application with that executable, and the number of operations of its
 * legs: the executable, metadata, and each bin of first use. */
static void expect_legs(const Pack *p, const char *executable, const char *order,
                        const char *expected)
{
    _cleanup_operation_list_ OperationList l = {0};
    char text[64] = "";
    size_t i, n;

    assert_int_equal(operations_from_pack(p, here, POLICY_CONCURRENT, &l), 0);
    operations_beside_application(&l, p, executable);
    assert_true(l.streams[0].beside);
    expect(&l, order);
    i = operations_of_file(p, l.operations, l.n, executable);
    snprintf(text, sizeof(text), "%zu", i);
    while (l.operations[i].kind == OPERATION_METADATA)
        i++;
    for (; (n = operations_of_bin(p, l.operations + i, l.n - i)) > 0; i += n)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " %zu", n);
    assert_string_equal(text, expected);
    assert_int_equal(l.operations[i].kind, OPERATION_OPEN);
}

static void test_legs(void **state _unused_)
{
    Pack p = make(&one, 1);

    ((PackHeader *)made)->bin_msec = htole32(250);
    expect_legs(&p, "/none", "m0 m1 d1 d3 d0 d2 o0 o1 o2", "0 2 1 1");
    expect_legs(&p, "/f13", "d0 m0 m1 d1 d3 d2 o0 o1 o2", "1 2 1");
    expect_legs(&p, "/f11", "d1 d3 m0 m1 d0 d2 o0 o1 o2", "2 1 1");
    ((PackHeader *)made)->bin_msec = htole32(PACK_BIN_PHYSICAL);
    expect_legs(&p, "/none", "m0 m1 d0 d1 d3 d2 o0 o1 o2", "0 3 1");
    ((PackHeader *)made)->bin_msec = 0;
    expect_legs(&p, "/none", "m0 m1 d1 d3 d0 d2 o0 o1 o2", "0 4");
}

/* More than two workers run only if opens read from the disk. On a disk that seeks, one worker
 * reads in order, and the others only open files. */
static void test_workers(void **state _unused_)
{
    const VolumeFacts no_device[1] = {{.mounted = true, .disk = 7}};
    Given two[2] = {one, one};

    for (int i = 0; i < 5; i++) {
        _cleanup_operation_list_ OperationList l = {0}, seeks = {0};
        bool few = i == 0;
        Pack p;

        two[0] = two[1] = one;
        two[0].class = two[1].class = DEVICE_CLASS_NETDISK;
        if (i == 1)
            two[0].n_metadata = 0;
        else if (i == 2)
            two[0].flags |= PACK_VOLUME_TOUCH_ENTRIES;
        else if (i == 3)
            two[1].n_metadata = 0; /* the other volume of the disk */
        p = make(two, i == 3 ? 2 : 1);
        assert_int_equal(operations_from_pack(&p, i == 4 ? no_device : here, POLICY_IDLE, &l), 0);
        assert_int_equal(l.n_streams, 1);
        assert_true(few ? l.streams[0].n_workers == 2 : l.streams[0].n_workers > 2);
        assert_int_equal(l.streams[0].n_openers, 0);

        two[0].class = two[1].class = DEVICE_CLASS_HDD;
        p = make(two, i == 3 ? 2 : 1);
        assert_int_equal(operations_from_pack(&p, i == 4 ? no_device : here, POLICY_IDLE, &seeks),
                         0);
        assert_int_equal(seeks.streams[0].n_workers, 1);
        assert_int_equal(seeks.streams[0].n_openers, few ? 0 : OPERATION_OPENERS);
        operations_beside_application(&seeks, &p, "/none");
        assert_int_equal(seeks.streams[0].n_openers, 0);
    }
}

/* Checks that every two successive reads are in the required order, for all packs with four ranges
 * of a few different places, times and probabilities. */
static void test_order_exhaustive(void **state _unused_)
{
    for (unsigned bits = 0; bits < 1U << 12; bits++) {
        Given g = {.class = DEVICE_CLASS_SSD, .files = {FILE(5)}, .n_files = 1, .n_data = 4};
        _cleanup_operation_list_ OperationList l = {0};
        uint64_t place = 0;
        Pack p;

        for (unsigned i = 0; i < 4; i++) {
            unsigned b = bits >> (3 * i);

            place += (b & 1) * 4096;
            g.data[i] =
                    (PlacedRange)DATA(0, 4096 * i, 4096, place,
                                      (b >> 1 & 1) ? NEVER : 9 * USEC_PER_MSEC, (b >> 2 & 1) / 2.0);
        }
        p = make(&g, 1);
        for (int order = REPLAY_ORDER_PHYSICAL; order <= REPLAY_ORDER_LIKELY; order++) {
            operation_list_done(&l);
            assert_int_equal(operations_from_pack(&p, here, POLICY_IDLE, &l), 0);
            assert_int_equal(operations_sort(&p, here, (ReplayOrder)order, l.operations, l.n), 0);
            assert_int_equal(l.n, 5);
            assert_int_equal(l.operations[0].kind, OPERATION_OPEN);
            for (size_t i = 2; i < l.n; i++) {
                const PlacedRange *x = &g.data[l.operations[i - 1].index],
                                  *y = &g.data[l.operations[i].index];
                bool tie = order == REPLAY_ORDER_PHYSICAL ||
                           (order == REPLAY_ORDER_NEED ? x->need == y->need
                                                       : x->probability == y->probability);

                if (order == REPLAY_ORDER_NEED)
                    assert_true(x->need <= y->need);
                if (order == REPLAY_ORDER_LIKELY)
                    assert_true(x->probability >= y->probability);
                if (tie)
                    assert_true(x->physical < y->physical ||
                                (x->physical == y->physical &&
                                 l.operations[i - 1].index < l.operations[i].index));
            }
        }
    }
}

static void test_pacer(void **state _unused_)
{
    Pacer p;

    pacer_init(&p, 100, 3);
    assert_true(pacer_may_submit(&p, 1000)); /* a lone request may have any size */
    pacer_submitted(&p, 60);
    assert_true(pacer_may_submit(&p, 40));
    assert_false(pacer_may_submit(&p, 41));
    pacer_submitted(&p, 10);
    pacer_submitted(&p, 10);
    assert_false(pacer_may_submit(&p, 1)); /* three already */
    pacer_completed(&p, 60);
    assert_true(pacer_may_submit(&p, 80));
    assert_false(pacer_may_submit(&p, 81));
    pacer_completed(&p, 10);
    pacer_completed(&p, 10);
    assert_int_equal(p.in_flight_bytes, 0);
    assert_int_equal(p.in_flight_requests, 0);
    pacer_submitted(&p, UINT64_MAX);
    assert_false(pacer_may_submit(&p, 1));
    pacer_init(&p, 0, 0); /* without a window, one request at a time is allowed */
    assert_true(pacer_may_submit(&p, 1));
    pacer_submitted(&p, 1);
    assert_false(pacer_may_submit(&p, 1));
}

/* Eight ranges whose places ascend are a sweep; fewer are none, nor are eight of which one lies
 * lower or has no known place. */
static void test_sweep(void **state _unused_)
{
    Given g = {
            .class = DEVICE_CLASS_HDD,
            .flags = PACK_VOLUME_PHYSICAL,
            .files = {FILE(11)},
            .n_files = 1,
            .n_data = OPERATION_SWEEP_MIN,
    };
    const VolumeFacts facts = {.mounted = true, .device = true};
    Operation all[OPERATION_SWEEP_MIN], open = {OPERATION_OPEN, 0, 0};
    Pack p;

    for (uint32_t i = 0; i < OPERATION_SWEEP_MIN; i++) {
        g.data[i] = (PlacedRange)DATA(0, i * 8192, 4096, (1U << 20) + i * 8192, NEVER, 1);
        all[i] = (Operation){OPERATION_DATA, 0, i};
    }
    p = make(&g, 1);
    assert_true(operations_sweep(&p, &facts, all, OPERATION_SWEEP_MIN));
    assert_false(operations_sweep(&p, &facts, all, OPERATION_SWEEP_MIN - 1));
    all[7].index = 2;
    assert_false(operations_sweep(&p, &facts, all, OPERATION_SWEEP_MIN));
    all[7] = open;
    assert_false(operations_sweep(&p, &facts, all, OPERATION_SWEEP_MIN));
}

static void test_appended(void **state _unused_)
{
    const uint64_t most = OPERATION_APPENDED_MAX;
    PackVolume v = {.device_class = DEVICE_CLASS_SD};

    assert_int_equal(operation_appended_bytes(8192, 8192, most), 0);
    assert_int_equal(operation_appended_bytes(8192, 8191, most), 0); /* it ends in the range */
    assert_int_equal(operation_appended_bytes(8192, 0, most), 0);
    assert_int_equal(operation_appended_bytes(8192, 8193, most), 4096);
    assert_int_equal(operation_appended_bytes(8192, 8192 + 4097, most), 8192);
    assert_int_equal(operation_appended_bytes(0, most, most), most);
    assert_int_equal(operation_appended_bytes(0, most + 1, most), most);
    assert_int_equal(operation_appended_bytes(4096, INT64_MAX, most), most);

    assert_int_equal(operation_appended_max(&v), OPERATION_APPENDED_MAX);
    v.flags = htole32(PACK_VOLUME_SEEKS_SLOWLY);
    assert_int_equal(operation_appended_max(&v), OPERATION_APPENDED_SEEKS_MAX);
    v = (PackVolume){.device_class = DEVICE_CLASS_HDD};
    assert_int_equal(operation_appended_max(&v), OPERATION_APPENDED_SEEKS_MAX);
}

static void test_superblock(void **state _unused_)
{
    static uint8_t head[SUPERBLOCK_READ_BYTES];
    static const char *const types[] = {"ext2",  "ext3", "ext4",  "xfs", "btrfs",  "f2fs",
                                        "erofs", "vfat", "exfat", "jfs", "nilfs2", "reiserfs"};
    uint8_t uuid[16], expected[16];

    for (size_t i = 0; i < ELEMENTSOF(types); i++) {
        assert_true(superblock_is_known(types[i]));
        assert_int_equal(superblock_uuid(types[i], head, sizeof(head), uuid), -EBADMSG);
    }
    assert_false(superblock_is_known("squashfs"));
    assert_int_equal(superblock_uuid("nfs", head, sizeof(head), uuid), -EOPNOTSUPP);

    for (uint8_t i = 0; i < 16; i++)
        expected[i] = head[1024 + 0x68 + i] = (uint8_t)(i + 1);
    head[1024 + 0x38] = 0x53;
    head[1024 + 0x39] = 0xef;
    assert_int_equal(superblock_uuid("ext4", head, sizeof(head), uuid), 0);
    assert_memory_equal(uuid, expected, 16);
    assert_int_equal(superblock_uuid("ext4", head, 1024 + 0x68 + 15, uuid), -EBADMSG);
    assert_int_equal(superblock_uuid("ext4", head, 0, uuid), -EBADMSG);
    assert_int_equal(superblock_uuid("xfs", head, sizeof(head), uuid), -EBADMSG);

    memcpy(head + 65536 + 0x40, "_BHRfS_M", 8);
    memcpy(head + 65536 + 0x20, expected, 16);
    assert_int_equal(superblock_uuid("btrfs", head, sizeof(head), uuid), 0);
    assert_memory_equal(uuid, expected, 16);

    memcpy(head + 1024, "\xe2\xe1\xf5\xe0", 4);
    memcpy(head + 1024 + 0x30, expected, 16);
    assert_int_equal(superblock_uuid("erofs", head, sizeof(head), uuid), 0);
    assert_memory_equal(uuid, expected, 16);

    /* blkid prints ABCD-1234 for the bytes 34 12 cd ab */
    memcpy(head + 0x52, "FAT32   ", 8);
    memcpy(head + 0x43, "\x34\x12\xcd\xab", 4);
    assert_int_equal(superblock_uuid("vfat", head, sizeof(head), uuid), 0);
    assert_memory_equal(uuid, "\0\0\0\0\0\0\0\0\0\0\0\0\xab\xcd\x12\x34", 16);

    memcpy(head + 3, "EXFAT   ", 8);
    memcpy(head + 0x64, "\x78\x56\x12\xef", 4);
    assert_int_equal(superblock_uuid("exfat", head, sizeof(head), uuid), 0);
    assert_memory_equal(uuid, "\0\0\0\0\0\0\0\0\0\0\0\0\xef\x12\x56\x78", 16);
}

/* The places in images that mkfs makes, compared with the UUID that blkid prints. */
static void test_superblock_places(void **state _unused_)
{
    static const struct {
        const char *fstype;
        size_t magic_at;
        const char *magic;
        size_t uuid_at;
    } places[] = {
            {"jfs", 0x8000, "JFS1", 0x8088},
            {"nilfs2", 0x406, "44", 0x498},
            {"reiserfs", 0x10034, "ReIsEr2Fs", 0x10054},
            {"reiserfs", 0x10034, "ReIsEr3Fs", 0x10054},
    };
    static const uint8_t expected[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    uint8_t uuid[16];

    for (size_t i = 0; i < ELEMENTSOF(places); i++) {
        _cleanup_free_ uint8_t *head = calloc(1, SUPERBLOCK_READ_BYTES);

        assert_non_null(head);
        memcpy(head + places[i].magic_at, places[i].magic, strlen(places[i].magic));
        memcpy(head + places[i].uuid_at, expected, sizeof(expected));
        assert_int_equal(superblock_uuid(places[i].fstype, head, SUPERBLOCK_READ_BYTES, uuid), 0);
        assert_memory_equal(uuid, expected, 16);
        /* Version 3.5 of reiserfs has no UUID. */
        memcpy(head + places[i].magic_at, "ReIsErFs", 9);
        assert_int_equal(superblock_uuid(places[i].fstype, head, SUPERBLOCK_READ_BYTES, uuid),
                         -EBADMSG);
    }
}

static void test_unneeded(void **state)
{
    const PackFile file = {0}, touched = {.flags = htole16(PACK_FILE_TOUCHED)};
    const uint64_t kib = 1024;

    /* A library that running programs use: its small missing ranges are left out. */
    assert_true(operation_is_unneeded(&file, 600 * kib, 1000 * kib, 4 * kib));
    assert_true(operation_is_unneeded(&file, 500 * kib, 1000 * kib, OPERATION_UNNEEDED_MAX));
    assert_false(operation_is_unneeded(&file, 600 * kib, 1000 * kib, OPERATION_UNNEEDED_MAX + 1));
    /* A library that no running program uses, or of which the application has read the head. */
    assert_false(operation_is_unneeded(&file, 0, 1000 * kib, 4 * kib));
    assert_false(operation_is_unneeded(&file, 499 * kib, 1000 * kib, 4 * kib));
    assert_false(operation_is_unneeded(&file, 0, 1, 1));
    /* A library of which the application touches the missing ranges. */
    assert_false(operation_is_unneeded(&touched, 600 * kib, 1000 * kib, 4 * kib));
}

/* The pack of an earlier replay: one volume, whose first range of metadata and whose files 11 and
 * 12 are those of `one`; file 13 has another time. Of file 11 it reads less. */
static const Given before = {
        .class = DEVICE_CLASS_HDD,
        .flags = PACK_VOLUME_PHYSICAL,
        .metadata = {{0, 16384, 1}},
        .n_metadata = 1,
        .files = {FILE(10),
                  FILE(11),
                  FILE(12),
                  {.path = (char *)"f13", .inode = 13, .size_bytes = 1 << 20, .mtime_nsec = 1}},
        .n_files = 4,
        .data = {DATA(0, 0, 4096, 500, NEVER, 1), DATA(3, 0, 1 << 20, 1000, NEVER, 1),
                 DATA(2, 0, 8192, 2000, NEVER, 1), DATA(1, 4096, 8192, 4096, NEVER, 1)},
        .n_data = 4,
};

static void test_subtract(void **state _unused_)
{
    _cleanup_operation_list_ OperationList l = {0}, all = {0};
    _cleanup_free_ void *kept = NULL;
    Pack earlier = make(&before, 1), p;

    kept = made;
    made = NULL;
    p = make(&one, 1);
    assert_int_equal(operations_from_pack(&p, here, POLICY_IDLE, &l), 0);
    assert_int_equal(operations_subtract(&p, &earlier, &l), 0);
    /* The second range of metadata is not in the earlier pack, nor is the other time of file 13,
     * nor the beginning of file 11. */
    expect(&l, "m1 d0 d3 o2");
    assert_int_equal(l.n, 4);
    /* A pack minus itself is nothing. */
    assert_int_equal(operations_from_pack(&p, here, POLICY_IDLE, &all), 0);
    assert_int_equal(operations_subtract(&p, &p, &all), 0);
    expect(&all, "");
    assert_int_equal(all.n, 0);
}

/* A disk from which all was read needs no worker, nor one that only opens files. */
static void test_subtract_with_openers(void **state _unused_)
{
    _cleanup_operation_list_ OperationList l = {0};
    Given xfs = one;
    Pack p;

    xfs.flags |= PACK_VOLUME_TOUCH_ENTRIES;
    p = make(&xfs, 1);
    assert_int_equal(operations_from_pack(&p, here, POLICY_IDLE, &l), 0);
    assert_int_equal(l.streams[0].n_openers, OPERATION_OPENERS);
    assert_int_equal(operations_subtract(&p, &p, &l), 0);
    assert_int_equal(l.streams[0].n, 0);
    assert_int_equal(l.streams[0].n_openers, 0);
}

/* The same files on another filesystem were not read. */
static void test_subtract_other_volume(void **state _unused_)
{
    _cleanup_operation_list_ OperationList l = {0};
    _cleanup_free_ void *kept = NULL;
    const Given two[] = {before, one};
    Pack earlier = make(&before, 1), p;

    kept = made;
    made = NULL;
    p = make(two, 2);
    assert_int_equal(operations_from_pack(&p, here, POLICY_IDLE, &l), 0);
    assert_int_equal(operations_subtract(&p, &earlier, &l), 0);
    expect(&l, "m1 m2 d4 d5 d6 d7 o4 o5 o6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_teardown(test_policies, drop),
            cmocka_unit_test_teardown(test_subtract, drop),
            cmocka_unit_test_teardown(test_subtract_with_openers, drop),
            cmocka_unit_test_teardown(test_subtract_other_volume, drop),
            cmocka_unit_test_teardown(test_sweep_start, drop),
            cmocka_unit_test_teardown(test_hurry, drop),
            cmocka_unit_test_teardown(test_metadata_by_opening, drop),
            cmocka_unit_test_teardown(test_items, drop),
            cmocka_unit_test_teardown(test_item_workers, drop),
            cmocka_unit_test_teardown(test_open_late, drop),
            cmocka_unit_test_teardown(test_run, drop),
            cmocka_unit_test_teardown(test_run_with_gap, drop),
            cmocka_unit_test_teardown(test_not_mounted, drop),
            cmocka_unit_test_teardown(test_disks, drop),
            cmocka_unit_test_teardown(test_engines, drop),
            cmocka_unit_test_teardown(test_slow_first_reads, drop),
            cmocka_unit_test_teardown(test_executable, drop),
            cmocka_unit_test_teardown(test_legs, drop),
            cmocka_unit_test_teardown(test_workers, drop),
            cmocka_unit_test_teardown(test_order_exhaustive, drop),
            cmocka_unit_test(test_pacer),
            cmocka_unit_test(test_sweep),
            cmocka_unit_test(test_appended),
            cmocka_unit_test(test_superblock),
            cmocka_unit_test(test_superblock_places),
            cmocka_unit_test(test_unneeded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
