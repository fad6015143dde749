/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/bus.h"

#include "base/clock.h"
#include "base/macros.h"

#include <string.h>

int bus_report(const BusListener *l, StageEventKind kind, const char *id)
{
    return l->on_event(l->arg, &(StageEvent){.kind = kind, .id = id});
}

bool bus_reply_is_error(const BusListener *l, sd_bus_message *m)
{
    if (!sd_bus_message_is_method_error(m, NULL)) {
        l->on_reply(l->arg);
        return false;
    }
    if (sd_bus_message_is_method_error(m, SD_BUS_ERROR_NO_REPLY))
        l->on_timeout(l->arg);
    return true;
}

usec_t bus_age_of(usec_t monotonic)
{
    usec_t now = clock_now(CLOCK_MONOTONIC);

    return now > monotonic ? now - monotonic : 0;
}

/* Returns the field for a property of that name and signature, or NULL. Of a structure only the
 * first member is read. */
static void *find_field(BusProperties *p, const char *name, const char *signature)
{
    const struct {
        const char *name, *signature;
        void *field;
    } table[] = {
            {"Class", "s", &p->class},
            {"Type", "s", &p->type},
            {"State", "s", &p->state},
            {"Seat", "(so)", &p->seat},
            {"Service", "s", &p->service},
            {"User", "(uo)", &p->uid},
            {"TimestampMonotonic", "t", &p->since},
            {"LoadState", "s", &p->load_state},
            {"ActiveState", "s", &p->active_state},
            {"Job", "(uo)", &p->job},
            {"ActiveEnterTimestampMonotonic", "t", &p->active_since},
    };

    for (size_t i = 0; i < ELEMENTSOF(table); i++)
        if (strcmp(table[i].name, name) == 0 && strcmp(table[i].signature, signature) == 0)
            return table[i].field;
    return NULL;
}

static int read_property(sd_bus_message *m, BusProperties *p)
{
    const char *name, *signature, *path;
    void *field;
    int r = sd_bus_message_read_basic(m, 's', &name);

    if (r >= 0)
        r = sd_bus_message_peek_type(m, NULL, &signature);
    if (r < 0)
        return r;
    field = find_field(p, name, signature);
    if (!field)
        return sd_bus_message_skip(m, "v");
    if (signature[0] != '(')
        return sd_bus_message_read(m, "v", signature, field);
    return sd_bus_message_read(m, "v", signature, field, &path);
}

int bus_properties_read(sd_bus_message *m, BusProperties *ret)
{
    BusProperties p = {.uid = UID_INVALID};
    int r = sd_bus_message_enter_container(m, 'a', "{sv}");

    while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
        r = read_property(m, &p);
        if (r >= 0)
            r = sd_bus_message_exit_container(m);
    }
    if (r < 0)
        return r;
    *ret = p;
    return 0;
}

bool bus_property_is(const char *value, const char *word)
{
    return value && strcmp(value, word) == 0;
}

bool bus_session_is_graphical(const BusProperties *p)
{
    return bus_property_is(p->type, "x11") || bus_property_is(p->type, "wayland") ||
           bus_property_is(p->type, "mir");
}

bool bus_session_has_seat(const BusProperties *p)
{
    return p->seat && *p->seat;
}
