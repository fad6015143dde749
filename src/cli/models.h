/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads, adds and writes models in files outside of the state directory: those of merge, import and
 * export, and the model that the distribution ships. */

#include "command/cli.h"
#include "model/model.h"

/* Reads a model. If the model's clock is far ahead of `now`, moves its times back to `now`
 * (model_settle_clock()), because the model would otherwise outweigh all other models. Returns 0,
 * or an error that was reported. */
int models_load(const char *path, usec_t now, Model **ret);

/* Adds `m`, which was read from `path`, to *sum (NULL: an empty sum). Takes ownership of `m`, also
 * on failure. Returns 0, or an error that was reported. */
int models_add(Model **sum, Model *m, const char *path);

/* Writes the model to a file, or for "-" to standard output. Returns 0, or an error that was
 * reported. */
int models_save(const Model *m, const char *path);

/* Reads the model that the distribution ships, ROOT/usr/share/headstart/default.model, without the
 * times of the machines that have learned it (model_drop_machine_facts()). *ret becomes NULL if
 * there is no such model, or if the model cannot be used, which is reported. Returns 0 or
 * -ENOMEM. */
int models_load_default(const Context *c, Model **ret);
