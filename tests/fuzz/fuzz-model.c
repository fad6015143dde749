/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A model: reader, writer, predictions, and the operations of learn, merge and export on a whole
 * model. The mutator lets a valid model learn further sessions, so that most inputs stay valid. */

#include "fuzz.h"

#include "model/model-limit.h"
#include "model/model.h"
#include "predict/mixture-train.h"
#include "predict/mixture.h"
#include "util/synthetic.h"

#include <string.h>

#define HALFLIFE (720 * USEC_PER_HOUR)
#define NOW      (UINT64_C(1790000000) * USEC_PER_SEC)

static void read_again(const Model *m)
{
    _cleanup_free_ char *first = NULL, *second = NULL;
    _cleanup_model_ Model *again = NULL;
    size_t first_size, second_size;

    FUZZ_CHECK(model_to_json(m, &first, &first_size) >= 0);
    FUZZ_CHECK(model_from_json(first, first_size, &again, NULL) >= 0);
    FUZZ_CHECK(model_to_json(again, &second, &second_size) >= 0);
    FUZZ_CHECK(first_size == second_size && memcmp(first, second, first_size) == 0);
}

/* Computes what plan computes for the starts of applications. */
static void predict_launches(const Model *sum)
{
    _cleanup_free_ ModelLaunch *launches = NULL;
    size_t n;

    FUZZ_CHECK(model_list_launches(sum, 0.1, 1, &launches, &n) >= 0);
    for (size_t i = 0; i < n; i++) {
        _cleanup_prediction_ Prediction *p = NULL;

        FUZZ_CHECK(launches[i].path && launches[i].sessions > 0);
        FUZZ_CHECK(model_predict_launch(sum, launches[i].application, &p) >= 0);
        for (size_t k = 0; k < p->n_files; k++)
            FUZZ_CHECK(p->files[k].probability >= 0 && p->files[k].probability <= 1);
    }
}

static void predict(const Model *m)
{
    for (size_t i = 0; i < m->n_stages; i++) {
        _cleanup_prediction_ Prediction *p = NULL;
        _cleanup_model_ Model *sum = NULL;
        const ModelStage *s = &m->stages[i];

        FUZZ_CHECK(model_predict_stage(m, s->stage, s->uid, &p) >= 0);
        for (size_t k = 0; k < p->n_files; k++)
            FUZZ_CHECK(p->files[k].probability >= 0 && p->files[k].probability <= 1);
        (void)model_sessions(m, s, NOW);
        if (model_sum_stages(m, 1U << s->stage, UID_INVALID, &sum) >= 0) {
            read_again(sum);
            predict_launches(sum);
        }
    }
}

/* Simulates a session with the chains of the model. */
static void follow(Model *m)
{
    static const usec_t horizons[] = {20 * USEC_PER_SEC, USEC_INFINITY};
    _cleanup_mixture_ Mixture *x = NULL;
    Guesses guesses[2] = {0};
    EventTime t = {.at = USEC_PER_SEC, .realtime = NOW};
    uint32_t n = (uint32_t)MIN(m->chains ? m->chains->names.n : 0, 8U);

    if (!m->chains || m->chains->session.active || mixture_new(m->chains, &x) < 0)
        return;
    m->chains = NULL; /* the mixture owns them now */
    FUZZ_CHECK(mixture_begin(x, t, 1000, true) >= 0);
    for (uint32_t i = 0; i < n; i++) {
        t.at += 60 * USEC_PER_SEC;
        t.realtime += 60 * USEC_PER_SEC;
        FUZZ_CHECK(mixture_start(x, t, i) >= 0);
        if (i % 2)
            FUZZ_CHECK(mixture_exit(x, t, i) >= 0);
        FUZZ_CHECK(mixture_predict(x, t, horizons, ELEMENTSOF(horizons), guesses) >= 0);
        for (size_t k = 0; k < guesses[1].n; k++)
            FUZZ_CHECK(guesses[1].guesses[k].probability >= 0 &&
                       guesses[1].guesses[k].probability <= 1);
    }
    guesses_done(&guesses[0]);
    guesses_done(&guesses[1]);
    mixture_end(x, t);
    m->chains = mixture_release_chains(TAKE_PTR(x));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_model_ Model *m = NULL, *sum = NULL, *portable = NULL;
    _cleanup_free_ char *error = NULL, *text = malloc(size + 1);
    ModelLimits limits = {.user_bytes = 4096, .bytes = 8192};
    size_t dropped;
    int r;

    FUZZ_CHECK(text);
    memcpy(text, data, size);
    text[size] = 0;
    r = model_from_json(text, size, &m, &error);
    FUZZ_CHECK(r >= 0 ? !error : !m && error && !strchr(error, '\n'));
    fuzz_count(r >= 0);
    if (r < 0)
        return 0;
    read_again(m);
    predict(m);
    if (model_make_portable(m, &portable) >= 0)
        read_again(portable);
    r = model_merge(m, m, &sum);
    FUZZ_CHECK(r >= 0 || r == -E2BIG || r == -EBUSY);
    if (r >= 0)
        read_again(sum);
    FUZZ_CHECK(model_settle_clock(&m, NOW) >= 0);
    follow(m);
    FUZZ_CHECK(model_prune(&m, 0.01) >= 0);
    read_again(m);
    FUZZ_CHECK(model_limit(m, &limits, &dropped) >= 0);
    read_again(m);
    return 0;
}

