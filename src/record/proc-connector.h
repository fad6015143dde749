/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* fork, exec, exit and uid changes as the kernel's process connector reports them (netlink;
 * CAP_NET_ADMIN, the initial pid namespace). */

#include "record/processes.h"

/* Opens the connector. A non-blocking descriptor, -EPERM (no CAP_NET_ADMIN), -EPROTONOSUPPORT (not
 * in the kernel), or another negative errno. */
int proc_connector_open(void);

/* Reads the queued events, at most about 200,000. Instants are `boottime - start_boottime`, from
 * the time stamps of the events. The number of events, -ENOMEM, or a negative errno. *lost is
 * raised when the kernel dropped some. */
int proc_connector_drain(int fd, ProcessTable *t, usec_t start_boottime, uint64_t *lost);
