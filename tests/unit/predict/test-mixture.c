/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the predictor of the product: its predictions by user and by horizon.
 * tests/unit/evaluate/test-evaluate-markov.c tests its calibration. */

#include "predict/mixture-internal.h"
#include "util/chains-util.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* needs the four headers above */
#include <cmocka.h>

#define S    USEC_PER_SEC
#define WEEK (168 * USEC_PER_HOUR)

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static Mixture *make(void)
{
    Mixture *m;
    Chains *c;

    assert_int_equal(chains_new(WEEK, MIXTURE_CHAIN_WINDOW, &c), 0);
    assert_int_equal(mixture_new(c, &m), 0);
    return m;
}

static EventTime at_sec(unsigned t)
{
    return (EventTime){t * S, t * S};
}

static void begin(Mixture *m, unsigned t, uint32_t user)
{
    assert_int_equal(mixture_begin(m, at_sec(t), user, true), 0);
}

static void start(Mixture *m, unsigned t, char item)
{
    assert_int_equal(mixture_start(m, at_sec(t), (uint32_t)(item - 'A')), 1);
}

static void stop(Mixture *m, unsigned t, char item)
{
    assert_int_equal(mixture_exit(m, at_sec(t), (uint32_t)(item - 'A')), 1);
}

static double probability_of(const Guesses *g, char item)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->guesses[i].item == (uint32_t)(item - 'A'))
            return g->guesses[i].probability;
    return 0;
}

static double guess_within(Mixture *m, unsigned t, char item, usec_t horizon)
{
    _cleanup_guesses_ Guesses g = {0};

    assert_int_equal(mixture_predict(m, at_sec(t), &horizon, 1, &g), 0);
    return probability_of(&g, item);
}

/* Trains with ten sessions of five rounds each: one application starts, and a minute later the
 * other. */
static void train_pair(Mixture *m, uint32_t user, unsigned *at, char first, char second)
{
    for (unsigned i = 0; i < 10; i++) {
        begin(m, *at, user);
        for (unsigned j = 0; j < 5; j++) {
            start(m, *at + 600, first);
            start(m, *at + 660, second);
            stop(m, *at + 900, first);
            stop(m, *at + 1000, second);
            *at += 1800;
        }
        mixture_end(m, at_sec(*at));
    }
}

static void what_follows_is_predicted(void **state)
{
    _cleanup_mixture_ Mixture *m = make();
    unsigned at = 100;
    double after, before;

    train_pair(m, 1000, &at, 'A', 'B');
    begin(m, at, 1000);
    start(m, at + 10, 'C');
    before = guess_within(m, at + 10, 'B', 60 * S);
    start(m, at + 20, 'A');
    after = guess_within(m, at + 20, 'B', 60 * S);
    assert_true(after > 5 * before);
    assert_true(after > 0.4 && after < 0.9);               /* the rate of 1 a minute gives 0.63 */
    assert_near(guess_within(m, at + 20, 'A', 60 * S), 0); /* it runs */
}

/* The log of a session has a limit. After it, the next start still follows the latest ones. */
static void the_latest_starts_precede_the_next(void **state)
{
    _cleanup_mixture_ Mixture *m = make();
    unsigned at = 100;

    train_pair(m, 1000, &at, 'A', 'B');
    begin(m, at, 1000);
    (void)guess_within(m, at + 1, 'B', 60 * S);
    assert_int_equal(m->situation.before[0], CHAINS_BEGIN);
    assert_int_equal(m->situation.before[1], SEQUENCE_NONE);
    for (unsigned i = 0; i < SESSION_LOG_STARTS_MAX + 10; i++) {
        start(m, at += 2, 'C');
        stop(m, at + 1, 'C');
    }
    start(m, at + 10, 'A');
    start(m, at + 20, 'B');
    (void)guess_within(m, at + 21, 'C', 60 * S);
    assert_int_equal(m->situation.before[0], user_history_find(m->logged, 'B' - 'A'));
    assert_int_equal(m->situation.before[1], user_history_find(m->logged, 'A' - 'A'));
    assert_int_equal(m->situation.before[2], user_history_find(m->logged, 'C' - 'A'));
}

/* Returns the probability of the application at the beginning of a session of the user. */
static double first_guess(Mixture *m, unsigned at, uint32_t user, char item)
{
    double p;

    assert_int_equal(mixture_begin(m, at_sec(at), user, false), 0);
    p = guess_within(m, at, item, 600 * S);
    mixture_end(m, at_sec(at));
    return p;
}

/* Each user has habits of their own. For a user who was never seen, and for an unknown user, the
 * history of all users predicts. */
