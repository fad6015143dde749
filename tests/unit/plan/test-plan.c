/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests cost model, budget, order and the compiling of a plan: compares the fast algorithms with
 * simple ones. */

#include "base/ranges.h"
#include "plan/cost-model.h"
#include "plan/order.h"
#include "plan/plan.h"
#include "plan/seen-metadata.h"
#include "util/range-util.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PAGE ((uint64_t)PACK_PAGE_SIZE)
#define GIB  ((uint64_t)1 << 30)

static void costs_by_hand(void **state)
{
    const DeviceProfile *d = device_profile_of_class(DEVICE_CLASS_HDD);

    /* A read of 1 MB from where the head is takes 0.1 ms and the transfer at 100 MB/s. */
    assert_true(fabs(cost_sequence_usec(d, &(Range){0, 1000000}, 1, 8 * GIB) - 10100) < 1);
    /* A whole stroke back takes 12 ms and half a rotation. */
    assert_true(fabs(cost_move_usec(d, 8 * GIB, 0, 8 * GIB) - 16170) < 1);
    /* A quarter of the stroke takes the mean of the shortest and the longest seek, and half a
     * rotation. */
    assert_true(fabs(cost_move_usec(d, 2 * GIB, 0, 8 * GIB) - (1000 + 5500 + 4170)) < 1);
    /* A position shortly ahead costs the time until the platter has turned there. */
    assert_true(fabs(cost_move_usec(d, 0, 100000, 8 * GIB) - 1000) < 1);
    /* A device without a head does not seek. */
    assert_true(cost_move_usec(device_profile_of_class(DEVICE_CLASS_SSD), 0, GIB, 8 * GIB) == 0);
    /* A seek costs the bytes that the device could transfer meanwhile: a hard disk 100 MB/s for 0.1
     * ms, 1 + 11 * 8/15 ms of seeking and 4.17 ms of half a rotation; an SSD 500 MB/s for 0.1 ms /
     * 32. */
    assert_in_range(cost_seek_bytes(d), 1113600, 1113700);
    assert_in_range(cost_seek_bytes(device_profile_of_class(DEVICE_CLASS_SSD)), 1562, 1563);
    assert_ptr_equal(device_profile_of_class(_DEVICE_CLASS_INVALID),
                     device_profile_of_class(DEVICE_CLASS_UNKNOWN));
}

/* The last byte can be requested when all but a window of bytes is done. */
static void a_window_is_cut_from_the_end(void **state)
{
    for (uint64_t window = 0; window <= 12; window++) {
        Range r[] = {{100, 3}, {200, 1}, {300, 5}, {400, 2}};
        size_t n = cost_sequence_cut(r, ELEMENTSOF(r), window);
        uint64_t left = 0;

        for (size_t i = 0; i < n; i++) {
            assert_int_equal(r[i].offset, 100 * (i + 1));
            assert_true(r[i].length > 0);
            left += r[i].length;
        }
        assert_int_equal(left, window < 11 ? 11 - window : 0);
    }
    assert_int_equal(cost_sequence_cut(NULL, 0, 1), 0);
}

static void break_even_is_where_both_ways_cost_the_same(void **state)
{
    for (int c = 0; c < _DEVICE_CLASS_MAX; c++)
        for (int price = 0; price < 3; price++) {
            const DeviceProfile *d = device_profile_of_class((DeviceClass)c);
            uint64_t gap = cost_break_even_gap(d, 8 * GIB, price);
            double fixed = d->fixed_usec / d->depth;

            if (gap > 0)
                assert_true((double)gap / d->rate_bytes_per_usec * (1 + price) <
                            fixed + cost_move_usec(d, 0, gap, 8 * GIB));
            gap += 2;
            assert_true((double)gap / d->rate_bytes_per_usec * (1 + price) >=
                        fixed + cost_move_usec(d, 0, gap, 8 * GIB));
        }
    /* A hard disk reads gaps that an SSD skips. */
    assert_true(cost_break_even_gap(device_profile_of_class(DEVICE_CLASS_HDD), 8 * GIB, 0) >
                cost_break_even_gap(device_profile_of_class(DEVICE_CLASS_SSD), 8 * GIB, 0));
}

