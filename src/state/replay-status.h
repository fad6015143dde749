/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The reports of headstart-replay in this boot (--status=): /run/headstart/replay-STAGE.json, and
 * replay-STAGE@UID.json for the replay of one user's pack. */

#include "base/json-util.h"
#include "base/uid.h"
#include "base/vocabulary.h"

typedef struct ReplayStatus {
    struct json_object *object;
    uint32_t uid; /* UID_INVALID: for everyone */
} ReplayStatus;

typedef struct ReplayStatusList {
    ReplayStatus *items; /* the status for everyone first, then by user */
    size_t n, allocated;
} ReplayStatusList;

void replay_status_list_done(ReplayStatusList *l);
#define _cleanup_replay_status_ _cleanup_(replay_status_list_done)

/* Reads the reports of one stage in the directory. Other files are ignored. Returns 0, -ENOMEM, or
 * the negative errno of reading the directory. */
int replay_status_read(int dir_fd, Stage stage, ReplayStatusList *ret);
