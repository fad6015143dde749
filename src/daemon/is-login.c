/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* is-login UID [UNIT [STATUS]]: succeeds if the user has a login session, and then stops UNIT.
 *
 * systemd starts user@UID.service, and with it the replay for the user, also for users who linger,
 * for cron jobs, and for ssh into a machine with a greeter. None of these counts as a login. A user
 * may connect by ssh every minute. While STATUS, the report of a replay for the user, exists,
 * remote sessions therefore do not count on any machine. The program also succeeds if there is no
 * logind. Each login waits for this program, so it asks as little as possible. */

#include "daemon/bus.h"

#include "base/clock.h"
#include "base/macros.h"
#include "base/parse.h"
#include "system/call-filter.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DISPLAY_MANAGER "display-manager.service"

/* After this time the user does not count as logged in. */
#define ANSWER_USEC (15 * USEC_PER_SEC)

typedef enum Login {
    LOGIN_NO,
    LOGIN_REMOTE, /* no seat and no screen: counts on a machine without a greeter, once */
    LOGIN_YES,
} Login;

typedef struct Question {
    sd_bus *bus;
    usec_t deadline; /* CLOCK_MONOTONIC */
} Question;

static void reply_unref(sd_bus_message **m)
{
    sd_bus_message_unref(*m);
}
#define _cleanup_reply_ _cleanup_(reply_unref)

/* Calls a method whose arguments, up to two, are strings (NULL: no argument). The caller frees
 * *ret. */
static int call2(const Question *q, const char *service, const char *path, const char *interface,
                 const char *method, const char *first, const char *second, sd_bus_message **ret)
{
    _cleanup_reply_ sd_bus_message *m = NULL;
    usec_t now = clock_now(CLOCK_MONOTONIC);

    if (now >= q->deadline)
        return -ETIMEDOUT;
    CHECK(sd_bus_message_new_method_call(q->bus, &m, service, path, interface, method));
    if (first)
        CHECK(sd_bus_message_append(m, "s", first));
    if (second)
        CHECK(sd_bus_message_append(m, "s", second));
    CHECK(sd_bus_message_set_auto_start(m, false));
    return sd_bus_call(q->bus, m, q->deadline - now, NULL, ret);
}

static int call(const Question *q, const char *service, const char *path, const char *interface,
                const char *method, const char *argument, sd_bus_message **ret)
{
    return call2(q, service, path, interface, method, argument, NULL, ret);
}

static Login login_of_session(const Question *q, const char *path)
{
    _cleanup_reply_ sd_bus_message *m = NULL;
    BusProperties p;

    if (call(q, BUS_LOGIND, path, BUS_PROPERTIES, "GetAll", BUS_LOGIND_SESSION, &m) < 0 ||
        bus_properties_read(m, &p) < 0 || session_class_from_string(p.class) != SESSION_CLASS_USER)
        return LOGIN_NO;
    return bus_session_is_graphical(&p) || bus_session_has_seat(&p) ? LOGIN_YES : LOGIN_REMOTE;
}

static bool display_manager_runs(const Question *q)
{
    _cleanup_reply_ sd_bus_message *unit = NULL, *m = NULL;
    const char *path;
    BusProperties p;

    return call(q, BUS_SYSTEMD, BUS_SYSTEMD_PATH, BUS_SYSTEMD_MANAGER, "LoadUnit", DISPLAY_MANAGER,
                &unit) >= 0 &&
           sd_bus_message_read(unit, "o", &path) >= 0 &&
           call(q, BUS_SYSTEMD, path, BUS_PROPERTIES, "GetAll", BUS_SYSTEMD_UNIT, &m) >= 0 &&
           bus_properties_read(m, &p) >= 0 && bus_property_is(p.active_state, "active");
}

/* Returns true if a remote session counts: see the head of this file. */
static bool remote_counts(const Question *q, const char *status)
{
    return (!status || access(status, F_OK) < 0) && !display_manager_runs(q);
}

static bool is_login(const Question *q, uint32_t uid, const char *status)
{
    _cleanup_reply_ sd_bus_message *m = NULL;
    const char *id, *name, *seat, *path;
    Login login = LOGIN_NO;
    uint32_t owner;
    int r = call(q, BUS_LOGIND, BUS_LOGIND_PATH, BUS_LOGIND_MANAGER, "ListSessions", NULL, &m);

    if (r < 0)
        return r != -ETIMEDOUT;
    if (sd_bus_message_enter_container(m, 'a', "(susso)") < 0)
        return true;
    while (login != LOGIN_YES &&
           sd_bus_message_read(m, "(susso)", &id, &owner, &name, &seat, &path) > 0)
        if (owner == uid)
            login = MAX(login, login_of_session(q, path));
    return login == LOGIN_YES || (login == LOGIN_REMOTE && remote_counts(q, status));
}

static void on_alarm(int signal)
{
    _exit(EXIT_FAILURE);
}

/* Ends this program after ANSWER_USEC. The deadline of a call does not include the time for
 * connecting to the bus, and flushing has no deadline. */
static void limit_time(void)
{
    (void)sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
    (void)alarm(ANSWER_USEC / USEC_PER_SEC);
}

/* Waits until systemd has accepted the request, but not until the unit has stopped. systemd asks
 * the bus who has sent the request, and refuses it if the sender has left the bus. */
static void stop_unit(const Question *q, const char *unit)
{
    _cleanup_reply_ sd_bus_message *m = NULL;

    (void)call2(q, BUS_SYSTEMD, BUS_SYSTEMD_PATH, BUS_SYSTEMD_MANAGER, "StopUnit", unit, "replace",
                &m);
}

int main(int argc, char *argv[])
{
    Question q = {.deadline = clock_now(CLOCK_MONOTONIC) + ANSWER_USEC};
    uint64_t uid;
    bool login;

    if (argc < 2 || argc > 4 || parse_u64(argv[1], &uid) < 0 || uid >= UID_INVALID) {
        fputs("is-login: usage: is-login UID [UNIT [STATUS]]\n", stderr);
        return 2;
    }
    (void)call_filter_complete(); /* without it, the unit's own filter still applies */
    limit_time();
    if (sd_bus_open_system(&q.bus) < 0)
        return EXIT_SUCCESS;
    login = is_login(&q, (uint32_t)uid, argc > 3 ? argv[3] : NULL);
    if (login && argc > 2)
        stop_unit(&q, argv[2]);
    sd_bus_flush_close_unref(q.bus);
    return login ? EXIT_SUCCESS : EXIT_FAILURE;
}
