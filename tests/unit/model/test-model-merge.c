/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests that merging is exact, associative and commutative, and that learning is a merge: the
 * models are written as equal bytes. */

#include "model/model-learn.c" // NOLINT(bugprone-suspicious-include)

#include "evaluate/random.h"
#include "util/chains-util.h"
#include "util/model-util.h"
#include "util/synthetic.h"

/* Makes the model of one session, without a merge. */
static Model *model_of_session(const Trace *t, usec_t now)
{
    Model *m;

    assert_true(t->start_realtime >= MODEL_CLOCK_MIN);
    assert_int_equal(learn_at(t, H, MIN(t->start_realtime, now), &m), 0);
    return m;
}

/* Draws a session with few names, so that sessions have names in common. The times of the sessions
 * span four generations. */
static Trace *random_session(Random *r)
{
    Trace *t;

    static const unsigned flags[] = {0, 0, 0, TRACE_REPLAYED, TRACE_RESIDENCY_OFF, TRACE_EXACT};
    static const usec_t steps[] = {
            0, 1, H / 3, 5 * H, DECAYED_SUM_SPAN * H, 3 * DECAYED_SUM_SPAN * H};
    Stage stage = (Stage)random_below(r, _STAGE_MAX);
    char uses[1000] = "", metadata[100];

    for (unsigned i = 1 + random_below(r, 8); i > 0; i--) {
        bool directory = random_below(r, 5) == 0;
        unsigned a = random_below(r, 8);
        size_t l = strlen(uses);

        l += (size_t)snprintf(uses + l, sizeof(uses) - l, "%s%c>%c", l > 0 ? " " : "",
                              random_below(r, 9) ? 'A' + (char)random_below(r, 4) : '?',
                              'p' + (char)random_below(r, 8));
        if (directory)
            snprintf(uses + l, sizeof(uses) - l, "/");
        else
            snprintf(uses + l, sizeof(uses) - l, "=%u-%u", a, a + 1 + random_below(r, 4));
    }
    snprintf(metadata, sizeof(metadata), "%u-20,%u-40", random_below(r, 20),
             21 + random_below(r, 10));
    t = session(stage, stage == STAGE_BOOT ? UID_INVALID : 1000 + random_below(r, 2),
                T0 + steps[random_below(r, ELEMENTSOF(steps))] + random_below(r, 3) * H,
                flags[random_below(r, ELEMENTSOF(flags))], uses,
                random_below(r, 4) ? metadata : NULL);
    if (random_below(r, 2))
        touch(t, random_below(r, 2) ? "0-1,3-5" : "2-4");
    return t;
}

#define NOW (T0 + 20 * DECAYED_SUM_SPAN * H)

static Model *random_model(Random *r, unsigned n)
{
    Model *m = model_new(H);

    for (; n > 0; n--) {
        _cleanup_trace_ Trace *t = random_session(r);

        assert_int_equal(model_learn(&m, t, NOW), 0);
    }
    return m;
}

static void any_order_and_grouping(void **state)
{
    Random r = {7};

    for (unsigned round = 0; round < 150; round++) {
        _cleanup_model_ Model *a = random_model(&r, random_below(&r, 4)),
                              *b = random_model(&r, 1 + random_below(&r, 3)),
                              *c = random_model(&r, 1 + random_below(&r, 3));
        _cleanup_model_ Model *ab = merged(a, b), *ba = merged(b, a), *bc = merged(b, c),
                              *ac = merged(a, c);
        _cleanup_model_ Model *ab_c = merged(ab, c), *a_bc = merged(a, bc), *ac_b = merged(ac, b);

        assert_same(ab, ba);
        assert_same(ab_c, a_bc);
        assert_same(ab_c, ac_b);
    }
}

static void nothing_changes_nothing(void **state)
{
    Random r = {8};
    _cleanup_model_ Model *empty = model_new(H);

    for (unsigned round = 0; round < 100; round++) {
        _cleanup_trace_ Trace *t = random_session(&r);
        _cleanup_model_ Model *one = model_of_session(t, NOW), *sum = merged(one, empty);

        assert_same(one, sum);
    }
    {
        _cleanup_model_ Model *sum = merged(empty, empty);

        assert_same(sum, empty);
    }
}

/* Any distribution of the traces to machines, in any order, gives the same model. */
static void parts_make_the_whole(void **state)
{
    Random r = {9};

    for (unsigned round = 0; round < 60; round++) {
        _cleanup_model_ Model *whole = model_new(H), *backwards = model_new(H), *sum = NULL;
        Model *parts[] = {model_new(H), model_new(H), model_new(H)};
        Trace *traces[12];

        for (size_t i = 0; i < ELEMENTSOF(traces); i++)
            traces[i] = random_session(&r);
        for (size_t i = 0; i < ELEMENTSOF(traces); i++) {
            assert_int_equal(model_learn(&whole, traces[i], NOW), 0);
            assert_int_equal(model_learn(&parts[random_below(&r, 3)], traces[i], NOW), 0);
        }
        for (size_t i = ELEMENTSOF(traces); i-- > 0;) {
            assert_int_equal(model_learn(&backwards, traces[i], NOW), 0);
            trace_free(traces[i]);
        }
        {
            _cleanup_model_ Model *two = merged(parts[2], parts[0]);

            sum = merged(two, parts[1]);
        }
        assert_same(whole, sum);
        assert_same(whole, backwards);
        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
            model_free(parts[i]);
    }
}

