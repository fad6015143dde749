/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The output of `headstart show` for each kind of file. */

#include "command/cli.h"
#include "model/model.h"
#include "pack/pack.h"
#include "trace/trace.h"

/* Each function prints a summary as text, or more fields and all rows of the tables as JSON. `path`
 * names the file; `limit` is the maximum number of rows of long tables in the text (0: all).
 * Returns 0, or a negative errno that was reported. */
int show_trace(const Context *c, const char *path, const Trace *t, uint64_t limit);
int show_model(const Context *c, const char *path, const Model *m, uint64_t limit);
int show_pack(const Context *c, const char *path, const Pack *p, uint64_t limit);
