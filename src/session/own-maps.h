/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the user's own logins and sessions show of the files that applications use, next to the sum
 * over all users (cycle-objects.c). */

#include "model/model.h"

/* What the user's own logins and sessions show. Its applications and uses are visited in the order
 * of everybody's, which is that of paths. */
typedef struct OwnMaps {
    Model *sum;
    const ModelStage *stage; /* NULL: the user is unknown, or has no session yet */
    uint32_t *files;         /* everybody's file -> the user's, or MODEL_NONE */
    double prior;            /* what everybody's share counts */
    size_t application, use; /* the next to visit */
} OwnMaps;

/* Fills an empty *o with the stages (a mask of 1U << STAGE_…) of the user `uid`; UID_INVALID:
 * nothing is known. `all` is the sum over all users, which must outlive *o. Both number their files
 * in the order of paths. Returns 0 or -ENOMEM. The caller passes *o to own_maps_done() in any case.
 */
int own_maps_init(OwnMaps *o, const Model *model, const Model *all, uint32_t uid, unsigned stages);
void own_maps_done(OwnMaps *o);

/* Returns the user's application for a file of everybody's sum, or NULL. The files of successive
 * calls must rise. */
const ModelApplication *own_maps_application(OwnMaps *o, uint32_t file);

/* Returns P(the application `a` uses the file | it runs): the share of the user's runs `own` (NULL:
 * none) that used it, with everybody's share as the prior. Call it with rising applications and
 * files. */
double own_maps_use_chance(OwnMaps *o, const ModelApplication *own, const ModelApplication *a,
                           const ModelUse *u);

/* Returns the residency of a file: the user's own, unless everybody's sessions show better which
 * parts they used. */
const ModelResidency *own_maps_residency(const OwnMaps *o, const ModelStageFile *all);
