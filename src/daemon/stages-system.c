/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The bus, coming and going, and the machine that is told. */

#include "base/clock.h"
#include "base/cpu-busy.h"
#include "base/log.h"
#include "base/macros.h"
#include "daemon/stages-bus.h"

#include <string.h>

#define RETRY_MIN_USEC    (200 * USEC_PER_MSEC)
#define RETRY_MAX_USEC    USEC_PER_SEC
#define RETRY_SELDOM_USEC (30 * USEC_PER_SEC) /* after so many in vain: */
#define RETRIES_BEFORE    1000U

/* --- the machine ------------------------------------------------------------------------------ */

static void tell_waiting(SystemSource *s)
{
    const char *what = s->answered ? stage_machine_waits_for(s->machine) : "the system bus";

    if (what == s->waits_for)
        return;
    s->waits_for = what;
    s->callbacks.waits_for(s->callbacks.arg, what);
}

static int set_timer(SystemSource *s)
{
    bool sample;
    usec_t next = stage_machine_next(s->machine, &sample);
    int r;

    /* Events that come thick and fast must not put samples off. */
    if (sample && s->sampling)
        return 0;
    s->sampling = sample;
    if (next == USEC_INFINITY)
        return sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
    r = sd_event_source_set_time(s->timer, clock_now(CLOCK_MONOTONIC) + next);
    return r < 0 ? r : sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static int act(SystemSource *s, const StageDecision *d)
{
    StageChange c = {.next = d->stage, .uid = d->uid, .drop = d->drop, .others = d->others};

    if (d->action == STAGE_ACTION_NONE)
        return 0;
    if (d->action == STAGE_ACTION_PAUSE)
        c.next = STAGE_PAUSE;
    else if (d->action == STAGE_ACTION_SHARE)
        c.next = STAGE_SHARED;
    else if (d->action == STAGE_ACTION_ENOUGH)
        c.next = STAGE_ENOUGH;
    return s->callbacks.changed(s->callbacks.arg, &c);
}

int system_feed(SystemSource *s, StageEvent *e)
{
    StageDecision d;
    int r, acted;

    e->now = clock_now(CLOCK_MONOTONIC);
    r = stage_machine_feed(s->machine, e, &d);
    if (r < 0) {
        log_oom();
        return 0; /* one event less; the bounds hold all the same */
    }
    acted = act(s, &d);
    if (d.action != STAGE_ACTION_NONE)
        s->waits_for = NULL; /* also if it is the same again */
    tell_waiting(s);
    r = set_timer(s);
    return acted < 0 ? acted : r;
}

int system_feed_kind(SystemSource *s, StageEventKind kind, const char *id)
{
    return system_feed(s, &(StageEvent){.kind = kind, .id = id});
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *arg)
{
    SystemSource *s = arg;
    StageEvent e = {.kind = s->sampling ? STAGE_EVENT_SAMPLE : STAGE_EVENT_TIME};

    s->sampling = false;
    if (e.kind == STAGE_EVENT_SAMPLE) {
        e.n_starts = s->callbacks.n_starts(s->callbacks.arg);
        e.has_pressure = pressure_read(&s->pressure, &e.stalled_usec) >= 0;
        e.has_busy = cpu_busy_read(s->pressure.root_fd, &e.busy_usec) >= 0;
    }
    return system_feed(s, &e);
}

usec_t system_age_of(usec_t monotonic)
{
    usec_t now = clock_now(CLOCK_MONOTONIC);

    return now > monotonic ? now - monotonic : 0;
}

static int retry_later(SystemSource *s);

bool system_is_error(SystemSource *s, sd_bus_message *m)
{
    if (!sd_bus_message_is_method_error(m, NULL)) {
        s->answered = true;
        s->n_retries = 0;
        return false;
    }
    if (sd_bus_message_is_method_error(m, SD_BUS_ERROR_NO_REPLY))
        (void)retry_later(s);
    return true;
}

/* --- the bus ---------------------------------------------------------------------------------- */

/* systemd or logind has come (back). */
static int on_owner(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    SystemSource *s = arg;
    const char *name, *old, *new;
    int r = 0;

    if (sd_bus_message_read(m, "sss", &name, &old, &new) < 0 || !*new)
        return 0;
    if (strcmp(name, LOGIND) == 0)
        r = logind_ask(s);
    else if (strcmp(name, SYSTEMD) == 0)
        r = systemd_ask(s);
    if (r < 0)
        log_debug_errno(r, "Cannot ask %s, ignoring: %m", name);
    return 0;
}

static int retry_later(SystemSource *s)
{
    usec_t wait = RETRY_MIN_USEC << MIN(s->n_retries, 8U);
    int r;

    wait = s->n_retries < RETRIES_BEFORE ? MIN(wait, RETRY_MAX_USEC) : RETRY_SELDOM_USEC;
    s->n_retries += s->n_retries < RETRIES_BEFORE;
    s->answered = false;
    tell_waiting(s);
    r = sd_event_source_set_time(s->retry, clock_now(CLOCK_MONOTONIC) + wait);
    return r < 0 ? r : sd_event_source_set_enabled(s->retry, SD_EVENT_ONESHOT);
}

/* In the middle of the bus's own callback: it is closed when the next one is opened. */
static int on_disconnected(sd_bus_message *m _unused_, void *arg, sd_bus_error *error _unused_)
{
    SystemSource *s = arg;

    log_debug("The system bus is gone, trying again.");
    return retry_later(s);
}

static void disconnect(SystemSource *s)
{
    s->bus = sd_bus_close_unref(s->bus);
    logind_forget(s);
    systemd_forget(s);
}

static int follow(SystemSource *s)
{
    static const struct {
        const char *rule;
        sd_bus_message_handler_t handler;
    } matches[] = {
            {"type='signal',sender='org.freedesktop.DBus.Local',"
             "path='/org/freedesktop/DBus/Local',interface='org.freedesktop.DBus.Local',"
             "member='Disconnected'",
             on_disconnected},
            {"type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
             "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" LOGIND "'",
             on_owner},
            {"type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
             "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" SYSTEMD "'",
             on_owner},
            {"type='signal',sender='" LOGIND "',path='" LOGIND_PATH "',interface='" LOGIND_MANAGER
             "',member='SessionNew'",
             logind_on_session_new},
            {"type='signal',sender='" LOGIND "',path='" LOGIND_PATH "',interface='" LOGIND_MANAGER
             "',member='SessionRemoved'",
             logind_on_session_removed},
            {"type='signal',sender='" LOGIND "',path_namespace='" LOGIND_PATH "/session',"
             "interface='" PROPERTIES "',member='PropertiesChanged'",
             logind_on_session_changed},
            {"type='signal',sender='" SYSTEMD "',path='" SYSTEMD_PATH
             "',interface='" SYSTEMD_MANAGER "',member='StartupFinished'",
             systemd_on_startup_finished},
    };
    int r = 0;

    for (size_t i = 0; r >= 0 && i < ELEMENTSOF(matches); i++)
        r = sd_bus_add_match_async(s->bus, NULL, matches[i].rule, matches[i].handler, NULL, s);
    if (r >= 0)
        r = systemd_ask(s);
    return r < 0 ? r : logind_ask(s);
}

static int on_retry(sd_event_source *source _unused_, uint64_t usec _unused_, void *arg)
{
    SystemSource *s = arg;
    int r;

    disconnect(s);
    r = sd_bus_open_system(&s->bus);
    if (r >= 0)
        r = sd_bus_attach_event(s->bus, s->event, SD_EVENT_PRIORITY_NORMAL);
    if (r >= 0)
        r = follow(s);
    if (r >= 0)
        return 0;
    log_debug_errno(r, "No system bus yet, trying again: %m");
    disconnect(s);
    return retry_later(s);
}

/* --- the source ------------------------------------------------------------------------------- */

static int system_start_unit(StageSource *base, const char *unit)
{
    SystemSource *s = (SystemSource *)base;

    if (!s->bus)
        return -ENOTCONN;
    return sd_bus_call_method_async(s->bus, NULL, SYSTEMD, SYSTEMD_PATH, SYSTEMD_MANAGER,
                                    "StartUnit", NULL, NULL, "ss", unit, "fail");
}

static void system_free(StageSource *base)
{
    SystemSource *s = (SystemSource *)base;

    disconnect(s);
    sd_event_source_disable_unref(s->retry);
    sd_event_source_disable_unref(s->timer);
    sd_event_source_disable_unref(s->recheck);
    sd_event_unref(s->event);
    stage_machine_free(s->machine);
}

int stage_source_new_system(sd_event *event, int root_fd, const StageCallbacks *callbacks,
                            StageSource **ret)
{
    static const StageParameters parameters = STAGE_PARAMETERS_DEFAULT;
    SystemSource *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return -ENOMEM;
    s->base = (StageSource){
            .first = STAGE_BOOT,
            .changed = callbacks->changed,
            .arg = callbacks->arg,
            .start_unit = system_start_unit,
            .free = system_free,
    };
    s->callbacks = *callbacks;
    s->event = sd_event_ref(event);
    s->last = &s->first;
    s->pressure.root_fd = root_fd;
    s->display_manager = (FollowedUnit){.s = s, .name = "display-manager.service"};
    s->target = (FollowedUnit){.s = s, .name = "default.target"};
    s->machine = stage_machine_new(&parameters, clock_now(CLOCK_MONOTONIC));
    r = s->machine ? 0 : -ENOMEM;
    if (r >= 0)
        r = sd_event_add_time(event, &s->timer, CLOCK_MONOTONIC, 0, 10 * USEC_PER_MSEC, on_timer,
                              s);
    if (r >= 0)
        r = sd_event_add_time(event, &s->retry, CLOCK_MONOTONIC, 0, 10 * USEC_PER_MSEC, on_retry,
                              s);
    if (r >= 0)
        r = sd_event_add_time(event, &s->recheck, CLOCK_MONOTONIC, USEC_INFINITY,
                              10 * USEC_PER_MSEC, logind_on_recheck, s);
    if (r < 0) {
        stage_source_free(&s->base);
        return r;
    }
    *ret = &s->base;
    return 0;
}
