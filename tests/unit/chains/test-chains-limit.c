/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests chains that one user fills: they stay within their limits, and the other users lose
 * nothing. */

#include "chains/fair-share.h"
#include "util/chains-util.h"
#include "util/model-util.h"

#define WINDOW (600 * USEC_PER_SEC)

typedef char Name[32];

/* Adds one session in which the applications start a second apart. */
static void use_names(Chains *c, uint32_t user, const Name *names, size_t n)
{
    usec_t now = MAX(c->seen + USEC_PER_HOUR, T0);

    chains_set_time(c, (EventTime){now, now});
    assert_int_equal(chains_begin(c, user), 0);
    for (size_t i = 0; i < n; i++) {
        uint32_t id;

        assert_int_equal(chains_add_name(c, names[i], &id), 0);
        now += USEC_PER_SEC;
        chains_set_time(c, (EventTime){now, now});
        assert_int_equal(chains_start(c, id), 1);
    }
    now += USEC_PER_SEC;
    chains_set_time(c, (EventTime){now, now});
    chains_end(c);
}

/* Adds one session of the applications "/PREFIX0", "/PREFIX1", ... */
static void use(Chains *c, uint32_t user, const char *prefix, size_t n)
{
    Name *names = calloc(n, sizeof(Name));

    assert_non_null(names);
    for (size_t i = 0; i < n; i++)
        snprintf(names[i], sizeof(Name), "/%s%zu", prefix, i);
    use_names(c, user, names, n);
    free(names);
}

static UserHistory *history(Chains *c, uint32_t user)
{
    UserHistory *h;

    assert_int_equal(chains_history(c, user, &h), 0);
    return h;
}

static bool follows(Chains *c, uint32_t user, const char *name)
{
    uint32_t id;

    return chains_find_name(c, name, &id) >= 0 &&
           user_history_find(history(c, user), id) != CHAINS_NONE;
}

static size_t count_pairs(const Chains *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_histories; i++)
        n += c->histories[i]->n_co_occurring;
    return n;
}

/* Checks that limited chains are the same after they were written and read. */
static void check(const Chains *c)
{
    _cleanup_free_ char *text = NULL, *again = NULL;
    _cleanup_chains_ Chains *back = NULL;

    assert_int_equal(chains_to_json(c, &text), 0);
    assert_int_equal(chains_from_json(text, strlen(text), &back), 0);
    assert_int_equal(chains_to_json(back, &again), 0);
    assert_string_equal(text, again);
}

static void what_fits_is_untouched(void **state)
{
    const ChainsLimits limits = {.name_bytes = 1U << 20,
                                 .all_name_bytes = 8U << 20,
                                 .applications = 10,
                                 .pairs = 100,
                                 .all_pairs = 1000};
    _cleanup_chains_ Chains *c = NULL;
    const Chains *before;

    assert_int_equal(chains_new(H, WINDOW, &c), 0);
    use(c, 1000, "a", 5);
    before = c;
    assert_int_equal(chains_limit(&c, &limits), 0);
    assert_ptr_equal(c, before);
    assert_true(follows(c, 1000, "/a4"));
}

static void a_user_keeps_the_applications_of_most_sessions(void **state)
{
    const ChainsLimits limits = {.name_bytes = 1U << 20,
                                 .all_name_bytes = 8U << 20,
                                 .applications = 10,
                                 .pairs = 10000,
                                 .all_pairs = 100000};
    _cleanup_chains_ Chains *c = NULL;
    char name[16];

    assert_int_equal(chains_new(H, WINDOW, &c), 0);
    for (unsigned i = 0; i < 3; i++)
        use(c, 1000, "z", 8);
    use(c, 1000, "a", 60);
    assert_int_equal(chains_limit(&c, &limits), 0);
    assert_int_equal(history(c, 1000)->n_applications, 11);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "/z%u", i);
        assert_true(follows(c, 1000, name));
    }
    assert_in_range(c->names.n, 10, 20); /* the names of dropped applications are gone, too */
    check(c);
}

static void in_the_history_of_everybody_users_take_turns(void **state)
{
    const ChainsLimits limits = {.name_bytes = 1U << 20,
                                 .all_name_bytes = 8U << 20,
                                 .applications = 20,
                                 .pairs = 10000,
                                 .all_pairs = 100000};
    _cleanup_chains_ Chains *c = NULL;
    char name[16];

    assert_int_equal(chains_new(H, WINDOW, &c), 0);
    use(c, 1000, "quiet", 8);
    for (unsigned i = 0; i < 5; i++)
        use(c, 1001, "hog", 60);
    assert_int_equal(chains_limit(&c, &limits), 0);
    assert_int_equal(history(c, UID_INVALID)->n_applications, 21);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "/quiet%u", i);
        assert_true(follows(c, UID_INVALID, name));
        assert_true(follows(c, 1000, name));
    }
    check(c);
}

