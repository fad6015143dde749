/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the model from text. It checks every index, order and sum, so that a model from a file can
 * be merged and queried like one that was learned. This file has over 500 lines because each member
 * of the format has one short reader, and all use the same checks. */

#include "chains/chains-json.h"
#include "model/model-internal.h"

#include <string.h>

/* `where` names the member that was read last, for the error message. */
typedef struct Reader {
    JsonDocument document;
    uint64_t version; /* of the format */
    bool no_chains;   /* leave the chains out */
    Model *m;
    DecayedSum *sums;
    size_t n_sums, allocated_sums;
    const char *where;
} Reader;

/* Reads the next elements of two columns as a sum of times. In versions before 3, a millisecond has
 * the weight of a session. */
static int next_time(const Reader *x, JsonColumn *current, JsonColumn *previous, DecayedSum *ret)
{
    DecayedSum sum;

    CHECK(json_next_u64(current, DECAYED_SUM_MAX, &sum.current));
    CHECK(json_next_u64(previous, DECAYED_SUM_MAX, &sum.previous));
    *ret = x->version < 3 ? decayed_sum_shorten_time(sum) : sum;
    return 0;
}

/* Reads the next element of the column: the row of a DecayedSum, which must be within `whole`. */
static int next_sum(const Reader *x, JsonColumn *c, DecayedSum whole, DecayedSum *ret)
{
    uint64_t row;

    CHECK(json_next_u64(c, UINT32_MAX, &row));
    if (row >= x->n_sums || !decayed_sum_within(x->sums[row], whole))
        return -EBADMSG;
    *ret = x->sums[row];
    return 0;
}

static int sum_member(Reader *x, struct json_object *o, const char *key, DecayedSum whole,
                      DecayedSum *ret)
{
    uint64_t row;

    x->where = key;
    CHECK(json_get_u64(o, key, UINT32_MAX, &row));
    if (row >= x->n_sums || !decayed_sum_within(x->sums[row], whole))
        return -EBADMSG;
    *ret = x->sums[row];
    return 0;
}

static int read_ranges(const Reader *x, JsonColumn c, DecayedSum whole, WeightedRanges *ret)
{
    uint64_t at = 0;

    if (c.n % 3)
        return -EBADMSG;
    while (c.n > 0) {
        uint64_t gap, end;
        WeightedRange s;

        CHECK(json_next_u64(&c, TRACE_NUMBER_MAX, &gap));
        CHECK(json_next_u64(&c, TRACE_NUMBER_MAX, &s.length));
        CHECK(next_sum(x, &c, whole, &s.weight));
        if (__builtin_add_overflow(at, gap, &s.offset) ||
            __builtin_add_overflow(s.offset, s.length, &end) || end > TRACE_NUMBER_MAX)
            return -EBADMSG;
        CHECK(weighted_ranges_append(ret, s));
        at = end;
    }
    weighted_ranges_trim(ret);
    return 0;
}

/* Reads the table of sums. Row 0 must be zero, and the following rows must rise. */
static int read_sums(Reader *x, struct json_object *o)
{
    static const char *const keys[] = {"current", "previous"};
    JsonColumn c[ELEMENTSOF(keys)];
    size_t n;

    x->where = x->version == 1 ? "fades" : "sums";
    CHECK(json_get_object(o, x->where, &o));
    CHECK(json_get_columns(&x->document, o, keys, ELEMENTSOF(keys), MODEL_USES_MAX, c));
    n = c[0].n;
    CHECK(grow_array(&x->sums, &x->allocated_sums, n, sizeof(DecayedSum)));
    for (size_t i = 0; i < n; i++) {
        DecayedSum *f = &x->sums[i];

        CHECK(json_next_u64(&c[0], DECAYED_SUM_MAX, &f->current));
        CHECK(json_next_u64(&c[1], DECAYED_SUM_MAX, &f->previous));
        if (i == 0 ? !decayed_sum_is_zero(*f)
                   : f->current < f[-1].current ||
                             (f->current == f[-1].current && f->previous <= f[-1].previous))
            return -EBADMSG;
    }
    x->n_sums = n;
    return n > 0 ? 0 : -EBADMSG;
}

