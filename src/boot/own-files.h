/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads headstart's own files ahead. A boot with a replay finds them in its pack. In a boot without
 * one, the system manager and the kernel would read them one after the other and wait for the disk
 * each time. Such a boot should take as long as on a machine without headstart. */

/* Requests the whole file, and does not wait for the data. The lookup of the path may wait for the
 * disk. Follows no symlink at the end of the path. All errors are ignored. */
void own_file_read_ahead(const char *path);

/* The same for headstart's unit files below the root filesystem that is mounted at `root`. */
void own_units_read_ahead(const char *root);
