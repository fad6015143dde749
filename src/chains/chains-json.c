/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes and reads chains as JSON. Names are sorted. Histories are sorted by user, and the history
 * of everybody comes last. Applications and pairs are sorted by name. Each DecayedSum is two
 * numbers: the sums of the current and the previous generation. The sums have the order of
 * chains_history_sums(), chains_application_sums() and chains_pair_sums(). The number 0 stands for
 * the session's beginning. Any other application has the number 1 + the index of its name.
 * docs/formats.md lists the members.
 *
 * Over 500 lines in one file: the writer stands next to its reader. */

#include "chains/chains-json.h"

#include "base/json-util.h"
#include "chains/chains-internal.h"

#include <string.h>

#define TYPE "headstart-chains"

/* Writing */

/* The numbers of one row. */
#define ROW_MAX (2 * (CHAINS_PAIR_SUMS + CHAINS_HISTORY_SUMS))

typedef struct Numbers {
    uint64_t v[ROW_MAX];
    size_t n;
} Numbers;

static void push_sum(Numbers *to, DecayedSum f)
{
    to->v[to->n++] = f.current;
    to->v[to->n++] = f.previous;
}

/* A name in its escaped form, and its number. */
typedef struct Rank {
    char *escaped;
    uint32_t id;
} Rank;

typedef struct Ranks {
    Rank *ranks;
    size_t n;
} Ranks;

static void ranks_done(Ranks *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->ranks[i].escaped);
    free(r->ranks);
}

static int compare_ranks(const void *a, const void *b)
{
    return strcmp(((const Rank *)a)->escaped, ((const Rank *)b)->escaped);
}

/* A row of applications or pairs. It is sorted by `first` and `second`, which are numbers of the
 * format. */
typedef struct Row {
    uint32_t first, second, index, neighbour;
} Row;

static int compare_rows(const void *a, const void *b)
{
    const Row *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->second < y->second ? -1 : x->second > y->second;
}

static uint32_t number_of(const UserHistory *h, uint32_t application, const uint32_t *numbers)
{
    return application == CHAINS_BEGIN ? 0 : numbers[h->applications[application].id];
}

static int write_applications(JsonWriter *to, UserHistory *h, const uint32_t *numbers)
{
    _cleanup_free_ Row *rows = calloc(h->n_applications, sizeof(*rows));

    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < h->n_applications; i++)
        rows[i] = (Row){.first = number_of(h, (uint32_t)i, numbers), .index = (uint32_t)i};
    qsort(rows, h->n_applications, sizeof(*rows), compare_rows);
    for (size_t i = 0; i < h->n_applications; i++) {
        Numbers row = {.v = {rows[i].first}, .n = 1};
        DecayedSum *sums[CHAINS_APPLICATION_SUMS];

        chains_application_sums(&h->applications[rows[i].index], sums);
        for (size_t j = 0; j < CHAINS_APPLICATION_SUMS; j++)
            push_sum(&row, *sums[j]);
        json_writer_add_numbers(to, NULL, row.v, row.n);
    }
    return 0;
}

static void write_pair(JsonWriter *to, UserHistory *h, const uint32_t *numbers, const Row *at)
{
    const Neighbour *neighbour = &h->applications[at->index].neighbours[at->neighbour];
    ChainsPair *p = neighbour->pair == CHAINS_NONE ? NULL : &h->pairs[neighbour->pair];
    Numbers row = {.v = {at->first, at->second, p ? p->co_occurrences : 1}, .n = 3};
    DecayedSum *sums[CHAINS_PAIR_SUMS];

    if (p)
        chains_pair_sums(p, number_of(h, p->a, numbers) != at->first, sums);
    for (size_t j = 0; p && j < CHAINS_PAIR_SUMS; j++)
        push_sum(&row, *sums[j]);
    json_writer_add_numbers(to, NULL, row.v, row.n);
}

