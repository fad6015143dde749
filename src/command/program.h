/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Programs that verbs execute. */

#include "base/macros.h"

#include <stdbool.h>

/* Finds the program `name` and writes its path into the buffer. Searches next to this program, in
 * the folder `folder` of a build tree, and in the directory of installed programs. Returns 0, or a
 * negative errno, which was reported. */
int cli_find_program(const char *name, const char *folder, char *buf, size_t size);

/* Executes argv[0], which prints little. Meanwhile a terminal shows the progress line `what`.
 * Without a terminal, or with `quiet`, the program replaces this process. Returns the program's
 * exit status (128 + the signal that ended it), or a negative errno, which was reported. */
int cli_run_program(char *const *argv, const char *what, bool quiet);
