/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What every stage source begins with. */

#include "daemon/stages.h"

struct StageSource {
    Stage first;
    stage_changed_t changed;
    void *arg;
    int (*start_unit)(StageSource *s, const char *unit); /* NULL: nobody to ask */
    void (*free)(StageSource *s);                        /* what is its own, not the struct */
};
