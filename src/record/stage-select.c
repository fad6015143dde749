/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/stage-select.h"

#include "base/macros.h"

#define ROOT_PLACES 4U

typedef struct Candidate {
    StageObject o;
    bool is_root, several; /* opened or run by root; opened by several runs, or executed */
    uint32_t run;          /* the first run that opened it */
    size_t first;          /* its first event; 0 for an object that only runs refer to */
    size_t turn;
} Candidate;

/* Compares by user; of one user's objects the likeliest comes first. */
static int compare_likelihood(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;

    if (x->o.user != y->o.user)
        return x->o.user < y->o.user ? -1 : 1;
    if (x->several != y->several)
        return x->several ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->o.object < y->o.object ? -1 : x->o.object > y->o.object;
}

static int compare_turns(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;

    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    if (x->is_root != y->is_root)
        return x->is_root ? -1 : 1;
    return compare_likelihood(a, b);
}

/* Adds an open (or, with `event` NULL, a run) of the object. */
static void add(Candidate *c, uint32_t object, uint16_t user, bool is_root,
                const LoggedEvent *event, size_t at)
{
    if (!c->o.opened && !c->several) {
        *c = (Candidate){
                .o = {.object = object, .user = user},
                .is_root = is_root,
                .several = !event,
                .run = event ? event->run : PROCESS_NONE,
                .first = at,
        };
    } else if (is_root && !c->is_root) {
        c->is_root = true;
        c->o.user = user;
    }
    c->several = c->several || !event || event->run != c->run;
    c->o.opened = c->o.opened || event;
}

int stage_select(const EventLog *log, const ProcessRun *runs, size_t n_runs, UserShares *shares,
                 StageObject **ret, size_t *ret_n)
{
    size_t n_objects = event_log_n_objects(log), n_events, n = 0, turn = 0;
    const LoggedEvent *events = event_log_events(log, &n_events);
    _cleanup_free_ Candidate *c = calloc(n_objects + 1, sizeof(Candidate));
    StageObject *selected;

    if (!c)
        return -ENOMEM;
    for (size_t i = 0; i < n_events; i++) {
        const LoggedEvent *e = &events[i];

        add(&c[e->object], e->object, e->user, shares->users[e->user].uid == 0, e, i);
    }
    for (size_t i = 0; i < n_runs; i++)
        if (runs[i].object != PROCESS_NONE && !runs[i].own)
            add(&c[runs[i].object], runs[i].object, user_shares_row(shares, runs[i].uid),
                runs[i].uid == 0, NULL, 0);
    for (size_t i = 0; i < n_objects; i++)
        if (c[i].o.opened || c[i].several)
            c[n++] = c[i];

    qsort(c, n, sizeof(*c), compare_likelihood);
    for (size_t i = 0; i < n; i++) {
        turn = i > 0 && c[i].o.user == c[i - 1].o.user ? turn + 1 : 0;
        c[i].turn = c[i].is_root ? turn / ROOT_PLACES : turn;
    }
    qsort(c, n, sizeof(*c), compare_turns);

    selected = calloc(n + 1, sizeof(*selected));
    if (!selected)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        selected[i] = c[i].o;
    *ret = selected;
    *ret_n = n;
    return 0;
}
