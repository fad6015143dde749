/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/cycle.h"

#include "base/json-util.h"
#include "predict/mixture.h"
#include "session/cycle-internal.h"

#include <string.h>

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

void cycle_parameters_init(CycleParameters *p)
{
    *p = (CycleParameters){
            .interval = 20 * USEC_PER_SEC,
            .scan = true,
            .predict = true,
            .minsize_bytes = 2000000,
            .budget = BUDGET_PARAMETERS_DEFAULT,
            .minimum_use = 0.2,
            .maximum_pressure = 10,
    };
}

/* Written so that NaN fails. */
static bool parameters_valid(const CycleParameters *p)
{
    return p->interval > 0 && p->interval < USEC_INFINITY && p->minimum_use >= 0 &&
           p->minimum_use <= 1 && p->maximum_pressure >= 0;
}

const char *cycle_verdict_to_string(CycleVerdict v)
{
    static const char *const table[] = {
            [CYCLE_PREFETCH] = "prefetch",
            [CYCLE_OFF] = "off",
            [CYCLE_BATTERY] = "battery",
            [CYCLE_PRESSURE] = "pressure",
    };

    return (int)v >= 0 && v < _CYCLE_VERDICT_MAX ? table[v] : NULL;
}

const char *prefetch_kind_to_string(PrefetchKind k)
{
    static const char *const table[] = {
            [PREFETCH_FILE] = "file",
            [PREFETCH_DIRECTORY] = "directory",
            [PREFETCH_METADATA] = "metadata",
    };

    return (int)k >= 0 && k < _PREFETCH_KIND_MAX ? table[k] : NULL;
}

Cycle *cycle_free(Cycle *c)
{
    CycleRefusal *x, *next;

    if (!c)
        return NULL;
    HASH_ITER (hh, c->refusals, x, next) {
        HASH_DEL(c->refusals, x);
        free(x);
    }
    predictor_free(c->predictor);
    cycle_objects_done(&c->objects);
    predictor_guesses_done(&c->guesses);
    predictor_guesses_done(&c->in_session_guesses);
    needs_done(&c->needs);
    needs_done(&c->use);
    free(c->counts);
    free(c->running);
    free(c->requests);
    free(c->exclude);
    free(c);
    return NULL;
}

/* Everything or nothing. */
static int load(Cycle *c, const CycleParameters *p, const Model *m)
{
    _cleanup_(cycle_objects_done) CycleObjects objects = {0};
    char *exclude;
    int r = 0;

    if (!parameters_valid(p))
        return -EINVAL;
    if (m)
        r = cycle_objects_fill(&objects, m, p, c->uid, mixture_chains(c->predictor));
    if (r < 0)
        return r;
    exclude = strdup(p->exclude ? p->exclude : "");
    if (!exclude)
        return -ENOMEM;
    free(c->exclude);
    c->exclude = exclude;
    c->parameters = *p;
    c->parameters.exclude = exclude;
    cycle_objects_done(&c->objects);
    c->objects = objects;
    objects = (CycleObjects){0};
    for (const CycleRefusal *x = c->refusals; x; x = x->hh.next) {
        CyclePath *path = cycle_objects_find(&c->objects, x->path);

        if (path)
            path->refused = true;
    }
    /* What was decided points into the maps that went. */
    c->latest = (CycleDecision){0};
    needs_done(&c->needs);
    needs_done(&c->use);
    return 0;
}

int cycle_new(const CycleParameters *p, Model *m, usec_t halflife_usec, uint32_t uid, Cycle **ret)
{
    _cleanup_cycle_ Cycle *c = calloc(1, sizeof(*c));
    int r;

    if (!c)
        return -ENOMEM;
    c->uid = uid;
    c->last = PREDICTOR_NONE;
    r = mixture_new(m ? m->halflife_usec : halflife_usec, &c->predictor);
    if (r < 0)
        return r;
    if (m && m->chains) {
        r = mixture_set_chains(c->predictor, m->chains);
        if (r < 0)
            return r;
        m->chains = NULL;
    }
    r = load(c, p, m);
    if (r < 0) {
        /* They are the model's still. */
        if (m)
            (void)mixture_take_chains(c->predictor, &m->chains);
        return r;
    }
    *ret = TAKE_PTR(c);
    return 0;
}

int cycle_reload(Cycle *c, const CycleParameters *p, const Model *m)
{
    return load(c, p, m);
}

