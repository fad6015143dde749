/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The model as the session finds it, and leaves it. */

#include "model/model-limit.h"

/* What a session loads at most: loading holds the model and its sum over stages up to three times,
 * below LimitDATA=256M of the service. */
#define PREFETCHER_MODEL_LIMITS               \
    ((ModelLimits){                           \
            .user_bytes = UINT64_C(24) << 20, \
            .bytes = UINT64_C(32) << 20,      \
    })

/* Reads STATE/model.json. *ret is NULL if there is none; one that is bad is set aside with one
 * line in the log. Of one that exceeds the limits the likeliest is kept; *ret_dropped: files and
 * metadata ranges left out. 0, -ENOMEM or the error of reading (not logged). */
int prefetcher_model_load(const char *state, const ModelLimits *limits, Model **ret,
                          size_t *ret_dropped);

/* Puts the chains into STATE/model.json, which is made if there is none (not if it `was_there`:
 * then somebody has had it forgotten) and else keeps all the rest, in a thread of its own: reading
 * a large model and an fsync(2) take their time. */
typedef struct ModelSave ModelSave;

/* Takes the chains over, also on failure. 0 or a negative errno. */
int model_save_start(const char *state, Chains *chains, bool was_there, ModelSave **ret);
/* Waits for it and frees it. `wait`: until it is done; otherwise -EAGAIN if it is not, and it goes
 * on. 0, -ENOENT (there is no model any more; nothing was written), -EBUSY (others kept the state
 * locked), -EINVAL (the half-life of the model has been changed: what was learned at another rate
 * cannot be continued), or another error. */
int model_save_finish(ModelSave **s, bool wait);
