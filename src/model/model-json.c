/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The model as text: docs/formats.md. Files that were used in the same sessions have equal
 * DecayedSums. Each value is therefore stored once in a table, and the rest of the file refers to
 * its row. Sums of milliseconds are not in the table, because they are hardly ever equal. A stage's
 * sums `late`, `autologins` and `timing` are not in the table either. model-json-read.c reads the
 * text. */

#include "chains/chains-json.h"
#include "model/model-internal.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

/* DecayedSum -> its row */
typedef struct SumRow {
    UT_hash_handle hh;
    DecayedSum sum;
    uint32_t row;
    bool oom;
} SumRow;

typedef struct Writer {
    JsonWriter w;
    SumRow *rows;
    SumRow *last; /* result of the last lookup, because successive sums are often equal */
    uint64_t *scratch;
    size_t allocated_scratch;
} Writer;

static void writer_done(Writer *w)
{
    SumRow *r, *tmp;

    HASH_ITER (hh, w->rows, r, tmp) {
        HASH_DEL(w->rows, r);
        free(r);
    }
    free(w->scratch);
    json_writer_done(&w->w);
}

static bool sum_equal(DecayedSum a, DecayedSum b)
{
    return a.current == b.current && a.previous == b.previous;
}

static SumRow *find_sum(Writer *w, DecayedSum f)
{
    SumRow *r = w->last;

    if (!r || !sum_equal(r->sum, f)) {
        HASH_FIND(hh, w->rows, &f, sizeof(f), r);
        w->last = r ? r : w->last;
    }
    return r;
}

static int add_sum(Writer *w, DecayedSum f)
{
    SumRow *r = find_sum(w, f);

    if (r)
        return 0;
    r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    r->sum = f;
    HASH_ADD(hh, w->rows, sum, sizeof(f), r);
    if (r->oom) {
        free(r);
        return -ENOMEM;
    }
    return 0;
}

/* Returns the row of a sum that was added before. */
static uint64_t row_of(Writer *w, DecayedSum f)
{
    const SumRow *r = find_sum(w, f);

    return r ? r->row : 0;
}

static int add_ranges(Writer *w, const WeightedRanges *s)
{
    for (size_t i = 0; i < s->n; i++)
        CHECK(add_sum(w, s->ranges[i].weight));
    return 0;
}

static int add_stage(Writer *w, const ModelStage *s)
{
    CHECK(add_sum(w, s->sessions));
    CHECK(add_sum(w, s->machines));
    for (size_t i = 0; i < s->n_applications; i++) {
        CHECK(add_sum(w, s->applications[i].active));
        CHECK(add_sum(w, s->applications[i].launched));
        CHECK(add_sum(w, s->applications[i].machines));
    }
    for (size_t i = 0; i < s->n_uses; i++) {
        CHECK(add_sum(w, s->uses[i].used));
        CHECK(add_sum(w, s->uses[i].launched));
        CHECK(add_sum(w, s->uses[i].machines));
        if (s->uses[i].touched) {
            CHECK(add_sum(w, s->uses[i].touched->sessions));
            CHECK(add_ranges(w, &s->uses[i].touched->ranges));
        }
    }
    for (size_t i = 0; i < s->n_files; i++) {
        CHECK(add_sum(w, s->files[i].used));
        CHECK(add_sum(w, s->files[i].looked_up));
        CHECK(add_sum(w, s->files[i].machines));
        for (Residency k = 0; k < _RESIDENCY_MAX; k++) {
            CHECK(add_sum(w, s->files[i].residency[k].sessions));
            CHECK(add_ranges(w, &s->files[i].residency[k].ranges));
        }
    }
    for (size_t i = 0; i < s->n_metadata; i++) {
        CHECK(add_sum(w, s->metadata[i].observed));
        CHECK(add_ranges(w, &s->metadata[i].ranges));
    }
    return 0;
}

static int by_sum(const SumRow *a, const SumRow *b)
{
    if (a->sum.current != b->sum.current)
        return a->sum.current < b->sum.current ? -1 : 1;
    return a->sum.previous < b->sum.previous ? -1 : a->sum.previous > b->sum.previous;
}

/* Collects the DecayedSums that belong in the table, and numbers them. Row 0 is zero. */
static int collect_sums(Writer *w, const Model *m)
{
    uint32_t n = 0;

    CHECK(add_sum(w, (DecayedSum){0, 0}));
    for (size_t i = 0; i < m->n_files; i++)
        CHECK(add_sum(w, m->files[i].as_directory));
    for (size_t i = 0; i < m->n_stages; i++)
        CHECK(add_stage(w, &m->stages[i]));
    HASH_SRT(hh, w->rows, by_sum);
    for (SumRow *r = w->rows; r; r = r->hh.next)
        r->row = n++;
    return 0;
}

