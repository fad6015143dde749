/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/regimes.h"

#include "evaluate/habits-internal.h"

#include <string.h>

#define N_APPLICATIONS 12U
#define N_TASKS        4U
#define TASK_LENGTH    3U
#define NONE           N_APPLICATIONS
#define N_IN_ORDER     6U /* applications of "in-order", each with EQUAL_OBJECTS objects */
#define EQUAL_OBJECTS  10U
#define EQUAL_BYTES    (UINT64_C(3) << 20)
#define MINUTE         60e6
#define DAY            (24 * 60 * MINUTE)
#define RARE           0U /* the application of "rare-long" */
#define CHAIN_END      3U /* "rare-chain": 0 is the trigger, 1 to 3 follow it */
/* 2026-01-05, a Monday, at midnight. */
#define FIRST_DAY (UINT64_C(1767571200) * USEC_PER_SEC)

static const char *const names[_REGIME_MAX] = {
        [REGIME_IN_ORDER] = "in-order", [REGIME_ORDER_TWO] = "order-two",
        [REGIME_ODD_EVEN] = "odd-even", [REGIME_WEEKDAY_HOUR] = "weekday-hour",
        [REGIME_CHANGED] = "changed",   [REGIME_RARE_LONG] = "rare-long",
        [REGIME_BURSTS] = "bursts",     [REGIME_NEVER_CLOSES] = "never-closes",
        [REGIME_SLOW] = "slow",         [REGIME_TWO_USERS] = "two-users",
        [REGIME_PHASES] = "phases",     [REGIME_RARE_CHAIN] = "rare-chain",
};

const char *regime_to_string(Regime r)
{
    return (int)r >= 0 && r < _REGIME_MAX ? names[r] : NULL;
}

/* The habits of a user. There are two successions. session_start() selects one for each
 * session. */
typedef struct User {
    double first[2][N_APPLICATIONS]; /* weights of the first application */
    double next[2][N_APPLICATIONS][N_APPLICATIONS];
    double run_mean_usec[N_APPLICATIONS];                      /* 0: until the session ends */
    uint8_t pair_next[N_APPLICATIONS + 1][N_APPLICATIONS + 1]; /* of "order-two" */
    uint8_t tasks[N_TASKS][TASK_LENGTH];
    uint32_t items[N_APPLICATIONS];
    unsigned n;
} User;

typedef struct Drawing {
    Regime regime;
    unsigned phase, phase_left; /* of "phases": the project, and its sessions to come */
    Random random;
    User users[2];
    unsigned n_users;
    SimulateInput in;
} Drawing;

/* The state on which the next choice depends. */
typedef struct Turn {
    unsigned last, before_last, variant;
    double at_usec, end_usec; /* since the session began */
    double exits[N_APPLICATIONS];
    bool runs[N_APPLICATIONS];
    unsigned task, step; /* position in the task; TASK_LENGTH between two tasks */
} Turn;

static unsigned pick(Random *random, const double *weights, unsigned n)
{
    double x = random_uniform(random), sum = 0;
    unsigned i = 0;

    for (unsigned k = 0; k < n; k++)
        sum += weights[k];
    for (x *= sum; i + 1 < n && x >= weights[i]; i++)
        x -= weights[i];
    return i;
}

/* Draws a row of weights with pronounced preferences. All weights except that of `self` are above
 * zero. */
static void draw_row(Random *random, double *row, unsigned n, unsigned self)
{
    for (unsigned i = 0; i < n; i++)
        row[i] = i == self ? 0 : random_gamma(random, 1) * random_gamma(random, 1);
    habits_normalise(row, n);
    for (unsigned i = 0; i < n; i++)
        row[i] = i == self ? 0 : 0.9 * row[i] + 0.1 / n;
    habits_normalise(row, n);
}

/* Draws a row in which one successor has three quarters of the weight. */
static void draw_sharp_row(Random *random, double *row, unsigned n, unsigned self)
{
    unsigned favourite = (self + 1 + random_below(random, n - 1)) % n;

    for (unsigned i = 0; i < n; i++)
        row[i] = i == self ? 0 : 0.25 / (n - 2);
    row[favourite] = 0.75;
    habits_normalise(row, n);
}

