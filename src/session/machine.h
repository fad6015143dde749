/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The facts that the cycle decides by, read below a root: /proc/meminfo, /proc/pressure/memory,
 * /sys/class/power_supply. */

#include "session/cycle.h"

/* True if the machine runs on battery: a battery of the machine's own discharges, and no other
 * supply is online (as systemd's ConditionACPower= sees it). What cannot be read is not there. */
bool machine_on_battery(int root_fd);

/* Percent of the last ten seconds in which something waited for memory; 0 where the kernel does not
 * say. */
double machine_memory_pressure(int root_fd);

/* All of them. 0, or -EBADMSG or the error of reading meminfo. */
int machine_snapshot(int root_fd, CycleSnapshot *ret);
