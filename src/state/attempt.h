/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Remembers which state file is being processed, so that a file which kills its reader (by the
 * memory it takes) is not tried for ever: nothing after it would be processed.
 *
 * NAME.try lies next to NAME while it is tried. It holds the boot's id and how much speaks against
 * the file. A try that ended, well or not, removes it. If it is found, the last try was killed. A
 * kill in this boot counts two points against the file. One in another boot may have been a power
 * cut or a shutdown and counts one. The marker is not flushed to the disk: a crash that loses it
 * gives the file another try.
 */

#include "base/macros.h"

#define ATTEMPT_SUFFIX ".try"

/* Points at which a file is given up. */
#define ATTEMPT_ONCE  2U /* one killed try in this boot, or two in others */
#define ATTEMPT_TWICE 4U /* what is worth more: two, or four */

/* Begins a try of the file `name` in `dir_fd`. 0: the marker was written, go on. 1: so many tries
 * were killed that the file has `points` against it and should be set aside; the marker was
 * removed. A negative errno of writing the marker (a read-only or full filesystem). `boot_id` is
 * any text without blanks. */
int attempt_begin(int dir_fd, const char *name, const char *boot_id, unsigned points);

/* Removes the marker. */
void attempt_end(int dir_fd, const char *name);

/* The kernel's id of this boot, or "unknown" if /proc does not say. */
#define ATTEMPT_BOOT_ID_MAX 64
void attempt_read_boot_id(char ret[static ATTEMPT_BOOT_ID_MAX]);
