/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Units, as systemd tells of them: is there a display manager, has the boot reached its end? */

#include "base/log.h"
#include "base/macros.h"
#include "daemon/stages-bus.h"

#include <string.h>

#define SYSTEMD_UNIT "org.freedesktop.systemd1.Unit"
#define NO_SUCH_UNIT "org.freedesktop.systemd1.NoSuchUnit"

static int on_unit(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    FollowedUnit *u = arg;
    StageEvent e = {.kind = STAGE_EVENT_DISPLAY_MANAGER};
    Properties p = {0};

    if (system_is_error(u->s, m) || properties_read(m, &p) < 0)
        return 0;
    e.active = property_is(p.active_state, "active") || property_is(p.active_state, "reloading") ||
               property_is(p.active_state, "refreshing");
    if (u == &u->s->target) {
        if (!e.active)
            return 0;
        e.kind = STAGE_EVENT_BOOT_FINISHED;
        e.age = system_age_of(p.active_since);
    } else if (!e.active && property_is(p.load_state, "loaded"))
        /* Not yet, but it will be: its job is queued from the beginning of the boot on. */
        e.active = property_is(p.active_state, "activating") || p.job != 0;
    return system_feed(u->s, &e);
}

static void ask_unit(FollowedUnit *u)
{
    int r = sd_bus_call_method_async(u->s->bus, NULL, SYSTEMD, u->path, PROPERTIES, "GetAll",
                                     on_unit, u, "s", SYSTEMD_UNIT);

    if (r < 0)
        log_debug_errno(r, "Cannot ask for %s, ignoring: %m", u->name);
}

static int on_unit_changed(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    FollowedUnit *u = arg;
    const char *interface;

    if (u->path && sd_bus_message_read(m, "s", &interface) >= 0 &&
        strcmp(interface, SYSTEMD_UNIT) == 0)
        ask_unit(u);
    return 0;
}

/* The unit's object: that of what an alias stands for. */
static int on_unit_loaded(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    FollowedUnit *u = arg;
    bool followed = u->path;
    const char *path;
    char *copy;
    int r;

    if (system_is_error(u->s, m) || sd_bus_message_read(m, "o", &path) < 0) {
        if (u == &u->s->display_manager && sd_bus_message_is_method_error(m, NO_SUCH_UNIT))
            return system_feed_kind(u->s, STAGE_EVENT_DISPLAY_MANAGER, NULL);
        return 0;
    }
    copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    followed = followed && strcmp(u->path, copy) == 0;
    free(u->path);
    u->path = copy;
    if (!followed) {
        r = sd_bus_match_signal_async(u->s->bus, NULL, SYSTEMD, u->path, PROPERTIES,
                                      "PropertiesChanged", on_unit_changed, NULL, u);
        if (r < 0)
            log_debug_errno(r, "Cannot follow %s, ignoring: %m", u->name);
    }
    ask_unit(u);
    return 0;
}

int systemd_on_startup_finished(sd_bus_message *m _unused_, void *arg, sd_bus_error *error _unused_)
{
    return system_feed_kind(arg, STAGE_EVENT_BOOT_FINISHED, NULL);
}

static int on_finish_timestamp(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    uint64_t at = 0;

    if (system_is_error(arg, m) || sd_bus_message_read(m, "v", "t", &at) < 0 || at == 0)
        return 0;
    return system_feed(arg,
                       &(StageEvent){.kind = STAGE_EVENT_BOOT_FINISHED, .age = system_age_of(at)});
}

int systemd_ask(SystemSource *s)
{
    int r;

    r = sd_bus_call_method_async(s->bus, NULL, SYSTEMD, SYSTEMD_PATH, SYSTEMD_MANAGER, "Subscribe",
                                 NULL, NULL, NULL);
    if (r >= 0)
        r = sd_bus_call_method_async(s->bus, NULL, SYSTEMD, SYSTEMD_PATH, SYSTEMD_MANAGER,
                                     "LoadUnit", on_unit_loaded, &s->display_manager, "s",
                                     s->display_manager.name);
    if (r >= 0)
        r = sd_bus_call_method_async(s->bus, NULL, SYSTEMD, SYSTEMD_PATH, SYSTEMD_MANAGER,
                                     "LoadUnit", on_unit_loaded, &s->target, "s", s->target.name);
    if (r >= 0)
        r = sd_bus_call_method_async(s->bus, NULL, SYSTEMD, SYSTEMD_PATH, PROPERTIES, "Get",
                                     on_finish_timestamp, s, "ss", SYSTEMD_MANAGER,
                                     "FinishTimestampMonotonic");
    return r;
}

void systemd_forget(SystemSource *s)
{
    free(s->display_manager.path);
    free(s->target.path);
    s->display_manager.path = s->target.path = NULL;
}
