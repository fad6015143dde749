/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "predict/horizon.h"

#include <string.h>

/* The maximum number of cases of "after" that are counted. The latest cases are counted. */
#define AFTER_MAX 64U
/* The distribution over all pauses counts as this many pauses after the application that started
 * last. */
#define PAUSE_PRIOR 2.0

/* Rows of counts. Each row has one count for each application, here called "it". */
enum {
    AGE_HAD,      /* weight of the sessions that had started it by this age */
    AGE_HAD_CAME, /* part of AGE_HAD: sessions that started it again within the horizon */
    AGE_CAME,     /* weight of the other sessions that started it within the horizon */
    ALIKE_HAD,
    ALIKE_HAD_CAME,
    ALIKE_CAME,
    AFTER_CAME,
    HAD,  /* number of the latest case in which it started up to the age */
    CAME, /* number of the latest case in which it started within the horizon */
    MINE, /* 1: the present session has started it */
    ROWS,
};

void horizons_done(Horizons *h)
{
    free(h->rows);
    *h = (Horizons){0};
}

typedef struct Counting {
    const SequenceSituation *x;
    const Sequence *s;
    double *rows[ROWS];
    uint64_t horizon_msec;
    double n_case;          /* numbers the cases in HAD and CAME */
    double sessions, alike; /* weight of the sessions that reached the age */
    double after;           /* weight of the cases of "after" */
    unsigned n_after;
    double pauses, ended_in_start; /* pauses that lasted longer than the present one so far, and
                                      those of them that ended with a start within the horizon */
    /* such pauses after the application that started last */
    double last_pauses, last_ended_in_start;
} Counting;

static bool is_within(const Counting *c, uint64_t at_msec, uint64_t from_msec)
{
    return at_msec > from_msec && at_msec - from_msec <= c->horizon_msec;
}

/* Counts a session as a case of "age" and of "alike", if it reached the age of the present one. */
static void count_age(Counting *c, const LoggedSession *l, double weight, double alike)
{
    uint64_t age = c->x->age_msec;

    if (l->length_msec <= age)
        return;
    c->n_case++;
    c->sessions += weight;
    c->alike += alike;
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t a = l->starts[i].application;

        if (l->starts[i].at_msec <= age) {
            if (c->rows[HAD][a] != c->n_case) {
                c->rows[AGE_HAD][a] += weight;
                c->rows[ALIKE_HAD][a] += alike;
            }
            c->rows[HAD][a] = c->n_case;
        } else if (is_within(c, l->starts[i].at_msec, age) && c->rows[CAME][a] != c->n_case) {
            bool had = c->rows[HAD][a] == c->n_case;

            c->rows[had ? AGE_HAD_CAME : AGE_CAME][a] += weight;
            c->rows[had ? ALIKE_HAD_CAME : ALIKE_CAME][a] += alike;
            c->rows[CAME][a] = c->n_case;
        }
    }
}

/* Counts the applications that started within the horizon after `since_msec`, from start i on. */
static void count_after(Counting *c, const LoggedSession *l, uint32_t i, uint64_t since_msec,
                        double weight)
{
    if (c->n_after++ >= AFTER_MAX)
        return;
    c->n_case++;
    c->after += weight;
    for (; i < l->n && is_within(c, l->starts[i].at_msec, since_msec); i++) {
        uint32_t a = l->starts[i].application;

        if (c->rows[CAME][a] != c->n_case)
            c->rows[AFTER_CAME][a] += weight;
        c->rows[CAME][a] = c->n_case;
    }
}

/* Visits the pauses before, between and after the starts, the latest first. The pause after the
 * last start of the present session has not ended and is the one to predict. */
static void count_pauses(Counting *c, const LoggedSession *l, bool present, double weight)
{
    for (uint32_t i = l->n + 1; i-- > 0;) {
        uint32_t before = i > 0 ? l->starts[i - 1].application : 0;
        uint64_t begin = i > 0 ? l->starts[i - 1].at_msec : 0;
        uint64_t end = i < l->n ? l->starts[i].at_msec : l->length_msec;
        uint64_t since = begin + c->x->quiet_msec;
        bool ended;

        if (end <= since || (present && i == l->n))
            continue;
        ended = i < l->n && is_within(c, end, since);
        c->pauses += weight;
        c->ended_in_start += ended ? weight : 0;
        if (before != c->x->before[0])
            continue;
        c->last_pauses += weight;
        c->last_ended_in_start += ended ? weight : 0;
        if (!present)
            count_after(c, l, i, since, weight);
    }
}

/* Returns the probability that any application starts within the horizon. `prior`: the probability
 * according to the chains. */
static double any_start(const Counting *c, double prior)
{
    double all = (c->ended_in_start + prior) / (c->pauses + 1);

    return (c->last_ended_in_start + PAUSE_PRIOR * all) / (c->last_pauses + PAUSE_PRIOR);
}

static double share(double came, double cases, double prior)
{
    return min_double((came + prior) / (max_double(cases, 0) + 1), 1);
}

int horizons_compute(Horizons *h, const SequenceSituation *x, const Sequence *s, usec_t horizon,
                     const double *next, double *ret[static HORIZON_EXPERTS], double *ret_any)
{
    size_t n = x->n_applications;
    Counting c = {.x = x, .s = s, .horizon_msec = horizon / USEC_PER_MSEC};
    double none = 1, any;
    int r = grow_array(&h->rows, &h->allocated, ROWS * n, sizeof(*h->rows));

    if (r < 0)
        return r;
    memset(h->rows, 0, ROWS * n * sizeof(*h->rows));
    for (unsigned k = 0; k < ROWS; k++)
        c.rows[k] = h->rows + k * n;
    for (uint32_t i = 0; i < x->present.n; i++)
        c.rows[MINE][x->present.starts[i].application] = 1;
    count_pauses(&c, &x->present, true, 1);
    for (size_t i = x->log->n; i-- > 0;) {
        const LoggedSession *l = &x->log->sessions[i];

        count_pauses(&c, l, false, s->decayed[i]);
        count_age(&c, l, s->decayed[i], s->alike[i]);
    }
    for (size_t i = 1; i < n; i++)
        none *= 1 - ret[HORIZON_CHAINS][i];
    any = any_start(&c, 1 - none);
    for (size_t i = 1; i < n; i++) {
        bool mine = c.rows[MINE][i] > 0;
        double prior = ret[HORIZON_CHAINS][i];

        if (x->runs[i])
            continue;
        ret[HORIZON_NEXT][i] = any * next[i];
        ret[HORIZON_AGE][i] =
                mine ? share(c.rows[AGE_HAD_CAME][i], c.rows[AGE_HAD][i], prior)
                     : share(c.rows[AGE_CAME][i], c.sessions - c.rows[AGE_HAD][i], prior);
        ret[HORIZON_ALIKE][i] =
                mine ? share(c.rows[ALIKE_HAD_CAME][i], c.rows[ALIKE_HAD][i], prior)
                     : share(c.rows[ALIKE_CAME][i], c.alike - c.rows[ALIKE_HAD][i], prior);
        ret[HORIZON_AFTER][i] = share(c.rows[AFTER_CAME][i], c.after, prior);
    }
    *ret_any = any;
    return 0;
}
