/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* systemd's own command, for what it does better than we could. */

#include "base/macros.h"

/* True if this system was booted with systemd. */
bool systemctl_available(void);

/* Runs systemctl with these arguments (NULL-terminated, without its name) and waits for it.
 * `silent`: what it complains about is not shown. Its exit status, or a negative errno if it could
 * not be run (nothing is reported). */
int systemctl_run(const char *const *arguments, bool silent);
