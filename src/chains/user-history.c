/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "chains/user-history.h"

#include <string.h>

UserHistory *user_history_free(UserHistory *h)
{
    if (!h)
        return NULL;
    for (size_t i = 0; i < h->n_applications; i++)
        free(h->applications[i].neighbours);
    free(h->applications);
    free(h->index);
    free(h->pairs);
    session_log_done(&h->log);
    free(h);
    return NULL;
}

int user_history_new(uint32_t user, UserHistory **ret)
{
    UserHistory *h = calloc(1, sizeof(*h));
    int r;

    if (!h)
        return -ENOMEM;
    h->user = user;
    r = grow_array(&h->applications, &h->allocated_applications, 1, sizeof(*h->applications));
    if (r < 0) {
        free(h);
        return r;
    }
    h->applications[h->n_applications++] = (ChainsApplication){.id = CHAINS_NONE};
    *ret = h;
    return 0;
}

int user_history_add(UserHistory *h, uint32_t id, uint32_t *ret)
{
    size_t old = h->allocated_index;
    int r;

    if (id >= CHAINS_IDS_MAX)
        return -E2BIG;
    r = grow_array(&h->index, &h->allocated_index, (size_t)id + 1, sizeof(*h->index));
    if (r < 0)
        return r;
    if (h->allocated_index > old)
        memset(h->index + old, 0xff, (h->allocated_index - old) * sizeof(*h->index));
    if (h->index[id] != CHAINS_NONE) {
        *ret = h->index[id];
        return 0;
    }
    r = grow_array(&h->applications, &h->allocated_applications, h->n_applications + 1,
                   sizeof(*h->applications));
    if (r < 0)
        return r;
    h->applications[h->n_applications] = (ChainsApplication){.id = id};
    h->index[id] = (uint32_t)h->n_applications;
    *ret = (uint32_t)h->n_applications++;
    return 0;
}

void chains_history_sums(UserHistory *h, DecayedSum *ret[static CHAINS_HISTORY_SUMS])
{
    ret[0] = &h->time;
    ret[1] = &h->sessions;
    for (size_t i = 0; i < CHAINS_AGES; i++) {
        ret[2 + 2 * i] = &h->age_time[i];
        ret[3 + 2 * i] = &h->age_ended[i];
    }
    expert_weights_sums(&h->weights, ret + 2 + 2 * CHAINS_AGES);
}

void chains_application_sums(ChainsApplication *a, DecayedSum *ret[static CHAINS_APPLICATION_SUMS])
{
    DecayedSum *all[CHAINS_APPLICATION_SUMS] = {
            &a->starts, &a->exits, &a->on, &a->sessions, &a->last, &a->next_self, &a->last_self};

    memcpy(ret, all, sizeof(all));
}

void chains_pair_sums(ChainsPair *p, bool swapped, DecayedSum *ret[static CHAINS_PAIR_SUMS])
{
    unsigned a = swapped, b = !swapped;
    DecayedSum *all[CHAINS_PAIR_SUMS] = {
            &p->both,
            &p->starts[a],
            &p->starts[b],
            &p->exits[a],
            &p->exits[b],
            &p->next[a],
            &p->next[b],
            &p->last[a],
            &p->last[b],
            &p->before_time,
            &p->before_on[a],
            &p->before_on[b],
            &p->before_starts[a],
            &p->before_starts[b],
            &p->before_exits[a],
            &p->before_exits[b],
    };

    memcpy(ret, all, sizeof(all));
}

static void shorten(DecayedSum *f)
{
    *f = decayed_sum_shorten_time(*f);
}

void user_history_shorten_sums(UserHistory *h)
{
    DecayedSum *credits[EXPERT_SUMS];

    shorten(&h->time);
    for (size_t i = 0; i < CHAINS_AGES; i++)
        shorten(&h->age_time[i]);
    expert_weights_sums(&h->weights, credits);
    for (size_t i = 0; i < EXPERT_SUMS; i++)
        shorten(credits[i]);
    for (size_t i = 0; i < h->n_applications; i++) {
        shorten(&h->applications[i].on);
        shorten(&h->applications[i].last);
        shorten(&h->applications[i].last_self);
    }
    for (size_t i = 0; i < h->n_pairs; i++) {
        ChainsPair *p = &h->pairs[i];

        shorten(&p->both);
        shorten(&p->before_time);
        for (unsigned k = 0; k < 2; k++) {
            shorten(&p->last[k]);
            shorten(&p->before_on[k]);
        }
    }
}

void user_history_each_sum(UserHistory *h, DecayedSum (*f)(DecayedSum, uint64_t), uint64_t argument)
{
    DecayedSum *sums[MAX(CHAINS_PAIR_SUMS, CHAINS_HISTORY_SUMS)];

    chains_history_sums(h, sums);
    for (size_t j = 0; j < CHAINS_HISTORY_SUMS; j++)
        *sums[j] = f(*sums[j], argument);
    for (size_t i = 0; i < h->n_applications; i++) {
        chains_application_sums(&h->applications[i], sums);
        for (size_t j = 0; j < CHAINS_APPLICATION_SUMS; j++)
            *sums[j] = f(*sums[j], argument);
    }
    for (size_t i = 0; i < h->n_pairs; i++) {
        chains_pair_sums(&h->pairs[i], false, sums);
        for (size_t j = 0; j < CHAINS_PAIR_SUMS; j++)
            *sums[j] = f(*sums[j], argument);
    }
}

/* Copies the whole allocation of an array. Returns 0 or -ENOMEM. */
static int copy_array(void *ret, const void *from, size_t allocated, size_t size)
{
    void **to = ret;

    *to = NULL;
    if (allocated == 0)
        return 0;
    *to = reallocarray(NULL, allocated, size);
    if (!*to)
        return -ENOMEM;
    memcpy(*to, from, allocated * size);
    return 0;
}

int user_history_copy(const UserHistory *h, UserHistory **ret)
{
    UserHistory *x = malloc(sizeof(*x));
    int r;

    if (!x)
        return -ENOMEM;
    *x = *h;
    x->applications = NULL;
    x->index = NULL;
    x->pairs = NULL;
    x->log = (SessionLog){0};
    x->n_applications = 0;
    r = copy_array(&x->index, h->index, h->allocated_index, sizeof(*h->index));
    if (r >= 0)
        r = copy_array(&x->pairs, h->pairs, h->allocated_pairs, sizeof(*h->pairs));
    if (r >= 0)
        r = session_log_copy(&h->log, &x->log);
    if (r >= 0)
        r = copy_array(&x->applications, h->applications, h->allocated_applications,
                       sizeof(*h->applications));
    for (size_t i = 0; r >= 0 && i < h->n_applications; i++) {
        const ChainsApplication *a = &h->applications[i];

        r = copy_array(&x->applications[i].neighbours, a->neighbours, a->allocated_neighbours,
                       sizeof(*a->neighbours));
        x->n_applications = i + 1; /* the applications after it still point into the original */
    }
    if (r < 0) {
        user_history_free(x);
        return r;
    }
    *ret = x;
    return 0;
}

size_t user_history_size(const UserHistory *h)
{
    size_t n = sizeof(*h) + h->allocated_applications * sizeof(*h->applications) +
               h->allocated_pairs * sizeof(*h->pairs) + h->allocated_index * sizeof(*h->index) +
               session_log_size(&h->log);

    for (size_t i = 0; i < h->n_applications; i++)
        n += h->applications[i].allocated_neighbours * sizeof(Neighbour);
    return n;
}
