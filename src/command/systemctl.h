/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs systemctl(1). */

#include "base/macros.h"

/* Returns true if this system was booted with systemd. */
bool systemctl_available(void);

/* Runs systemctl with these arguments (NULL-terminated, without its name) and waits for it.
 * `silent`: its error messages are dropped. Its exit status, or a negative errno if it could not be
 * run (not reported). */
int systemctl_run(const char *const *arguments, bool silent);
