/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who says when a stage ends and the next begins. A source calls back from the event loop; the
 * daemon acts. Sources: a list of stages stepped through by SIGUSR1 (for a tree that is not this
 * machine's own), and the system itself (stages-system.c). */

#include "base/time-util.h"
#include "base/uid.h"
#include "base/vocabulary.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct StageChange {
    /* What begins, the current stage having ended: a stage, STAGE_PAUSE (nothing yet),
     * _STAGE_INVALID (nothing more: the daemon's work is done), STAGE_SHARED or STAGE_ENOUGH. */
    Stage next;
    uint32_t uid; /* of a login or session; UID_INVALID: of nobody in particular */
    bool drop;    /* what has ended did not come to its end: no trace */
    bool others;  /* a session that begins: users other than `uid` are logged in, too */
} StageChange;

#define STAGE_PAUSE  ((Stage)_STAGE_MAX)
#define STAGE_SHARED ((Stage)(_STAGE_MAX + 1)) /* the current stage goes on, as nobody's own */
#define STAGE_ENOUGH ((Stage)(_STAGE_MAX + 2)) /* it goes on, but enough of it was recorded */

typedef int (*stage_changed_t)(void *arg, const StageChange *c);

typedef struct StageSource StageSource;

/* Steps through the stages at each SIGUSR1. SIGUSR1 must be blocked. 0 or a negative errno. */
int stage_source_new_list(sd_event *event, const Stage *stages, size_t n, stage_changed_t changed,
                          void *arg, StageSource **ret);

/* What the system source tells and asks; all get `arg`. */
typedef struct StageCallbacks {
    stage_changed_t changed;
    void (*waits_for)(void *arg, const char *what); /* for people; a static text */
    uint64_t (*n_starts)(void *arg);                /* applications started so far */
    void *arg;
} StageCallbacks;

/* Follows systemd and logind over the system bus ($DBUS_SYSTEM_BUS_ADDRESS), as soon as there is
 * one and whenever it comes back; begins with boot. Never blocks. /proc and /sys are read below
 * root_fd (AT_FDCWD: "/"), which it borrows. 0 or a negative errno. */
int stage_source_new_system(sd_event *event, int root_fd, const StageCallbacks *callbacks,
                            StageSource **ret);
StageSource *stage_source_free(StageSource *s);

/* Asks systemd to start a unit, and does not wait for an answer. 0, -EOPNOTSUPP (this source knows
 * no systemd), -ENOTCONN, or another negative errno of sending it. */
int stage_source_start_unit(StageSource *s, const char *unit);

/* The stage to begin with. */
Stage stage_source_first(const StageSource *s);
