/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Chains as JSON: names sorted, worlds by user (everybody's last), applications and pairs by name,
 * each Fade as two numbers (current, previous generation), in the order of
 * chains_application_fades() and chains_pair_fades(). Application 0 of a world is the session's
 * beginning, the others are 1 + the index of their name. */

#include "model/chains-internal.h"

#include <json-c/json.h>
#include <string.h>

#define TYPE "headstart-chains"

typedef struct json_object Json;

static void json_putp(Json **o)
{
    if (*o)
        json_object_put(*o);
}
#define _cleanup_json_ _cleanup_(json_putp)

/* Writing */

static int push(Json *array, Json *o)
{
    if (!o)
        return -ENOMEM;
    if (json_object_array_add(array, o) < 0) {
        json_object_put(o);
        return -ENOMEM;
    }
    return 0;
}

static int push_number(Json *array, uint64_t x)
{
    return push(array, json_object_new_uint64(x));
}

static int push_fade(Json *array, Fade f)
{
    int r = push_number(array, f.current);

    return r < 0 ? r : push_number(array, f.previous);
}

static int set(Json *object, const char *key, Json *o)
{
    if (!o)
        return -ENOMEM;
    if (json_object_object_add(object, key, o) < 0) {
        json_object_put(o);
        return -ENOMEM;
    }
    return 0;
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

static int write_applications(ChainsWorld *w, const uint32_t *numbers, Json *to)
{
    _cleanup_free_ Row *rows = calloc(w->n_applications, sizeof(*rows));

    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < w->n_applications; i++)
        rows[i] = (Row){.first = number_of(w, (uint32_t)i, numbers), .index = (uint32_t)i};
    qsort(rows, w->n_applications, sizeof(*rows), compare_rows);
    for (size_t i = 0; i < w->n_applications; i++) {
        Fade *fades[CHAINS_APPLICATION_FADES];
        Json *row = json_object_new_array();
        int r = push(to, row);

        if (r >= 0)
            r = push_number(row, rows[i].first);
        chains_application_fades(&w->applications[rows[i].index], fades);
        for (size_t j = 0; r >= 0 && j < CHAINS_APPLICATION_FADES; j++)
            r = push_fade(row, *fades[j]);
        if (r < 0)
            return r;
    }
    return 0;
}

static int write_pair(ChainsWorld *w, const uint32_t *numbers, const Row *at, Json *to)
{
    const ChainsPartner *partner = &w->applications[at->index].partners[at->partner];
    ChainsPair *p = partner->pair == CHAINS_NONE ? NULL : &w->pairs[partner->pair];
    Fade *fades[CHAINS_PAIR_FADES];
    Json *row = json_object_new_array();
    int r = push(to, row);

    if (r >= 0)
        r = push_number(row, at->first);
    if (r >= 0)
        r = push_number(row, at->second);
    if (r >= 0)
        r = push_number(row, p ? p->together : 1);
    if (p)
        chains_pair_fades(p, number_of(w, p->a, numbers) != at->first, fades);
    for (size_t j = 0; r >= 0 && p && j < CHAINS_PAIR_FADES; j++)
        r = push_fade(row, *fades[j]);
    return r;
}

static int write_pairs(ChainsWorld *w, const uint32_t *numbers, Json *to)
{
    _cleanup_free_ Row *rows = calloc(w->n_met + 1, sizeof(*rows));
    size_t n = 0;
    int r = 0;

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
    for (size_t i = 0; r >= 0 && i < n; i++)
        r = write_pair(w, numbers, &rows[i], to);
    return r;
}

static int write_world(ChainsWorld *w, const uint32_t *numbers, Json *to)
{
    Json *o = json_object_new_object(), *sums = NULL, *applications = NULL, *pairs = NULL;
    Fade *fades[CHAINS_WORLD_FADES];
    int r = push(to, o);

    if (r < 0)
        return r;
    r = w->user == CHAINS_EVERYBODY ? json_object_object_add(o, "user", NULL) < 0 ? -ENOMEM : 0
                                    : set(o, "user", json_object_new_int64(w->user));
    if (r >= 0)
        r = set(o, "sums", sums = json_object_new_array());
    chains_world_fades(w, fades);
    for (size_t i = 0; r >= 0 && i < CHAINS_WORLD_FADES; i++)
        r = push_fade(sums, *fades[i]);
    if (r >= 0)
        r = set(o, "applications", applications = json_object_new_array());
    if (r >= 0)
        r = write_applications(w, numbers, applications);
    if (r >= 0)
        r = set(o, "pairs", pairs = json_object_new_array());
    return r < 0 ? r : write_pairs(w, numbers, pairs);
}

static int compare_worlds(const void *a, const void *b)
{
    const ChainsWorld *x = *(ChainsWorld *const *)a, *y = *(ChainsWorld *const *)b;

    return x->user < y->user ? -1 : x->user > y->user;
}

/* Numbers the names in use by their order: id -> 1 + rank. */
static int number_names(const Chains *c, uint32_t *numbers, Json *names)
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
    for (size_t i = 0; i < n; i++) {
        int r = push(names, json_object_new_string(ranks[i].name));
        if (r < 0)
            return r;
        numbers[ranks[i].id] = (uint32_t)i + 1;
    }
    return 0;
}

