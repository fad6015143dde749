/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A file that exists while the boot needs no further replay. An initrd's replay leaves it for
 * headstart-replay-boot.service, which does not start then. */

#include <stdbool.h>

/* Creates the file, or removes it. NULL: nothing. A file that cannot be created is no error: then
 * the unit replays what is resident already. */
void marker_set(const char *path, bool exists);