static void users_are_told_apart(void **state)
{
    _cleanup_mixture_ Mixture *m = make(), *blind = make();
    unsigned at = 100, at_blind = 100;
    double own, other, stranger, unknown;

    train_pair(m, 1000, &at, 'A', 'B');
    train_pair(m, 1001, &at, 'D', 'E');
    train_pair(blind, UID_INVALID, &at_blind, 'A', 'B');
    train_pair(blind, UID_INVALID, &at_blind, 'D', 'E');
    own = first_guess(m, at, 1000, 'A');
    other = first_guess(m, at, 1001, 'A');
    stranger = first_guess(m, at, 1002, 'A');
    unknown = first_guess(m, at, UID_INVALID, 'A');
    assert_true(own > 3 * other);
    assert_true(stranger > other && stranger < own);
    assert_near(stranger, unknown);
    assert_near(first_guess(blind, at, 1000, 'A'), first_guess(blind, at, 1001, 'A'));
    /* Nothing was learned by predicting, not even that these users exist. */
    assert_null(chains_find_history(mixture_chains(m), 1002));
    assert_int_equal(mixture_chains(blind)->n_histories, 1);
}

/* A session that is followed without learning is predicted in the same way, and changes nothing. */
static void following_is_not_learning(void **state)
{
    _cleanup_mixture_ Mixture *m = make();
    _cleanup_free_ char *before = NULL, *after = NULL;
    unsigned at = 100;
    double followed, learned;

    for (char x = 'A'; x <= 'C'; x++) {
        uint32_t id;

        assert_int_equal(chains_add_name(mixture_chains(m), (char[]){'/', x, 0}, &id), 0);
    }
    train_pair(m, 1000, &at, 'A', 'B');
    assert_int_equal(chains_to_json(mixture_chains(m), &before), 0);
    assert_int_equal(mixture_begin(m, at_sec(at), 1000, false), 0);
    assert_int_equal(mixture_exit(m, at_sec(at), 0), 0); /* it has not started */
    start(m, at, 'A');
    assert_int_equal(mixture_start(m, at_sec(at), 0), 0);
    start(m, at, 'C');
    stop(m, at, 'C');
    followed = guess_within(m, at, 'B', 60 * S);
    assert_near(guess_within(m, at, 'A', 60 * S), 0);
    mixture_end(m, at_sec(at));
    assert_int_equal(chains_to_json(mixture_chains(m), &after), 0);
    assert_string_equal(before, after);
    begin(m, at, 1000);
    start(m, at, 'C');
    stop(m, at, 'C');
    start(m, at, 'A');
    learned = guess_within(m, at, 'B', 60 * S);
    assert_true(followed > 0.1);
    assert_true(learned > followed); /* A started last, in the followed session C */
}

/* The longer the horizon, the larger the probability. The end of the session limits each horizon.
 * Predicting several horizons at once gives the same as predicting each. */
static void horizons(void **state)
{
    enum { N = 12 };
    _cleanup_mixture_ Mixture *m = make(), *same = make();
    usec_t tau[N + 1];
    Guesses g[N + 1] = {0};
    unsigned at = 100, at_same = 100;

    train_pair(m, 1000, &at, 'A', 'B');
    train_pair(same, 1000, &at_same, 'A', 'B');
    begin(m, at, 1000);
    begin(same, at, 1000);
    for (unsigned i = 0; i < N; i++)
        tau[i] = S << i;
    tau[N] = USEC_INFINITY;
    assert_int_equal(mixture_predict(m, at_sec(at), tau, N + 1, g), 0);
    for (unsigned i = 0; i <= N; i++) {
        double p = probability_of(&g[i], 'A');

        assert_true(p > 0 && p <= 1);
        assert_true(i == 0 || i == N || p > probability_of(&g[i - 1], 'A'));
        assert_true(p == guess_within(same, at, 'A', tau[i]));
    }
    assert_true(probability_of(&g[N], 'A') > 0.6); /* A starts five times a session */
    for (unsigned i = 0; i <= N; i++)
        guesses_done(&g[i]);
}

/* The history of all users predicts for a new user. Here it has the sessions of one user only, so
 * both users have about the same probability until the session ends. */
static void a_new_user_has_everybodys_sessions(void **state)
{
    _cleanup_mixture_ Mixture *m = make();
    unsigned at = 100;
    double known, stranger;

    train_pair(m, 1000, &at, 'A', 'B');
    /* These sessions are followed without learning. */
    assert_int_equal(mixture_begin(m, at_sec(at), 1000, false), 0);
    known = guess_within(m, at, 'A', USEC_INFINITY);
    mixture_end(m, at_sec(at));
    assert_int_equal(mixture_begin(m, at_sec(at), 1001, false), 0);
    stranger = guess_within(m, at, 'A', USEC_INFINITY);
    assert_true(known > 0.9);
    assert_true(fabs(known - stranger) < 0.01);
}