int chains_to_json(const Chains *c, char **ret)
{
    _cleanup_json_ Json *o = json_object_new_object();
    _cleanup_free_ uint32_t *numbers = calloc(c->n_names + 1, sizeof(*numbers));
    _cleanup_free_ ChainsWorld **worlds = calloc(c->n_worlds, sizeof(*worlds));
    Json *names = NULL, *evidence = NULL, *array = NULL;
    const char *text;
    char *copy;
    int r;

    if (!o || !numbers || !worlds)
        return -ENOMEM;
    r = set(o, "type", json_object_new_string(TYPE));
    if (r >= 0)
        r = set(o, "version", json_object_new_int(CHAINS_FORMAT_VERSION));
    if (r >= 0)
        r = set(o, "halflife", json_object_new_uint64(c->halflife));
    if (r >= 0)
        r = set(o, "window", json_object_new_uint64(c->window));
    if (r >= 0)
        r = set(o, "generation", json_object_new_uint64(c->generation));
    if (r >= 0)
        r = set(o, "names", names = json_object_new_array());
    if (r >= 0)
        r = number_names(c, numbers, names);
    if (r >= 0)
        r = set(o, "evidence", evidence = json_object_new_array());
    for (size_t i = 0; r >= 0 && i < CHAINS_BUCKETS * CHAINS_EXPERTS; i++) {
        r = push_fade(evidence, c->attributed[i / CHAINS_EXPERTS][i % CHAINS_EXPERTS]);
        if (r >= 0)
            r = push_fade(evidence, c->expected[i / CHAINS_EXPERTS][i % CHAINS_EXPERTS]);
    }
    if (r >= 0)
        r = set(o, "worlds", array = json_object_new_array());
    memcpy(worlds, c->worlds, c->n_worlds * sizeof(*worlds));
    qsort(worlds, c->n_worlds, sizeof(*worlds), compare_worlds);
    for (size_t i = 0; r >= 0 && i < c->n_worlds; i++)
        r = write_world(worlds[i], numbers, array);
    if (r < 0)
        return r;
    text = json_object_to_json_string_ext(o,
                                          JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    copy = text ? strdup(text) : NULL;
    if (!copy)
        return -ENOMEM;
    *ret = copy;
    return 0;
}

/* Reading: every helper gives -EBADMSG for what is not there or not of its type. */

static int get_number(Json *o, uint64_t max, uint64_t *ret)
{
    uint64_t x;

    if (!json_object_is_type(o, json_type_int) || json_object_get_int64(o) < 0)
        return -EBADMSG;
    x = json_object_get_uint64(o);
    if (x > max)
        return -EBADMSG;
    *ret = x;
    return 0;
}

static int get_field(Json *o, const char *key, json_type type, Json **ret)
{
    return json_object_object_get_ex(o, key, ret) && json_object_is_type(*ret, type) ? 0 : -EBADMSG;
}

static int get_field_number(Json *o, const char *key, uint64_t max, uint64_t *ret)
{
    Json *x;
    int r = get_field(o, key, json_type_int, &x);

    return r < 0 ? r : get_number(x, max, ret);
}

static int get_at(Json *array, size_t i, uint64_t max, uint64_t *ret)
{
    return get_number(json_object_array_get_idx(array, i), max, ret);
}

static int get_fade(Json *array, size_t i, Fade *ret)
{
    int r = get_at(array, i, FADE_MAX, &ret->current);

    return r < 0 ? r : get_at(array, i + 1, FADE_MAX, &ret->previous);
}

static int read_applications(ChainsWorld *w, uint64_t n_names, Json *from)
{
    uint64_t last = 0, number;
    size_t n = json_object_array_length(from);

    for (size_t i = 0; i < n; i++) {
        Json *row = json_object_array_get_idx(from, i);
        Fade *fades[CHAINS_APPLICATION_FADES];
        uint32_t a = CHAINS_BEGIN;
        int r;

        if (!json_object_is_type(row, json_type_array) ||
            json_object_array_length(row) != 1 + 2 * CHAINS_APPLICATION_FADES)
            return -EBADMSG;
        r = get_at(row, 0, n_names, &number);
        if (r < 0)
            return r;
        if (i == 0 ? number != 0 : number <= last)
            return -EBADMSG;
        last = number;
        if (number > 0) {
            r = chains_intern(w, (uint32_t)number - 1, &a);
            if (r < 0)
                return r;
        }
        chains_application_fades(&w->applications[a], fades);
        for (size_t j = 0; j < CHAINS_APPLICATION_FADES; j++) {
            r = get_fade(row, 1 + 2 * j, fades[j]);
            if (r < 0)
                return r;
        }
    }
    return n > 0 ? 0 : -EBADMSG;
}

static int read_pairs(ChainsWorld *w, uint64_t n_names, Json *from)
{
    size_t n = json_object_array_length(from);

    if (n > CHAINS_PAIRS_MAX)
        return -E2BIG;
    for (size_t i = 0; i < n; i++) {
        Json *row = json_object_array_get_idx(from, i);
        Fade *fades[CHAINS_PAIR_FADES];
        uint64_t number[2], together;
        uint32_t x[2];
        ChainsPair *p;
        int r;

        if (!json_object_is_type(row, json_type_array) || json_object_array_length(row) < 3)
            return -EBADMSG;
        for (size_t k = 0; k < 2; k++) {
            r = get_at(row, k, n_names, &number[k]);
            if (r < 0)
                return r;
            x[k] = number[k] == 0 ? CHAINS_BEGIN : chains_find(w, (uint32_t)number[k] - 1);
            if (x[k] == CHAINS_NONE)
                return -EBADMSG;
        }
        r = get_at(row, 2, UINT32_MAX, &together);
        if (r < 0)
            return r;
        if (number[0] >= number[1] || together == 0 || chains_find_partner(w, x[0], x[1]) ||
            json_object_array_length(row) != (together == 1 ? 3 : 3 + 2 * CHAINS_PAIR_FADES))
            return -EBADMSG;
        if (together == 1) {
            r = chains_add_partners(w, x[0], x[1]);
            if (r < 0)
                return r;
            continue;
        }
        r = chains_add_pair(w, x[0], x[1], &p);
        if (r < 0)
            return r;
        p->together = (uint32_t)together;
        chains_pair_fades(p, p->a != x[0], fades);
        for (size_t j = 0; j < CHAINS_PAIR_FADES; j++) {
            r = get_fade(row, 3 + 2 * j, fades[j]);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static int read_world(Chains *c, Json *o, uint64_t *last_user)
{
    Json *user, *sums, *applications, *pairs;
    uint64_t uid = CHAINS_EVERYBODY;
    Fade *fades[CHAINS_WORLD_FADES];
    ChainsWorld *w;
    int r;

    if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, "user", &user))
        return -EBADMSG;
    if (user) {
        r = get_number(user, CHAINS_EVERYBODY - 1, &uid);
        if (r < 0)
            return r;
    }
    if (uid + 1 <= *last_user)
        return -EBADMSG;
    *last_user = uid + 1;
    if (get_field(o, "sums", json_type_array, &sums) < 0 ||
        get_field(o, "applications", json_type_array, &applications) < 0 ||
        get_field(o, "pairs", json_type_array, &pairs) < 0)
        return -EBADMSG;
    r = chains_world(c, (uint32_t)uid, &w);
    if (r >= 0)
        chains_world_fades(w, fades);
    for (size_t i = 0; r >= 0 && i < CHAINS_WORLD_FADES; i++)
        r = get_fade(sums, 2 * i, fades[i]);
    if (r >= 0)
        r = read_applications(w, c->n_names, applications);
    return r < 0 ? r : read_pairs(w, c->n_names, pairs);
}

static int read_names(Chains *c, Json *from)
{
    size_t n = json_object_array_length(from);

    for (size_t i = 0; i < n; i++) {
        Json *name = json_object_array_get_idx(from, i);
        const char *text = json_object_get_string(name);
        uint32_t id;
        int r;

        if (!json_object_is_type(name, json_type_string) ||
            strlen(text) != (size_t)json_object_get_string_len(name) ||
            (i > 0 && strcmp(c->names[i - 1], text) >= 0))
            return -EBADMSG;
        r = chains_add_name(c, text, &id);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_chains(Json *o, Chains **ret)
{
    _cleanup_chains_ Chains *c = NULL;
    Json *names, *evidence, *worlds;
    uint64_t halflife, window, generation, last_user = 0;
    int r;

    if (get_field_number(o, "halflife", INT64_MAX, &halflife) < 0 ||
        get_field_number(o, "window", INT64_MAX, &window) < 0 ||
        get_field_number(o, "generation", INT64_MAX, &generation) < 0 ||
        get_field(o, "names", json_type_array, &names) < 0 ||
        get_field(o, "evidence", json_type_array, &evidence) < 0 ||
        get_field(o, "worlds", json_type_array, &worlds) < 0)
        return -EBADMSG;
    r = chains_new(halflife, window, &c);
    if (r < 0)
        return r == -EINVAL ? -EBADMSG : r;
    if (generation > fade_generation(USEC_INFINITY - 1, halflife))
        return -EBADMSG;
    c->generation = generation;
    r = read_names(c, names);
    for (size_t i = 0; r >= 0 && i < CHAINS_BUCKETS * CHAINS_EXPERTS; i++) {
        r = get_fade(evidence, 4 * i, &c->attributed[i / CHAINS_EXPERTS][i % CHAINS_EXPERTS]);
        if (r >= 0)
            r = get_fade(evidence, 4 * i + 2, &c->expected[i / CHAINS_EXPERTS][i % CHAINS_EXPERTS]);
    }
    for (size_t i = 0; r >= 0 && i < json_object_array_length(worlds); i++)
        r = read_world(c, json_object_array_get_idx(worlds, i), &last_user);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(c);
    return 0;
}

int chains_from_json(const char *text, size_t size, Chains **ret)
{
    struct json_tokener *tok;
    _cleanup_json_ Json *o = NULL;
    enum json_tokener_error error;
    Json *type, *version;
    size_t end;

    if (size > INT32_MAX - 1)
        return -E2BIG;
    tok = json_tokener_new_ex(8);
    if (!tok)
        return -ENOMEM;
    json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
    o = json_tokener_parse_ex(tok, text, (int)size);
    error = json_tokener_get_error(tok);
    end = json_tokener_get_parse_end(tok);
    json_tokener_free(tok);
    while (end < size && strchr(" \n\t\r", text[end]) && text[end])
        end++;
    if (error != json_tokener_success || !o || end != size)
        return -EBADMSG;
    if (!json_object_is_type(o, json_type_object) ||
        get_field(o, "type", json_type_string, &type) < 0 ||
        strcmp(json_object_get_string(type), TYPE) != 0)
        return -EMEDIUMTYPE;
    if (!json_object_object_get_ex(o, "version", &version) ||
        !json_object_is_type(version, json_type_int) ||
        json_object_get_int64(version) != CHAINS_FORMAT_VERSION)
        return -EPROTONOSUPPORT;
    return read_chains(o, ret);
}
