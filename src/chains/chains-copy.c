/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Copies chains that are being learned, so that they can be saved while learning continues. */

#include "chains/chains-internal.h"

#include <string.h>

/* Copies the session's state of the applications. In the copied session, each history is replaced
 * by the history of the same user in the copy. */
static int copy_session(const Chains *c, Chains *x)
{
    const ChainsSession *s = &c->session;

    x->session.applications = calloc(s->allocated_applications + 1, sizeof(*s->applications));
    x->session.running = calloc(s->allocated_running + 1, sizeof(*s->running));
    x->session.starts = calloc(s->allocated_starts + 1, sizeof(*s->starts));
    if (!x->session.applications || !x->session.running || !x->session.starts)
        return -ENOMEM;
    if (s->n_starts > 0)
        memcpy(x->session.starts, s->starts, s->n_starts * sizeof(*s->starts));
    if (s->allocated_applications > 0)
        memcpy(x->session.applications, s->applications,
               s->allocated_applications * sizeof(*s->applications));
    if (s->n_running > 0)
        memcpy(x->session.running, s->running, s->n_running * sizeof(*s->running));
    for (size_t i = 0; i < s->n_histories; i++)
        x->session.histories[i] = chains_find_history(x, s->histories[i]->user);
    return 0;
}

int chains_copy_ended(const Chains *c, Chains **ret)
{
    _cleanup_chains_ Chains *x = calloc(1, sizeof(*x));
    int r = 0;

    if (!x)
        return -ENOMEM;
    *x = *c;
    x->histories = NULL;
    x->names = (Names){0};
    x->n_histories = x->allocated_histories = 0;
    x->session.applications = NULL;
    x->session.running = NULL;
    x->session.starts = NULL;
    for (size_t i = 0; r >= 0 && i < c->names.n; i++) {
        uint32_t id;

        r = chains_add_name(x, c->names.names[i], &id);
    }
    if (r >= 0)
        r = grow_array(&x->histories, &x->allocated_histories, c->n_histories,
                       sizeof(UserHistory *));
    for (size_t i = 0; r >= 0 && i < c->n_histories; i++) {
        r = user_history_copy(c->histories[i], &x->histories[i]);
        if (r >= 0)
            x->n_histories = i + 1;
    }
    if (r >= 0)
        r = copy_session(c, x);
    if (r < 0)
        return r;
    r = chains_end(x);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(x);
    return 0;
}
