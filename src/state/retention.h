/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which files of STATE/traces are kept. Pure.
 *
 * Recording stores a trace of each stage, and bad files are set aside. Without quotas a user who
 * logs in a thousand times a day would fill the disk and displace the traces of others. Therefore
 * each kind of file has a quota of count, bytes and age. If the files of several users exceed a
 * quota together, the oldest file of the user with the largest total is removed.
 *
 * Once replay was shown to gain time, only one session in 101 is without replay, and only one start
 * of an application in 101. Of each stage and user, the newest trace without replay is therefore
 * the last one that a quota of count or bytes removes: `headstart plot --compare=control` draws it.
 * The trace of a session counts as one without replay if one of its starts was a control start. */

#include "base/macros.h"
#include "base/time-util.h"
#include "base/uid.h"
#include "base/vocabulary.h"

#include <stdbool.h>

typedef enum RetentionKind {
    RETENTION_TRACE, /* each stage is counted separately */
    RETENTION_ASIDE, /* NAME.bad, NAME.skipped: kept so that an administrator can find the reason */
    _RETENTION_KIND_MAX,
} RetentionKind;

typedef struct RetainedFile {
    RetentionKind kind;
    Stage stage;  /* of a trace */
    uint32_t uid; /* UID_INVALID: not known, or a boot */
    uint64_t bytes;
    usec_t modified;     /* wall clock */
    bool without_replay; /* TraceIdentity.without_replay */
} RetainedFile;

typedef struct RetentionQuota {
    size_t count; /* for traces: of each stage separately */
    uint64_t bytes;
    usec_t age;
} RetentionQuota;

/* A trace of a desktop takes 14 kB for the boot and 37 kB for the login. A trace that is 16
 * half-lives old (112 days with the default half-life) has 2^-16 of the weight of a new one. */
#define RETENTION_QUOTAS_DEFAULT                                                \
    (const RetentionQuota[_RETENTION_KIND_MAX])                                 \
    {                                                                           \
        [RETENTION_TRACE] = {32, UINT64_C(96) << 20, 180 * 24 * USEC_PER_HOUR}, \
        [RETENTION_ASIDE] = {8, UINT64_C(16) << 20, 30 * 24 * USEC_PER_HOUR},   \
    }

/* Between two files with successive times, at most this time can have passed. If there seems to be
 * more, one of the times is taken to be wrong, and RETENTION_GAP_ASSUMED counts instead, which is
 * also the step of the clock by which learned sums decay (chains/decay-clock.h).
 *
 * A machine that was off for three months or less thus keeps its files for as long as the times
 * say. After a longer pause it keeps them for longer, because the pause cannot be told from a clock
 * that is ahead. The quotas of count and bytes still hold. */
#define RETENTION_GAP_MAX     (90 * 24 * USEC_PER_HOUR)
#define RETENTION_GAP_ASSUMED (14 * 24 * USEC_PER_HOUR)

/* Sets remove[i] to true if file i of the n files must be removed to keep the quotas, and to false
 * otherwise. The files are sorted, oldest first. Age is counted up to `now` or to the newest file,
 * whichever is earlier. A file that was stored while the clock was far ahead makes the others look
 * at most RETENTION_GAP_ASSUMED older, and nothing older once the clock is right again. A clock
 * that is ahead by at most RETENTION_GAP_MAX cannot be told from a pause. */
void retention_choose(const RetainedFile *files, size_t n, const RetentionQuota *quotas, usec_t now,
                      bool *remove);