static void budgets(void **state)
{
    BudgetParameters p = BUDGET_PARAMETERS_DEFAULT;
    MemoryFacts m = {1000 * 1024, 500 * 1024, 800 * 1024, 100 * 1024};

    assert_int_equal(budget_bytes(&m, &p), 400 * 1024);
    p.formula = BUDGET_THESIS; /* max(0, -100 + 500) + 30 */
    assert_int_equal(budget_bytes(&m, &p), 430 * 1024);
    m.free_bytes = 50 * 1024; /* max(0, -100 + 50) + 30 */
    assert_int_equal(budget_bytes(&m, &p), 30 * 1024);
    p.cached_percent = -100;
    assert_int_equal(budget_bytes(&m, &p), 0);
    p.formula = BUDGET_FIXED;
    p.fixed_bytes = 7;
    assert_int_equal(budget_bytes(&m, &p), 7);
    p = BUDGET_PARAMETERS_DEFAULT;
    m.available_bytes = 0; /* not reported */
    assert_int_equal(budget_bytes(&m, &p), 30 * 1024);
}

static int add_map(PlacedRangeList *l, uint32_t file, const PredictedRange *map,
                   const Extent *extents, size_t n)
{
    const PlacedRange r = {
            .file = file,
            .offset = map->offset,
            .length = map->length,
            .probability = map->probability,
    };
    _cleanup_free_ Extent *numbered = malloc((n + 1) * sizeof(Extent));

    assert_non_null(numbered);
    for (size_t i = 0; i < n; i++) {
        numbered[i] = extents[i];
        numbered[i].run = extent_run(numbered, i);
    }
    return placed_ranges_add(l, &r, PAGE, numbered, n, PLACED_HOLES_DROP);
}

/* A run ends at a gap in the file or on the device. */
static void runs_of_extents(void **state)
{
    Extent e[] = {{.logical = 0, .physical = 8 * PAGE, .length = PAGE},
                  {.logical = PAGE, .physical = 9 * PAGE, .length = 2 * PAGE},
                  {.logical = 3 * PAGE, .physical = 11 * PAGE, .length = PAGE},
                  {.logical = 5 * PAGE, .physical = 12 * PAGE, .length = PAGE},
                  {.logical = 6 * PAGE, .physical = 14 * PAGE, .length = PAGE},
                  {.logical = 7 * PAGE, .physical = 15 * PAGE, .length = PAGE}};
    const uint32_t expected[] = {0, 0, 0, 3, 4, 4};

    (void)state;
    for (size_t i = 0; i < ELEMENTSOF(e); i++) {
        e[i].run = extent_run(e, i);
        assert_int_equal(e[i].run, expected[i]);
    }
}

/* For every map of a small file and every layout of its pages in extents, the placed ranges cover
 * exactly the mapped pages that have a place. They cover each page once, at its place. */
static void placed_ranges_cover_exactly_what_is_mapped(void **state)
{
    enum { N = 6 };

    for (uint32_t present = 1; present < 1U << N; present++)
        for (uint32_t breaks = 0; breaks < 1U << N; breaks++) {
            Extent extents[N];
            uint64_t place[N];
            size_t n = 0;

            for (uint64_t i = 0; i < N; i++) {
                bool joined = i > 0 && (present >> (i - 1) & 1) && !(breaks >> i & 1);

                if (!(present >> i & 1))
                    continue;
                if (joined) {
                    place[i] = place[i - 1] + PAGE;
                    extents[n - 1].length += PAGE;
                } else {
                    place[i] = (100 - 10 * i) * PAGE; /* later extents lie before earlier ones */
                    extents[n++] = (Extent){i * PAGE, place[i], PAGE};
                }
            }
            for (uint64_t a = 0; a < N; a++)
                for (uint64_t b = a + 1; b <= N; b++) {
                    PredictedRange map = {a * PAGE, (b - a) * PAGE - 1, 1};
                    PlacedRangeList l = {0};
                    uint32_t seen = 0;

                    assert_int_equal(add_map(&l, 0, &map, extents, n), 0);
                    placed_ranges_sort(&l);
                    for (size_t i = 0; i < l.n; i++) {
                        if (i > 0)
                            assert_true(l.ranges[i - 1].physical <= l.ranges[i].physical);
                        for (uint64_t o = 0; o < l.ranges[i].length; o += PAGE) {
                            uint64_t page = (l.ranges[i].offset + o) / PAGE;

                            assert_false(seen >> page & 1);
                            seen |= 1U << page;
                            assert_int_equal(l.ranges[i].physical + o, place[page]);
                        }
                    }
                    for (uint64_t i = 0; i < N; i++)
                        assert_int_equal(seen >> i & 1, i >= a && i < b && (present >> i & 1));
                    placed_range_list_done(&l);
                }
        }
}

