/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A baseline. The probability is the share of this user's sessions that started the application, by
 * the estimate of Krichevsky and Trofimov (1981). For a user without a session it is the share of
 * all users' sessions. The time within the session has no influence. */

#include "evaluate/predictor-internal.h"

#include <string.h>

typedef struct Shares {
    uint32_t user;
    double n_sessions;
    double *counts; /* by item: number of sessions that started it */
    size_t allocated;
} Shares;

typedef struct SessionShare {
    Predictor base;
    Shares *users; /* [0]: everybody */
    size_t n_users, allocated_users;
    size_t user;      /* of the current session */
    uint32_t *latest; /* by item: the last session that started it */
    size_t allocated_latest;
    uint32_t session;
    RunningSet running;
} SessionShare;

static int find_user(SessionShare *s, uint32_t user, size_t *ret)
{
    int r;

    for (size_t i = 0; i < s->n_users; i++)
        if (s->users[i].user == user) {
            *ret = i;
            return 0;
        }
    r = grow_array(&s->users, &s->allocated_users, s->n_users + 1, sizeof(*s->users));
    if (r < 0)
        return r;
    s->users[s->n_users] = (Shares){.user = user};
    *ret = s->n_users++;
    return 0;
}

static void session_share_done(Predictor *p)
{
    SessionShare *s = (SessionShare *)p;

    for (size_t i = 0; i < s->n_users; i++)
        free(s->users[i].counts);
    free(s->users);
    free(s->latest);
    running_set_done(&s->running);
}

static int session_share_init(Predictor *p, const PredictorParameters *parameters, uint64_t seed)
{
    SessionShare *s = (SessionShare *)p;

    return find_user(s, UID_INVALID, &s->user);
}

static int session_share_begin(Predictor *p, usec_t now, uint32_t user)
{
    SessionShare *s = (SessionShare *)p;

    s->session++;
    return find_user(s, user, &s->user);
}

static int session_share_end(Predictor *p, usec_t now)
{
    SessionShare *s = (SessionShare *)p;

    running_set_clear(&s->running);
    s->users[0].n_sessions++;
    if (s->user != 0)
        s->users[s->user].n_sessions++;
    return 0;
}

static int count_session(Shares *x, uint32_t item)
{
    int r = grow_array_zeroed(&x->counts, &x->allocated, (size_t)item + 1, sizeof(*x->counts));

    if (r < 0)
        return r;
    x->counts[item]++;
    return 0;
}

static int session_share_observe(Predictor *p, const PredictorEvent *e)
{
    SessionShare *s = (SessionShare *)p;
    int r;

    if (e->kind == PREDICTOR_EXIT) {
        running_set_exit(&s->running, e->item);
        return 0;
    }
    r = e->kind == PREDICTOR_START ? running_set_start(&s->running, e->item) : 1;
    if (r <= 0)
        return r;
    r = grow_array_zeroed(&s->latest, &s->allocated_latest, (size_t)e->item + 1,
                          sizeof(*s->latest));
    if (r < 0)
        return r;
    if (s->latest[e->item] == s->session)
        return 0;
    s->latest[e->item] = s->session;
    r = count_session(&s->users[0], e->item);
    if (r >= 0 && s->user != 0)
        r = count_session(&s->users[s->user], e->item);
    return r;
}

static int session_share_predict(Predictor *p, usec_t now, usec_t horizon, Guesses *guesses)
{
    const SessionShare *s = (const SessionShare *)p;
    const Shares *x = &s->users[s->users[s->user].n_sessions > 0 ? s->user : 0];

    for (size_t i = 0; i < x->allocated && x->n_sessions > 0; i++)
        if (!running_set_contains(&s->running, (uint32_t)i)) {
            int r = guesses_add(guesses, (uint32_t)i, (x->counts[i] + 0.5) / (x->n_sessions + 1));

            if (r < 0)
                return r;
        }
    return 0;
}

static size_t session_share_size(const Predictor *p)
{
    const SessionShare *s = (const SessionShare *)p;
    size_t n = s->allocated_latest * sizeof(*s->latest);

    for (size_t i = 0; i < s->n_users; i++)
        n += sizeof(Shares) + s->users[i].allocated * sizeof(*s->users[i].counts);
    return n;
}

const PredictorOps predictor_ops_session_share = {
        .name = "session-share",
        .source = "the share of this user's sessions that started it",
        PREDICTOR_OPS(session_share, SessionShare),
        .init = session_share_init,
        .begin = session_share_begin,
};
