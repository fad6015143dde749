/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the limit on the extents of all files of a plan, and metadata that overlaps
 * (plan/plan-locate.c). */

#include "model/ownership.h"
#include "plan/plan.h"
#include "util/root-util.h"

#include <sys/sysmacros.h>

/* The limit that is tested: the extents of all files together. */
#define LIMIT 1000000U

#define N_FILES 12U

static TestRoot root;

int __wrap_extents_read(int fd, size_t max, ExtentList *ret);

/* Stands in for FIEMAP: every file has as many extents as one file may have. Returns 0, or -E2BIG
 * like extents_read(). */
int __wrap_extents_read(int fd, size_t max, ExtentList *ret)
{
    ret->n = 0;
    if (max < EXTENTS_PER_FILE_MAX)
        return -E2BIG;
    if (!ret->extents) {
        ret->extents = calloc(EXTENTS_PER_FILE_MAX, sizeof(Extent));
        ret->allocated = EXTENTS_PER_FILE_MAX;
        assert_non_null(ret->extents);
    }
    ret->n = EXTENTS_PER_FILE_MAX;
    return 0;
}

static int make_root(void **state)
{
    return test_root_make(&root);
}

static int remove_root(void **state)
{
    return test_root_remove(&root);
}

static void extents_of_all_files_have_a_limit(void **state)
{
    char slash[] = "/", type[] = "ext4", uuid[] = "0b36d643-d1a8-4c00-8000-000000000001";
    char names[N_FILES][16];
    struct stat st;
    PredictedRange maps[N_FILES];
    PredictedFile files[N_FILES];
    Prediction p = {.stage = STAGE_BOOT, .files = files, .n_files = N_FILES};
    Volume volume = {.mountpoint = slash, .target = root.path, .fstype = type, .uuid = uuid};
    VolumeTable volumes = {.volumes = &volume, .n = 1};
    _cleanup_located_plan_ LocatedPlan *l = NULL;
    size_t total = 0, without = 0;

    assert_int_equal(fstat(root.fd, &st), 0);
    volume.st_dev = st.st_dev;
    for (size_t i = 0; i < N_FILES; i++) {
        maps[i] = (PredictedRange){.offset = 0, .length = 4096, .probability = 1};
        snprintf(names[i], sizeof(names[i]), "/file%zu", i);
        test_root_put(&root, names[i] + 1, "some text");
        files[i] =
                (PredictedFile){.path = names[i], .probability = 1, .maps = &maps[i], .n_maps = 1};
    }

    assert_int_equal(plan_locate(&p, root.path, &volumes, geteuid(), USEC_INFINITY, &l), 0);
    assert_int_equal(l->n_files, N_FILES);
    for (size_t i = 0; i < N_FILES; i++) {
        const LocatedFile *f = &l->files[i];

        total += f->n_extents;
        without += f->n_extents == 0;
        /* A file whose place is unknown keeps its data and is read after the other files. */
        assert_int_equal(f->n_maps, 1);
    }
    assert_int_equal(total, LIMIT);
    assert_int_equal(without, N_FILES - LIMIT / EXTENTS_PER_FILE_MAX);
}

/* Metadata that is in two lists of the model has the higher of the two probabilities. */
static void overlapping_metadata_has_the_highest_probability(void **state)
{
    static const struct {
        unsigned begin, end; /* in pages */
        double probability;
    } expected[] = {{0, 2, 0.1}, {2, 5, 1}, {5, 8, 0.5}, {8, 9, 0.1}};
    char slash[] = "/", type[] = "f2fs", xfs[] = "xfs",
         uuid[] = "0b36d643-d1a8-4c00-8000-000000000001";
    PredictedMetadata metadata[] = {
            {uuid, {0, 9 * 4096, 0.1}, .assumed = true},
            {uuid, {2 * 4096, 3 * 4096, 1}, .assumed = false},
            {uuid, {4 * 4096, 4 * 4096, 0.5}, .assumed = false},
            {uuid, {5 * 4096, 0, 1}, .assumed = false},
    };
    Prediction p = {.stage = STAGE_BOOT, .metadata = metadata, .n_metadata = ELEMENTSOF(metadata)};
    Volume volume = {.mountpoint = slash,
                     .target = root.path,
                     .fstype = type,
                     .uuid = uuid,
                     .block_dev = makedev(8, 1)};
    VolumeTable volumes = {.volumes = &volume, .n = 1};
    _cleanup_located_plan_ LocatedPlan *l = NULL;

    assert_int_equal(plan_locate(&p, root.path, &volumes, geteuid(), USEC_INFINITY, &l), 0);
    assert_int_equal(l->n_metadata, ELEMENTSOF(expected));
    for (size_t i = 0; i < l->n_metadata; i++) {
        const PredictedRange *r = &l->metadata[i].range;

        assert_int_equal(r->offset, expected[i].begin * 4096);
        assert_int_equal(r->length, (expected[i].end - expected[i].begin) * 4096);
        assert_float_equal(r->probability, expected[i].probability, 1e-9);
    }
    /* A model from elsewhere may say that it has observed blocks of an xfs. They have no items. */
    located_plan_free(TAKE_PTR(l));
    volume.fstype = xfs;
    assert_int_equal(plan_locate(&p, root.path, &volumes, geteuid(), USEC_INFINITY, &l), 0);
    assert_int_equal(l->n_metadata, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(extents_of_all_files_have_a_limit),
            cmocka_unit_test(overlapping_metadata_has_the_highest_probability),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
