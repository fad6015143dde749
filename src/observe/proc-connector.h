/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the forks, execs, exits and changes of UIDs that the kernel's proc connector reports.
 * The connector uses netlink, and needs CAP_NET_ADMIN and the initial PID namespace. */

#include "observe/processes.h"

/* Opens the connector. Returns a non-blocking descriptor, -EPERM (no CAP_NET_ADMIN),
 * -EPROTONOSUPPORT (not in the kernel), or another negative errno. */
int proc_connector_open(void);

/* Reads the queued events, at most about 200,000. The table gets the times of the events on
 * CLOCK_BOOTTIME, less `start_boottime`; 0 for an event before it. The time stamps of the events
 * are on CLOCK_MONOTONIC, so the time that the machine was suspended is added. If an event was
 * queued before a suspend and is read after it, this time is added, too. Returns the number of
 * events, -ENOMEM, or another negative errno. *lost is raised by one each time that the kernel
 * reports that it dropped events. */
int proc_connector_drain(int fd, ProcessTable *t, usec_t start_boottime, uint64_t *lost);