static void gaps_are_read_through_only_up_to_the_limit_and_counted(void **state)
{
    for (uint32_t mask = 1; mask < 1U << 10; mask++)
        for (uint64_t limit = 0; limit < 4; limit++) {
            Extent whole = {0, 64 * PAGE, 10 * PAGE};
            PlacedRangeList l = {0};
            RangeSet want = {0}, got = {0};
            uint64_t gaps;

            for (uint64_t i = 0; i < 10; i++)
                if (mask >> i & 1) {
                    PredictedRange map = {i * PAGE, PAGE, 1};

                    assert_int_equal(add_map(&l, 3, &map, &whole, 1), 0);
                    assert_int_equal(range_set_insert_span(&want, i, i + 1), 0);
                }
            placed_ranges_sort(&l);
            gaps = placed_ranges_merge(&l, limit * PAGE, &(uint64_t){GIB});
            assert_int_equal(gaps / PAGE + (uint64_t)__builtin_popcount(mask), ({
                                 uint64_t total = 0;
                                 for (size_t i = 0; i < l.n; i++)
                                     total += l.ranges[i].length / PAGE;
                                 total;
                             }));
            range_set_merge_gaps(&want, limit);
            for (size_t i = 0; i < l.n; i++)
                assert_int_equal(
                        range_set_insert_span(&got, l.ranges[i].offset / PAGE,
                                              (l.ranges[i].offset + l.ranges[i].length) / PAGE),
                        0);
            assert_true(range_set_equal(&want, &got));
            range_set_done(&want);
            range_set_done(&got);
            placed_range_list_done(&l);
        }
}

static void placed_ranges_of_two_files_never_join(void **state)
{
    Extent a = {0, 10 * PAGE, PAGE}, b = {0, 11 * PAGE, PAGE};
    PredictedRange map = {0, PAGE, 1};
    PlacedRangeList l = {0};

    assert_int_equal(add_map(&l, 0, &map, &a, 1), 0);
    assert_int_equal(add_map(&l, 1, &map, &b, 1), 0);
    assert_int_equal(add_map(&l, 2, &map, NULL, 0), 0); /* place unknown: last */
    placed_ranges_sort(&l);
    assert_int_equal(placed_ranges_merge(&l, GIB, &(uint64_t){GIB}), 0);
    assert_int_equal(l.n, 3);
    assert_true(l.ranges[2].physical == PHYSICAL_UNKNOWN);
    placed_range_list_done(&l);
}

/* Ten pages in a row: the list contains some of them, and some of these are likely. An unlikely
 * page stays only if gaps of at most one page separate it from a likely one. */
static void unlikely_ranges_need_a_likely_neighbour(void **state)
{
    enum { N = 10 };

    for (uint32_t there = 1; there < 1U << N; there++)
        for (uint32_t likely = 0; likely < 1U << N; likely += 37) {
            Extent whole = {0, 64 * PAGE, N * PAGE};
            uint32_t kept = there & likely, got = 0;
            PlacedRangeList l = {0};

            for (uint64_t i = 0; i < N; i++) {
                PredictedRange map = {i * PAGE, PAGE, likely >> i & 1 ? 0.6 : 0.5};

                if (there >> i & 1)
                    assert_int_equal(add_map(&l, 3, &map, &whole, 1), 0);
            }
            for (unsigned i = 0; i < N; i++)
                kept |= there & (kept << 1 | kept >> 1 | kept << 2 | kept >> 2);
            placed_ranges_sort(&l);
            placed_ranges_drop_isolated(&l, PAGE, 0.6);
            for (size_t i = 0; i < l.n; i++)
                got |= 1U << l.ranges[i].offset / PAGE;
            assert_int_equal(got, kept);
            assert_int_equal(l.n, __builtin_popcount(kept));
            placed_range_list_done(&l);
        }
}