/* Draws a row in which the weights of the n applications from `first` on fall with the rank. All
 * other weights are small, and that of `self` is 0. */
static void draw_popular_row(Random *random, double *row, unsigned first, unsigned n, unsigned self)
{
    for (unsigned i = 0; i < N_APPLICATIONS; i++)
        row[i] = i == self ? 0 : i >= first && i < first + n ? 1.0 / (1 + i - first) : 0.01;
    habits_normalise(row, N_APPLICATIONS);
}

static void draw_user(Drawing *d, User *u)
{
    Random *random = &d->random;

    u->n = d->regime == REGIME_IN_ORDER ? N_IN_ORDER : N_APPLICATIONS;
    for (unsigned v = 0; v < 2; v++) {
        draw_row(random, u->first[v], u->n, NONE);
        for (unsigned a = 0; a < u->n; a++) {
            double *row = u->next[v][a];

            if (d->regime == REGIME_ODD_EVEN)
                draw_sharp_row(random, row, u->n, a);
            else if (d->regime == REGIME_WEEKDAY_HOUR)
                draw_popular_row(random, row, 6 * v, 6, a);
            else
                draw_row(random, row, u->n, a);
            if (d->regime == REGIME_RARE_LONG)
                row[RARE] = 0;
            if (d->regime == REGIME_RARE_CHAIN)
                memset(row, 0, (CHAIN_END + 1) * sizeof(*row));
        }
        if (d->regime == REGIME_WEEKDAY_HOUR)
            draw_popular_row(random, u->first[v], 6 * v, 6, NONE);
        if (d->regime == REGIME_RARE_LONG)
            u->first[v][RARE] = 0;
        if (d->regime == REGIME_RARE_CHAIN)
            memset(u->first[v], 0, (CHAIN_END + 1) * sizeof(*u->first[v]));
    }
    for (unsigned a = 0; a < u->n; a++)
        u->run_mean_usec[a] = d->regime == REGIME_NEVER_CLOSES             ? 0
                              : d->regime == REGIME_RARE_LONG && a == RARE ? 0
                              : d->regime == REGIME_ORDER_TWO
                                      ? 2 * MINUTE
                                      : MINUTE * exp(random_uniform(random) * log(10));
    for (unsigned a = 0; a <= u->n; a++)
        for (unsigned b = 0; b <= u->n; b++)
            u->pair_next[a][b] = (uint8_t)random_below(random, u->n);
    for (unsigned t = 0; t < N_TASKS; t++)
        for (unsigned i = 0; i < TASK_LENGTH; i++)
            u->tasks[t][i] = (uint8_t)(t * TASK_LENGTH + i);
}

/* Draws the pause before the next turn. */
static double draw_pause(Drawing *d, const Turn *t)
{
    switch (d->regime) {
    case REGIME_IN_ORDER:
        return 15 * MINUTE;
    case REGIME_BURSTS:
        return t->step < TASK_LENGTH ? 2e6 + random_uniform(&d->random) * 8e6
                                     : random_exponential(&d->random, 15 * MINUTE);
    case REGIME_SLOW:
        return random_exponential(&d->random, 30 * MINUTE);
    case REGIME_ORDER_TWO:
        return 4 * MINUTE + random_exponential(&d->random, MINUTE);
    default:
        return random_exponential(&d->random, 3 * MINUTE);
    }
}

static unsigned choose(Drawing *d, const User *u, Turn *t)
{
    switch (d->regime) {
    case REGIME_IN_ORDER:
        return t->last == NONE ? 0 : (t->last + 1) % u->n;
    case REGIME_ORDER_TWO:
        return random_uniform(&d->random) < 0.9
                       ? u->pair_next[MIN(t->before_last, u->n)][MIN(t->last, u->n)]
                       : random_below(&d->random, u->n);
    case REGIME_BURSTS:
        if (t->step >= TASK_LENGTH) {
            double weights[N_TASKS] = {4, 3, 2, 1};

            t->task = pick(&d->random, weights, N_TASKS);
            t->step = 0;
        }
        return u->tasks[t->task][t->step++];
    case REGIME_RARE_CHAIN:
        if (t->last < CHAIN_END)
            return t->last + 1;
        if (random_below(&d->random, 30) == 0)
            return 0;
        /* fallthrough */
    default:
        return pick(&d->random,
                    t->last == NONE ? u->first[t->variant] : u->next[t->variant][t->last], u->n);
    }
}

