/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/model-followers.h"
#include "model/model-internal.h"

#include <math.h>
#include <stdlib.h>

/* Two shares of the same sessions differ by less than this. */
#define SHARE_TOLERANCE 1e-6

/* Returns the application whose executable the use of another one shows, if it was started; or
 * NULL. */
static const ModelApplication *find_started(const ModelStage *s, const ModelUse *u)
{
    const ModelApplication *a = model_find_application(s, u->file);

    return a && a != &s->applications[u->application] && !decayed_sum_is_zero(a->launched) ? a
                                                                                           : NULL;
}

void followers_done(Followers *f)
{
    free(f->first_use);
    free(f->helpers);
    free(f->shares);
}

int followers_init(Followers *f, const ModelStage *s)
{
    size_t k = 0;

    f->s = s;
    f->first_use = calloc(s->n_applications + 1, sizeof(size_t));
    f->helpers = calloc(s->n_applications + 1, sizeof(bool));
    f->shares = calloc(s->n_uses + 1, sizeof(double));
    if (!f->first_use || !f->helpers || !f->shares)
        return -ENOMEM;
    for (size_t i = 0; i <= s->n_applications; i++) {
        while (k < s->n_uses && s->uses[k].application < i)
            k++;
        f->first_use[i] = k;
    }
    for (size_t i = 0; i < s->n_uses; i++) {
        const ModelApplication *a = find_started(s, &s->uses[i]);

        if (a && decayed_sum_ratio(s->uses[i].launched, a->launched) >= HELPER_SHARE_MIN)
            f->helpers[a - s->applications] = true;
    }
    return 0;
}

/* Returns the application that the use shows as a follower, or NULL. */
static const ModelApplication *find_follower(const Followers *f, const ModelUse *u,
                                             const uint32_t *executed, size_t n_executed)
{
    const ModelStage *s = f->s;
    const ModelApplication *a = find_started(s, u), *own = &s->applications[u->application];

    if (!a || decayed_sum_is_zero(u->launched) || f->helpers[a - s->applications] ||
        decayed_sum_ratio(u->launched, own->launched) >= HELPER_SHARE_MIN)
        return NULL;
    for (size_t i = 0; i < n_executed; i++)
        if (executed[i] == (uint32_t)(a - s->applications))
            return NULL;
    return a;
}

/* Notes that a follower starts in that share of the starts, if it usually opens the file. */
static void note_use(Followers *f, const ModelUse *own, const ModelUse *of_follower, double share)
{
    const ModelStage *s = f->s;

    if (own && of_follower &&
        decayed_sum_ratio(of_follower->launched,
                          s->applications[of_follower->application].launched) >= HELPER_SHARE_MIN)
        f->shares[own - s->uses] = fmax(f->shares[own - s->uses], share);
}

/* Notes the files that both open. Looks up each use of the one that has fewer uses, so that a
 * program with very many uses does not make each other one slow. */
static void note_follower(Followers *f, uint32_t own, uint32_t follower, double share)
{
    const ModelStage *s = f->s;
    size_t first = f->first_use[own], end = f->first_use[own + 1];
    size_t of_first = f->first_use[follower], of_end = f->first_use[follower + 1];

    if (end - first <= of_end - of_first)
        for (size_t i = first; i < end; i++)
            note_use(f, &s->uses[i], model_find_use(s, follower, s->uses[i].file), share);
    else
        for (size_t i = of_first; i < of_end; i++)
            note_use(f, model_find_use(s, own, s->uses[i].file), &s->uses[i], share);
}

void followers_note(Followers *f, uint32_t application, const uint32_t *executed, size_t n_executed)
{
    const ModelStage *s = f->s;

    for (size_t i = f->first_use[application]; i < f->first_use[application + 1]; i++) {
        const ModelApplication *a = find_follower(f, &s->uses[i], executed, n_executed);

        if (a)
            note_follower(
                    f, application, (uint32_t)(a - s->applications),
                    decayed_sum_ratio(s->uses[i].launched, s->applications[application].launched));
    }
}

double followers_share(const Followers *f, const ModelUse *u)
{
    double share = decayed_sum_ratio(u->launched, f->s->applications[u->application].launched);
    double explained = f->shares[u - f->s->uses];

    return !u->touched && share <= explained + SHARE_TOLERANCE ? 0 : share;
}
