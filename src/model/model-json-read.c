/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The model from text: every index, order and sum is checked, so that what was read can be merged
 * and asked like what was learned. */

#include "model/model-internal.h"

#include "base/json-util.h"

#include <string.h>

/* `where` names the member that was looked at last, for the one line of the error. */
typedef struct Reader {
    Model *m;
    Fade *fades;
    size_t n_fades, allocated_fades;
    const char *where;
} Reader;

#define CHECK(call)      \
    do {                 \
        int _r = (call); \
        if (_r < 0)      \
            return _r;   \
    } while (0)

/* Element i as the row of a Fade that is within `whole`. */
static int fade_at(const Reader *r, struct json_object *a, size_t i, Fade whole, Fade *ret)
{
    uint64_t row;

    CHECK(json_at_u64(a, i, UINT32_MAX, &row));
    if (row >= r->n_fades || !fade_within(r->fades[row], whole))
        return -EBADMSG;
    *ret = r->fades[row];
    return 0;
}

static int fade_member(Reader *r, struct json_object *o, const char *key, Fade whole, Fade *ret)
{
    uint64_t row;

    r->where = key;
    CHECK(json_get_u64(o, key, UINT32_MAX, &row));
    if (row >= r->n_fades || !fade_within(r->fades[row], whole))
        return -EBADMSG;
    *ret = r->fades[row];
    return 0;
}

/* An array in an array. */
static int array_at(struct json_object *a, size_t i, size_t max, struct json_object **ret)
{
    struct json_object *v = json_object_array_get_idx(a, i);

    if (!json_object_is_type(v, json_type_array) || json_object_array_length(v) > max)
        return -EBADMSG;
    *ret = v;
    return 0;
}

static int read_segments(const Reader *r, struct json_object *a, Fade whole, Segments *ret)
{
    size_t n = json_object_array_length(a);
    uint64_t at = 0;

    if (n % 3)
        return -EBADMSG;
    for (size_t i = 0; i < n; i += 3) {
        uint64_t gap, length;
        Segment s;

        CHECK(json_at_u64(a, i, TRACE_NUMBER_MAX, &gap));
        CHECK(json_at_u64(a, i + 1, TRACE_NUMBER_MAX, &length));
        CHECK(fade_at(r, a, i + 2, whole, &s.weight));
        if (__builtin_add_overflow(at, gap, &s.start) ||
            __builtin_add_overflow(s.start, length, &s.end) || s.end > TRACE_NUMBER_MAX)
            return -EBADMSG;
        CHECK(segments_append(ret, s));
        at = s.end;
    }
    return 0;
}

/* The columns of a table: all arrays of one length. */
typedef struct Columns {
    struct json_object *column[8];
    size_t n; /* rows */
} Columns;

static int read_columns(Reader *r, struct json_object *o, const char *table, size_t max,
                        const char *const *keys, size_t n_keys, Columns *ret)
{
    Columns c = {0};

    r->where = table;
    CHECK(json_get_object(o, table, &o));
    for (size_t k = 0; k < n_keys; k++) {
        CHECK(json_get_array(o, keys[k], max, &c.column[k]));
        if (k > 0 && json_object_array_length(c.column[k]) != c.n)
            return -EBADMSG;
        c.n = json_object_array_length(c.column[k]);
    }
    *ret = c;
    return 0;
}

/* Rows 0, 1, …: the first is zero, the others rise. */
static int read_fades(Reader *r, struct json_object *o)
{
    static const char *const keys[] = {"current", "previous"};
    Columns c;

    CHECK(read_columns(r, o, "fades", MODEL_USES_MAX, keys, ELEMENTSOF(keys), &c));
    CHECK(grow_array(&r->fades, &r->allocated_fades, c.n, sizeof(Fade)));
    for (size_t i = 0; i < c.n; i++) {
        Fade *f = &r->fades[i];

        CHECK(json_at_u64(c.column[0], i, FADE_MAX, &f->current));
        CHECK(json_at_u64(c.column[1], i, FADE_MAX, &f->previous));
        if (i == 0 ? !fade_is_zero(*f)
                   : f->current < f[-1].current ||
                             (f->current == f[-1].current && f->previous <= f[-1].previous))
            return -EBADMSG;
    }
    r->n_fades = c.n;
    return c.n > 0 ? 0 : -EBADMSG;
}

/* Absolute, and no names in it that lead elsewhere. */
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

