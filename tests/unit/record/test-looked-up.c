/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests which names of a directory are added to a trace (record/looked-up.c). A file that was just
 * made has its name in the kernel's cache. */

#include "record/looked-up.h"

#include "util/root-util.h"

#define N_FILES 30U

static TestRoot root;
static Volume volume;
static const VolumeTable volumes = {.volumes = &volume, .n = 1};

static int set_up(void **state)
{
    struct stat st;

    if (test_root_make(&root) < 0)
        return -1;
    for (unsigned i = 0; i < N_FILES; i++) {
        char name[16];

        snprintf(name, sizeof(name), "d/f%u", i);
        test_root_put(&root, name, "x");
    }
    if (fstat(root.fd, &st) < 0)
        return -1;
    volume = (Volume){.target = root.path, .mountpoint = (char *)"/", .st_dev = st.st_dev};
    return 0;
}

static int tear_down(void **state)
{
    return test_root_remove(&root);
}

/* Searches the directory /d. Returns how many files of the trace are marked as looked up. */
static size_t search(Trace *t, size_t *left)
{
    size_t n = 0;
    uint32_t d;

    assert_int_equal(trace_add_path(t, "/d", &d), 0);
    assert_int_equal(looked_up_add(t, d, TRACE_NONE, &volumes, root.path, left), 0);
    for (size_t i = 0; i < t->n_files; i++)
        n += t->files[i].looked_up;
    return n;
}

static void the_directory_and_its_names_are_added(void **state)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    size_t left = 100;
    uint32_t path, opened;

    if (geteuid() != 0)
        skip();
    assert_int_equal(trace_add_path(t, "/d/f0", &path), 0);
    assert_int_equal(trace_add_file(t, path, TRACE_NONE, false, &opened), 0);
    assert_int_equal(search(t, &left), N_FILES);
    assert_int_equal(left, 100 - N_FILES);
    assert_false(t->files[opened].looked_up); /* it was in the trace before */
    assert_int_equal(search(t, &left), N_FILES);
    assert_int_equal(left, 100 - N_FILES);
}

static void the_number_of_names_is_limited(void **state)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    size_t left = 10;

    if (geteuid() != 0)
        skip();
    assert_int_equal(search(t, &left), 10);
    assert_int_equal(left, 0);
}

/* A directory that others than root may write, or that is on another filesystem now. */
static void other_directories_are_left_out(void **state)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    size_t left = 100;

    assert_int_equal(fchmodat(root.fd, "d", 0775, 0), 0);
    assert_int_equal(search(t, &left), 0);
    assert_int_equal(fchmodat(root.fd, "d", 01777, 0), 0);
    assert_int_equal(search(t, &left), 0);
    assert_int_equal(fchmodat(root.fd, "d", 0755, 0), 0);
    volume.st_dev++;
    assert_int_equal(search(t, &left), 0);
    volume.st_dev--;
    assert_int_equal(left, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_directory_and_its_names_are_added),
            cmocka_unit_test(the_number_of_names_is_limited),
            cmocka_unit_test(other_directories_are_left_out),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
