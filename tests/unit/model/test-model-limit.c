/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/model-limit.h"
#include "model/model-select.h"
#include "trace/trace-trim.h"
#include "util/model-util.h"

/* Returns "A>PREFIX0000=0-1 A>PREFIX0001=0-1 ...": application A opens n files, each with one
 * resident page. */
static char *uses(const char *prefix, size_t n)
{
    char *text = calloc(n + 1, 32);
    size_t at = 0;

    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, 32, "A>%s%04zu=0-1 ", prefix, i);
    return text;
}

static void learn_files(Model **m, Stage stage, uint32_t uid, usec_t at, const char *prefix,
                        size_t n)
{
    _cleanup_free_ char *text = uses(prefix, n);

    learn(m, session(stage, uid, at, 0, text, NULL));
}

static const ModelStage *stage_of(const Model *m, Stage stage, uint32_t uid)
{
    for (size_t i = 0; i < m->n_stages; i++)
        if (m->stages[i].stage == stage && m->stages[i].uid == uid)
            return &m->stages[i];
    return NULL;
}

static size_t count_files(const Model *m, Stage stage, uint32_t uid)
{
    const ModelStage *s = stage_of(m, stage, uid);

    return s ? s->n_files : 0;
}

static bool stage_has(const Model *m, Stage stage, uint32_t uid, const char *path)
{
    const ModelStage *s = stage_of(m, stage, uid);
    uint32_t id = model_find_file(m, path);

    for (size_t i = 0; s && i < s->n_files; i++)
        if (s->files[i].file == id)
            return true;
    return false;
}

/* Checks that a reduced model is the same after it was written and read. */
static void check_model(const Model *m)
{
    _cleanup_free_ char *text = NULL, *again = NULL;
    _cleanup_model_ Model *back = NULL;
    size_t size;

    assert_int_equal(model_to_json(m, &text, &size), 0);
    assert_int_equal(model_from_json(text, size, &back, NULL), 0);
    assert_int_equal(model_to_json(back, &again, &size), 0);
    assert_string_equal(text, again);
}

static void what_fits_stays(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    const ModelLimits limits = {.user_bytes = 1 << 20, .bytes = 1 << 20};
    size_t dropped = 99;

    (void)state;
    assert_int_equal(model_limit(m, &limits, &dropped), 0);
    learn_files(&m, STAGE_LOGIN, 1000, T0, "x", 50);
    assert_int_equal(model_limit(m, &limits, &dropped), 0);
    assert_int_equal(dropped, 0);
    assert_int_equal(count_files(m, STAGE_LOGIN, 1000), 50);
}

static void a_user_keeps_what_most_sessions_use(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    const ModelLimits limits = {.user_bytes = 30000, .bytes = 1 << 20};
    size_t dropped;

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        learn_files(&m, STAGE_LOGIN, 1000, T0 + i * USEC_PER_SEC, "z", 20);
    learn_files(&m, STAGE_LOGIN, 1000, T0 + 4 * USEC_PER_SEC, "a", 400);
    assert_int_equal(model_limit(m, &limits, &dropped), 0);
    assert_in_range(dropped, 300, 400);
    for (unsigned i = 0; i < 20; i++) {
        char path[32];

        snprintf(path, sizeof(path), "/f/z%04u", i);
        assert_true(stage_has(m, STAGE_LOGIN, 1000, path));
    }
    assert_int_not_equal(model_find_file(m, "/bin/A"), MODEL_NONE);
    /* Of the files that were used once, those that the session used first stay. */
    assert_true(stage_has(m, STAGE_LOGIN, 1000, "/f/a0000"));
    assert_false(stage_has(m, STAGE_LOGIN, 1000, "/f/a0399"));
    assert_int_equal(model_find_file(m, "/f/a0399"), MODEL_NONE);
    check_model(m);

    /* The model is within the limits now. */
    assert_int_equal(model_limit(m, &limits, &dropped), 0);
    assert_int_equal(dropped, 0);
}

static void the_largest_users_are_cut_to_one_size(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    const ModelLimits limits = {.user_bytes = 1 << 20, .bytes = 150000};
    size_t dropped, n;

    (void)state;
    learn_files(&m, STAGE_LOGIN, 1000, T0, "q", 40);
    learn_files(&m, STAGE_LOGIN, 1001, T0 + 1, "h", 400);
    learn_files(&m, STAGE_SESSION, 1001, T0 + 2, "i", 400);
    learn_files(&m, STAGE_LOGIN, 1002, T0 + 3, "k", 500);
    learn_files(&m, STAGE_BOOT, UID_INVALID, T0 + 4, "b", 40);
    assert_int_equal(model_limit(m, &limits, &dropped), 0);
    assert_int_equal(count_files(m, STAGE_LOGIN, 1000), 40);
    assert_int_equal(count_files(m, STAGE_BOOT, UID_INVALID), 40);
    n = count_files(m, STAGE_LOGIN, 1001) + count_files(m, STAGE_SESSION, 1001);
    assert_in_range(count_files(m, STAGE_LOGIN, 1002), n - 5, n + 5);
    assert_in_range(n, 100, 400);
    check_model(m);
}

