/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What `headstart rerecord` asks for: STATE/rerecord (docs/formats.md). */

#include "base/vocabulary.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Rerecord {
    bool asked;
    unsigned stages; /* 1 << Stage */
    uint32_t uid;    /* whose login and session; UINT32_MAX: whoever's */
    bool exact;
} Rerecord;

/* Reads it; *ret is `not asked` if it is not there. A file that cannot be used is set aside, with a
 * line in the log: then nothing was asked. 0 or a negative errno. */
int rerecord_read(const char *state_dir, Rerecord *ret);

/* True if that stage of that user (of a boot: any) is to be recorded anew. */
bool rerecord_wants(const Rerecord *r, Stage stage, uint32_t uid);

/* A stage of that user was recorded: what is left to do is written back, or the file is removed. 0 or a negative
 * errno. */
int rerecord_done(const char *state_dir, Rerecord *r, Stage stage, uint32_t uid);
