/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes a model of one session from one trace. Learning merges it into the model. */

#include "base/hash.h"
#include "model/model-internal.h"
#include "model/model-uses.h"

#include <stdlib.h>
#include <string.h>

/* If the used ranges of a file are not known, at most this much of the file counts as needed. */
#define ASSUMED_BYTES_MAX ((uint64_t)1 << 40)

uint64_t model_trace_id(const Trace *t)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "%.40s %s %llu", t->boot_id, stage_to_string(t->stage),
                     (unsigned long long)t->start_realtime);

    /* The format allows numbers of 63 bits. */
    return hash64(text, (size_t)MIN(n, (int)sizeof(text) - 1), 0) & TRACE_NUMBER_MAX;
}

bool model_knows_trace(const Model *m, const Trace *t)
{
    uint64_t id = model_trace_id(t);

    for (size_t i = 0; i < m->n_learned; i++)
        if (m->learned[i].id == id && m->learned[i].start_realtime == t->start_realtime)
            return true;
    return false;
}

const char *model_trace_unfit(const Model *m, const Trace *t)
{
    if (t->n_accesses == 0)
        return "nothing was recorded";
    if (t->flags & TRACE_OFFLINE_UPDATE)
        return "an offline update ran";
    if (t->flags & TRACE_FSCK)
        return "a filesystem check ran";
    if (t->flags & TRACE_SOFT_REBOOT)
        return "a soft reboot: the caches were warm";
    if (t->flags & TRACE_SECOND_LOGIN)
        return "not the first login of its boot: the caches were warm";
    if (t->flags & TRACE_INCOMPLETE)
        for (size_t i = 0; i < m->n_stages; i++)
            if (m->stages[i].stage == t->stage)
                return "incomplete, and other traces of this stage were learned";
    return NULL;
}

/* A path of the trace. Sorted by path, the files have the order of the model's table. */
typedef struct Name {
    char *path;
    uint32_t trace_file;
} Name;

static int compare_names(const void *a, const void *b)
{
    const Name *x = a, *y = b;
    int c = strcmp(x->path, y->path);

    return c != 0 ? c : x->trace_file < y->trace_file ? -1 : 1;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Returns true if the stage opened the directory. A stage that only looks its name up reads its
 * inode, but none of its entries. */
static bool is_listed(const TraceFile *f)
{
    return f->directory && !f->looked_up;
}

/* Fills m->files. (*ret_where)[i] is the index in the model of the trace's file i. */
static int learn_files(const Trace *t, Model *m, uint32_t **ret_where)
{
    _cleanup_free_ uint32_t *where = calloc(t->n_files + 1, sizeof(uint32_t));
    _cleanup_free_ Name *names = calloc(t->n_files + 1, sizeof(Name));
    char path[TRACE_PATH_MAX];
    int r = 0;

    if (!where || !names)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_files; i++) {
        names[i].trace_file = (uint32_t)i;
        if (r >= 0)
            r = trace_format_path(t, t->files[i].path, path, sizeof(path));
        names[i].path = r >= 0 ? strdup(path) : NULL;
        if (r >= 0 && !names[i].path)
            r = -ENOMEM;
    }
    if (r >= 0)
        r = grow_array(&m->files, &m->allocated_files, t->n_files, sizeof(ModelFile));
    if (r >= 0)
        qsort(names, t->n_files, sizeof(Name), compare_names);
    for (size_t i = 0; i < t->n_files; i++) {
        ModelFile *last = m->n_files > 0 ? &m->files[m->n_files - 1] : NULL;

        if (r >= 0 && last && strcmp(last->path, names[i].path) == 0) {
            /* The trace names this path twice. It becomes one file, which is a directory if either
             * row is. */
            last->directory = last->directory || is_listed(&t->files[names[i].trace_file]);
            free(names[i].path);
        } else if (r >= 0)
            m->files[m->n_files++] = (ModelFile){
                    .path = names[i].path,
                    .directory = is_listed(&t->files[names[i].trace_file]),
            };
        else
            free(names[i].path);
        if (r >= 0)
            where[names[i].trace_file] = (uint32_t)m->n_files - 1;
    }
    if (r >= 0)
        *ret_where = TAKE_PTR(where);
    return r;
}

