/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/systemd-watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/macros.h"

#include <string.h>

#define NO_SUCH_UNIT "org.freedesktop.systemd1.NoSuchUnit"

typedef struct WatchedUnit {
    SystemdWatch *w;
    const char *name;
    char *path; /* its object on this connection; NULL: not known yet */
} WatchedUnit;

struct SystemdWatch {
    const BusListener *listener;
    sd_bus *bus;
    WatchedUnit display_manager, target;
    BootTimes boot;
};

/* Reports that systemd has finished the startup. systemd finishes when no job is left, and
 * default.target is reached before that. The caller therefore knows no time of the target. */
static int report_finished(const SystemdWatch *w)
{
    StageEvent e = {.kind = STAGE_EVENT_BOOT_FINISHED};

    if (w->boot.finish_usec == 0)
        return 0;
    e.age = bus_age_of(w->boot.finish_usec);
    return w->listener->on_event(w->listener->arg, &e);
}

static int on_unit(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    const WatchedUnit *u = arg;
    const BusListener *l = u->w->listener;
    StageEvent e = {.kind = STAGE_EVENT_DISPLAY_MANAGER};
    BusProperties p;

    if (bus_reply_is_error(l, m) || bus_properties_read(m, &p) < 0)
        return u == &u->w->target ? report_finished(u->w) : 0;
    e.active = bus_property_is(p.active_state, "active") ||
               bus_property_is(p.active_state, "reloading") ||
               bus_property_is(p.active_state, "refreshing");
    if (u == &u->w->target) {
        if (!e.active)
            return report_finished(u->w);
        e.kind = STAGE_EVENT_BOOT_FINISHED;
        e.age = bus_age_of(p.active_since);
    } else if (!e.active && bus_property_is(p.load_state, "loaded"))
        /* A display manager that will start has a queued job from the beginning of the boot. */
        e.active = bus_property_is(p.active_state, "activating") || p.job != 0;
    return l->on_event(l->arg, &e);
}

static void query_unit(WatchedUnit *u)
{
    int r = sd_bus_call_method_async(u->w->bus, NULL, BUS_SYSTEMD, u->path, BUS_PROPERTIES,
                                     "GetAll", on_unit, u, "s", BUS_SYSTEMD_UNIT);

    if (r < 0)
        log_debug_errno(r, "Cannot query %s, ignoring: %m", u->name);
}

static int on_unit_changed(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    WatchedUnit *u = arg;
    const char *interface;

    if (u->path && sd_bus_message_read(m, "s", &interface) >= 0 &&
        strcmp(interface, BUS_SYSTEMD_UNIT) == 0)
        query_unit(u);
    return 0;
}

static void subscribe_unit(WatchedUnit *u)
{
    int r = sd_bus_match_signal_async(u->w->bus, NULL, BUS_SYSTEMD, u->path, BUS_PROPERTIES,
                                      "PropertiesChanged", on_unit_changed, NULL, u);

    if (r < 0)
        log_debug_errno(r, "Cannot subscribe to changes of %s, ignoring: %m", u->name);
}

/* Notes the unit's object, which the reply names. If the unit's name is an alias, the reply names
 * the object of the unit that the alias stands for. */
static int on_unit_loaded(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    WatchedUnit *u = arg;
    const BusListener *l = u->w->listener;
    const char *path;
    bool known;
    char *copy;

    if (bus_reply_is_error(l, m) || sd_bus_message_read(m, "o", &path) < 0) {
        if (u == &u->w->display_manager && sd_bus_message_is_method_error(m, NO_SUCH_UNIT))
            return bus_report(l, STAGE_EVENT_DISPLAY_MANAGER, NULL);
        return u == &u->w->target ? report_finished(u->w) : 0;
    }
    copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    known = u->path && strcmp(u->path, copy) == 0;
    free(u->path);
    u->path = copy;
    if (!known)
        subscribe_unit(u);
    query_unit(u);
    return 0;
}