/* Returns room for n numbers that are about to be written. */
static uint64_t *scratch(Writer *w, size_t n)
{
    if (grow_array(&w->scratch, &w->allocated_scratch, n, sizeof(uint64_t)) < 0)
        w->w.error = w->w.error < 0 ? w->w.error : -ENOMEM;
    return w->w.error < 0 ? NULL : w->scratch;
}

/* Writes a column of n rows. The value of row i is `expression`, in which `i` may occur. */
#define WRITE_COLUMN(w, key, n, expression)                   \
    do {                                                      \
        uint64_t *_v = scratch((w), (n));                     \
        for (size_t i = 0; _v && i < (n); i++)                \
            _v[i] = (expression);                             \
        if (_v)                                               \
            json_writer_add_numbers(&(w)->w, (key), _v, (n)); \
    } while (0)

/* Writes the ranges as one array. Each range has three numbers: gap, length, and the row of its
 * DecayedSum in the table of sums. */
static void write_ranges(Writer *w, const char *key, const WeightedRanges *s)
{
    uint64_t *v = scratch(w, 3 * s->n + 1), at = 0;

    for (size_t i = 0; v && i < s->n; i++) {
        const WeightedRange *x = &s->ranges[i];

        v[3 * i] = x->offset - at;
        v[3 * i + 1] = x->length;
        v[3 * i + 2] = row_of(w, x->weight);
        at = weighted_range_end(x);
    }
    if (v)
        json_writer_add_numbers(&w->w, key, v, 3 * s->n);
}

static void write_sums(Writer *w)
{
    size_t n = HASH_COUNT(w->rows), i;
    uint64_t *v;

    json_writer_open(&w->w, "sums", '{');
    for (int previous = 0; previous < 2; previous++) {
        v = scratch(w, n);
        i = 0;
        for (SumRow *r = w->rows; v && r; r = r->hh.next)
            v[i++] = previous ? r->sum.previous : r->sum.current;
        if (v)
            json_writer_add_numbers(&w->w, previous ? "previous" : "current", v, n);
    }
    json_writer_close(&w->w, '}');
}

