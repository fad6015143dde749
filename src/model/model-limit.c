/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/model-limit.h"

#include "chains/fair-share.h"
#include "model/model-internal.h"

#include <string.h>

#define ALLOCATION_BYTES 16U /* overhead of malloc(3) */

/* An entry of the model's file table, as one stage uses it. */
typedef struct Entry {
    uint32_t file;
    bool keep;
    double used;
    double first_use_usec;
    uint64_t bytes;
} Entry;

typedef struct User {
    uint32_t uid;
    uint64_t bytes;
} User;

static uint64_t range_bytes(const WeightedRanges *s)
{
    return s->n > 0 ? s->n * sizeof(WeightedRange) + ALLOCATION_BYTES : 0;
}

static uint64_t touched_bytes(const ModelUse *u)
{
    return u->touched ? sizeof(ModelResidency) + ALLOCATION_BYTES + range_bytes(&u->touched->ranges)
                      : 0;
}

static uint64_t metadata_bytes(const ModelStage *s)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->n_metadata; i++)
        bytes += range_bytes(&s->metadata[i].ranges);
    return bytes;
}

/* Returns an upper bound for the length of the path and for that of its JSON text, which saving
 * keeps in memory. The JSON text writes control characters, "%" and bytes that are not UTF-8 as
 * %XX. Whether a byte belongs to valid UTF-8 is not checked: every byte that is not ASCII counts as
 * three. */
static uint64_t path_bytes(const char *path)
{
    uint64_t bytes = 1;

    for (const char *p = path; *p; p++)
        bytes += *p < ' ' || *p > '~' || strchr("%\"\\", *p) ? 3 : 1;
    return bytes;
}

/* Estimates what each file of the model costs because of this stage: bytes[file]. Returns the
 * sum. */
static uint64_t count_files(const Model *m, const ModelStage *s, uint64_t *bytes)
{
    uint64_t sum = 0;

    memset(bytes, 0, m->n_files * sizeof(*bytes));
    for (size_t i = 0; i < s->n_files; i++) {
        const ModelStageFile *f = &s->files[i];

        bytes[f->file] += sizeof(ModelStageFile);
        for (Residency k = 0; k < _RESIDENCY_MAX; k++)
            bytes[f->file] += range_bytes(&f->residency[k].ranges);
    }
    for (size_t i = 0; i < s->n_uses; i++)
        bytes[s->uses[i].file] += sizeof(ModelUse) + touched_bytes(&s->uses[i]);
    for (size_t i = 0; i < s->n_applications; i++)
        if (s->applications[i].file != MODEL_NONE)
            bytes[s->applications[i].file] += sizeof(ModelApplication);
    for (size_t i = 0; i < m->n_files; i++)
        if (bytes[i] > 0) {
            bytes[i] += sizeof(ModelFile) + path_bytes(m->files[i].path) + ALLOCATION_BYTES;
            sum += bytes[i];
        }
    return sum;
}

