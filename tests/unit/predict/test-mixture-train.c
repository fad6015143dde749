/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests training from recorded sessions. */

#include "model/model.h"
#include "predict/mixture-train.h"
#include "predict/mixture.h"
#include "util/range-util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* needs the three headers above */
#include <cmocka.h>

#define LARGE   (3U << 20)
#define WEEK    (7 * 24 * USEC_PER_HOUR)
#define MINSIZE 2000000U

static uint32_t application(Trace *t, const char *path, uint64_t bytes)
{
    uint32_t p, f, a;

    assert_int_equal(trace_add_path(t, path, &p), 0);
    assert_int_equal(trace_add_file(t, p, TRACE_NONE, false, &f), 0);
    assert_int_equal(range_set_insert_span(&t->files[f].resident, 0, bytes), 0);
    assert_int_equal(trace_add_application(t, f, &a), 0);
    assert_int_equal(trace_add_access(t, &(TraceAccess){0, f, a, ACCESS_EXEC}), 0);
    return a;
}

static void lifetime(Trace *t, uint32_t a, uint32_t uid, unsigned from, unsigned to)
{
    TraceLifetime l = {a, 1, uid, from * USEC_PER_SEC, to ? to * USEC_PER_SEC : USEC_INFINITY};

    assert_int_equal(trace_add_lifetime(t, &l), 0);
}

/* Makes a session in which A starts, and then B. A small tool and an application of root start as
 * well. */
static Trace *session(unsigned day)
{
    Trace *t = trace_new(STAGE_SESSION);
    uint32_t a, b, tool, root;

    assert_non_null(t);
    t->uid = 1000;
    t->start_realtime = (1700000000ULL + day * 86400ULL) * USEC_PER_SEC;
    t->duration = 100 * USEC_PER_SEC;
    a = application(t, "/bin/a", LARGE);
    b = application(t, "/bin/b", LARGE);
    tool = application(t, "/bin/true", 4096);
    root = application(t, "/sbin/daemon", LARGE);
    lifetime(t, a, 1000, 10, 60);
    lifetime(t, b, 1000, 20, 0);
    lifetime(t, tool, 1000, 30, 30);
    lifetime(t, root, 0, 40, 50);
    return t;
}

static uint32_t number_of(const Chains *c, const char *name)
{
    for (uint32_t i = 0; i < c->names.n; i++)
        if (strcmp(c->names.names[i], name) == 0)
            return i;
    return CHAINS_NONE;
}

static void what_follows_is_learned(void **state)
{
    _cleanup_model_ Model *m = model_new(WEEK);
    const UserHistory *w = NULL;
    ChainsTotals totals;
    uint32_t a, b;

    assert_non_null(m);
    for (unsigned day = 0; day < 3; day++) {
        _cleanup_trace_ Trace *t = session(day);

        assert_int_equal(mixture_train(&m->chains, WEEK, MINSIZE, t, 0, 0), 1);
    }
    assert_non_null(m->chains);
    assert_int_equal(number_of(m->chains, "/bin/true"), CHAINS_NONE);
    assert_int_equal(m->chains->n_histories, 2);
    for (size_t i = 0; i < 2; i++)
        if (m->chains->histories[i]->user == 1000)
            w = m->chains->histories[i];
    assert_non_null(w);
    assert_false(chains_learns(m->chains, w));
    a = user_history_find(w, number_of(m->chains, "/bin/a"));
    b = user_history_find(w, number_of(m->chains, "/bin/b"));
    assert_int_not_equal(a, CHAINS_NONE);
    assert_int_not_equal(b, CHAINS_NONE);
    assert_non_null(user_history_find_pair(w, MIN(a, b), MAX(a, b)));
    assert_int_equal(user_history_find(w, number_of(m->chains, "/sbin/daemon")), CHAINS_NONE);
    /* Three starts, two of them decayed by one and two days of a week's half-life. */
    chains_totals(m->chains, w, a, &totals);
    assert_true(totals.starts > 2.7 && totals.starts < 3.0);
}

static void what_was_trained_predicts(void **state)
{
    _cleanup_model_ Model *m = model_new(WEEK);
    _cleanup_mixture_ Mixture *p = NULL;
    _cleanup_guesses_ Guesses g = {0};
    usec_t at, now = (1700000000ULL + 5 * 86400ULL) * USEC_PER_SEC, horizon = USEC_INFINITY;
    uint32_t a, b;

    for (unsigned day = 0; day < 5; day++) {
        _cleanup_trace_ Trace *t = session(day);

        assert_int_equal(mixture_train(&m->chains, WEEK, MINSIZE, t, 0, 0), 1);
    }
    a = number_of(m->chains, "/bin/a");
    b = number_of(m->chains, "/bin/b");
    at = m->chains->seen + USEC_PER_SEC;
    assert_int_equal(mixture_new(TAKE_PTR(m->chains), &p), 0);
    assert_int_equal(mixture_begin(p, (EventTime){at, now}, 1000, true), 0);
    at += 10 * USEC_PER_SEC;
    now += 10 * USEC_PER_SEC;
    assert_int_equal(mixture_start(p, (EventTime){at, now}, a), 1);
    assert_int_equal(mixture_predict(p, (EventTime){at, now}, &horizon, 1, &g), 0);
    assert_true(g.n >= 1);
    assert_int_equal(g.guesses[0].item, b);
    assert_true(g.guesses[0].probability > 0.5);
}

/* An application is followed if the files that it used have at least `minsize_bytes` in all. */
static void the_size_decides_who_is_followed(void **state)
{
    static const struct {
        uint64_t minsize_bytes;
        bool tool, large;
    } cases[] = {{0, true, true},
                 {4096, true, true},
                 {4097, false, true},
                 {LARGE, false, true},
                 {LARGE + 1, false, false}};

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        _cleanup_chains_ Chains *c = NULL;
        _cleanup_trace_ Trace *t = session(0);

        assert_int_equal(mixture_train(&c, WEEK, cases[i].minsize_bytes, t, 0, 0), 1);
        assert_int_equal(number_of(c, "/bin/true") != CHAINS_NONE, cases[i].tool);
        assert_int_equal(number_of(c, "/bin/a") != CHAINS_NONE, cases[i].large);
    }
}

static void other_stages_and_bad_traces_teach_nothing(void **state)
{
    _cleanup_model_ Model *m = model_new(WEEK);
    _cleanup_trace_ Trace *login = session(0), *bad = session(0), *good = session(0);

    login->stage = STAGE_LOGIN;
    assert_int_equal(mixture_train(&m->chains, WEEK, MINSIZE, login, 0, 0), 0);
    assert_null(m->chains);
    assert_int_equal(mixture_train(&m->chains, WEEK, MINSIZE, good, 0, 0), 1);
    bad->lifetimes[1].application = 77;
    assert_int_equal(mixture_train(&m->chains, WEEK, MINSIZE, bad, 0, 0), -EBADMSG);
    bad->lifetimes[1].application = 0;
    bad->accesses[0].file = 1000000;
    assert_int_equal(mixture_train(&m->chains, WEEK, MINSIZE, bad, 0, 0), -EBADMSG);
    /* Everything that was learned before is still there. */
    assert_non_null(m->chains);
    assert_int_not_equal(number_of(m->chains, "/bin/a"), CHAINS_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(what_follows_is_learned),
            cmocka_unit_test(what_was_trained_predicts),
            cmocka_unit_test(the_size_decides_who_is_followed),
            cmocka_unit_test(other_stages_and_bad_traces_teach_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
