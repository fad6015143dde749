/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/cycle.h"

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
            .selection = SELECTION_PARAMETERS_DEFAULT,
            .maximum_pressure = 10,
    };
}

/* Returns false also if a number is NaN. */
static bool parameters_valid(const CycleParameters *p)
{
    return p->interval > 0 && p->interval < USEC_INFINITY &&
           selection_parameters_valid(&p->selection) && p->maximum_pressure >= 0;
}

const char *cycle_verdict_to_string(CycleVerdict v)
{
    static const char *const table[] = {
            [CYCLE_PREFETCH] = "prefetch", [CYCLE_OFF] = "off",
            [CYCLE_BATTERY] = "battery",   [CYCLE_HEAT] = "heat",
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
    mixture_free(c->mixture);
    cycle_objects_done(&c->objects);
    for (unsigned k = 0; k < _CYCLE_HORIZON_MAX; k++) {
        guesses_done(&c->guesses[k]);
        object_scores_done(&c->scores[k]);
    }
    free(c->requests);
    free(c->candidates);
    free(c->offers);
    free(c->present);
    free(c->exclude);
    free(c);
    return NULL;
}

/* Forgets what the session has requested and used. */
static void forget_reads(Cycle *c)
{
    c->reads = (SelectionReads){0};
    if (c->allocated_present > 0)
        memset(c->present, 0, c->allocated_present * sizeof(*c->present));
}

/* Notes that the session uses the objects of an application. */
static void note_use(Cycle *c, uint32_t item)
{
    const CycleObjects *m = &c->objects;

    for (uint32_t i = 0; item < m->n_items && i < m->items[item].n; i++)
        c->present[m->parts[m->items[item].first + i]] = true;
}

/* Replaces parameters and objects. On failure nothing has changed. */
static int load(Cycle *c, const CycleParameters *p, const Model *m)
{
    _cleanup_(cycle_objects_done) CycleObjects objects = {0};
    char *exclude;
    int r = 0;

    if (!parameters_valid(p))
        return -EINVAL;
    if (m)
        r = cycle_objects_fill(&objects, m, p, c->uid, mixture_chains(c->mixture));
    if (r >= 0)
        r = grow_array_zeroed(&c->present, &c->allocated_present, objects.n_objects,
                              sizeof(*c->present));
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
    forget_reads(c);
    for (const CycleRefusal *x = c->refusals; x; x = x->hh.next) {
        CyclePath *path = cycle_objects_find(&c->objects, x->path);

        if (path)
            path->refused = true;
    }
    /* The latest decision borrows paths from the old objects. */
    c->latest = (CycleDecision){0};
    for (unsigned k = 0; k < _CYCLE_HORIZON_MAX; k++)
        object_scores_done(&c->scores[k]);
    return 0;
}

int cycle_new(const CycleParameters *p, Model *m, usec_t halflife_usec, uint32_t uid, Cycle **ret)
{
    _cleanup_cycle_ Cycle *c = calloc(1, sizeof(*c));
    bool had_chains = m && m->chains;
    Chains *chains;
    int r;

    if (!c)
        return -ENOMEM;
    c->uid = uid;
    if (had_chains)
        chains = TAKE_PTR(m->chains);
    else {
        r = chains_new(m ? m->halflife_usec : halflife_usec, MIXTURE_CHAIN_WINDOW, &chains);
        if (r < 0)
            return r;
    }
    r = mixture_new(chains, &c->mixture);
    if (r >= 0)
        r = load(c, p, m);
    if (r < 0) {
        chains = c->mixture ? mixture_release_chains(TAKE_PTR(c->mixture)) : chains;
        if (had_chains)
            m->chains = TAKE_PTR(chains);
        chains_free(chains);
        return r;
    }
    *ret = TAKE_PTR(c);
    return 0;
}

int cycle_reload(Cycle *c, const CycleParameters *p, const Model *m)
{
    return load(c, p, m);
}

void cycle_set_utc_offset(Cycle *c, int64_t seconds)
{
    mixture_set_utc_offset(c->mixture, seconds);
}

int cycle_begin(Cycle *c, EventTime t)
{
    int r = mixture_begin(c->mixture, t, c->uid, c->parameters.scan);

    if (r < 0)
        return r;
    forget_reads(c);
    c->in_session = true;
    c->learning = c->parameters.scan;
    return 0;
}

void cycle_end(Cycle *c, EventTime t)
{
    if (c->in_session)
        (void)mixture_end(c->mixture, t); /* if memory runs out, only the log lacks the session */
    c->in_session = false;
}

/* Finds the number of the event's application. *ret is CHAINS_NONE if the application does not
 * count. */
static int find_application(Cycle *c, const CycleEvent *e, uint32_t *ret)
{
    const Chains *chains = mixture_chains(c->mixture);
    uint32_t item;
    int r;

    *ret = CHAINS_NONE;
    if (c->uid != UID_INVALID && e->uid != UID_INVALID && e->uid != c->uid)
        return 0;
    if (cycle_excludes(c->exclude, e->path))
        return 0;
    /* A new name gets a number only if applications of unknown size count. */
    if (chains->names.n >= CYCLE_APPLICATIONS_MAX || c->parameters.minsize_bytes > 0)
        r = chains_find_name(chains, e->path, &item);
    else
        r = chains_add_name(mixture_chains(c->mixture), e->path, &item);
    if (r < 0)
        return r == -ENOENT || r == -E2BIG ? 0 : r;
    if (c->parameters.minsize_bytes == 0 ||
        (item < c->objects.n_items && c->objects.items[item].n > 0))
        *ret = item;
    return 0;
}

int cycle_observe(Cycle *c, const CycleEvent *e)
{
    uint32_t item;
    int r = 0;

    if (!c->in_session || c->learning != c->parameters.scan)
        r = cycle_begin(c, e->time);
    if (r >= 0)
        r = find_application(c, e, &item);
    if (r < 0 || item == CHAINS_NONE)
        return r;
    r = e->started ? mixture_start(c->mixture, e->time, item)
                   : mixture_exit(c->mixture, e->time, item);
    if (r > 0 && e->started)
        note_use(c, item);
    c->n_learned += r > 0 && c->learning;
    return r > 0 ? e->started : r;
}

/* Computes guesses and scores for both horizons. */
static int predict(Cycle *c, EventTime t)
{
    const usec_t session = USEC_INFINITY;
    const CycleObjects *m = &c->objects;
    const ObjectTable table = {
            .items = m->items,
            .n_items = m->n_items,
            .parts = m->parts,
            .n_objects = m->first_metadata,
            .chances = m->chances,
            .worth = m->worth,
    };
    int r = mixture_predict(c->mixture, t, &session, 1, &c->guesses[CYCLE_HORIZON_SESSION]);

    /* Objects of the next start come first, as in the evaluation (simulate.c). */
    if (r >= 0)
        r = mixture_rank(c->mixture, t, c->parameters.interval,
                         &c->guesses[CYCLE_HORIZON_INTERVAL]);

    for (unsigned k = 0; r >= 0 && k < _CYCLE_HORIZON_MAX; k++)
        r = object_scores_compute(&c->scores[k], &table, &c->guesses[k]);
    return r;
}

int cycle_refuse(Cycle *c, const char *path)
{
    CyclePath *known = cycle_objects_find(&c->objects, path);
    size_t size = strlen(path) + 1;
    CycleRefusal *x;

    if (!known || known->refused || HASH_COUNT(c->refusals) >= CYCLE_REFUSED_MAX)
        return 0;
    x = calloc(1, sizeof(*x) + size);
    if (!x)
        return -ENOMEM;
    memcpy(x->path, path, size);
    HASH_ADD_STR(c->refusals, path, x);
    if (x->oom) {
        free(x);
        return -ENOMEM;
    }
    known->refused = true;
    return 0;
}

/* Offers an object to the selection. `use`: the probability that the session needs it. */
static void offer(Cycle *c, CycleDecision *d, uint32_t object, double probability, double use)
{
    const CycleObject *o = &c->objects.objects[object];

    if (c->objects.paths[o->path].refused) {
        d->n_refused += use >= c->parameters.selection.minimum_use;
        return;
    }
    /* The bound on waste does not concern metadata: it is little (CYCLE_METADATA_BYTES). */
    c->candidates[c->n_candidates] = (SelectionCandidate){
            .bytes = o->range.length,
            .use = use,
            .worth = c->objects.worth[object],
            .present = c->present[object] || o->kind == PREFETCH_METADATA,
    };
    c->offers[c->n_candidates++] = (CycleOffer){object, probability};
}

/* Offers the objects of scores[begin .. end), which have equal worth. Objects below directories
 * of the distribution (model_path_is_portable()) come first, because a user's file must not
 * displace a library only because its name sorts first. */
static void offer_equal(Cycle *c, CycleDecision *d, size_t begin, size_t end)
{
    const CycleObjects *m = &c->objects;

    for (int users = 0; users <= 1; users++)
        for (size_t i = begin; i < end; i++) {
            const ObjectScore *score = &c->scores[CYCLE_HORIZON_INTERVAL].scores[i];

            if (m->paths[m->objects[score->object].path].shipped == !users)
                offer(c, d, score->object, score->probability,
                      object_scores_probability(&c->scores[CYCLE_HORIZON_SESSION], score->object));
        }
}

/* Offers all objects, the files and directories in the order of their scores, then the metadata.
 * Returns 0 or -ENOMEM. */
static int offer_all(Cycle *c, CycleDecision *d)
{
    const ObjectScores *s = &c->scores[CYCLE_HORIZON_INTERVAL];
    const CycleObjects *m = &c->objects;
    size_t n = s->n + m->n_objects - m->first_metadata;
    int r;

    /* The latest decision borrows the requests, which may move. */
    c->latest = (CycleDecision){0};
    r = grow_array(&c->requests, &c->allocated_requests, n, sizeof(*c->requests));
    if (r >= 0)
        r = grow_array(&c->candidates, &c->allocated_candidates, n, sizeof(*c->candidates));
    if (r >= 0)
        r = grow_array(&c->offers, &c->allocated_offers, n, sizeof(*c->offers));
    if (r < 0)
        return r;
    c->n_candidates = 0;
    for (size_t i = 0, end; i < s->n; i = end) {
        end = i + 1;
        while (end < s->n && s->scores[end].worth == s->scores[i].worth)
            end++;
        offer_equal(c, d, i, end);
    }
    for (size_t i = m->first_metadata; i < m->n_objects; i++)
        offer(c, d, (uint32_t)i, (double)m->objects[i].chance, (double)m->objects[i].chance);
    return 0;
}

/* Makes the requests by algorithm 4.2 of the thesis, with a step that is missing there: each
 * request is subtracted from the budget. */
static int make_requests(Cycle *c, CycleDecision *d)
{
    Selection selection = {
            .parameters = c->parameters.selection,
            .budget_bytes = d->budget_bytes,
            .reads = &c->reads,
    };
    int r = offer_all(c, d);

    if (r < 0)
        return r;
    r = selection_choose(&selection, c->candidates, c->n_candidates);
    if (r < 0)
        return r;
    for (size_t i = 0; i < c->n_candidates; i++) {
        uint32_t object = c->offers[i].object;
        const CycleObject *o = &c->objects.objects[object];

        d->n_beyond += c->candidates[i].verdict == SELECTION_BEYOND;
        d->n_wasteful += c->candidates[i].verdict == SELECTION_WASTEFUL;
        if (c->candidates[i].verdict != SELECTION_SELECTED)
            continue;
        c->present[object] = true;
        c->requests[d->n_requests++] = (PrefetchRequest){
                .path = c->objects.paths[o->path].text,
                .range = o->range,
                .probability = c->offers[i].probability,
                .kind = o->kind,
        };
    }
    d->requests = c->requests;
    d->requested_bytes = selection.selected_bytes;
    return 0;
}

static CycleVerdict judge(const CycleParameters *p, const CycleSnapshot *s)
{
    if (!p->predict)
        return CYCLE_OFF;
    if (s->on_battery && !p->battery)
        return CYCLE_BATTERY;
    if (s->hot)
        return CYCLE_HEAT;
    return s->memory_pressure > p->maximum_pressure ? CYCLE_PRESSURE : CYCLE_PREFETCH;
}

int cycle_decide(Cycle *c, EventTime t, const CycleSnapshot *s, CycleDecision *ret)
{
    CycleDecision d = {
            .verdict = judge(&c->parameters, s),
            .budget_bytes = budget_bytes(&s->memory, &c->parameters.budget),
    };
    int r = 0;

    if (d.verdict == CYCLE_PREFETCH && c->objects.n_objects > 0) {
        r = predict(c, t);
        if (r >= 0)
            r = make_requests(c, &d);
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
    return chains_copy_ended(mixture_chains(c->mixture), ret);
}

uint64_t cycle_n_learned(const Cycle *c)
{
    return c->n_learned;
}

uint64_t cycle_revision(const Cycle *c)
{
    return chains_revision(mixture_chains(c->mixture));
}
