/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests how an upgrade changes the model: plan/versions.h, model_move_files(),
 * model_stretch_files(). */

#include "plan/versions.h"
#include "util/model-util.h"

static void names_that_differ_in_numbers(void **state)
{
    static const struct {
        const char *a, *b;
        bool alike;
    } cases[] = {
            {"libfoo.so.1.2.3", "libfoo.so.1.2.4", true},
            {"libfoo.so.1.2.3", "libfoo.so.1.3", true},
            {"libfoo.so.9", "libfoo.so.10", true},
            {"6.1.0-30-amd64", "6.1.0-31-amd64", true},
            {"6.1.0-30-amd64", "6.1.0-31-cloud-amd64", false},
            {"libfoo.so.1.2.3", "libfoo.so.1.2.3", false}, /* the same name is no successor */
            {"libfoo.so.1.2.3", "libbar.so.1.2.4", false},
            {"libfoo.so.1", "libfoo.so", false},
            {"libfoo.so.1", "libfoo.so.1.debug", false},
            {"libfoo.so.1.2", "libfoo.so.1.", false},
            {"a", "b", false},
            {"", "", false},
            {"1", "2", true},
            {"python3.11", "python3.12", true},
    };

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        assert_int_equal(versions_alike(cases[i].a, cases[i].b), cases[i].alike);
        assert_int_equal(versions_alike(cases[i].b, cases[i].a), cases[i].alike);
    }
}

static void the_highest_version_succeeds(void **state)
{
    char *names[] = {(char *)"libfoo.so.1.2.9", (char *)"libfoo.so.1.2.10",
                     (char *)"libfoo.so.1.2.3", (char *)"libbar.so.9.9.9", (char *)"libfoo.so"};

    assert_string_equal(versions_successor("libfoo.so.1.2.3", names, 5), "libfoo.so.1.2.10");
    assert_null(versions_successor("libbaz.so.1", names, 5));
    assert_null(versions_successor("libfoo.so.1.2.3", names, 0));
}

static Model *learned(const char *uses)
{
    Trace *t = session(STAGE_BOOT, UID_INVALID, T0, 0, uses, NULL);
    Model *m = model_new(H);

    assert_int_equal(model_learn(&m, t, T0), 0);
    trace_free(t);
    return m;
}

static char **nothing(const Model *m)
{
    return calloc(m->n_files + 1, sizeof(char *));
}

/* Checks that the model is valid, and that it is the same after it was written and read. */
static void assert_sound(const Model *m)
{
    _cleanup_free_ char *text = NULL, *again = NULL, *error = NULL;
    _cleanup_model_ Model *copy = NULL;
    size_t size;

    assert_int_equal(model_to_json(m, &text, &size), 0);
    assert_int_equal(model_from_json(text, size, &copy, &error), 0);
    assert_int_equal(model_to_json(copy, &again, &size), 0);
    assert_string_equal(text, again);
}

static double known(const Model *m, const char *path)
{
    uint32_t file = model_find_file(m, path);

    for (size_t i = 0; file != MODEL_NONE && i < m->stages[0].n_files; i++)
        if (m->stages[0].files[i].file == file)
            return decayed_sum_ratio(m->stages[0].files[i].used, m->stages[0].sessions);
    return 0;
}

static void moved_files_keep_what_is_known(void **state)
{
    _cleanup_model_ Model *m = learned("A>b=0-2 B>a=0-1,3-4 A>c=0-1 ?>z=0-1");
    char **to = nothing(m);

    to[model_find_file(m, "/f/b")] = strdup("/zz/last");
    to[model_find_file(m, "/bin/A")] = strdup("/sbin/A");
    to[model_find_file(m, "/f/z")] = strdup("/a/first");
    assert_int_equal(model_move_files(m, to), 0);
    free(to);
    assert_sound(m);
    assert_near(known(m, "/zz/last"), 1);
    assert_near(known(m, "/a/first"), 1);
    assert_near(known(m, "/f/a"), 1);
    assert_int_equal(model_find_file(m, "/f/b"), MODEL_NONE);
    assert_int_not_equal(model_find_file(m, "/sbin/A"), MODEL_NONE);
    assert_int_equal(m->stages[0].n_applications, 3);
    assert_int_equal(m->stages[0].n_uses, 4);
    assert_int_equal(m->stages[0].applications[2].file, MODEL_NONE);
}

static void gone_files_leave(void **state)
{
    _cleanup_model_ Model *m = learned("A>b=0-2 B>a=0-1,3-4 A>c=0-1");
    char **to = nothing(m);

    to[model_find_file(m, "/f/b")] = strdup("");
    to[model_find_file(m, "/bin/B")] = strdup("");
    /* Another file has the name /f/a already, and keeps it. */
    to[model_find_file(m, "/f/c")] = strdup("/f/a");
    assert_int_equal(model_move_files(m, to), 0);
    for (size_t i = 0; i < 5; i++)
        free(to[i]);
    free(to);
    assert_sound(m);
    assert_int_equal(m->stages[0].n_files, 1);
    assert_int_equal(m->stages[0].n_applications, 1);
    assert_int_equal(m->stages[0].n_uses, 0);
    assert_near(known(m, "/f/a"), 1);
    assert_int_equal(m->stages[0].files[0].residency[RESIDENCY_OBSERVED].ranges.n, 2);
}

static void all_gone(void **state)
{
    _cleanup_model_ Model *m = learned("A>b=0-2");
    char **to = nothing(m);

    for (size_t i = 0; i < m->n_files; i++)
        to[i] = strdup("");
    assert_int_equal(model_move_files(m, to), 0);
    for (size_t i = 0; i < 2; i++)
        free(to[i]);
    free(to);
    assert_int_equal(m->n_files, 0);
    assert_sound(m);
}

static uint64_t end_of(const Model *m, const char *path)
{
    uint32_t file = model_find_file(m, path);

    for (size_t i = 0; i < m->stages[0].n_files; i++) {
        const WeightedRanges *s = &m->stages[0].files[i].residency[RESIDENCY_OBSERVED].ranges;

        if (m->stages[0].files[i].file == file)
            return weighted_range_end(&s->ranges[s->n - 1]) / PAGE;
    }
    return 0;
}

static void stretch(Model *m, uint32_t file, uint64_t old_size, uint64_t new_size)
{
    model_stretch_files(m, &(ModelResize){file, old_size, new_size}, 1);
}

static void whole_files_stay_whole(void **state)
{
    _cleanup_model_ Model *m = learned("A>whole=0-5 A>begin=0-2 A>ends=0-1,4-5");

    stretch(m, model_find_file(m, "/f/whole"), 5 * PAGE - 100, 8 * PAGE - 1);
    stretch(m, model_find_file(m, "/f/begin"), 5 * PAGE, 8 * PAGE);
    stretch(m, model_find_file(m, "/f/ends"), 5 * PAGE, 6 * PAGE);
    assert_int_equal(end_of(m, "/f/whole"), 8);
    assert_int_equal(end_of(m, "/f/begin"), 2);
    assert_int_equal(end_of(m, "/f/ends"), 6);
    /* The file became smaller. The model keeps the range; planning drops the part beyond the end.
     */
    stretch(m, model_find_file(m, "/f/whole"), 8 * PAGE, PAGE);
    assert_int_equal(end_of(m, "/f/whole"), 8);
    assert_sound(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(names_that_differ_in_numbers),
            cmocka_unit_test(the_highest_version_succeeds),
            cmocka_unit_test(moved_files_keep_what_is_known),
            cmocka_unit_test(gone_files_leave),
            cmocka_unit_test(all_gone),
            cmocka_unit_test(whole_files_stay_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
