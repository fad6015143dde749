/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/benefits.h"

#include "base/clock.h"
#include "base/json-util.h"
#include "command/cli-state.h"
#include "state/packs.h"

#include <math.h>
#include <string.h>

/* With two sessions without replay and eight with it, the Mann-Whitney statistic allows an interval
 * (docs/benefit.md). */
#define ENOUGH_REPLAYED 8U
#define ENOUGH_CONTROL  2U

void benefits_done(Benefits *b)
{
    history_done(&b->history);
}

int benefits_compute(Benefits *b, usec_t now)
{
    for (Stage s = 0; s < _STAGE_MAX; s++)
        CHECK(benefit_compute(b->history.sessions, b->history.n, s, now, &b->stages[s]));
    return 0;
}

/* Computes the rest of what benefits_read() returns from b->history, and moves *b to *ret. */
static int finish(const Context *c, int state_fd, usec_t now, Benefits *b, Benefits *ret)
{
    int r = benefits_compute(b, now);

    if (r < 0)
        return cli_error(r, "%m");
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        uint32_t n;

        b->off[s] = policy_reason_to_string(packs_off_reason(state_fd, s, UID_INVALID));
        r = packs_read_control_interval(state_fd, s, &n);
        b->planned_intervals[s] = r < 0 ? INTERVAL_UNPLANNED : n;
    }
    b->control_interval = c->config.control_interval;
    *ret = *b;
    *b = (Benefits){0};
    return 0;
}

int benefits_read(const Context *c, int state_fd, usec_t now, Benefits *ret)
{
    _cleanup_benefits_ Benefits b = {0};
    int r = history_read(state_fd, HISTORY_WINDOW, &b.history);

    return r < 0 ? cli_error(r, "%s/" HISTORY_FILE ": %m", c->state)
                 : finish(c, state_fd, now, &b, ret);
}

int benefits_read_if_possible(const Context *c, int state_fd, usec_t now, Benefits *ret,
                              bool *ret_readable)
{
    _cleanup_benefits_ Benefits b = {0};
    int r = history_read(state_fd, HISTORY_WINDOW, &b.history);

    *ret_readable = r >= 0;
    return r == -ENOMEM ? cli_error(r, "%m") : finish(c, state_fd, now, &b, ret);
}

int benefits_open(const Context *c, int *ret_fd, Benefits *ret)
{
    int r = cli_state_open(c, false, ret_fd);

    if (r >= 0)
        r = benefits_read(c, *ret_fd, clock_now(CLOCK_REALTIME), ret);
    return r == -ENOENT ? 0 : r;
}

/* Returns the time of a login without replay; 0: not known. */
static double cold_login_seconds(const Benefits *b)
{
    const Effect *login = &b->stages[STAGE_LOGIN].effect;

    return login->estimated ? login->control_seconds : 0;
}

uint32_t benefits_control_interval(const Benefits *b, Stage stage, usec_t now)
{
    Benefit x = b->stages[stage];

    x.last_control_usec =
            MAX(b->stages[STAGE_BOOT].last_control_usec, b->stages[STAGE_LOGIN].last_control_usec);
    return benefits_control_interval_of_launch(b, &x, now);
}

uint32_t benefits_control_interval_of_launch(const Benefits *b, const Benefit *launch, usec_t now)
{
    return b->control_interval == CONFIG_CONTROL_AUTO
                   ? benefit_control_interval(launch, cold_login_seconds(b), now)
                   : b->control_interval;
}

static usec_t usec_of(double seconds)
{
    return (usec_t)llround(seconds * USEC_PER_SEC);
}

static double percent(double share)
{
    return 100 * share;
}

static bool is_certain(const Effect *e)
{
    return e->saved_low > 0 || e->saved_high < 0;
}

/* Writes "saves 2.4s of 7.9s, 31 %", or, without a certain effect, "no certain effect on 7.9s".
 * Without times only "saves 31 %" or "no certain effect". */