static void a_session_does_not_displace_a_login(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    const ModelLimits limits = {.user_bytes = 60000, .bytes = 1 << 20};
    size_t dropped;

    (void)state;
    learn_files(&m, STAGE_LOGIN, 1000, T0, "l", 60);
    for (unsigned i = 1; i < 6; i++) {
        char prefix[8];

        snprintf(prefix, sizeof(prefix), "s%u-", i);
        learn_files(&m, STAGE_SESSION, 1000, T0 + i * USEC_PER_SEC, prefix, 500);
        assert_int_equal(model_limit(m, &limits, &dropped), 0);
        assert_true(dropped > 300);
        assert_int_equal(count_files(m, STAGE_LOGIN, 1000), 60);
    }
    check_model(m);
}

static void metadata_keeps_a_quarter_the_most_frequent_first(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    const ModelLimits limits = {.user_bytes = 40000, .bytes = 1 << 20};
    char once[16000] = "", twice[16] = "9000-9001";
    size_t dropped, at = 0;

    (void)state;
    for (unsigned i = 0; i < 1500; i++)
        at += (size_t)snprintf(once + at, sizeof(once) - at, "%s%u-%u", i ? "," : "", 2 * i,
                               2 * i + 1);
    learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "A>x=0-1", twice));
    at = strlen(once);
    snprintf(once + at, sizeof(once) - at, ",%s", twice);
    learn(&m, session(STAGE_LOGIN, 1000, T0 + 1, 0, "A>x=0-1", once));
    assert_int_equal(model_limit(m, &limits, &dropped), 0);
    assert_int_equal(m->stages[0].metadata[0].ranges.n + dropped, 1501);
    assert_in_range(dropped, 200, 1400);
    assert_true(stage_has(m, STAGE_LOGIN, 1000, "/f/x"));
    /* The range that both sessions used is the last one on the device. It stays. */
    assert_int_equal(
            m->stages[0].metadata[0].ranges.ranges[m->stages[0].metadata[0].ranges.n - 1].offset,
            9000 * PAGE);
    check_model(m);
}

static void bytes_that_json_escapes_cost_more(void **state)
{
    const ModelLimits limits = {.user_bytes = 30000, .bytes = 1 << 20};
    size_t kept[2], dropped;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        _cleanup_model_ Model *m = model_new(H);
        char prefix[16];

        memset(prefix, i == 0 ? 'x' : 0xff, sizeof(prefix) - 1);
        prefix[sizeof(prefix) - 1] = 0;
        learn_files(&m, STAGE_LOGIN, 1000, T0, prefix, 400);
        assert_int_equal(model_limit(m, &limits, &dropped), 0);
        kept[i] = count_files(m, STAGE_LOGIN, 1000);
    }
    assert_in_range(kept[1], 1, kept[0] - 5);
}

static void a_trace_loses_files_with_all_that_refers_to_them(void **state)
{
    Trace *t = session(STAGE_LOGIN, 1000, T0, 0, "A>x=0-1 B>y=0-1 A>z=0-1 B>x", NULL);
    bool *keep = calloc(t->n_files, sizeof(bool));
    size_t n_accesses = t->n_accesses;
    char path[64];

    (void)state;
    assert_non_null(keep);
    for (size_t i = 0; i < t->n_files; i++) {
        assert_int_equal(trace_format_path(t, t->files[i].path, path, sizeof(path)), 0);
        keep[i] = strcmp(path, "/bin/B") != 0 && strcmp(path, "/f/z") != 0;
    }
    assert_int_equal(trace_keep_files(t, keep), -EINVAL); /* the trace is still being built */
    trace_end_building(t);
    assert_int_equal(trace_keep_files(t, keep), 0);
    assert_int_equal(trace_validate(t), 0);
    assert_int_equal(t->n_applications, 1);
    assert_in_range(t->n_accesses, 3, n_accesses - 1);
    for (size_t i = 0; i < t->n_files; i++) {
        assert_int_equal(trace_format_path(t, t->files[i].path, path, sizeof(path)), 0);
        assert_true(strcmp(path, "/bin/B") != 0 && strcmp(path, "/f/z") != 0);
    }
    /* B's accesses to files that remain have no application any more. */
    assert_int_equal(t->accesses[t->n_accesses - 1].application, TRACE_NONE);
    free(keep);
    trace_free(t);
}

