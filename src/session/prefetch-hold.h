/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Keeps the prefetch thread from accessing disks while a start of an application is observed. It is
 * process-wide, because a thread that hangs can outlive the session that started it. All functions
 * may be called from any thread. */

#include "base/time-util.h"

#include <stdbool.h>
#include <stdint.h>

/* Holds the prefetch thread until that time (CLOCK_MONOTONIC). A longer hold stays. */
void prefetch_hold(usec_t until);

/* Ends a hold early: a hold until `until` becomes one until `remaining`. A hold until another time
 * belongs to another caller and stays. */
void prefetch_release(usec_t until, usec_t remaining);

/* Returns true if the prefetch thread must not access a disk now. */
bool prefetch_is_held(void);

/* The prefetch thread calls this when it begins and when it ends to access a disk. */
void prefetch_note_access(void);

/* Returns how often prefetch_note_access() was called. If two calls return the same number, the
 * prefetch thread has begun no access between them, and has ended none. */
uint64_t prefetch_accesses(void);
