/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests pruning of chains that have decayed, and the correction of chains made while the clock ran
 * ahead.
 */

#include "evaluate/random.h"
#include "util/chains-util.h"
#include "util/model-util.h"

#define WINDOW (600 * USEC_PER_SEC)

static Chains *make(void)
{
    Chains *c;

    assert_int_equal(chains_new(H, WINDOW, &c), 0);
    return c;
}

/* Adds one session of a user at `at`. The named applications start a minute and a half after each
 * other. An application with a capital letter runs for half a minute beyond the next start, so that
 * it overlaps with the next application. Any other application exits before the next one starts. */
static void use(Chains *c, uint32_t user, usec_t at, const char *names)
{
    usec_t now = MAX(c->seen, at);
    uint32_t last = CHAINS_NONE;
    UserHistory *w;

    assert_int_equal(chains_history(c, user, &w), 0);
    chains_set_time(c, (EventTime){now, at});
    assert_int_equal(chains_begin(c, w->user), 0);
    for (; *names; names++) {
        char name[] = {'/', *names, 0};
        uint32_t id;

        assert_int_equal(chains_add_name(c, name, &id), 0);
        now += 60 * USEC_PER_SEC;
        chains_set_time(c, (EventTime){now, at});
        assert_true(chains_start(c, id) >= 0);
        now += 30 * USEC_PER_SEC;
        chains_set_time(c, (EventTime){now, at});
        if (last != CHAINS_NONE)
            chains_exit(c, last);
        last = id;
        if (*names >= 'a') {
            chains_exit(c, id);
            last = CHAINS_NONE;
        }
    }
    now += 60 * USEC_PER_SEC;
    chains_set_time(c, (EventTime){now, at});
    chains_end(c);
}

static const ChainsPair *pair_of(Chains *c, uint32_t user, char a, char b)
{
    char x[] = {'/', a, 0}, y[] = {'/', b, 0};
    uint32_t i, j;
    UserHistory *w;

    assert_int_equal(chains_history(c, user, &w), 0);
    assert_int_equal(chains_add_name(c, x, &i), 0);
    assert_int_equal(chains_add_name(c, y, &j), 0);
    i = user_history_find(w, i);
    j = user_history_find(w, j);
    return i == CHAINS_NONE || j == CHAINS_NONE ? NULL : user_history_find_pair(w, i, j);
}

static bool knows(const Chains *c, const char *name)
{
    for (size_t i = 0; i < c->names.n; i++)
        if (strcmp(c->names.names[i], name) == 0)
            return true;
    return false;
}

static char *text_of(const Chains *c)
{
    char *text;

    assert_int_equal(chains_to_json(c, &text), 0);
    return text;
}

static void assert_equal_chains(const Chains *a, const Chains *b)
{
    _cleanup_free_ char *x = text_of(a), *y = text_of(b);

    assert_string_equal(x, y);
}

static Chains *pruned(const Chains *c)
{
    Chains *p;

    assert_int_equal(chains_prune(c, &p), 0);
    return p;
}

static Chains *sum_of(const Chains *a, const Chains *b)
{
    Chains *c;

    assert_int_equal(chains_merge(a, b, &c), 0);
    return c;
}

/* Living chains stay unchanged to the bit; decayed ones are removed, with their names. */
static void what_has_decayed_goes(void **state)
{
    _cleanup_chains_ Chains *c = make(), *p = NULL, *q = NULL;
    ChainsStates before, after;

    use(c, 1000, T0, "ABXYABXY");
    use(c, 1000, T0, "ABXYABXY");
    assert_non_null(pair_of(c, 1000, 'X', 'Y'));
    for (unsigned i = 1; i <= 14; i++) {
        use(c, 1000, T0 + i * H, "ABAB");
        if (i == 5) { /* 2^-5 still counts */
            _cleanup_chains_ Chains *early = pruned(c);

            assert_non_null(pair_of(early, 1000, 'X', 'Y'));
            assert_equal_chains(early, c);
        }
    }
    p = pruned(c);
    assert_null(pair_of(p, 1000, 'X', 'Y'));
    q = pruned(p);
    assert_equal_chains(p, q); /* nothing is left to prune */
    assert_false(knows(q, "/X") || knows(q, "/Y"));
    assert_true(knows(q, "/A") && knows(q, "/B"));
    chains_states(c, c->histories[1], pair_of(c, 1000, 'A', 'B'), &before);
    chains_states(p, p->histories[1], pair_of(p, 1000, 'A', 'B'), &after);
    assert_memory_equal(&before, &after, sizeof(before));
    assert_true(chains_size(q) < chains_size(c));
    /* X and Y can co-occur again. */
    use(p, 1000, T0 + 15 * H, "XYXY");
    assert_non_null(pair_of(p, 1000, 'X', 'Y'));
}