static size_t shared_prefix(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* Writes sorted paths with front coding: for each path the length of the prefix that it shares with
 * the previous one, and the rest of the path. */
static void write_files(Writer *w, const Model *m)
{
    json_writer_open(&w->w, "files", '{');
    WRITE_COLUMN(w, "directory", m->n_files, row_of(w, m->files[i].as_directory));
    WRITE_COLUMN(w, "shared", m->n_files,
                 i == 0 ? 0 : shared_prefix(m->files[i].path, m->files[i - 1].path));
    json_writer_open(&w->w, "rest", '[');
    for (size_t i = 0; i < m->n_files; i++) {
        size_t shared = i == 0 ? 0 : shared_prefix(m->files[i].path, m->files[i - 1].path);

        json_writer_add_bytes(&w->w, NULL, m->files[i].path + shared);
    }
    json_writer_close(&w->w, ']');
    json_writer_close(&w->w, '}');
}

static int64_t application_file(const void *table, size_t i)
{
    const ModelApplication *a = table;

    return a[i].file == MODEL_NONE ? -1 : (int64_t)a[i].file;
}

/* Writes the uses, with one array for each application. */
static void write_uses(Writer *w, const ModelStage *s)
{
    for (int rows = 0; rows < 2; rows++) {
        size_t k = 0;

        json_writer_open(&w->w, rows ? "used" : "uses_delta", '[');
        for (size_t a = 0; a < s->n_applications; a++) {
            const ModelUse *u = k < s->n_uses ? &s->uses[k] : NULL;
            size_t n = 0;

            while (k < s->n_uses && s->uses[k].application == a) {
                k++;
                n++;
            }
            WRITE_COLUMN(w, NULL, n,
                         rows     ? row_of(w, u[i].used)
                         : i == 0 ? u[i].file
                                  : u[i].file - u[i - 1].file);
        }
        json_writer_close(&w->w, ']');
    }
}

/* Writes which of the uses belong to starts of applications. `use_delta` numbers the uses in the
 * order of `uses_delta`. */
static void write_launches(Writer *w, const ModelStage *s)
{
    _cleanup_free_ size_t *uses = reallocarray(NULL, s->n_uses + 1, sizeof(size_t));
    size_t n = 0;

    if (!uses) {
        w->w.error = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < s->n_uses; i++)
        if (!decayed_sum_is_zero(s->uses[i].launched))
            uses[n++] = i;
    json_writer_open(&w->w, "launches", '{');
    WRITE_COLUMN(w, "launched", s->n_applications, row_of(w, s->applications[i].launched));
    WRITE_COLUMN(w, "use_delta", n, i == 0 ? uses[0] : uses[i] - uses[i - 1]);
    WRITE_COLUMN(w, "used", n, row_of(w, s->uses[uses[i]].launched));
    WRITE_COLUMN(w, "delay_msec", n, s->uses[uses[i]].delay.current);
    WRITE_COLUMN(w, "delay_msec_previous", n, s->uses[uses[i]].delay.previous);
    json_writer_close(&w->w, '}');
}

/* Writes the touched pages of the uses that have them, or nothing if none has. */
static void write_touched(Writer *w, const ModelStage *s)
{
    bool open = false;

    for (size_t i = 0; i < s->n_uses; i++) {
        const ModelResidency *touched = s->uses[i].touched;

        if (!touched)
            continue;
        if (!open)
            json_writer_open(&w->w, "touched", '[');
        open = true;
        json_writer_open(&w->w, NULL, '[');
        json_writer_add_u64(&w->w, NULL, i);
        json_writer_add_u64(&w->w, NULL, row_of(w, touched->sessions));
        write_ranges(w, NULL, &touched->ranges);
        json_writer_close(&w->w, ']');
    }
    if (open)
        json_writer_close(&w->w, ']');
}

/* Writes the counts of machines, or nothing if none were counted. */
static void write_machines(Writer *w, const ModelStage *s)
{
    if (decayed_sum_is_zero(s->machines))
        return;
    json_writer_open(&w->w, "machines", '{');
    json_writer_add_u64(&w->w, "stage", row_of(w, s->machines));
    WRITE_COLUMN(w, "applications", s->n_applications, row_of(w, s->applications[i].machines));
    WRITE_COLUMN(w, "uses", s->n_uses, row_of(w, s->uses[i].machines));
    WRITE_COLUMN(w, "files", s->n_files, row_of(w, s->files[i].machines));
    json_writer_close(&w->w, '}');
}

/* Writes the residency of this kind. Only the files that have it are listed. */
static void write_residency(Writer *w, const char *key, Residency residency, const ModelStage *s)
{
    json_writer_open(&w->w, key, '[');
    for (size_t i = 0; i < s->n_files; i++) {
        const ModelResidency *known = &s->files[i].residency[residency];

        if (decayed_sum_is_zero(known->sessions))
            continue;
        json_writer_open(&w->w, NULL, '[');
        json_writer_add_u64(&w->w, NULL, i);
        json_writer_add_u64(&w->w, NULL, row_of(w, known->sessions));
        write_ranges(w, NULL, &known->ranges);
        json_writer_close(&w->w, ']');
    }
    json_writer_close(&w->w, ']');
}

static bool has_exact_residency(const ModelStage *s)
{
    for (size_t i = 0; i < s->n_files; i++)
        if (!decayed_sum_is_zero(s->files[i].residency[RESIDENCY_EXACT].sessions))
            return true;
    return false;
}

static bool has_looked_up(const ModelStage *s)
{
    for (size_t i = 0; i < s->n_files; i++)
        if (!decayed_sum_is_zero(s->files[i].looked_up))
            return true;
    return false;
}

static void write_stage_files(Writer *w, const ModelStage *s)
{
    const ModelStageFile *f = s->files;

    json_writer_open(&w->w, "files", '{');
    WRITE_COLUMN(w, "file_delta", s->n_files, i == 0 ? f[i].file : f[i].file - f[i - 1].file);
    WRITE_COLUMN(w, "used", s->n_files, row_of(w, f[i].used));
    if (has_looked_up(s))
        WRITE_COLUMN(w, "looked_up", s->n_files, row_of(w, f[i].looked_up));
    WRITE_COLUMN(w, "observed", s->n_files, row_of(w, f[i].residency[RESIDENCY_OBSERVED].sessions));
    WRITE_COLUMN(w, "first_use_msec", s->n_files, f[i].first_use.current);
    WRITE_COLUMN(w, "first_use_msec_previous", s->n_files, f[i].first_use.previous);
    json_writer_open(&w->w, "resident", '[');
    for (size_t i = 0; i < s->n_files; i++)
        write_ranges(w, NULL, &f[i].residency[RESIDENCY_OBSERVED].ranges);
    json_writer_close(&w->w, ']');
    json_writer_close(&w->w, '}');

    write_residency(w, "assumed", RESIDENCY_ASSUMED, s);
    if (has_exact_residency(s))
        write_residency(w, "exact", RESIDENCY_EXACT, s);
}

/* Writes the sum over the sessions that had some property; nothing if none had it. */
static void write_part(Writer *w, const char *key, DecayedSum part)
{
    if (!decayed_sum_is_zero(part))
        json_writer_add_numbers(&w->w, key, (uint64_t[]){part.current, part.previous}, 2);
}

static bool is_of_stage(const ModelMetadata *d)
{
    return !d->assumed && !d->application;
}

static bool is_assumed(const ModelMetadata *d)
{
    return d->assumed;
}

static bool is_of_application(const ModelMetadata *d)
{
    return d->application;
}

/* Writes the rows of one kind; nothing if there are none and the member is optional. */
static void write_metadata(Writer *w, const ModelStage *s, const char *key,
                           bool (*is_wanted)(const ModelMetadata *), bool optional)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_metadata; i++)
        n += is_wanted(&s->metadata[i]);
    if (n == 0 && optional)
        return;
    json_writer_open(&w->w, key, '[');
    for (size_t i = 0; i < s->n_metadata; i++) {
        if (!is_wanted(&s->metadata[i]))
            continue;
        json_writer_open(&w->w, NULL, '{');
        if (s->metadata[i].application)
            json_writer_add_bytes(&w->w, "application", s->metadata[i].application);
        json_writer_add_bytes(&w->w, "uuid", s->metadata[i].uuid);
        json_writer_add_u64(&w->w, "observed", row_of(w, s->metadata[i].observed));
        write_ranges(w, "ranges", &s->metadata[i].ranges);
        json_writer_close(&w->w, '}');
    }
    json_writer_close(&w->w, ']');
}

