/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/macros.h"
#include "base/uid.h"
#include "daemon/stages-internal.h"

#include <signal.h>
#include <string.h>

typedef struct ListSource {
    StageSource base;
    StageCallbacks callbacks;
    Stage stages[_STAGE_MAX];
    size_t n, at;
    sd_event_source *signal;
} ListSource;

static int on_signal(sd_event_source *s _unused_, const struct signalfd_siginfo *si _unused_,
                     void *arg)
{
    ListSource *l = arg;
    StageChange c = {.next = _STAGE_INVALID, .uid = UID_INVALID, .settled_ago = USEC_INFINITY};

    if (l->at < l->n)
        l->at++;
    if (l->at < l->n)
        c.next = l->stages[l->at];
    return l->callbacks.on_change(l->callbacks.arg, &c);
}

static void list_free(StageSource *s)
{
    ListSource *l = (ListSource *)s;

    sd_event_source_disable_unref(l->signal);
}

int stage_source_new_list(sd_event *event, const Stage *stages, size_t n,
                          const StageCallbacks *callbacks, StageSource **ret)
{
    ListSource *l;
    int r;

    if (n == 0 || n > _STAGE_MAX)
        return -EINVAL;
    l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    l->base = (StageSource){.first = stages[0], .free = list_free};
    l->callbacks = *callbacks;
    memcpy(l->stages, stages, n * sizeof(Stage));
    l->n = n;
    r = sd_event_add_signal(event, &l->signal, SIGUSR1, on_signal, l);
    if (r < 0) {
        free(l);
        return r;
    }
    *ret = &l->base;
    return 0;
}
