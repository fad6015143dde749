/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests that the rounded sums of an export (model_make_portable()) hide when a session began, and
 * stay valid. */

#include "util/model-util.h"

#define HOUR USEC_PER_HOUR
#define DAY  (24 * HOUR)

/* Learns a session of the stage, in which a start of /bin/A opens files of the distribution. */
static void learn_uses(Model **m, Stage stage, usec_t at, const char *uses)
{
    Trace *t = session(stage, 1000, at, 0, uses, NULL);

    start_all(t);
    learn(m, t);
}

/* Makes the export of a machine with one login and one session, which began at `at`. */
static Model *exported_day(usec_t at)
{
    _cleanup_model_ Model *m = model_new(H);
    Model *portable;

    learn_uses(&m, STAGE_LOGIN, at, "A>/usr/share/x=0-2 A>/usr/share/y=1-3");
    learn_uses(&m, STAGE_SESSION, at, "A>/usr/share/x=0-2 A>/usr/share/y=1-3");
    assert_int_equal(m->stages[0].sessions.current, decayed_sum_weight(at, H));
    assert_int_equal(model_make_portable(m, &portable), 0);
    return portable;
}

/* The only session of a machine began in the morning or in the evening: the exports are equal. */
static void an_export_hides_when_a_session_began(void **state)
{
    const usec_t day = T0 + 5 * DAY;
    _cleanup_model_ Model *morning = exported_day(day + 9 * HOUR),
                          *evening = exported_day(day + 21 * HOUR);

    assert_int_not_equal(decayed_sum_weight(day + 9 * HOUR, H),
                         decayed_sum_weight(day + 21 * HOUR, H));
    assert_same(morning, evening);
    assert_int_equal(morning->n_stages, 2);
    /* Times survive nearly. */
    for (size_t i = 0; i < morning->stages[0].n_files; i++) {
        const ModelStageFile *f = &morning->stages[0].files[i];
        bool is_y = f->file == model_find_file(morning, "/usr/share/y");

        assert_true(fabs((double)model_first_use(f) / (is_y ? 2e6 : 1e6) - 1) < 1.0 / 16);
    }
    for (size_t i = 0, n = morning->stages[1].n_uses; i < n; i++) {
        const ModelUse *u = &morning->stages[1].uses[i];

        assert_int_not_equal(u->launched.current, 0);
        assert_int_not_equal(u->delay.current, 0);
    }
}

static void assert_rounded(DecayedSum part, DecayedSum whole)
{
    DecayedSum again = decayed_sum_round(part);

    assert_true(again.current == part.current && again.previous == part.previous);
    assert_true(decayed_sum_within(part, whole));
}

static void assert_residency_rounded(const ModelResidency *known, DecayedSum used)
{
    assert_rounded(known->sessions, used);
    for (size_t i = 0; i < known->ranges.n; i++)
        assert_rounded(known->ranges.ranges[i].weight, known->sessions);
}

static void assert_stage_rounded(const ModelStage *s)
{
    assert_rounded(s->sessions, s->sessions);
    assert_rounded(s->late, s->sessions);
    for (size_t i = 0; i < s->n_applications; i++) {
        assert_rounded(s->applications[i].active, s->sessions);
        assert_rounded(s->applications[i].launched, s->applications[i].active);
    }
    for (size_t i = 0; i < s->n_uses; i++) {
        const ModelUse *u = &s->uses[i];

        assert_rounded(u->used, s->applications[u->application].active);
        assert_rounded(u->launched, u->used);
    }
    for (size_t i = 0; i < s->n_files; i++) {
        assert_rounded(s->files[i].used, s->sessions);
        assert_rounded(s->files[i].looked_up, s->files[i].used);
        for (Residency k = 0; k < _RESIDENCY_MAX; k++)
            assert_residency_rounded(&s->files[i].residency[k], s->files[i].used);
    }
}

/* Learns sessions of two generations, in which files are used more or less often. */
static Model *many_sessions(void)
{
    Model *m = model_new(H);

    for (unsigned i = 0; i < 60; i++) {
        const usec_t at = T0 + 14 * H + i * 11 * HOUR;
        Trace *t = session(i % 2 ? STAGE_LOGIN : STAGE_SESSION, 1000 + i % 3, at,
                           i % 7 == 0 ? TRACE_EXACT : 0,
                           i % 5 < 3 ? "A>/usr/share/x=0-2 B>/usr/share/y=0-1 A>/usr/share/z=0-3"
                                     : "A>/usr/share/x=1-4 ?>/usr/share/z=2-5",
                           NULL);
        TraceAccess a = {.at = 9 * USEC_PER_SEC, .application = TRACE_NONE};

        a.file = test_file(t, "/usr/share", "icons", true);
        t->files[a.file].looked_up = i % 4 > 0;
        assert_int_equal(trace_add_access(t, &a), 0);
        start_all(t);
        learn(&m, t);
    }
    return m;
}

