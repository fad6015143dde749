/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "evaluate/simulate-internal.h"

/* The cache */

static uint64_t object_size(const Simulation *s, uint32_t o)
{
    return s->p->cache_unit == CACHE_FILES ? 1 : s->in->object_bytes[o];
}

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
    if (x->unused) {
        x->unused = false;
        s->wasted_bytes += s->in->object_bytes[o];
    }
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
    while (s->oldest != SIMULATE_NO_OBJECT)
        cache_drop(s, s->oldest);
    s->device_free = 0;
    s->expected_waste_over += s->session_expected;
    s->wasted_over = s->wasted_bytes;
    s->session_expected = 0;
    s->session_read_bytes = 0;
}

/* Selecting */

static void read_object(Simulation *s, uint32_t o, double expected_waste)
{
    SimulatedObject *x = &s->objects[o];
    uint64_t bytes = s->in->object_bytes[o];
    double cost = (double)s->p->io_fixed_usec;
    usec_t start = MAX(s->device_free, s->now);

    if (s->p->io_bytes_per_sec > 0)
        cost += (double)bytes * 1e6 / (double)s->p->io_bytes_per_sec;
    /* A read that would take longer than the clock can represent never arrives. */
    s->device_free = cost < (double)(USEC_INFINITY - start) ? start + (usec_t)cost : USEC_INFINITY;
    x->unused = true;
    x->issued = s->now;
    x->arrives = s->device_free;
    s->session_expected += expected_waste;
    s->session_read_bytes += bytes;
    s->read_bytes += bytes;
    s->report->n_reads++;
}

/* Returns the factor by which earlier sessions wasted more than the probabilities predicted. The
 * constant `some` and the bounds prevent that one unlucky session stops all reads. */
static double waste_correction(const Simulation *s)
{
    const double some = 256e6;
    double c = ((double)s->wasted_over + some) / (s->expected_waste_over + some);

    return MIN(MAX(c, 0.25), 4.0);
}

/* Selects objects from the candidates within the budget, and reads the selected objects that are
 * not cached. All selected objects then become the newest in the cache, the one with the highest
 * score as the newest of all. */
void simulate_select(Simulation *s)
{
    uint64_t budget = s->p->budget_bytes, used = 0;
    double correction = waste_correction(s);
    size_t n = 0;

    for (size_t i = 0; i < s->scores.n; i++) {
        ObjectScore c = s->scores.scores[i];
        SimulatedObject *x = &s->objects[c.object];
        uint64_t bytes = s->in->object_bytes[c.object];
        uint64_t size = budget != UINT64_MAX ? bytes : object_size(s, c.object);
        uint64_t room = budget != UINT64_MAX                  ? budget
                        : s->p->cache_unit == CACHE_UNLIMITED ? UINT64_MAX
                                                              : s->p->cache_size;
        double use =
                s->p->maximum_waste < 1 ? object_scores_probability(&s->kept_scores, c.object) : 1;
        double waste = (double)bytes * (1 - use);

        if (c.probability < s->p->minimum_probability)
            continue;
        if (size > room - used)
            continue;
        /* An object that does not fit into the cache would be read again and again. */
        if (s->p->cache_unit == CACHE_FILES && n >= s->p->cache_size)
            break;
        if (!x->cached && s->p->maximum_waste < 1 &&
            (use < s->p->minimum_use ||
             correction * (s->session_expected + waste) >
                     s->p->maximum_waste * (double)(s->session_read_bytes + bytes)))
            continue;
        used += size;
        x->selected = s->n_predictions;
        if (!x->cached)
            read_object(s, c.object, waste);
        s->selected[n++] = c.object;
    }
    for (size_t i = n; i-- > 0;) {
        uint32_t o = s->selected[i];

        if (s->objects[o].cached) {
            list_remove(s, o);
            list_push(s, o);
        } else {
            bool unused = s->objects[o].unused;

            if (cache_insert(s, o))
                s->objects[o].unused = unused;
            else {
                s->wasted_bytes += s->in->object_bytes[o];
                s->objects[o].unused = false;
            }
        }
    }
}
