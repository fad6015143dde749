/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests recorded traces as input of the simulator: order, sessions, sizes, invalid traces, and one
 * number for a name that several traces contain. */

#include "evaluate/trace-input.c" // NOLINT(bugprone-suspicious-include)
#include "util/evaluate-util.h"
#include "util/range-util.h"

/* Returns the path of an item, or NULL if there is no such item. */
static const char *trace_input_name(const TraceInput *t, uint32_t item)
{
    const Names *n = t->level == TRACE_LEVEL_FILES ? &t->objects : &t->items;

    return item < n->n ? n->names[item] : NULL;
}

static uint32_t file(Trace *t, const char *path, uint64_t bytes)
{
    uint32_t p, f;

    assert_int_equal(trace_add_path(t, path, &p), 0);
    assert_int_equal(trace_add_file(t, p, TRACE_NONE, false, &f), 0);
    if (bytes > 0 && t->files[f].resident.n == 0)
        assert_int_equal(range_set_insert_span(&t->files[f].resident, 0, bytes), 0);
    return f;
}

/* Makes a trace of two applications that share a library. The second application starts and exits
 * in one instant. */
static Trace *make_trace(uint32_t uid, const char *first, const char *second)
{
    Trace *t = trace_new(STAGE_SESSION);
    uint32_t a, b, lib, x, y;

    assert_non_null(t);
    t->uid = uid;
    t->duration = 100;
    a = file(t, first, 4096);
    b = file(t, second, 8192);
    lib = file(t, "/lib/c", 12288);
    assert_int_equal(trace_add_application(t, a, &x), 0);
    assert_int_equal(trace_add_application(t, b, &y), 0);
    /* The lifetimes are not in order of time. */
    assert_int_equal(trace_add_lifetime(t, &(TraceLifetime){y, 2, uid, 50, 50}), 0);
    assert_int_equal(trace_add_lifetime(t, &(TraceLifetime){x, 1, TRACE_NONE, 10, 60}), 0);
    assert_int_equal(trace_add_lifetime(t, &(TraceLifetime){x, 1, uid, 20, USEC_INFINITY}), 0);
    assert_int_equal(trace_add_access(t, &(TraceAccess){10, a, x, ACCESS_EXEC}), 0);
    assert_int_equal(trace_add_access(t, &(TraceAccess){11, lib, x, ACCESS_OPEN}), 0);
    assert_int_equal(trace_add_access(t, &(TraceAccess){12, lib, x, ACCESS_READ}), 0);
    assert_int_equal(trace_add_access(t, &(TraceAccess){50, b, y, ACCESS_EXEC}), 0);
    assert_int_equal(trace_add_access(t, &(TraceAccess){51, lib, y, ACCESS_OPEN}), 0);
    assert_int_equal(trace_add_access(t, &(TraceAccess){52, lib, TRACE_NONE, ACCESS_OPEN}), 0);
    return t;
}

static void assert_event(const SimulateInput *in, size_t i, SimulateEventKind kind, usec_t at,
                         uint32_t user, uint32_t item)
{
    assert_true(i < in->n_events);
    assert_int_equal(in->events[i].kind, kind);
    assert_int_equal(in->events[i].at, at);
    assert_int_equal(in->events[i].user, user);
    assert_int_equal(in->events[i].item, item);
}

static void test_applications(void **state)
{
    _cleanup_trace_ Trace *one = make_trace(1000, "/bin/a", "/bin/b"),
                          *two = make_trace(1001, "/bin/b", "/bin/d");
    _cleanup_trace_input_ TraceInput *t = NULL;
    _cleanup_simulate_input_ SimulateInput in = {0};
    usec_t later = 100 + USEC_PER_SEC;

    one->start_realtime = 5000;
    two->start_realtime = 4000;
    assert_int_equal(trace_input_new(TRACE_LEVEL_APPLICATIONS, &t), 0);
    assert_int_equal(trace_input_add(t, one), 0);
    assert_int_equal(trace_input_add(t, two), 0);
    assert_int_equal(trace_input_finish(t, &in), 0);
    assert_string_equal(trace_input_name(t, 0), "/bin/a");
    assert_string_equal(trace_input_name(t, 1), "/bin/b"); /* the same number in both traces */
    assert_string_equal(trace_input_name(t, 2), "/bin/d");
    assert_null(trace_input_name(t, 3));
    assert_int_equal(in.n_items, 3);
    assert_int_equal(in.n_objects, 4);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(in.items[i].n, 2); /* itself and the library */
    assert_int_equal(in.n_events, 14);
    assert_event(&in, 0, SIMULATE_BEGIN, 0, 1000, 0);
    assert_event(&in, 1, SIMULATE_START, 10, 1000, 0);
    assert_event(&in, 2, SIMULATE_START, 20, 1000, 0);
    assert_event(&in, 3, SIMULATE_START, 50, 1000, 1);
    assert_event(&in, 4, SIMULATE_EXIT, 50, 1000, 1);
    assert_event(&in, 5, SIMULATE_EXIT, 60, 1000, 0);
    assert_event(&in, 6, SIMULATE_END, 100, 1000, 0);
    assert_event(&in, 7, SIMULATE_BEGIN, later, 1001, 0);
    assert_event(&in, 8, SIMULATE_START, later + 10, 1001, 1);
    assert_int_equal(in.events[0].realtime, 5000);
    assert_int_equal(in.events[7].realtime, 4000);
    assert_int_equal(in.events[8].realtime, 0);
}

