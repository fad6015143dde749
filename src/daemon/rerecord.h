/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What `headstart rerecord` asks for: STATE/rerecord (docs/formats.md). */

#include "base/vocabulary.h"

#include <stdbool.h>

typedef struct Rerecord {
    bool asked;
    unsigned stages; /* 1 << Stage */
    bool exact;
} Rerecord;

/* Reads it; *ret is `not asked` if it is not there. A file that cannot be used is set aside, with a
 * line in the log: then nothing was asked. 0 or a negative errno. */
int rerecord_read(const char *state_dir, Rerecord *ret);

/* A stage was recorded: what is left to do is written back, or the file is removed. 0 or a negative
 * errno. */
int rerecord_done(const char *state_dir, Rerecord *r, Stage stage);
