/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Recognizes block devices whose content a user or another machine serves. udisks(8) attaches a
 * file to a loop device for any user at the screen, and mounts the filesystem in it. If that file
 * is on a FUSE filesystem of the user, each read of the device waits for a program of the user,
 * without a limit; if it is on a network filesystem, for a server. Needs only libc:
 * headstart-replay uses it, too. */

#include "volume/mountinfo.h"

/* Returns true if the device lies on a loop device whose file is on a network filesystem or on a
 * FUSE filesystem of a user other than root, or whose file cannot be found. Reads nothing from the
 * device. Asks the filesystem of the file only if it does not seem to be one of these, and waits
 * for the answer at most DISK_CALL_USEC (system/disk-call.h). */
bool loop_file_is_of_user(const MountTable *mounts, uint64_t dev);
