/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Remembers which state file is being processed. Without this, a file that kills its reader
 * (because it needs too much memory) would be tried forever, and no file after it would be
 * processed.
 *
 * The marker NAME.try exists next to NAME during a try. It contains the id of the boot and the
 * points against the file. The end of a try removes the marker, with or without success. If the
 * marker exists before a try, the last try was killed. A kill in this boot counts two points. A
 * kill in another boot may have been a power cut or a shutdown and counts one point. The marker is
 * not flushed to the disk: a crash that loses it gives the file another try. */

#include "base/macros.h"

#define ATTEMPT_SUFFIX ".try"

/* A file is set aside when its tries have this many points. */
#define ATTEMPT_TRACE 2U /* one killed try in this boot, or two in other boots */
/* Four killed tries in this boot, or eight in others. A model holds all that was learned, and kills
 * that have nothing to do with it may hit two tries one after the other. */
#define ATTEMPT_MODEL 8U

/* Begins a try of the file `name` in `dir_fd`. Returns 0 if the marker was written and the try may
 * begin; 1 if the file has reached `points` and should be set aside (the marker was then removed);
 * or the negative errno of writing the marker (a read-only or full filesystem). `boot_id` is any
 * text without blanks. */
int attempt_begin(int dir_fd, const char *name, const char *boot_id, unsigned points);

/* Removes the marker. */
void attempt_end(int dir_fd, const char *name);

/* Writes the kernel's id of this boot, or "unknown" if /proc does not contain it. */
#define ATTEMPT_BOOT_ID_MAX 64
void attempt_read_boot_id(char ret[static ATTEMPT_BOOT_ID_MAX]);
