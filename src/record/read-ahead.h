/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Lowers read_ahead_kb for an exact recording, so that only accessed pages become resident, and
 * restores it afterwards. A record of the old values is written before any value changes. After a
 * crash, ExecStopPost= or the next start of the recorder restores the old values. A value that
 * another program has set since then stays. */

#include "volume/volume.h"

/* Lowers read_ahead_kb on the volumes' devices to `kb`. `record` is the path of the file that holds
 * the old values (its directory must exist). Restores first what a crash left lowered. Returns 0,
 * or a negative errno (then no value was lowered). */
int read_ahead_lower(const VolumeTable *t, unsigned kb, const char *record);

/* Restores the recorded values where the lowered value is still set, and removes the record.
 * Returns 0 (also if there is no record), or a negative errno. A record with an invalid line is set
 * aside. */
int read_ahead_restore(const char *record);