/* Makes a plan of one volume with `n` one-page files at falling places and with falling
 * probabilities, and with two pages of metadata. */
static LocatedPlan *made_plan(const VolumeTable *volumes, size_t n)
{
    LocatedPlan *l = calloc(1, sizeof(*l));

    assert_non_null(l);
    l->stage = STAGE_LOGIN;
    l->volumes = volumes;
    l->files = calloc(n, sizeof(LocatedFile));
    l->metadata = calloc(2, sizeof(LocatedMetadata));
    assert_non_null(l->files);
    assert_non_null(l->metadata);
    for (size_t i = 0; i < n; i++) {
        LocatedFile *f = &l->files[l->n_files++];
        char path[32];

        snprintf(path, sizeof(path), "f%zu", i);
        *f = (LocatedFile){
                .path = strdup(path),
                .inode = 100 - i,
                .size_bytes = PAGE,
                .probability = 1.0 - (double)i / 10,
                .maps = calloc(1, sizeof(PredictedRange)),
                .n_maps = 1,
                .extents = calloc(1, sizeof(Extent)),
                .n_extents = 1,
        };
        f->maps[0] = (PredictedRange){0, PAGE, f->probability};
        f->extents[0] = (Extent){0, (1000 - 100 * i) * PAGE, PAGE};
    }
    l->metadata[l->n_metadata++] = (LocatedMetadata){0, {0, PAGE, 1.0}};
    l->metadata[l->n_metadata++] = (LocatedMetadata){0, {2 * PAGE, PAGE, 1.0}};
    return l;
}

static char text_ext4[] = "ext4", text_root[] = "/", text_empty[] = "";

static Volume made_volume(DeviceClass c)
{
    return (Volume){
            .uuid = text_empty,
            .fstype = text_ext4,
            .target = text_root,
            .mountpoint = text_root,
            .device_class = c,
            .profile = *device_profile_of_class(c),
            .size_bytes = GIB,
    };
}

static PackContent *compile_for(uint64_t page_bytes, const LocatedPlan *l, uint64_t budget,
                                double least, PlanSummary *s)
{
    PlanParameters p = {
            .policy = POLICY_IDLE,
            .budget_bytes = budget,
            .page_bytes = page_bytes,
            .min_probability = least,
            .volatile_since = 5 * USEC_PER_SEC,
            .device_class = _DEVICE_CLASS_INVALID,
    };
    PackContent *c = NULL;
    void *bytes;
    size_t size;

    assert_int_equal(plan_compile(l, &p, &c, s), 0);
    /* Every compiled plan is a valid pack. */
    assert_int_equal(pack_write(c, &bytes, &size), 0);
    free(bytes);
    return c;
}

static PackContent *compile(const LocatedPlan *l, uint64_t budget, double least, PlanSummary *s)
{
    return compile_for(PAGE, l, budget, least, s);
}

/* A range takes whole pages of the machine from the budget. The length of the range in the pack
 * does not depend on the machine. */
static void larger_pages_cost_more_of_the_budget(void **state)
{
    static const uint64_t pages[] = {4096, 16384, 65536};
    Volume v = made_volume(DEVICE_CLASS_SSD);
    VolumeTable t = {&v, 1, 1};
    LocatedPlan *l = made_plan(&t, 5);

    for (size_t i = 0; i < ELEMENTSOF(pages); i++) {
        PlanSummary s;
        /* Two ranges of metadata and three of data. */
        PackContent *c = compile_for(pages[i], l, 5 * pages[i], 0, &s);

        assert_int_equal(c->volumes[0].n_metadata, 2);
        assert_int_equal(c->volumes[0].n_data, 3);
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(c->volumes[0].data[k].length, PAGE);
        pack_content_free(c);
        c = compile_for(pages[i], l, 5 * pages[i] - 1, 0, &s);
        assert_int_equal(c->volumes[0].n_data, 2);
        pack_content_free(c);
    }
    located_plan_free(l);
}

