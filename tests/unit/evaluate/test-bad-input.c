/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests that traces and models with errors that a machine can make cause no crash, and no
 * probability outside 0..1. The tests run all steps: trace -> model -> prediction, and trace ->
 * simulator -> every predictor. The tests of each step contain the errors that this step refuses
 * (test-trace-json.c, test-model-json.c, test-processes.c, test-chains.c,
 * test-evaluate-bad-input.c). */

#include "evaluate/trace-input.h"
#include "util/model-util.h"

#include <ctype.h>

static void assert_probability(double p)
{
    assert_true(p >= 0 && p <= 1); /* written so that NaN fails */
}

static void assert_sane_prediction(const Model *m, Stage stage, uint32_t uid)
{
    _cleanup_prediction_ Prediction *p = predict(m, stage, uid);

    for (size_t i = 0; i < p->n_files; i++) {
        assert_probability(p->files[i].probability);
        for (size_t k = 0; k < p->files[i].n_maps; k++)
            assert_probability(p->files[i].maps[k].probability);
    }
    for (size_t i = 0; i < p->n_metadata; i++)
        assert_probability(p->metadata[i].range.probability);
}

static void assert_sane_chains(const Chains *c)
{
    for (size_t k = 0; c && k < c->n_histories; k++)
        for (size_t j = 0; j < c->histories[k]->n_pairs; j++) {
            ChainsStates s;

            chains_states(c, c->histories[k], &c->histories[k]->pairs[j], &s);
            for (unsigned a = 0; a < 4; a++) {
                assert_true(s.dwell_usec[a] >= 0 && isfinite(s.dwell_usec[a]));
                for (unsigned b = 0; b < 4; b++)
                    assert_true(s.n[a][b] >= 0 && isfinite(s.n[a][b]));
            }
        }
}

/* Predicts every stage and user of the model, predicts for an unknown user, and saves the model. */
static void assert_sane_model(const Model *m)
{
    _cleanup_free_ char *text _unused_ = bytes_of(m);

    for (size_t i = 0; i < m->n_stages; i++) {
        assert_sane_prediction(m, m->stages[i].stage, m->stages[i].uid);
        assert_sane_prediction(m, m->stages[i].stage, UID_INVALID);
    }
    assert_sane_prediction(m, STAGE_SESSION, 4711);
    assert_sane_chains(m->chains);
}

