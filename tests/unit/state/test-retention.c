/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/retention.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define DAY (24 * USEC_PER_HOUR)
#define NOW (20000 * DAY)
#define N   64

static const RetentionQuota quotas[_RETENTION_KIND_MAX] = {
        [RETENTION_TRACE] = {4, 1000, 100 * DAY},
        [RETENTION_ASIDE] = {3, 500, 10 * DAY},
};

typedef struct Store {
    RetainedFile files[N];
    bool remove[N];
    size_t n;
} Store;

static void add(Store *s, RetentionKind kind, Stage stage, uint32_t uid, uint64_t bytes, usec_t at)
{
    s->files[s->n++] = (RetainedFile){kind, stage, uid, bytes, at, false};
}

static void traces(Store *s, size_t n, Stage stage, uint32_t uid, uint64_t bytes)
{
    while (n-- > 0)
        add(s, RETENTION_TRACE, stage, uid, bytes, NOW - DAY);
}

static size_t kept(Store *s, uint32_t uid)
{
    size_t n = 0;

    retention_choose(s->files, s->n, quotas, NOW, s->remove);
    for (size_t i = 0; i < s->n; i++)
        n += s->files[i].uid == uid && !s->remove[i];
    return n;
}

static void each_stage_keeps_its_newest(void **state)
{
    Store s = {0};

    traces(&s, 6, STAGE_BOOT, UID_INVALID, 1);
    traces(&s, 3, STAGE_LOGIN, UID_INVALID, 1);
    assert_int_equal(kept(&s, UID_INVALID), 7);
    assert_true(s.remove[0] && s.remove[1] && !s.remove[2] && !s.remove[5]);
}

static void who_has_most_loses(void **state)
{
    Store s = {0};

    traces(&s, 1, STAGE_LOGIN, 1000, 1); /* the oldest of all */
    traces(&s, 30, STAGE_LOGIN, 1001, 1);
    traces(&s, 2, STAGE_LOGIN, 1002, 1);
    assert_int_equal(kept(&s, 1000), 1);
    assert_int_equal(kept(&s, 1002), 2);
    assert_int_equal(kept(&s, 1001), 1);
    assert_false(s.remove[30]); /* the newest of that user */
}

static void bytes_have_a_quota_over_all_stages(void **state)
{
    Store s = {0};

    traces(&s, 2, STAGE_BOOT, UID_INVALID, 50);
    traces(&s, 3, STAGE_SESSION, 1001, 400);
    traces(&s, 2, STAGE_LOGIN, 1000, 100);
    assert_int_equal(kept(&s, 1001), 1);
    assert_int_equal(kept(&s, 1000), 2);
    assert_int_equal(kept(&s, UID_INVALID), 2);

    /* A file that is larger than the quota is removed, too. */
    s = (Store){0};
    traces(&s, 1, STAGE_SESSION, 1001, 4000);
    assert_int_equal(kept(&s, 1001), 0);
}

/* The newest trace without replay outlives newer traces of its stage and user. */
static void the_last_without_replay_stays(void **state)
{
    Store s = {0};

    traces(&s, 30, STAGE_BOOT, UID_INVALID, 1);
    traces(&s, 10, STAGE_LOGIN, 1000, 1);
    s.files[3].without_replay = s.files[5].without_replay = s.files[31].without_replay = true;
    assert_int_equal(kept(&s, UID_INVALID), 4);
    assert_true(s.remove[3] && !s.remove[5] && s.remove[26] && !s.remove[27]);
    assert_int_equal(kept(&s, 1000), 4);
    assert_true(!s.remove[31] && s.remove[36] && !s.remove[37]);

    /* It does not outlive the files of other users: the largest total decides first. */
    s = (Store){0};
    traces(&s, 1, STAGE_SESSION, 1001, 900);
    traces(&s, 2, STAGE_LOGIN, 1000, 100);
    s.files[0].without_replay = true;
    assert_int_equal(kept(&s, 1001), 0);
    assert_int_equal(kept(&s, 1000), 2);
    /* Age has no exception. */
    s = (Store){0};
    add(&s, RETENTION_TRACE, STAGE_BOOT, 1, 1, NOW - 102 * DAY);
    s.files[0].without_replay = true;
    add(&s, RETENTION_TRACE, STAGE_BOOT, 2, 1, NOW - 50 * DAY);
    traces(&s, 1, STAGE_BOOT, 1, 1);
    assert_int_equal(kept(&s, 1), 1);
}