/* Adds the applications that opened something or were started, sorted by file. */
static int learn_applications(const Trace *t, const uint32_t *where, ModelStage *s, DecayedSum one)
{
    _cleanup_free_ uint32_t *seen = NULL;
    size_t n = 0;

    seen = calloc(t->n_applications + 1, sizeof(uint32_t));
    if (!seen)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_applications; i++)
        seen[n++] = where[t->applications[i].file];
    for (size_t i = 0; i < t->n_accesses; i++)
        if (t->accesses[i].application == TRACE_NONE) {
            seen[n++] = MODEL_NONE;
            break;
        }
    qsort(seen, n, sizeof(uint32_t), compare_u32);
    if (grow_array(&s->applications, &s->allocated_applications, n, sizeof(ModelApplication)) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || seen[i] != seen[i - 1])
            s->applications[s->n_applications++] =
                    (ModelApplication){.file = seen[i], .active = one};
    return 0;
}

/* Returns how well the trace shows which parts of a file its session used. */
static Residency residency_of(const Trace *t)
{
    return t->flags & (TRACE_RESIDENCY_OFF | TRACE_REPLAYED) ? RESIDENCY_ASSUMED
           : t->flags & TRACE_EXACT                          ? RESIDENCY_EXACT
                                                             : RESIDENCY_OBSERVED;
}

static int learn_residency(const Trace *t, const TraceFile *f, ModelStageFile *o, DecayedSum one)
{
    Range whole = {0, ALIGN_UP(MIN(f->size_bytes, ASSUMED_BYTES_MAX), MODEL_ALIGN_BYTES)};
    const RangeSet all = {&whole, whole.length > 0, 1};
    ModelResidency *known = &o->residency[residency_of(t)];

    known->sessions = one;
    return weighted_ranges_from_ranges(t->flags & TRACE_RESIDENCY_OFF ? &all : &f->resident, one,
                                       &known->ranges);
}

