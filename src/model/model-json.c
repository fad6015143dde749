/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/model-internal.h"

#include "base/json-util.h"

#include <string.h>

#define FORMAT_NAME "headstart-model"

/* Far above what a machine has, low enough that a hostile file cannot eat the memory. */
#define ROWS_MAX     4000000U
#define SEGMENTS_MAX 1000000U

#define COLUMN(name, type, expression)                                                             \
    static int64_t name(const void *table, size_t i)                                               \
    {                                                                                              \
        const type *t = table;                                                                     \
        return (int64_t)(expression);                                                              \
    }
/* An index; MODEL_NONE as -1. */
#define INDEX(field) (t[i].field == MODEL_NONE ? -1 : (int64_t)t[i].field)

COLUMN(file_directory, ModelFile, t[i].directory)
COLUMN(application_file, ModelApplication, INDEX(file))
COLUMN(application_active, ModelApplication, t[i].active.current)
COLUMN(application_active_old, ModelApplication, t[i].active.previous)
COLUMN(use_application, ModelUse, t[i].application)
COLUMN(use_file, ModelUse, t[i].file)
COLUMN(use_used, ModelUse, t[i].used.current)
COLUMN(use_used_old, ModelUse, t[i].used.previous)
COLUMN(stage_file, ModelStageFile, t[i].file)
COLUMN(stage_file_used, ModelStageFile, t[i].used.current)
COLUMN(stage_file_used_old, ModelStageFile, t[i].used.previous)
COLUMN(stage_file_truth, ModelStageFile, t[i].truth.current)
COLUMN(stage_file_truth_old, ModelStageFile, t[i].truth.previous)
COLUMN(stage_file_first, ModelStageFile, t[i].first_use.current)
COLUMN(stage_file_first_old, ModelStageFile, t[i].first_use.previous)

static struct json_object *numbers_to_json(const uint64_t *v, size_t n)
{
    struct json_object *a = json_object_new_array_ext((int)MAX(n, (size_t)1));

    for (size_t i = 0; a && i < n; i++) {
        struct json_object *x = json_object_new_uint64(v[i]);

        if (!x || json_object_array_add(a, x) < 0) {
            json_object_put(x);
            json_object_put(a);
            a = NULL;
        }
    }
    return a;
}

static void add_fade(JsonWriter *w, const char *key, Fade f)
{
    json_writer_add(w, key, numbers_to_json((uint64_t[]){f.current, f.previous}, 2));
}

/* gap, length, current, previous of each segment, all in one array */
static void add_segments(JsonWriter *w, const char *key, const Segments *s)
{
    _cleanup_free_ uint64_t *v = calloc(4 * s->n + 1, sizeof(uint64_t));
    uint64_t at = 0;

    for (size_t i = 0; v && i < s->n; i++) {
        const Segment *x = &s->segments[i];

        v[4 * i] = x->start - at;
        v[4 * i + 1] = x->end - x->start;
        v[4 * i + 2] = x->weight.current;
        v[4 * i + 3] = x->weight.previous;
        at = x->end;
    }
    json_writer_add(w, key, v ? numbers_to_json(v, 4 * s->n) : NULL);
}

/* Sorted paths, each as the length it shares with the one before and the rest (front coding). */
static void write_files(JsonWriter *w, const Model *m)
{
    _cleanup_free_ uint64_t *shared = calloc(m->n_files + 1, sizeof(uint64_t));

    for (size_t i = 1; shared && i < m->n_files; i++)
        while (m->files[i].path[shared[i]] &&
               m->files[i].path[shared[i]] == m->files[i - 1].path[shared[i]])
            shared[i]++;

    json_writer_open(w, "files", '{');
    json_writer_add_column(w, "directory", m->files, m->n_files, file_directory);
    json_writer_add(w, "shared", shared ? numbers_to_json(shared, m->n_files) : NULL);
    json_writer_open(w, "rest", '[');
    for (size_t i = 0; shared && i < m->n_files; i++) {
        _cleanup_free_ char *rest = json_escape_bytes(m->files[i].path + shared[i]);

        json_writer_add(w, NULL, rest ? json_object_new_string(rest) : NULL);
    }
    json_writer_close(w, ']');
    json_writer_close(w, '}');
}

