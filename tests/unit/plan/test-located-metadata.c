/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests how the metadata of a plan is collected. */

#include "plan/located-metadata.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Two subvolumes of one filesystem, and another filesystem. */
static Volume volumes[] = {{.block_dev = 1, .size_bytes = 1000},
                           {.block_dev = 1, .size_bytes = 1000},
                           {.block_dev = 2, .size_bytes = 1000}};
static const VolumeTable table = {.volumes = volumes, .n = 3};

static LocatedPlan *new_plan(void)
{
    LocatedPlan *l = calloc(1, sizeof(*l));

    assert_non_null(l);
    l->volumes = &table;
    l->passing = calloc(table.n, sizeof(RangeSet));
    assert_non_null(l->passing);
    return l;
}

static void add(LocatedPlan *l, uint32_t volume, uint64_t offset, uint64_t length,
                double probability)
{
    assert_int_equal(located_metadata_add(l, volume, (PredictedRange){offset, length, probability},
                                          (MetadataItem){0}),
                     0);
}

static void assert_metadata(const LocatedPlan *l, size_t i, uint32_t volume, uint64_t offset,
                            uint64_t length, double probability)
{
    assert_in_range(i, 0, l->n_metadata - 1);
    assert_int_equal(l->metadata[i].volume, volume);
    assert_int_equal(l->metadata[i].range.offset, offset);
    assert_int_equal(l->metadata[i].range.length, length);
    assert_true(l->metadata[i].range.probability == probability);
}

static void the_highest_probability_counts_where_ranges_overlap(void **state)
{
    _cleanup_located_plan_ LocatedPlan *l = new_plan();

    (void)state;
    add(l, 2, 100, 100, 0.5);
    add(l, 0, 300, 100, 0.25);
    add(l, 0, 100, 100, 0.5);
    add(l, 0, 150, 100, 1);
    assert_int_equal(located_metadata_make_disjoint(l), 0);
    assert_int_equal(l->n_metadata, 4);
    assert_metadata(l, 0, 0, 100, 50, 0.5);
    assert_metadata(l, 1, 0, 150, 100, 1);
    assert_metadata(l, 2, 0, 300, 100, 0.25);
    assert_metadata(l, 3, 2, 100, 100, 0.5);
}

/* An item of each block is asked for, so neighbouring blocks do not become one range. */
static void items_stay_as_they_are(void **state)
{
    _cleanup_located_plan_ LocatedPlan *l = new_plan();
    const MetadataItem item = {.reader = METADATA_BTRFS_ITEM, .object = 5};

    (void)state;
    assert_int_equal(located_metadata_add(l, 0, (PredictedRange){200, 100, 1}, item), 0);
    assert_int_equal(located_metadata_add(l, 0, (PredictedRange){100, 100, 1}, item), 0);
    assert_int_equal(located_metadata_make_disjoint(l), 0);
    assert_int_equal(l->n_metadata, 2);
    assert_metadata(l, 0, 0, 100, 100, 1);
    assert_metadata(l, 1, 0, 200, 100, 1);
    assert_int_equal(l->metadata[1].item.object, 5);
}

static void a_shared_block_is_stored_once(void **state)
{
    _cleanup_located_plan_ LocatedPlan *l = new_plan();
    DerivedMetadata d = {.range = {100, 100, 0.5}, .shared = true};

    (void)state;
    assert_int_equal(located_metadata_add_derived(l, 0, &d), 0);
    d.range.probability = 1;
    assert_int_equal(located_metadata_add_derived(l, 1, &d), 0);
    assert_int_equal(located_metadata_add_derived(l, 2, &d), 0); /* of another filesystem */
    d.shared = false;
    assert_int_equal(located_metadata_add_derived(l, 1, &d), 0);
    assert_int_equal(l->n_metadata, 3);
    assert_metadata(l, 0, 0, 100, 100, 1);
    assert_metadata(l, 1, 2, 100, 100, 1);
    assert_metadata(l, 2, 1, 100, 100, 1);
    assert_true(l->metadata_derived);
}

static void what_the_sweep_passes_is_apart(void **state)
{
    _cleanup_located_plan_ LocatedPlan *l = new_plan();
    DerivedMetadata d = {.range = {900, 100, 1}, .passing = true};

    (void)state;
    assert_int_equal(located_metadata_add_derived(l, 1, &d), 0);
    d.range.offset++; /* ends beyond the volume */
    assert_int_equal(located_metadata_add_derived(l, 1, &d), 0);
    assert_int_equal(l->n_metadata, 0);
    assert_false(l->metadata_derived);
    assert_int_equal(l->passing[1].n, 1);
    assert_int_equal(l->passing[1].ranges[0].offset, 900);
    assert_int_equal(l->passing[1].ranges[0].length, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_highest_probability_counts_where_ranges_overlap),
            cmocka_unit_test(items_stay_as_they_are),
            cmocka_unit_test(a_shared_block_is_stored_once),
            cmocka_unit_test(what_the_sweep_passes_is_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
