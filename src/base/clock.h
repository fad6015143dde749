/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Only this function reads clocks, except in the evaluation. Other code takes `now` as an
 * argument. */

#include "base/time-util.h"

#include <time.h>

/* Returns the clock's time in microseconds. Aborts if the clock does not exist (a programming
 * error). */
usec_t clock_now(clockid_t clock);
