/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The two halves of `headstart explain`. */

#include "command/cli.h"

/* Explains for each stage and user whether the file is in the pack, and why. A `name` without "/"
 * is the name of an application. Returns 0, or an error that was reported (-ENOENT: the name is
 * unknown). */
int explain_file(const Context *c, int state_fd, const char *name, uint64_t limit);

/* Explains the newest boot or login: the policy of its replay and the reason for it, the misses,
 * and the waste. Returns 0, or an error that was reported (-ENODATA: there is no such session). */
int explain_session(const Context *c, int state_fd, Stage stage, uint64_t limit);
