/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Limits the size of a model. Pure.
 *
 * Limits are in bytes of memory as model_limit() estimates it, not in numbers of files, because
 * files with paths of 4,000 bytes or with thousands of ranges cost more than others. A file of a
 * desktop costs some 500 bytes, a user of a desktop 5 MB. Learning holds two models and their text
 * at a time. */

#include "model/model.h"

typedef struct ModelLimits {
    uint64_t user_bytes; /* all stages of one user; boots count as one user */
    uint64_t bytes;      /* all users */
} ModelLimits;

#define MODEL_LIMITS_DEFAULT                                          \
    (ModelLimits)                                                     \
    {                                                                 \
        .user_bytes = UINT64_C(16) << 20, .bytes = UINT64_C(56) << 20 \
    }

/* Bounds the chains by CHAINS_LIMITS_DEFAULT, unless a session of the chains is under way. Then
 * drops files and metadata ranges until the model is within the limits. A user over `user_bytes`
 * loses the objects that the fewest of the user's sessions used, and among these the ones that were
 * first used latest in the stage. If all together are over `bytes`, the largest users are reduced
 * to one common size and the others lose nothing, so one user's files cannot displace another's.
 * The same rule divides a user's room among the stages, so the stage `session` cannot displace the
 * stage `login`. If a stage exceeds its bytes, its metadata ranges may take a quarter of these
 * bytes, or what the files leave if that is more; the most frequent ranges are kept. Deterministic.
 * *ret_dropped: number of files and metadata ranges that the stages lost. Returns 0, or -ENOMEM,
 * which leaves a valid model. */
int model_limit(Model *m, const ModelLimits *limits, size_t *ret_dropped);
