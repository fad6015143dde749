/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/stage-select.h"

#include "base/macros.h"

#define ROOT_PLACES 4U

/* An open of an object by a user, or a run of the object. */
typedef struct Use {
    uint32_t object, run;
    uint32_t at; /* the number of the event; USE_OF_RUN: a run */
    uint16_t user;
    bool is_root;
} Use;

#define USE_OF_RUN UINT32_MAX

typedef struct Candidate {
    StageObject o;
    bool is_root, several; /* several runs of the user opened it, or one executes it */
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

static int compare_uses(const void *a, const void *b)
{
    const Use *x = a, *y = b;

    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    if (x->is_root != y->is_root)
        return x->is_root ? -1 : 1;
    if (x->user != y->user)
        return x->user < y->user ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Lists all uses, those of one object and user next to each other, and root first. */
static int list_uses(StageRecord *s, const ProcessRun *runs, size_t n_runs, Use **ret,
                     size_t *ret_n)
{
    size_t n_events, n = 0;
    const LoggedEvent *events = event_log_events(s->log, &n_events);
    Use *uses = calloc(n_events + n_runs + 1, sizeof(Use));

    if (!uses)
        return -ENOMEM;
    for (size_t i = 0; i < n_events; i++)
        if (!stage_record_leaves_out(s, events[i].user))
            uses[n++] = (Use){
                    .object = events[i].object,
                    .run = events[i].run,
                    .at = (uint32_t)i,
                    .user = events[i].user,
                    .is_root = s->shares.users[events[i].user].uid == 0,
            };
    for (size_t i = 0; i < n_runs; i++) {
        uint16_t user;

        if (runs[i].object == PROCESS_NONE || runs[i].own)
            continue;
        user = user_shares_row(&s->shares, runs[i].uid);
        if (!stage_record_leaves_out(s, user))
            uses[n++] = (Use){
                    .object = runs[i].object,
                    .at = USE_OF_RUN,
                    .user = user,
                    .is_root = runs[i].uid == 0,
            };
    }
    qsort(uses, n, sizeof(*uses), compare_uses);
    *ret = uses;
    *ret_n = n;
    return 0;
}

/* Makes one candidate of the uses of one object by one user. */
static Candidate make_candidate(const Use *uses, size_t n)
{
    Candidate c = {
            .o = {.object = uses[0].object, .user = uses[0].user},
            .is_root = uses[0].is_root,
            .several = uses[n - 1].at == USE_OF_RUN,
            .first = uses[0].at == USE_OF_RUN ? 0 : uses[0].at,
    };

    for (size_t i = 1; i < n && !c.several; i++)
        c.several = uses[i].run != uses[0].run;
    return c;
}

/* Adds the candidates of one object: root's if root used it, otherwise one for each user. Returns
 * how many there are. */
static size_t add_candidates(const Use *uses, size_t n, Candidate *ret)
{
    bool opened = false;
    size_t n_candidates = 0, k;

    for (size_t i = 0; i < n; i++)
        opened = opened || uses[i].at != USE_OF_RUN;
    for (size_t i = 0; i < n && (i == 0 || !uses[0].is_root); i = k) {
        for (k = i + 1; k < n && uses[k].user == uses[i].user;)
            k++;
        ret[n_candidates] = make_candidate(uses + i, k - i);
        ret[n_candidates++].o.opened = opened;
    }
    return n_candidates;
}

int stage_select(StageRecord *s, const ProcessRun *runs, size_t n_runs, StageObject **ret,
                 size_t *ret_n)
{
    _cleanup_free_ Candidate *c = NULL;
    _cleanup_free_ Use *uses = NULL;
    size_t n_uses, n = 0, turn = 0, k;
    StageObject *selected;
    int r;

    r = list_uses(s, runs, n_runs, &uses, &n_uses);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n_uses; i++)
        n += i == 0 || uses[i].object != uses[i - 1].object || uses[i].user != uses[i - 1].user;
    c = calloc(n + 1, sizeof(Candidate));
    if (!c)
        return -ENOMEM;
    n = 0;
    for (size_t i = 0; i < n_uses; i = k) {
        for (k = i + 1; k < n_uses && uses[k].object == uses[i].object;)
            k++;
        n += add_candidates(uses + i, k - i, c + n);
    }

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
