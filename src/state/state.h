/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The state directory (/var/lib/headstart): its file names, and how the files are opened, locked,
 * read and replaced. The functions for these files are in src/state, except those for the history
 * (measure/history.h). Only the functions of rerecord.h log errors; all others only return them. */

#include "model/model.h"

#define STATE_TRACES   "traces"
#define STATE_MODEL    "model.json"
#define STATE_REBUILD  "model.json.rebuild" /* state_begin_rebuild() */
#define STATE_RERECORD "rerecord-"          /* followed by a stage: rerecord.h */
#define STATE_REFRESH  "refresh-wanted"     /* refresh-request.h */

/* Opens the directory; with `create` it is made (0700) if it is missing. Refuses a symlink and a
 * directory that another user may have prepared in a sticky directory such as /tmp: see
 * open_output_place(). Returns 0, -EACCES (refused), or another negative errno. */
int state_directory_open(const char *path, bool create, int *ret_fd);

/* Keeps other learners and planners out until the descriptor is closed. Waits at most `timeout` for
 * them. Returns 0, -EBUSY (they did not finish in time), or another negative errno. */
int state_directory_lock(int state_fd, usec_t timeout);

/* Returns true if this error means that the content of a file is bad, so that the file is set
 * aside. Errors of the reader (no memory, no rights) do not count. */
bool state_is_bad_content(int error);

/* Reads and parses STATE/model.json. Reads it again if the model is bad, or if memory ran out and
 * is no longer short, because one failed allocation has the same effects. Returns 0, -ENOENT, what
 * model_from_json() returns (*ret_error: one line, the caller frees it), or the error of
 * reading. */
int state_load_model(int state_fd, Model **ret, char **ret_error);

/* Like state_load_model(), with model_stages_from_json(). */
int state_load_model_stages(int state_fd, Model **ret, char **ret_error);

/* Reads the number of learned traces from the head of STATE/model.json, without reading the rest.
 * It relies on the layout that state_write_model() writes. Returns 0, -ENOENT, -ENODATA (the head
 * does not contain the number), or the error of reading. */
int state_peek_model(int state_fd, uint64_t *ret_n_learned);

/* Replaces STATE/model.json, as atomic_file_write() does. Returns 0 or a negative errno. */
int state_write_model(int state_fd, const Model *m);

/* A new model is made from the traces in several steps. STATE/model.json.rebuild exists from the
 * first step to the last. If a run finds it, the chains of the model lack every session whose trace
 * the model has not learned yet. headstartd removes it when it replaces the chains by its own.
 * state_begin_rebuild() and state_end_rebuild() return 0 or a negative errno. */
bool state_is_rebuilding(int state_fd);
int state_begin_rebuild(int state_fd);
int state_end_rebuild(int state_fd);

/* Returns "boot.pack" or "login.pack"; NULL for a stage that has no pack. */
const char *state_pack_name(Stage stage);
