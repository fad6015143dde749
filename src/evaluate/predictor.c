/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "evaluate/predictor.h"

#include "evaluate/predictor-internal.h"

#include <string.h>

Predictor *predictor_free(Predictor *p)
{
    if (p && p->ops->done)
        p->ops->done(p);
    free(p);
    return NULL;
}

int predictor_create(const PredictorOps *ops, const PredictorParameters *p, uint64_t seed,
                     Predictor **ret)
{
    Predictor *n = calloc(1, ops->bytes);
    int r = 0;

    if (!n)
        return -ENOMEM;
    n->ops = ops;
    if (ops->init)
        r = ops->init(n, p, seed);
    if (r < 0)
        predictor_free(n);
    else
        *ret = n;
    return r;
}

void predictor_set_wall_clock(Predictor *p, usec_t now, usec_t realtime)
{
    p->wall_offset = realtime - now; /* may wrap; an addition to `now` wraps back */
}

int predictor_end(Predictor *p, usec_t now)
{
    p->now = MAX(p->now, now);
    if (!p->in_session)
        return 0;
    p->in_session = false;
    return p->ops->end ? p->ops->end(p, p->now) : 0;
}

int predictor_begin(Predictor *p, usec_t now, uint32_t user)
{
    int r = predictor_end(p, now);

    if (r < 0)
        return r;
    p->in_session = true;
    return p->ops->begin ? p->ops->begin(p, p->now, user) : 0;
}

int predictor_observe(Predictor *p, const PredictorEvent *event)
{
    PredictorEvent e = *event;
    int r;

    if ((int)e.kind < 0 || e.kind >= _PREDICTOR_EVENT_KIND_MAX || e.item >= PREDICTOR_ITEMS_MAX)
        return -EINVAL;
    e.at = p->now = MAX(p->now, e.at);
    if (!p->in_session) {
        r = predictor_begin(p, e.at, e.user);
        if (r < 0)
            return r;
    }
    return p->ops->observe(p, &e);
}

static int guess(Predictor *p, int (*f)(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses),
                 usec_t now, usec_t horizon, Guesses *guesses)
{
    int r;

    guesses->n = 0;
    r = f(p, MAX(p->now, now), horizon, guesses);
    if (r < 0) {
        guesses->n = 0;
        return r;
    }
    guesses_sort(guesses);
    return 0;
}

int predictor_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    return guess(p, p->ops->predict, now, horizon, guesses);
}

int predictor_rank(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    return guess(p, p->ops->rank ? p->ops->rank : p->ops->predict, now, horizon, guesses);
}

size_t predictor_size(const Predictor *p)
{
    return p->ops->size(p);
}

void running_set_done(RunningSet *s)
{
    free(s->counts);
    free(s->items);
    *s = (RunningSet){0};
}

void running_set_clear(RunningSet *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->counts[s->items[i]] = 0;
    s->n = 0;
}

int running_set_start(RunningSet *s, uint32_t item)
{
    int r;

    if (item < s->allocated && s->counts[item] > 0) {
        if (s->counts[item] < UINT32_MAX)
            s->counts[item]++;
        return 0;
    }
    r = grow_array_zeroed(&s->counts, &s->allocated, (size_t)item + 1, sizeof(*s->counts));
    if (r < 0)
        return r;
    r = grow_array(&s->items, &s->items_allocated, s->n + 1, sizeof(*s->items));
    if (r < 0)
        return r;
    s->counts[item] = 1;
    s->items[s->n++] = item;
    return 1;
}

int running_set_exit(RunningSet *s, uint32_t item)
{
    if (item >= s->allocated || s->counts[item] == 0 || --s->counts[item] > 0)
        return 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i] == item) {
            memmove(s->items + i, s->items + i + 1, (s->n - i - 1) * sizeof(*s->items));
            s->n--;
            break;
        }
    return 1;
}

bool running_set_contains(const RunningSet *s, uint32_t item)
{
    return item < s->allocated && s->counts[item] > 0;
}
