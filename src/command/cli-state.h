/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens, locks and writes the state directory for the verbs. The functions report their errors. */

#include "command/cli.h"
#include "state/state.h"

/* Like state_directory_open() on --state=. Returns 0, -ENOENT (not reported: the directory does not
 * exist and `create` is false), or another error that was reported. */
int cli_state_open(const Context *c, bool create, int *ret_fd);

/* Locks the state directory, as state_directory_lock() does. Waits at most five seconds, but in a
 * service (--quiet) at most four minutes, because the process that holds the lock may run at idle
 * priority and take long. Returns 0, or an error that was reported. */
int cli_state_lock(const Context *c, int state_fd);

/* Like early_pack_update() for this state directory. Returns 0, or an error that was reported. */
int cli_state_update_early_pack(const Context *c, int state_fd, const void *bytes, size_t size);

/* Like state_write_model(). Returns 0, or an error that was reported. */
int cli_state_write_model(const Context *c, int state_fd, const Model *m);