/* The chains of a mixture, saved and loaded, give the same predictions, because they contain the
 * weights.
 */
static void chains_are_all_that_is_known(void **state)
{
    _cleanup_mixture_ Mixture *m = make(), *n = NULL;
    _cleanup_free_ char *text = NULL;
    unsigned at = 100;
    Chains *c;
    uint32_t id;

    for (char x = 'A'; x <= 'E'; x++) /* the names are sorted, so the ids stay the same */
        assert_int_equal(chains_add_name(mixture_chains(m), (char[]){'/', x, 0}, &id), 0);
    train_pair(m, 1000, &at, 'A', 'B');
    train_pair(m, 1001, &at, 'C', 'D');
    train_pair(m, 1000, &at, 'D', 'E');
    assert_int_equal(chains_to_json(mixture_chains(m), &text), 0);
    assert_int_equal(chains_from_json(text, strlen(text), &c), 0);
    assert_int_equal(mixture_new(c, &n), 0);
    begin(m, at, 1000);
    begin(n, at, 1000);
    start(m, at + 5, 'A');
    start(n, at + 5, 'A');
    for (char x = 'A'; x <= 'E'; x++)
        assert_near(guess_within(m, at + 9, x, 60 * S), guess_within(n, at + 9, x, 60 * S));
    c = mixture_release_chains(TAKE_PTR(n));
    chains_end(c);
    chains_free(c);
}

/* Applications of different groups never run together. Memory then grows with the observations, not
 * with the square of the number of applications. */
static void memory_is_linear(void **state)
{
    size_t size[2];

    for (unsigned k = 0; k < 2; k++) {
        _cleanup_mixture_ Mixture *m = make();
        unsigned n_groups = k == 0 ? 25 : 100, at = 1;

        for (unsigned g = 0; g < n_groups; g++)
            for (unsigned i = 0; i < 40; i++) {
                assert_int_equal(mixture_start(m, at_sec(at), g * 10 + i % 10), 1);
                assert_int_equal(mixture_exit(m, at_sec(at + 30), g * 10 + i % 10), 1);
                at += i == 39 ? 3600 : 60;
            }
        size[k] = chains_size(mixture_chains(m));
    }
    assert_true(size[1] < 6 * size[0]);
}

/* An application runs until its last process has exited; in between nothing is learned. */
static void processes_are_counted(void **state)
{
    _cleanup_mixture_ Mixture *m = make();
    uint64_t revision;

    begin(m, 100, 1000);
    start(m, 110, 'A');
    revision = chains_revision(mixture_chains(m));
    assert_int_equal(mixture_start(m, at_sec(120), 0), 0);
    assert_int_equal(mixture_start(m, at_sec(130), 0), 0);
    assert_int_equal(mixture_exit(m, at_sec(140), 0), 0);
    assert_int_equal(mixture_exit(m, at_sec(150), 0), 0);
    assert_true(chains_runs(mixture_chains(m), 0));
    assert_true(chains_revision(mixture_chains(m)) == revision);
    stop(m, 160, 'A');
    assert_false(chains_runs(mixture_chains(m), 0));
    assert_int_equal(mixture_exit(m, at_sec(170), 0), 0);
    /* The next session begins without running applications. */
    start(m, 180, 'A');
    assert_int_equal(mixture_start(m, at_sec(190), 0), 0);
    begin(m, 200, 1000);
    start(m, 210, 'A');
    stop(m, 220, 'A');
}

static void bad_ids(void **state)
{
    _cleanup_mixture_ Mixture *m = make();

    assert_int_equal(mixture_start(m, at_sec(1), CHAINS_IDS_MAX), -E2BIG);
    assert_int_equal(mixture_start(m, at_sec(1), CHAINS_NONE), -E2BIG);
    assert_int_equal(mixture_exit(m, at_sec(1), CHAINS_NONE), 0);
    assert_int_equal(mixture_start(m, at_sec(2), 3), 1);
    mixture_end(m, at_sec(3));
    mixture_end(m, at_sec(4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(what_follows_is_predicted),
            cmocka_unit_test(the_latest_starts_precede_the_next),
            cmocka_unit_test(users_are_told_apart),
            cmocka_unit_test(following_is_not_learning),
            cmocka_unit_test(horizons),
            cmocka_unit_test(a_new_user_has_everybodys_sessions),
            cmocka_unit_test(chains_are_all_that_is_known),
            cmocka_unit_test(memory_is_linear),
            cmocka_unit_test(processes_are_counted),
            cmocka_unit_test(bad_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
