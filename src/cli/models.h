/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Models in files that are not the state's own: merge, import, export, and the one that is shipped.
 */

#include "cli/cli.h"
#include "model/model.h"

/* Reads a model and settles its clock: one from a machine whose clock ran years ahead would make
 * everything else count for nothing. 0, or an error that was reported. */
int models_load(const char *path, usec_t now, Model **ret);

/* *sum = *sum + m, which `path` is told of; a NULL *sum is m. Takes m over. 0, or an error that was
 * reported. */
int models_add(Model **sum, Model *m, const char *path);

/* Writes it, "-" to standard output. 0, or an error that was reported. */
int models_save(const Model *m, const char *path);

/* The model that the distribution ships, ROOT/usr/share/headstart/default.model: *ret is NULL if
 * there is none, or if it cannot be used, which is said. 0 or -ENOMEM. */
int models_load_default(const Context *c, Model **ret);
