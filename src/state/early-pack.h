/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /etc/headstart/boot.pack and /etc/headstart/boot-idle: copies of STATE/boot.pack and
 * STATE/boot-idle (state/idle-boot.h) for early boot. They exist only if the state directory is on
 * a filesystem (/var) that is mounted later than the root filesystem. */

#include <stddef.h>

/* Updates the copies after the boot pack has changed to these bytes (NULL: it was removed) or
 * STATE/boot-idle has changed. Without a pack, or while STATE/rerecord-boot exists, there are no
 * copies. /etc is below `system_fd` (AT_FDCWD: the real /etc). With AT_FDCWD nothing is done if
 * `state` is not the state directory that the units use. A read-only root filesystem without copies
 * is no error. Returns 0 or a negative errno. */
int early_pack_update(int system_fd, const char *state, int state_fd, const void *bytes,
                      size_t size);