int cycle_begin(Cycle *c, usec_t now, usec_t realtime)
{
    predictor_set_wall_clock(c->predictor, now, realtime);
    if (c->counts)
        memset(c->counts, 0, c->allocated_counts * sizeof(*c->counts));
    c->n_running = 0;
    c->last = PREDICTOR_NONE;
    c->in_session = true;
    return c->parameters.scan ? predictor_begin(c->predictor, now, c->uid) : 0;
}

int cycle_end(Cycle *c, usec_t now, usec_t realtime)
{
    if (!c->in_session)
        return 0;
    predictor_set_wall_clock(c->predictor, now, realtime);
    c->in_session = false;
    return predictor_end(c->predictor, now);
}

/* The number of an application that counts, or PREDICTOR_NONE. */
static int find_application(Cycle *c, const CycleEvent *e, uint32_t *ret)
{
    const Chains *chains = mixture_chains(c->predictor);
    _cleanup_free_ char *name = NULL;
    uint32_t item;
    int r;

    *ret = PREDICTOR_NONE;
    if (c->uid != UID_INVALID && e->uid != UID_INVALID && e->uid != c->uid)
        return 0;
    if (cycle_excludes(c->exclude, e->path))
        return 0;
    name = json_escape_bytes(e->path);
    if (!name)
        return -ENOMEM;
    /* A name that is new gets a number only if applications of no known size count. */
    if (chains->n_names >= CYCLE_APPLICATIONS_MAX || c->parameters.minsize_bytes > 0)
        r = chains_find_name(chains, name, &item);
    else
        r = chains_add_name(mixture_chains(c->predictor), name, &item);
    if (r < 0)
        return r == -ENOENT || r == -E2BIG ? 0 : r;
    if (c->parameters.minsize_bytes == 0 ||
        (item < c->objects.n_items && c->objects.items[item].n > 0))
        *ret = item;
    return 0;
}

static int learn(Cycle *c, const CycleEvent *e, uint32_t item, bool started)
{
    int r;

    if (!c->parameters.scan)
        return 0;
    r = predictor_observe(c->predictor, &(PredictorEvent){
                                                .at = e->at,
                                                .user = c->uid,
                                                .item = item,
                                                .kind = started ? PREDICTOR_START : PREDICTOR_EXIT,
                                        });
    c->n_learned += r >= 0;
    return r;
}

static int observe_start(Cycle *c, const CycleEvent *e, uint32_t item)
{
    size_t old = c->allocated_counts;
    int r;

    r = grow_array(&c->counts, &c->allocated_counts, (size_t)item + 1, sizeof(*c->counts));
    if (r < 0)
        return r;
    if (c->allocated_counts > old)
        memset(c->counts + old, 0, (c->allocated_counts - old) * sizeof(*c->counts));
    if (c->counts[item] > 0) {
        c->counts[item] += c->counts[item] < UINT32_MAX;
        return 0;
    }
    r = grow_array(&c->running, &c->allocated_running, c->n_running + 1, sizeof(*c->running));
    if (r >= 0)
        r = learn(c, e, item, true);
    if (r < 0)
        return r;
    c->counts[item] = 1;
    c->running[c->n_running++] = item;
    c->last = item;
    return 1;
}

static int observe_exit(Cycle *c, const CycleEvent *e, uint32_t item)
{
    if (item >= c->allocated_counts || c->counts[item] == 0 || --c->counts[item] > 0)
        return 0;
    for (size_t i = 0; i < c->n_running; i++)
        if (c->running[i] == item) {
            memmove(c->running + i, c->running + i + 1, (--c->n_running - i) * sizeof(*c->running));
            break;
        }
    return learn(c, e, item, false);
}

int cycle_observe(Cycle *c, const CycleEvent *e)
{
    uint32_t item;
    int r;

    if (!c->in_session) {
        r = cycle_begin(c, e->at, e->realtime);
        if (r < 0)
            return r;
    }
    predictor_set_wall_clock(c->predictor, e->at, e->realtime);
    r = find_application(c, e, &item);
    if (r < 0 || item == PREDICTOR_NONE)
        return r;
    return e->started ? observe_start(c, e, item) : observe_exit(c, e, item);
}

static int infer(Cycle *c, usec_t now, usec_t horizon, PredictorGuesses *guesses, Needs *needs)
{
    const CycleObjects *m = &c->objects;
    const NeedsTable table = {
            .items = m->items,
            .n_items = m->n_items,
            .parts = m->parts,
            .n_objects = m->first_metadata,
            .chances = m->chances,
            .worth = m->worth,
    };
    /* What was not observed is given. */
    const PredictorState state = {
            .user = c->uid,
            .last = c->last,
            .running = c->running,
            .n_running = c->n_running,
    };
    int r = predictor_predict(c->predictor, now, c->parameters.scan ? NULL : &state, horizon,
                              guesses);

    return r < 0 ? r : needs_infer(needs, &table, guesses);
}