static void test_files(void **state)
{
    _cleanup_trace_ Trace *one = make_trace(1000, "/bin/a", "/bin/b");
    _cleanup_trace_input_ TraceInput *t = NULL;
    _cleanup_simulate_input_ SimulateInput in = {0};
    static const uint32_t items[] = {0, 2, 1, 2, 2}; /* reads are not separate accesses */

    assert_int_equal(trace_input_new(TRACE_LEVEL_FILES, &t), 0);
    assert_int_equal(trace_input_add(t, one), 0);
    assert_int_equal(trace_input_finish(t, &in), 0);
    assert_int_equal(in.n_items, 3);
    assert_int_equal(in.object_bytes[2], 12288);
    assert_int_equal(in.n_events, 7);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(in.events[1 + i].item, items[i]);
        assert_int_equal(in.events[1 + i].kind, SIMULATE_ACCESS);
    }
    assert_string_equal(trace_input_name(t, 2), "/lib/c");
}

/* Every predictor can be simulated with recorded traces. */
static void test_simulated(void **state)
{
    for (TraceLevel level = 0; level < _TRACE_LEVEL_MAX; level++) {
        _cleanup_trace_input_ TraceInput *t = NULL;
        _cleanup_simulate_input_ SimulateInput in = {0};

        assert_int_equal(trace_input_new(level, &t), 0);
        for (unsigned i = 0; i < 4; i++) {
            _cleanup_trace_ Trace *one = make_trace(1000 + i % 2, "/bin/a", "/bin/b");

            assert_int_equal(trace_input_add(t, one), 0);
        }
        assert_int_equal(trace_input_finish(t, &in), 0);
        for (size_t i = 0; predictor_name(i); i++) {
            _cleanup_predictor_ Predictor *p = make_predictor(predictor_name(i), NULL);
            SimulateParameters sp;
            SimulateReport r;

            simulate_parameters_init(&sp);
            assert_int_equal(simulate(&in, &sp, p, &r), 0);
            assert_true(r.n_scored > 0);
        }
    }
}

/* Adds traces with times after the end or before the start, traces with invalid indexes, an empty
 * trace, and no trace. */
static void test_broken(void **state)
{
    _cleanup_trace_input_ TraceInput *t = NULL;
    _cleanup_simulate_input_ SimulateInput in = {0}, nothing = {0};
    usec_t last = 0;

    assert_int_equal(trace_input_new(TRACE_LEVEL_APPLICATIONS, &t), 0);
    assert_int_equal(trace_input_finish(t, &nothing), 0);
    assert_int_equal(nothing.n_events, 0);
    {
        _cleanup_trace_ Trace *one = make_trace(1000, "/bin/a", "/bin/b");

        one->lifetimes[0].start = 5000;
        one->lifetimes[1].end = 3; /* before its start */
        one->lifetimes[2].start = USEC_INFINITY;
        assert_int_equal(trace_input_add(t, one), 0);
        one->duration = USEC_INFINITY;
        assert_int_equal(trace_input_add(t, one), -E2BIG);
    }
    {
        _cleanup_trace_ Trace *empty = trace_new(STAGE_LOGIN);

        assert_int_equal(trace_input_add(t, empty), 0);
    }
    assert_int_equal(trace_input_finish(t, &in), 0);
    for (size_t i = 0; i < in.n_events; i++) {
        assert_true(in.events[i].at >= last);
        last = in.events[i].at;
    }
    for (unsigned k = 0; k < 4; k++) {
        _cleanup_trace_ Trace *bad = make_trace(1000, "/bin/a", "/bin/b");
        _cleanup_trace_input_ TraceInput *u = NULL;

        assert_int_equal(trace_input_new(k == 3 ? TRACE_LEVEL_FILES : TRACE_LEVEL_APPLICATIONS, &u),
                         0);
        if (k == 0)
            bad->lifetimes[1].application = 99;
        else if (k == 1)
            bad->applications[0].file = 99;
        else if (k == 2)
            bad->accesses[0].application = 99;
        else
            bad->accesses[0].file = 99;
        assert_int_equal(trace_input_add(u, bad), -EBADMSG);
    }
    assert_int_equal(trace_input_new(_TRACE_LEVEL_MAX, &t), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_applications),
            cmocka_unit_test(test_files),
            cmocka_unit_test(test_simulated),
            cmocka_unit_test(test_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
