/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The temperature of the machine, as /sys/class/thermal reports it. */

#include "base/macros.h"

/* Returns true if a thermal zone is at least as hot as one of its trip points of type "passive"
 * (the kernel then slows processors down), "hot" or "critical". Zones that cannot be read, and trip
 * points that the firmware has not set, do not count. Firmware may take milliseconds to read a
 * temperature. */
bool thermal_is_hot(int root_fd);
