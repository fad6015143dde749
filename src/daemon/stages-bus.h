/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by stages-system.c (the bus and the machine), stages-logind.c (sessions) and
 * stages-systemd.c (units): one source that tells stages-decide.c what they say on the system bus.
 * Every call is asynchronous; whatever fails is asked again when the bus, or who answers on it,
 * comes back. */

#include "base/pressure.h"
#include "daemon/stages-decide.h"
#include "daemon/stages-internal.h"

#include <systemd/sd-bus.h>

#define LOGIND          "org.freedesktop.login1"
#define LOGIND_PATH     "/org/freedesktop/login1"
#define LOGIND_MANAGER  "org.freedesktop.login1.Manager"
#define SYSTEMD         "org.freedesktop.systemd1"
#define SYSTEMD_PATH    "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER "org.freedesktop.systemd1.Manager"
#define PROPERTIES      "org.freedesktop.DBus.Properties"
#define ANSWER_USEC     (20 * USEC_PER_SEC)
#define RECHECK_USEC    (250 * USEC_PER_MSEC)

typedef struct SystemSource SystemSource;

/* A session to be asked for. */
typedef struct Question {
    SystemSource *s;
    struct Question *next;
    bool listed; /* by ListSessions */
    char path[];
} Question;

/* A unit that is followed. */
typedef struct FollowedUnit {
    SystemSource *s;
    const char *name;
    char *path;
} FollowedUnit;

struct SystemSource {
    StageSource base;
    StageCallbacks callbacks;
    StageMachine *machine;
    sd_event *event;
    sd_event_source *retry, *timer, *recheck;
    bool sampling; /* the timer is set for a sample */
    sd_bus *bus;
    bool answered; /* somebody did, since it was connected */
    unsigned n_retries;
    FollowedUnit display_manager, target;
    Question *first, **last; /* to be asked */
    unsigned n_asked;        /* under way */
    unsigned n_listed;       /* queued or under way */
    bool list_failed;
    Question *opening; /* to be asked again: logind does not tell when they are open */
    Pressure pressure;
    const char *waits_for;
};

/* What is read of a session's or unit's properties; strings are borrowed from the message. */
typedef struct Properties {
    const char *class, *type, *state, *seat;
    const char *load_state, *active_state;
    uint32_t uid, job;
    uint64_t since, active_since;
} Properties;

/* Hands an event over and acts on what is decided. 0, or a negative errno of acting on it. */
int system_feed(SystemSource *s, StageEvent *e);
int system_feed_kind(SystemSource *s, StageEventKind kind, const char *id);

/* True if the message is no answer but an error. One that says that none came in time is a reason
 * to begin anew: also if it comes from the bus being lost. */
bool system_is_error(SystemSource *s, sd_bus_message *m);

/* How long ago something stamped by systemd or logind was, in microseconds. */
usec_t system_age_of(usec_t monotonic);

/* Reads the answer to GetAll. 0 or a negative errno. */
int properties_read(sd_bus_message *m, Properties *p);
bool property_is(const char *value, const char *word);

/* Sessions: asks for all there are; what signals lead to. */
int logind_ask(SystemSource *s);
void logind_forget(SystemSource *s); /* what was to be asked */
int logind_on_recheck(sd_event_source *source, uint64_t usec, void *arg);
int logind_on_session_new(sd_bus_message *m, void *arg, sd_bus_error *error);
int logind_on_session_removed(sd_bus_message *m, void *arg, sd_bus_error *error);
int logind_on_session_changed(sd_bus_message *m, void *arg, sd_bus_error *error);

/* Units, and whether the boot is over: asks; what a signal leads to. */
int systemd_ask(SystemSource *s);
void systemd_forget(SystemSource *s); /* what units are called on this bus */
int systemd_on_startup_finished(sd_bus_message *m, void *arg, sd_bus_error *error);
