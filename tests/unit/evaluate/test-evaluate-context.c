/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests PCM and EPCM with the examples of Kroeger and Long, sections 2.1 to 2.3. */

#include "evaluate/context.c" // NOLINT(bugprone-suspicious-include)
#include "util/evaluate-util.h"

/* Adds a pattern of n symbols that was seen `count` times; its prefixes must exist. Returns 0,
 * -EINVAL (n is not in 1..order, or `count` is 0), -ENOENT (a prefix is missing), -ENOSPC (the
 * partition is full) or -ENOMEM. */
static int context_add(Predictor *p, const uint32_t *pattern, size_t n, uint32_t count)
{
    Context *c = (Context *)p;
    Partition *part;
    uint16_t parent, node;
    int r;

    if (n == 0 || n > c->order || count == 0)
        return -EINVAL;
    r = get_partition(c, pattern[0], &part);
    if (r < 0)
        return r;
    if (n == 1) {
        part->nodes[0].count = count;
        return 0;
    }
    parent = find_path(part, pattern, n - 1);
    if (parent == NO_NODE)
        return -ENOENT;
    node = find_child(part, parent, pattern[n - 1]);
    if (node == NO_NODE) {
        r = partition_add_child(c, part, parent, pattern[n - 1], &node);
        if (r < 0)
            return r;
    }
    part->nodes[node].count = count;
    return 0;
}

/* Returns the stored count of the pattern, or 0 if the pattern is not stored. */
static uint32_t context_count(const Predictor *p, const uint32_t *pattern, size_t n)
{
    const Context *c = (const Context *)p;
    const Partition *part = n > 0 && pattern[0] < c->allocated ? &c->partitions[pattern[0]] : NULL;
    uint16_t node = part ? find_path(part, pattern, n) : NO_NODE;

    return node == NO_NODE ? 0 : part->nodes[node].count;
}

/* Returns the number of nodes in the partition of the first-order node `symbol`. */
static size_t context_partition_nodes(const Predictor *p, uint32_t symbol)
{
    const Context *c = (const Context *)p;

    return symbol < c->allocated && c->partitions[symbol].nodes ? c->partitions[symbol].used : 0;
}

static uint32_t count(const Predictor *p, const char *pattern)
{
    uint32_t k[64];

    key(pattern, k);
    return context_count(p, k, strlen(pattern));
}

static void add(Predictor *p, const char *pattern, uint32_t n)
{
    uint32_t k[64];

    key(pattern, k);
    assert_int_equal(context_add(p, k, strlen(pattern), n), 0);
}

/* Figure 2: in CACBCAABCA the pattern CA occurs three times; A and C follow with 0.5 each. */
static void test_cacbcaabca(void **state)
{
    static const char text[] = "CACBCAABCA";
    _cleanup_predictor_ Predictor *p = make_predictor("pcm", NULL);

    feed(p, text);
    assert_int_equal(count(p, "CA"), 3);
    assert_int_equal(count(p, "CAA"), 1);
    assert_int_equal(count(p, "CAC"), 1);
    assert_near(guess_of(p, 'A'), 0.5);
    assert_near(guess_of(p, 'C'), 0.5);
    assert_string_equal(guessed(p), "AC");

    /* Compares every node of the trie of order 3 with a simple count. */
    for (size_t n = 1; n <= 3; n++)
        for (size_t i = 0; i + n <= strlen(text); i++) {
            char pattern[4] = {0};
            uint32_t expected = 0;

            memcpy(pattern, text + i, n);
            for (size_t j = 0; j + n <= strlen(text); j++)
                expected += memcmp(text + j, pattern, n) == 0;
            assert_int_equal(count(p, pattern), expected);
        }
    /* Figure 3: each first-order node has a partition. That of C holds C, CA, CB, CAC, CBC, CAA. */
    assert_int_equal(context_partition_nodes(p, 'C' - 'A'), 6);
}

