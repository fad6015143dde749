/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A trace: reader, writer, and learning. The mutator changes a valid trace, so that most inputs
 * stay valid and reach learning. */

#include "fuzz.h"

#include "model/model-limit.h"
#include "predict/mixture-train.h"
#include "trace/trace-json.h"
#include "trace/trace-trim.h"
#include "util/synthetic.h"

#include <string.h>

#define HALFLIFE (720 * USEC_PER_HOUR)
#define NOW      (UINT64_C(1790000000) * USEC_PER_SEC)

/* Checks that a written trace can be read again and then gives the same text when it is written. */
static void check_round_trip(const Trace *t)
{
    _cleanup_free_ char *first = NULL, *second = NULL;
    _cleanup_trace_ Trace *again = NULL;
    size_t first_size, second_size;

    FUZZ_CHECK(trace_to_json(t, &first, &first_size) >= 0);
    FUZZ_CHECK(trace_from_json(first, first_size, &again, NULL) >= 0);
    FUZZ_CHECK(trace_to_json(again, &second, &second_size) >= 0);
    FUZZ_CHECK(first_size == second_size && memcmp(first, second, first_size) == 0);
}

static void learn(const Trace *t)
{
    _cleanup_model_ Model *m = model_new(HALFLIFE);
    _cleanup_chains_ Chains *chains = NULL;
    _cleanup_prediction_ Prediction *prediction = NULL;
    _cleanup_free_ char *text = NULL;
    ModelLimits limits = {.user_bytes = 4096, .bytes = 8192};
    size_t size, dropped;
    int r;

    FUZZ_CHECK(m);
    (void)model_trace_unfit(m, t);
    r = model_learn(&m, t, NOW);
    FUZZ_CHECK(r >= 0 || r == -E2BIG);
    if (r < 0)
        return;
    FUZZ_CHECK(model_knows_trace(m, t));
    FUZZ_CHECK(model_learn(&m, t, NOW) == -EALREADY);
    FUZZ_CHECK(model_predict_stage(m, t->stage, t->uid, &prediction) >= 0);
    FUZZ_CHECK(model_to_json(m, &text, &size) >= 0);
    FUZZ_CHECK(model_prune(&m, 0.1) >= 0);
    FUZZ_CHECK(model_limit(m, &limits, &dropped) >= 0);
    (void)mixture_train(&chains, HALFLIFE, 0, t, 0, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_trace_ Trace *t = NULL;
    _cleanup_free_ char *error = NULL, *text = malloc(size + 1);
    _cleanup_free_ bool *keep = NULL;
    int r;

    FUZZ_CHECK(text);
    memcpy(text, data, size);
    text[size] = 0;
    r = trace_from_json(text, size, &t, &error);
    FUZZ_CHECK(r >= 0 ? !error : !t && error && !strchr(error, '\n'));
    fuzz_count(r >= 0);
    if (r < 0)
        return 0;
    check_round_trip(t);
    learn(t);
    keep = calloc(t->n_files + 1, sizeof(bool));
    FUZZ_CHECK(keep);
    for (size_t i = 0; i < t->n_files; i += 2)
        keep[i] = true;
    FUZZ_CHECK(trace_keep_files(t, keep) >= 0);
    FUZZ_CHECK(trace_validate(t) >= 0);
    return 0;
}

/* --- mutation --------------------------------------------------------------------------------- */

static int new_trace(FuzzRandom *r, Trace **ret)
{
    return synthetic_trace(&(SyntheticParameters){.seed = fuzz_below(r, 8),
                                                  .session = fuzz_below(r, 8),
                                                  .stage = (Stage)fuzz_below(r, _STAGE_MAX),
                                                  .uid = (uint32_t)(1000 + fuzz_below(r, 3)),
                                                  .start_realtime = NOW - fuzz_below(r, NOW / 4),
                                                  .n_files = 1 + fuzz_below(r, 12),
                                                  .n_applications = 1 + fuzz_below(r, 4),
                                                  .n_accesses = 1 + fuzz_below(r, 24)},
                           ret);
}

/* Adds a node to the path tree and a file of that path. The trace is only written afterwards, and
 * writing uses no index, so the node gets no entry in the index of paths. */
static int add_file(FuzzRandom *r, Trace *t)
{
    char name[32];

    if (t->n_paths == 0 ||
        grow_array(&t->paths, &t->allocated_paths, t->n_paths + 1, sizeof(TracePath)) < 0 ||
        grow_array(&t->files, &t->allocated_files, t->n_files + 1, sizeof(TraceFile)) < 0)
        return -ENOMEM;
    snprintf(name, sizeof(name), "n%u%c", (unsigned)t->n_paths, (int)(1 + fuzz_below(r, 255)));
    if (strchr(name, '/'))
        name[0] = 'x', name[1] = 0;
    t->paths[t->n_paths] =
            (TracePath){.parent = (uint32_t)fuzz_below(r, t->n_paths), .name = strdup(name)};
    FUZZ_CHECK(t->paths[t->n_paths].name);
    t->files[t->n_files++] = (TraceFile){.path = (uint32_t)t->n_paths++,
                                         .volume = t->n_volumes > 0 ? 0 : TRACE_NONE,
                                         .directory = fuzz_below(r, 4) == 0,
                                         .inode = fuzz_number(r),
                                         .size_bytes = fuzz_number(r) >> 1};
    return 0;
}

static void add_access(FuzzRandom *r, Trace *t)
{
    TraceAccess a = {.at = t->n_accesses > 0 ? t->accesses[t->n_accesses - 1].at : 0,
                     .file = (uint32_t)fuzz_below(r, t->n_files),
                     .application = fuzz_below(r, 3) == 0 || t->n_applications == 0
                                            ? TRACE_NONE
                                            : (uint32_t)fuzz_below(r, t->n_applications),
                     .kind = (AccessKind)fuzz_below(r, _ACCESS_KIND_MAX)};

    if (t->n_files == 0)
        return;
    a.at += fuzz_below(r, USEC_PER_SEC << fuzz_below(r, 20));
    FUZZ_CHECK(grow_array(&t->accesses, &t->allocated_accesses, t->n_accesses + 1,
                          sizeof(TraceAccess)) >= 0);
    t->accesses[t->n_accesses++] = a;
}

static void add_lifetime(FuzzRandom *r, Trace *t)
{
    usec_t start = fuzz_below(r, t->duration + 1);

    if (t->n_applications == 0)
        return;
    FUZZ_CHECK(grow_array(&t->lifetimes, &t->allocated_lifetimes, t->n_lifetimes + 1,
                          sizeof(TraceLifetime)) >= 0);
    t->lifetimes[t->n_lifetimes++] = (TraceLifetime){
            .application = (uint32_t)fuzz_below(r, t->n_applications),
            .pid = (uint32_t)fuzz_number(r),
            .uid = fuzz_below(r, 4) == 0 ? UID_INVALID : (uint32_t)(1000 + fuzz_below(r, 3)),
            .start = start,
            .end = fuzz_below(r, 2) == 0 ? USEC_INFINITY
                                         : start + fuzz_below(r, t->duration - start + 1)};
}

static void change_resident(FuzzRandom *r, Trace *t)
{
    TraceFile *f = &t->files[fuzz_below(r, t->n_files)];
    uint64_t start = fuzz_below(r, 1U << fuzz_below(r, 20)) * 4096;

    if (t->n_files == 0 || f->directory)
        return;
    if (fuzz_below(r, 4) == 0)
        range_set_done(&f->resident);
    f->size_bytes = MAX(f->size_bytes, start + 8192);
    (void)range_set_insert(&f->resident, start, 4096 * (1 + fuzz_below(r, 2)));
}

static void change_facts(FuzzRandom *r, Trace *t)
{
    switch (fuzz_below(r, 7)) {
    case 0:
        t->flags ^= 1U << fuzz_below(r, 10);
        break;
    case 1:
        t->stage = (Stage)fuzz_below(r, _STAGE_MAX);
        break;
    case 2:
        t->uid = fuzz_below(r, 3) == 0 ? UID_INVALID : (uint32_t)(1000 + fuzz_below(r, 3));
        break;
    case 3:
        t->policy = (Policy)fuzz_below(r, _POLICY_MAX);
        break;
    case 4:
        t->start_realtime = fuzz_below(r, 2) == 0 ? NOW - fuzz_below(r, NOW) : fuzz_number(r) >> 1;
        break;
    case 5:
        t->duration = fuzz_number(r) >> 1;
        break;
    default:
        t->process_source = (ProcessSource)fuzz_below(r, _PROCESS_SOURCE_MAX);
    }
}

static void mutate(FuzzRandom *r, Trace *t)
{
    switch (fuzz_below(r, 8)) {
    case 0:
        (void)add_file(r, t);
        break;
    case 1:
        add_lifetime(r, t);
        break;
    case 2:
        change_facts(r, t);
        break;
    case 3:
        if (t->n_files > 0)
            change_resident(r, t);
        break;
    case 4:
        if (t->n_accesses > 0)
            t->n_accesses--;
        break;
    case 5:
        if (t->n_volumes > 0) {
            uint64_t start = fuzz_below(r, 1U << 16) * 4096;

            t->volumes[0].size_bytes = MAX(t->volumes[0].size_bytes, start + 4096);
            (void)range_set_insert(&t->volumes[0].metadata, start, 4096);
        }
        break;
    case 6:
        if (t->n_files > 0) {
            FUZZ_CHECK(grow_array(&t->applications, &t->allocated_applications,
                                  t->n_applications + 1, sizeof(TraceApplication)) >= 0);
            t->applications[t->n_applications++].file = (uint32_t)fuzz_below(r, t->n_files);
        }
        break;
    default:
        add_access(r, t);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    FuzzRandom random = {seed}, *r = &random;
    _cleanup_trace_ Trace *t = NULL;
    char *text;
    size_t n;

    if (fuzz_below(r, 20) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    if (trace_from_json((const char *)data, size, &t, NULL) < 0 && new_trace(r, &t) < 0)
        return size;
    for (uint64_t i = fuzz_below(r, 4) + 1; i > 0; i--)
        mutate(r, t);
    if (trace_to_json(t, &text, &n) < 0)
        return size;
    n = fuzz_take_text(data, max_size, text, n);
    if (n == 0)
        return size;
    return fuzz_below(r, 2) == 0 ? n : fuzz_json_mutate(r, data, n, max_size);
}