static void a_plan_is_cut_by_probability_and_sorted_by_place(void **state)
{
    Volume v = made_volume(DEVICE_CLASS_HDD);
    VolumeTable t = {&v, 1, 1};
    LocatedPlan *l = made_plan(&t, 5);
    PlanSummary s;
    PackContent *c;

    /* Everything fits: two pages of metadata with the page between them, which is cheaper to read
     * than to skip, and five pages of data. */
    c = compile(l, 100 * PAGE, 0, &s);
    assert_int_equal(c->n_volumes, 1);
    assert_int_equal(c->volumes[0].n_metadata, 1);
    assert_int_equal(c->volumes[0].metadata[0].length, 3 * PAGE);
    assert_int_equal(s.gap_bytes, PAGE);
    assert_int_equal(c->volumes[0].n_data, 5);
    for (size_t i = 0; i < 5; i++) {
        const PlacedRange *d = &c->volumes[0].data[i];

        assert_int_equal(d->physical, (600 + 100 * i) * PAGE);
        assert_int_equal(c->volumes[0].files[d->file].inode, 96 + i);
    }
    assert_true(s.estimated_usec > 0 && s.estimated_usec < USEC_PER_SEC);
    pack_content_free(c);

    /* Metadata is selected first, then the two likeliest ranges. */
    c = compile(l, 4 * PAGE, 0, &s);
    assert_int_equal(c->volumes[0].n_data, 2);
    assert_int_equal(s.n_skipped[PLAN_SKIP_BUDGET], 3);
    assert_int_equal(c->volumes[0].data[0].physical, 900 * PAGE);
    pack_content_free(c);

    c = compile(l, 100 * PAGE, 0.75, &s);
    assert_int_equal(c->volumes[0].n_data, 3);
    assert_int_equal(c->volumes[0].n_files, 3);
    assert_int_equal(s.n_skipped[PLAN_SKIP_UNLIKELY], 2);
    pack_content_free(c);

    c = compile(l, 0, 0, &s);
    assert_int_equal(c->volumes[0].n_data, 0);
    pack_content_free(c);
    located_plan_free(l);
}

static void flash_reads_no_gap_through(void **state)
{
    Volume v = made_volume(DEVICE_CLASS_SSD);
    VolumeTable t = {&v, 1, 1};
    LocatedPlan *l = made_plan(&t, 1);
    PlanSummary s;
    PackContent *c = compile(l, 100 * PAGE, 0, &s);

    assert_int_equal(c->volumes[0].n_metadata, 2);
    assert_int_equal(s.gap_bytes, 0);
    pack_content_free(c);
    located_plan_free(l);
}

static void a_probability_that_is_no_number_is_left_out(void **state)
{
    Volume v = made_volume(DEVICE_CLASS_HDD);
    VolumeTable t = {&v, 1, 1};
    LocatedPlan *l = made_plan(&t, 1);
    PlanSummary s;
    PackContent *c;

    l->files[0].maps[0].probability = (double)NAN;
    l->files[0].probability = (double)NAN;
    c = compile(l, 100 * PAGE, 0.1, &s);
    assert_int_equal(c->volumes[0].n_data, 0);
    assert_int_equal(c->volumes[0].n_files, 0);
    pack_content_free(c);
    located_plan_free(l);
}

static void a_file_written_lately_is_known_by_its_inode(void **state)
{
    Volume v = made_volume(DEVICE_CLASS_HDD);
    VolumeTable t = {&v, 1, 1};
    LocatedPlan *l = made_plan(&t, 2);
    PackContent *c;
    PlanSummary s;

    l->files[0].mtime_nsec = 4999999999;
    l->files[1].mtime_nsec = 5000000000;
    c = compile(l, 100 * PAGE, 0, &s);
    assert_int_equal(c->volumes[0].files[0].inode, 99);
    assert_true(c->volumes[0].files[0].written_in_place);
    assert_false(c->volumes[0].files[1].written_in_place);
    pack_content_free(c);
    located_plan_free(l);
}

