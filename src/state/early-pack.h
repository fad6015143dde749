/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /etc/headstart/boot.pack: a copy of STATE/boot.pack for early boot. It exists only if the state
 * directory is on a filesystem (/var) that is mounted later than the root filesystem. */

#include <stddef.h>

#include "config-paths.h"

#define EARLY_PACK_PATH HEADSTART_SYSCONF_DIR "/boot.pack"

/* Creates, replaces or removes the copy after the boot pack has changed to these bytes (NULL: it
 * was removed). /etc is below `system_fd` (AT_FDCWD: the real /etc). With AT_FDCWD nothing is done
 * if `state` is not the state directory that the units use. A read-only root filesystem without a
 * copy is no error. Returns 0 or a negative errno. */
int early_pack_update(int system_fd, const char *state, int state_fd, const void *bytes,
                      size_t size);
