/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Association rules (Rutt and Parthasarathy, section 3.2), mined by Apriori: sets of files that are
 * accessed within one window, in any order. A window of `association_window` accesses slides over a
 * session. The set of items at each of its positions is a transaction; a session that is shorter
 * than the window is one transaction. A B C A Z Y gives {A B C Z} and {A B C Y Z}, and with them
 * the rules of the paper's figure 2. The support of a rule is the share of transactions that
 * contain all its items. Its confidence is the share of the transactions with its antecedent that
 * also contain its consequent, which is one item.
 *
 * A rule applies if its antecedent lies within the last window - 1 accesses. The rules that apply
 * predict at most `association_guesses` different items, in the order of support, confidence and
 * length of the antecedent (the longer first); rules that are equal in these are ordered by their
 * items. The probability of a guess is the confidence of its rule.
 *
 * Rules are mined again when the number of observed accesses has grown by a quarter, or by a
 * quarter of ASSOCIATION_HISTORY if that is less, and by at least 64. Mining therefore costs a
 * constant factor per event. The latest accesses are mined, at most twice ASSOCIATION_HISTORY. */

#include "evaluate/predictor-internal.h"

#include <string.h>

#define HASH_NONFATAL_OOM      1
#define uthash_nonfatal_oom(e) ((e)->lost = true)
#include <uthash.h>

#define ASSOCIATION_HISTORY 65536U

#define WINDOW_MAX 8
#define BREAK      UINT32_MAX /* marks the end of a session in the history */

/* A set of items, sorted, and the number of transactions that contain it. */
typedef struct Itemset {
    UT_hash_handle hh;
    uint32_t items[WINDOW_MAX]; /* zero beyond n, so that whole arrays can be compared */
    uint64_t count;
    unsigned n;
    bool lost;
} Itemset;

typedef struct Rule {
    uint32_t antecedent[WINDOW_MAX]; /* sorted */
    unsigned n;
    uint32_t consequent;
    double support, confidence;
} Rule;

typedef struct Association {
    Predictor base;
    unsigned window, n_guesses;
    double support, confidence;
    uint32_t *history;
    size_t n_history, allocated;
    size_t mined_at; /* n_seen at the last mining */
    size_t n_seen;
    Rule *rules; /* best first */
    size_t n_rules, rules_allocated;
    uint32_t recent[WINDOW_MAX]; /* the last window - 1 accesses */
    unsigned n_recent;
} Association;

static int association_init(Predictor *p, const PredictorParameters *parameters, uint64_t seed)
{
    Association *a = (Association *)p;

    a->window = parameters->association_window;
    a->n_guesses = parameters->association_guesses;
    a->support = parameters->association_support;
    a->confidence = parameters->association_confidence;
    return 0;
}

static void association_done(Predictor *p)
{
    Association *a = (Association *)p;

    free(a->history);
    free(a->rules);
}

static Itemset *itemsets_free(Itemset *table)
{
    Itemset *s, *next;

    HASH_ITER (hh, table, s, next) {
        HASH_DEL(table, s);
        free(s);
    }
    return NULL;
}
DEFINE_CLEANUP(Itemset *, itemsets_free);

static Itemset *itemset_find(Itemset *table, const uint32_t items[static WINDOW_MAX])
{
    Itemset *s = NULL;

    HASH_FIND(hh, table, items, sizeof(s->items), s);
    return s;
}

static int itemset_count(Itemset **table, const uint32_t items[static WINDOW_MAX], unsigned n)
{
    Itemset *s = itemset_find(*table, items);

    if (!s) {
        s = calloc(1, sizeof(*s));
        if (!s)
            return -ENOMEM;
        memcpy(s->items, items, sizeof(s->items));
        s->n = n;
        HASH_ADD(hh, *table, items, sizeof(s->items), s);
        if (s->lost) {
            free(s);
            return -ENOMEM;
        }
    }
    s->count++;
    return 0;
}

/* Copies the items of a set that `mask` selects, padded with zeros. Item 0 needs no special
 * treatment, because each level of mining has sets of one size. */
