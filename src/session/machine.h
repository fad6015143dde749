/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads facts about the machine for the decisions of the session cycle. The facts come from
 * /proc/meminfo, /proc/pressure/memory, /sys/class/power_supply and /sys/class/thermal below a
 * root. */

#include "session/cycle.h"

/* Returns true if the machine runs on battery: a built-in battery discharges and no other supply is
 * online (as systemd's ConditionACPower= defines it). A supply that cannot be read is ignored. */
bool machine_on_battery(int root_fd);

/* Returns the percentage of the last ten seconds in which tasks waited for memory; 0 if the kernel
 * does not report it.
 */
double machine_memory_pressure(int root_fd);

/* Reads all facts. Returns 0, -EBADMSG, or the negative errno of reading /proc/meminfo. */
int machine_snapshot(int root_fd, CycleSnapshot *ret);