/* Learns for each file whether and when it was first used, and which parts were resident. */
static int learn_stage_files(const Trace *t, Model *m, const uint32_t *where, ModelStage *s,
                             DecayedSum one)
{
    _cleanup_free_ usec_t *first = NULL;
    _cleanup_free_ uint32_t *from = NULL;
    int r;

    first = reallocarray(NULL, m->n_files + 1, sizeof(usec_t));
    from = reallocarray(NULL, m->n_files + 1, sizeof(uint32_t));
    if (!first || !from ||
        grow_array(&s->files, &s->allocated_files, m->n_files, sizeof(ModelStageFile)) < 0)
        return -ENOMEM;
    memset(first, 0xff, (m->n_files + 1) * sizeof(usec_t));
    for (size_t i = t->n_accesses; i-- > 0;)
        first[where[t->accesses[i].file]] = t->accesses[i].at;
    for (size_t i = t->n_files; i-- > 0;)
        from[where[i]] = (uint32_t)i;

    for (size_t i = 0; i < m->n_files; i++) {
        ModelStageFile *o = &s->files[s->n_files];
        uint64_t msec = first[i] / USEC_PER_MSEC;

        if (first[i] == USEC_INFINITY) {
            m->files[i].directory = false;
            continue; /* it is in the trace, but was never opened */
        }
        if (m->files[i].directory)
            m->files[i].as_directory = one;
        *o = (ModelStageFile){.file = (uint32_t)i, .used = one};
        s->n_files++;
        if (t->files[from[i]].looked_up) {
            o->looked_up = one;
            continue;
        }
        o->first_use = model_sum_of_msec(msec, one);
        if (m->files[i].directory)
            continue;
        r = learn_residency(t, &t->files[from[i]], o, one);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Learns which metadata control starts needed. Leaves out applications without an observed start.
 * The stage has room for all rows. */
static int learn_needed(const Trace *t, const Model *m, const uint32_t *where, ModelStage *s,
                        DecayedSum one)
{
    for (size_t i = 0; i < t->n_needed; i++) {
        const TraceNeeded *x = &t->needed[i];
        uint32_t file = where[t->applications[x->application].file];
        const char *uuid = t->volumes[x->volume].uuid;
        ModelMetadata *o = &s->metadata[s->n_metadata];
        bool known = false;

        for (size_t k = 0; k < s->n_metadata; k++)
            known = known || (s->metadata[k].application &&
                              strcmp(s->metadata[k].application, m->files[file].path) == 0 &&
                              strcmp(s->metadata[k].uuid, uuid) == 0);
        if (known || !uuid[0] || decayed_sum_is_zero(model_find_application(s, file)->launched))
            continue;
        *o = (ModelMetadata){
                .uuid = strdup(uuid),
                .application = strdup(m->files[file].path),
                .observed = one,
        };
        s->n_metadata++;
        if (!o->uuid || !o->application ||
            weighted_ranges_from_ranges(&x->ranges, one, &o->ranges) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int learn_stage_metadata(const Trace *t, const Model *m, const uint32_t *where,
                                ModelStage *s, DecayedSum one)
{
    bool replayed = t->flags & TRACE_REPLAYED;
    int r;

    if (grow_array(&s->metadata, &s->allocated_metadata, t->n_volumes + t->n_needed,
                   sizeof(ModelMetadata)) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_volumes; i++) {
        const TraceVolume *v = &t->volumes[i];
        ModelMetadata *o = &s->metadata[s->n_metadata];
        bool known = false;

        for (size_t k = 0; k < s->n_metadata; k++)
            known = known || strcmp(s->metadata[k].uuid, v->uuid) == 0;
        if (v->metadata_source == METADATA_SOURCE_NONE || !v->uuid[0] || known ||
            (replayed && (v->metadata_source != METADATA_SOURCE_CACHESTAT || v->metadata.n == 0)))
            continue;
        *o = (ModelMetadata){.uuid = strdup(v->uuid), .assumed = replayed, .observed = one};
        if (!o->uuid)
            return -ENOMEM;
        s->n_metadata++;
        if (weighted_ranges_from_ranges(&v->metadata, one, &o->ranges) < 0)
            return -ENOMEM;
    }
    r = learn_needed(t, m, where, s, one);
    if (r < 0)
        return r;
    if (s->n_metadata > 0)
        qsort(s->metadata, s->n_metadata, sizeof(ModelMetadata), model_compare_metadata);
    return 0;
}

/* Returns the timing of a session without replay and with its usual read-ahead, or zeros for
 * another session. A replay waits for I/O, too, and shortens the waits of other processes.
 * Therefore only a session without replay shows how much of its time was spent waiting. */
static ModelTiming timing_of(const Trace *t, DecayedSum one)
{
    const TraceTiming *g = &t->timing;

    if (g->ready == 0 || t->flags & (TRACE_REPLAYED | TRACE_EXACT))
        return (ModelTiming){0};
    return (ModelTiming){
            .sessions = one,
            .ready = model_sum_of_msec(g->ready / USEC_PER_MSEC, one),
            .stalled = model_sum_of_msec(trace_waited(t) / USEC_PER_MSEC, one),
    };
}

/* Copies the accesses of the trace into a new array. An automatic login follows the boot at once.
 * Programs that the boot has started are still reading their executables then, which they have
 * opened in the boot. Therefore these executables count as opened at the start of such a login.
 * Files that were looked up count as opened at the start of any stage, because the stage needs
 * their metadata. The caller frees *ret. Returns 0 or -ENOMEM. */
static int copy_accesses(const Trace *t, TraceAccess **ret, size_t *ret_n)
{
    _cleanup_free_ bool *opened = calloc(t->n_files + 1, sizeof(bool));
    TraceAccess *a =
            calloc(t->n_applications + t->n_files + t->n_accesses + 1, sizeof(TraceAccess));
    size_t n = 0;

    if (!opened || !a) {
        free(a);
        return -ENOMEM;
    }
    for (size_t i = 0; i < t->n_accesses; i++)
        opened[t->accesses[i].file] = true;
    for (size_t i = 0; i < t->n_applications && t->flags & TRACE_AUTOLOGIN; i++)
        if (!opened[t->applications[i].file])
            a[n++] = (TraceAccess){.file = t->applications[i].file, .application = (uint32_t)i};
    for (size_t i = 0; i < t->n_files; i++)
        if (t->files[i].looked_up && !opened[i])
            a[n++] = (TraceAccess){.file = (uint32_t)i, .application = TRACE_NONE};
    for (size_t i = 0; i < t->n_accesses; i++)
        a[n++] = t->accesses[i];
    *ret = a;
    *ret_n = n;
    return 0;
}

/* Makes a model of one session that counts as recorded at the time `at`. Returns 0, -ENOMEM. */
static int learn_at(const Trace *trace, usec_t halflife_usec, usec_t at, Model **ret)
{
    _cleanup_free_ TraceAccess *accesses = NULL;
    Trace with_running = *trace;
    const Trace *t = &with_running;
    _cleanup_model_ Model *m = model_new(halflife_usec);
    _cleanup_free_ uint32_t *where = NULL;
    DecayedSum one = {decayed_sum_weight(at, halflife_usec), 0};
    uint64_t msec = t->duration / USEC_PER_MSEC;
    ModelStage *s;
    int r;

    if (!m)
        return -ENOMEM;
    r = copy_accesses(trace, &accesses, &with_running.n_accesses);
    if (r < 0)
        return r;
    with_running.accesses = accesses;
    m->clock = at;
    m->generation = decayed_sum_generation(at, halflife_usec);
    if (grow_array(&m->stages, &m->allocated_stages, 1, sizeof(ModelStage)) < 0 ||
        grow_array(&m->learned, &m->allocated_learned, 1, sizeof(ModelLearned)) < 0)
        return -ENOMEM;
    m->learned[m->n_learned++] = (ModelLearned){at, t->start_realtime, model_trace_id(t)};
    s = &m->stages[m->n_stages++];
    *s = (ModelStage){
            .stage = t->stage,
            .uid = t->stage == STAGE_BOOT ? UID_INVALID : t->uid,
            .sessions = one,
            .duration = model_sum_of_msec(msec, one),
            .late = t->flags & TRACE_LATE ? one : (DecayedSum){0},
            .autologins = t->flags & TRACE_AUTOLOGIN ? one : (DecayedSum){0},
            .timing = timing_of(t, one),
    };
    r = learn_files(t, m, &where);
    if (r >= 0)
        r = learn_applications(t, where, s, one);
    if (r >= 0)
        r = model_learn_uses(t, where, s, one);
    if (r >= 0)
        r = learn_stage_files(t, m, where, s, one);
    if (r >= 0)
        r = learn_stage_metadata(t, m, where, s, one);
    if (r >= 0)
        r = model_drop_unused_files(m);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(m);
    return 0;
}

/* Moves the trace that was just learned to the end of the full list of learned traces, at the time
 * of the model's clock. Without this, the list would drop the new entry if the trace has an old
 * time stamp, or the same time stamp as many others, and every later run would learn the trace
 * again. Older entries of the same time become a microsecond older. */
static void list_as_latest(Model *m, const ModelLearned *latest)
{
    usec_t limit = m->clock;
    size_t n = 0;

    for (size_t i = 0; i < m->n_learned; i++)
        if (m->learned[i].id != latest->id ||
            m->learned[i].start_realtime != latest->start_realtime)
            m->learned[n++] = m->learned[i];
    if (n == MODEL_LEARNED_MAX)
        memmove(m->learned, m->learned + 1, --n * sizeof(ModelLearned));
    for (size_t i = n; i-- > 0 && m->learned[i].at >= limit && limit > 0;)
        m->learned[i].at = --limit;
    m->learned[n] = (ModelLearned){m->clock, latest->start_realtime, latest->id};
    m->n_learned = n + 1;
    qsort(m->learned, m->n_learned, sizeof(ModelLearned), model_compare_learned);
}

int model_learn(Model **m, const Trace *t, usec_t now_realtime)
{
    _cleanup_model_ Model *one = NULL, *both = NULL;
    DecayClock clock;
    Chains *chains;
    usec_t at;
    int r;

    if (model_knows_trace(*m, t))
        return -EALREADY;
    at = model_observe_clock(*m, t->start_realtime, now_realtime, &clock);
    r = learn_at(t, (*m)->halflife_usec, at, &one);
    if (r < 0)
        return r;
    /* The trace's model has no chains, so the old model's chains are moved instead of copied. */
    chains = TAKE_PTR((*m)->chains);
    r = model_merge(*m, one, &both);
    if (r < 0) {
        (*m)->chains = chains;
        return r;
    }
    both->chains = chains;
    both->clock_offset_usec = clock.offset_usec;
    if ((*m)->n_learned == MODEL_LEARNED_MAX)
        list_as_latest(both, &one->learned[0]);
    model_free(*m);
    *m = TAKE_PTR(both);
    return 0;
}