static void pairs_keep_to_their_limits_the_busiest_first(void **state)
{
    const ChainsLimits limits = {.name_bytes = 1U << 20,
                                 .all_name_bytes = 8U << 20,
                                 .applications = 1000,
                                 .pairs = 300,
                                 .all_pairs = 700};
    _cleanup_chains_ Chains *c = NULL;
    uint32_t a, b;

    assert_int_equal(chains_new(H, WINDOW, &c), 0);
    for (unsigned i = 0; i < 6; i++)
        use(c, 1000, "quiet", 5);
    for (unsigned i = 0; i < 2; i++)
        use(c, 1001, "hog", 60);
    use(c, 1002, "once", 60);
    assert_true(count_pairs(c) > 3000);
    assert_int_equal(chains_limit(&c, &limits), 0);
    assert_in_range(count_pairs(c), 300, 700);
    assert_int_equal(chains_find_name(c, "/quiet0", &a), 0);
    assert_int_equal(chains_find_name(c, "/quiet1", &b), 0);
    for (unsigned i = 0; i < 2; i++) {
        const UserHistory *h = history(c, i == 0 ? 1000 : UID_INVALID);

        assert_non_null(
                user_history_find_pair(h, user_history_find(h, a), user_history_find(h, b)));
    }
    check(c);
}

static bool are_neighbours(Chains *c, uint32_t user, const char *one, const char *other)
{
    const UserHistory *h = history(c, user);
    uint32_t a, b;

    return chains_find_name(c, one, &a) >= 0 && chains_find_name(c, other, &b) >= 0 &&
           user_history_find_neighbour(h, user_history_find(h, a), user_history_find(h, b));
}

static void in_the_history_of_everybody_the_pairs_of_users_take_turns(void **state)
{
    const ChainsLimits limits = {.name_bytes = 1U << 20,
                                 .all_name_bytes = 8U << 20,
                                 .applications = 1000,
                                 .pairs = 300,
                                 .all_pairs = 10000};
    _cleanup_chains_ Chains *c = NULL;

    assert_int_equal(chains_new(H, WINDOW, &c), 0);
    for (unsigned i = 0; i < 2; i++)
        use(c, 1000, "quiet", 10);
    for (unsigned i = 0; i < 5; i++)
        use(c, 1001, "hog", 60);
    assert_int_equal(chains_limit(&c, &limits), 0);
    assert_int_equal(history(c, UID_INVALID)->n_co_occurring, 300);
    for (unsigned i = 0; i < 10; i++)
        for (unsigned k = 0; k < i; k++) {
            Name one, other;

            snprintf(one, sizeof(one), "/quiet%u", i);
            snprintf(other, sizeof(other), "/quiet%u", k);
            assert_true(are_neighbours(c, UID_INVALID, one, other));
        }
    check(c);
}

/* Pairs of applications that the history loses take no places. */
static void pairs_of_dropped_applications_take_no_places(void **state)
{
    const ChainsLimits limits = {.name_bytes = 1U << 20,
                                 .all_name_bytes = 8U << 20,
                                 .applications = 30,
                                 .pairs = 200,
                                 .all_pairs = 10000};
    _cleanup_chains_ Chains *c = NULL;

    assert_int_equal(chains_new(H, WINDOW, &c), 0);
    for (unsigned i = 0; i < 3; i++)
        use(c, 1000, "often", 30);
    use(c, 1000, "twice", 60);
    use(c, 1000, "twice", 60);
    use(c, 1001, "rare", 60);
    assert_int_equal(chains_limit(&c, &limits), 0);
    for (size_t i = 0; i < c->n_histories; i++) {
        assert_int_equal(c->histories[i]->n_applications, 31);
        assert_int_equal(c->histories[i]->n_co_occurring, 200);
    }
    check(c);
}

