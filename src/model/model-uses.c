/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/model-uses.h"
#include "model/model-internal.h"
#include "model/model-launch.h"

#include <stdlib.h>

/* The limit of a time that is learned, about twelve days. No stage is longer. */
#define MSEC_MAX ((uint64_t)1 << 30)

DecayedSum model_sum_of_msec(uint64_t msec, DecayedSum one)
{
    return (DecayedSum){decayed_sum_of_time(MIN(msec, MSEC_MAX), one.current), 0};
}

/* Returns the index of the application with that executable, which the stage has. */
static uint32_t index_of(const ModelStage *s, uint32_t file)
{
    return (uint32_t)(model_find_application(s, file) - s->applications);
}

/* An opening of a file. */
typedef struct Opening {
    uint32_t application; /* that opened it */
    uint32_t file;
} Opening;

/* An opening by another program shortly after a start. */
typedef struct OtherOpening {
    uint32_t started; /* the application that was started */
    Opening opening;
    usec_t delay; /* since that start */
} OtherOpening;

typedef struct Learning {
    ModelStage *s;
    DecayedSum one;    /* of the session */
    Opening *openings; /* all of the trace */
    size_t n_openings;
    OtherOpening *others;
    size_t n_others, allocated_others;
} Learning;

static int add_use(Learning *l, uint32_t application, uint32_t file, usec_t delay)
{
    ModelStage *s = l->s;
    ModelUse *u;

    if (grow_array(&s->uses, &s->allocated_uses, s->n_uses + 1, sizeof(ModelUse)) < 0)
        return -ENOMEM;
    u = &s->uses[s->n_uses++];
    *u = (ModelUse){.application = application, .file = file, .used = l->one};
    if (delay == USEC_INFINITY)
        return 0;
    u->launched = l->one;
    u->delay = model_sum_of_msec(delay / USEC_PER_MSEC, l->one);
    return 0;
}

/* Adds a use of the file for each application for which the access counts for certain, and keeps
 * those that depend on what the process opens at other times. */
static int add_access(Learning *l, Launches *launches, usec_t at, Opening o)
{
    LaunchUser users[LAUNCH_USERS_MAX];
    size_t n = launches_feed(launches, at, o.application, users);

    l->openings[l->n_openings++] = o;
    for (size_t i = 0; i < n; i++) {
        if (!users[i].other) {
            CHECK(add_use(l, users[i].application, o.file, users[i].delay));
            continue;
        }
        CHECK(grow_array(&l->others, &l->allocated_others, l->n_others + 1, sizeof(OtherOpening)));
        l->others[l->n_others++] = (OtherOpening){users[i].application, o, users[i].delay};
    }
    return 0;
}

static int compare_openings(const void *a, const void *b)
{
    const Opening *x = a, *y = b;

    if (x->application != y->application)
        return x->application < y->application ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

static int compare_others(const void *a, const void *b)
{
    const OtherOpening *x = a, *y = b;
    int c = compare_openings(&x->opening, &y->opening);

    if (c != 0)
        return c;
    if (x->started != y->started)
        return x->started < y->started ? -1 : 1;
    return x->delay < y->delay ? -1 : x->delay > y->delay;
}

/* Adds the uses by other programs that open the file mainly after starts of the application. */
static int add_others(Learning *l)
{
    size_t first = 0, end = 0;

    if (l->n_others == 0)
        return 0;
    qsort(l->openings, l->n_openings, sizeof(Opening), compare_openings);
    qsort(l->others, l->n_others, sizeof(OtherOpening), compare_others);
    for (size_t i = 0, n; i < l->n_others; i += n) {
        const OtherOpening *o = &l->others[i];

        if (i == 0 || compare_openings(&l->others[i - 1].opening, &o->opening) != 0) {
            for (first = end; compare_openings(&l->openings[first], &o->opening) < 0;)
                first++;
            for (end = first;
                 end < l->n_openings && compare_openings(&l->openings[end], &o->opening) == 0;)
                end++;
        }
        for (n = 1; i + n < l->n_others && l->others[i + n].started == o->started &&
                    compare_openings(&l->others[i + n].opening, &o->opening) == 0;)
            n++;
        if (2 * n >= end - first)
            CHECK(add_use(l, o->started, o->opening.file, o->delay));
    }
    return 0;
}

/* Adds the row `v` to the row `u` of the same use in one session: the first opening counts. */
static void unite_uses(ModelUse *u, const ModelUse *v)
{
    if (decayed_sum_is_zero(v->launched))
        return;
    if (decayed_sum_is_zero(u->launched) || v->delay.current < u->delay.current)
        u->delay = v->delay;
    u->launched = v->launched;
}

static void unite_all_uses(ModelStage *s)
{
    size_t n = 0;

    if (s->n_uses > 0)
        qsort(s->uses, s->n_uses, sizeof(ModelUse), model_compare_uses);
    for (size_t i = 0; i < s->n_uses; i++)
        if (n == 0 || model_compare_uses(&s->uses[n - 1], &s->uses[i]) != 0)
            s->uses[n++] = s->uses[i];
        else
            unite_uses(&s->uses[n - 1], &s->uses[i]);
    s->n_uses = n;
}

/* Learns which pages starts of applications touched. Leaves out files that no start opened: another
 * process may have opened them before, or the application loaded them later. */
static int learn_touched(const Trace *t, const uint32_t *where, const uint32_t *applications,
                         ModelStage *s, DecayedSum one)
{
    for (size_t i = 0; i < t->n_touched; i++) {
        const TraceTouched *x = &t->touched[i];
        ModelUse *u = model_find_use(s, applications[x->application], where[x->file]);

        /* Two rows of the trace can be one file of the model: the first one counts. */
        if (!u || u->touched || decayed_sum_is_zero(u->launched))
            continue;
        u->touched = calloc(1, sizeof(ModelResidency));
        if (!u->touched)
            return -ENOMEM;
        u->touched->sessions = one;
        CHECK(weighted_ranges_from_ranges(&x->ranges, one, &u->touched->ranges));
    }
    return 0;
}

static int learn_accesses(const Trace *t, const uint32_t *where, const uint32_t *applications,
                          Launches *launches, Learning *l)
{
    l->openings = calloc(t->n_accesses + 1, sizeof(Opening));
    if (!l->openings)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_accesses; i++) {
        const TraceAccess *a = &t->accesses[i];
        uint32_t application = a->application == TRACE_NONE ? index_of(l->s, MODEL_NONE)
                                                            : applications[a->application];

        CHECK(add_access(l, launches, a->at, (Opening){application, where[a->file]}));
    }
    return add_others(l);
}

int model_learn_uses(const Trace *t, const uint32_t *where, ModelStage *s, DecayedSum one)
{
    _cleanup_(launches_freep) Launches *launches = NULL;
    _cleanup_free_ uint32_t *applications = calloc(t->n_applications + 1, sizeof(uint32_t));
    Learning l = {.s = s, .one = one};
    int r;

    if (!applications)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_applications; i++)
        applications[i] = index_of(s, where[t->applications[i].file]);
    r = launches_new(t, applications, s->n_applications, &launches);
    if (r >= 0)
        r = learn_accesses(t, where, applications, launches, &l);
    free(l.openings);
    free(l.others);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n_applications; i++)
        if (launches_observed(launches, (uint32_t)i))
            s->applications[i].launched = one;
    unite_all_uses(s);
    return learn_touched(t, where, applications, s, one);
}