static int write_pairs(JsonWriter *to, UserHistory *h, const uint32_t *numbers)
{
    _cleanup_free_ Row *rows = calloc(h->n_co_occurring + 1, sizeof(*rows));
    size_t n = 0;

    if (!rows)
        return -ENOMEM;
    for (uint32_t a = 0; a < h->n_applications; a++)
        for (uint32_t i = 0; i < h->applications[a].n_neighbours; i++) {
            uint32_t b = h->applications[a].neighbours[i].other;
            uint32_t x = number_of(h, a, numbers), y = number_of(h, b, numbers);

            if (a < b)
                rows[n++] = (Row){MIN(x, y), MAX(x, y), a, i};
        }
    qsort(rows, n, sizeof(*rows), compare_rows);
    for (size_t i = 0; i < n; i++)
        write_pair(to, h, numbers, &rows[i]);
    return 0;
}

static int write_log(JsonWriter *to, const UserHistory *h, const uint32_t *numbers)
{
    for (size_t i = 0; i < h->log.n; i++) {
        const LoggedSession *x = &h->log.sessions[i];
        _cleanup_free_ uint64_t *row = calloc(2 + 3 * (size_t)x->n, sizeof(*row));

        if (!row)
            return -ENOMEM;
        row[0] = x->begin_msec;
        row[1] = x->length_msec;
        for (uint32_t k = 0; k < x->n; k++) {
            row[2 + 3 * k] = number_of(h, x->starts[k].application, numbers);
            row[3 + 3 * k] = x->starts[k].at_msec;
            row[4 + 3 * k] = x->starts[k].end_msec;
        }
        json_writer_add_numbers(to, NULL, row, 2 + 3 * (size_t)x->n);
    }
    return 0;
}

static int write_history(JsonWriter *to, UserHistory *h, const uint32_t *numbers)
{
    DecayedSum *sums[CHAINS_HISTORY_SUMS];
    Numbers row = {.n = 0};
    int r;

    json_writer_open(to, NULL, '{');
    if (h->user == UID_INVALID)
        json_writer_add_text(to, "user", "null");
    else
        json_writer_add_u64(to, "user", h->user);
    chains_history_sums(h, sums);
    for (size_t i = 0; i < CHAINS_HISTORY_SUMS; i++)
        push_sum(&row, *sums[i]);
    json_writer_add_numbers(to, "sums", row.v, row.n);
    json_writer_open(to, "applications", '[');
    r = write_applications(to, h, numbers);
    json_writer_close(to, ']');
    json_writer_open(to, "pairs", '[');
    if (r >= 0)
        r = write_pairs(to, h, numbers);
    json_writer_close(to, ']');
    json_writer_open(to, "log", '[');
    if (r >= 0)
        r = write_log(to, h, numbers);
    json_writer_close(to, ']');
    json_writer_close(to, '}');
    return r;
}

static int compare_histories(const void *a, const void *b)
{
    const UserHistory *x = *(UserHistory *const *)a, *y = *(UserHistory *const *)b;

    return x->user < y->user ? -1 : x->user > y->user;
}

/* Lists the names in use, in the order of their escaped text. */
static int rank_names(const Chains *c, Ranks *ret)
{
    _cleanup_free_ bool *used = calloc(c->names.n + 1, sizeof(*used));

    ret->ranks = calloc(c->names.n + 1, sizeof(*ret->ranks));
    if (!used || !ret->ranks)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_histories; i++)
        for (size_t j = 1; j < c->histories[i]->n_applications; j++) {
            uint32_t id = c->histories[i]->applications[j].id;

            if (id >= c->names.n)
                return -EINVAL;
            if (used[id])
                continue;
            used[id] = true;
            ret->ranks[ret->n] = (Rank){json_escape_bytes(c->names.names[id]), id};
            if (!ret->ranks[ret->n++].escaped)
                return -ENOMEM;
        }
    qsort(ret->ranks, ret->n, sizeof(*ret->ranks), compare_ranks);
    return 0;
}

