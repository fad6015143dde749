/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* STATE/last-control: the boot id of the last session that ran without replay in order to measure
 * or to record exactly. headstartd writes the file when that session has ended, and `headstart
 * plan` removes it, because the new packs take the session into account. While the file exists, no
 * other boot is a control session. Otherwise two boots without a plan between them could both be
 * control sessions. Early boot reads the copy of the file beside its copy of the pack
 * (state/early-pack.h). */

#include "system/kernel.h"

#define LAST_CONTROL_FILE "last-control"

/* Writes the file, in the state directory or in that of the copies. Returns 0, or an error of
 * atomic_file_write(). */
int last_control_write(int dir_fd, const char boot_id[static KERNEL_BOOT_ID_SIZE]);

/* Removes the file. Returns 0, also if there is none, or a negative errno. */
int last_control_remove(int state_fd);

/* Reads the boot id from the file `path` below the directory. Returns 0, -EBADMSG, or a negative
 * errno of opening it. */
int last_control_read(int dir_fd, const char *path, char ret[static KERNEL_BOOT_ID_SIZE]);

/* Returns true if a file of this name lies beside the pack and contains the id of another boot.
 * Returns false if the file cannot be read, because a damaged file must not prevent all control
 * sessions. */
bool last_control_is_other_boot(const char *pack, const char boot_id[static KERNEL_BOOT_ID_SIZE]);