static const char *difference_to_text(const Effect *e, char buf[static BENEFIT_TEXT_MAX])
{
    char difference[FORMAT_TIMESPAN_MAX], control[FORMAT_TIMESPAN_MAX];
    const char *verb = e->saved > 0 ? "saves" : "costs";

    if (e->control_seconds <= 0) {
        if (is_certain(e))
            snprintf(buf, BENEFIT_TEXT_MAX, "%s %.0f %%", verb, percent(fabs(e->saved)));
        else
            snprintf(buf, BENEFIT_TEXT_MAX, "no certain effect");
        return buf;
    }
    format_timespan(difference, sizeof(difference),
                    usec_of(fabs(e->control_seconds - e->replayed_seconds)));
    format_timespan(control, sizeof(control), usec_of(e->control_seconds));
    if (is_certain(e))
        snprintf(buf, BENEFIT_TEXT_MAX, "%s %s of %s, %.0f %%", verb, difference, control,
                 percent(fabs(e->saved)));
    else
        snprintf(buf, BENEFIT_TEXT_MAX, "no certain effect on %s", control);
    return buf;
}

static void known_to_text(const Effect *e, const char *things, char buf[static BENEFIT_TEXT_MAX])
{
    char difference[BENEFIT_TEXT_MAX];

    difference_to_text(e, difference);
    if (!is_certain(e))
        snprintf(buf, BENEFIT_TEXT_MAX,
                 "%.80s (between %.0f %% longer and %.0f %% shorter; %zu %s with replay, %zu "
                 "without)",
                 difference, percent(fabs(e->saved_low)), percent(fabs(e->saved_high)),
                 e->n_replayed, things, e->n_control);
    else
        snprintf(buf, BENEFIT_TEXT_MAX,
                 "%.80s (between %.0f %% and %.0f %%; %zu %s with replay, %zu without)", difference,
                 percent(e->saved > 0 ? e->saved_low : -e->saved_high),
                 percent(e->saved > 0 ? e->saved_high : -e->saved_low), e->n_replayed, things,
                 e->n_control);
}

static void append_text(char buf[static BENEFIT_TEXT_MAX], const char *text)
{
    strncat(buf, text, BENEFIT_TEXT_MAX - strlen(buf) - 1);
}

const char *effect_to_text(const Effect *e, const char *things, const char *off,
                           char buf[static BENEFIT_TEXT_MAX])
{
    bool few = e->n_replayed < ENOUGH_REPLAYED || e->n_control < ENOUGH_CONTROL;
    char difference[BENEFIT_TEXT_MAX];

    if (e->known) {
        known_to_text(e, things, buf);
        append_text(buf, off ? ", now " : "");
        append_text(buf, off ? off : "");
    } else if (off) {
        snprintf(buf, BENEFIT_TEXT_MAX, "%.120s", off);
    } else {
        snprintf(difference, sizeof(difference), "; %u and %u are enough", ENOUGH_REPLAYED,
                 ENOUGH_CONTROL);
        snprintf(buf, BENEFIT_TEXT_MAX, "not enough %.40s yet (%zu with replay, %zu without%.80s)",
                 things, e->n_replayed, e->n_control, few ? difference : "");
    }
    return buf;
}

static const char *add_verdict(const Benefit *b, char buf[static BENEFIT_TEXT_MAX])
{
    if (b->effect.known && b->harmful)
        append_text(buf, ", switched off");
    return buf;
}

bool benefits_is_kept_on(const Benefits *all, Stage stage)
{
    const Benefit *b = &all->stages[stage];
    /* The boot pack contains an automatic login. */
    Stage pack = b->automatic ? STAGE_BOOT : stage;

    /* A caller who may not read the packs sees why they are off. */
    return b->harmful && all->planned_intervals[pack] != INTERVAL_UNPLANNED && !all->off[pack];
}

const char *benefits_to_text(const Benefits *all, Stage stage, char buf[static BENEFIT_TEXT_MAX])
{
    const Benefit *b = &all->stages[stage];
    char off[REPLAY_OFF_TEXT_MAX];
    const char *why = replay_off_to_text(stage, all->off[stage], off);

    if (stage == STAGE_BOOT && b->automatic && !b->effect.known && !why) {
        snprintf(buf, BENEFIT_TEXT_MAX, "counts with the automatic logins");
        return buf;
    }
    /* add_verdict() says why a harmful policy is off. */
    effect_to_text(&b->effect, "sessions", b->effect.known && b->harmful ? NULL : why, buf);
    if (stage == STAGE_LOGIN && b->automatic && b->effect.known)
        append_text(buf, ", boots included");
    if (b->effect.known && benefits_is_kept_on(all, stage)) {
        append_text(buf, ", but is replayed");
        return buf;
    }
    return add_verdict(b, buf);
}