/* A full partition halves its counts and drops nodes that reach zero; then the access is added. */
static void test_halving(void **state)
{
    PredictorParameters par = defaults("pcm");
    _cleanup_predictor_ Predictor *p = NULL;

    par.partition_nodes = 4;
    par.partition_order = 2;
    p = make_predictor("pcm", &par);
    feed(p, "ABABACAD"); /* A 4, AB 2, AC 1, AD 1: full */
    assert_int_equal(count(p, "A"), 4);
    assert_int_equal(count(p, "AB"), 2);
    assert_int_equal(count(p, "AD"), 1);
    feed(p, "AE"); /* halved: A is 5 / 2 = 2, AB is 1, and AC and AD are gone */
    assert_int_equal(count(p, "A"), 2);
    assert_int_equal(count(p, "AB"), 1);
    assert_int_equal(count(p, "AC"), 0);
    assert_int_equal(count(p, "AD"), 0);
    assert_int_equal(count(p, "AE"), 1);
    assert_int_equal(context_partition_nodes(p, 0), 3);
}

/* "If no space becomes available, the access is ignored." */
static void test_ignored(void **state)
{
    PredictorParameters par = defaults("pcm");
    _cleanup_predictor_ Predictor *p = NULL;

    par.partition_nodes = 3;
    par.partition_order = 2;
    p = make_predictor("pcm", &par);
    feed(p, "ABABABABACACACAC"); /* AB 4, AC 4 */
    feed(p, "AD");
    assert_int_equal(count(p, "AB"), 2);
    assert_int_equal(count(p, "AC"), 2);
    assert_int_equal(count(p, "AD"), 0);
    assert_int_equal(context_partition_nodes(p, 0), 3);
}

/* For random input, partitions stay within their bound, and the probabilities of PCM add up to 1.
 */
static void test_bounded(void **state)
{
    static const char *const names[] = {"pcm", "epcm"};

    for (size_t k = 0; k < ELEMENTSOF(names); k++)
        for (unsigned nodes = 2; nodes <= 20; nodes++) {
            PredictorParameters par = defaults(names[k]);
            _cleanup_predictor_ Predictor *p = NULL;
            _cleanup_guesses_ Guesses g = {0};
            uint32_t x = nodes;

            par.partition_nodes = nodes;
            par.partition_order = MAX(2U, nodes / 2);
            p = make_predictor(names[k], &par);
            for (unsigned i = 0; i < 20000; i++) {
                double sum = 0;

                x = x * 1664525 + 1013904223;
                assert_int_equal(
                        predictor_observe(p, &(PredictorEvent){.item = (x >> 24) % 7 * (x >> 31),
                                                               .kind = PREDICTOR_ACCESS}),
                        0);
                assert_int_equal(predictor_predict(p, 0, 0, &g), 0);
                for (size_t j = 0; j < g.n; j++)
                    sum += g.guesses[j].probability;
                if (k == 0)
                    assert_true(g.n == 0 || (sum > 1 - 1e-9 && sum < 1 + 1e-9));
            }
            for (uint32_t s = 0; s < 7; s++)
                assert_true(context_partition_nodes(p, s) <= nodes);
        }
}

/* Figure 4: INF was seen 37 times, O followed 35 times, then R and M 34 times: O is predicted with
 * 35/37, R and M with 34/37. */
static void test_informs(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("epcm", NULL);

    add(p, "I", 40);
    add(p, "IN", 38);
    add(p, "INF", 37);
    add(p, "INFO", 35);
    add(p, "INFA", 1);
    add(p, "INFI", 1);
    add(p, "INFOR", 34);
    add(p, "INFOL", 1);
    add(p, "INFORM", 34);
    feed(p, "INF");
    assert_string_equal(guessed(p), "MOR");
    assert_near(guess_of(p, 'O'), 35.0 / 37);
    assert_near(guess_of(p, 'R'), 34.0 / 37);
    assert_near(guess_of(p, 'M'), 34.0 / 37);

    /* "If we then see ORM each node will have their counts incremented and the event seen following
     * M will be added as a child of M." */
    feed(p, "ORMS");
    assert_int_equal(count(p, "INFO"), 36);
    assert_int_equal(count(p, "INFOR"), 35);
    assert_int_equal(count(p, "INFORM"), 35);
    assert_int_equal(count(p, "INFORMS"), 1);
}

