/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "evaluate/simulate-internal.h"

#include <string.h>

/* The disk */

static uint64_t object_size(const Simulation *s, uint32_t o)
{
    return s->p->cache_unit == CACHE_FILES ? 1 : s->in->object_bytes[o];
}

static uint64_t selected_size(const Simulation *s, uint32_t o)
{
    return s->p->budget_bytes != UINT64_MAX ? s->in->object_bytes[o] : object_size(s, o);
}

/* Subtracts a queued read from the account of the session. */
static void cancel_read(Simulation *s, uint32_t o)
{
    SimulatedObject *x = &s->objects[o];

    selection_cancel(&s->reads, &(SelectionCandidate){.bytes = selected_size(s, o), .use = x->use});
    x->pending = x->unused = false;
}

static usec_t read_usec(const Simulation *s, uint32_t o, usec_t start)
{
    double cost = (double)s->p->io_fixed_usec;

    if (s->p->io_bytes_per_sec > 0)
        cost += (double)s->in->object_bytes[o] * 1e6 / (double)s->p->io_bytes_per_sec;
    /* A read that would take longer than the clock can represent never ends. */
    return cost < (double)(USEC_INFINITY - start) ? start + (usec_t)cost : USEC_INFINITY;
}

void simulate_disk_advance(Simulation *s, usec_t until)
{
    for (; s->queue_at < s->n_queue; s->queue_at++) {
        uint32_t o = s->queue[s->queue_at];
        SimulatedObject *x = &s->objects[o];
        usec_t start = MAX(s->disk_free, x->issued);

        if (!x->pending)
            continue;
        if (start > until)
            break;
        x->pending = false;
        x->arrives = s->disk_free = read_usec(s, o, start);
        s->read_bytes += s->in->object_bytes[o];
        s->report->n_reads++;
    }
}

usec_t simulate_disk_demand(Simulation *s, uint32_t o, usec_t at)
{
    SimulatedObject *x = &s->objects[o];

    simulate_disk_advance(s, at);
    if (x->cached && !x->pending)
        return MAX(at, x->arrives);
    if (x->pending)
        cancel_read(s, o);
    x->arrives = s->disk_free = read_usec(s, o, MAX(s->disk_free, at));
    return x->arrives;
}

/* Puts an object into the queue, whose reads begin as soon as the disk is free. */
static void read_ahead(Simulation *s, uint32_t o, double use)
{
    SimulatedObject *x = &s->objects[o];

    x->use = use;
    x->issued = s->now;
    s->queue[s->n_queue++] = o;
}

/* The cache */

static void list_remove(Simulation *s, uint32_t o)
{
    SimulatedObject *x = &s->objects[o];

    *(x->newer == SIMULATE_NO_OBJECT ? &s->newest : &s->objects[x->newer].older) = x->older;
    *(x->older == SIMULATE_NO_OBJECT ? &s->oldest : &s->objects[x->older].newer) = x->newer;
}

static void list_push(Simulation *s, uint32_t o)
{
    SimulatedObject *x = &s->objects[o];

    x->newer = SIMULATE_NO_OBJECT;
    x->older = s->newest;
    *(s->newest == SIMULATE_NO_OBJECT ? &s->oldest : &s->objects[s->newest].newer) = o;
    s->newest = o;
}

static void cache_drop(Simulation *s, uint32_t o)
{
    SimulatedObject *x = &s->objects[o];

    list_remove(s, o);
    s->cached_size -= object_size(s, o);
    x->cached = false;
    if (x->unused && !x->pending)
        s->wasted_bytes += s->in->object_bytes[o];
    x->unused = x->pending = false;
}

/* Cancels the queued reads that have not begun. */
static void cancel_reads(Simulation *s)
{
    for (; s->queue_at < s->n_queue; s->queue_at++) {
        uint32_t o = s->queue[s->queue_at];

        if (!s->objects[o].pending)
            continue;
        cancel_read(s, o);
        cache_drop(s, o);
    }
    s->queue_at = s->n_queue = 0;
}

/* Adds an object and evicts the oldest ones until it fits. Returns false if the object is larger
 * than the cache. */
static bool cache_insert(Simulation *s, uint32_t o)
{
    uint64_t size = object_size(s, o);

    if (s->p->cache_unit != CACHE_UNLIMITED) {
        if (size > s->p->cache_size)
            return false;
        while (s->cached_size > s->p->cache_size - size)
            cache_drop(s, s->oldest);
    }
    list_push(s, o);
    s->cached_size += size;
    s->objects[o].cached = true;
    s->objects[o].unused = false;
    return true;
}

void simulate_cache_use(Simulation *s, uint32_t o)
{
    if (s->objects[o].cached) {
        list_remove(s, o);
        list_push(s, o);
    } else
        cache_insert(s, o);
}

void simulate_cache_clear(Simulation *s)
{
    simulate_disk_advance(s, s->now);
    cancel_reads(s);
    while (s->oldest != SIMULATE_NO_OBJECT)
        cache_drop(s, s->oldest);
    s->disk_free = s->stalled_to = 0;
    s->reads = (SelectionReads){0};
}

/* Selecting */

/* Returns the budget of a selection, in the unit of selected_size(). */
static uint64_t budget(const Simulation *s)
{
    if (s->p->budget_bytes != UINT64_MAX)
        return s->p->budget_bytes;
    return s->p->cache_unit == CACHE_UNLIMITED ? UINT64_MAX : s->p->cache_size;
}

/* Offers objects to the selection, in the order of their scores. Returns their number. */
static size_t offer(Simulation *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->scores.n; i++) {
        const ObjectScore *c = &s->scores.scores[i];

        if (c->probability < s->p->minimum_probability)
            continue;
        s->candidates[n] = (SelectionCandidate){
                .bytes = selected_size(s, c->object),
                .use = simulate_asks_for_use(s)
                               ? object_scores_probability(&s->kept_scores, c->object)
                               : 1,
                .worth = s->worth ? s->worth[c->object] : 1,
                .present = s->objects[c->object].cached,
        };
        s->offered[n++] = c->object;
    }
    return n;
}

int simulate_select(Simulation *s)
{
    Selection selection = {
            .parameters = s->p->selection,
            .budget_bytes = budget(s),
            .reads = &s->reads,
    };
    size_t n_offered, n = 0;
    int r;

    simulate_disk_advance(s, s->now);
    cancel_reads(s);
    n_offered = offer(s);
    r = selection_choose(&selection, s->candidates, n_offered);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n_offered; i++) {
        uint32_t o = s->offered[i];

        if (s->candidates[i].verdict != SELECTION_SELECTED)
            continue;
        /* An object that does not fit into the cache would be read again and again. */
        if (s->p->cache_unit == CACHE_FILES && n >= s->p->cache_size) {
            if (!s->candidates[i].present)
                selection_cancel(&s->reads, &s->candidates[i]);
            continue;
        }
        s->objects[o].selected = s->n_predictions;
        if (!s->objects[o].cached)
            read_ahead(s, o, s->candidates[i].use);
        s->selected[n++] = o;
    }
    if (s->p->selected)
        s->p->selected(s->selected, n, s->p->selected_userdata);
    for (size_t i = n; i-- > 0;) {
        uint32_t o = s->selected[i];

        if (s->objects[o].cached) {
            list_remove(s, o);
            list_push(s, o);
        } else if (cache_insert(s, o))
            s->objects[o].unused = s->objects[o].pending = true;
    }
    simulate_disk_advance(s, s->now);
    return 0;
}
