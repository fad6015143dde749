/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Chains as JSON: names sorted, worlds by user (everybody's last), applications and pairs by name,
 * each DecayedSum as two numbers (current, previous generation), in the order of
 * chains_application_sums() and chains_pair_sums(). Application 0 of a world is the session's
 * beginning, the others are 1 + the index of their name. */

#include "predict/chains-internal.h"

#include <string.h>

#define TYPE "headstart-chains"

/* Writing */

/* What an array of numbers is gathered in. */
#define ROW_MAX (2 * (CHAINS_PAIR_SUMS + 2 * CHAINS_BUCKETS * CHAINS_EXPERTS))

typedef struct Numbers {
    uint64_t v[ROW_MAX];
    size_t n;
} Numbers;

static void push_sum(Numbers *to, DecayedSum f)
{
    to->v[to->n++] = f.current;
    to->v[to->n++] = f.previous;
}

typedef struct Rank {
    const char *name;
    uint32_t id;
} Rank;

static int compare_ranks(const void *a, const void *b)
{
    return strcmp(((const Rank *)a)->name, ((const Rank *)b)->name);
}

/* What a row of applications or pairs is sorted by: numbers of the format. */
typedef struct Row {
    uint32_t first, second, index, partner;
} Row;

static int compare_rows(const void *a, const void *b)
{
    const Row *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->second < y->second ? -1 : x->second > y->second;
}

static uint32_t number_of(const ChainsWorld *w, uint32_t application, const uint32_t *numbers)
{
    return application == CHAINS_BEGIN ? 0 : numbers[w->applications[application].id];
}

static int write_applications(JsonWriter *to, ChainsWorld *w, const uint32_t *numbers)
{
    _cleanup_free_ Row *rows = calloc(w->n_applications, sizeof(*rows));

    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < w->n_applications; i++)
        rows[i] = (Row){.first = number_of(w, (uint32_t)i, numbers), .index = (uint32_t)i};
    qsort(rows, w->n_applications, sizeof(*rows), compare_rows);
    for (size_t i = 0; i < w->n_applications; i++) {
        Numbers row = {.v = {rows[i].first}, .n = 1};
        DecayedSum *sums[CHAINS_APPLICATION_SUMS];

        chains_application_sums(&w->applications[rows[i].index], sums);
        for (size_t j = 0; j < CHAINS_APPLICATION_SUMS; j++)
            push_sum(&row, *sums[j]);
        json_writer_add_numbers(to, NULL, row.v, row.n);
    }
    return 0;
}

static void write_pair(JsonWriter *to, ChainsWorld *w, const uint32_t *numbers, const Row *at)
{
    const ChainsPartner *partner = &w->applications[at->index].partners[at->partner];
    ChainsPair *p = partner->pair == CHAINS_NONE ? NULL : &w->pairs[partner->pair];
    Numbers row = {.v = {at->first, at->second, p ? p->together : 1}, .n = 3};
    DecayedSum *sums[CHAINS_PAIR_SUMS];

    if (p)
        chains_pair_sums(p, number_of(w, p->a, numbers) != at->first, sums);
    for (size_t j = 0; p && j < CHAINS_PAIR_SUMS; j++)
        push_sum(&row, *sums[j]);
    json_writer_add_numbers(to, NULL, row.v, row.n);
}

static int write_pairs(JsonWriter *to, ChainsWorld *w, const uint32_t *numbers)
{
    _cleanup_free_ Row *rows = calloc(w->n_met + 1, sizeof(*rows));
    size_t n = 0;

    if (!rows)
        return -ENOMEM;
    for (uint32_t a = 0; a < w->n_applications; a++)
        for (uint32_t i = 0; i < w->applications[a].n_partners; i++) {
            uint32_t b = w->applications[a].partners[i].other;
            uint32_t x = number_of(w, a, numbers), y = number_of(w, b, numbers);

            if (a < b)
                rows[n++] = (Row){MIN(x, y), MAX(x, y), a, i};
        }
    qsort(rows, n, sizeof(*rows), compare_rows);
    for (size_t i = 0; i < n; i++)
        write_pair(to, w, numbers, &rows[i]);
    return 0;
}

