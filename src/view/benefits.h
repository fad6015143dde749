/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Computes what replay gains, from the history. */

#include "command/cli.h"
#include "measure/benefit.h"
#include "measure/history.h"

#define INTERVAL_UNPLANNED INT64_C(-1)
#define INTERVAL_HIDDEN    INT64_C(-2)

typedef struct Benefits {
    History history; /* the newest HISTORY_WINDOW sessions */
    Benefit stages[_STAGE_MAX];
    const char *off[_STAGE_MAX]; /* word of the reason why the stage is not replayed
                                    (packs_off_reason()); NULL: it is, or there is no pack */
    uint32_t control_interval;   /* of the configuration; may be CONFIG_CONTROL_AUTO */
    /* The control intervals in the packs of the stages. INTERVAL_UNPLANNED: there is no pack.
     * INTERVAL_HIDDEN: the caller may not read the packs. */
    int64_t planned_intervals[_STAGE_MAX];
} Benefits;

void benefits_done(Benefits *b);
#define _cleanup_benefits_ _cleanup_(benefits_done)

/* Reads the history and the heads of the packs, and computes the benefit of each stage as of `now`
 * (wall clock). Returns 0, or an error that was reported. */
int benefits_read(const Context *c, int state_fd, usec_t now, Benefits *ret);

/* Like benefits_read(), for `headstart status` and `doctor`, which must not fail: if the history
 * cannot be read, sets *ret_readable to false, and *ret has no sessions. Returns 0, or -ENOMEM,
 * which was reported. */
int benefits_read_if_possible(const Context *c, int state_fd, usec_t now, Benefits *ret,
                              bool *ret_readable);

/* Opens the state directory and reads the history as of now. Returns 0, also if there is no state
 * directory (*ret_fd and *ret are then unchanged), or an error that was reported. */
int benefits_open(const Context *c, int *ret_fd, Benefits *ret);

/* Computes the benefit of each stage from b->history. Returns 0 or -ENOMEM. */
int benefits_compute(Benefits *b, usec_t now);

/* Returns the N that the next plan writes into the packs of the stage: a session is a control
 * session with probability 1 / N; 0: no control session. N comes from the configuration, or from
 * benefit_control_interval() and the history of the stage. Its distance of two days between control
 * sessions applies to boots and logins together, because users wait for both. */
uint32_t benefits_control_interval(const Benefits *b, Stage stage, usec_t now);

/* Like benefits_control_interval(), for the starts of an application with that benefit. */
uint32_t benefits_control_interval_of_launch(const Benefits *b, const Benefit *launch, usec_t now);

/* Writes one sentence for people: "saves 2.4s of 7.9s, 31 % (between 25 % and 36 %; 40 sessions
 * with replay, 5 without)". `things` names what was timed: "sessions" or "starts". An effect whose
 * `control_seconds` is 0 has no times, and only its share is written. `off` is what
 * replay_off_to_text() returned, or NULL. The function appends it to a known effect. It writes
 * `off` instead of an unknown effect, because no further session will make that effect known.
 * Returns buf. */
#define BENEFIT_TEXT_MAX 384
const char *effect_to_text(const Effect *e, const char *things, const char *off,
                           char buf[static BENEFIT_TEXT_MAX]);

/* Returns true if the stage is replayed although replay was measured to do harm: a policy is
 * configured, or the pack is older than the measurement. */
bool benefits_is_kept_on(const Benefits *b, Stage stage);

/* Like effect_to_text(), for a stage. If its policy was measured to do harm, adds ", switched off",
 * or ", but is replayed".
 * Returns buf. */
const char *benefits_to_text(const Benefits *b, Stage stage, char buf[static BENEFIT_TEXT_MAX]);

/* Write the parts of that sentence for a table: "saves 2.4s of 7.9s, 31 %", and the interval "25 to
 * 36 %". The effect must be known. If replay costs time, the interval is that of the cost, in
 * positive numbers. Return buf. */
#define INTERVAL_TEXT_MAX 64
const char *benefit_to_short_text(const Benefit *b, char buf[static BENEFIT_TEXT_MAX]);
const char *effect_interval_to_text(const Effect *e, char buf[static INTERVAL_TEXT_MAX]);

/* Adds the figures of the effect to an object. Returns false if out of memory. */
bool effect_add_to_json(json_object *o, const Effect *e);

/* Returns an object with these figures and the member `off_reason` (NULL: null). Returns NULL if
 * out of memory. */
json_object *effect_to_json(const Effect *e, const char *off_reason);

/* Returns an array with one object for boots and one for logins. Its `control_interval` is the one
 * in force: that of the packs. Without a pack it is that of the next plan. It is null if the caller
 * may not read the packs. Returns NULL if out of memory. */
json_object *benefits_to_json(const Benefits *b, usec_t now);
