/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides whether headstart may act before the system manager runs, by the conditions of the units
 * (units/snippets/conditions), except the one that excludes containers. */

#include <stdbool.h>

/* Returns why the kernel forbids headstart to act, as static text, or NULL: it is a crash kernel
 * (/proc/vmcore), or its command line has `headstart=0` or names a live medium. `words` are further
 * words of a command line, as PID 1 receives them, ended by NULL. Reads nothing from a disk. */
const char *early_forbidden_by_kernel(char *const *words);

/* Returns NULL if headstart may act, or else the reason as static text: that of
 * early_forbidden_by_kernel(); /etc/headstart/disabled or /cdrom/casper below root_fd (the root
 * filesystem); or a live medium below run_fd. A path that cannot be looked up counts as absent.
 * Reads from the root filesystem. */
const char *early_forbidden(int root_fd, int run_fd, char *const *words);

/* Returns the directory that early boot uses: the state directory, or HEADSTART_SYSCONF_DIR with
 * the copies (state/early-pack.h). Returns NULL if neither contains a boot pack. If both do,
 * returns the directory of the newer boot pack, and the state directory if both are of the same
 * age. A state directory that a later mount hides is older than the copies, because the planner
 * writes the copy after the pack. A copy that remains from such a mount is older than a pack that
 * was planned since. Reads from the root filesystem, below root_fd. */
const char *early_find_pack_dir(int root_fd);

/* Returns true if the boot is neither replayed nor recorded: the planner's flag boot-idle
 * (state/idle-boot.h) is set in `pack_dir`, the result of early_find_pack_dir(), and rerecord-boot
 * is not. With NULL, boot-idle may be set in either directory. Reads from the root filesystem. */
bool early_is_idle(int root_fd, const char *pack_dir);

/* Returns true if the boot is to be replayed: there is no rerecord-boot, the flag of `headstart
 * rerecord`, in `pack_dir`, or with NULL in the state directory. Reads from the root filesystem. */
bool early_may_replay(int root_fd, const char *pack_dir);
