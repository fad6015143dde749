/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /etc/headstart/boot.pack: a copy of STATE/boot.pack for early boot. It exists only if the state
 * directory is on a filesystem (/var) that is mounted later than the root filesystem. */

#include "cli/cli.h"

/* Creates, replaces or removes the copy after the boot pack has changed to these bytes (NULL: it
 * was removed). Does nothing for a state directory that the units do not use. 0, or an error that
 * was reported. */
int early_pack_update(const Context *c, int state_fd, const void *bytes, size_t size);
