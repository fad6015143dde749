/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/stages-internal.h"

#include "base/macros.h"

#include <signal.h>
#include <string.h>

typedef struct ListSource {
    StageSource base;
    Stage stages[_STAGE_MAX];
    size_t n, at;
    sd_event_source *signal;
} ListSource;

static int on_next(sd_event_source *s _unused_, const struct signalfd_siginfo *si _unused_,
                   void *arg)
{
    ListSource *l = arg;

    if (l->at < l->n)
        l->at++;
    return l->base.changed(l->base.arg,
                           &(StageChange){
                                   .next = l->at < l->n ? l->stages[l->at] : _STAGE_INVALID,
                                   .uid = UID_INVALID,
                           });
}

static void list_free(StageSource *s)
{
    ListSource *l = (ListSource *)s;

    sd_event_source_disable_unref(l->signal);
}

int stage_source_new_list(sd_event *event, const Stage *stages, size_t n, stage_changed_t changed,
                          void *arg, StageSource **ret)
{
    ListSource *l;
    int r;

    if (n == 0 || n > _STAGE_MAX)
        return -EINVAL;
    l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    l->base = (StageSource){.first = stages[0], .changed = changed, .arg = arg, .free = list_free};
    memcpy(l->stages, stages, n * sizeof(Stage));
    l->n = n;
    r = sd_event_add_signal(event, &l->signal, SIGUSR1, on_next, l);
    if (r < 0) {
        free(l);
        return r;
    }
    *ret = &l->base;
    return 0;
}
