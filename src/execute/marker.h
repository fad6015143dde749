/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A file that exists while the boot needs no further replay. headstart-init creates it, or the
 * headstart-replay that an initrd has started. headstart-replay-boot.service does not start while
 * it exists. */

#include <stdbool.h>

/* Creates the file if `exists`, otherwise removes it. Does nothing if `path` is NULL. If the file
 * cannot be created, the unit replays data that is resident already. */
void marker_set(const char *path, bool exists);