int cycle_refuse(Cycle *c, const char *path)
{
    CyclePath *known = cycle_objects_find(&c->objects, path);
    CycleRefusal *x;

    if (!known || known->refused || HASH_COUNT(c->refusals) >= CYCLE_REFUSED_MAX)
        return 0;
    x = calloc(1, sizeof(*x) + strlen(path) + 1);
    if (!x)
        return -ENOMEM;
    strcpy(x->path, path);
    HASH_ADD_STR(c->refusals, path, x);
    if (x->oom) {
        free(x);
        return -ENOMEM;
    }
    known->refused = true;
    return 0;
}

static void add_request(Cycle *c, CycleDecision *d, const CycleObject *o, double probability)
{
    if (c->objects.paths[o->path].refused) {
        d->n_refused++;
        return;
    }
    if (o->length > d->budget_bytes - d->requested_bytes) {
        d->n_beyond++;
        return;
    }
    d->requested_bytes += o->length;
    c->requests[d->n_requests++] = (PrefetchRequest){
            .path = c->objects.paths[o->path].text,
            .offset = o->offset,
            .length = o->length,
            .probability = probability,
            .kind = o->kind,
    };
}

/* Asks for needs[begin .. end), which are worth the same: what root owns comes first, so that a
 * user's file never keeps out a library only because its name sorts before. */
static void add_equal_requests(Cycle *c, CycleDecision *d, size_t begin, size_t end)
{
    const CycleObjects *m = &c->objects;

    for (int users = 0; users <= 1; users++)
        for (size_t i = begin; i < end; i++) {
            const Need *need = &c->needs.needs[i];
            const CycleObject *o = &m->objects[need->object];

            if (m->paths[o->path].shipped == !users &&
                needs_probability(&c->use, need->object) >= c->parameters.minimum_use)
                add_request(c, d, o, need->probability);
        }
}

/* Thesis algorithm 4.2, with the line that it lacks: what is taken is taken off the budget. */
static int choose(Cycle *c, CycleDecision *d)
{
    const CycleObjects *m = &c->objects;
    int r;

    r = grow_array(&c->requests, &c->allocated_requests,
                   c->needs.n + m->n_objects - m->first_metadata, sizeof(*c->requests));
    if (r < 0)
        return r;
    for (size_t i = 0, end; i < c->needs.n; i = end) {
        end = i + 1;
        while (end < c->needs.n && c->needs.needs[end].worth == c->needs.needs[i].worth)
            end++;
        add_equal_requests(c, d, i, end);
    }
    for (size_t i = m->first_metadata; i < m->n_objects; i++)
        add_request(c, d, &m->objects[i], (double)m->objects[i].chance);
    d->requests = c->requests;
    return 0;
}

static CycleVerdict judge(const CycleParameters *p, const CycleSnapshot *s)
{
    if (!p->predict)
        return CYCLE_OFF;
    if (s->on_battery && !p->battery)
        return CYCLE_BATTERY;
    return s->memory_pressure > p->maximum_pressure ? CYCLE_PRESSURE : CYCLE_PREFETCH;
}

int cycle_decide(Cycle *c, usec_t now, usec_t realtime, const CycleSnapshot *s, CycleDecision *ret)
{
    CycleDecision d = {
            .verdict = judge(&c->parameters, s),
            .budget_bytes = budget_bytes(&s->memory, &c->parameters.budget),
    };
    int r = 0;

    predictor_set_wall_clock(c->predictor, now, realtime);
    if (d.verdict == CYCLE_PREFETCH && c->objects.n_objects > 0) {
        r = infer(c, now, USEC_INFINITY, &c->in_session_guesses, &c->use);
        if (r >= 0)
            r = infer(c, now, c->parameters.interval, &c->guesses, &c->needs);
        if (r >= 0)
            r = choose(c, &d);
    }
    if (r < 0)
        return r;
    c->n_decisions++;
    c->latest = d;
    *ret = d;
    return 0;
}

int cycle_learned(const Cycle *c, Chains **ret)
{
    return chains_copy_ended(mixture_chains(c->predictor), ret);
}

uint64_t cycle_n_learned(const Cycle *c)
{
    return c->n_learned;
}