static int write_world(JsonWriter *to, ChainsWorld *w, const uint32_t *numbers)
{
    DecayedSum *sums[CHAINS_WORLD_SUMS];
    Numbers row = {.n = 0};
    int r;

    json_writer_open(to, NULL, '{');
    if (w->user == UID_INVALID)
        json_writer_add_text(to, "user", "null");
    else
        json_writer_add_u64(to, "user", w->user);
    chains_world_sums(w, sums);
    for (size_t i = 0; i < CHAINS_WORLD_SUMS; i++)
        push_sum(&row, *sums[i]);
    json_writer_add_numbers(to, "sums", row.v, row.n);
    json_writer_open(to, "applications", '[');
    r = write_applications(to, w, numbers);
    json_writer_close(to, ']');
    json_writer_open(to, "pairs", '[');
    if (r >= 0)
        r = write_pairs(to, w, numbers);
    json_writer_close(to, ']');
    json_writer_close(to, '}');
    return r;
}

static int compare_worlds(const void *a, const void *b)
{
    const ChainsWorld *x = *(ChainsWorld *const *)a, *y = *(ChainsWorld *const *)b;

    return x->user < y->user ? -1 : x->user > y->user;
}

/* Numbers the names in use by their order: id -> 1 + rank. */
static int number_names(JsonWriter *to, const Chains *c, uint32_t *numbers)
{
    _cleanup_free_ Rank *ranks = calloc(c->n_names + 1, sizeof(*ranks));
    size_t n = 0;

    if (!ranks)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_worlds; i++)
        for (size_t j = 1; j < c->worlds[i]->n_applications; j++) {
            uint32_t id = c->worlds[i]->applications[j].id;

            if (c->worlds[i]->in_session)
                return -EBUSY;
            if (id >= c->n_names)
                return -EINVAL;
            if (numbers[id] == 0)
                ranks[n++] = (Rank){c->names[id], id};
            numbers[id] = 1;
        }
    qsort(ranks, n, sizeof(*ranks), compare_ranks);
    json_writer_open(to, "names", '[');
    for (size_t i = 0; i < n; i++) {
        json_writer_add_string(to, NULL, ranks[i].name);
        numbers[ranks[i].id] = (uint32_t)i + 1;
    }
    json_writer_close(to, ']');
    return 0;
}

int chains_write(const Chains *c, JsonWriter *to)
{
    _cleanup_free_ uint32_t *numbers = calloc(c->n_names + 1, sizeof(*numbers));
    _cleanup_free_ ChainsWorld **worlds = calloc(c->n_worlds, sizeof(*worlds));
    Numbers evidence = {.n = 0};
    int r;

    if (!numbers || !worlds)
        return -ENOMEM;
    json_writer_add_string(to, "type", TYPE);
    json_writer_add_u64(to, "version", CHAINS_FORMAT_VERSION);
    json_writer_add_u64(to, "halflife", c->halflife);
    json_writer_add_u64(to, "window", c->window);
    json_writer_add_u64(to, "generation", c->generation);
    r = number_names(to, c, numbers);
    if (r < 0)
        return r;
    for (size_t i = 0; i < CHAINS_BUCKETS * CHAINS_EXPERTS; i++) {
        push_sum(&evidence, c->attributed[i / CHAINS_EXPERTS][i % CHAINS_EXPERTS]);
        push_sum(&evidence, c->expected[i / CHAINS_EXPERTS][i % CHAINS_EXPERTS]);
    }
    json_writer_add_numbers(to, "evidence", evidence.v, evidence.n);
    memcpy(worlds, c->worlds, c->n_worlds * sizeof(*worlds));
    qsort(worlds, c->n_worlds, sizeof(*worlds), compare_worlds);
    json_writer_open(to, "worlds", '[');
    for (size_t i = 0; r >= 0 && i < c->n_worlds; i++)
        r = write_world(to, worlds[i], numbers);
    json_writer_close(to, ']');
    return r;
}

