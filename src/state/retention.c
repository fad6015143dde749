/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/retention.h"

/* The files that one limit covers: those of a kind, of one stage or of all stages
 * (_STAGE_INVALID). */
typedef struct Group {
    RetentionKind kind;
    Stage stage;
} Group;

static bool is_in(const RetainedFile *f, Group g)
{
    return f->kind == g.kind && (g.stage < 0 || f->stage == g.stage);
}

static uint64_t size_of(const RetainedFile *f, bool in_bytes)
{
    return in_bytes ? f->bytes : 1;
}

/* Returns the number (or with `in_bytes` the size) of the files in the group that belong to the
 * user of `of` and are not to be removed. */
static uint64_t owned(const RetainedFile *files, size_t n, const bool *remove, Group g,
                      const RetainedFile *of, bool in_bytes)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        if (!remove[i] && is_in(&files[i], g) && files[i].uid == of->uid)
            sum += size_of(&files[i], in_bytes);
    return sum;
}

/* Returns true if the file is the newest trace without replay of its stage and user. */
static bool is_last_without_replay(const RetainedFile *files, size_t n, size_t k)
{
    const RetainedFile *f = &files[k];

    for (size_t i = k + 1; f->without_replay && i < n; i++)
        if (files[i].without_replay && files[i].stage == f->stage && files[i].uid == f->uid)
            return false;
    return f->without_replay;
}

/* Returns the index of the oldest file of this user that is not the last one without replay, or
 * `oldest` if there is none. */
static size_t spare_last_without_replay(const RetainedFile *files, size_t n, const bool *remove,
                                        Group g, size_t oldest)
{
    for (size_t i = oldest; i < n; i++)
        if (!remove[i] && is_in(&files[i], g) && files[i].uid == files[oldest].uid &&
            !is_last_without_replay(files, n, i))
            return i;
    return oldest;
}

/* Returns the index of the oldest file of the user with the largest total. Spares the last trace
 * without replay if that user has another file. Returns n if there is no file. */
static size_t choose_victim(const RetainedFile *files, size_t n, const bool *remove, Group g,
                            bool in_bytes)
{
    uint64_t most = 0;
    size_t victim = n;

    for (size_t i = 0; i < n; i++) {
        uint64_t has;

        if (remove[i] || !is_in(&files[i], g) || (victim < n && files[i].uid == files[victim].uid))
            continue;
        has = owned(files, n, remove, g, &files[i], in_bytes);
        if (victim == n || has > most) {
            most = has;
            victim = i;
        }
    }
    return victim < n ? spare_last_without_replay(files, n, remove, g, victim) : n;
}

static void keep_quota(const RetainedFile *files, size_t n, Group g, uint64_t limit, bool in_bytes,
                       bool *remove)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        if (!remove[i] && is_in(&files[i], g))
            sum += size_of(&files[i], in_bytes);
    while (sum > limit) {
        size_t victim = choose_victim(files, n, remove, g, in_bytes);

        if (victim == n)
            return;
        sum -= size_of(&files[victim], in_bytes);
        remove[victim] = true;
    }
}

/* Finds the time of the newest file that is older than `at`. Returns false if there is none. */
static bool find_before(const RetainedFile *files, size_t n, usec_t at, usec_t *ret)
{
    const RetainedFile *best = NULL;

    for (size_t i = 0; i < n; i++)
        if (files[i].modified < at && (!best || files[i].modified > best->modified))
            best = &files[i];
    if (best)
        *ret = best->modified;
    return best;
}

/* Adds up the times between files, from the newest file or `now` back to the oldest file. */
static void keep_ages(const RetainedFile *files, size_t n, const RetentionQuota *quotas, usec_t now,
                      bool *remove)
{
    usec_t at = 0, before = 0, age = 0;

    for (size_t i = 0; i < n; i++) {
        remove[i] = false;
        at = MAX(at, files[i].modified);
    }
    for (at = MIN(at, now); find_before(files, n, at, &before); at = before) {
        age += at - before > RETENTION_GAP_MAX ? RETENTION_GAP_ASSUMED : at - before;
        for (size_t i = 0; i < n; i++)
            if (files[i].modified == before)
                remove[i] = age > quotas[files[i].kind].age;
    }
}

void retention_choose(const RetainedFile *files, size_t n, const RetentionQuota *quotas, usec_t now,
                      bool *remove)
{
    keep_ages(files, n, quotas, now, remove);
    for (Stage s = 0; s < _STAGE_MAX; s++)
        keep_quota(files, n, (Group){RETENTION_TRACE, s}, quotas[RETENTION_TRACE].count, false,
                   remove);
    keep_quota(files, n, (Group){RETENTION_ASIDE, _STAGE_INVALID}, quotas[RETENTION_ASIDE].count,
               false, remove);
    for (RetentionKind k = 0; k < _RETENTION_KIND_MAX; k++)
        keep_quota(files, n, (Group){k, _STAGE_INVALID}, quotas[k].bytes, true, remove);
}