static void what_is_set_aside_has_quotas_of_its_own(void **state)
{
    Store s = {0};

    for (size_t i = 0; i < 20; i++)
        add(&s, RETENTION_ASIDE, STAGE_BOOT, UID_INVALID, 1, NOW - DAY);
    traces(&s, 4, STAGE_BOOT, UID_INVALID, 1);
    assert_int_equal(kept(&s, UID_INVALID), 7);
    assert_true(s.remove[16] && !s.remove[17] && !s.remove[19]);
}

static void age_goes_by_the_newest_file(void **state)
{
    Store s = {0};

    add(&s, RETENTION_ASIDE, STAGE_BOOT, 1, 1, NOW - 11 * DAY);
    add(&s, RETENTION_ASIDE, STAGE_BOOT, 2, 1, NOW - 9 * DAY);
    add(&s, RETENTION_TRACE, STAGE_BOOT, 3, 1, NOW - 101 * DAY);
    add(&s, RETENTION_TRACE, STAGE_BOOT, 4, 1, NOW - 99 * DAY);
    add(&s, RETENTION_TRACE, STAGE_BOOT, 5, 1, NOW - 1);
    add(&s, RETENTION_TRACE, STAGE_BOOT, 6, 1,
        NOW + 1000 * DAY); /* stored while the clock was wrong */
    assert_int_equal(kept(&s, 1), 0);
    assert_int_equal(kept(&s, 2), 1);
    assert_int_equal(kept(&s, 3), 0);
    assert_int_equal(kept(&s, 4), 1);
    assert_int_equal(kept(&s, 6), 1);

    /* The clock is still wrong: the last file is the newest, and the one before it stays. */
    retention_choose(s.files, s.n, quotas, NOW + 1000 * DAY, s.remove);
    assert_false(s.remove[4] || s.remove[5]);

    /* If the clock jumps a year ahead, no further file becomes too old. */
    s.n = 5;
    retention_choose(s.files, s.n, quotas, NOW + 365 * DAY, s.remove);
    assert_false(s.remove[1] || s.remove[3] || s.remove[4]);
    /* A clock that starts again at zero removes no file. */
    retention_choose(s.files, s.n, quotas, 0, s.remove);
    for (size_t i = 0; i < s.n; i++)
        assert_false(s.remove[i]);
}

/* The date is wrong by years in one boot of a machine that is used every day: no file looks older
 * by more than RETENTION_GAP_ASSUMED. */
static void one_wrong_date_ages_little(void **state)
{
    static const RetentionQuota large[_RETENTION_KIND_MAX] = {{N, N, 100 * DAY}, {N, N, DAY}};
    Store s = {0};

    for (size_t i = 0; i < 50; i++)
        add(&s, RETENTION_TRACE, STAGE_BOOT, 1, 1, NOW - (98 - 2 * i) * DAY);
    add(&s, RETENTION_TRACE, STAGE_BOOT, 1, 1, NOW + 3000 * DAY);
    retention_choose(s.files, s.n, large, NOW + 3000 * DAY, s.remove);
    for (size_t i = 0; i < s.n; i++)
        assert_int_equal(s.remove[i],
                         i < 50 && (98 - 2 * i) * DAY + RETENTION_GAP_ASSUMED > 100 * DAY);
}

/* A machine that is off for months: up to RETENTION_GAP_MAX the pause counts in full. */
static void a_pause_counts(void **state)
{
    const usec_t pauses[] = {60 * DAY, RETENTION_GAP_MAX, RETENTION_GAP_MAX + 1, 300 * DAY};

    for (size_t i = 0; i < ELEMENTSOF(pauses); i++) {
        Store s = {0};

        add(&s, RETENTION_TRACE, STAGE_BOOT, 1, 1, NOW - pauses[i] - 41 * DAY);
        add(&s, RETENTION_TRACE, STAGE_BOOT, 2, 1, NOW - pauses[i]);
        add(&s, RETENTION_TRACE, STAGE_BOOT, 3, 1, NOW);
        assert_int_equal(kept(&s, 1), pauses[i] > RETENTION_GAP_MAX);
        assert_int_equal(kept(&s, 2), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(each_stage_keeps_its_newest),
            cmocka_unit_test(who_has_most_loses),
            cmocka_unit_test(bytes_have_a_quota_over_all_stages),
            cmocka_unit_test(the_last_without_replay_stays),
            cmocka_unit_test(what_is_set_aside_has_quotas_of_its_own),
            cmocka_unit_test(age_goes_by_the_newest_file),
            cmocka_unit_test(one_wrong_date_ages_little),
            cmocka_unit_test(a_pause_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
