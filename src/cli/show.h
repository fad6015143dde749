/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What `headstart show` prints of each kind of file; shared with status where it shows the same. */

#include "cli/cli.h"
#include "model/model.h"
#include "pack/pack.h"
#include "trace/trace.h"

/* Each prints the summary, or all of it as JSON. `path` is what the file is called; `limit`: so
 * many rows of the long tables (0: all). 0 or a negative errno, reported. */
int show_trace(const Context *c, const char *path, const Trace *t, uint64_t limit);
int show_model(const Context *c, const char *path, const Model *m, uint64_t limit);
int show_pack(const Context *c, const char *path, const Pack *p, uint64_t limit);
