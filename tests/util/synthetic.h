/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Traces of any size that look like recorded ones: a world of files and applications drawn from a
 * seed, and sessions in it that are alike but not the same. The same numbers give the same trace on
 * every machine. For tests and measuring tools. */

#include "trace/trace.h"

typedef struct SyntheticParameters {
    uint64_t seed;    /* of the world: files, sizes, which application uses what */
    uint64_t session; /* number of the session: what differs from day to day */
    Stage stage;
    uint32_t uid;
    unsigned flags; /* TraceFlags */
    usec_t start_realtime;
    size_t n_files; /* of the world; a session uses most of them */
    size_t n_applications;
    size_t n_accesses;
    unsigned loose_percent; /* files that a session uses by chance (default 0: none) */
    unsigned own_files;     /* that no other session has: temporary files */
} SyntheticParameters;

/* A desktop login as it was measured: 8,000 files, 150 applications, 20,000 accesses. */
SyntheticParameters synthetic_login(uint64_t session);

/* 0, or -ENOMEM, -E2BIG. The trace is valid. */
int synthetic_trace(const SyntheticParameters *p, Trace **ret);