/* Adds `n` files to the trace, each opened by the application of that user. */
static void add_files(Trace *t, uint32_t uid, const char *application, const char *prefix, size_t n)
{
    uint32_t path, file, id;
    char text[64];

    snprintf(text, sizeof(text), "/bin/%s", application);
    assert_int_equal(trace_add_path(t, text, &path), 0);
    assert_int_equal(trace_add_file(t, path, TRACE_NONE, false, &file), 0);
    assert_int_equal(trace_add_application(t, file, &id), 0);
    assert_int_equal(trace_add_lifetime(t, &(TraceLifetime){.application = id,
                                                            .pid = 1,
                                                            .uid = uid,
                                                            .start = 1,
                                                            .end = USEC_INFINITY}),
                     0);
    for (size_t i = 0; i < n; i++) {
        snprintf(text, sizeof(text), "/f/%s%zu", prefix, i);
        assert_int_equal(trace_add_path(t, text, &path), 0);
        assert_int_equal(trace_add_file(t, path, TRACE_NONE, false, &file), 0);
        assert_int_equal(trace_add_access(t, &(TraceAccess){.file = file, .application = id}), 0);
    }
}

static size_t count_prefix(const Trace *t, const char *prefix)
{
    char path[64];
    size_t n = 0;

    for (size_t i = 0; i < t->n_files; i++) {
        assert_int_equal(trace_format_path(t, t->files[i].path, path, sizeof(path)), 0);
        n += strncmp(path, prefix, strlen(prefix)) == 0;
    }
    return n;
}

static void another_user_in_a_login_does_not_displace_its_files(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    Trace *t = trace_new(STAGE_LOGIN);
    size_t dropped;

    (void)state;
    t->uid = 1000;
    add_files(t, 1001, "hog", "hog", 2 * TRACE_RECORD_USER_FILES_MAX);
    add_files(t, 1002, "pig", "pig", 2 * TRACE_RECORD_USER_FILES_MAX);
    add_files(t, 1003, "ox", "ox", 2 * TRACE_RECORD_USER_FILES_MAX);
    add_files(t, 1004, "elk", "elk", 2 * TRACE_RECORD_USER_FILES_MAX);
    add_files(t, 0, "init", "sys", 20000);
    add_files(t, 1000, "shell", "mine", 5000);
    trace_end_building(t);
    assert_int_equal(model_select(m, t, &dropped), 0);
    assert_int_equal(trace_validate(t), 0);
    assert_int_equal(t->n_files, TRACE_RECORD_FILES_MAX);
    assert_int_equal(count_prefix(t, "/f/mine"), 5000);
    assert_int_equal(count_prefix(t, "/f/sys"), 20000);
    assert_in_range(count_prefix(t, "/f/hog"), 1, TRACE_RECORD_USER_FILES_MAX);
    assert_in_range(count_prefix(t, "/f/pig"), 1, TRACE_RECORD_USER_FILES_MAX);
    trace_free(t);
}

static void a_users_own_flood_keeps_what_the_model_knows(void **state)
{
    _cleanup_model_ Model *m = model_new(H);
    Trace *t = trace_new(STAGE_LOGIN);
    size_t dropped;

    (void)state;
    learn_files(&m, STAGE_LOGIN, 1000, T0, "known", 100);
    t->uid = 1000;
    add_files(t, 1000, "A", "flood", 2 * TRACE_RECORD_USER_FILES_MAX);
    for (unsigned i = 0; i < 100; i++) {
        uint32_t path, file;
        char text[32];

        snprintf(text, sizeof(text), "/f/known%04u", i);
        assert_int_equal(trace_add_path(t, text, &path), 0);
        assert_int_equal(trace_add_file(t, path, TRACE_NONE, false, &file), 0);
        assert_int_equal(trace_add_access(t, &(TraceAccess){.file = file, .application = 0}), 0);
    }
    trace_end_building(t);
    assert_int_equal(model_select(m, t, &dropped), 0);
    assert_int_equal(count_prefix(t, "/f/known"), 100);
    assert_int_equal(t->n_files, TRACE_RECORD_USER_FILES_MAX);
    assert_int_equal(dropped, TRACE_RECORD_USER_FILES_MAX + 101);
    trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(what_fits_stays),
            cmocka_unit_test(a_user_keeps_what_most_sessions_use),
            cmocka_unit_test(the_largest_users_are_cut_to_one_size),
            cmocka_unit_test(a_session_does_not_displace_a_login),
            cmocka_unit_test(metadata_keeps_a_quarter_the_most_frequent_first),
            cmocka_unit_test(bytes_that_json_escapes_cost_more),
            cmocka_unit_test(a_trace_loses_files_with_all_that_refers_to_them),
            cmocka_unit_test(another_user_in_a_login_does_not_displace_its_files),
            cmocka_unit_test(a_users_own_flood_keeps_what_the_model_knows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
