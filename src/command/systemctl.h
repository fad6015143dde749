/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs systemctl(1). */

#include "command/cli.h"

/* Returns true if this system was booted with systemd. */
bool systemctl_available(void);

/* Runs systemctl with these arguments (NULL-terminated, without its name) and waits for it. With
 * `silent`, its error messages are dropped. Returns its exit status; -EINTR if a signal ended it;
 * or another negative errno if it could not be run. The function reports no errors itself. */
int systemctl_run(const char *const *arguments, bool silent);

/* Sends SIGHUP to headstartd, so that it loads the model of the machine again. Without the signal,
 * the prefetcher would save the chains that it has in memory. Does nothing if --state= is another
 * directory or headstartd does not run. */
void systemctl_reload_headstartd(const Context *c);
