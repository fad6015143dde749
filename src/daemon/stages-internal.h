/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The first member of every stage source. */

#include "daemon/stages.h"

struct StageSource {
    Stage first;
    int (*start_unit)(StageSource *s, const char *unit); /* NULL: the source cannot */
    BootTimes (*boot_times)(const StageSource *s);       /* NULL: the source does not know them */
    void (*free)(StageSource *s);                        /* frees the members, not the struct */
};