static void write_stage(JsonWriter *w, const ModelStage *s)
{
    json_writer_open(w, NULL, '{');
    json_writer_add_string(w, "stage", stage_to_string(s->stage));
    json_writer_add(w, "uid", json_object_new_int64(s->uid == MODEL_NONE ? -1 : (int64_t)s->uid));
    add_fade(w, "sessions", s->sessions);
    add_fade(w, "duration_msec", s->duration);

    json_writer_open(w, "applications", '{');
    json_writer_add_column(w, "file", s->applications, s->n_applications, application_file);
    json_writer_add_column(w, "active", s->applications, s->n_applications, application_active);
    json_writer_add_column(w, "active_old", s->applications, s->n_applications,
                           application_active_old);
    json_writer_close(w, '}');

    json_writer_open(w, "uses", '{');
    json_writer_add_column(w, "application", s->uses, s->n_uses, use_application);
    json_writer_add_column(w, "file", s->uses, s->n_uses, use_file);
    json_writer_add_column(w, "used", s->uses, s->n_uses, use_used);
    json_writer_add_column(w, "used_old", s->uses, s->n_uses, use_used_old);
    json_writer_close(w, '}');

    json_writer_open(w, "files", '{');
    json_writer_add_column(w, "file", s->files, s->n_files, stage_file);
    json_writer_add_column(w, "used", s->files, s->n_files, stage_file_used);
    json_writer_add_column(w, "used_old", s->files, s->n_files, stage_file_used_old);
    json_writer_add_column(w, "truth", s->files, s->n_files, stage_file_truth);
    json_writer_add_column(w, "truth_old", s->files, s->n_files, stage_file_truth_old);
    json_writer_add_column(w, "first_use_msec", s->files, s->n_files, stage_file_first);
    json_writer_add_column(w, "first_use_msec_old", s->files, s->n_files, stage_file_first_old);
    json_writer_open(w, "resident", '[');
    for (size_t i = 0; i < s->n_files; i++)
        add_segments(w, NULL, &s->files[i].resident);
    json_writer_close(w, ']');
    json_writer_close(w, '}');

    json_writer_open(w, "metadata", '[');
    for (size_t i = 0; i < s->n_metadata; i++) {
        _cleanup_free_ char *uuid = json_escape_bytes(s->metadata[i].uuid);

        json_writer_open(w, NULL, '{');
        json_writer_add(w, "uuid", uuid ? json_object_new_string(uuid) : NULL);
        add_fade(w, "truth", s->metadata[i].truth);
        add_segments(w, "ranges", &s->metadata[i].ranges);
        json_writer_close(w, '}');
    }
    json_writer_close(w, ']');
    json_writer_close(w, '}');
}

int model_to_json(const Model *m, char **ret, size_t *ret_size)
{
    _cleanup_json_writer_ JsonWriter w = {0};

    json_writer_add_string(&w, "format", FORMAT_NAME);
    json_writer_add_u64(&w, "version", MODEL_FORMAT_VERSION);
    json_writer_add_u64(&w, "halflife_usec", m->halflife);
    json_writer_add_u64(&w, "generation", m->generation);
    json_writer_open(&w, "learned", '[');
    for (size_t i = 0; i < m->n_learned; i++)
        json_writer_add(&w, NULL,
                        numbers_to_json((uint64_t[]){m->learned[i].start_realtime,
                                                     m->learned[i].id},
                                        2));
    json_writer_close(&w, ']');
    write_files(&w, m);
    json_writer_open(&w, "stages", '[');
    for (size_t i = 0; i < m->n_stages; i++)
        write_stage(&w, &m->stages[i]);
    json_writer_close(&w, ']');
    return json_writer_finish(&w, ret, ret_size);
}

/* The reader. `where` names the member that was looked at last, for the one line of the error. */
typedef struct Reader {
    Model *m;
    const char *where;
} Reader;

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int _r = (call);                                                                           \
        if (_r < 0)                                                                                \
            return _r;                                                                             \
    } while (0)

static int read_fade(Reader *r, struct json_object *o, const char *key, Fade *ret)
{
    struct json_object *a;

    r->where = key;
    CHECK(json_get_array(o, key, 2, &a));
    if (json_object_array_length(a) != 2)
        return -EBADMSG;
    CHECK(json_at_u64(a, 0, FADE_MAX, &ret->current));
    return json_at_u64(a, 1, FADE_MAX, &ret->previous);
}

