/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The figures that headstart-bus shows. The figures for all users name no user and no path. */

#include "base/time-util.h"
#include "base/uid.h"
#include "measure/history.h"

/* What replay gains in one stage. If `known` is 0, the figures from `saved` to `without_usec` are
 * 0. The types are those that sd-bus reads from memory: a boolean is an int. */
typedef struct StageFigures {
    uint64_t last_usec; /* time of the newest session that settled; 0: none */
    uint64_t n_replayed, n_control;
    int known;
    double saved, saved_low, saved_high; /* shares of the time: estimate and 95 % interval */
    uint64_t with_usec, without_usec;
    const char *policy; /* of the newest pack that was replayed; "" if there was none */
    int harmful;
    const char *off_reason; /* packs_off_reason(); "": the stage is replayed, or there is no pack */
} StageFigures;

/* What replay gains when applications start, for all applications and users together. If `known` is
 * 0, the shares are 0. */
typedef struct LaunchFigures {
    uint64_t n_replayed, n_control;
    int known;
    double saved, saved_low, saved_high;
    const char *off_reason; /* "configured" with LaunchReplay=no, otherwise "" */
} LaunchFigures;

typedef struct Snapshot {
    int enabled;       /* neither headstart=0 nor `headstart disable` */
    const char *state; /* "off", "empty", "recorded", "learned" or "ready" */
    StageFigures boot, login;
    LaunchFigures launch;
    History history;
} Snapshot;

void snapshot_done(Snapshot *s);

/* Reads the figures as of `now` (wall clock). `system_fd` is the directory of /etc and /proc, or
 * AT_FDCWD for "/". A state directory that does not exist counts as empty. Returns 0, or a negative
 * errno with *ret untouched. */
int snapshot_read(const char *state_dir, int system_fd, usec_t now, Snapshot *ret);

/* Returns true if that user may see the session: every boot, and the user's own logins. */
bool snapshot_is_visible(const SessionRecord *s, uint32_t uid);

/* Reads the starts of applications in the sessions of one user, oldest first. They are not part of
 * the snapshot, because they take too much memory. Without a state directory there are none.
 * Returns 0 or a negative errno. */
int snapshot_own_launches(const char *state_dir, uint32_t uid, LaunchRecords *ret);

/* Computes the figures of the logins of one user, and reads whether the user's logins are replayed.
 * Returns 0 or -ENOMEM. */
int snapshot_own_logins(const char *state_dir, const Snapshot *s, uint32_t uid, usec_t now,
                        StageFigures *ret);