static void a_pack_says_which_files_the_application_touched(void **state)
{
    Volume v = made_volume(DEVICE_CLASS_HDD);
    VolumeTable t = {&v, 1, 1};
    LocatedPlan *l = made_plan(&t, 2);
    PackContent *c;
    PlanSummary s;

    l->files[1].touched = true;
    c = compile(l, 100 * PAGE, 0, &s);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(c->volumes[0].files[i].touched,
                         c->volumes[0].files[i].inode == l->files[1].inode);
    pack_content_free(c);
    located_plan_free(l);
}

/* Returns the path of the file of the pack's first data range, or NULL; *ret_n is the number of
 * data ranges. */
static const char *first_kept(const PackContent *c, size_t *ret_n)
{
    *ret_n = c->volumes[0].n_data;
    return *ret_n > 0 ? c->volumes[0].files[c->volumes[0].data[0].file].path : NULL;
}

static void of_what_is_equally_likely_files_of_root_come_first(void **state)
{
    Volume v = made_volume(DEVICE_CLASS_HDD);
    VolumeTable t = {&v, 1, 1};
    LocatedPlan *l = made_plan(&t, 3);
    PlanSummary s;
    PackContent *c;
    size_t n;

    l->n_metadata = 0;
    for (size_t i = 0; i < 3; i++)
        l->files[i].maps[0].probability = l->files[i].probability = 0.5;
    l->files[2].of_root = true;
    c = compile(l, PAGE, 0, &s);
    assert_string_equal(first_kept(c, &n), "f2");
    assert_int_equal(n, 1);
    pack_content_free(c);

    /* A file with a likelier range is kept first. */
    l->files[1].maps[0].probability = 0.6;
    c = compile(l, PAGE, 0, &s);
    assert_string_equal(first_kept(c, &n), "f1");
    pack_content_free(c);
    located_plan_free(l);
}

static void then_comes_what_saves_more_time_per_byte(void **state)
{
    Volume v = made_volume(DEVICE_CLASS_HDD);
    VolumeTable t = {&v, 1, 1};
    LocatedPlan *l = made_plan(&t, 3);
    PlanSummary s;
    PackContent *c;
    size_t n;

    l->n_metadata = 0;
    for (size_t i = 0; i < 3; i++) {
        l->files[i].maps[0].probability = l->files[i].probability = 0.5;
        l->files[i].maps[0].length = l->files[i].size_bytes = 8 * PAGE;
        l->files[i].extents[0].length = 8 * PAGE;
    }
    /* The same bytes in two places cost one more seek. */
    l->files[1].extents = reallocarray(l->files[1].extents, 2, sizeof(Extent));
    assert_non_null(l->files[1].extents);
    l->files[1].n_extents = 2;
    l->files[1].extents[0].length = 4 * PAGE;
    l->files[1].extents[1] = (Extent){4 * PAGE, 5000 * PAGE, 4 * PAGE};
    c = compile(l, 8 * PAGE, 0, &s);
    assert_string_equal(first_kept(c, &n), "f1");
    pack_content_free(c);

    /* Of two files in one place each, the smaller one is kept first. */
    l->files[2].maps[0].length = 2 * PAGE;
    c = compile(l, 8 * PAGE, 0, &s);
    assert_string_equal(first_kept(c, &n), "f2");
    assert_int_equal(n, 1);
    pack_content_free(c);
    located_plan_free(l);
}