/* A chain that has only begun has counted nothing, like a decayed one, but it is not removed. */
static void what_is_young_stays(void **state)
{
    _cleanup_chains_ Chains *c = make(), *p = NULL;

    for (unsigned i = 0; i < 14; i++)
        use(c, 1000, T0 + i * H, "ABAB");
    /* x never runs together with a, and neither starts next after the other. */
    use(c, 1000, T0 + 14 * H, "abxyabxy");
    assert_non_null(pair_of(c, 1000, 'a', 'x'));
    p = pruned(c);
    assert_non_null(pair_of(p, 1000, 'a', 'x'));
    assert_non_null(pair_of(p, 1000, 'A', 'B'));
}

/* Two applications still run, but no longer start near each other. The chain is dropped, and the
 * applications stay. */
static void partners_that_part(void **state)
{
    _cleanup_chains_ Chains *c = make(), *p = NULL;

    use(c, 1000, T0, "ABABAB");
    for (unsigned i = 1; i <= 14; i++) {
        use(c, 1000, T0 + i * H, "ACAC");
        use(c, 1000, T0 + i * H, "BDBD");
    }
    p = pruned(c);
    assert_null(pair_of(p, 1000, 'A', 'B'));
    assert_non_null(pair_of(p, 1000, 'A', 'C'));
    assert_non_null(pair_of(p, 1000, 'B', 'D'));
}

static void users_who_have_gone(void **state)
{
    _cleanup_chains_ Chains *c = make(), *p = NULL;

    use(c, 1001, T0, "ABAB");
    for (unsigned i = 1; i <= 20; i++)
        use(c, 1000, T0 + i * H, "ABAB");
    p = pruned(c);
    assert_int_equal(p->n_histories, 2); /* that of everybody always exists */
    assert_int_equal(p->histories[1]->user, 1000);
}

/* Each week has four sessions in which two new programs co-occur by chance. The size does not grow
 * with the years. */
static void memory_does_not_grow_with_time(void **state)
{
    _cleanup_chains_ Chains *c = make();
    size_t sizes[3] = {0}, unpruned = 0;

    for (unsigned week = 0; week < 150; week++) {
        Chains *p;

        use(c, 1000, T0 + week * H, "ABCABC");
        for (unsigned i = 0; i < 4; i++) {
            char names[] = "A??B??C";

            /* Eight of 120 characters each week, two per session. Both appear twice, so that a
             * chain begins. */
            names[1] = names[4] = (char)(130 + (week * 8 + i * 2) % 120);
            names[2] = names[5] = (char)(131 + (week * 8 + i * 2) % 120);
            use(c, 1000, T0 + week * H, names);
        }
        unpruned = MAX(unpruned, c->histories[1]->n_co_occurring);
        p = pruned(c);
        chains_free(c);
        c = p;
        if (week % 50 == 49)
            sizes[week / 50] = chains_size(c);
    }
    assert_true(sizes[0] > 0 && sizes[1] <= sizes[0] * 6 / 5 && sizes[2] <= sizes[0] * 6 / 5);
}

/* If the chains of a fleet are merged and then pruned, every order and grouping gives the same
 * chains. If parts are pruned first, the result differs, so merging does not prune (chains.h). */
