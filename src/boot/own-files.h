/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads headstart's own files ahead. The pack of a replayed boot contains them. In other boots the
 * system manager and the kernel would read them one by one, and wait for the disk each time. A boot
 * without replay should take as long as on a machine without headstart. */

/* Requests the whole file, and does not wait for the data. The lookup of the path may wait for the
 * disk. Follows no symlink at the end of the path. All errors are ignored. */
void own_file_read_ahead(const char *path);

/* Calls own_file_read_ahead() for headstart's unit files below `root`, where the root filesystem is
 * mounted. */
void own_units_read_ahead(const char *root);
