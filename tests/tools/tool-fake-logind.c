/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A fake of systemd and logind on a test's own bus ($DBUS_SYSTEM_BUS_ADDRESS), with the parts that
 * headstartd uses. Reads commands, one per line, and answers each with "done" or "failed: ERROR":
 *
 *     appear                          takes the names of systemd and logind on the bus
 *     disappear                       gives back the name of logind
 *     manager STATE | target STATE    sets the ActiveState of the display manager or of the default
 *                                     target; with "queued" and "not-found" it is "inactive"
 *     reached MSEC                    makes the default target active since MSEC, without a signal
 *     finished                        finishes the boot
 *     new ID UID CLASS TYPE SEAT [SERVICE]  opens a session; SEAT "-" means no seat
 *     state ID STATE | type ID TYPE   changes the state or the type of a session
 *     gone ID                         ends a session
 *     silent                          leaves later calls of ListSessions, Subscribe and LoadUnit
 *                                     without an answer
 *
 * The program ends when its input ends or the bus closes the connection. */

#include "base/macros.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <time.h>

#define UNITS    "/org/freedesktop/systemd1/unit/"
#define SESSIONS "/org/freedesktop/login1/session/"

typedef struct LoginSession {
    char id[32], class[32], type[32], seat[32], state[32], service[32], path[80];
    uint32_t uid;
    uint64_t since;
    bool there;
} LoginSession;

typedef struct Unit {
    const char *name, *path;
    char state[32];
    bool found, queued;
    uint64_t since;
} Unit;

static LoginSession sessions[64];
static Unit units[] = {
        {"display-manager.service", UNITS "lightdm_2eservice", "inactive", .found = false},
        {"default.target", UNITS "graphical_2etarget", "inactive", .found = true, .queued = true},
};
static uint64_t finished;
static bool silent;
static sd_bus *bus;

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static LoginSession *find(const char *id)
{
    for (size_t i = 0; i < ELEMENTSOF(sessions); i++)
        if (sessions[i].there && strcmp(sessions[i].id, id) == 0)
            return &sessions[i];
    return NULL;
}

/* --- the bus interface ------------------------------------------------------------------------ */

static int list_sessions(sd_bus_message *m, void *arg, sd_bus_error *error)
{
    sd_bus_message *reply = NULL;
    int r;

    if (silent)
        return 1;
    r = sd_bus_message_new_method_return(m, &reply);
    if (r >= 0)
        r = sd_bus_message_open_container(reply, 'a', "(susso)");
    for (size_t i = 0; r >= 0 && i < ELEMENTSOF(sessions); i++)
        if (sessions[i].there)
            r = sd_bus_message_append(reply, "(susso)", sessions[i].id, sessions[i].uid, "someone",
                                      sessions[i].seat, sessions[i].path);
    if (r >= 0)
        r = sd_bus_message_close_container(reply);
    if (r >= 0)
        r = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return r < 0 ? r : 1;
}

static int subscribe(sd_bus_message *m, void *arg, sd_bus_error *error)
{
    return silent ? 1 : sd_bus_reply_method_return(m, NULL);
}

static int load_unit(sd_bus_message *m, void *arg, sd_bus_error *error)
{
    const char *name;
    int r = sd_bus_message_read(m, "s", &name);

    if (r < 0 || silent)
        return r < 0 ? r : 1;
    for (size_t i = 0; i < ELEMENTSOF(units); i++)
        if (strcmp(name, units[i].name) == 0)
            return sd_bus_reply_method_return(m, "o", units[i].path);
    return sd_bus_error_setf(error, "org.freedesktop.systemd1.NoSuchUnit", "no unit %s", name);
}

static int get_finished(sd_bus *b, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *arg, sd_bus_error *error)
{
    return sd_bus_message_append(reply, "t", finished);
}

static int get_version(sd_bus *b, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *arg, sd_bus_error *error)
{
    return sd_bus_message_append(reply, "s", "252");
}