const char *benefit_to_short_text(const Benefit *b, char buf[static BENEFIT_TEXT_MAX])
{
    difference_to_text(&b->effect, buf);
    return add_verdict(b, buf);
}

const char *effect_interval_to_text(const Effect *e, char buf[static INTERVAL_TEXT_MAX])
{
    bool costs = e->saved_high < 0;

    snprintf(buf, INTERVAL_TEXT_MAX, "%.0f to %.0f %%",
             percent(costs ? -e->saved_high : e->saved_low),
             percent(costs ? -e->saved_low : e->saved_high));
    return buf;
}

static json_object *number(double v)
{
    return json_object_new_double(v);
}

typedef struct Member {
    const char *key;
    json_object *value;
} Member;

/* Adds all members, even after one could not be added, because json_add_member() owns or frees each
 * value. */
static bool add_members(json_object *o, const Member *members, size_t n)
{
    bool added = true;

    for (size_t i = 0; i < n; i++)
        added = json_add_member(o, members[i].key, members[i].value) && added;
    return added;
}

bool effect_add_to_json(json_object *o, const Effect *e)
{
    bool times = e->estimated && e->control_seconds > 0;
    const Member members[] = {
            {"known", json_object_new_boolean(e->known)},
            {"saved", e->estimated ? number(e->saved) : NULL},
            {"saved_low", e->known ? number(e->saved_low) : NULL},
            {"saved_high", e->known ? number(e->saved_high) : NULL},
            {"control_usec", times ? json_object_new_uint64(usec_of(e->control_seconds)) : NULL},
            {"replayed_usec", times ? json_object_new_uint64(usec_of(e->replayed_seconds)) : NULL},
            {"n_replayed", json_object_new_uint64(e->n_replayed)},
            {"n_control", json_object_new_uint64(e->n_control)},
    };

    return add_members(o, members, ELEMENTSOF(members));
}

json_object *effect_to_json(const Effect *e, const char *off_reason)
{
    _cleanup_json_ json_object *o = json_object_new_object();
    json_object *off = off_reason ? json_object_new_string(off_reason) : NULL;
    bool added = json_add_member(o, "off_reason", off);

    return effect_add_to_json(o, e) && added ? TAKE_PTR(o) : NULL;
}

/* Returns the control interval in force. The boot pack of a machine with an automatic login has
 * that of the logins, which the history of the boots does not show. NULL: not known. */
static json_object *interval_to_json(const Benefits *b, Stage stage, usec_t now)
{
    int64_t n = b->planned_intervals[stage];

    if (n == INTERVAL_UNPLANNED)
        n = benefits_control_interval(b, stage, now);
    return n == INTERVAL_HIDDEN ? NULL : json_object_new_int64(n);
}

static json_object *benefit_to_json(const Benefits *all, Stage stage, usec_t now)
{
    const Benefit *b = &all->stages[stage];
    _cleanup_json_ json_object *o = json_object_new_object();
    bool added = json_add_member(o, "stage", json_object_new_string(stage_to_string(stage))) &&
                 effect_add_to_json(o, &b->effect);
    const Member members[] = {
            {"n_left_out", json_object_new_uint64(b->n_left_out)},
            {"policy",
             (int)b->policy < 0 ? NULL : json_object_new_string(policy_to_string(b->policy))},
            {"harmful", json_object_new_boolean(b->harmful)},
            {"off_reason", all->off[stage] ? json_object_new_string(all->off[stage]) : NULL},
            {"control_interval", interval_to_json(all, stage, now)},
    };

    added = add_members(o, members, ELEMENTSOF(members)) && added;
    return added ? TAKE_PTR(o) : NULL;
}

json_object *benefits_to_json(const Benefits *b, usec_t now)
{
    _cleanup_json_ json_object *a = json_object_new_array();

    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++)
        if (!json_add_item(a, benefit_to_json(b, s, now)))
            return NULL;
    return TAKE_PTR(a);
}
