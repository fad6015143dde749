/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "relocate/relocation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static void assert_part(const RelocationPart *p, uint32_t file, uint64_t offset, uint64_t length)
{
    assert_int_equal(p->file, file);
    assert_int_equal(p->offset, offset);
    assert_int_equal(p->length, length);
}

static void parts_follow_the_first_use_of_their_files(void **state)
{
    const uint64_t sizes[] = {4 * MIB, 10000, 4 * MIB};
    const RelocationPart needed[] = {
            {2, 3 * MIB, 4 * KIB},   {1, 0, 4096}, {2, 64 * KIB, 4 * KIB}, {0, 5000, 100},
            {2, 128 * KIB, 8 * KIB},
    };
    _cleanup_free_ RelocationPart *parts = NULL;
    size_t n = 0;

    (void)state;
    assert_int_equal(relocation_join(needed, 5, sizes, 3, 4096, &parts, &n), 0);
    assert_int_equal(n, 4);
    /* Two parts with a small gap are one. */
    assert_part(&parts[0], 2, 64 * KIB, 72 * KIB);
    assert_part(&parts[1], 2, 3 * MIB, 4 * KIB);
    /* At least a third of the file is needed, but not a half of its 12 KiB. */
    assert_part(&parts[2], 1, 0, 4 * KIB);
    assert_part(&parts[3], 0, 4 * KIB, 4 * KIB);
}

static void a_file_of_which_half_is_needed_moves_as_a_whole(void **state)
{
    const uint64_t sizes[] = {8 * MIB - 1, 0};
    const RelocationPart needed[] = {{0, 5 * MIB, 3 * MIB}, {0, 0, MIB}, {1, 0, 4096}};
    _cleanup_free_ RelocationPart *parts = NULL;
    size_t n = 0;

    (void)state;
    assert_int_equal(relocation_join(needed, 3, sizes, 2, 4096, &parts, &n), 0);
    assert_int_equal(n, 1); /* nothing is moved of a file that has become empty */
    assert_part(&parts[0], 0, 0, 8 * MIB);
}

static void gaps_are_not_needed(void **state)
{
    /* 4 KiB of each 256 KiB. */
    const uint64_t sizes[] = {MIB};
    const RelocationPart needed[] = {
            {0, 0, 4 * KIB},
            {0, 256 * KIB, 4 * KIB},
            {0, 512 * KIB, 4 * KIB},
            {0, 512 * KIB, 4 * KIB},
    };
    _cleanup_free_ RelocationPart *parts = NULL;
    size_t n = 0;

    (void)state;
    assert_int_equal(relocation_join(needed, 4, sizes, 1, 4096, &parts, &n), 0);
    assert_int_equal(n, 1);
    assert_part(&parts[0], 0, 0, 516 * KIB);
}

static void touching_places_are_one_fragment(void **state)
{
    const DeviceProfile *d = device_profile_of_class(DEVICE_CLASS_HDD);
    PlacedRange ranges[] = {
            {.physical = 512 * MIB, .length = MIB},
            {.physical = PHYSICAL_UNKNOWN, .length = MIB},
            {.physical = 513 * MIB, .length = MIB},
            {.physical = 0, .length = MIB},
    };
    PlacedRangeList l = {ranges, 4, 4};
    RelocationCost cost, contiguous;

    (void)state;
    assert_int_equal(relocation_cost(d, 1024 * MIB, &l, &cost), 0);
    assert_int_equal(cost.n_fragments, 2);
    ranges[0] = (PlacedRange){.physical = 0, .length = 3 * MIB};
    l.n = 1;
    assert_int_equal(relocation_cost(d, 1024 * MIB, &l, &contiguous), 0);
    assert_int_equal(contiguous.n_fragments, 1);
    assert_true(contiguous.usec < cost.usec);
}

static void a_pack_gains_what_its_seeks_cost(void **state)
{
    PackHeader header = {.n_volumes = htole32(1)};
    PackVolume volume = {
            .device_size = htole64(1024 * MIB),
            .device_class = DEVICE_CLASS_HDD,
            .flags = htole32(PACK_VOLUME_SEEKS_SLOWLY | PACK_VOLUME_PHYSICAL),
            .n_data = htole32(200),
    };
    PackData data[200] = {0};
    char strings[] = "ext4";
    Pack p = {.header = &header, .volumes = &volume, .data = data, .strings = strings};

    (void)state;
    for (size_t i = 0; i < 200; i++)
        data[i] = (PackData){.physical = htole64(i * 4 * MIB), .length = htole64(16 * KIB)};
    assert_true(relocation_gain_usec(&p) > RELOCATION_SUGGESTED_USEC);
    volume.flags = htole32(PACK_VOLUME_PHYSICAL);
    assert_true(relocation_gain_usec(&p) <= 0);
    volume.flags = htole32(PACK_VOLUME_SEEKS_SLOWLY | PACK_VOLUME_PHYSICAL);
    strings[3] = '3';
    assert_true(relocation_gain_usec(&p) <= 0);
    strings[3] = '4';
    /* What lies next to each other gains nothing, and what has no place is left out. */
    for (size_t i = 0; i < 200; i++)
        data[i].physical =
                i == 7 ? htole64(PACK_PHYSICAL_UNKNOWN) : htole64((i - (i > 7)) * 16 * KIB);
    assert_true(relocation_gain_usec(&p) <= 0);
    volume.n_data = 0;
    assert_true(relocation_gain_usec(&p) <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(parts_follow_the_first_use_of_their_files),
            cmocka_unit_test(a_file_of_which_half_is_needed_moves_as_a_whole),
            cmocka_unit_test(gaps_are_not_needed),
            cmocka_unit_test(touching_places_are_one_fragment),
            cmocka_unit_test(a_pack_gains_what_its_seeks_cost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