static void a_plan_shrinks_to_its_limits_instead_of_failing(void **state)
{
    static const size_t n = PLAN_FILES_MAX + 1000;
    Volume v = made_volume(DEVICE_CLASS_SSD);
    VolumeTable t = {&v, 1, 1};
    LocatedPlan *l = calloc(1, sizeof(*l));
    char path[4000];
    PlanSummary s;
    PackContent *c;

    assert_non_null(l);
    l->volumes = &t;
    l->files = calloc(n, sizeof(LocatedFile));
    assert_non_null(l->files);
    for (; l->n_files < n; l->n_files++) {
        snprintf(path, sizeof(path), "d/%zu", l->n_files);
        l->files[l->n_files] = (LocatedFile){
                .path = strdup(path),
                .inode = l->n_files,
                .probability = 0.2 + (double)l->n_files / (double)n / 2,
        };
    }
    c = compile(l, GIB, 0.1, &s);
    assert_int_equal(c->volumes[0].n_files, PLAN_FILES_MAX);
    assert_int_equal(s.n_skipped[PLAN_SKIP_LIMIT], 1000);
    assert_string_equal(c->volumes[0].files[0].path, "d/1000"); /* the least likely are left out */
    pack_content_free(c);

    /* If names are long, the plan keeps as many of the likeliest files as fit, and after them files
     * with short names. */
    memset(path, 'x', sizeof(path));
    path[sizeof(path) - 1] = 0;
    for (size_t i = 0; i < 10000; i++) {
        free(l->files[i].path);
        l->files[i].path = strdup(path);
        l->files[i].probability = 0.9;
    }
    c = compile(l, GIB, 0.1, &s);
    assert_in_range(s.n_skipped[PLAN_SKIP_LIMIT], 1, n - 1);
    assert_in_range(s.n_files, PLAN_PATH_BYTES_MAX / sizeof(path), n - 1);
    pack_content_free(c);
    located_plan_free(l);
}

static void ranges_have_a_limit(void **state)
{
    Volume v = made_volume(DEVICE_CLASS_SSD);
    VolumeTable t = {&v, 1, 1};
    LocatedPlan *l = made_plan(&t, 2);
    PlanSummary s;
    PackContent *c;

    v.size_bytes = UINT64_C(1) << 40;
    l->n_metadata = 0;
    for (size_t i = 0; i < 2; i++) {
        LocatedFile *f = &l->files[i];

        f->n_extents = PLAN_RANGES_MAX - 1;
        f->extents = reallocarray(f->extents, f->n_extents, sizeof(Extent));
        assert_non_null(f->extents);
        for (size_t k = 0; k < f->n_extents; k++)
            f->extents[k] = (Extent){k * PAGE, (2 * k + i * 4 * f->n_extents) * PAGE, PAGE};
        f->maps[0].length = f->size_bytes = f->n_extents * PAGE;
    }
    c = compile(l, UINT64_MAX, 0, &s);
    assert_int_equal(c->volumes[0].n_data, PLAN_RANGES_MAX - 1);
    assert_int_equal(c->volumes[0].n_files, 2); /* the file without ranges is opened, too */
    assert_int_equal(s.n_skipped[PLAN_SKIP_LIMIT], 1);
    pack_content_free(c);
    located_plan_free(l);
}

static void metadata_leaves_room_for_data(void **state)
{
    Volume v = made_volume(DEVICE_CLASS_SSD);
    VolumeTable t = {&v, 1, 1};
    LocatedPlan *l = made_plan(&t, 1);
    const uint64_t budget = 4 * PLAN_METADATA_BYTES_MIN;
    PlanSummary s;
    PackContent *c;

    v.size_bytes = UINT64_C(1) << 40;
    l->metadata = reallocarray(l->metadata, 1000, sizeof(LocatedMetadata));
    assert_non_null(l->metadata);
    for (l->n_metadata = 0; l->n_metadata < 1000; l->n_metadata++)
        l->metadata[l->n_metadata] =
                (LocatedMetadata){0, {l->n_metadata * GIB, budget / 1000, 1.0}};
    c = compile(l, budget, 0, &s);
    assert_in_range(s.metadata_bytes, budget / 4 - budget / 200, budget / 4);
    assert_int_equal(s.n_data_ranges, 1);
    pack_content_free(c);
    located_plan_free(l);
}