static double draw_length(Drawing *d)
{
    switch (d->regime) {
    case REGIME_IN_ORDER:
        return 480 * MINUTE;
    case REGIME_SLOW:
        return (180 + random_uniform(&d->random) * 240) * MINUTE;
    case REGIME_BURSTS:
        return (120 + random_uniform(&d->random) * 240) * MINUTE;
    default:
        return 30 * MINUTE + random_exponential(&d->random, 60 * MINUTE);
    }
}

static int emit(Drawing *d, double at_usec, uint32_t user, uint32_t item, SimulateEventKind kind,
                usec_t realtime)
{
    return simulate_add_event(&d->in, &(SimulateEvent){.at = (usec_t)at_usec,
                                                       .user = user,
                                                       .item = item,
                                                       .kind = kind,
                                                       .realtime = realtime});
}

/* Emits the exits up to a time, the earliest first. */
static int emit_exits(Drawing *d, const User *u, uint32_t user, Turn *t, double start_usec,
                      double until_usec)
{
    for (;;) {
        unsigned next = NONE;
        int r;

        for (unsigned a = 0; a < u->n; a++)
            if (t->runs[a] && t->exits[a] <= until_usec &&
                (next == NONE || t->exits[a] < t->exits[next]))
                next = a;
        if (next == NONE)
            return 0;
        t->runs[next] = false;
        r = emit(d, start_usec + t->exits[next], user, u->items[next], SIMULATE_EXIT, 0);
        if (r < 0)
            return r;
    }
}

static int start(Drawing *d, const User *u, uint32_t user, Turn *t, double start_usec, unsigned a)
{
    double mean = u->run_mean_usec[a];

    t->before_last = t->last;
    t->last = a;
    if (t->runs[a])
        return 0;
    t->runs[a] = true;
    t->exits[a] = mean <= 0                      ? 2 * t->end_usec
                  : d->regime == REGIME_IN_ORDER ? t->at_usec + 10 * MINUTE
                  : d->regime == REGIME_ORDER_TWO
                          ? t->at_usec + MIN(random_exponential(&d->random, mean), 3.9 * MINUTE)
                          : t->at_usec + random_exponential(&d->random, mean);
    return emit(d, start_usec + t->at_usec, user, u->items[a], SIMULATE_START, 0);
}

static int draw_session(Drawing *d, uint32_t user, unsigned variant, double start_usec,
                        double *ret_end_usec)
{
    const User *u = &d->users[user];
    Turn t = {.last = NONE,
              .before_last = NONE,
              .variant = variant,
              .step = TASK_LENGTH,
              .at_usec = 0,
              .end_usec = draw_length(d)};
    bool rare = d->regime == REGIME_RARE_LONG && random_uniform(&d->random) < 0.2;
    double rare_at = t.end_usec * random_uniform(&d->random) * 0.8;
    int r = emit(d, start_usec, user, 0, SIMULATE_BEGIN, FIRST_DAY + (usec_t)start_usec);

    while (r >= 0) {
        double pause = t.last == NONE ? 20e6 : draw_pause(d, &t);
        bool now_rare = rare && rare_at < t.at_usec + pause;

        t.at_usec = now_rare ? MAX(rare_at, t.at_usec) : t.at_usec + pause;
        r = emit_exits(d, u, user, &t, start_usec, MIN(t.at_usec, t.end_usec));
        if (r < 0 || t.at_usec >= t.end_usec)
            break;
        if (now_rare) {
            unsigned last = t.last, before_last = t.before_last;

            rare = false;
            r = start(d, u, user, &t, start_usec, RARE);
            t.last = last;
            t.before_last = before_last;
        } else
            r = start(d, u, user, &t, start_usec, choose(d, u, &t));
    }
    *ret_end_usec = start_usec + t.end_usec;
    return r < 0 ? r : emit(d, *ret_end_usec, user, 0, SIMULATE_END, 0);
}

