/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The model as the session finds it, and leaves it. */

#include "model/model.h"

/* Reads STATE/model.json. *ret is NULL if there is none; one that is bad is set aside with one
 * line. 0, -ENOMEM or the error of reading (nothing is said). */
int session_state_load(const char *state, Model **ret);

/* Puts the chains into STATE/model.json, which is made if there is none (not if it `was_there`:
 * then somebody has had it forgotten) and else keeps all the rest, in a thread of its own: reading
 * a large model and an fsync(2) take their time. */
typedef struct SessionSave SessionSave;

/* Takes the chains over, also on failure. 0 or a negative errno. */
int session_save_start(const char *state, Chains *chains, bool was_there, SessionSave **ret);
/* Waits for it and frees it. `wait`: until it is done; otherwise -EAGAIN if it is not, and it goes
 * on. 0, -ENOENT (there is no model any more; nothing was written), -EBUSY (others kept the state
 * locked), -EINVAL (the half-life of the model has been changed: what was learned at another rate
 * cannot be continued), or another error. */
int session_save_finish(SessionSave **s, bool wait);