/* Of three filesystems, the sessions have read metadata of the first two. */
static void a_start_needs_no_metadata_that_no_session_has_read(void **state)
{
    char a[] = "aa", b[] = "bb", c[] = "cc";
    Volume v[] = {{.uuid = a}, {.uuid = b}, {.uuid = c}};
    VolumeTable t = {v, 3, 3};
    LocatedPlan *l = calloc(1, sizeof(LocatedPlan));
    const LocatedMetadata given[] = {
            {0, {0, PAGE, 1}},        {0, {2 * PAGE, 4 * PAGE, 0.5}}, {0, {10 * PAGE, PAGE, 1}},
            {1, {2 * PAGE, PAGE, 1}}, {2, {2 * PAGE, PAGE, 1}},
    };
    const LocatedMetadata kept[] = {
            {0, {2 * PAGE, PAGE, 0.5}},
            {0, {4 * PAGE, 2 * PAGE, 0.5}},
            {0, {10 * PAGE, PAGE, 1}},
            {2, {2 * PAGE, PAGE, 1}},
    };
    /* In the order of the model: that of replayed sessions follows the other one. */
    PredictedMetadata seen[] = {
            {.uuid = a, .range = {PAGE, 2 * PAGE, 0.1}},
            {.uuid = a, .range = {10 * PAGE, PAGE, 1}},
            {.uuid = a, .range = {4 * PAGE, 3 * PAGE, 1}, .assumed = true},
            {.uuid = b, .range = {0, PAGE, 1}},
    };
    Prediction p = {.seen = seen, .n_seen = ELEMENTSOF(seen)};

    assert_non_null(l);
    l->volumes = &t;
    l->metadata = reallocarray(NULL, ELEMENTSOF(given), sizeof(*given));
    assert_non_null(l->metadata);
    memcpy(l->metadata, given, sizeof(given));
    l->n_metadata = ELEMENTSOF(given);

    p.n_seen = 0; /* the model knows nothing of it */
    assert_int_equal(seen_metadata_keep(l, &p), 0);
    assert_int_equal(l->n_metadata, ELEMENTSOF(given));
    p.n_seen = ELEMENTSOF(seen);
    assert_int_equal(seen_metadata_keep(l, &p), 0);
    assert_int_equal(l->n_metadata, ELEMENTSOF(kept));
    for (size_t i = 0; i < ELEMENTSOF(kept); i++) {
        assert_int_equal(l->metadata[i].volume, kept[i].volume);
        assert_int_equal(l->metadata[i].range.offset, kept[i].range.offset);
        assert_int_equal(l->metadata[i].range.length, kept[i].range.length);
        assert_true(l->metadata[i].range.probability == kept[i].range.probability);
    }
    located_plan_free(l);
}

static void nothing_makes_an_empty_pack(void **state)
{
    VolumeTable t = {0};
    LocatedPlan l = {.stage = STAGE_BOOT, .volumes = &t};
    PlanSummary s;
    PackContent *c = compile(&l, 0, 0, &s);

    assert_int_equal(c->n_volumes, 0);
    assert_int_equal(c->stage, STAGE_BOOT);
    pack_content_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(runs_of_extents),
            cmocka_unit_test(costs_by_hand),
            cmocka_unit_test(a_window_is_cut_from_the_end),
            cmocka_unit_test(break_even_is_where_both_ways_cost_the_same),
            cmocka_unit_test(budgets),
            cmocka_unit_test(placed_ranges_cover_exactly_what_is_mapped),
            cmocka_unit_test(gaps_are_read_through_only_up_to_the_limit_and_counted),
            cmocka_unit_test(placed_ranges_of_two_files_never_join),
            cmocka_unit_test(unlikely_ranges_need_a_likely_neighbour),
            cmocka_unit_test(a_plan_is_cut_by_probability_and_sorted_by_place),
            cmocka_unit_test(larger_pages_cost_more_of_the_budget),
            cmocka_unit_test(flash_reads_no_gap_through),
            cmocka_unit_test(a_probability_that_is_no_number_is_left_out),
            cmocka_unit_test(a_file_written_lately_is_known_by_its_inode),
            cmocka_unit_test(a_pack_says_which_files_the_application_touched),
            cmocka_unit_test(of_what_is_equally_likely_files_of_root_come_first),
            cmocka_unit_test(then_comes_what_saves_more_time_per_byte),
            cmocka_unit_test(a_plan_shrinks_to_its_limits_instead_of_failing),
            cmocka_unit_test(ranges_have_a_limit),
            cmocka_unit_test(metadata_leaves_room_for_data),
            cmocka_unit_test(a_start_needs_no_metadata_that_no_session_has_read),
            cmocka_unit_test(nothing_makes_an_empty_pack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