static int compare_entries(const void *a, const void *b)
{
    const Entry *x = a, *y = b;

    if (x->used != y->used)
        return x->used > y->used ? -1 : 1;
    if (x->first_use_usec != y->first_use_usec)
        return x->first_use_usec < y->first_use_usec ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

/* Sets keep[file] for the files that the stage keeps. `entries` has room for each file of the
 * model.
 */
static void choose_files(const Model *m, const ModelStage *s, const uint64_t *bytes, uint64_t room,
                         Entry *entries, bool *keep)
{
    size_t n = 0;

    for (uint32_t i = 0; i < m->n_files; i++)
        entries[i] = (Entry){.file = i, .bytes = bytes[i]};
    for (size_t i = 0; i < s->n_files; i++) {
        Entry *e = &entries[s->files[i].file];

        e->used = decayed_sum_value(s->files[i].used);
        e->first_use_usec = (double)model_first_use(&s->files[i]);
    }
    for (size_t i = 0; i < s->n_applications; i++)
        if (s->applications[i].file != MODEL_NONE) {
            Entry *e = &entries[s->applications[i].file];

            e->used = fmax(e->used, decayed_sum_value(s->applications[i].active));
        }
    for (size_t i = 0; i < m->n_files; i++)
        if (entries[i].bytes > 0)
            entries[n++] = entries[i];
    memset(keep, 0, m->n_files * sizeof(bool));
    if (n > 1)
        qsort(entries, n, sizeof(Entry), compare_entries);
    for (size_t i = 0; i < n; i++) {
        if (entries[i].bytes > room)
            continue;
        room -= entries[i].bytes;
        keep[entries[i].file] = true;
    }
}

static size_t drop_files(const Model *m, ModelStage *s, const bool *keep, uint32_t *scratch)
{
    size_t n = 0, dropped = 0;

    for (size_t i = 0; i < s->n_files; i++)
        if (keep[s->files[i].file])
            s->files[n++] = s->files[i];
        else {
            model_stage_file_done(&s->files[i]);
            dropped++;
        }
    s->n_files = n;
    n = 0;
    for (size_t i = 0; i < s->n_uses; i++)
        if (keep[s->uses[i].file])
            s->uses[n++] = s->uses[i];
        else
            model_use_done(&s->uses[i]);
    s->n_uses = n;
    for (size_t i = 0; i < s->n_applications; i++)
        if (s->applications[i].file != MODEL_NONE && !keep[s->applications[i].file])
            s->applications[i].active = s->applications[i].launched = (DecayedSum){0, 0};
    model_drop_expired_applications(m, s, scratch);
    return dropped;
}

static int compare_weights(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x > y ? -1 : x < y;
}

static size_t count_ranges(const ModelStage *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_metadata; i++)
        n += s->metadata[i].ranges.n;
    return n;
}

/* Keeps the `room` most frequent ranges of all the stage's filesystems. Of equally frequent ranges
 * it keeps those that come first on the device. `weights` has room for all. */
static size_t drop_metadata(ModelStage *s, size_t room, double *weights)
{
    size_t n = 0, n_above = 0, dropped = 0;
    double least;

    for (size_t i = 0; i < s->n_metadata; i++)
        for (size_t k = 0; k < s->metadata[i].ranges.n; k++)
            weights[n++] = decayed_sum_value(s->metadata[i].ranges.ranges[k].weight);
    if (n <= room)
        return 0;
    qsort(weights, n, sizeof(double), compare_weights);
    least = room > 0 ? weights[room - 1] : INFINITY;
    while (n_above < room && weights[n_above] > least)
        n_above++;
    room -= n_above; /* places for ranges of frequency `least` */
    for (size_t i = 0; i < s->n_metadata; i++) {
        WeightedRanges *ranges = &s->metadata[i].ranges;
        size_t kept = 0;

        for (size_t k = 0; k < ranges->n; k++) {
            double weight = decayed_sum_value(ranges->ranges[k].weight);

            if (weight > least || (weight == least && room > 0)) {
                room -= weight == least;
                ranges->ranges[kept++] = ranges->ranges[k];
            } else
                dropped++;
        }
        ranges->n = kept;
    }
    return dropped;
}

typedef struct Limiter {
    Model *m;
    uint64_t *bytes;       /* by file: what it costs because of one stage */
    uint64_t *stage_bytes; /* by stage */
    uint64_t *sizes;       /* of stages or users, in any order */
    User *users;
    size_t n_users;
    Entry *entries;
    bool *keep;
    uint32_t *scratch;
    double *weights;
} Limiter;

static void limiter_done(Limiter *x)
{
    free(x->bytes);
    free(x->stage_bytes);
    free(x->sizes);
    free(x->users);
    free(x->entries);
    free(x->keep);
    free(x->scratch);
    free(x->weights);
}

static User *user_of(Limiter *x, uint32_t uid)
{
    for (size_t i = 0; i < x->n_users; i++)
        if (x->users[i].uid == uid)
            return &x->users[i];
    x->users[x->n_users] = (User){.uid = uid};
    return &x->users[x->n_users++];
}

