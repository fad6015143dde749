/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "evaluate/habits-internal.h"
#include "evaluate/predictor-internal.h"

#include <string.h>

#define DRAWS_MAX 1000

/* The state of a session, on which alone the future depends. */
typedef struct HabitsState {
    unsigned last; /* index of the application started last; n: none yet */
    bool running[APPLICATIONS_MAX];
    unsigned order[APPLICATIONS_MAX]; /* the running applications */
    unsigned n_running;
    double at_usec; /* since the session began */
} HabitsState;

void habits_parameters_init(HabitsParameters *p)
{
    *p = (HabitsParameters){
            .n_users = 2,
            .n_own = 9,
            .n_shared = 3,
            .n_desktop = 2,
            .last_share = 0.7,
            .popularity = 0.3,
            .regularity = 2,
            .think = 60 * USEC_PER_SEC,
            .session_minimum = 20 * 60 * USEC_PER_SEC,
            .session_mean = 40 * 60 * USEC_PER_SEC,
    };
}

Habits *habits_free(Habits *h)
{
    if (!h)
        return NULL;
    simulate_input_done(&h->objects);
    free(h->users);
    free(h);
    return NULL;
}

double habits_best_guess(const Habits *h)
{
    return h->best_guess;
}

uint64_t habits_union_bytes(const Habits *h)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < h->objects.n_objects; i++)
        sum += h->objects.object_bytes[i];
    return sum;
}

/* Computes for each application the true probability that the user turns to it next. */
static void turn_weights(const Habits *h, const HabitsUser *u, const HabitsState *s, double *ret)
{
    const double *last = s->last < u->n ? u->applications[s->last].weights : u->first;
    double share = s->n_running > 0 ? h->p.last_share : 1;

    for (unsigned b = 0; b < u->n; b++) {
        ret[b] = share * last[b];
        for (unsigned i = 0; i < s->n_running; i++)
            ret[b] += (1 - share) / s->n_running * u->applications[s->order[i]].weights[b];
    }
}

static void state_start(HabitsState *s, unsigned a)
{
    s->running[a] = true;
    s->order[s->n_running++] = a;
    s->last = a;
}

static void state_exit(HabitsState *s, unsigned a)
{
    s->running[a] = false;
    for (unsigned i = 0; i < s->n_running; i++)
        if (s->order[i] == a) {
            memmove(s->order + i, s->order + i + 1, (s->n_running - i - 1) * sizeof(*s->order));
            s->n_running--;
            return;
        }
}

/* Advances the state to the next start or exit. Returns 1 if the application *ret started, 0 if it
 * exited, -ETIME if the session ended first. */
static int state_step(const Habits *h, const HabitsUser *u, HabitsState *s, double end_usec,
                      Random *random, unsigned *ret)
{
    for (;;) {
        double exits = 0, turns = 1 / (double)h->p.think, pick;

        for (unsigned i = 0; i < s->n_running; i++)
            if (u->applications[s->order[i]].run_mean_usec > 0)
                exits += 1 / u->applications[s->order[i]].run_mean_usec;
        s->at_usec += random_exponential(random, 1 / (exits + turns));
        if (s->at_usec >= end_usec)
            return -ETIME;
        pick = random_uniform(random) * (exits + turns);
        if (pick < turns) {
            double weights[APPLICATIONS_MAX], x = random_uniform(random);
            unsigned b = 0;

            turn_weights(h, u, s, weights);
            while (b + 1 < u->n && x >= weights[b])
                x -= weights[b++];
            if (s->running[b])
                continue;
            state_start(s, b);
            *ret = b;
            return 1;
        }
        pick -= turns;
        for (unsigned i = 0; i < s->n_running; i++) {
            unsigned a = s->order[i];
            double rate =
                    u->applications[a].run_mean_usec > 0 ? 1 / u->applications[a].run_mean_usec : 0;

            if (pick < rate || i + 1 == s->n_running) {
                if (rate <= 0)
                    continue;
                state_exit(s, a);
                *ret = a;
                return 0;
            }
            pick -= rate;
        }
    }
}

static double draw_length(const Habits *h, Random *random)
{
    return (double)h->p.session_minimum + random_exponential(random, (double)h->p.session_mean);
}

/* Measures how often the best guess is right, over simulated sessions of each user. */
static double measure_best_guess(const Habits *h, uint64_t seed)
{
    Random random = {seed};
    double right = 0;
    size_t n = 0;

    for (unsigned i = 0; i < h->p.n_users; i++)
        for (unsigned k = 0; k < 20; k++) {
            const HabitsUser *u = &h->users[i];
            HabitsState s = {.last = u->n};
            double end = draw_length(h, &random), best, weights[APPLICATIONS_MAX];
            unsigned which;
            int r;

            for (;;) {
                double sum = 0;

                turn_weights(h, u, &s, weights);
                best = 0;
                for (unsigned b = 0; b < u->n; b++)
                    if (!s.running[b]) {
                        sum += weights[b];
                        best = MAX(best, weights[b]);
                    }
                r = state_step(h, u, &s, end, &random, &which);
                if (r < 0)
                    break;
                if (r > 0 && sum > 0) {
                    right += best / sum;
                    n++;
                }
            }
        }
    return n > 0 ? right / (double)n : 0;
}