/* Writes the names in use, and sets numbers[id] to 1 + the name's place in the list. */
static int write_names(JsonWriter *to, const Chains *c, uint32_t *numbers)
{
    _cleanup_(ranks_done) Ranks names = {0};
    int r = rank_names(c, &names);

    if (r < 0)
        return r;
    json_writer_open(to, "names", '[');
    for (size_t i = 0; i < names.n; i++) {
        json_writer_add_string(to, NULL, names.ranks[i].escaped);
        numbers[names.ranks[i].id] = (uint32_t)i + 1;
    }
    json_writer_close(to, ']');
    return 0;
}

int chains_write(const Chains *c, JsonWriter *to)
{
    _cleanup_free_ uint32_t *numbers = calloc(c->names.n + 1, sizeof(*numbers));
    _cleanup_free_ UserHistory **histories = calloc(c->n_histories, sizeof(UserHistory *));
    int r;

    if (chains_busy(c))
        return -EBUSY;
    if (!numbers || !histories)
        return -ENOMEM;
    json_writer_add_string(to, "type", TYPE);
    json_writer_add_u64(to, "version", CHAINS_FORMAT_VERSION);
    json_writer_add_u64(to, "halflife_usec", c->halflife_usec);
    json_writer_add_u64(to, "window_usec", c->window_usec);
    json_writer_add_u64(to, "generation", c->generation);
    if (c->clock.latest > 0) {
        json_writer_add_u64(to, "clock_usec", c->clock.latest);
        json_writer_add_u64(to, "wall_clock_usec", decay_clock_wall(&c->clock));
    }
    json_writer_add_u64(to, "revision", c->revision);
    r = write_names(to, c, numbers);
    if (r < 0)
        return r;
    memcpy(histories, c->histories, c->n_histories * sizeof(UserHistory *));
    qsort(histories, c->n_histories, sizeof(UserHistory *), compare_histories);
    json_writer_open(to, "histories", '[');
    for (size_t i = 0; r >= 0 && i < c->n_histories; i++)
        r = write_history(to, histories[i], numbers);
    json_writer_close(to, ']');
    return r;
}

/* Reading. For a member other than `type` and `version` that is missing or of another type, the
 * functions return -EBADMSG. */

static int next_sum(JsonColumn *from, DecayedSum *ret)
{
    int r = json_next_u64(from, DECAYED_SUM_MAX, &ret->current);

    return r < 0 ? r : json_next_u64(from, DECAYED_SUM_MAX, &ret->previous);
}