/* Answers with a fixed time of the firmware, the loader, the initrd or userspace. */
static int get_stamp(sd_bus *b, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *arg, sd_bus_error *error)
{
    uint64_t at = strncmp(property, "Firmware", 8) == 0 ? 700000
                  : strncmp(property, "Loader", 6) == 0 ? 300000
                  : strncmp(property, "InitRD", 6) == 0 ? 2000000
                                                        : 3500000;

    return sd_bus_message_append(reply, "t", at);
}

static int get_unit(sd_bus *b, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *arg, sd_bus_error *error)
{
    Unit *u = arg;

    if (strcmp(property, "ActiveState") == 0)
        return sd_bus_message_append(reply, "s", u->state);
    if (strcmp(property, "LoadState") == 0)
        return sd_bus_message_append(reply, "s", u->found ? "loaded" : "not-found");
    if (strcmp(property, "Job") == 0)
        return sd_bus_message_append(reply, "(uo)", u->queued ? 17U : 0U, "/");
    return sd_bus_message_append(reply, "t", u->since);
}

static int get_session(sd_bus *b, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *arg, sd_bus_error *error)
{
    LoginSession *s = arg;

    if (strcmp(property, "Class") == 0)
        return sd_bus_message_append(reply, "s", s->class);
    if (strcmp(property, "Type") == 0)
        return sd_bus_message_append(reply, "s", s->type);
    if (strcmp(property, "State") == 0)
        return sd_bus_message_append(reply, "s", s->state);
    if (strcmp(property, "Active") == 0)
        return sd_bus_message_append(reply, "b", strcmp(s->state, "active") == 0);
    if (strcmp(property, "Seat") == 0)
        return sd_bus_message_append(reply, "(so)", s->seat, "/");
    if (strcmp(property, "Service") == 0)
        return sd_bus_message_append(reply, "s", s->service);
    if (strcmp(property, "User") == 0)
        return sd_bus_message_append(reply, "(uo)", s->uid, "/");
    if (strcmp(property, "TimestampMonotonic") == 0)
        return sd_bus_message_append(reply, "t", s->since);
    return sd_bus_message_append(reply, "as", 2, "something", "else");
}

static int find_session(sd_bus *b, const char *path, const char *interface, void *arg,
                        void **ret_found, sd_bus_error *error)
{
    for (size_t i = 0; i < ELEMENTSOF(sessions); i++)
        if (sessions[i].there && strcmp(sessions[i].path, path) == 0) {
            *ret_found = &sessions[i];
            return 1;
        }
    return 0;
}

