/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes traces of any size that look like recorded ones. Files and applications are drawn from a
 * seed, and sessions with them are similar but different. The same parameters give the same trace
 * on every machine. It serves tests and measuring tools. */

#include "trace/trace.h"

typedef struct SyntheticParameters {
    uint64_t seed;    /* determines files, sizes, and which application uses which file */
    uint64_t session; /* number of the session, which determines what differs from day to day */
    Stage stage;
    uint32_t uid;
    unsigned flags; /* TraceFlags */
    usec_t start_realtime;
    size_t n_files; /* number of files on the machine; a session uses most of them */
    size_t n_applications;
    size_t n_accesses;
    unsigned loose_percent; /* percent of files that a session uses by chance (default 0: none) */
    unsigned own_files;     /* number of files that no other session has: temporary files */
} SyntheticParameters;

/* Returns the parameters of a desktop login with sizes as measured: 8,000 files, 150 applications,
 * 20,000 accesses. */
SyntheticParameters synthetic_login(uint64_t session);

/* Makes a valid trace. Returns 0, -ENOMEM, -E2BIG, or -EINVAL if there are no applications or no
 * other files than the applications. */
int synthetic_trace(const SyntheticParameters *p, Trace **ret);