static int read_applications(UserHistory *h, uint64_t n_names, JsonColumn from)
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
            r = user_history_add(h, (uint32_t)number - 1, &a);
            if (r < 0)
                return r;
        }
        chains_application_sums(&h->applications[a], sums);
        for (size_t j = 0; j < CHAINS_APPLICATION_SUMS; j++) {
            r = next_sum(&row, sums[j]);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* Reads a pair. Rows rise, so that each neighbour follows those that its application has; `last`
 * are the numbers of the row before. */
static int read_pair(UserHistory *h, uint64_t n_names, JsonColumn row, uint64_t last[static 2])
{
    DecayedSum *sums[CHAINS_PAIR_SUMS];
    uint64_t number[2], co_occurrences;
    size_t n = row.n;
    uint32_t x[2];
    ChainsPair *p;
    int r;

    for (size_t k = 0; k < 2; k++) {
        r = json_next_u64(&row, n_names, &number[k]);
        if (r < 0)
            return r;
        x[k] = number[k] == 0 ? CHAINS_BEGIN : user_history_find(h, (uint32_t)number[k] - 1);
        if (x[k] == CHAINS_NONE)
            return -EBADMSG;
    }
    if (json_next_u64(&row, UINT32_MAX, &co_occurrences) < 0 || number[0] >= number[1] ||
        number[0] < last[0] || (number[0] == last[0] && number[1] <= last[1]) ||
        co_occurrences == 0 || n != (co_occurrences == 1 ? 3 : 3 + 2 * CHAINS_PAIR_SUMS))
        return -EBADMSG;
    memcpy(last, number, sizeof(number));
    if (co_occurrences == 1)
        return user_history_add_neighbours(h, x[0], x[1]);
    r = user_history_add_pair(h, x[0], x[1], &p);
    if (r < 0)
        return r;
    p->co_occurrences = (uint32_t)co_occurrences;
    chains_pair_sums(p, p->a != x[0], sums);
    for (size_t j = 0; r >= 0 && j < CHAINS_PAIR_SUMS; j++)
        r = next_sum(&row, sums[j]);
    return r;
}

static int read_pairs(UserHistory *h, uint64_t n_names, JsonColumn from)
{
    uint64_t last[2] = {0};

    if (from.n > CHAINS_PAIRS_MAX)
        return -E2BIG;
    while (from.n > 0) {
        JsonColumn row;
        int r = json_next_column(&from, 3 + 2 * CHAINS_PAIR_SUMS, &row);

        if (r >= 0)
            r = read_pair(h, n_names, row, last);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_session(UserHistory *h, uint64_t n_names, JsonColumn row, LoggedSession *x)
{
    uint64_t length;

    if (row.n < 2 || row.n % 3 != 2 || row.n > 2 + 3 * SESSION_LOG_STARTS_MAX ||
        json_next_u64(&row, INT64_MAX, &x->begin_msec) < 0 ||
        json_next_u64(&row, UINT32_MAX, &length) < 0)
        return -EBADMSG;
    x->length_msec = (uint32_t)length;
    x->n = 0;
    while (row.n > 0) {
        uint64_t number, at, end;
        uint32_t a;

        if (json_next_u64(&row, n_names, &number) < 0 || number == 0 ||
            json_next_u64(&row, x->length_msec, &at) < 0 ||
            json_next_u64(&row, x->length_msec, &end) < 0 || end < at ||
            (x->n > 0 && at < x->starts[x->n - 1].at_msec))
            return -EBADMSG;
        a = user_history_find(h, (uint32_t)number - 1);
        if (a == CHAINS_NONE)
            return -EBADMSG;
        x->starts[x->n++] = (LoggedStart){a, (uint32_t)at, (uint32_t)end};
    }
    return 0;
}

static int read_log(const Chains *c, UserHistory *h, JsonColumn from)
{
    const ChainsOfHistory names = {c, h};
    LoggedStart starts[SESSION_LOG_STARTS_MAX];
    LoggedSession x = {.starts = starts};

    for (size_t n = 0; from.n > 0; n++) {
        uint64_t last = x.begin_msec;
        JsonColumn row;
        int r = json_next_column(&from, 2 + 3 * SESSION_LOG_STARTS_MAX, &row);

        if (r >= 0)
            r = read_session(h, c->names.n, row, &x);
        if (r < 0)
            return r;
        if (n >= SESSION_LOG_MAX || x.begin_msec < last)
            return -EBADMSG;
        r = session_log_add(&h->log, &x, chains_compare_applications, &names);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Versions 1 and 2 have eight classes of ages, no weights of experts and no log. The first of their
 * classes ends at 300 seconds. It becomes the class that ends at 320 seconds, the second one
 * becomes the class after that, and so on. */
static int read_history_sums(UserHistory *h, JsonColumn row, int64_t version)
{
    DecayedSum *sums[CHAINS_HISTORY_SUMS];
    size_t n = version < 3 ? 2 + 2 * 8 : CHAINS_HISTORY_SUMS;

    if (row.n != 2 * n)
        return -EBADMSG;
    chains_history_sums(h, sums);
    for (size_t i = 0; i < n; i++) {
        int r = next_sum(&row, sums[version < 3 && i >= 2 ? i + 2 * 6 : i]);

        if (r < 0)
            return r;
    }
    return 0;
}

static int read_history(Chains *c, const JsonDocument *d, struct json_object *o, int64_t version,
                        uint64_t *last_user)
{
    uint64_t uid = UID_INVALID;
    JsonColumn row, applications, pairs, log = {0};
    struct json_object *user;
    UserHistory *h;
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
        json_get_column(d, o, "pairs", SIZE_MAX, &pairs) < 0 ||
        (version >= 3 && json_get_column(d, o, "log", SIZE_MAX, &log) < 0))
        return -EBADMSG;
    r = chains_history(c, (uint32_t)uid, &h);
    if (r >= 0)
        r = read_history_sums(h, row, version);
    if (r >= 0)
        r = read_applications(h, c->names.n, applications);
    if (r >= 0)
        r = read_pairs(h, c->names.n, pairs);
    if (r >= 0 && version < 4)
        user_history_shorten_sums(h);
    if (r >= 0 && !expert_promises_valid(&h->weights))
        r = -EBADMSG;
    return r < 0 || version < 3 ? r : read_log(c, h, log);
}

/* Reads the names. Their escaped forms must be in rising order and different. */
static int read_names(Chains *c, struct json_object *from)
{
    const char *last = NULL, *escaped;
    size_t n = json_object_array_length(from);

    for (size_t i = 0; i < n; i++, last = escaped) {
        _cleanup_free_ char *name = NULL;
        uint32_t id;
        int r;

        if (json_at_string(from, i, &escaped) < 0 || (last && strcmp(last, escaped) >= 0))
            return -EBADMSG;
        name = json_unescape_bytes(escaped);
        if (!name)
            return -EBADMSG;
        r = chains_add_name(c, name, &id);
        if (r < 0)
            return r;
        if (id != i)
            return -EBADMSG;
    }
    return 0;
}

/* The names of members that differ between versions of the format; NULL: the version has no such
 * member. */
typedef struct Keys {
    const char *halflife, *window, *histories, *revision;
} Keys;

static const Keys keys_of_version[] = {
        [1] = {"halflife", "window", "worlds", NULL},
        [2 ... CHAINS_FORMAT_VERSION] = {"halflife_usec", "window_usec", "histories", "revision"},
};

/* Reads the clock. It is absent if no time was set, and in older files. */
static int read_clock(struct json_object *o, DecayClock *ret)
{
    uint64_t latest, wall;

    if (!json_object_object_get_ex(o, "clock_usec", NULL))
        return 0;
    if (json_get_u64(o, "clock_usec", INT64_MAX, &latest) < 0 ||
        json_get_u64(o, "wall_clock_usec", INT64_MAX, &wall) < 0 || latest == 0)
        return -EBADMSG;
    *ret = (DecayClock){latest, (int64_t)(wall - latest)};
    return 0;
}

static int read_chains(const JsonDocument *d, struct json_object *o, int64_t version, Chains **ret)
{
    const Keys *keys = &keys_of_version[version];
    _cleanup_chains_ Chains *c = NULL;
    struct json_object *names, *histories;
    uint64_t halflife_usec, window_usec, generation, revision = 0, last_user = 0;
    int r;

    if (json_get_u64(o, keys->halflife, INT64_MAX, &halflife_usec) < 0 ||
        json_get_u64(o, keys->window, INT64_MAX, &window_usec) < 0 ||
        json_get_u64(o, "generation", INT64_MAX, &generation) < 0 ||
        (keys->revision && json_get_u64(o, keys->revision, INT64_MAX, &revision) < 0) ||
        json_get_array(o, "names", SIZE_MAX, &names) < 0 ||
        json_get_array(o, keys->histories, SIZE_MAX, &histories) < 0)
        return -EBADMSG;
    r = chains_new(halflife_usec, window_usec, &c);
    if (r < 0)
        return r == -EINVAL ? -EBADMSG : r;
    if (generation > decayed_sum_generation(USEC_INFINITY - 1, halflife_usec))
        return -EBADMSG;
    c->generation = generation;
    c->revision = revision;
    r = read_clock(o, &c->clock);
    if (r >= 0)
        r = read_names(c, names);
    for (size_t i = 0; r >= 0 && i < json_object_array_length(histories); i++)
        r = read_history(c, d, json_object_array_get_idx(histories, i), version, &last_user);
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
    if (json_get_i64(o, "version", &version) < 0 || version < 1 || version > CHAINS_FORMAT_VERSION)
        return -EPROTONOSUPPORT;
    return read_chains(d, o, version, ret);
}