static void rounded_sums_keep_their_order(void **state)
{
    _cleanup_model_ Model *m = many_sessions(), *portable = NULL, *again = NULL, *back = NULL;
    _cleanup_prediction_ Prediction *p = NULL;
    _cleanup_free_ char *text = NULL;

    assert_int_equal(model_make_portable(m, &portable), 0);
    assert_int_equal(portable->n_stages, 2);
    for (size_t i = 0; i < portable->n_stages; i++) {
        assert_int_not_equal(portable->stages[i].sessions.previous, 0);
        assert_int_not_equal(portable->stages[i].sessions.current, 0);
        assert_stage_rounded(&portable->stages[i]);
    }
    for (size_t i = 0; i < portable->n_files; i++)
        assert_rounded(portable->files[i].as_directory, portable->files[i].as_directory);
    /* A file of all sessions stays certain. */
    p = predict(portable, STAGE_LOGIN, UID_INVALID);
    assert_near(chance(p, "/usr/share/x"), 1);
    assert_true(chance(p, "/usr/share/y") < 1);
    /* `merge --per-machine` rounds an export again. */
    assert_int_equal(model_make_portable(portable, &again), 0);
    assert_same(portable, again);
    text = bytes_of(portable);
    assert_int_equal(model_from_json(text, strlen(text), &back, NULL), 0);
    assert_same(portable, back);
}

/* After rounding, ranges that touch can have equal weights. The reader refuses two such ranges. */
static void rounded_ranges_stay_valid(void **state)
{
    _cleanup_model_ Model *m = model_new(H), *portable = NULL, *back = NULL;
    _cleanup_free_ char *text = NULL;

    learn_uses(&m, STAGE_LOGIN, T0 + 5 * DAY + 9 * HOUR, "A>/usr/share/x=0-1");
    learn_uses(&m, STAGE_LOGIN, T0 + 5 * DAY + 21 * HOUR, "A>/usr/share/x=1-2");
    assert_int_equal(model_make_portable(m, &portable), 0);
    for (size_t i = 0; i < portable->stages[0].n_files; i++)
        if (portable->stages[0].files[i].file == model_find_file(portable, "/usr/share/x"))
            assert_int_equal(portable->stages[0].files[i].residency[RESIDENCY_OBSERVED].ranges.n,
                             1);
    text = bytes_of(portable);
    assert_int_equal(model_from_json(text, strlen(text), &back, NULL), 0);
    assert_same(portable, back);
}

/* A count of a few, which only a clock that was set back or a forged file leaves, stays, and a
 * second rounding changes nothing although means of such counts are not exact. */
static void small_counts_survive(void **state)
{
    _cleanup_model_ Model *m = exported_day(T0);
    ModelStage *s = &m->stages[0];

    for (uint64_t count = 1; count < 600; count += count < 20 ? 1 : 7)
        for (uint64_t msec = 0; msec < 20000; msec = msec * 3 / 2 + 1) {
            _cleanup_model_ Model *once = NULL, *twice = NULL;

            s->sessions = (DecayedSum){1024, 0};
            s->files[0].used = (DecayedSum){count, count / 2};
            s->files[0].first_use = (DecayedSum){msec, msec * 2};
            s->files[0].residency[RESIDENCY_OBSERVED].sessions = (DecayedSum){0};
            weighted_ranges_done(&s->files[0].residency[RESIDENCY_OBSERVED].ranges);
            assert_int_equal(model_make_portable(m, &once), 0);
            if (count < 16)
                assert_int_equal(once->stages[0].files[0].used.current, count);
            assert_int_equal(model_make_portable(once, &twice), 0);
            assert_same(once, twice);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(an_export_hides_when_a_session_began),
            cmocka_unit_test(rounded_sums_keep_their_order),
            cmocka_unit_test(rounded_ranges_stay_valid),
            cmocka_unit_test(small_counts_survive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