static const sd_bus_vtable logind_table[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("ListSessions", NULL, "a(susso)", list_sessions, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL("SessionNew", "so", 0),
        SD_BUS_SIGNAL("SessionRemoved", "so", 0),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable session_table[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Audit", "as", get_session, 0, 0),
        SD_BUS_PROPERTY("Class", "s", get_session, 0, 0),
        SD_BUS_PROPERTY("Type", "s", get_session, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("State", "s", get_session, 0, 0),
        SD_BUS_PROPERTY("Active", "b", get_session, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Seat", "(so)", get_session, 0, 0),
        SD_BUS_PROPERTY("Service", "s", get_session, 0, 0),
        SD_BUS_PROPERTY("User", "(uo)", get_session, 0, 0),
        SD_BUS_PROPERTY("TimestampMonotonic", "t", get_session, 0, 0),
        SD_BUS_VTABLE_END,
};

/* Prints a call of StartUnit or StopUnit. */
static int queue_unit(sd_bus_message *m, void *arg, sd_bus_error *error)
{
    const char *unit, *mode;
    int r = sd_bus_message_read(m, "ss", &unit, &mode);

    if (r < 0)
        return r;
    fprintf(stderr, "%s %s %s\n",
            sd_bus_message_is_method_call(m, NULL, "StopUnit") ? "stop" : "start", mode, unit);
    return sd_bus_reply_method_return(m, "o", "/org/freedesktop/systemd1/job/1");
}

static const sd_bus_vtable systemd_table[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Subscribe", NULL, NULL, subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StartUnit", "ss", "o", queue_unit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StopUnit", "ss", "o", queue_unit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("LoadUnit", "s", "o", load_unit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Version", "s", get_version, 0, 0),
        SD_BUS_PROPERTY("FirmwareTimestampMonotonic", "t", get_stamp, 0, 0),
        SD_BUS_PROPERTY("LoaderTimestampMonotonic", "t", get_stamp, 0, 0),
        SD_BUS_PROPERTY("InitRDTimestampMonotonic", "t", get_stamp, 0, 0),
        SD_BUS_PROPERTY("UserspaceTimestampMonotonic", "t", get_stamp, 0, 0),
        SD_BUS_PROPERTY("FinishTimestampMonotonic", "t", get_finished, 0, 0),
        SD_BUS_SIGNAL("StartupFinished", "tttttt", 0),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable unit_table[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("ActiveState", "s", get_unit, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("LoadState", "s", get_unit, 0, 0),
        SD_BUS_PROPERTY("Job", "(uo)", get_unit, 0, 0),
        SD_BUS_PROPERTY("ActiveEnterTimestampMonotonic", "t", get_unit, 0, 0),
        SD_BUS_VTABLE_END,
};

/* --- commands --------------------------------------------------------------------------------- */

static int change_unit(Unit *u, const char *state)
{
    u->found = strcmp(state, "not-found") != 0;
    u->queued = strcmp(state, "queued") == 0;
    snprintf(u->state, sizeof(u->state), "%s", u->found && !u->queued ? state : "inactive");
    if (strcmp(u->state, "active") == 0)
        u->since = now();
    return sd_bus_emit_properties_changed(bus, u->path, "org.freedesktop.systemd1.Unit",
                                          "ActiveState", NULL);
}

static int reach_target(const char *msec)
{
    Unit *target = &units[1];

    snprintf(target->state, sizeof(target->state), "active");
    target->since = now() - strtoull(msec, NULL, 10) * 1000;
    return 0;
}

static int tell_session(const LoginSession *s, const char *signal)
{
    return sd_bus_emit_signal(bus, "/org/freedesktop/login1", "org.freedesktop.login1.Manager",
                              signal, "so", s->id, s->path);
}

static int new_session(const char *arguments)
{
    LoginSession *s = sessions;

    while (s < sessions + ELEMENTSOF(sessions) && s->there)
        s++;
    if (s == sessions + ELEMENTSOF(sessions))
        return -EINVAL;
    s->service[0] = 0;
    if (sscanf(arguments, "%31s %" SCNu32 " %31s %31s %31s %31s", s->id, &s->uid, s->class, s->type,
               s->seat, s->service) < 5)
        return -EINVAL;
    if (strcmp(s->seat, "-") == 0)
        s->seat[0] = 0;
    snprintf(s->state, sizeof(s->state), "opening");
    snprintf(s->path, sizeof(s->path), SESSIONS "_3%s", s->id);
    s->since = now();
    s->there = true;
    return tell_session(s, "SessionNew");
}

static int change_session(const char *arguments, bool type)
{
    char id[32], value[32];
    bool opens;
    LoginSession *s;

    if (sscanf(arguments, "%31s %31s", id, value) != 2 || !(s = find(id)))
        return -EINVAL;
    opens = !type && strcmp(s->state, "opening") == 0;
    memcpy(type ? s->type : s->state, value, sizeof(value));
    /* As in logind, the signal never contains State, and no signal is sent when a session leaves
     * the state "opening". */
    if (opens)
        return 0;
    return sd_bus_emit_properties_changed(bus, s->path, "org.freedesktop.login1.Session",
                                          type ? "Type" : "Active", NULL);
}

static int end_session(const char *id)
{
    LoginSession *s = find(id);

    if (!s)
        return -EINVAL;
    s->there = false;
    return tell_session(s, "SessionRemoved");
}

static int do_command(char *line)
{
    char *arguments = strchr(line, ' ');

    if (arguments)
        *arguments++ = 0;
    else
        arguments = line + strlen(line);
    if (strcmp(line, "appear") == 0) {
        int r = sd_bus_request_name(bus, "org.freedesktop.systemd1", 0);

        if (r >= 0 || r == -EALREADY)
            r = sd_bus_request_name(bus, "org.freedesktop.login1", 0);
        return r;
    }
    if (strcmp(line, "disappear") == 0)
        return sd_bus_release_name(bus, "org.freedesktop.login1");
    if (strcmp(line, "manager") == 0)
        return change_unit(&units[0], arguments);
    if (strcmp(line, "target") == 0)
        return change_unit(&units[1], arguments);
    if (strcmp(line, "reached") == 0)
        return reach_target(arguments);
    if (strcmp(line, "finished") == 0) {
        finished = now();
        return sd_bus_emit_signal(bus, "/org/freedesktop/systemd1",
                                  "org.freedesktop.systemd1.Manager", "StartupFinished", "tttttt",
                                  UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0),
                                  UINT64_C(0));
    }
    if (strcmp(line, "new") == 0)
        return new_session(arguments);
    if (strcmp(line, "state") == 0 || strcmp(line, "type") == 0)
        return change_session(arguments, line[0] == 't');
    if (strcmp(line, "gone") == 0)
        return end_session(arguments);
    if (strcmp(line, "silent") == 0) {
        silent = true;
        return 0;
    }
    return -EINVAL;
}

static int on_input(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
    static char line[256];
    static size_t n;
    ssize_t k;

    /* Reads one character at a time, so that no command is left in a buffer. */
    while ((k = read(fd, line + n, 1)) == 1) {
        if (line[n] != '\n') {
            n += n < sizeof(line) - 1;
            return 0;
        }
        line[n] = 0;
        n = 0;
        k = do_command(line);
        sd_bus_flush(bus);
        printf(k < 0 ? "failed: %s\n" : "done\n", strerror((int)-k));
        fflush(stdout);
        return 0;
    }
    return sd_event_exit(sd_event_source_get_event(source), 0);
}

static int on_disconnected(sd_bus_message *m, void *arg, sd_bus_error *error)
{
    return sd_event_exit(sd_bus_get_event(sd_bus_message_get_bus(m)), 0);
}

int main(void)
{
    sd_event *event = NULL;
    int r = sd_event_default(&event);

    if (r >= 0)
        r = sd_bus_open_system(&bus);
    if (r >= 0)
        r = sd_bus_attach_event(bus, event, 0);
    if (r >= 0)
        r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/login1",
                                     "org.freedesktop.login1.Manager", logind_table, NULL);
    if (r >= 0)
        r = sd_bus_add_fallback_vtable(bus, NULL, "/org/freedesktop/login1/session",
                                       "org.freedesktop.login1.Session", session_table,
                                       find_session, NULL);
    if (r >= 0)
        r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/systemd1",
                                     "org.freedesktop.systemd1.Manager", systemd_table, NULL);
    for (size_t i = 0; r >= 0 && i < ELEMENTSOF(units); i++)
        r = sd_bus_add_object_vtable(bus, NULL, units[i].path, "org.freedesktop.systemd1.Unit",
                                     unit_table, &units[i]);
    if (r >= 0)
        r = sd_bus_match_signal(bus, NULL, NULL, NULL, "org.freedesktop.DBus.Local", "Disconnected",
                                on_disconnected, NULL);
    if (r >= 0)
        r = sd_event_add_io(event, NULL, STDIN_FILENO, 0x1 /* EPOLLIN */, on_input, NULL);
    if (r >= 0)
        r = sd_event_loop(event);
    if (r < 0)
        fprintf(stderr, "tool-fake-logind: %s\n", strerror(-r));
    sd_bus_close_unref(bus);
    sd_event_unref(event);
    return r < 0;
}
