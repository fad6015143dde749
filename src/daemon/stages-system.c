/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The stage source that follows the system. It keeps the connection to the system bus, passes the
 * watchers' reports and the kernel's counters to the state machine, and passes its decisions to the
 * daemon. A call that failed is repeated when the bus, or the service that was called, is available
 * again. */

#include "base/clock.h"
#include "base/log.h"
#include "base/macros.h"
#include "daemon/logind-watch.h"
#include "daemon/stages-internal.h"
#include "daemon/systemd-watch.h"
#include "system/cpu-busy.h"
#include "system/pressure.h"

#include <string.h>

#define RETRY_MIN_USEC    (200 * USEC_PER_MSEC)
#define RETRY_MAX_USEC    USEC_PER_SEC
#define RETRY_RARELY_USEC (30 * USEC_PER_SEC) /* after RETRIES_OFTEN_MAX failures */
#define RETRIES_OFTEN_MAX 1000U
#define TIMER_PRECISION   (10 * USEC_PER_MSEC)

static const StageParameters parameters = STAGE_PARAMETERS_DEFAULT;

typedef struct SystemSource {
    StageSource base;
    StageCallbacks callbacks;
    StageMachine *machine;
    sd_event *event;
    sd_event_source *timer, *retry;
    bool sampling; /* the timer is set for a sample */
    Pressure pressure;
    const char *awaits; /* the last condition that was reported; NULL: report it again */

    BusListener listener;
    sd_bus *bus;
    bool connected; /* there was a reply since the last attempt to connect */
    unsigned n_retries;
    LogindWatch *logind;
    SystemdWatch *systemd;
} SystemSource;

/* --- the state machine ------------------------------------------------------------------------ */

static void report_awaits(SystemSource *s)
{
    const char *what = s->connected ? stage_machine_awaits(s->machine) : "the system bus";

    if (what == s->awaits)
        return;
    s->awaits = what;
    s->callbacks.on_awaits(s->callbacks.arg, what);
}