static void draw_user(const Habits *h, HabitsUser *u, Random *random)
{
    double popularity[APPLICATIONS_MAX];
    unsigned rank[APPLICATIONS_MAX];

    for (unsigned i = 0; i < u->n; i++)
        rank[i] = i;
    for (unsigned i = u->n; i > 1; i--) {
        unsigned j = random_below(random, i), t = rank[i - 1];

        rank[i - 1] = rank[j];
        rank[j] = t;
    }
    for (unsigned i = 0; i < u->n; i++)
        popularity[i] = pow(1 + rank[i], -h->p.popularity);
    for (unsigned a = 0; a <= u->n; a++) {
        double *w = a < u->n ? u->applications[a].weights : u->first;

        for (unsigned b = 0; b < u->n; b++)
            w[b] = a == b ? 0 : popularity[b] * pow(random_gamma(random, 1), h->p.regularity);
        habits_normalise(w, u->n);
        /* This keeps every weight above zero. */
        for (unsigned b = 0; b < u->n; b++)
            w[b] = 0.95 * w[b] + 0.05 / u->n;
        habits_normalise(w, u->n);
    }
    for (unsigned a = 0; a < u->n; a++)
        u->applications[a].run_mean_usec =
                random_uniform(random) < 0.15
                        ? 0
                        : 60e6 * exp(random_uniform(random) * log(20)); /* 1 to 20 minutes */
}

int habits_new(const HabitsParameters *parameters, uint64_t seed, Habits **ret)
{
    _cleanup_habits_ Habits *h = NULL;
    const HabitsParameters *p = parameters;
    Random random = {seed};
    int r;

    if (p->n_users < 1 || p->n_users > USERS_MAX || p->n_own > APPLICATIONS_MAX / 2 ||
        p->n_shared > APPLICATIONS_MAX / 2 || p->n_own + p->n_shared < 2 || p->n_desktop > 8 ||
        !(p->last_share >= 0 && p->last_share <= 1) ||
        !(p->regularity >= 0 && p->regularity <= 16) || p->think == 0)
        return -EINVAL;
    for (unsigned draw = 0; draw < DRAWS_MAX; draw++) {
        habits_free(TAKE_PTR(h));
        h = calloc(1, sizeof(*h));
        if (!h)
            return -ENOMEM;
        h->p = *p;
        h->users = calloc(p->n_users, sizeof(*h->users));
        if (!h->users)
            return -ENOMEM;
        r = habits_draw_tables(h, &random);
        if (r < 0)
            return r;
        h->n_items = (uint32_t)h->objects.n_items;
        for (unsigned i = 0; i < p->n_users; i++)
            draw_user(h, &h->users[i], &random);
        h->best_guess = measure_best_guess(h, random_uint64(&random));
        if (h->best_guess >= HABITS_GUESS_MIN && h->best_guess <= HABITS_GUESS_MAX) {
            h->p.real = NULL;
            *ret = TAKE_PTR(h);
            return 0;
        }
    }
    return -ERANGE;
}

static int emit(SimulateInput *in, double at_usec, uint32_t user, uint32_t item,
                SimulateEventKind kind)
{
    return simulate_add_event(
            in, &(SimulateEvent){.at = (usec_t)at_usec, .user = user, .item = item, .kind = kind});
}

static int draw_session(const Habits *h, unsigned user, double start_usec, Random *random,
                        SimulateInput *in, double *ret_end_usec)
{
    const HabitsUser *u = &h->users[user];
    HabitsState s = {.last = u->n};
    double end = draw_length(h, random);
    int r;

    r = emit(in, start_usec, user, 0, SIMULATE_BEGIN);
    for (unsigned j = 0; r >= 0 && j < h->p.n_desktop; j++)
        r = emit(in, start_usec + 1e6 * (j + 1), user, u->desktop[j], SIMULATE_START);
    s.at_usec = 1e6 * (h->p.n_desktop + 1);
    while (r >= 0) {
        unsigned which;

        r = state_step(h, u, &s, end, random, &which);
        if (r < 0)
            break;
        r = emit(in, start_usec + s.at_usec, user, u->applications[which].item,
                 r > 0 ? SIMULATE_START : SIMULATE_EXIT);
    }
    if (r != -ETIME)
        return r;
    *ret_end_usec = start_usec + end;
    return emit(in, start_usec + end, user, 0, SIMULATE_END);
}