static int read_files(Reader *r, struct json_object *o)
{
    static const char *const keys[] = {"directory", "shared", "rest"};
    static const Fade any = {FADE_MAX, FADE_MAX};
    Model *m = r->m;
    Columns c;

    CHECK(read_columns(r, o, "files", MODEL_FILES_MAX, keys, ELEMENTSOF(keys), &c));
    CHECK(grow_array(&m->files, &m->allocated_files, c.n, sizeof(ModelFile)));
    for (size_t i = 0; i < c.n; i++) {
        const char *before = i > 0 ? m->files[i - 1].path : "";
        _cleanup_free_ char *unescaped = NULL;
        ModelFile *f = &m->files[i];
        const char *rest;
        uint64_t shared;
        size_t l;

        *f = (ModelFile){0};
        CHECK(fade_at(r, c.column[0], i, any, &f->as_directory));
        f->directory = !fade_is_zero(f->as_directory);
        CHECK(json_at_u64(c.column[1], i, strlen(before), &shared));
        CHECK(json_at_string(c.column[2], i, &rest));
        unescaped = json_unescape_bytes(rest);
        l = unescaped ? strlen(unescaped) : TRACE_PATH_MAX;
        if (shared + l >= TRACE_PATH_MAX)
            return -EBADMSG;
        f->path = malloc(shared + l + 1);
        if (!f->path)
            return -ENOMEM;
        m->n_files++;
        memcpy(f->path, before, shared);
        memcpy(f->path + shared, unescaped, l + 1);
        /* Strictly rising: sorted and without duplicates. */
        if (!path_is_plain(f->path) || (i > 0 && strcmp(before, f->path) >= 0))
            return -EBADMSG;
    }
    return 0;
}

/* The next file of a rising sequence: *at is the one before, plus the difference in element i. */
static int step_file(const Reader *r, struct json_object *a, size_t i, uint64_t *at)
{
    uint64_t d;

    CHECK(json_at_u64(a, i, UINT32_MAX, &d));
    if (i > 0 && d == 0)
        return -EBADMSG;
    *at += d;
    return *at < r->m->n_files ? 0 : -EBADMSG;
}

static int read_uses(const Reader *r, struct json_object *files, struct json_object *used,
                     uint32_t application, ModelStage *s)
{
    Fade active = s->applications[application].active;
    size_t n = json_object_array_length(files);
    uint64_t file = 0;

    if (json_object_array_length(used) != n || s->n_uses + n > MODEL_USES_MAX)
        return -EBADMSG;
    CHECK(grow_array(&s->uses, &s->allocated_uses, s->n_uses + n, sizeof(ModelUse)));
    for (size_t i = 0; i < n; i++) {
        ModelUse *u = &s->uses[s->n_uses++];

        *u = (ModelUse){.application = application};
        CHECK(step_file(r, files, i, &file));
        u->file = (uint32_t)file;
        CHECK(fade_at(r, used, i, active, &u->used));
        if (fade_is_zero(u->used))
            return -EBADMSG;
    }
    return 0;
}

static int read_applications(Reader *r, struct json_object *o, ModelStage *s)
{
    static const char *const keys[] = {"file", "active", "uses_delta", "used"};
    Columns c;

    CHECK(read_columns(r, o, "applications", MODEL_FILES_MAX, keys, ELEMENTSOF(keys), &c));
    CHECK(grow_array(&s->applications, &s->allocated_applications, c.n, sizeof(ModelApplication)));
    for (size_t i = 0; i < c.n; i++) {
        ModelApplication *a = &s->applications[i];
        struct json_object *files, *used;
        int64_t file;

        CHECK(json_at_i64(c.column[0], i, &file));
        if (file < -1 || file >= (int64_t)r->m->n_files)
            return -EBADMSG;
        a->file = file < 0 ? MODEL_NONE : (uint32_t)file;
        CHECK(fade_at(r, c.column[1], i, s->sessions, &a->active));
        if (fade_is_zero(a->active) || (i > 0 && a[-1].file >= a->file))
            return -EBADMSG;
        s->n_applications++;
        CHECK(array_at(c.column[2], i, MODEL_FILES_MAX, &files));
        CHECK(array_at(c.column[3], i, MODEL_FILES_MAX, &used));
        CHECK(read_uses(r, files, used, (uint32_t)i, s));
    }
    return 0;
}

