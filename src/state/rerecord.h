/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The requests of `headstart rerecord` and `headstart measure`: STATE/rerecord-STAGE
 * (docs/formats.md). */

#include "base/time-util.h"
#include "base/uid.h"
#include "base/vocabulary.h"

#include <stdbool.h>
#include <stdint.h>

/* A request expires after this time, because its stage is not replayed while its file exists. */
#define RERECORD_MAX (7 * 24 * USEC_PER_HOUR)

typedef struct Rerecord {
    struct {
        bool requested, exact;
        unsigned read_ahead_kb; /* during an exact recording */
        uint32_t uid;           /* user of the login or session; UID_INVALID: any */
        usec_t expires;         /* CLOCK_REALTIME */
    } stages[_STAGE_MAX];
} Rerecord;

/* The largest read-ahead that a request can name, in KiB. */
#define RERECORD_READ_AHEAD_MAX_KB 65536U

/* Writes "rerecord-STAGE" into the buffer and returns it. */
#define RERECORD_NAME_MAX 32
const char *rerecord_name(char buf[static RERECORD_NAME_MAX], Stage stage);

/* Requests a new recording of a stage of that user (UID_INVALID: of any user). An exact recording
 * lowers read-ahead to `exact_kb` KiB; 0 requests a recording with the usual read-ahead. Returns 0
 * or a negative errno. */
int rerecord_write(int state_fd, Stage stage, uint32_t uid, unsigned exact_kb);

/* Reads the requests that have not expired at `now` (CLOCK_REALTIME). A file that cannot be used is
 * set aside, and a file that is too old is removed, each with a line in the log. Neither counts as
 * a request. Returns 0 or a negative errno. */
int rerecord_read(const char *state_dir, usec_t now, Rerecord *ret);

/* Drops the requests that have expired at `now` (CLOCK_REALTIME), and removes their files, each
 * with a line in the log. A file that was written after the request was read stays for the next
 * call of rerecord_read(). Without an expired request it accesses no file. Returns 0, or a negative
 * errno if a file could not be removed; its request is dropped nevertheless. */
int rerecord_expire(const char *state_dir, usec_t now, Rerecord *x);

/* Returns true if a request exists. While it exists, `headstartd --stage=auto` records only stages
 * for which rerecord_matches() returns true. */
bool rerecord_is_requested(const Rerecord *x);

/* Returns true if a new recording of that stage of that user (boot: any user) was requested. */
bool rerecord_matches(const Rerecord *x, Stage stage, uint32_t uid);

/* Removes the request that a recording of this stage and user fulfils. To be called when the stage
 * was recorded. Returns 0 or a negative errno. */
int rerecord_done(const char *state_dir, Rerecord *x, Stage stage, uint32_t uid);