/* Simulates the traces at both levels with every predictor. */
static void assert_simulated(Trace *const *traces, size_t n)
{
    for (TraceLevel level = 0; level < _TRACE_LEVEL_MAX; level++) {
        _cleanup_trace_input_ TraceInput *t = NULL;
        _cleanup_simulate_input_ SimulateInput in = {0};

        assert_int_equal(trace_input_new(level, &t), 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(trace_input_add(t, traces[i]), 0);
        assert_int_equal(trace_input_finish(t, &in), 0);
        for (size_t i = 0; predictor_name(i); i++) {
            _cleanup_predictor_ Predictor *p = NULL;
            SimulateParameters sp;
            SimulateReport r;

            simulate_parameters_init(&sp);
            sp.training = 0;
            if (i % 2)
                simulate_bound_waste(&sp, 0.2);
            sp.io_fixed_usec = 10 * USEC_PER_MSEC;
            sp.io_bytes_per_sec = 1; /* each read takes longer than the whole trace */
            sp.cycle = i % 4 == 0 ? 20 * USEC_PER_SEC : 0;
            assert_int_equal(predictor_new(predictor_name(i), NULL, 1, &p), 0);
            assert_int_equal(simulate(&in, &sp, p, &r), 0);
            for (unsigned b = 0; b < SIMULATE_BINS; b++) {
                assert_true(r.bins[b].used <= r.bins[b].n);
                if (r.bins[b].n > 0)
                    assert_probability(r.bins[b].sum / (double)r.bins[b].n - 1e-9);
            }
            assert_true(r.n_selected <= r.n_objects && r.n_cached + r.n_late <= r.n_objects);
            assert_true(r.wasted_bytes <= r.read_bytes);
            assert_true(isfinite(r.log_loss) && isfinite(r.next_log_loss) && r.log_loss >= 0);
            assert_true(isnan(r.hit_rate) || (r.hit_rate >= 0 && r.hit_rate <= 1));
        }
    }
}

/* Learns and simulates a trace, alone and after an ordinary one. */
static void assert_survived(Trace *t)
{
    _cleanup_trace_ Trace *ordinary =
            session(STAGE_SESSION, 1000, T0, 0, "A>x=0-2 B>y=1-2 A>d/ ?>z=0-1", "0-2");
    Trace *both[] = {ordinary, t};
    _cleanup_model_ Model *alone = model_new(H), *second = model_new(H);

    assert_int_equal(model_learn(&alone, t, T0 + H), 0);
    assert_sane_model(alone);
    assert_int_equal(model_learn(&second, ordinary, T0 + H), 0);
    assert_int_equal(model_learn(&second, t, T0 + H), 0);
    assert_sane_model(second);
    assert_simulated(both + 1, 1);
    assert_simulated(both, 2);
}

static void lives(Trace *t, uint32_t application, uint32_t pid, usec_t start, usec_t end)
{
    assert_int_equal(trace_add_lifetime(t, &(TraceLifetime){application, pid, 1000, start, end}),
                     0);
}

/* The order in which traces are learned does not change the model. */
static void traces_out_of_order(void **state)
{
    static const unsigned orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    _cleanup_free_ char *first = NULL;
    Trace *t[3];

    for (unsigned i = 0; i < 3; i++)
        t[i] = session(STAGE_SESSION, 1000, T0 + i * 3 * H, 0,
                       i == 1 ? "A>x=0-2 B>y" : "B>y=3-4 A>d/", "0-2");
    for (unsigned k = 0; k < ELEMENTSOF(orders); k++) {
        _cleanup_model_ Model *m = model_new(H);
        _cleanup_free_ char *text = NULL;

        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(model_learn(&m, t[orders[k][i]], T0 + 7 * H), 0);
        assert_sane_model(m);
        text = bytes_of(m);
        if (!first)
            first = TAKE_PTR(text);
        else
            assert_string_equal(text, first);
    }
    /* The simulator takes the traces in the order of this array, one session after the other. */
    assert_simulated(t, 3);
    for (unsigned i = 0; i < 3; i++)
        trace_free(t[i]);
}

/* The clock jumps within a trace (the machine was suspended), and between traces. */
static void clock_jumps(void **state)
{
    static const usec_t starts[] = {0, 1, T0, T0 + 1000 * H, (usec_t)INT64_MAX};

    for (unsigned i = 0; i < ELEMENTSOF(starts); i++) {
        _cleanup_trace_ Trace *t =
                session(STAGE_SESSION, 1000, starts[i], 0, "A>x=0-2 B>y=1-2 A>y", NULL);

        lives(t, 0, 7, USEC_PER_SEC, 3 * USEC_PER_SEC);
        lives(t, 1, 8, 2 * USEC_PER_SEC, USEC_INFINITY);
        t->accesses[2].at = 100 * 365 * 24 * USEC_PER_HOUR; /* a hundred years later */
        t->duration = t->accesses[2].at + 1;
        lives(t, 0, 9, t->accesses[2].at, t->accesses[2].at);
        assert_survived(t);
    }
}

/* One pid has two lifetimes at the same time, of one application and of two applications. Lifetimes
 * end before they start, or after the end of the trace. */
static void duplicate_pids(void **state)
{
    _cleanup_trace_ Trace *t = session(STAGE_SESSION, 1000, T0, 0, "A>x=0-2 B>y=1-2 A>z", "0-2");

    for (unsigned i = 0; i < 3; i++) {
        lives(t, 0, 7, i * USEC_PER_SEC, 5 * USEC_PER_SEC);
        lives(t, 1, 7, i * USEC_PER_SEC, USEC_INFINITY);
        lives(t, 1, 0, 4 * USEC_PER_SEC, 4 * USEC_PER_SEC);
        t->lifetimes[t->n_lifetimes - 1].end = USEC_PER_SEC;
        lives(t, 0, UINT32_MAX, 1000 * USEC_PER_SEC, 2000 * USEC_PER_SEC);
    }
    assert_survived(t);
}

/* Many processes start and exit at one instant; others do so at the beginning and at the end. */
static void start_and_exit_in_one_batch(void **state)
{
    _cleanup_trace_ Trace *t = session(STAGE_SESSION, 1000, T0, 0, "A>x=0-2 B>y=1-2", NULL);

    for (unsigned i = 0; i < 50; i++) {
        lives(t, 0, 100 + i, 2 * USEC_PER_SEC, 2 * USEC_PER_SEC);
        lives(t, 1, 200 + i, 2 * USEC_PER_SEC, 2 * USEC_PER_SEC);
    }
    lives(t, 1, 300, 0, 0);
    lives(t, 1, 301, t->duration, t->duration);
    assert_survived(t);
}

static void one_event_and_none(void **state)
{
    for (unsigned k = 0; k < 6; k++) {
        _cleanup_trace_ Trace *t = session(STAGE_SESSION, k % 2 ? UID_INVALID : 1000, T0, 0,
                                           k == 0   ? ""
                                           : k == 1 ? "?>x"
                                           : k == 2 ? "A>x=0-1"
                                           : k == 3 ? "?>d/"
                                                    : "A>x",
                                           k == 2 ? "0-1" : NULL);

        if (k >= 4) {
            t->n_accesses = 0; /* only a start */
            lives(t, 0, 1, 0, k == 4 ? 0 : USEC_INFINITY);
        }
        if (k == 5)
            t->duration = 0;
        assert_int_equal(trace_validate(t), 0);
        assert_survived(t);
    }
}

static Chains *some_chains(unsigned n_applications)
{
    Chains *c;
    UserHistory *w;
    usec_t now = T0;

    assert_int_equal(chains_new(H, 600 * USEC_PER_SEC, &c), 0);
    assert_int_equal(chains_history(c, 1000, &w), 0);
    for (unsigned i = 0; i < n_applications; i++) {
        uint32_t id;
        char name[32];

        snprintf(name, sizeof(name), "/bin/%u", i);
        assert_int_equal(chains_add_name(c, name, &id), 0);
    }
    for (unsigned round = 0; round < 3; round++) {
        chains_set_time(c, (EventTime){now, now});
        assert_int_equal(chains_begin(c, w->user), 0);
        for (unsigned i = 0; i < n_applications; i++) {
            now += 30 * USEC_PER_SEC;
            chains_set_time(c, (EventTime){now, now});
            assert_int_equal(chains_start(c, i), 1);
            if (i > 0)
                chains_exit(c, i - 1);
        }
        chains_end(c);
    }
    return c;
}

/* Replaces the numbers of a model one by one: by NaN, a negative, a fractional, a too large, and
 * another number. The result is refused, or is an ordinary model. */
static void every_number_is_wrong(void **state)
{
    static const char *const values[] = {"NaN",
                                         "-1",
                                         "-0.5",
                                         "0.5",
                                         "Infinity",
                                         "1e400",
                                         "null",
                                         "18446744073709551616",
                                         "9223372036854775807",
                                         "0"};
    _cleanup_model_ Model *m =
            model_of(session(STAGE_SESSION, 1000, T0, 0, "A>x=0-2 B>y=1-2 ?>d/", "0-2,4-6"));
    _cleanup_free_ char *text = NULL;
    unsigned n_numbers = 0, n_accepted = 0;

    m->chains = some_chains(3);
    text = bytes_of(m);
    assert_sane_model(m);
    for (size_t i = 1; text[i]; i++) {
        size_t l = 0;

        if (!isdigit((unsigned char)text[i]) || !strchr(":,[", text[i - 1]))
            continue;
        while (isdigit((unsigned char)text[i + l]))
            l++;
        n_numbers++;
        for (unsigned k = 0; k < ELEMENTSOF(values); k++) {
            _cleanup_free_ char *changed = NULL, *error = NULL;
            _cleanup_model_ Model *read = NULL;
            int n = asprintf(&changed, "%.*s%s%s", (int)i, text, values[k], text + i + l), r;

            assert_true(n > 0);
            r = model_from_json(changed, (size_t)n, &read, &error);
            if (r < 0) {
                assert_true(r == -EBADMSG || r == -EPROTONOSUPPORT || r == -E2BIG);
                assert_true(error && !strchr(error, '\n'));
                continue;
            }
            /* Only the whole numbers (k >= 8) can be accepted, and -1 in members in which it means
             * that there is no value. */
            assert_true(k >= 8 || strcmp(values[k], "-1") == 0);
            assert_sane_model(read);
            n_accepted++;
        }
    }
    assert_true(n_numbers > 150 && n_accepted > 0);
}

/* Saves, restores and merges chains with no, one and 10,000 applications, and predicts from them.
 */
static void none_and_ten_thousand_applications(void **state)
{
    static const unsigned sizes[] = {0, 1, 10000};

    for (unsigned k = 0; k < ELEMENTSOF(sizes); k++) {
        _cleanup_trace_ Trace *t = session(STAGE_SESSION, 1000, T0, 0, "", NULL);
        _cleanup_model_ Model *m = model_new(H), *back = NULL, *both = NULL, *empty = model_new(H);
        _cleanup_free_ char *text = NULL;

        t->duration = sizes[k] * USEC_PER_SEC;
        for (uint32_t i = 0; i < sizes[k]; i++) {
            char name[32];
            TraceAccess a = {.at = i * USEC_PER_SEC, .kind = ACCESS_EXEC};

            snprintf(name, sizeof(name), "%u", i);
            a.file = test_file(t, "/bin", name, false);
            assert_int_equal(trace_add_application(t, a.file, &a.application), 0);
            assert_int_equal(trace_add_access(t, &a), 0);
            lives(t, a.application, i, a.at, i % 3 ? a.at + 5 * USEC_PER_SEC : USEC_INFINITY);
        }
        if (k > 0)
            assert_int_equal(model_learn(&m, t, T0 + 60), 0);
        m->chains = some_chains(sizes[k]);
        assert_sane_model(m);
        text = bytes_of(m);
        assert_int_equal(model_from_json(text, strlen(text), &back, NULL), 0);
        assert_same(m, back);
        assert_int_equal(model_merge(back, empty, &both), 0);
        assert_same(m, both);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(traces_out_of_order),
            cmocka_unit_test(clock_jumps),
            cmocka_unit_test(duplicate_pids),
            cmocka_unit_test(start_and_exit_in_one_batch),
            cmocka_unit_test(one_event_and_none),
            cmocka_unit_test(every_number_is_wrong),
            cmocka_unit_test(none_and_ten_thousand_applications),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