/* Reads the time stamps from the reply to GetAll. Returns 0 or a negative errno. */
static int read_boot_times(sd_bus_message *m, BootTimes *ret)
{
    BootTimes t = {0};
    const struct {
        const char *name;
        uint64_t *field;
    } stamps[] = {
            {"FirmwareTimestampMonotonic", &t.firmware_usec},
            {"LoaderTimestampMonotonic", &t.loader_usec},
            {"InitRDTimestampMonotonic", &t.initrd_usec},
            {"UserspaceTimestampMonotonic", &t.userspace_usec},
            {"FinishTimestampMonotonic", &t.finish_usec},
    };
    const char *name;
    int r = sd_bus_message_enter_container(m, 'a', "{sv}");

    while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
        uint64_t *field = NULL;

        r = sd_bus_message_read(m, "s", &name);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(stamps); i++)
            if (strcmp(name, stamps[i].name) == 0)
                field = stamps[i].field;
        if (r >= 0)
            r = field ? sd_bus_message_read(m, "v", "t", field) : sd_bus_message_skip(m, "v");
        if (r >= 0)
            r = sd_bus_message_exit_container(m);
    }
    if (r >= 0)
        *ret = t;
    return r;
}

static int load_unit(WatchedUnit *u)
{
    return sd_bus_call_method_async(u->w->bus, NULL, BUS_SYSTEMD, BUS_SYSTEMD_PATH,
                                    BUS_SYSTEMD_MANAGER, "LoadUnit", on_unit_loaded, u, "s",
                                    u->name);
}

/* Queries default.target after systemd has finished the startup. The reply has the time at which
 * the target was reached. Before the first reply to LoadUnit, the target has no object. */
static int query_end(SystemdWatch *w)
{
    if (!w->target.path)
        return load_unit(&w->target) < 0 ? report_finished(w) : 0;
    query_unit(&w->target);
    return 0;
}

static int on_startup_finished(sd_bus_message *m _unused_, void *arg, sd_bus_error *error _unused_)
{
    SystemdWatch *w = arg;

    if (w->boot.finish_usec == 0)
        w->boot.finish_usec = clock_now(CLOCK_MONOTONIC);
    return query_end(w);
}

static int on_manager(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    SystemdWatch *w = arg;

    if (bus_reply_is_error(w->listener, m) || read_boot_times(m, &w->boot) < 0)
        return 0;
    return w->boot.finish_usec > 0 ? query_end(w) : 0;
}

int systemd_watch_query(SystemdWatch *w)
{
    int r;

    r = sd_bus_call_method_async(w->bus, NULL, BUS_SYSTEMD, BUS_SYSTEMD_PATH, BUS_SYSTEMD_MANAGER,
                                 "Subscribe", NULL, NULL, NULL);
    if (r >= 0)
        r = load_unit(&w->display_manager);
    if (r >= 0)
        r = load_unit(&w->target);
    if (r >= 0)
        r = sd_bus_call_method_async(w->bus, NULL, BUS_SYSTEMD, BUS_SYSTEMD_PATH, BUS_PROPERTIES,
                                     "GetAll", on_manager, w, "s", BUS_SYSTEMD_MANAGER);
    return r;
}

int systemd_watch_connect(SystemdWatch *w, sd_bus *bus)
{
    int r;

    w->bus = sd_bus_ref(bus);
    r = sd_bus_match_signal_async(bus, NULL, BUS_SYSTEMD, BUS_SYSTEMD_PATH, BUS_SYSTEMD_MANAGER,
                                  "StartupFinished", on_startup_finished, NULL, w);
    return r < 0 ? r : systemd_watch_query(w);
}

BootTimes systemd_watch_boot_times(const SystemdWatch *w)
{
    return w->boot;
}

void systemd_watch_disconnect(SystemdWatch *w)
{
    free(w->display_manager.path);
    free(w->target.path);
    w->display_manager.path = w->target.path = NULL;
    w->bus = sd_bus_unref(w->bus);
}

SystemdWatch *systemd_watch_new(const BusListener *listener)
{
    SystemdWatch *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->listener = listener;
    w->display_manager = (WatchedUnit){.w = w, .name = "display-manager.service"};
    w->target = (WatchedUnit){.w = w, .name = "default.target"};
    return w;
}

SystemdWatch *systemd_watch_free(SystemdWatch *w)
{
    if (!w)
        return NULL;
    systemd_watch_disconnect(w);
    free(w);
    return NULL;
}
