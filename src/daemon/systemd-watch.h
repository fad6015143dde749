/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Watches display-manager.service and default.target on systemd's bus interface. It reports the
 * state of display-manager.service as STAGE_EVENT_DISPLAY_MANAGER. It reports
 * STAGE_EVENT_BOOT_FINISHED whenever it learns that default.target is active, with the time since
 * the target was reached. If the target is not active or cannot be queried although systemd has
 * finished the startup, the report has the time since systemd finished. The state machine uses the
 * first of these reports. */

#include "daemon/bus.h"
#include "daemon/stages.h"

typedef struct SystemdWatch SystemdWatch;

/* Makes a watcher without a connection. It borrows the listener. Returns NULL if out of memory. */
SystemdWatch *systemd_watch_new(const BusListener *listener);

/* Disconnects. */
SystemdWatch *systemd_watch_free(SystemdWatch *w);

/* Subscribes to systemd's signals on a new connection and queries the present state. Takes a
 * reference to the bus. Returns 0 or a negative errno. */
int systemd_watch_connect(SystemdWatch *w, sd_bus *bus);

/* Queries the present state. Called on a new connection, and after systemd has come back. Returns
 * 0, or a negative errno if a call cannot be sent. */
int systemd_watch_query(SystemdWatch *w);

/* Returns the times that the manager has reported about this boot so far. */
BootTimes systemd_watch_boot_times(const SystemdWatch *w);

/* Drops the units' object paths and the reference to the bus. Must be called when the connection is
 * closed. */
void systemd_watch_disconnect(SystemdWatch *w);
