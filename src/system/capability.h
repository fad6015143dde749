/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <linux/capability.h>

/* Returns 1 if this process has the capability (CAP_FOWNER, ...) in its effective set, 0 if not, or
 * the negative errno of capget(2). */
int capability_is_effective(int capability);

/* Permanently removes the capability from the effective, permitted and inheritable sets of the
 * calling thread and of threads that it starts later. Returns 0 (also if the thread does not have
 * the capability), or the negative errno of capget(2) or capset(2). */
int capability_drop(int capability);

/* Empties the inheritable set of the calling thread, and with it the ambient set, so that programs
 * that it executes get only capabilities of its bounding set. Returns 0, or the negative errno of
 * capget(2) or capset(2). */
int capability_end_inheritance(void);
