/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Watches the login sessions of systemd-logind and reports them as STAGE_EVENT_SESSION,
 * _SESSION_GONE, _LIST_BEGIN and _LIST_END.
 *
 * logind's signals name a session but not its kind. Therefore each signal leads to a query of all
 * properties of that session. Queries are queued: at most 32 are under way at once. */

#include "daemon/bus.h"

#include <systemd/sd-event.h>

typedef struct LogindWatch LogindWatch;

/* Makes a watcher without a connection. It borrows the listener. Returns 0 or a negative errno. */
int logind_watch_new(sd_event *event, const BusListener *listener, LogindWatch **ret);

/* Disconnects. */
LogindWatch *logind_watch_free(LogindWatch *w);

/* Subscribes to logind's signals on a new connection and lists the sessions. Takes a reference to
 * the bus. Returns 0 or a negative errno. */
int logind_watch_connect(LogindWatch *w, sd_bus *bus);

/* Lists all sessions: reports _LIST_BEGIN, each session, and _LIST_END. Called on a new connection,
 * and after logind has come back. If a query failed, the list is incomplete and _LIST_END is not
 * reported. Returns 0, or a negative errno if the call cannot be sent. */
int logind_watch_list(LogindWatch *w);

/* Drops all queries and the reference to the bus. Must be called when the connection is closed. */
void logind_watch_disconnect(LogindWatch *w);
