/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* STATE/boot-idle: the next boot is neither replayed nor recorded. headstart-init starts nothing,
 * and the recorder starts only after the boot. If rerecord-boot exists, the file has no effect. The
 * planner creates and removes the file, and its copy for early boot (state/early-pack.h). */

#include "base/time-util.h"
#include "base/vocabulary.h"

#include <stdbool.h>

#define STATE_IDLE_BOOT "boot-idle"

/* After this time a boot is recorded again, so that the planner notices when a replay becomes
 * worthwhile. */
#define IDLE_BOOT_MAX_USEC (168 * USEC_PER_HOUR)

/* Returns true if a boot with that policy needs nothing of headstart: the boot is not replayed, and
 * the newest recording of a boot is at most IDLE_BOOT_MAX_USEC old. `recorded` is the wall-clock
 * time of that recording, 0 if there is none. Pure. */
bool idle_boot_is_due(Policy policy, usec_t recorded, usec_t now);

/* Returns true if the file exists and was created more than IDLE_BOOT_MAX_USEC before `now` (wall
 * clock), or has a time in the future. Then the planner has to decide again, also if it has learned
 * nothing since. */
bool idle_boot_has_expired(int state_fd, usec_t now);

/* Creates or removes the file. If the file exists, it is created anew. Returns 0 or a negative
 * errno. */
int idle_boot_set(int state_fd, bool idle);