/* "The patterns modeled grow in length by one node each time they occur." */
static void test_growth(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("epcm", NULL);

    for (unsigned i = 1; i <= 6; i++) {
        static const char word[] = "INFORM";

        feed(p, word);
        predictor_end(p, 0);
        for (size_t n = 1; n <= 6; n++) {
            char pattern[8] = {0};

            memcpy(pattern, word, n);
            /* The first instance adds nodes 1 and 2 (I and N), each later one adds one node. */
            assert_int_equal(count(p, pattern), n == 1 ? i : i + 2 > n ? i + 2 - n : 0);
        }
    }
}

/* The order limits the length of a pattern. */
static void test_order(void **state)
{
    PredictorParameters par = defaults("epcm");
    _cleanup_predictor_ Predictor *p = NULL;

    par.partition_order = 3;
    p = make_predictor("epcm", &par);
    for (unsigned i = 0; i < 20; i++) {
        feed(p, "ABCDE");
        predictor_end(p, 0);
    }
    assert_true(count(p, "ABC") > 0);
    assert_int_equal(count(p, "ABCD"), 0);
}

/* A run stops where the likelihood of the whole run no longer exceeds the threshold. */
static void test_threshold(void **state)
{
    _cleanup_predictor_ Predictor *p = make_predictor("epcm", NULL);

    add(p, "A", 10);
    add(p, "AB", 8);
    add(p, "AC", 2);
    add(p, "ABD", 6);
    add(p, "ABE", 2);
    add(p, "ABDF", 4);
    add(p, "ABDG", 2);
    feed(p, "A");
    assert_string_equal(guessed(p), "BD"); /* 0.8, 0.6, then 0.4 */
}

/* Section 6, partition jumping: a run that ends in one partition continues in the partition of its
 * last symbols. */
static void test_jump(void **state)
{
    PredictorParameters par = defaults("epcm");
    _cleanup_predictor_ Predictor *without = make_predictor("epcm", &par), *with = NULL;

    par.partition_jump = 2;
    with = make_predictor("epcm", &par);
    for (unsigned i = 0; i < 2; i++) {
        Predictor *p = i ? with : without;

        add(p, "A", 2);
        add(p, "AB", 2);
        add(p, "ABC", 2);
        add(p, "B", 2);
        add(p, "BC", 2);
        add(p, "BCD", 2);
        feed(p, "A");
    }
    assert_string_equal(guessed(without), "BC");
    assert_string_equal(guessed(with), "BCD");
}

/* A run that jumps is longer than any pattern, and ends although it never leaves what is known. */
static void test_long_jump(void **state)
{
    _cleanup_guesses_ Guesses guesses = {0};
    PredictorParameters par = defaults("epcm");
    _cleanup_predictor_ Predictor *p = NULL;

    par.partition_jump = 1;
    p = make_predictor("epcm", &par);
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t item = 0; item < 300; item++)
            assert_int_equal(predictor_observe(p, &(PredictorEvent){.at = USEC_PER_SEC,
                                                                    .user = UID_INVALID,
                                                                    .item = item,
                                                                    .kind = PREDICTOR_ACCESS}),
                             0);
    assert_int_equal(predictor_predict(p, USEC_PER_SEC, USEC_INFINITY, &guesses), 0);
    assert_int_equal(guesses.n, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_cacbcaabca), cmocka_unit_test(test_halving),
            cmocka_unit_test(test_ignored),    cmocka_unit_test(test_bounded),
            cmocka_unit_test(test_informs),    cmocka_unit_test(test_growth),
            cmocka_unit_test(test_order),      cmocka_unit_test(test_threshold),
            cmocka_unit_test(test_jump),       cmocka_unit_test(test_long_jump),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