/* Returns true if the path is absolute, without "." or ".." components. */
static bool path_is_plain(const char *p)
{
    if (*p != '/')
        return false;
    if (p[1] == 0)
        return true;
    while (*p) {
        size_t l = strcspn(++p, "/");

        if (l == 0 || (l == 1 && p[0] == '.') || (l == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += l;
    }
    return true;
}

static int read_files(Reader *x, struct json_object *o)
{
    static const char *const keys[] = {"directory", "shared"};
    static const DecayedSum any = {DECAYED_SUM_MAX, DECAYED_SUM_MAX};
    JsonColumn c[ELEMENTSOF(keys)];
    struct json_object *rests;
    Model *m = x->m;
    size_t n;

    x->where = "files";
    CHECK(json_get_object(o, "files", &o));
    CHECK(json_get_columns(&x->document, o, keys, ELEMENTSOF(keys), MODEL_FILES_MAX, c));
    CHECK(json_get_array(o, "rest", MODEL_FILES_MAX, &rests));
    n = json_object_array_length(rests);
    if (c[0].n != n)
        return -EBADMSG;
    CHECK(grow_array(&m->files, &m->allocated_files, n, sizeof(ModelFile)));
    for (size_t i = 0; i < n; i++) {
        const char *before = i > 0 ? m->files[i - 1].path : "";
        _cleanup_free_ char *unescaped = NULL;
        ModelFile *f = &m->files[i];
        const char *rest;
        uint64_t shared;
        size_t l;

        *f = (ModelFile){0};
        CHECK(next_sum(x, &c[0], any, &f->as_directory));
        f->directory = !decayed_sum_is_zero(f->as_directory);
        CHECK(json_next_u64(&c[1], strlen(before), &shared));
        CHECK(json_at_string(rests, i, &rest));
        unescaped = json_unescape_bytes(rest);
        if (!unescaped)
            return -EBADMSG;
        l = strlen(unescaped);
        if (shared + l >= TRACE_PATH_MAX)
            return -EBADMSG;
        f->path = malloc(shared + l + 1);
        if (!f->path)
            return -ENOMEM;
        m->n_files++;
        memcpy(f->path, before, shared);
        memcpy(f->path + shared, unescaped, l + 1);
        /* The paths must rise strictly: they are sorted, without duplicates. */
        if (!path_is_plain(f->path) || (i > 0 && strcmp(before, f->path) >= 0))
            return -EBADMSG;
    }
    return 0;
}

/* Reads the next file of a rising sequence, which is stored as the difference from the previous one
 * (*at). */
static int step_file(const Reader *x, JsonColumn *c, bool first, uint64_t *at)
{
    uint64_t d;

    CHECK(json_next_u64(c, UINT32_MAX, &d));
    if (!first && d == 0)
        return -EBADMSG;
    *at += d;
    return *at < x->m->n_files ? 0 : -EBADMSG;
}

static int read_uses(const Reader *x, JsonColumn files, JsonColumn used, uint32_t application,
                     ModelStage *s)
{
    DecayedSum active = s->applications[application].active;
    size_t n = files.n;
    uint64_t file = 0;

    if (used.n != n || s->n_uses + n > MODEL_USES_MAX)
        return -EBADMSG;
    CHECK(grow_array(&s->uses, &s->allocated_uses, s->n_uses + n, sizeof(ModelUse)));
    for (size_t i = 0; i < n; i++) {
        ModelUse *u = &s->uses[s->n_uses++];

        *u = (ModelUse){.application = application};
        CHECK(step_file(x, &files, i == 0, &file));
        u->file = (uint32_t)file;
        CHECK(next_sum(x, &used, active, &u->used));
        if (decayed_sum_is_zero(u->used))
            return -EBADMSG;
    }
    return 0;
}

static int read_applications(Reader *x, struct json_object *o, ModelStage *s)
{
    static const char *const keys[] = {"file", "active", "uses_delta", "used"};
    JsonColumn c[ELEMENTSOF(keys)];
    size_t n;

    x->where = "applications";
    CHECK(json_get_object(o, "applications", &o));
    CHECK(json_get_columns(&x->document, o, keys, ELEMENTSOF(keys), MODEL_FILES_MAX, c));
    n = c[0].n;
    CHECK(grow_array(&s->applications, &s->allocated_applications, n, sizeof(ModelApplication)));
    for (size_t i = 0; i < n; i++) {
        ModelApplication *a = &s->applications[i];
        JsonColumn files, used;
        int64_t file;

        *a = (ModelApplication){0};
        CHECK(json_next_i64(&c[0], &file));
        if (file < -1 || file >= (int64_t)x->m->n_files)
            return -EBADMSG;
        a->file = file < 0 ? MODEL_NONE : (uint32_t)file;
        CHECK(next_sum(x, &c[1], s->sessions, &a->active));
        if (decayed_sum_is_zero(a->active) || (i > 0 && a[-1].file >= a->file))
            return -EBADMSG;
        s->n_applications++;
        CHECK(json_next_column(&c[2], MODEL_FILES_MAX, &files));
        CHECK(json_next_column(&c[3], MODEL_FILES_MAX, &used));
        CHECK(read_uses(x, files, used, (uint32_t)i, s));
    }
    return 0;
}

/* Reads which of the uses belong to starts of applications. Versions 1 and 2 of the format do not
 * have this. */
static int read_launches(Reader *x, struct json_object *o, ModelStage *s)
{
    static const char *const keys[] = {"use_delta", "used", "delay_msec", "delay_msec_previous"};
    JsonColumn applications, c[ELEMENTSOF(keys)];
    uint64_t at = 0, delta;
    size_t n;

    if (x->version < 3)
        return 0;
    x->where = "launches";
    CHECK(json_get_object(o, x->where, &o));
    CHECK(json_get_column(&x->document, o, "launched", MODEL_FILES_MAX, &applications));
    if (applications.n != s->n_applications)
        return -EBADMSG;
    for (size_t i = 0; i < s->n_applications; i++)
        CHECK(next_sum(x, &applications, s->applications[i].active, &s->applications[i].launched));
    CHECK(json_get_columns(&x->document, o, keys, ELEMENTSOF(keys), MODEL_USES_MAX, c));
    n = c[0].n;
    for (size_t i = 0; i < n; i++) {
        ModelUse *u;

        CHECK(json_next_u64(&c[0], MODEL_USES_MAX, &delta));
        at += delta;
        if ((i > 0 && delta == 0) || at >= s->n_uses)
            return -EBADMSG;
        u = &s->uses[at];
        CHECK(next_sum(x, &c[1], u->used, &u->launched));
        if (decayed_sum_is_zero(u->launched) ||
            !decayed_sum_within(u->launched, s->applications[u->application].launched))
            return -EBADMSG;
        CHECK(json_next_u64(&c[2], DECAYED_SUM_MAX, &u->delay.current));
        CHECK(json_next_u64(&c[3], DECAYED_SUM_MAX, &u->delay.previous));
    }
    return 0;
}

/* Reads the touched pages: an array of [number of the use in the order of `uses_delta`, sum of
 * sessions, ranges] in which the numbers rise. The member is absent if no use has touched pages. */
static int read_touched(Reader *x, struct json_object *o, ModelStage *s)
{
    JsonColumn all, one, ranges;
    uint64_t next = 0, at;

    x->where = "touched";
    if (!json_object_object_get_ex(o, x->where, NULL))
        return 0;
    CHECK(json_get_column(&x->document, o, x->where, MODEL_USES_MAX, &all));
    while (all.n > 0) {
        ModelUse *u;

        CHECK(json_next_column(&all, 3, &one));
        CHECK(json_next_u64(&one, UINT32_MAX, &at));
        if (at < next || at >= s->n_uses)
            return -EBADMSG;
        next = at + 1;
        u = &s->uses[at];
        u->touched = calloc(1, sizeof(ModelResidency));
        if (!u->touched)
            return -ENOMEM;
        CHECK(next_sum(x, &one, u->launched, &u->touched->sessions));
        if (decayed_sum_is_zero(u->touched->sessions))
            return -EBADMSG;
        CHECK(json_next_column(&one, 3 * MODEL_RANGES_MAX, &ranges));
        CHECK(read_ranges(x, ranges, u->touched->sessions, &u->touched->ranges));
    }
    return 0;
}

/* Returns the name of the member `observed`, which version 1 of the format named differently. */
static const char *observed_key(const Reader *x)
{
    return x->version == 1 ? "truth" : "observed";
}

/* Reads the sessions that only looked a file up. The member is absent if there were none. */
static int read_looked_up(Reader *x, struct json_object *o, ModelStage *s)
{
    JsonColumn c;

    if (!json_object_object_get_ex(o, "looked_up", NULL))
        return 0;
    CHECK(json_get_column(&x->document, o, "looked_up", MODEL_FILES_MAX, &c));
    if (c.n != s->n_files)
        return -EBADMSG;
    for (size_t i = 0; i < s->n_files; i++)
        CHECK(next_sum(x, &c, s->files[i].used, &s->files[i].looked_up));
    return 0;
}

static int read_stage_files(Reader *x, struct json_object *o, ModelStage *s)
{
    const char *const keys[] = {
            "file_delta", "used", observed_key(x), "first_use_msec", "first_use_msec_previous",
            "resident"};
    JsonColumn c[ELEMENTSOF(keys)], ranges;
    uint64_t file = 0;
    size_t n;

    x->where = "files";
    CHECK(json_get_object(o, "files", &o));
    CHECK(json_get_columns(&x->document, o, keys, ELEMENTSOF(keys), MODEL_FILES_MAX, c));
    n = c[0].n;
    CHECK(grow_array(&s->files, &s->allocated_files, n, sizeof(ModelStageFile)));
    for (size_t i = 0; i < n; i++) {
        ModelStageFile *f = &s->files[i];

        *f = (ModelStageFile){0};
        s->n_files++;
        CHECK(step_file(x, &c[0], i == 0, &file));
        f->file = (uint32_t)file;
        CHECK(next_sum(x, &c[1], s->sessions, &f->used));
        if (decayed_sum_is_zero(f->used))
            return -EBADMSG;
        CHECK(next_sum(x, &c[2], f->used, &f->residency[RESIDENCY_OBSERVED].sessions));
        CHECK(next_time(x, &c[3], &c[4], &f->first_use));
        CHECK(json_next_column(&c[5], 3 * MODEL_RANGES_MAX, &ranges));
        CHECK(read_ranges(x, ranges, f->residency[RESIDENCY_OBSERVED].sessions,
                          &f->residency[RESIDENCY_OBSERVED].ranges));
    }
    return read_looked_up(x, o, s);
}

/* Reads the exact or the assumed residency: an array of [row in the stage's table of files, sum of
 * sessions, ranges] in which the rows rise. */
static int read_residency(Reader *x, struct json_object *o, const char *key, Residency residency,
                          ModelStage *s)
{
    JsonColumn all, one, ranges;
    uint64_t next = 0, row;

    x->where = key;
    CHECK(json_get_column(&x->document, o, key, MODEL_FILES_MAX, &all));
    while (all.n > 0) {
        ModelResidency *known;

        CHECK(json_next_column(&all, 3, &one));
        CHECK(json_next_u64(&one, UINT32_MAX, &row));
        if (row < next || row >= s->n_files)
            return -EBADMSG;
        next = row + 1;
        known = &s->files[row].residency[residency];
        CHECK(next_sum(x, &one, s->files[row].used, &known->sessions));
        if (decayed_sum_is_zero(known->sessions))
            return -EBADMSG;
        CHECK(json_next_column(&one, 3 * MODEL_RANGES_MAX, &ranges));
        CHECK(read_ranges(x, ranges, known->sessions, &known->ranges));
    }
    return 0;
}

/* Reads the counts of machines, which are absent if none were counted. Each machine has added at
 * least 1 to the sum of the same row, so a count is within its sum. */
static int read_machines(Reader *x, struct json_object *o, ModelStage *s)
{
    JsonColumn applications, uses, files;

    x->where = "machines";
    if (x->version < 4 || !json_object_object_get_ex(o, x->where, NULL))
        return 0;
    CHECK(json_get_object(o, x->where, &o));
    CHECK(sum_member(x, o, "stage", s->sessions, &s->machines));
    x->where = "machines";
    CHECK(json_get_column(&x->document, o, "applications", MODEL_FILES_MAX, &applications));
    CHECK(json_get_column(&x->document, o, "uses", MODEL_USES_MAX, &uses));
    CHECK(json_get_column(&x->document, o, "files", MODEL_FILES_MAX, &files));
    if (decayed_sum_is_zero(s->machines) || applications.n != s->n_applications ||
        uses.n != s->n_uses || files.n != s->n_files)
        return -EBADMSG;
    for (size_t i = 0; i < s->n_applications; i++)
        CHECK(next_sum(x, &applications, s->applications[i].active, &s->applications[i].machines));
    for (size_t i = 0; i < s->n_uses; i++)
        CHECK(next_sum(x, &uses, s->uses[i].used, &s->uses[i].machines));
    for (size_t i = 0; i < s->n_files; i++)
        CHECK(next_sum(x, &files, s->files[i].used, &s->files[i].machines));
    return 0;
}

static int read_name(struct json_object *o, const char *key, char **ret)
{
    const char *text;

    CHECK(json_get_string(o, key, &text));
    *ret = json_unescape_bytes(text);
    return *ret ? 0 : -EBADMSG;
}

/* Reads one of the arrays of metadata, whose rows rise by uuid, then application. Only rows of
 * applications name one. */
static int read_metadata_rows(Reader *x, struct json_object *o, const char *key, bool assumed,
                              bool of_applications, ModelStage *s)
{
    size_t most = TRACE_VOLUMES_MAX;
    struct json_object *a;
    JsonColumn ranges;

    x->where = key;
    if (of_applications)
        most = MODEL_NEEDED_MAX;
    CHECK(json_get_array(o, key, most, &a));
    CHECK(grow_array(&s->metadata, &s->allocated_metadata,
                     s->n_metadata + json_object_array_length(a), sizeof(ModelMetadata)));
    for (size_t i = 0; i < json_object_array_length(a); i++) {
        struct json_object *j = json_object_array_get_idx(a, i);
        ModelMetadata *d = &s->metadata[s->n_metadata];

        *d = (ModelMetadata){.assumed = assumed};
        s->n_metadata++;
        CHECK(read_name(j, "uuid", &d->uuid));
        if (of_applications)
            CHECK(read_name(j, "application", &d->application));
        CHECK(sum_member(x, j, observed_key(x), s->sessions, &d->observed));
        x->where = key;
        if (decayed_sum_is_zero(d->observed))
            return -EBADMSG;
        CHECK(json_get_column(&x->document, j, "ranges", 3 * MODEL_RANGES_MAX, &ranges));
        CHECK(read_ranges(x, ranges, d->observed, &d->ranges));
        if (i > 0 && model_compare_metadata(d - 1, d) >= 0)
            return -EBADMSG;
    }
    return 0;
}

/* Models of older versions have no metadata of replayed sessions or of applications. */
static int read_metadata(Reader *x, struct json_object *o, ModelStage *s)
{
    CHECK(read_metadata_rows(x, o, "metadata", false, false, s));
    if (json_object_object_get_ex(o, "assumed_metadata", NULL))
        CHECK(read_metadata_rows(x, o, "assumed_metadata", true, false, s));
    if (json_object_object_get_ex(o, "needed_metadata", NULL))
        CHECK(read_metadata_rows(x, o, "needed_metadata", false, true, s));
    if (s->n_metadata > 1)
        qsort(s->metadata, s->n_metadata, sizeof(ModelMetadata), model_compare_metadata);
    return 0;
}

/* Reads the timing, which models of older versions do not have. */
static int read_timing(Reader *x, struct json_object *o, ModelTiming *ret)
{
    JsonColumn c;

    x->where = "timing";
    if (!json_object_object_get_ex(o, "timing", NULL))
        return 0;
    CHECK(json_get_column(&x->document, o, "timing", 6, &c));
    if (c.n != 6)
        return -EBADMSG;
    CHECK(json_next_u64(&c, DECAYED_SUM_MAX, &ret->sessions.current));
    CHECK(json_next_u64(&c, DECAYED_SUM_MAX, &ret->sessions.previous));
    CHECK(next_time(x, &c, &c, &ret->ready));
    CHECK(next_time(x, &c, &c, &ret->stalled));
    return decayed_sum_is_zero(ret->sessions) ? -EBADMSG : 0;
}

/* Reads the sum over the sessions that had some property; zero if the member is absent. */
static int read_part(Reader *x, struct json_object *o, const char *key, DecayedSum sessions,
                     DecayedSum *ret)
{
    JsonColumn c;

    x->where = key;
    if (!json_object_object_get_ex(o, key, NULL))
        return 0;
    CHECK(json_get_column(&x->document, o, key, 2, &c));
    CHECK(json_next_u64(&c, DECAYED_SUM_MAX, &ret->current));
    CHECK(json_next_u64(&c, DECAYED_SUM_MAX, &ret->previous));
    return decayed_sum_within(*ret, sessions) ? 0 : -EBADMSG;
}

static int read_stage(Reader *x, struct json_object *o, ModelStage *s)
{
    static const DecayedSum any = {DECAYED_SUM_MAX, DECAYED_SUM_MAX};
    JsonColumn duration;
    const char *word;
    int64_t uid;

    x->where = "stage";
    CHECK(json_get_string(o, "stage", &word));
    s->stage = stage_from_string(word);
    if ((int)s->stage < 0)
        return -EBADMSG;
    x->where = "uid";
    CHECK(json_get_i64(o, "uid", &uid));
    if (uid < -1 || uid >= (int64_t)UID_INVALID)
        return -EBADMSG;
    s->uid = uid < 0 ? UID_INVALID : (uint32_t)uid;
    CHECK(sum_member(x, o, "sessions", any, &s->sessions));
    if (decayed_sum_is_zero(s->sessions))
        return -EBADMSG;
    x->where = "duration_msec";
    CHECK(json_get_column(&x->document, o, "duration_msec", 2, &duration));
    CHECK(next_time(x, &duration, &duration, &s->duration));
    CHECK(read_part(x, o, "late", s->sessions, &s->late));
    CHECK(read_part(x, o, "autologins", s->sessions, &s->autologins));
    CHECK(read_timing(x, o, &s->timing));
    CHECK(read_applications(x, o, s));
    CHECK(read_launches(x, o, s));
    CHECK(read_touched(x, o, s));
    CHECK(read_stage_files(x, o, s));
    CHECK(read_residency(x, o, "assumed", RESIDENCY_ASSUMED, s));
    if (json_object_object_get_ex(o, "exact", NULL)) /* older models do not have it */
        CHECK(read_residency(x, o, "exact", RESIDENCY_EXACT, s));
    CHECK(read_machines(x, o, s));
    return read_metadata(x, o, s);
}

static int read_stages(Reader *x, struct json_object *o)
{
    struct json_object *a;

    x->where = "stages";
    CHECK(json_get_array(o, "stages", MODEL_STAGES_MAX, &a));
    CHECK(grow_array(&x->m->stages, &x->m->allocated_stages, json_object_array_length(a),
                     sizeof(ModelStage)));
    for (size_t i = 0; i < json_object_array_length(a); i++) {
        ModelStage *s = &x->m->stages[i];

        *s = (ModelStage){0};
        x->m->n_stages++;
        CHECK(read_stage(x, json_object_array_get_idx(a, i), s));
        x->where = "stages";
        if (i > 0 && (s[-1].stage > s->stage || (s[-1].stage == s->stage && s[-1].uid >= s->uid)))
            return -EBADMSG;
    }
    return 0;
}

static int read_learned(Reader *x, struct json_object *o)
{
    JsonColumn c, triple;
    size_t n;

    x->where = "learned";
    CHECK(json_get_column(&x->document, o, "learned", MODEL_LEARNED_MAX, &c));
    n = c.n;
    CHECK(grow_array(&x->m->learned, &x->m->allocated_learned, n, sizeof(ModelLearned)));
    for (size_t i = 0; i < n; i++) {
        ModelLearned *l = &x->m->learned[i];

        CHECK(json_next_column(&c, SIZE_MAX, &triple));
        CHECK(json_next_u64(&triple, x->m->clock, &l->at));
        CHECK(json_next_u64(&triple, TRACE_NUMBER_MAX, &l->start_realtime));
        CHECK(json_next_u64(&triple, TRACE_NUMBER_MAX, &l->id));
        x->m->n_learned++;
        if (i > 0 && model_compare_learned(&l[-1], l) >= 0)
            return -EBADMSG;
    }
    return 0;
}

/* Reads the chains. The member is absent, or an object that chains_read() accepts. */
static int read_chains(Reader *x, struct json_object *o)
{
    struct json_object *c;
    int r;

    x->where = "chains";
    if (x->no_chains || !json_object_object_get_ex(o, "chains", &c))
        return 0;
    r = chains_read(&x->document, c, &x->m->chains);
    if (r < 0)
        return r == -ENOMEM ? r : -EBADMSG;
    return x->m->chains->halflife_usec == x->m->halflife_usec ? 0 : -EBADMSG;
}

static int fail(int error, char **ret_error, const char *format, const char *detail)
{
    if (ret_error && asprintf(ret_error, format, detail) < 0)
        *ret_error = NULL;
    return error;
}

/* Reads the model's clock and the wall clock. The latter is absent if the model's clock has no
 * offset. */
static int read_clock(Reader *x, struct json_object *o)
{
    uint64_t wall;

    x->where = "clock_usec";
    CHECK(json_get_u64(o, "clock_usec", INT64_MAX, &x->m->clock));
    x->where = "wall_clock_usec";
    if (!json_object_object_get_ex(o, "wall_clock_usec", NULL))
        return 0;
    CHECK(json_get_u64(o, "wall_clock_usec", INT64_MAX, &wall));
    if (wall == x->m->clock)
        return -EBADMSG;
    x->m->clock_offset_usec = (int64_t)(wall - x->m->clock);
    return 0;
}

static int read_all(Reader *x)
{
    struct json_object *o = x->document.root;

    CHECK(read_clock(x, o));
    x->m->generation = decayed_sum_generation(x->m->clock, x->m->halflife_usec);
    CHECK(read_learned(x, o));
    CHECK(read_sums(x, o));
    CHECK(read_files(x, o));
    CHECK(read_stages(x, o));
    return read_chains(x, o);
}

static void reader_done(Reader *x)
{
    free(x->sums);
    json_document_done(&x->document);
}

static int read_model(const char *text, size_t size, bool no_chains, Model **ret, char **ret_error)
{
    _cleanup_(reader_done) Reader reader = {.no_chains = no_chains};
    _cleanup_model_ Model *m = NULL;
    const char *reason = NULL, *word;
    struct json_object *o;
    uint64_t version, halflife_usec;
    int r;

    if (ret_error)
        *ret_error = NULL;
    if (size > MODEL_JSON_SIZE_MAX)
        return fail(-E2BIG, ret_error, "larger than a model may be%s", "");
    r = json_document_parse(text, size, 12, &reader.document, &reason);
    if (r < 0)
        return fail(r, ret_error, "%s", reason ? reason : "out of memory");
    o = reader.document.root;
    if (json_get_string(o, "format", &word) < 0 || strcmp(word, MODEL_FORMAT_NAME) != 0)
        return fail(-EMEDIUMTYPE, ret_error, "not a headstart model%s", "");
    if (json_get_u64(o, "version", UINT32_MAX, &version) < 0 || version < 1 ||
        version > MODEL_FORMAT_VERSION)
        return fail(-EPROTONOSUPPORT, ret_error, "a model of another format version%s", "");
    if (json_get_u64(o, "halflife_usec", MODEL_HALFLIFE_MAX, &halflife_usec) < 0 ||
        halflife_usec == 0)
        return fail(-EBADMSG, ret_error, "\"%s\" is missing or wrong", "halflife_usec");

    m = model_new(halflife_usec);
    if (!m)
        return -ENOMEM;
    reader.m = m;
    reader.version = version;
    r = read_all(&reader);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return fail(-EBADMSG, ret_error, "\"%s\" is missing or wrong", reader.where);
    *ret = TAKE_PTR(m);
    return 0;
}

int model_from_json(const char *text, size_t size, Model **ret, char **ret_error)
{
    return read_model(text, size, false, ret, ret_error);
}

int model_stages_from_json(const char *text, size_t size, Model **ret, char **ret_error)
{
    return read_model(text, size, true, ret, ret_error);
}