static void write_stage(Writer *w, const ModelStage *s)
{
    json_writer_open(&w->w, NULL, '{');
    json_writer_add_string(&w->w, "stage", stage_to_string(s->stage));
    json_writer_add_i64(&w->w, "uid", s->uid == UID_INVALID ? -1 : (int64_t)s->uid);
    json_writer_add_u64(&w->w, "sessions", row_of(w, s->sessions));
    json_writer_add_numbers(&w->w, "duration_msec",
                            (uint64_t[]){s->duration.current, s->duration.previous}, 2);
    write_part(w, "late", s->late);
    write_part(w, "autologins", s->autologins);
    if (!decayed_sum_is_zero(s->timing.sessions))
        json_writer_add_numbers(&w->w, "timing",
                                (uint64_t[]){s->timing.sessions.current,
                                             s->timing.sessions.previous, s->timing.ready.current,
                                             s->timing.ready.previous, s->timing.stalled.current,
                                             s->timing.stalled.previous},
                                6);

    json_writer_open(&w->w, "applications", '{');
    json_writer_add_column(&w->w, "file", s->applications, s->n_applications, application_file);
    WRITE_COLUMN(w, "active", s->n_applications, row_of(w, s->applications[i].active));
    write_uses(w, s);
    json_writer_close(&w->w, '}');
    write_launches(w, s);
    write_touched(w, s);
    write_stage_files(w, s);
    write_machines(w, s);

    write_metadata(w, s, "metadata", is_of_stage, false);
    write_metadata(w, s, "assumed_metadata", is_assumed, true);
    write_metadata(w, s, "needed_metadata", is_of_application, true);
    json_writer_close(&w->w, '}');
}

int model_to_json(const Model *m, char **ret, size_t *ret_size)
{
    _cleanup_(writer_done) Writer w = {0};
    int r;

    r = collect_sums(&w, m);
    if (r < 0)
        return r;
    json_writer_add_string(&w.w, "format", MODEL_FORMAT_NAME);
    json_writer_add_u64(&w.w, "version", MODEL_FORMAT_VERSION);
    json_writer_add_u64(&w.w, "halflife_usec", m->halflife_usec);
    json_writer_add_u64(&w.w, "clock_usec", m->clock);
    if (m->clock_offset_usec != 0)
        json_writer_add_u64(&w.w, "wall_clock_usec", model_wall_clock(m));
    json_writer_open(&w.w, "learned", '[');
    for (size_t i = 0; i < m->n_learned; i++) {
        const ModelLearned *l = &m->learned[i];

        json_writer_add_numbers(&w.w, NULL, (uint64_t[]){l->at, l->start_realtime, l->id}, 3);
    }
    json_writer_close(&w.w, ']');
    write_sums(&w);
    write_files(&w, m);
    json_writer_open(&w.w, "stages", '[');
    for (size_t i = 0; i < m->n_stages; i++)
        write_stage(&w, &m->stages[i]);
    json_writer_close(&w.w, ']');
    if (m->chains) {
        json_writer_open(&w.w, "chains", '{');
        w.w.compact = true;
        r = chains_write(m->chains, &w.w);
        json_writer_close(&w.w, '}');
        w.w.compact = false;
        if (r < 0)
            return r;
    }
    return json_writer_finish(&w.w, ret, ret_size);
}