static int read_segments(struct json_object *a, Segments *ret)
{
    size_t n;
    uint64_t at = 0;

    if (!json_object_is_type(a, json_type_array))
        return -EBADMSG;
    n = json_object_array_length(a);
    if (n % 4 || n / 4 > SEGMENTS_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < n; i += 4) {
        uint64_t gap, length;
        Segment s;

        CHECK(json_at_u64(a, i, UINT64_MAX, &gap));
        CHECK(json_at_u64(a, i + 1, UINT64_MAX, &length));
        CHECK(json_at_u64(a, i + 2, FADE_MAX, &s.weight.current));
        CHECK(json_at_u64(a, i + 3, FADE_MAX, &s.weight.previous));
        if (__builtin_add_overflow(at, gap, &s.start) ||
            __builtin_add_overflow(s.start, length, &s.end))
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

static int read_columns(Reader *r, struct json_object *o, const char *table,
                        const char *const *keys, size_t n_keys, Columns *ret)
{
    Columns c = {0};

    r->where = table;
    CHECK(json_get_object(o, table, &o));
    for (size_t k = 0; k < n_keys; k++) {
        CHECK(json_get_array(o, keys[k], ROWS_MAX, &c.column[k]));
        if (k > 0 && json_object_array_length(c.column[k]) != c.n)
            return -EBADMSG;
        c.n = json_object_array_length(c.column[k]);
    }
    *ret = c;
    return 0;
}

/* The Fade in two neighbouring columns. */
static int column_fade(const Columns *c, size_t k, size_t i, Fade *ret)
{
    CHECK(json_at_u64(c->column[k], i, FADE_MAX, &ret->current));
    return json_at_u64(c->column[k + 1], i, FADE_MAX, &ret->previous);
}

static int column_index(const Columns *c, size_t k, size_t i, size_t below, uint32_t *ret)
{
    uint64_t v;

    CHECK(json_at_u64(c->column[k], i, UINT32_MAX - 1, &v));
    if (v >= below)
        return -EBADMSG;
    *ret = (uint32_t)v;
    return 0;
}

static int read_files(Reader *r, struct json_object *o)
{
    static const char *const keys[] = {"directory", "shared", "rest"};
    Model *m = r->m;
    Columns c;

    CHECK(read_columns(r, o, "files", keys, ELEMENTSOF(keys), &c));
    CHECK(grow_array(&m->files, &m->allocated_files, c.n, sizeof(ModelFile)));
    for (size_t i = 0; i < c.n; i++) {
        struct json_object *rest = json_object_array_get_idx(c.column[2], i);
        const char *before = i > 0 ? m->files[i - 1].path : "";
        _cleanup_free_ char *unescaped = NULL;
        uint64_t directory, shared;
        char *path;

        CHECK(json_at_u64(c.column[0], i, 1, &directory));
        CHECK(json_at_u64(c.column[1], i, strlen(before), &shared));
        if (!json_object_is_type(rest, json_type_string))
            return -EBADMSG;
        unescaped = json_unescape_bytes(json_object_get_string(rest));
        if (!unescaped || shared + strlen(unescaped) >= TRACE_PATH_MAX)
            return -EBADMSG;
        if (asprintf(&path, "%.*s%s", (int)shared, before, unescaped) < 0)
            return -ENOMEM;
        m->files[m->n_files++] = (ModelFile){.path = path, .directory = directory};
        /* Strictly rising: sorted and without duplicates. */
        if (i > 0 && strcmp(before, path) >= 0)
            return -EBADMSG;
    }
    return 0;
}

static int read_applications(Reader *r, struct json_object *o, ModelStage *s)
{
    static const char *const keys[] = {"file", "active", "active_old"};
    Columns c;

    CHECK(read_columns(r, o, "applications", keys, ELEMENTSOF(keys), &c));
    CHECK(grow_array(&s->applications, &s->allocated_applications, c.n, sizeof(ModelApplication)));
    for (size_t i = 0; i < c.n; i++) {
        ModelApplication *a = &s->applications[i];
        int64_t file;

        CHECK(json_at_i64(c.column[0], i, &file));
        if (file < -1 || file >= (int64_t)r->m->n_files)
            return -EBADMSG;
        a->file = file < 0 ? MODEL_NONE : (uint32_t)file;
        CHECK(column_fade(&c, 1, i, &a->active));
        if (i > 0 && a[-1].file >= a->file)
            return -EBADMSG;
        s->n_applications++;
    }
    return 0;
}

static int read_uses(Reader *r, struct json_object *o, ModelStage *s)
{
    static const char *const keys[] = {"application", "file", "used", "used_old"};
    Columns c;

    CHECK(read_columns(r, o, "uses", keys, ELEMENTSOF(keys), &c));
    CHECK(grow_array(&s->uses, &s->allocated_uses, c.n, sizeof(ModelUse)));
    for (size_t i = 0; i < c.n; i++) {
        ModelUse *u = &s->uses[i];

        CHECK(column_index(&c, 0, i, s->n_applications, &u->application));
        CHECK(column_index(&c, 1, i, r->m->n_files, &u->file));
        CHECK(column_fade(&c, 2, i, &u->used));
        if (i > 0 && (u[-1].application > u->application ||
                      (u[-1].application == u->application && u[-1].file >= u->file)))
            return -EBADMSG;
        s->n_uses++;
    }
    return 0;
}

static int read_stage_files(Reader *r, struct json_object *o, ModelStage *s)
{
    static const char *const keys[] = {"file",      "used",           "used_old",
                                       "truth",     "truth_old",      "first_use_msec",
                                       "first_use_msec_old", "resident"};
    Columns c;

    CHECK(read_columns(r, o, "files", keys, ELEMENTSOF(keys), &c));
    CHECK(grow_array(&s->files, &s->allocated_files, c.n, sizeof(ModelStageFile)));
    for (size_t i = 0; i < c.n; i++) {
        ModelStageFile *f = &s->files[i];

        *f = (ModelStageFile){0};
        s->n_files++;
        CHECK(column_index(&c, 0, i, r->m->n_files, &f->file));
        CHECK(column_fade(&c, 1, i, &f->used));
        CHECK(column_fade(&c, 3, i, &f->truth));
        CHECK(column_fade(&c, 5, i, &f->first_use));
        CHECK(read_segments(json_object_array_get_idx(c.column[7], i), &f->resident));
        if (i > 0 && f[-1].file >= f->file)
            return -EBADMSG;
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
        CHECK(read_fade(r, j, "truth", &d->truth));
        r->where = "metadata";
        CHECK(json_get_array(j, "ranges", 4 * SEGMENTS_MAX, &ranges));
        CHECK(read_segments(ranges, &d->ranges));
        if (i > 0 && strcmp(d[-1].uuid, d->uuid) >= 0)
            return -EBADMSG;
    }
    return 0;
}

static int read_stage(Reader *r, struct json_object *o, ModelStage *s)
{
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
    CHECK(read_fade(r, o, "sessions", &s->sessions));
    if (fade_is_zero(s->sessions))
        return -EBADMSG;
    CHECK(read_fade(r, o, "duration_msec", &s->duration));
    CHECK(read_applications(r, o, s));
    CHECK(read_uses(r, o, s));
    CHECK(read_stage_files(r, o, s));
    return read_metadata(r, o, s);
}

static int read_stages(Reader *r, struct json_object *o)
{
    struct json_object *a;

    r->where = "stages";
    CHECK(json_get_array(o, "stages", 65536, &a));
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
        struct json_object *pair = json_object_array_get_idx(a, i);
        ModelLearned *l = &r->m->learned[i];

        if (!json_object_is_type(pair, json_type_array))
            return -EBADMSG;
        CHECK(json_at_u64(pair, 0, UINT64_MAX, &l->start_realtime));
        CHECK(json_at_u64(pair, 1, UINT64_MAX, &l->id));
        r->m->n_learned++;
        if (i > 0 && (l[-1].start_realtime > l->start_realtime ||
                      (l[-1].start_realtime == l->start_realtime && l[-1].id >= l->id)))
            return -EBADMSG;
    }
    return 0;
}

static int fail(int error, char **ret_error, const char *format, const char *detail)
{
    if (ret_error && asprintf(ret_error, format, detail) < 0)
        *ret_error = NULL;
    return error;
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
    r = json_parse(text, size, 10, &o, &reason);
    if (r < 0)
        return fail(r, ret_error, "%s", reason ? reason : "out of memory");
    if (json_get_string(o, "format", &word) < 0 || strcmp(word, FORMAT_NAME) != 0)
        return fail(-EMEDIUMTYPE, ret_error, "not a headstart model%s", "");
    if (json_get_u64(o, "version", UINT32_MAX, &version) < 0 || version != MODEL_FORMAT_VERSION)
        return fail(-EPROTONOSUPPORT, ret_error, "a model of another format version%s", "");
    if (json_get_u64(o, "halflife_usec", INT64_MAX / FADE_SPAN, &halflife) < 0 || halflife == 0)
        return fail(-EBADMSG, ret_error, "\"%s\" is missing or wrong", "halflife_usec");

    m = model_new(halflife);
    if (!m)
        return -ENOMEM;
    reader = (Reader){.m = m, .where = "generation"};
    r = json_get_u64(o, "generation", UINT64_MAX - 1, &m->generation);
    if (r >= 0)
        r = read_learned(&reader, o);
    if (r >= 0)
        r = read_files(&reader, o);
    if (r >= 0)
        r = read_stages(&reader, o);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return fail(-EBADMSG, ret_error, "\"%s\" is missing or wrong", reader.where);
    *ret = TAKE_PTR(m);
    return 0;
}
