/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The command line of headstartd. */

#include "base/vocabulary.h"
#include "record/recorder.h"

/* Strings are borrowed from the command line. */
typedef struct Arguments {
    const char *root;
    const char *state;
    const char *run; /* NULL: there is no runtime directory */
    Stage stages[_STAGE_MAX];
    size_t n_stages; /* with `automatic`, 0 means all stages */
    bool automatic;  /* systemd and logind, not SIGUSR1, determine when stages begin and end */
    bool restore;    /* restore read-ahead and exit */
    uint32_t uid;    /* user of the login and session if logind does not name the user */
    RecorderOptions recorder;
} Arguments;

/* Parses the command line. Returns 1 to continue; 0 if a help text or the version was printed; or
 * -EINVAL (wrong usage) or -ENOMEM, which were reported. */
int arguments_parse(int argc, char **argv, Arguments *ret);