static int read_stage_files(Reader *r, struct json_object *o, ModelStage *s)
{
    static const char *const keys[] = {
            "file_delta", "used", "truth", "first_use_msec", "first_use_msec_previous", "resident"};
    uint64_t file = 0;
    Columns c;

    CHECK(read_columns(r, o, "files", MODEL_FILES_MAX, keys, ELEMENTSOF(keys), &c));
    CHECK(grow_array(&s->files, &s->allocated_files, c.n, sizeof(ModelStageFile)));
    for (size_t i = 0; i < c.n; i++) {
        ModelStageFile *f = &s->files[i];
        struct json_object *segments;

        *f = (ModelStageFile){0};
        s->n_files++;
        CHECK(step_file(r, c.column[0], i, &file));
        f->file = (uint32_t)file;
        CHECK(fade_at(r, c.column[1], i, s->sessions, &f->used));
        if (fade_is_zero(f->used))
            return -EBADMSG;
        CHECK(fade_at(r, c.column[2], i, f->used, &f->truth));
        CHECK(json_at_u64(c.column[3], i, FADE_MAX, &f->first_use.current));
        CHECK(json_at_u64(c.column[4], i, FADE_MAX, &f->first_use.previous));
        CHECK(array_at(c.column[5], i, 3 * MODEL_SEGMENTS_MAX, &segments));
        CHECK(read_segments(r, segments, f->truth, &f->resident));
    }
    return 0;
}

/* [row of the stage's files, sessions, ranges], rows rising */
static int read_assumed(Reader *r, struct json_object *o, ModelStage *s)
{
    struct json_object *a, *one, *segments;
    uint64_t next = 0, row;

    r->where = "assumed";
    CHECK(json_get_array(o, "assumed", MODEL_FILES_MAX, &a));
    for (size_t i = 0; i < json_object_array_length(a); i++) {
        ModelStageFile *f;

        CHECK(array_at(a, i, 3, &one));
        CHECK(json_at_u64(one, 0, UINT32_MAX, &row));
        if (row < next || row >= s->n_files)
            return -EBADMSG;
        next = row + 1;
        f = &s->files[row];
        CHECK(fade_at(r, one, 1, f->used, &f->assumed));
        if (fade_is_zero(f->assumed))
            return -EBADMSG;
        CHECK(array_at(one, 2, 3 * MODEL_SEGMENTS_MAX, &segments));
        CHECK(read_segments(r, segments, f->assumed, &f->assumed_resident));
    }
    return 0;
}

static int read_metadata(Reader *r, struct json_object *o, ModelStage *s)
{
    struct json_object *a, *ranges;

    r->where = "metadata";
    CHECK(json_get_array(o, "metadata", TRACE_VOLUMES_MAX, &a));
    CHECK(grow_array(&s->metadata, &s->allocated_metadata, json_object_array_length(a),
                     sizeof(ModelMetadata)));
    for (size_t i = 0; i < json_object_array_length(a); i++) {
        struct json_object *j = json_object_array_get_idx(a, i);
        ModelMetadata *d = &s->metadata[i];
        const char *uuid;

        *d = (ModelMetadata){0};
        s->n_metadata++;
        CHECK(json_get_string(j, "uuid", &uuid));
        d->uuid = json_unescape_bytes(uuid);
        if (!d->uuid)
            return -EBADMSG;
        CHECK(fade_member(r, j, "truth", s->sessions, &d->truth));
        r->where = "metadata";
        if (fade_is_zero(d->truth))
            return -EBADMSG;
        CHECK(json_get_array(j, "ranges", 3 * MODEL_SEGMENTS_MAX, &ranges));
        CHECK(read_segments(r, ranges, d->truth, &d->ranges));
        if (i > 0 && strcmp(d[-1].uuid, d->uuid) >= 0)
            return -EBADMSG;
    }
    return 0;
}

static int read_stage(Reader *r, struct json_object *o, ModelStage *s)
{
    static const Fade any = {FADE_MAX, FADE_MAX};
    struct json_object *duration;
    const char *word;
    int64_t uid;

    r->where = "stage";
    CHECK(json_get_string(o, "stage", &word));
    s->stage = stage_from_string(word);
    if ((int)s->stage < 0)
        return -EBADMSG;
    r->where = "uid";
    CHECK(json_get_i64(o, "uid", &uid));
    if (uid < -1 || uid >= (int64_t)MODEL_NONE)
        return -EBADMSG;
    s->uid = uid < 0 ? MODEL_NONE : (uint32_t)uid;
    CHECK(fade_member(r, o, "sessions", any, &s->sessions));
    if (fade_is_zero(s->sessions))
        return -EBADMSG;
    r->where = "duration_msec";
    CHECK(json_get_array(o, "duration_msec", 2, &duration));
    CHECK(json_at_u64(duration, 0, FADE_MAX, &s->duration.current));
    CHECK(json_at_u64(duration, 1, FADE_MAX, &s->duration.previous));
    CHECK(read_applications(r, o, s));
    CHECK(read_stage_files(r, o, s));
    CHECK(read_assumed(r, o, s));
    return read_metadata(r, o, s);
}

