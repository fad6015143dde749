/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Facts of the running kernel, read below a root directory (see base/rooted.h). */

#include "base/macros.h"

#define KERNEL_BOOT_ID_SIZE 33 /* 32 hex digits and a NUL */

/* Reads the boot id as 32 lower-case hex digits without dashes. Returns 0, -EBADMSG (another form),
 * or another negative errno. */
int kernel_boot_id(int root_fd, char ret[static KERNEL_BOOT_ID_SIZE]);

/* Returns true if the kernel command line contains the word. Returns false also if the command line
 * cannot be read. */
bool kernel_command_line_has(int root_fd, const char *word);

/* Returns the value of the last word KEY=VALUE of the kernel command line; the caller frees it.
 * Returns NULL if there is no such word, if the command line cannot be read, or if memory is
 * short. */
char *kernel_command_line_value(int root_fd, const char *key);
