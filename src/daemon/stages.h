/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who says when a stage ends and the next begins. A source calls back from the event loop; the
 * daemon acts. Sources: a list of stages stepped through by SIGUSR1 (for a tree that is not this
 * machine's own), and the system itself (stages-system.c). */

#include "base/time-util.h"
#include "base/vocabulary.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* The current stage has ended; `next` begins (_STAGE_INVALID: nothing more is to be recorded).
 * `uid` is the user of a login or session, UINT32_MAX otherwise. */
typedef int (*stage_changed_t)(void *arg, Stage next, uint32_t uid);

typedef struct StageSource StageSource;

/* Steps through the stages at each SIGUSR1. SIGUSR1 must be blocked. 0 or a negative errno. */
int stage_source_new_list(sd_event *event, const Stage *stages, size_t n, stage_changed_t changed,
                          void *arg, StageSource **ret);
StageSource *stage_source_free(StageSource *s);

/* The stage to begin with. */
Stage stage_source_first(const StageSource *s);