int habits_sessions(const Habits *h, uint32_t user, size_t n_sessions, uint64_t seed,
                    SimulateInput *ret)
{
    _cleanup_simulate_input_ SimulateInput in = {0};
    Random random = {seed};
    double now = 1e6;
    uint32_t i;
    int r;

    if (user != UID_INVALID && user >= h->p.n_users)
        return -EINVAL;

    for (size_t o = 0; o < h->objects.n_objects; o++) {
        r = simulate_add_object(&in, h->objects.object_bytes[o], &i);
        if (r < 0)
            return r;
    }
    for (size_t k = 0; k < h->objects.n_items; k++) {
        const ItemParts *it = &h->objects.items[k];

        r = simulate_add_item(&in, h->objects.parts + it->first, it->n, &i);
        if (r < 0)
            return r;
    }
    for (size_t k = 0; k < n_sessions; k++) {
        r = draw_session(h, user == UID_INVALID ? random_below(&random, h->p.n_users) : user, now,
                         &random, &in, &now);
        if (r < 0)
            return r;
        now += 1e6;
    }
    *ret = in;
    in = (SimulateInput){0};
    return 0;
}

/* The oracle */

typedef struct Oracle {
    Predictor base;
    const Habits *h;
    unsigned n_futures;
    Random random;
    unsigned user; /* n_users: unknown */
    HabitsState state;
    usec_t session_start;
} Oracle;

static int oracle_begin(Predictor *p, usec_t now, uint32_t user)
{
    Oracle *o = (Oracle *)p;

    o->user = MIN(user, o->h->p.n_users);
    o->state = (HabitsState){.last = user < o->h->p.n_users ? o->h->users[user].n : 0};
    o->session_start = now;
    return 0;
}

static int oracle_observe(Predictor *p, const PredictorEvent *e)
{
    Oracle *o = (Oracle *)p;
    const HabitsUser *u;

    if (o->user >= o->h->p.n_users)
        return 0;
    u = &o->h->users[o->user];
    for (unsigned a = 0; a < u->n; a++) {
        if (u->applications[a].item != e->item)
            continue;
        if (e->kind == PREDICTOR_START && !o->state.running[a])
            state_start(&o->state, a);
        else if (e->kind == PREDICTOR_EXIT && o->state.running[a])
            state_exit(&o->state, a);
    }
    return 0;
}

static int oracle_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    Oracle *o = (Oracle *)p;
    const HabitsUser *u;
    unsigned came[APPLICATIONS_MAX] = {0};
    double weights[APPLICATIONS_MAX];

    if (o->user >= o->h->p.n_users)
        return 0;
    u = &o->h->users[o->user];
    o->state.at_usec = (double)(now - o->session_start);
    for (unsigned k = 0; horizon == USEC_INFINITY && k < o->n_futures; k++) {
        HabitsState s = o->state;
        bool started[APPLICATIONS_MAX] = {false};
        /* However long a session has lasted, its rest beyond the minimum is exponentially
         * distributed. */
        double end = MAX(s.at_usec, (double)o->h->p.session_minimum) +
                     random_exponential(&o->random, (double)o->h->p.session_mean);
        unsigned which;
        int r;

        while ((r = state_step(o->h, u, &s, end, &o->random, &which)) >= 0)
            if (r > 0 && !started[which]) {
                started[which] = true;
                came[which]++;
            }
    }
    turn_weights(o->h, u, &o->state, weights);
    for (unsigned b = 0; b < u->n; b++) {
        double probability = -expm1(-weights[b] * (double)horizon / (double)o->h->p.think);
        int r;

        if (o->state.running[b])
            continue;
        if (horizon == USEC_INFINITY)
            probability = ((double)came[b] + 0.5) / (o->n_futures + 1.0);
        r = guesses_add(guesses, u->applications[b].item, probability);
        if (r < 0)
            return r;
    }
    return 0;
}

static size_t oracle_size(const Predictor *p)
{
    return 0;
}

static const PredictorOps oracle_ops = {
        .name = "oracle",
        .source = "the habits' true probabilities",
        .begin = oracle_begin,
        .observe = oracle_observe,
        .predict = oracle_predict,
        .size = oracle_size,
};

int habits_oracle_new(const Habits *h, unsigned n_futures, uint64_t seed, Predictor **ret)
{
    Oracle *o = calloc(1, sizeof(*o));

    if (!o)
        return -ENOMEM;
    o->base.ops = &oracle_ops;
    o->h = h;
    o->n_futures = n_futures;
    o->random = (Random){seed};
    o->user = h->p.n_users;
    *ret = &o->base;
    return 0;
}