static unsigned pick(const uint32_t *items, unsigned n, unsigned mask,
                     uint32_t ret[static WINDOW_MAX])
{
    unsigned m = 0;

    memset(ret, 0, WINDOW_MAX * sizeof(*ret));
    for (unsigned i = 0; i < n; i++)
        if (mask & (1U << i))
            ret[m++] = items[i];
    return m;
}

/* Returns true if all subsets that lack one item are frequent. Otherwise the set itself cannot be
 * frequent (Apriori's pruning). */
static bool subsets_frequent(Itemset *smaller, const uint32_t *items, unsigned n)
{
    uint32_t sub[WINDOW_MAX];

    for (unsigned i = 0; n > 1 && i < n; i++) {
        pick(items, n, ((1U << n) - 1) & ~(1U << i), sub);
        if (!itemset_find(smaller, sub))
            return false;
    }
    return true;
}

static int compare_uint32(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Copies the items of the history from `at` to the end of the window or of the session: sorted,
 * each item once. */
static unsigned transaction(const Association *a, size_t at, uint32_t ret[static WINDOW_MAX])
{
    unsigned n = 0, m = 0;

    while (n < a->window && at + n < a->n_history && a->history[at + n] != BREAK) {
        ret[n] = a->history[at + n];
        n++;
    }
    qsort(ret, n, sizeof(*ret), compare_uint32);
    for (unsigned i = 0; i < n; i++)
        if (m == 0 || ret[m - 1] != ret[i])
            ret[m++] = ret[i];
    return m;
}

/* Moves *at forward to the start of a transaction: a position whose window is full, or the first
 * position of a session that is shorter than a window. Returns false if there is none. */
static bool next_transaction(const Association *a, size_t *at, bool *first)
{
    for (; *at < a->n_history; (*at)++) {
        unsigned n = 0;

        if (a->history[*at] == BREAK) {
            *first = true;
            continue;
        }
        while (n < a->window && *at + n < a->n_history && a->history[*at + n] != BREAK)
            n++;
        if (n == a->window || *first)
            return true;
    }
    return false;
}

static int count_level(const Association *a, unsigned level, Itemset *smaller, Itemset **ret,
                       uint64_t *ret_transactions)
{
    _cleanup_(itemsets_freep) Itemset *table = NULL;
    uint64_t n_transactions = 0;
    bool first = true;

    for (size_t at = 0; next_transaction(a, &at, &first); at++) {
        uint32_t items[WINDOW_MAX], sub[WINDOW_MAX];
        unsigned n = transaction(a, at, items);

        first = false;
        n_transactions++;
        for (unsigned mask = 1; mask < 1U << n; mask++) {
            if ((unsigned)__builtin_popcount(mask) != level)
                continue;
            pick(items, n, mask, sub);
            if (subsets_frequent(smaller, sub, level)) {
                int r = itemset_count(&table, sub, level);
                if (r < 0)
                    return r;
            }
        }
    }
    *ret = TAKE_PTR(table);
    *ret_transactions = n_transactions;
    return 0;
}

static int compare_rules(const void *a, const void *b)
{
    const Rule *x = a, *y = b;

    if (x->support != y->support)
        return x->support > y->support ? -1 : 1;
    if (x->confidence != y->confidence)
        return x->confidence > y->confidence ? -1 : 1;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    for (unsigned i = 0; i < x->n; i++)
        if (x->antecedent[i] != y->antecedent[i])
            return x->antecedent[i] < y->antecedent[i] ? -1 : 1;
    return x->consequent < y->consequent ? -1 : x->consequent > y->consequent;
}

/* Adds the rules of a frequent set. Each of its items is once the consequent, with the other items
 * as the antecedent. */
static int add_rules(Association *a, const Itemset *s, Itemset *smaller, uint64_t n_transactions)
{
    for (unsigned i = 0; i < s->n; i++) {
        Rule rule = {
                .n = s->n - 1,
                .consequent = s->items[i],
                .support = (double)s->count / (double)n_transactions,
        };
        const Itemset *antecedent;
        int r;

        pick(s->items, s->n, ((1U << s->n) - 1) & ~(1U << i), rule.antecedent);
        antecedent = itemset_find(smaller, rule.antecedent);
        if (!antecedent)
            continue;
        rule.confidence = (double)s->count / (double)antecedent->count;
        if (rule.confidence < a->confidence)
            continue;
        r = grow_array(&a->rules, &a->rules_allocated, a->n_rules + 1, sizeof(*a->rules));
        if (r < 0)
            return r;
        a->rules[a->n_rules++] = rule;
    }
    return 0;
}

static int association_mine(Predictor *p)
{
    Association *a = (Association *)p;
    _cleanup_(itemsets_freep) Itemset *smaller = NULL;

    a->n_rules = 0;
    a->mined_at = a->n_seen;
    for (unsigned level = 1; level <= a->window; level++) {
        _cleanup_(itemsets_freep) Itemset *table = NULL;
        Itemset *s, *next;
        uint64_t n_transactions;
        int r;

        r = count_level(a, level, smaller, &table, &n_transactions);
        if (r < 0)
            return r;
        HASH_ITER (hh, table, s, next) {
            if ((double)s->count < a->support * (double)n_transactions) {
                HASH_DEL(table, s);
                free(s);
            } else if (level > 1) {
                r = add_rules(a, s, smaller, n_transactions);
                if (r < 0)
                    return r;
            }
        }
        itemsets_free(smaller);
        smaller = TAKE_PTR(table);
        if (!smaller)
            break;
    }
    if (a->n_rules > 0)
        qsort(a->rules, a->n_rules, sizeof(*a->rules), compare_rules);
    return 0;
}

static int remember(Association *a, uint32_t item)
{
    int r;

    if (a->n_history >= 2 * (size_t)ASSOCIATION_HISTORY) {
        memmove(a->history, a->history + a->n_history - ASSOCIATION_HISTORY,
                ASSOCIATION_HISTORY * sizeof(*a->history));
        a->n_history = ASSOCIATION_HISTORY;
    }
    r = grow_array(&a->history, &a->allocated, a->n_history + 1, sizeof(*a->history));
    if (r < 0)
        return r;
    a->history[a->n_history++] = item;
    return 0;
}

static int association_end(Predictor *p, usec_t now)
{
    Association *a = (Association *)p;

    a->n_recent = 0;
    if (a->n_history == 0 || a->history[a->n_history - 1] == BREAK)
        return 0;
    return remember(a, BREAK);
}

static int association_observe(Predictor *p, const PredictorEvent *event)
{
    Association *a = (Association *)p;
    int r;

    if (event->kind == PREDICTOR_EXIT)
        return 0;
    r = remember(a, event->item);
    if (r < 0)
        return r;
    a->n_seen++;
    if (a->n_recent == a->window - 1) {
        memmove(a->recent, a->recent + 1, (a->n_recent - 1) * sizeof(*a->recent));
        a->n_recent--;
    }
    a->recent[a->n_recent++] = event->item;
    /* The history is bounded, so mining after each quarter of ASSOCIATION_HISTORY is enough. */
    if (a->n_seen - a->mined_at >=
        MAX(MIN(a->mined_at, (size_t)ASSOCIATION_HISTORY) / 4, (size_t)64))
        return association_mine(p);
    return 0;
}

static bool rule_applies(const Association *a, const Rule *rule)
{
    for (unsigned i = 0; i < rule->n; i++) {
        bool found = false;

        for (unsigned j = 0; !found && j < a->n_recent; j++)
            found = a->recent[j] == rule->antecedent[i];
        if (!found)
            return false;
    }
    return true;
}

static int association_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    Association *a = (Association *)p;

    for (size_t i = 0; i < a->n_rules && guesses->n < a->n_guesses; i++) {
        const Rule *rule = &a->rules[i];
        bool known = false;
        int r;

        if (!rule_applies(a, rule))
            continue;
        for (size_t j = 0; !known && j < guesses->n; j++)
            known = guesses->guesses[j].item == rule->consequent;
        if (known)
            continue;
        r = guesses_add(guesses, rule->consequent, rule->confidence);
        if (r < 0)
            return r;
    }
    return 0;
}

static size_t association_size(const Predictor *p)
{
    const Association *a = (const Association *)p;

    return a->n_rules * sizeof(*a->rules) + a->n_history * sizeof(*a->history);
}

const PredictorOps predictor_ops_association = {
        .name = "association",
        .source = "Rutt and Parthasarathy, section 3.2 (Apriori)",
        PREDICTOR_OPS(association, Association),
        .init = association_init,
};
