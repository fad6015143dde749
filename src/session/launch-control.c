/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/launch-control.h"

#include "base/log.h"
#include "base/uid.h"
#include "session/prefetch-hold.h"

#include <pthread.h>

typedef struct Observed {
    LaunchObservation *observation; /* NULL: unused */
    usec_t due;                     /* of its end at the latest, on CLOCK_MONOTONIC */
    usec_t busy;                    /* when tasks waited for I/O last, on CLOCK_MONOTONIC */
    usec_t stalled;                 /* how long tasks had waited then; USEC_INFINITY: not known */
    uint64_t accesses;              /* prefetch_accesses() at its begin */
    bool spoilt;
} Observed;

struct LaunchControls {
    const char *root;
    uint32_t uid;                     /* of the session, or UID_INVALID */
    uint32_t begun[LAUNCH_BEGUN_MAX]; /* the users of the observations that were begun */
    size_t n_begun;
    Observed observed[LAUNCH_CONTROLS_MAX];
    pthread_mutex_t lock; /* guards the members below */
    LaunchUses uses;
    uint64_t n;
};

int launch_controls_new(const char *root, uint32_t uid, LaunchControls **ret)
{
    LaunchControls *c = calloc(1, sizeof(*c));

    if (!c)
        return -ENOMEM;
    c->root = root;
    c->uid = uid;
    pthread_mutex_init(&c->lock, NULL);
    *ret = c;
    return 0;
}

/* Returns the time until which the observed starts hold the prefetch thread; 0: there are none. */
static usec_t latest_due(const LaunchControls *c)
{
    usec_t latest = 0;

    for (size_t i = 0; i < LAUNCH_CONTROLS_MAX; i++)
        if (c->observed[i].observation)
            latest = MAX(latest, c->observed[i].due);
    return latest;
}

LaunchControls *launch_controls_free(LaunchControls *c)
{
    if (!c)
        return NULL;
    prefetch_release(latest_due(c), 0);
    for (size_t i = 0; i < LAUNCH_CONTROLS_MAX; i++)
        launch_observation_free(c->observed[i].observation);
    launch_uses_done(&c->uses);
    pthread_mutex_destroy(&c->lock);
    free(c);
    return NULL;
}

/* Returns how many observations of the user's starts were begun. */
static size_t count_begun(const LaunchControls *c, uint32_t uid)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_begun; i++)
        n += c->begun[i] == uid;
    return n;
}

/* Returns true if the limits allow another observation. Therefore a user who spoils one control
 * start after the other cannot stop the prefetch thread for others, and cannot take all places. */
static bool may_begin(LaunchControls *c, LaunchKey key)
{
    size_t part = c->uid == UID_INVALID ? LAUNCH_USER_PART : 1, n_uses = 0;
    bool known;

    if ((c->uid != UID_INVALID && c->uid != key.uid) || c->n_begun == LAUNCH_BEGUN_MAX ||
        count_begun(c, key.uid) >= LAUNCH_BEGUN_MAX / part)
        return false;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->uses.n; i++)
        n_uses += c->uses.items[i].key.uid == key.uid;
    known = c->uses.n == LAUNCH_USES_MAX || launch_uses_have(&c->uses, key);
    pthread_mutex_unlock(&c->lock);
    return !known && n_uses < LAUNCH_USES_MAX / part;
}

/* Returns a free place, or NULL if there is none for the user or the application is being
 * observed. */
static Observed *find_place(LaunchControls *c, LaunchKey key)
{
    size_t part = c->uid == UID_INVALID ? LAUNCH_USER_PART : 1, n = 0;
    Observed *place = NULL;

    for (size_t i = 0; i < LAUNCH_CONTROLS_MAX; i++) {
        LaunchObservation *o = c->observed[i].observation;
        LaunchKey other = o ? launch_observation_key(o) : (LaunchKey){0};

        if (!o)
            place = &c->observed[i];
        else if (other.uid == key.uid && other.application == key.application)
            return NULL;
        n += o && other.uid == key.uid;
    }
    return n < LAUNCH_CONTROLS_MAX / part ? place : NULL;
}