static int set_timer(SystemSource *s)
{
    bool sample;
    usec_t next = stage_machine_next(s->machine, &sample);
    int r;

    /* Other events, however frequent, must not postpone a sample. */
    if (sample && s->sampling)
        return 0;
    s->sampling = sample;
    if (next == USEC_INFINITY)
        return sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
    r = sd_event_source_set_time(s->timer, clock_now(CLOCK_MONOTONIC) + next);
    return r < 0 ? r : sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static int pass_on(SystemSource *s, const StageDecision *d)
{
    StageChange c = {.next = d->stage,
                     .uid = d->uid,
                     .drop = d->drop,
                     .others = d->others,
                     .automatic = d->automatic,
                     .settled_ago = d->settled_ago};

    switch (d->action) {
    case STAGE_ACTION_NONE:
        return 0;
    case STAGE_ACTION_BEGIN:
        break;
    case STAGE_ACTION_PAUSE:
        c.next = STAGE_PAUSE;
        break;
    case STAGE_ACTION_SHARE:
        c.next = STAGE_SHARED;
        break;
    case STAGE_ACTION_ENOUGH:
        c.next = STAGE_ENOUGH;
        break;
    case STAGE_ACTION_USERS:
        c.next = STAGE_USERS;
        break;
    }
    return s->callbacks.on_change(s->callbacks.arg, &c);
}

static int on_event(void *arg, StageEvent *e)
{
    SystemSource *s = arg;
    StageDecision d;
    int r, passed_on;

    e->now = clock_now(CLOCK_MONOTONIC);
    r = stage_machine_feed(s->machine, e, &d);
    if (r < 0) {
        log_oom();
        return 0; /* one event is lost; a time limit still ends every stage */
    }
    /* A login is ready at the beginning of the quiet time after which it counts as settled. */
    if (e->kind == STAGE_EVENT_BOOT_FINISHED)
        s->callbacks.on_ready(s->callbacks.arg, STAGE_BOOT, e->age);
    else if (d.action == STAGE_ACTION_BEGIN && d.stage == STAGE_SESSION && !d.drop)
        s->callbacks.on_ready(s->callbacks.arg, STAGE_LOGIN, parameters.quiet_usec);
    passed_on = pass_on(s, &d);
    if (d.action != STAGE_ACTION_NONE)
        s->awaits = NULL;
    report_awaits(s);
    r = set_timer(s);
    return passed_on < 0 ? passed_on : r;
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *arg)
{
    SystemSource *s = arg;
    StageEvent e = {.kind = s->sampling ? STAGE_EVENT_SAMPLE : STAGE_EVENT_TIME};

    s->sampling = false;
    if (e.kind == STAGE_EVENT_SAMPLE) {
        e.n_starts = s->callbacks.count_starts(s->callbacks.arg);
        e.has_pressure = pressure_read(&s->pressure, &e.stalled_usec) >= 0;
        e.has_busy = cpu_busy_read(s->pressure.root_fd, &e.busy_usec) >= 0;
    }
    return on_event(s, &e);
}

/* --- the connection --------------------------------------------------------------------------- */

static int retry_later(SystemSource *s)
{
    usec_t wait = RETRY_MIN_USEC << MIN(s->n_retries, 8U);
    int r;

    wait = s->n_retries < RETRIES_OFTEN_MAX ? MIN(wait, RETRY_MAX_USEC) : RETRY_RARELY_USEC;
    s->n_retries += s->n_retries < RETRIES_OFTEN_MAX;
    s->connected = false;
    report_awaits(s);
    r = sd_event_source_set_time(s->retry, clock_now(CLOCK_MONOTONIC) + wait);
    return r < 0 ? r : sd_event_source_set_enabled(s->retry, SD_EVENT_ONESHOT);
}

static void on_reply(void *arg)
{
    SystemSource *s = arg;

    s->connected = true;
    s->n_retries = 0;
}

static void on_timeout(void *arg)
{
    int r = retry_later(arg);

    if (r < 0)
        log_debug_errno(r, "Cannot set the timer that connects to the system bus, ignoring: %m");
}

/* Queries systemd or logind after it has appeared on the bus, for the first time or again. */
static int on_owner(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    SystemSource *s = arg;
    const char *name, *old, *new;
    int r = 0;

    if (sd_bus_message_read(m, "sss", &name, &old, &new) < 0 || !*new)
        return 0;
    if (strcmp(name, BUS_LOGIND) == 0)
        r = logind_watch_list(s->logind);
    else if (strcmp(name, BUS_SYSTEMD) == 0)
        r = systemd_watch_query(s->systemd);
    if (r < 0)
        log_debug_errno(r, "Cannot query %s, ignoring: %m", name);
    return 0;
}

/* Plans the next attempt to connect. The function runs within a callback of the old connection,
 * which is therefore closed later, when the next one is opened. */
static int on_disconnected(sd_bus_message *m _unused_, void *arg, sd_bus_error *error _unused_)
{
    log_debug("The connection to the system bus is broken, connecting again.");
    return retry_later(arg);
}

static void disconnect(SystemSource *s)
{
    logind_watch_disconnect(s->logind);
    systemd_watch_disconnect(s->systemd);
    s->bus = sd_bus_close_unref(s->bus);
}

static int subscribe(SystemSource *s)
{
#define FROM_BUS "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
    static const struct {
        const char *rule;
        sd_bus_message_handler_t handler;
    } matches[] = {
            {"type='signal',sender='org.freedesktop.DBus.Local',"
             "path='/org/freedesktop/DBus/Local',interface='org.freedesktop.DBus.Local',"
             "member='Disconnected'",
             on_disconnected},
            {FROM_BUS "interface='org.freedesktop.DBus',member='NameOwnerChanged',"
                      "arg0='" BUS_LOGIND "'",
             on_owner},
            {FROM_BUS "interface='org.freedesktop.DBus',member='NameOwnerChanged',"
                      "arg0='" BUS_SYSTEMD "'",
             on_owner},
    };
    int r = 0;

    for (size_t i = 0; r >= 0 && i < ELEMENTSOF(matches); i++)
        r = sd_bus_add_match_async(s->bus, NULL, matches[i].rule, matches[i].handler, NULL, s);
    if (r >= 0)
        r = systemd_watch_connect(s->systemd, s->bus);
    return r < 0 ? r : logind_watch_connect(s->logind, s->bus);
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
        r = subscribe(s);
    if (r >= 0)
        return 0;
    log_debug_errno(r, "Cannot connect to the system bus yet, trying again: %m");
    disconnect(s);
    return retry_later(s);
}

/* --- the source ------------------------------------------------------------------------------- */

static int system_start_unit(StageSource *base, const char *unit)
{
    SystemSource *s = (SystemSource *)base;

    if (!s->bus)
        return -ENOTCONN;
    return sd_bus_call_method_async(s->bus, NULL, BUS_SYSTEMD, BUS_SYSTEMD_PATH,
                                    BUS_SYSTEMD_MANAGER, "StartUnit", NULL, NULL, "ss", unit,
                                    "fail");
}

static BootTimes system_boot_times(const StageSource *base)
{
    return systemd_watch_boot_times(((const SystemSource *)base)->systemd);
}

static void system_free(StageSource *base)
{
    SystemSource *s = (SystemSource *)base;

    s->logind = logind_watch_free(s->logind);
    s->systemd = systemd_watch_free(s->systemd);
    sd_bus_close_unref(s->bus);
    sd_event_source_disable_unref(s->retry);
    sd_event_source_disable_unref(s->timer);
    sd_event_unref(s->event);
    stage_machine_free(s->machine);
}

static int set_up(SystemSource *s)
{
    int r;

    s->machine = stage_machine_new(&parameters, clock_now(CLOCK_MONOTONIC));
    s->systemd = systemd_watch_new(&s->listener);
    if (!s->machine || !s->systemd)
        return -ENOMEM;
    r = logind_watch_new(s->event, &s->listener, &s->logind);
    if (r >= 0)
        r = sd_event_add_time(s->event, &s->timer, CLOCK_MONOTONIC, 0, TIMER_PRECISION, on_timer,
                              s);
    if (r >= 0)
        r = sd_event_add_time(s->event, &s->retry, CLOCK_MONOTONIC, 0, TIMER_PRECISION, on_retry,
                              s);
    return r;
}

int stage_source_new_system(sd_event *event, int root_fd, const StageCallbacks *callbacks,
                            StageSource **ret)
{
    SystemSource *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return -ENOMEM;
    s->base = (StageSource){
            .first = STAGE_BOOT,
            .start_unit = system_start_unit,
            .boot_times = system_boot_times,
            .free = system_free,
    };
    s->callbacks = *callbacks;
    s->listener = (BusListener){on_event, on_reply, on_timeout, s};
    s->event = sd_event_ref(event);
    s->pressure.root_fd = root_fd;
    r = set_up(s);
    if (r < 0) {
        stage_source_free(&s->base);
        return r;
    }
    *ret = &s->base;
    return 0;
}