static int count_stages(Limiter *x)
{
    const Model *m = x->m;

    x->bytes = calloc(m->n_files + 1, sizeof(*x->bytes));
    x->stage_bytes = calloc(m->n_stages + 1, sizeof(*x->stage_bytes));
    x->sizes = calloc(m->n_stages + 1, sizeof(*x->sizes));
    x->users = calloc(m->n_stages + 1, sizeof(User));
    if (!x->bytes || !x->stage_bytes || !x->sizes || !x->users)
        return -ENOMEM;
    for (size_t i = 0; i < m->n_stages; i++) {
        const ModelStage *s = &m->stages[i];

        x->stage_bytes[i] = count_files(m, s, x->bytes) + metadata_bytes(s);
        user_of(x, s->uid)->bytes += x->stage_bytes[i];
    }
    return 0;
}

static int allocate(Limiter *x)
{
    size_t n_applications = 0, n_ranges = 0;

    for (size_t i = 0; i < x->m->n_stages; i++) {
        n_applications = MAX(n_applications, x->m->stages[i].n_applications);
        n_ranges = MAX(n_ranges, count_ranges(&x->m->stages[i]));
    }
    x->entries = calloc(x->m->n_files + 1, sizeof(Entry));
    x->keep = calloc(x->m->n_files + 1, sizeof(bool));
    x->scratch = calloc(n_applications + 1, sizeof(uint32_t));
    x->weights = calloc(n_ranges + 1, sizeof(double));
    return x->entries && x->keep && x->scratch && x->weights ? 0 : -ENOMEM;
}

static size_t limit_stage(Limiter *x, ModelStage *s, uint64_t room)
{
    uint64_t files = count_files(x->m, s, x->bytes), metadata = metadata_bytes(s);
    size_t dropped = 0;

    if (metadata > room / 4 && files + metadata > room) {
        uint64_t left = MAX(room / 4, room - MIN(files, room));
        uint64_t fixed = metadata - count_ranges(s) * sizeof(WeightedRange);

        dropped = drop_metadata(s, (left - MIN(fixed, left)) / sizeof(WeightedRange), x->weights);
        metadata = metadata_bytes(s);
    }
    room -= MIN(metadata, room);
    if (files <= room)
        return dropped;
    choose_files(x->m, s, x->bytes, room, x->entries, x->keep);
    return dropped + drop_files(x->m, s, x->keep, x->scratch);
}

static size_t limit_user(Limiter *x, const User *u, uint64_t size)
{
    size_t n = 0, dropped = 0;

    for (size_t i = 0; i < x->m->n_stages; i++)
        if (x->m->stages[i].uid == u->uid)
            x->sizes[n++] = x->stage_bytes[i];
    size = fair_share(x->sizes, n, UINT64_MAX, size);
    for (size_t i = 0; i < x->m->n_stages; i++)
        if (x->m->stages[i].uid == u->uid && x->stage_bytes[i] > size)
            dropped += limit_stage(x, &x->m->stages[i], size);
    return dropped;
}

static int limit_stages(Model *m, const ModelLimits *limits, size_t *ret_dropped)
{
    _cleanup_(limiter_done) Limiter x = {.m = m};
    size_t dropped = 0;
    uint64_t size;
    int r = count_stages(&x);

    if (r < 0)
        return r;
    for (size_t i = 0; i < x.n_users; i++)
        x.sizes[i] = x.users[i].bytes;
    size = fair_share(x.sizes, x.n_users, limits->user_bytes, limits->bytes);
    if (x.n_users == 0 || x.sizes[x.n_users - 1] <= size) {
        *ret_dropped = 0;
        return 0;
    }
    r = allocate(&x);
    if (r < 0)
        return r;
    for (size_t i = 0; i < x.n_users; i++)
        if (x.users[i].bytes > size)
            dropped += limit_user(&x, &x.users[i], size);
    r = model_drop_unused_files(m);
    if (r >= 0)
        *ret_dropped = dropped;
    return r;
}

int model_limit(Model *m, const ModelLimits *limits, size_t *ret_dropped)
{
    const ChainsLimits chains = CHAINS_LIMITS_DEFAULT;
    int r = m->chains ? chains_limit(&m->chains, &chains) : 0;

    /* While a session is under way, the session cycle bounds the chains. */
    return r < 0 && r != -EBUSY ? r : limit_stages(m, limits, ret_dropped);
}