void launch_controls_begin(LaunchControls *c, LaunchKey key, const VolumeTable *t, char **buf,
                           const Pack *p, usec_t event)
{
    Observed *place = may_begin(c, key) ? find_place(c, key) : NULL;
    Observed o = {
            .due = event + LAUNCH_HELPER_MAX_USEC,
            .busy = event,
            .stalled = USEC_INFINITY,
            .accesses = prefetch_accesses(),
    };
    int r;

    if (!place)
        return;
    c->begun[c->n_begun++] = key.uid;
    prefetch_hold(o.due);
    r = launch_observation_begin(key, c->root, t, buf, p, &o.observation);
    if (r >= 0) {
        *place = o;
        return;
    }
    prefetch_release(o.due, latest_due(c));
    log_debug_errno(r, "headstartd: launch: cannot observe a control start, ignoring: %m");
}

void launch_controls_spoil(LaunchControls *c)
{
    for (size_t i = 0; i < LAUNCH_CONTROLS_MAX; i++)
        c->observed[i].spoilt = true;
}

static void end(LaunchControls *c, Observed *o, const VolumeTable *t)
{
    LaunchUse use = {0};
    int r = o->spoilt || prefetch_accesses() != o->accesses
                    ? -EBUSY
                    : launch_observation_end(o->observation, t, &use);

    if (r < 0)
        log_debug_errno(r, "headstartd: launch: a control start does not count: %m");
    pthread_mutex_lock(&c->lock);
    if (r >= 0 && c->uses.n < LAUNCH_USES_MAX) {
        c->uses.items[c->uses.n++] = use;
        use = (LaunchUse){0};
        c->n++;
    }
    pthread_mutex_unlock(&c->lock);
    launch_use_done(&use);
    o->observation = launch_observation_free(o->observation);
}

/* Returns true if the start is over, or if its observation does not count any more. */
static bool is_over(Observed *o, usec_t now, usec_t stalled)
{
    if (o->spoilt)
        return true;
    if (stalled == USEC_INFINITY)
        return now >= o->due;
    if (o->stalled == USEC_INFINITY || stalled > o->stalled + LAUNCH_QUIET_STALL_USEC) {
        o->stalled = stalled;
        o->busy = now;
    }
    return now >= o->due || now >= o->busy + LAUNCH_QUIET_USEC;
}

usec_t launch_controls_end(LaunchControls *c, const VolumeTable *t, usec_t now, usec_t stalled)
{
    usec_t next = USEC_INFINITY, held_until = latest_due(c);

    for (size_t i = 0; i < LAUNCH_CONTROLS_MAX; i++) {
        Observed *o = &c->observed[i];

        if (o->observation && is_over(o, now, stalled))
            end(c, o, t);
        if (!o->observation)
            continue;
        next = MIN(next,
                   stalled == USEC_INFINITY ? o->due : MIN(o->due, now + LAUNCH_QUIET_LOOK_USEC));
    }
    if (latest_due(c) < held_until)
        prefetch_release(held_until, latest_due(c));
    return next;
}

bool launch_controls_observe(const LaunchControls *c)
{
    for (size_t i = 0; i < LAUNCH_CONTROLS_MAX; i++)
        if (c->observed[i].observation)
            return true;
    return false;
}

void launch_controls_take(LaunchControls *c, LaunchUses *ret)
{
    pthread_mutex_lock(&c->lock);
    *ret = c->uses;
    c->uses = (LaunchUses){0};
    pthread_mutex_unlock(&c->lock);
}

uint64_t launch_controls_n(LaunchControls *c)
{
    uint64_t n;

    pthread_mutex_lock(&c->lock);
    n = c->n;
    pthread_mutex_unlock(&c->lock);
    return n;
}
