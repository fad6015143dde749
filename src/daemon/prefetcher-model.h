/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Loads model.json for the prefetcher, and saves the chains that it has learned. */

#include "model/model-limit.h"
#include "record/recorder.h"

/* A model that exceeds these limits is cut before a session uses it. Loading needs memory for the
 * model and for sums of its stages, up to three times the size of the model, and the service has
 * LimitDATA=256M. */
#define PREFETCHER_MODEL_LIMITS               \
    ((ModelLimits){                           \
            .user_bytes = UINT64_C(24) << 20, \
            .bytes = UINT64_C(32) << 20,      \
    })

/* Reads STATE/model.json. *ret is NULL if there is no usable model. A bad model is set aside with
 * one line in the log. A model that exceeds the limits is reduced to what most sessions used.
 * *ret_dropped counts the files and metadata ranges that were dropped. Returns 0, -ENOMEM, or the
 * errno of reading, which is not logged. */
int prefetcher_model_load(const char *state, const ModelLimits *limits, Model **ret,
                          size_t *ret_dropped);

/* A save that runs in a separate thread, because reading a large model and fsync(2) take long. It
 * replaces the chains of STATE/model.json and keeps the rest of the file, even if another program
 * has changed the rest meanwhile. */
typedef struct ModelSave ModelSave;

/* The chains that STATE/model.json may hold before a save. */
typedef struct ModelKnown {
    bool was_there; /* the model existed when the session read it */
    /* chains_revision() of what was read or saved last, and of a save that was left behind and may
     * have ended since; equal if there is none */
    uint64_t revision, left_revision;
} ModelKnown;

/* Starts the thread. Takes ownership of the chains, also on failure. If the model was there and is
 * gone now, an administrator has deleted it (`headstart forget`), and nothing is written. If its
 * chains are not the known ones, another program has written them (`headstart import`, `headstart
 * learn`), and nothing is written either. If the model was not there and is not there now, a new
 * one is made. Returns 0, or an error of state_write_start(). */
int model_save_start(const char *state, Chains *chains, const ModelKnown *known, ModelSave **ret);

/* Returns the result of the save and frees the save. With a recorder, it waits for the end of the
 * save, and reads the recorder's event queue meanwhile. With NULL, it returns -EAGAIN and leaves *s
 * as it is if the save is still running. The result is 0, -ENOENT (the model that was there is
 * gone), -ESTALE (the model has other chains than the known ones, or another half-life), -EBUSY
 * (the state directory stayed locked), -ETIMEDOUT (the disk does not answer: the save is left
 * behind, see daemon/state-write.h), or another negative errno. */
int model_save_finish(ModelSave **s, Recorder *recorder);