/* Makes applications of equal sizes that share nothing, so that a budget of one sixth of all bytes
 * has room for one of the six applications. */
static int add_equal_objects(Drawing *d)
{
    int r = 0;

    for (unsigned a = 0; r >= 0 && a < N_IN_ORDER; a++) {
        uint32_t objects[EQUAL_OBJECTS];

        for (unsigned i = 0; r >= 0 && i < EQUAL_OBJECTS; i++)
            r = simulate_add_object(&d->in, EQUAL_BYTES, &objects[i]);
        if (r >= 0)
            r = simulate_add_item(&d->in, objects, EQUAL_OBJECTS, &d->users[0].items[a]);
    }
    return r;
}

/* Draws the applications and their objects as those of the users in habits.h. */
static int draw_objects(Drawing *d)
{
    HabitsUser users[2] = {{.n = 0}, {.n = 0}};
    Habits h = {.users = users};
    int r;

    if (d->regime == REGIME_IN_ORDER)
        return add_equal_objects(d);
    habits_parameters_init(&h.p);
    h.p.n_users = d->n_users;
    h.p.n_own = d->n_users > 1 ? 9 : N_APPLICATIONS;
    h.p.n_shared = d->n_users > 1 ? 3 : 0;
    h.p.n_desktop = 0;
    r = habits_draw_tables(&h, &d->random);
    for (unsigned i = 0; r >= 0 && i < d->n_users; i++)
        for (unsigned a = 0; a < users[i].n; a++)
            d->users[i].items[a] = users[i].applications[a].item;
    d->in = h.objects;
    return r;
}

/* Returns when session k of n begins (after `now`), and which succession it uses. */
static double session_start(Drawing *d, unsigned k, unsigned n, double now, unsigned *ret_variant)
{
    unsigned day = k;
    double start;

    *ret_variant = 0;
    switch (d->regime) {
    case REGIME_ODD_EVEN:
        *ret_variant = day % 2;
        break;
    case REGIME_WEEKDAY_HOUR:
        day = k / 2;
        *ret_variant = day % 7 >= 5 ? (k % 7) % 2 : k % 2;
        if (day % 7 >= 5)
            *ret_variant = 1;
        break;
    case REGIME_CHANGED:
        *ret_variant = k >= n / 2;
        break;
    case REGIME_TWO_USERS:
        *ret_variant = random_below(&d->random, 10) == 0;
        break;
    case REGIME_PHASES:
        day = k / 5 * 7 + k % 5;
        if (d->phase_left-- == 0) {
            d->phase = !d->phase;
            d->phase_left = 4 + random_below(&d->random, 11);
        }
        *ret_variant = d->phase;
        break;
    default:
        break;
    }
    start = (double)day * DAY + (d->regime == REGIME_WEEKDAY_HOUR && k % 2 ? 19 : 9) * 60 * MINUTE +
            random_uniform(&d->random) * 30 * MINUTE;
    return MAX(start, now + 1e6);
}

int regime_draw(Regime regime, uint64_t seed, SimulateInput *ret, double *ret_training)
{
    Drawing d = {.regime = regime,
                 .random = {seed * 64 + regime},
                 .n_users = regime == REGIME_CHANGED || regime == REGIME_TWO_USERS ? 2 : 1};
    unsigned n = 60;
    size_t n_training = 0;
    double now = 0;
    int r = draw_objects(&d);

    for (unsigned i = 0; i < d.n_users; i++)
        draw_user(&d, &d.users[i]);
    for (unsigned k = 0; r >= 0 && k < n; k++) {
        unsigned variant, user = 0;
        double begin = session_start(&d, k, n, now, &variant);

        if (regime == REGIME_CHANGED ? k == n / 2 + 4 : k == n / 2)
            n_training = d.in.n_events;
        if (regime == REGIME_TWO_USERS)
            user = k % 7 % 2;
        else if (d.n_users > 1)
            user = random_below(&d.random, d.n_users);
        r = draw_session(&d, user, variant, begin, &now);
    }
    if (r < 0) {
        simulate_input_done(&d.in);
        return r;
    }
    *ret_training = ((double)n_training + 0.5) / (double)d.in.n_events;
    *ret = d.in;
    return 0;
}