int chains_to_json(const Chains *c, char **ret)
{
    _cleanup_json_writer_ JsonWriter w = {.compact = true};
    size_t size;
    int r = chains_write(c, &w);

    return r < 0 ? r : json_writer_finish(&w, ret, &size);
}

/* Reading: every helper gives -EBADMSG for what is not there or not of its type. */

static int next_sum(JsonColumn *from, DecayedSum *ret)
{
    int r = json_next_u64(from, DECAYED_SUM_MAX, &ret->current);

    return r < 0 ? r : json_next_u64(from, DECAYED_SUM_MAX, &ret->previous);
}

static int read_applications(ChainsWorld *w, uint64_t n_names, JsonColumn from)
{
    uint64_t last = 0, number;
    bool first = true;

    if (from.n == 0)
        return -EBADMSG;
    while (from.n > 0) {
        DecayedSum *sums[CHAINS_APPLICATION_SUMS];
        uint32_t a = CHAINS_BEGIN;
        JsonColumn row;
        int r;

        if (json_next_column(&from, 1 + 2 * CHAINS_APPLICATION_SUMS, &row) < 0 ||
            row.n != 1 + 2 * CHAINS_APPLICATION_SUMS || json_next_u64(&row, n_names, &number) < 0 ||
            (first ? number != 0 : number <= last))
            return -EBADMSG;
        first = false;
        last = number;
        if (number > 0) {
            r = chains_intern(w, (uint32_t)number - 1, &a);
            if (r < 0)
                return r;
        }
        chains_application_sums(&w->applications[a], sums);
        for (size_t j = 0; j < CHAINS_APPLICATION_SUMS; j++) {
            r = next_sum(&row, sums[j]);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static int read_pair(ChainsWorld *w, uint64_t n_names, JsonColumn row)
{
    DecayedSum *sums[CHAINS_PAIR_SUMS];
    uint64_t number[2], together;
    size_t n = row.n;
    uint32_t x[2];
    ChainsPair *p;
    int r;

    for (size_t k = 0; k < 2; k++) {
        r = json_next_u64(&row, n_names, &number[k]);
        if (r < 0)
            return r;
        x[k] = number[k] == 0 ? CHAINS_BEGIN : chains_find(w, (uint32_t)number[k] - 1);
        if (x[k] == CHAINS_NONE)
            return -EBADMSG;
    }
    if (json_next_u64(&row, UINT32_MAX, &together) < 0 || number[0] >= number[1] || together == 0 ||
        chains_find_partner(w, x[0], x[1]) || n != (together == 1 ? 3 : 3 + 2 * CHAINS_PAIR_SUMS))
        return -EBADMSG;
    if (together == 1)
        return chains_add_partners(w, x[0], x[1]);
    r = chains_add_pair(w, x[0], x[1], &p);
    if (r < 0)
        return r;
    p->together = (uint32_t)together;
    chains_pair_sums(p, p->a != x[0], sums);
    for (size_t j = 0; r >= 0 && j < CHAINS_PAIR_SUMS; j++)
        r = next_sum(&row, sums[j]);
    return r;
}

static int read_pairs(ChainsWorld *w, uint64_t n_names, JsonColumn from)
{
    if (from.n > CHAINS_PAIRS_MAX)
        return -E2BIG;
    while (from.n > 0) {
        JsonColumn row;
        int r = json_next_column(&from, 3 + 2 * CHAINS_PAIR_SUMS, &row);

        if (r >= 0)
            r = read_pair(w, n_names, row);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_world(Chains *c, const JsonDocument *d, struct json_object *o, uint64_t *last_user)
{
    uint64_t uid = UID_INVALID;
    DecayedSum *sums[CHAINS_WORLD_SUMS];
    JsonColumn row, applications, pairs;
    struct json_object *user;
    ChainsWorld *w;
    int r;

    if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, "user", &user))
        return -EBADMSG;
    if (user && json_get_u64(o, "user", UID_INVALID - 1, &uid) < 0)
        return -EBADMSG;
    if (uid + 1 <= *last_user)
        return -EBADMSG;
    *last_user = uid + 1;
    if (json_get_column(d, o, "sums", SIZE_MAX, &row) < 0 ||
        json_get_column(d, o, "applications", SIZE_MAX, &applications) < 0 ||
        json_get_column(d, o, "pairs", SIZE_MAX, &pairs) < 0)
        return -EBADMSG;
    r = chains_world(c, (uint32_t)uid, &w);
    if (r >= 0)
        chains_world_sums(w, sums);
    for (size_t i = 0; r >= 0 && i < CHAINS_WORLD_SUMS; i++)
        r = next_sum(&row, sums[i]);
    if (r >= 0)
        r = read_applications(w, c->n_names, applications);
    return r < 0 ? r : read_pairs(w, c->n_names, pairs);
}

static int read_names(Chains *c, struct json_object *from)
{
    size_t n = json_object_array_length(from);

    for (size_t i = 0; i < n; i++) {
        const char *name;
        uint32_t id;
        int r;

        if (json_at_string(from, i, &name) < 0 || (i > 0 && strcmp(c->names[i - 1], name) >= 0))
            return -EBADMSG;
        r = chains_add_name(c, name, &id);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_chains(const JsonDocument *d, struct json_object *o, Chains **ret)
{
    _cleanup_chains_ Chains *c = NULL;
    struct json_object *names, *worlds;
    uint64_t halflife, window, generation, last_user = 0;
    JsonColumn evidence;
    int r;

    if (json_get_u64(o, "halflife", INT64_MAX, &halflife) < 0 ||
        json_get_u64(o, "window", INT64_MAX, &window) < 0 ||
        json_get_u64(o, "generation", INT64_MAX, &generation) < 0 ||
        json_get_array(o, "names", SIZE_MAX, &names) < 0 ||
        json_get_column(d, o, "evidence", SIZE_MAX, &evidence) < 0 ||
        json_get_array(o, "worlds", SIZE_MAX, &worlds) < 0)
        return -EBADMSG;
    r = chains_new(halflife, window, &c);
    if (r < 0)
        return r == -EINVAL ? -EBADMSG : r;
    if (generation > decayed_sum_generation(USEC_INFINITY - 1, halflife))
        return -EBADMSG;
    c->generation = generation;
    r = read_names(c, names);
    for (size_t i = 0; r >= 0 && i < CHAINS_BUCKETS * CHAINS_EXPERTS; i++) {
        r = next_sum(&evidence, &c->attributed[i / CHAINS_EXPERTS][i % CHAINS_EXPERTS]);
        if (r >= 0)
            r = next_sum(&evidence, &c->expected[i / CHAINS_EXPERTS][i % CHAINS_EXPERTS]);
    }
    for (size_t i = 0; r >= 0 && i < json_object_array_length(worlds); i++)
        r = read_world(c, d, json_object_array_get_idx(worlds, i), &last_user);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(c);
    return 0;
}

int chains_read(const JsonDocument *d, struct json_object *o, Chains **ret)
{
    const char *type;
    int64_t version;

    if (json_get_string(o, "type", &type) < 0 || strcmp(type, TYPE) != 0)
        return -EMEDIUMTYPE;
    if (json_get_i64(o, "version", &version) < 0 || version != CHAINS_FORMAT_VERSION)
        return -EPROTONOSUPPORT;
    return read_chains(d, o, ret);
}

int chains_from_json(const char *text, size_t size, Chains **ret)
{
    _cleanup_json_document_ JsonDocument d = {0};
    const char *reason;
    int r;

    if (size > INT32_MAX - 1)
        return -E2BIG;
    r = json_document_parse(text, size, 8, &d, &reason);
    if (r < 0)
        return r;
    return d.root ? chains_read(&d, d.root, ret) : -EBADMSG;
}
