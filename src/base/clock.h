/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Except in the evaluation, only clock_now() reads clocks. Pure code does not call it and takes
 * `now` as an argument. */

#include "base/time-util.h"

#include <time.h>

/* Returns the clock's time in microseconds. Aborts if the clock does not exist (a programming
 * error). */
usec_t clock_now(clockid_t clock);

/* Returns by how many seconds the local time is ahead of UTC at this moment of the wall clock; 0 if
 * the time zone is not known. Reads the time zone again. */
int64_t clock_utc_offset_sec(usec_t realtime);
