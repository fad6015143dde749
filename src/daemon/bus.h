/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the watchers of the system bus and by is-login: names, the time limit of a call, and
 * the reading of replies. The watchers (logind-watch.h, systemd-watch.h) turn signals and replies
 * into events of the stage machine (stages-decide.h) and pass them to a listener. They know nothing
 * else about the listener. Every call is asynchronous. */

#include "daemon/stages-decide.h"

#include <systemd/sd-bus.h>

#define BUS_SYSTEMD         "org.freedesktop.systemd1"
#define BUS_SYSTEMD_PATH    "/org/freedesktop/systemd1"
#define BUS_SYSTEMD_MANAGER "org.freedesktop.systemd1.Manager"
#define BUS_LOGIND          "org.freedesktop.login1"
#define BUS_LOGIND_PATH     "/org/freedesktop/login1"
#define BUS_LOGIND_MANAGER  "org.freedesktop.login1.Manager"
#define BUS_LOGIND_SESSION  "org.freedesktop.login1.Session"
#define BUS_SYSTEMD_UNIT    "org.freedesktop.systemd1.Unit"
#define BUS_PROPERTIES      "org.freedesktop.DBus.Properties"
#define BUS_REPLY_USEC      (20 * USEC_PER_SEC)

/* Receives the events of a watcher. All functions get `arg`. on_event() sets e->now; it returns 0,
 * or a negative errno for the event loop. */
typedef struct BusListener {
    int (*on_event)(void *arg, StageEvent *e);
    void (*on_reply)(void *arg);   /* a call succeeded: the connection works */
    void (*on_timeout)(void *arg); /* a call got no reply: connect again */
    void *arg;
} BusListener;

/* Reports an event that consists of a kind and the object path of a session (or NULL). Returns what
 * on_event() returns. */
int bus_report(const BusListener *l, StageEventKind kind, const char *id);

/* Returns true if the message is an error reply. Calls on_reply() if it is not an error, and
 * on_timeout() if the call timed out or the connection broke. After another error calls neither. */
bool bus_reply_is_error(const BusListener *l, sd_bus_message *m);

/* Returns the age of an instant of CLOCK_MONOTONIC in microseconds, or 0 if the instant is in the
 * future. */
usec_t bus_age_of(usec_t monotonic);

/* The properties of a login session or unit that a watcher needs. Strings are borrowed from the
 * message. Properties that the message lacks are NULL or 0; `uid` is UID_INVALID then. */
typedef struct BusProperties {
    const char *class, *type, *state, *seat, *service;
    const char *load_state, *active_state;
    uint32_t uid, job;
    uint64_t since, active_since; /* CLOCK_MONOTONIC, in microseconds */
} BusProperties;

/* Reads the reply to org.freedesktop.DBus.Properties.GetAll. Returns 0 or a negative errno. */
int bus_properties_read(sd_bus_message *m, BusProperties *ret);

/* Returns true if the value is not NULL and equals the word. */
bool bus_property_is(const char *value, const char *word);

/* Returns true if a login session is graphical (its type is x11, wayland or mir), or has a seat. */
bool bus_session_is_graphical(const BusProperties *p);
bool bus_session_has_seat(const BusProperties *p);
