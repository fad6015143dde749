/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Checks what may keep headstart from helping on this machine. Each check states in plain words
 * what was found, what it costs, and what to do. `headstart doctor` shows all checks. `headstart
 * status` shows those of checks_add_state(), checks_add_model() and checks_add_user_pack() whose
 * result is not CHECK_OK. */

#include "command/cli.h"
#include "command/progress.h"
#include "pack/pack.h"
#include "view/benefits.h"

typedef enum CheckResult {
    CHECK_OK,
    CHECK_NOTE,    /* headstart works, but less well than it could */
    CHECK_PROBLEM, /* something does not work until it is repaired */
    _CHECK_RESULT_MAX,
} CheckResult;

typedef struct Check {
    const char *name; /* static: "kernel", "packs", … */
    CheckResult result;
    char *found;
    char *cost;   /* NULL: none */
    char *remedy; /* a command or an action; NULL: none */
} Check;

typedef struct Checks {
    Check *items;
    size_t n, allocated;
    bool failed; /* out of memory: a check is missing */
} Checks;

void checks_done(Checks *c);
#define _cleanup_checks_ _cleanup_(checks_done)

const char *check_result_to_string(CheckResult r);

/* Adds a check. `format` describes what was found; cost and remedy may be NULL. All texts are
 * copied. */
void checks_add(Checks *c, const char *name, CheckResult result, const char *cost,
                const char *remedy, const char *format, ...) _printf_(6, 7);

/* The packs for everyone. Each is read and validated once, because that is most of the time of
 * `headstart status`. */
typedef struct StagePack {
    int result;         /* 1: the pack can be used; 0: there is none; a negative errno */
    const char *reason; /* with a negative errno, why it cannot be used */
    Pack pack;          /* points into buf */
    char *buf;
} StagePack;

typedef struct StagePacks {
    StagePack stages[_STAGE_MAX];
} StagePacks;

/* Reads the packs for everyone; none if state_fd is negative (checks-packs.c). */
void stage_packs_read(int state_fd, StagePacks *ret);
void stage_packs_done(StagePacks *p);
#define _cleanup_stage_packs_ _cleanup_(stage_packs_done)

/* Checks the kernel, the mounted filesystems, their disks, the units, the clock, the display
 * manager's hook and the memory (checks-machine.c). */
void checks_add_machine(Checks *checks, const Context *c);

/* Checks that the display manager in use has headstart's hook. Adds nothing without a display
 * manager. */
void checks_add_hooks(Checks *checks, const Context *c);

/* Returns true if `headstart disable` has switched headstart off. */
bool checks_is_disabled(const Context *c);

/* Checks whether this boot's initrd, or init=, started headstart before the system manager, and if
 * not, why (checks-early.c). state_fd is negative if there is no state directory. */
void checks_add_early(Checks *checks, const Context *c, int state_fd);

/* Checks whether headstart is switched off, and checks the state directory without reading the
 * model: its mode, its free space, the packs, files that were set aside, and harmful policies.
 * state_fd is negative if the directory does not exist (checks-state.c). */
void checks_add_state(Checks *checks, const Context *c, int state_fd, const StagePacks *packs,
                      const Benefits *b);

/* Adds a problem for each file of the history, and of the starts of applications, that cannot be
 * read (checks-state.c). */
void checks_add_history(Checks *checks, const Context *c, int state_fd);

/* Adds the problem that a pack cannot be used. */
#define CHECK_COST_USER_PACK "the logins of the user are not replayed"
void checks_add_bad_pack(Checks *checks, const Context *c, const char *name, const char *cost,
                         const char *reason);

/* `headstart status` reads the login packs of at most this many users. It takes the newest packs,
 * because a machine may have thousands of users, and the command must answer at once. */
#define CHECK_USERS_SHOWN 8U

/* Reads the head of a user's login pack, because reading the whole packs of CHECK_USERS_SHOWN users
 * would take most of the time of `headstart status`; `headstart doctor` checks them whole. Returns
 * 1, 0 if there is none, or an error for which it has added the problem (checks-packs.c). */
int checks_add_user_pack(Checks *checks, const Context *c, int state_fd, uint32_t uid,
                         PackHeader *ret);

/* Reads the head of the model. Adds a problem if it cannot be used. Sets *ret_n_learned to the
 * number of traces in it, or leaves it unchanged (checks-state.c). */
void checks_add_model(Checks *checks, const Context *c, int state_fd, uint64_t *ret_n_learned);

/* Adds a note that devices.json cannot be used, for this reason (checks-state.c). */
void checks_add_bad_devices(Checks *checks, const Context *c, const char *reason);

/* Checks that the packs for everyone can be used (checks-packs.c). */
void checks_add_packs(Checks *checks, const Context *c, int state_fd, const StagePacks *packs);

/* Compares the packs for everyone and those of users with the files on the disk, and checks that
 * the packs of users and applications can be used (checks-packs.c). */
void checks_add_pack_files(Checks *checks, const Context *c, int state_fd, const StagePacks *packs,
                           Progress *progress);

/* Makes the slower checks: the model, the file of devices, packs against the files on the disk, the
 * history, and control sessions. */
void checks_add_thorough(Checks *checks, const Context *c, int state_fd, const StagePacks *packs,
                         const Benefits *b, Progress *progress);