/* Merged models can contain more traces than are remembered. Which traces are remembered does not
 * depend on the order of merging either. */
static void the_memory_of_traces_merges_too(void **state)
{
    _cleanup_model_ Model *forth = model_new(H), *back = model_new(H);
    Model *single[40];

    for (unsigned i = 0; i < ELEMENTSOF(single); i++) {
        _cleanup_model_ Model *m = model_new(H);

        for (unsigned k = 0; k < 6; k++)
            learn(&m, session(STAGE_BOOT, UID_INVALID,
                              T0 + (i * 7919 + k * 104729) % 4000 * H / 100, 0, "A>x", NULL));
        single[i] = TAKE_PTR(m);
    }
    for (unsigned i = 0; i < ELEMENTSOF(single); i++) {
        Model *next = merged(forth, single[i]);

        model_free(forth);
        forth = next;
        next = merged(back, single[ELEMENTSOF(single) - 1 - i]);
        model_free(back);
        back = next;
    }
    assert_same(forth, back);
    assert_int_equal(forth->n_learned, MODEL_LEARNED_MAX);
    for (unsigned i = 0; i < ELEMENTSOF(single); i++)
        model_free(single[i]);
}

/* A trace that both learned is remembered once, with the later time. (Its session counts twice: the
 * caller ensures that merged models contain different sessions.) */
static void a_trace_known_to_both_is_remembered_once(void **state)
{
    _cleanup_trace_ Trace *t = session(STAGE_BOOT, UID_INVALID, T0 + H, 0, "A>x", NULL);
    _cleanup_model_ Model *a = model_new(H), *b = model_new(H), *c = NULL, *ab = NULL, *ba = NULL,
                          *ab_c = NULL, *c_ba = NULL;

    assert_int_equal(model_learn(&a, t, T0), 0); /* the clock of `a` is behind */
    assert_int_equal(model_learn(&b, t, T0 + 2 * H), 0);
    c = model_of(session(STAGE_BOOT, UID_INVALID, T0 + H / 2, 0, "A>x", NULL));
    ab = merged(a, b);
    ba = merged(b, a);
    assert_same(ab, ba);
    assert_int_equal(ab->n_learned, 1);
    assert_int_equal(ab->learned[0].at, T0 + H);
    ab_c = merged(ab, c);
    c_ba = merged(c, ba);
    assert_same(ab_c, c_ba);
    assert_int_equal(ab_c->n_learned, 2);
    assert_int_equal(ab_c->learned[0].at, T0 + H / 2);
}

/* Sums that have reached their maximum keep it, in whatever order they are merged. A large fleet,
 * or one hostile machine in it, makes such sums. */
