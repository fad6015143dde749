/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* /etc/headstart/boot.pack, boot-idle and last-control: copies of STATE/boot.pack, STATE/boot-idle
 * (state/idle-boot.h) and STATE/last-control (boot/last-control.h) for early boot. They exist only
 * if the state directory is below a mount point (/var) that is mounted later than the root
 * filesystem. */

#include <stddef.h>

/* Updates the copies after the boot pack has changed to these bytes (NULL: it was removed) or
 * STATE/boot-idle or STATE/last-control has changed. Without a pack, or while STATE/rerecord-boot
 * exists, there are no copies. /etc is below `system_fd` (AT_FDCWD: the real /etc). With AT_FDCWD
 * nothing is done if `state` is not the state directory that the units use. A read-only root
 * filesystem without copies is no error. Returns 0 or a negative errno. */
int early_pack_update(int system_fd, const char *state, int state_fd, const void *bytes,
                      size_t size);

/* Updates only the copy of STATE/last-control, which exists only beside a copy of the boot pack.
 * The other arguments are those of early_pack_update(). Returns 0 or a negative errno. */
int early_pack_update_last_control(int system_fd, const char *state, int state_fd);
