/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What `headstart status` has read (verb-status.c) and prints (status-print.c). */

#include "command/cli.h"
#include "state/device-store.h"
#include "state/replay-status.h"
#include "view/benefits.h"
#include "view/checks.h"
#include "view/launch-history.h"

/* The facts about one pack. */
typedef struct PackStatus {
    uint32_t uid;           /* UID_INVALID: for everyone */
    const char *policy;     /* NULL: no usable pack */
    const char *reason;     /* the reason for this policy; NULL: unknown */
    usec_t without, with;   /* predicted time without replay, and with it; 0: unknown */
    uint64_t bytes;         /* number of bytes that the pack reads */
    uint64_t planned;       /* CLOCK_REALTIME when the pack was planned */
    double relocation_usec; /* what `headstart relocate` gains at most */
    bool bad;               /* the pack cannot be used */
} PackStatus;

/* The facts about one stage. */
typedef struct StageStatus {
    uint64_t n_traces;
    uint64_t recorded; /* CLOCK_REALTIME of the last trace; COUNT_UNKNOWN: none */
    uint64_t duration; /* of the last trace; COUNT_UNKNOWN: none */
    PackStatus pack;
    ReplayStatusList replays; /* in this boot */
} StageStatus;

typedef struct Status {
    bool switched_off; /* headstart=0 */
    bool disabled;     /* headstart disable */
    bool ostree;
    const char *selinux; /* NULL: not enabled */
    char *root;          /* root_kind_to_string() and the subvolume; NULL: unknown */
    char *rerecord;      /* stages, "boot, login"; NULL: none */
    uint64_t n_learned;  /* traces in the model; COUNT_UNKNOWN: no model */
    DeviceStore devices;
    char *devices_error; /* the reason why the file of devices cannot be used */
    usec_t now;          /* wall clock */
    Benefits benefits;
    bool visible; /* the user cannot read the state: only visible figures are shown */
    /* Set only with `visible`: the effect on the logins of all users and on all starts, and the
     * word of the reason why logins are not replayed. `launches` are then the user's own. */
    Effect all_logins, all_launches;
    const char *off_logins;
    char state[16];
    LaunchHistory launches;
    Checks checks;
    StageStatus stages[_STAGE_MAX];
    PackStatus users[CHECK_USERS_SHOWN]; /* login packs, the newest first */
    size_t n_users;                      /* that are shown */
    uint64_t n_further_users;            /* whose packs are neither read nor shown */
} Status;

/* Prints the status as text or JSON. Returns 0, or an error that was reported. */
int status_print(const Context *c, Status *s);