static void sums_saturate(void **state)
{
    static const uint64_t full[] = {DECAYED_SUM_MAX, DECAYED_SUM_MAX - 1, 1,
                                    DECAYED_SUM_MAX / 2 + 1};

    for (size_t i = 0; i < ELEMENTSOF(full); i++)
        for (size_t j = 0; j < ELEMENTSOF(full); j++) {
            _cleanup_model_ Model *ab = NULL, *bc = NULL, *ab_c = NULL, *a_bc = NULL;
            Model *m[3];
            _cleanup_prediction_ Prediction *p = NULL;

            for (size_t k = 0; k < 3; k++) {
                uint64_t w = full[k == 0 ? i : j];

                m[k] = model_of(session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x=0-2", "0-2"));
                m[k]->stages[0].sessions = m[k]->stages[0].applications[0].active =
                        m[k]->stages[0].uses[0].used = m[k]->stages[0].files[0].used =
                                m[k]->stages[0].files[0].residency[RESIDENCY_OBSERVED].sessions =
                                        m[k]->stages[0]
                                                .files[0]
                                                .residency[RESIDENCY_OBSERVED]
                                                .ranges.ranges[0]
                                                .weight = (DecayedSum){w, w};
            }
            ab = merged(m[0], m[1]);
            bc = merged(m[1], m[2]);
            ab_c = merged(ab, m[2]);
            a_bc = merged(m[0], bc);
            assert_same(ab_c, a_bc);
            p = predict(ab_c, STAGE_BOOT, UID_INVALID);
            assert_near(chance(p, "/f/x"), 1);
            assert_near(page_chance(p, "/f/x", 1), 1);
            for (size_t k = 0; k < 3; k++)
                model_free(m[k]);
        }
}

/* A use by an application that has decayed is dropped. No valid model has such a use. */
static void dangling_uses_are_dropped(void **state)
{
    _cleanup_model_ Model *m = model_of(session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x B>y", NULL)),
                          *empty = model_new(H), *sum = NULL;
    _cleanup_prediction_ Prediction *p = NULL;

    m->stages[0].applications[1].active = (DecayedSum){0, 0};
    sum = merged(m, empty);
    assert_int_equal(sum->stages[0].n_applications, 1);
    assert_int_equal(sum->stages[0].n_uses, 1);
    p = predict(sum, STAGE_BOOT, UID_INVALID);
    assert_near(chance(p, "/f/x"), 1);
    assert_near(chance(p, "/f/y"), 1); /* that a session used the file is still known */
}

/* --- chains ----------------------------------------------------------------------------------- */

static Chains *some_chains(const char *first, const char *second)
{
    UserHistory *w;
    Chains *c;
    uint32_t a, b;

    assert_int_equal(chains_new(H, 600 * USEC_PER_SEC, &c), 0);
    assert_int_equal(chains_add_name(c, first, &a), 0);
    assert_int_equal(chains_add_name(c, second, &b), 0);
    assert_int_equal(chains_history(c, UID_INVALID, &w), 0);
    for (unsigned i = 0; i < 3; i++) {
        chains_set_time(c,
                        (EventTime){(i * 1000 + 1) * USEC_PER_SEC, T0 + i * 1000 * USEC_PER_SEC});
        assert_int_equal(chains_begin(c, w->user), 0);
        assert_int_equal(chains_start(c, a), 1);
        chains_set_time(c, (EventTime){(i * 1000 + 11) * USEC_PER_SEC,
                                       T0 + (i * 1000 + 10) * USEC_PER_SEC});
        assert_int_equal(chains_start(c, b), 1);
        chains_end(c);
    }
    return c;
}

static void chains_go_with_the_model(void **state)
{
    _cleanup_model_ Model *a = model_of(session(STAGE_BOOT, UID_INVALID, T0, 0, "A>x", NULL)),
                          *b = model_of(session(STAGE_BOOT, UID_INVALID, T0, 0, "B>x", NULL)),
                          *none = model_new(H), *ab = NULL, *ba = NULL, *b_none = NULL;
    _cleanup_free_ char *before = NULL, *after = NULL, *both = NULL;

    a->chains = some_chains("/bin/A", "/bin/B");
    b->chains = some_chains("/bin/B", "/bin/C");
    ab = merged(a, b);
    ba = merged(b, a);
    assert_same(ab, ba);
    assert_non_null(ab->chains);
    both = bytes_of(ab);
    assert_non_null(strstr(both, "/bin/C"));
    b_none = merged(none, b);
    assert_same(b_none, b);

    /* Learning and pruning do not change the chains. */
    assert_int_equal(chains_to_json(a->chains, &before), 0);
    learn(&a, session(STAGE_BOOT, UID_INVALID, T0, 0, "A>y", NULL));
    assert_int_equal(model_prune(&a, 0.9), 0);
    assert_non_null(a->chains);
    assert_int_equal(chains_to_json(a->chains, &after), 0);
    assert_string_equal(before, after);
    assert_int_equal(model_settle_clock(&a, T0 - 20 * DECAYED_SUM_SPAN * H), 0);
    assert_non_null(a->chains);
}

/* Merges the models of forty machines one by one, and in a tree. */
static void fleets_fold(void **state)
{
    _cleanup_model_ Model *line = model_new(H);
    Model *row[40];
    size_t n = ELEMENTSOF(row);

    for (size_t i = 0; i < n; i++) {
        SyntheticParameters p = synthetic_login(i);
        _cleanup_trace_ Trace *t = NULL;
        Model *next;

        p.n_files = 200;
        p.n_applications = 10;
        p.n_accesses = 500;
        p.start_realtime += i * 3 * H / 7;
        assert_int_equal(synthetic_trace(&p, &t), 0);
        row[i] = model_of_session(t, p.start_realtime);
        next = merged(line, row[i]);
        model_free(line);
        line = next;
    }
    while (n > 1) {
        for (size_t i = 0; i < n / 2; i++) {
            Model *next = merged(row[2 * i + 1], row[2 * i]);

            model_free(row[2 * i]);
            model_free(row[2 * i + 1]);
            row[i] = next;
        }
        if (n % 2)
            row[n / 2] = row[n - 1];
        n = (n + 1) / 2;
    }
    assert_same(row[0], line);
    model_free(row[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(any_order_and_grouping),
            cmocka_unit_test(nothing_changes_nothing),
            cmocka_unit_test(parts_make_the_whole),
            cmocka_unit_test(the_memory_of_traces_merges_too),
            cmocka_unit_test(a_trace_known_to_both_is_remembered_once),
            cmocka_unit_test(sums_saturate),
            cmocka_unit_test(dangling_uses_are_dropped),
            cmocka_unit_test(chains_go_with_the_model),
            cmocka_unit_test(fleets_fold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
