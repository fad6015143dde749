/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "predict/mixture-train.h"

#include "base/json-util.h"
#include "predict/mixture.h"
#include "predict/trace-input.h"

/* The item's number in the chains, or PREDICTOR_NONE if it is too small to be followed. */
static int find_number(const TraceInput *t, const SimulateInput *in, uint32_t item,
                       uint32_t *numbers, Chains *chains)
{
    const NeedsItem *x = &in->items[item];
    _cleanup_free_ char *name = NULL;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < x->n; i++)
        bytes += MIN(in->object_bytes[in->parts[x->first + i]], UINT64_MAX - bytes);
    numbers[item] = PREDICTOR_NONE;
    if (bytes < MIXTURE_MINSIZE_BYTES)
        return 0;
    name = json_escape_bytes(trace_input_name(t, item));
    return name ? chains_add_name(chains, name, &numbers[item]) : -ENOMEM;
}

static int feed(Predictor *p, const SimulateInput *in, const uint32_t *numbers, const Trace *t)
{
    Chains *chains = mixture_chains(p);
    usec_t base = chains->seen + USEC_PER_SEC; /* the time between sessions does not count */
    int r = 0, ended;

    predictor_set_wall_clock(p, base, t->start_realtime);
    for (size_t i = 0; r >= 0 && i < in->n_events; i++) {
        const SimulateEvent *e = &in->events[i];
        PredictorEvent o = {.at = base + e->at, .user = t->uid};

        if (e->kind == SIMULATE_BEGIN)
            r = predictor_begin(p, o.at, t->uid);
        if (e->kind != SIMULATE_START && e->kind != SIMULATE_EXIT)
            continue;
        if (numbers[e->item] == PREDICTOR_NONE || (t->uid != UID_INVALID && e->user != t->uid))
            continue;
        o.item = numbers[e->item];
        o.kind = e->kind == SIMULATE_START ? PREDICTOR_START : PREDICTOR_EXIT;
        r = predictor_observe(p, &o);
    }
    ended = predictor_end(p, base + t->duration);
    return r < 0 ? r : ended;
}

int mixture_train(Model *m, const Trace *t)
{
    _cleanup_trace_input_ TraceInput *input = NULL;
    _cleanup_simulate_input_ SimulateInput in = {0};
    _cleanup_predictor_ Predictor *p = NULL;
    _cleanup_free_ uint32_t *numbers = NULL;
    PredictorParameters parameters;
    int r;

    if (t->stage != STAGE_SESSION)
        return 0;
    r = trace_input_new(TRACE_LEVEL_APPLICATIONS, &input);
    if (r >= 0)
        r = trace_input_add(input, t);
    if (r >= 0)
        r = trace_input_finish(input, &in);
    if (r >= 0)
        r = predictor_parameters_init(&parameters, "mixture");
    if (r < 0)
        return r;
    numbers = calloc(in.n_items + 1, sizeof(uint32_t));
    if (!numbers)
        return -ENOMEM;
    parameters.halflife = m->halflife;
    r = predictor_new("mixture", &parameters, 0, &p);
    if (r >= 0 && m->chains) {
        r = mixture_set_chains(p, m->chains);
        if (r >= 0)
            m->chains = NULL;
    }
    if (r < 0)
        return r;
    for (uint32_t i = 0; r >= 0 && i < in.n_items; i++)
        r = find_number(input, &in, i, numbers, mixture_chains(p));
    if (r >= 0)
        r = feed(p, &in, numbers, t);
    (void)mixture_take_chains(p, &m->chains);
    return r < 0 ? r : 1;
}