static void a_fleet_is_merged_then_pruned(void **state)
{
    _cleanup_chains_ Chains *a = make(), *b = make(), *c = make(), *ab = NULL, *bc = NULL,
                            *left = NULL, *right = NULL, *x = NULL, *y = NULL, *pruned_a = NULL,
                            *parts = NULL;

    use(a, 1000, T0, "XYXYAB");
    for (unsigned i = 1; i <= 14; i++)
        use(a, 1000, T0 + i * H, "XAAB"); /* X continues, Y does not */
    use(b, 1000, T0 + 14 * H, "XYXYXY");
    use(c, 1001, T0 + 13 * H, "XYAB");
    ab = sum_of(a, b);
    left = sum_of(ab, c);
    bc = sum_of(c, b);
    right = sum_of(bc, a);
    assert_equal_chains(left, right);
    x = pruned(left);
    y = pruned(right);
    assert_equal_chains(x, y);
    assert_non_null(pair_of(x, 1000, 'X', 'Y')); /* the chain of b keeps it */
    pruned_a = pruned(a);
    assert_null(pair_of(pruned_a, 1000, 'X', 'Y'));
    parts = sum_of(pruned_a, b);
    {
        _cleanup_free_ char *one = text_of(parts), *other = text_of(ab);

        assert_string_not_equal(one, other);
    }
}

static void sessions_must_have_ended(void **state)
{
    _cleanup_chains_ Chains *c = make(), *p = NULL;

    chains_set_time(c, (EventTime){T0 + 100 * H, T0 + 100 * H});
    assert_int_equal(chains_begin(c, c->histories[0]->user), 0);
    assert_int_equal(chains_prune(c, &p), -EBUSY);
    assert_int_equal(chains_settle_clock(c, T0), -EBUSY);
    assert_int_equal(chains_settle_clock(c, T0 + 100 * H), 0);
    assert_null(p);
}

/* Chains that were made in the year 2100 by a wrong clock do not erase the chains of others if
 * chains_settle_clock() is called before the merge. */
static void a_clock_that_ran_ahead(void **state)
{
    _cleanup_chains_ Chains *future = make(), *now = make(), *untouched = make(), *c = NULL;

    for (unsigned i = 0; i < 3; i++) {
        use(future, 1000, T0 + 4000 * H, "XYXY");
        use(now, 1000, T0, "ABAB");
        use(untouched, 1000, T0, "ABAB");
    }
    assert_int_equal(chains_settle_clock(now, T0), 0);
    assert_int_equal(chains_settle_clock(now, T0 + 100 * H), 0);
    assert_equal_chains(now, untouched);

    c = sum_of(future, now);
    assert_true(decayed_sum_is_zero(
            pair_of(c, 1000, 'A', 'B')->both)); /* without settling, the clock erases the chain */
    assert_int_equal(chains_settle_clock(future, T0), 0);
    assert_int_equal(future->generation, now->generation);
    chains_free(c);
    c = sum_of(future, now);
    chains_set_time(c, (EventTime){T0, T0});
    assert_true(chains_usec(c, pair_of(c, 1000, 'A', 'B')->both) > 60 * (double)USEC_PER_SEC);
    assert_true(chains_value(c, pair_of(c, 1000, 'X', 'Y')->both) > 0);
}

/* The model prunes and corrects its chains together with itself, unless a session is under way. */
static void the_model_prunes_its_chains(void **state)
{
    _cleanup_model_ Model *m = model_of(session(STAGE_SESSION, 1000, T0 + 14 * H, 0, "A>x", NULL));
    Chains *c = m->chains = make();
    size_t n;

    use(c, 1000, T0, "XYXY");
    for (unsigned i = 1; i <= 14; i++)
        use(c, 1000, T0 + i * H, "ABAB");
    n = c->names.n;
    assert_int_equal(chains_begin(c, c->histories[1]->user), 0);
    assert_int_equal(model_prune(&m, 0.01), 0);
    assert_ptr_equal(m->chains, c);
    chains_end(c);
    assert_int_equal(model_prune(&m, 0.01), 0);
    assert_true(m->chains->names.n < n);
    assert_null(pair_of(m->chains, 1000, 'X', 'Y'));

    m->chains->generation += 1000;
    assert_int_equal(model_settle_clock(&m, T0 + 15 * H), 0);
    assert_int_equal(m->chains->generation, decayed_sum_generation(T0 + 15 * H, H));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(what_has_decayed_goes),
            cmocka_unit_test(what_is_young_stays),
            cmocka_unit_test(partners_that_part),
            cmocka_unit_test(users_who_have_gone),
            cmocka_unit_test(memory_does_not_grow_with_time),
            cmocka_unit_test(a_fleet_is_merged_then_pruned),
            cmocka_unit_test(sessions_must_have_ended),
            cmocka_unit_test(a_clock_that_ran_ahead),
            cmocka_unit_test(the_model_prunes_its_chains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