static int read_stages(Reader *r, struct json_object *o)
{
    struct json_object *a;

    r->where = "stages";
    CHECK(json_get_array(o, "stages", MODEL_STAGES_MAX, &a));
    CHECK(grow_array(&r->m->stages, &r->m->allocated_stages, json_object_array_length(a),
                     sizeof(ModelStage)));
    for (size_t i = 0; i < json_object_array_length(a); i++) {
        ModelStage *s = &r->m->stages[i];

        *s = (ModelStage){0};
        r->m->n_stages++;
        CHECK(read_stage(r, json_object_array_get_idx(a, i), s));
        r->where = "stages";
        if (i > 0 && (s[-1].stage > s->stage || (s[-1].stage == s->stage && s[-1].uid >= s->uid)))
            return -EBADMSG;
    }
    return 0;
}

static int read_learned(Reader *r, struct json_object *o)
{
    struct json_object *a;

    r->where = "learned";
    CHECK(json_get_array(o, "learned", MODEL_LEARNED_MAX, &a));
    CHECK(grow_array(&r->m->learned, &r->m->allocated_learned, json_object_array_length(a),
                     sizeof(ModelLearned)));
    for (size_t i = 0; i < json_object_array_length(a); i++) {
        struct json_object *triple = json_object_array_get_idx(a, i);
        ModelLearned *l = &r->m->learned[i];

        if (!json_object_is_type(triple, json_type_array))
            return -EBADMSG;
        CHECK(json_at_u64(triple, 0, r->m->clock, &l->at));
        CHECK(json_at_u64(triple, 1, TRACE_NUMBER_MAX, &l->start_realtime));
        CHECK(json_at_u64(triple, 2, TRACE_NUMBER_MAX, &l->id));
        r->m->n_learned++;
        if (i > 0 && model_compare_learned(&l[-1], l) >= 0)
            return -EBADMSG;
    }
    return 0;
}

/* Absent, or an object that chains.h accepts. */
static int read_chains(Reader *r, struct json_object *o)
{
    struct json_object *c;
    const char *text;
    size_t size;
    int k;

    r->where = "chains";
    if (!json_object_object_get_ex(o, "chains", &c))
        return 0;
    if (!json_object_is_type(c, json_type_object))
        return -EBADMSG;
    text = json_object_to_json_string_length(
            c, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &size);
    if (!text)
        return -ENOMEM;
    k = chains_from_json(text, size, &r->m->chains);
    if (k < 0)
        return k == -ENOMEM ? k : -EBADMSG;
    return r->m->chains->halflife == r->m->halflife ? 0 : -EBADMSG;
}

static int fail(int error, char **ret_error, const char *format, const char *detail)
{
    if (ret_error && asprintf(ret_error, format, detail) < 0)
        *ret_error = NULL;
    return error;
}

static int read_all(Reader *r, struct json_object *o)
{
    r->where = "clock_usec";
    CHECK(json_get_u64(o, "clock_usec", INT64_MAX, &r->m->clock));
    r->m->generation = fade_generation(r->m->clock, r->m->halflife);
    CHECK(read_learned(r, o));
    CHECK(read_fades(r, o));
    CHECK(read_files(r, o));
    CHECK(read_stages(r, o));
    return read_chains(r, o);
}

int model_from_json(const char *text, size_t size, Model **ret, char **ret_error)
{
    _cleanup_json_ struct json_object *o = NULL;
    _cleanup_model_ Model *m = NULL;
    const char *reason = NULL, *word;
    uint64_t version, halflife;
    Reader reader;
    int r;

    if (ret_error)
        *ret_error = NULL;
    if (size > MODEL_JSON_SIZE_MAX)
        return fail(-E2BIG, ret_error, "larger than a model may be%s", "");
    r = json_parse(text, size, 12, &o, &reason);
    if (r < 0)
        return fail(r, ret_error, "%s", reason ? reason : "out of memory");
    if (json_get_string(o, "format", &word) < 0 || strcmp(word, MODEL_FORMAT_NAME) != 0)
        return fail(-EMEDIUMTYPE, ret_error, "not a headstart model%s", "");
    if (json_get_u64(o, "version", UINT32_MAX, &version) < 0 || version != MODEL_FORMAT_VERSION)
        return fail(-EPROTONOSUPPORT, ret_error, "a model of another format version%s", "");
    if (json_get_u64(o, "halflife_usec", MODEL_HALFLIFE_MAX, &halflife) < 0 || halflife == 0)
        return fail(-EBADMSG, ret_error, "\"%s\" is missing or wrong", "halflife_usec");

    m = model_new(halflife);
    if (!m)
        return -ENOMEM;
    reader = (Reader){.m = m};
    r = read_all(&reader, o);
    free(reader.fades);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return fail(-EBADMSG, ret_error, "\"%s\" is missing or wrong", reader.where);
    *ret = TAKE_PTR(m);
    return 0;
}