/* Of pairs that co-occurred once, those of the applications with the most sessions stay. */
static void pairs_without_a_chain_keep_the_most_used(void **state)
{
    const ChainsLimits limits = {.name_bytes = 1U << 20,
                                 .all_name_bytes = 8U << 20,
                                 .applications = 1000,
                                 .pairs = 100,
                                 .all_pairs = 10000};
    static const Name both[] = {"/y0", "/z0"};
    _cleanup_chains_ Chains *c = NULL;

    assert_int_equal(chains_new(H, WINDOW, &c), 0);
    use(c, 1000, "a", 60);
    for (unsigned i = 0; i < 3; i++) {
        use(c, 1000, "y", 1);
        use(c, 1000, "z", 1);
    }
    use_names(c, 1000, both, 2);
    assert_int_equal(chains_limit(&c, &limits), 0);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t user = i == 0 ? 1000 : UID_INVALID;

        assert_int_equal(history(c, user)->n_co_occurring, 100);
        assert_true(are_neighbours(c, user, "/y0", "/z0"));
    }
    check(c);
}

static void names_keep_to_their_limits(void **state)
{
    const ChainsLimits limits = {.applications = 1000,
                                 .name_bytes = 500,
                                 .all_name_bytes = 1200,
                                 .pairs = 100000,
                                 .all_pairs = 100000};
    _cleanup_chains_ Chains *c = NULL;
    size_t bytes = 0;

    assert_int_equal(chains_new(H, WINDOW, &c), 0);
    use(c, 1000, "quiet", 5);
    use(c, 1001, "a-long-name-of-one-user-", 100);
    use(c, 1002, "a-long-name-of-another-", 100);
    assert_int_equal(chains_limit(&c, &limits), 0);
    for (size_t i = 0; i < c->names.n; i++)
        bytes += strlen(c->names.names[i]);
    assert_in_range(bytes, 600, 1200);
    assert_true(follows(c, 1000, "/quiet4"));
    assert_true(follows(c, UID_INVALID, "/quiet0"));
    assert_true(follows(c, 1001, "/a-long-name-of-one-user-0"));
    check(c);
}

static void a_session_does_not_meet_without_end(void **state)
{
    _cleanup_chains_ Chains *c = NULL;

    assert_int_equal(chains_new(H, WINDOW, &c), 0);
    use(c, 1000, "hog", 3000);
    assert_int_equal(history(c, 1000)->n_co_occurring, CHAINS_LIVE_PAIRS_MAX);
}

static void sessions_must_have_ended(void **state)
{
    const ChainsLimits limits = {.name_bytes = 1U << 20,
                                 .all_name_bytes = 8U << 20,
                                 .applications = 1,
                                 .pairs = 1,
                                 .all_pairs = 1};
    _cleanup_chains_ Chains *c = NULL;

    assert_int_equal(chains_new(H, WINDOW, &c), 0);
    use(c, 1000, "a", 5);
    chains_set_time(c, (EventTime){c->seen + 1, T0});
    assert_int_equal(chains_begin(c, 1000), 0);
    assert_int_equal(chains_limit(&c, &limits), -EBUSY);
}

static void fair_shares_by_hand(void **state)
{
    uint64_t sizes[] = {50, 1, 30, 9};

    assert_int_equal(fair_share(sizes, 4, 100, 1000), 100);
    assert_int_equal(fair_share(sizes, 4, 40, 1000), 40);
    assert_int_equal(fair_share(sizes, 4, 100, 40), 15);  /* 1 + 9 + 15 + 15 */
    assert_int_equal(fair_share(sizes, 4, 100, 60), 25);  /* 1 + 9 + 25 + 25 */
    assert_int_equal(fair_share(sizes, 4, 100, 85), 45);  /* 1 + 9 + 30 + 45 */
    assert_int_equal(fair_share(sizes, 4, 100, 90), 100); /* the whole limit */
    assert_int_equal(fair_share(sizes, 4, 100, 3), 0);
    assert_int_equal(fair_share(sizes, 0, 100, 0), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(what_fits_is_untouched),
            cmocka_unit_test(a_user_keeps_the_applications_of_most_sessions),
            cmocka_unit_test(in_the_history_of_everybody_users_take_turns),
            cmocka_unit_test(pairs_keep_to_their_limits_the_busiest_first),
            cmocka_unit_test(in_the_history_of_everybody_the_pairs_of_users_take_turns),
            cmocka_unit_test(pairs_of_dropped_applications_take_no_places),
            cmocka_unit_test(pairs_without_a_chain_keep_the_most_used),
            cmocka_unit_test(names_keep_to_their_limits),
            cmocka_unit_test(a_session_does_not_meet_without_end),
            cmocka_unit_test(sessions_must_have_ended),
            cmocka_unit_test(fair_shares_by_hand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