/* --- mutation --------------------------------------------------------------------------------- */

/* Adds lifetimes of processes to the trace, from which the model learns what a start needs. */
static void add_starts(FuzzRandom *r, Trace *t)
{
    for (uint32_t i = 0; i < t->n_applications; i++) {
        TraceLifetime l = {.application = i,
                           .pid = 1000 + i,
                           .uid = t->uid,
                           .start = fuzz_below(r, t->duration),
                           .end = USEC_INFINITY};

        FUZZ_CHECK(trace_add_lifetime(t, &l) >= 0);
    }
}

static void learn_session(FuzzRandom *r, Model **m)
{
    _cleanup_trace_ Trace *t = NULL;
    SyntheticParameters p = {.seed = fuzz_below(r, 4),
                             .session = fuzz_below(r, 64),
                             .stage = (Stage)fuzz_below(r, _STAGE_MAX),
                             .uid = (uint32_t)(1000 + fuzz_below(r, 3)),
                             .flags = fuzz_below(r, 3) == 0 ? TRACE_REPLAYED : 0,
                             .start_realtime = NOW - fuzz_below(r, 2160 * USEC_PER_HOUR),
                             .n_files = 1 + fuzz_below(r, 12),
                             .n_applications = 1 + fuzz_below(r, 5),
                             .n_accesses = 1 + fuzz_below(r, 24)};

    if (synthetic_trace(&p, &t) < 0)
        return;
    if (fuzz_below(r, 4) != 0)
        add_starts(r, t);
    (void)model_learn(m, t, NOW);
    if (!(*m)->chains || (*m)->chains->halflife_usec == (*m)->halflife_usec)
        (void)mixture_train(&(*m)->chains, (*m)->halflife_usec, 0, t, 0, 0);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    FuzzRandom random = {seed}, *r = &random;
    _cleanup_model_ Model *m = NULL;
    char *text;
    size_t n, dropped;

    if (fuzz_below(r, 20) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    if (fuzz_below(r, 4) == 0)
        return fuzz_json_mutate(r, data, size, max_size);
    if (model_from_json((const char *)data, size, &m, NULL) < 0) {
        m = model_new(fuzz_below(r, 2) == 0 ? HALFLIFE : 1 + fuzz_below(r, HALFLIFE));
        if (!m)
            return size;
    }
    for (uint64_t i = fuzz_below(r, 3) + 1; i > 0; i--)
        switch (fuzz_below(r, 5)) {
        case 0:
            (void)model_prune(&m, (double)fuzz_below(r, 100) / 100);
            break;
        case 1:
            (void)model_limit(
                    m, &(ModelLimits){.user_bytes = 2048 + fuzz_below(r, 8192), .bytes = 8192},
                    &dropped);
            break;
        case 2:
            if (m->n_files > 0) {
                ModelResize x = {.file = (uint32_t)fuzz_below(r, m->n_files)};

                x.old_size = fuzz_below(r, 64) * 4096;
                x.new_size = fuzz_below(r, 64) * 4096;
                model_stretch_files(m, &x, 1);
            }
            break;
        default:
            learn_session(r, &m);
        }
    if (model_to_json(m, &text, &n) < 0)
        return size;
    n = fuzz_take_text(data, max_size, text, n);
    if (n == 0)
        return size;
    return fuzz_below(r, 3) > 0 ? n : fuzz_json_mutate(r, data, n, max_size);
}
