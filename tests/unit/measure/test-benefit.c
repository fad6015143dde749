/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/benefit.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define DAY   (24 * USEC_PER_HOUR)
#define START (UINT64_C(1767225600) * USEC_PER_SEC)
#define N     40

static SessionRecord sessions[2 * N];

/* Fills `sessions` with forty boots, one a day. Every fifth boot is a control session. */
static void fill(double replayed, double control)
{
    for (size_t i = 0; i < N; i++) {
        SessionRecord *s = &sessions[i];
        bool is_control = i % 5 == 2;

        *s = session_record_empty(STAGE_BOOT);
        s->start_realtime_usec = START + i * DAY;
        s->ready_usec = (usec_t)((is_control ? control : replayed) * USEC_PER_SEC);
        s->policy = POLICY_GATE;
        s->flags = is_control ? SESSION_CONTROL : 0;
        strcpy(s->outcome, is_control ? "control" : "done");
    }
}

static Benefit compute(size_t n, usec_t now)
{
    Benefit b;

    assert_int_equal(benefit_compute(sessions, n, STAGE_BOOT, now, &b), 0);
    return b;
}

static void test_exclusions(void **state)
{
    SessionExclusion e[N];
    static const struct {
        unsigned flag;
        SessionExclusion exclusion;
    } map[] = {
            {SESSION_SECOND_LOGIN, EXCLUSION_SECOND_LOGIN},
            {SESSION_SOFT_REBOOT, EXCLUSION_SOFT_REBOOT},
            {SESSION_OFFLINE_UPDATE, EXCLUSION_OFFLINE_UPDATE},
            {SESSION_FSCK, EXCLUSION_FSCK},
            {SESSION_EXACT, EXCLUSION_EXACT},
            {SESSION_UNSETTLED, EXCLUSION_UNSETTLED},
            {SESSION_SHARED, EXCLUSION_SHARED},
            {SESSION_LIGHT, EXCLUSION_LIGHT},
    };

    fill(4, 10);
    for (size_t i = 0; i < ELEMENTSOF(map); i++)
        sessions[i + 1].flags |= map[i].flag;
    for (size_t i = 20; i < N; i++)
        sessions[i].packages_usec = START;
    strcpy(sessions[30].kernel, "6.12");
    sessions[33].ready_usec = SESSION_UNKNOWN;
    sessions[34].policy = POLICY_CONCURRENT;
    /* Sessions 12, 17, 22 and 27 are control sessions. In two of them one of the packs was
     * replayed. */
    strcpy(sessions[12].outcome, "done");
    sessions[17].usage.source = USAGE_PER_FILE;
    sessions[22].usage.source = USAGE_PER_PAGE;
    /* In session 35 the user's pack was off, but that of all users was replayed. */
    sessions[35].policy = POLICY_OFF;
    sessions[35].usage.source = USAGE_PER_FILE;
    sessions_exclude(sessions, N, e);
    assert_int_equal(e[0], EXCLUSION_FIRST);
    for (size_t i = 0; i < ELEMENTSOF(map); i++)
        assert_int_equal(e[i + 1], map[i].exclusion);
    assert_int_equal(e[19], EXCLUSION_NONE);
    assert_int_equal(e[20], EXCLUSION_UPGRADED);
    assert_int_equal(e[21], EXCLUSION_NONE);
    assert_int_equal(e[30], EXCLUSION_UPGRADED);
    assert_int_equal(e[31], EXCLUSION_UPGRADED); /* back to the old kernel */
    assert_int_equal(e[33], EXCLUSION_UNSETTLED);
    assert_int_equal(e[34], EXCLUSION_OTHER_POLICY);
    assert_int_equal(e[12], EXCLUSION_PARTLY_REPLAYED);
    assert_int_equal(e[17], EXCLUSION_PARTLY_REPLAYED);
    assert_int_equal(e[22], EXCLUSION_NONE);
    assert_int_equal(e[35], EXCLUSION_PARTLY_REPLAYED);
    assert_int_equal(e[27], EXCLUSION_NONE);
    for (SessionExclusion x = 1; x < _SESSION_EXCLUSION_MAX; x++)
        assert_non_null(session_exclusion_to_string(x));
}

static void test_automatic_logins(void **state)
{
    SessionExclusion e[N];

    fill(4, 10);
    for (size_t i = 0; i < N; i++) {
        sessions[i].stage = STAGE_LOGIN;
        sessions[i].flags =
                i < N - 3 ? SESSION_AUTOLOGIN : 0; /* three of the newest five are not */
        sessions[i].began_usec = USEC_PER_SEC;
    }
    sessions_exclude(sessions, N, e);
    assert_int_equal(e[1], EXCLUSION_AUTOLOGIN);
    assert_int_equal(e[N - 1], EXCLUSION_NONE);
    sessions[N - 1].flags = SESSION_AUTOLOGIN; /* now two are not */
    sessions_exclude(sessions, N, e);
    assert_int_equal(e[1], EXCLUSION_NONE);
    assert_int_equal(e[N - 2], EXCLUSION_GREETER);
    for (size_t i = 0; i < N; i++)
        sessions[i].stage = STAGE_BOOT;
    sessions_exclude(sessions, N, e);
    assert_int_equal(e[N - 2], EXCLUSION_NONE);
}

/* Each boot ends with an automatic login, whose time contains the boot. */
static void test_boots_of_automatic_logins(void **state)
{
    SessionExclusion e[2 * N];
    Benefit b;

    fill(4, 10);
    for (size_t i = N; i-- > 0;) {
        SessionRecord *boot = &sessions[2 * i], *login = boot + 1;

        *boot = *login = sessions[i];
        snprintf(boot->boot_id, sizeof(boot->boot_id), "%zu", i);
        strcpy(login->boot_id, boot->boot_id);
        boot->flags |= SESSION_UNSETTLED;
        boot->ready_usec = SESSION_UNKNOWN;
        login->stage = STAGE_LOGIN;
        login->flags |= SESSION_AUTOLOGIN;
        login->uid = 1000;
        login->began_usec = USEC_PER_SEC;
    }
    sessions[2 * 5].flags |= SESSION_FSCK;
    sessions[2 * 6 + 1].boot_id[0] = 'x'; /* the login of another boot */
    sessions[2 * 6].flags |= SESSION_FSCK;
    sessions[2 * 7 + 1].began_usec = SESSION_UNKNOWN;
    sessions_exclude(sessions, 2 * N, e);
    assert_int_equal(e[2 * 4], EXCLUSION_WITH_LOGIN);
    assert_int_equal(e[2 * 4 + 1], EXCLUSION_NONE);
    assert_int_equal(e[2 * 5], EXCLUSION_FSCK);
    assert_int_equal(e[2 * 5 + 1], EXCLUSION_FSCK);
    assert_int_equal(e[2 * 6], EXCLUSION_FSCK);
    assert_int_equal(e[2 * 6 + 1], EXCLUSION_NONE);
    assert_int_equal(e[2 * 7 + 1], EXCLUSION_WITHOUT_BOOT);

    assert_int_equal(benefit_compute(sessions, 2 * N, STAGE_LOGIN, START + N * DAY, &b), 0);
    assert_true(b.automatic);
    assert_int_equal(b.policy, POLICY_GATE);
    assert_true(b.effect.known);
    assert_int_equal(b.effect.n_replayed + b.effect.n_control, N - 3);
    assert_int_equal(benefit_compute(sessions, 2 * N, STAGE_BOOT, START + N * DAY, &b), 0);
    assert_true(b.automatic);
    assert_int_equal(b.effect.n_replayed, 0);
    assert_int_equal(b.n_left_out, N);
}

static void test_keeps(void **state)
{
    Benefit b = {.policy = POLICY_GATE, .effect = {.known = true, .saved_low = 0.1}};

    assert_int_equal(benefit_keeps(&b, POLICY_GATE), POLICY_REASON_MEASURED);
    assert_int_equal(benefit_keeps(&b, POLICY_CONCURRENT), POLICY_REASON_UNKNOWN);
}

/* Without an interval that excludes zero, a policy stays as well, once its sessions are compared.
 */
static void test_keeps_undecided(void **state)
{
    Benefit b = {.policy = POLICY_GATE, .effect = {.n_replayed = 3}};

    assert_int_equal(benefit_keeps(&b, POLICY_GATE), POLICY_REASON_UNDECIDED);
    assert_int_equal(benefit_keeps(&b, POLICY_CONCURRENT), POLICY_REASON_UNKNOWN);
    /* The interval contains zero, or lies below zero. */
    b.effect = (Effect){.n_replayed = 30, .known = true, .saved_low = -0.1, .saved_high = 0.2};
    assert_int_equal(benefit_keeps(&b, POLICY_GATE), POLICY_REASON_UNDECIDED);
    b.effect.saved_high = -0.05;
    assert_int_equal(benefit_keeps(&b, POLICY_GATE), POLICY_REASON_UNKNOWN);
    /* A change discards two sessions only. */
    b.effect = (Effect){.n_replayed = 2};
    assert_int_equal(benefit_keeps(&b, POLICY_GATE), POLICY_REASON_UNKNOWN);
}

/* With another disk the comparison starts anew, and the planner chooses the policy again. */
static void test_other_disk(void **state)
{
    SessionExclusion e[N];
    Benefit b;

    fill(4, 10);
    for (size_t i = 0; i < N; i++)
        strcpy(sessions[i].disk, "00000000000000aa");
    *sessions[1].disk = 0; /* an older version wrote it */
    b = compute(N, START);
    assert_int_equal(benefit_keeps(&b, POLICY_GATE), POLICY_REASON_MEASURED);
    /* The two newest sessions are on the new disk; of the newest the disk is not known. */
    strcpy(sessions[N - 2].disk, "00000000000000bb");
    *sessions[N - 1].disk = 0;
    sessions_exclude(sessions, N, e);
    assert_int_equal(e[1], EXCLUSION_NONE);
    assert_int_equal(e[2], EXCLUSION_OTHER_DISK);
    assert_int_equal(e[N - 3], EXCLUSION_OTHER_DISK);
    assert_int_equal(e[N - 2], EXCLUSION_NONE);
    assert_int_equal(e[N - 1], EXCLUSION_NONE);
    strcpy(sessions[1].disk, "00000000000000aa");
    b = compute(N, START);
    assert_int_equal(b.effect.n_replayed, 2);
    assert_int_equal(benefit_keeps(&b, POLICY_GATE), POLICY_REASON_UNKNOWN);
}

static void test_gain(void **state)
{
    Benefit b;

    fill(4, 10);
    b = compute(N, START + N * DAY);
    assert_true(b.effect.known);
    assert_int_equal(b.effect.n_control, 8);
    assert_int_equal(b.effect.n_replayed, 31); /* without the first */
    assert_true(b.effect.saved > 0.599 && b.effect.saved < 0.601);
    assert_int_equal(b.policy, POLICY_GATE);
    assert_int_equal(b.n_left_out, 1);
    assert_int_equal(b.n_since_control, 2);
    assert_false(b.harmful);
    assert_int_equal(benefit_control_interval(&b, 5, START + N * DAY), 101);
    /* The last control session was on day 37. If a login without replay takes more than 10 s, the
     * next control session follows at least 48 hours later. */
    assert_int_equal(benefit_control_interval(&b, 12, START + 38 * DAY), 0);
    assert_int_equal(benefit_control_interval(&b, 12, START + 39 * DAY), 101);
    /* A clock that was set back a little changes nothing. The date of a control session far in the
     * future is wrong, and does not end all control sessions. */
    assert_int_equal(benefit_control_interval(&b, 12, START + 36 * DAY), 0);
    assert_int_equal(benefit_control_interval(&b, 12, START + 35 * DAY), 101);
}

/* A control session counts without the time in which headstart-init delayed it. */
static void test_delay_by_headstart(void **state)
{
    fill(4, 10);
    for (size_t i = 0; i < N; i++)
        sessions[i].early_usec = 2 * USEC_PER_SEC;
    assert_float_equal(compute(N, sessions[N - 1].start_realtime_usec).effect.saved, 0.5, 1e-9);
    /* A clock that jumped gives no negative time. */
    for (size_t i = 0; i < N; i++)
        sessions[i].early_usec = 20 * USEC_PER_SEC;
    assert_float_equal(compute(N, sessions[N - 1].start_realtime_usec).effect.saved, 0.6, 1e-9);
}

static void test_harm(void **state)
{
    Benefit b;

    fill(5.5, 5);
    b = compute(N, START + N * DAY);
    assert_true(b.harmful);
    assert_true(b.evidence.saved_high < 0);
    assert_int_equal(benefit_control_interval(&b, 5, START + N * DAY), 2);
    /* Replay is tried again when the evidence is old. */
    b = compute(N, START + N * DAY + BENEFIT_VERDICT_USEC);
    assert_false(b.harmful);
    /* Also if the clock was wrong when the second session began, or all of them. */
    sessions[1].start_realtime_usec = START + 10000 * DAY;
    b = compute(N, START + N * DAY + BENEFIT_VERDICT_USEC);
    assert_int_equal(b.evidence.n_replayed + b.evidence.n_control, 0);
    assert_false(b.harmful);
    for (size_t i = 0; i < N; i++)
        sessions[i].start_realtime_usec = START + 10000 * DAY;
    b = compute(N, START + N * DAY);
    assert_false(b.harmful);
    fill(5.5, 5);
    /* Two control sessions are no evidence, but a reason to measure more often. */
    b = compute(8, START + 8 * DAY);
    assert_false(b.harmful);
    assert_int_equal(benefit_control_interval(&b, 5, START + 8 * DAY), 2);
}

/* A machine that boots every ten days has nine sessions in the time of the verdict. */
static void test_harm_with_few_boots(void **state)
{
    Benefit b;

    fill(6.5, 5);
    for (size_t i = 0; i < N; i++)
        sessions[i].start_realtime_usec = START + i * 10 * DAY;
    b = compute(N, START + N * 10 * DAY);
    assert_int_equal(b.evidence.n_replayed + b.evidence.n_control, BENEFIT_VERDICT_SESSIONS);
    assert_true(b.harmful);
    b = compute(N, START + N * 10 * DAY + BENEFIT_VERDICT_USEC);
    assert_false(b.harmful);
}

static void test_unknown(void **state)
{
    Benefit b;

    fill(5, 5);
    b = compute(0, START);
    assert_int_equal(b.policy, _POLICY_INVALID);
    assert_int_equal(benefit_control_interval(&b, 0, START), 0);
    b = compute(4, START); /* the first is left out, one is a control session */
    assert_int_equal(b.effect.n_replayed, 2);
    assert_int_equal(benefit_control_interval(&b, 0, START), 0);
    b = compute(5, START);
    assert_int_equal(benefit_control_interval(&b, 0, START), 10);
    /* The block already has a control session. */
    b = compute(N, START);
    assert_int_equal(benefit_control_interval(&b, 0, START), 0);
    assert_false(b.harmful); /* no difference: the interval contains zero */
}

/* Until the interval excludes zero, one session of each block of ten is drawn. */
static void test_blocks(void **state)
{
    const size_t first = BENEFIT_UNDRAWN + 1; /* the first session is left out */
    const uint32_t expected[] = {10, 9, 8, 7, 6, 5, 4, 3, 2, 2, 10};
    Benefit b;

    fill(5, 5);
    for (size_t i = 0; i < N; i++) {
        sessions[i].flags = 0;
        strcpy(sessions[i].outcome, "done");
    }
    for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
        b = compute(first + i, START);
        assert_int_equal(benefit_control_interval(&b, 0, START), expected[i]);
    }
    /* An exact recording takes the place of the control session, until the next block. */
    sessions[first + 4].flags = SESSION_EXACT;
    for (size_t i = 5; i < 10; i++) {
        b = compute(first + i, START);
        assert_int_equal(benefit_control_interval(&b, 0, START), 0);
    }
    b = compute(first + 10, START);
    assert_int_equal(benefit_control_interval(&b, 0, START), 10);
}

/* Once replay was shown to gain time, an exact recording is followed by 101 sessions without a
 * control session. */
static void test_exact_recording(void **state)
{
    Benefit b = {.effect = {.n_replayed = 20, .known = true, .saved_low = 0.1}};

    benefit_count(&b, true, SESSION_CONTROL, START);
    assert_int_equal(benefit_control_interval(&b, 0, START), 101);
    benefit_count(&b, false, SESSION_CONTROL | SESSION_EXACT, START);
    for (size_t i = 0; i < 101; i++) {
        assert_int_equal(benefit_control_interval(&b, 0, START), 0);
        benefit_count(&b, true, 0, START);
    }
    assert_int_equal(benefit_control_interval(&b, 0, START), 101);
}

/* Adds sessions of a user, one a day. One in three is a control session of about 10 s. The others
 * take about `replayed` seconds. */
static size_t add_logins(EffectSession *v, usec_t *starts, size_t n, size_t n_new, uint32_t user,
                         double replayed)
{
    for (size_t i = 0; i < n_new; i++) {
        bool control = i % 3 == 2;

        starts[n + i] = START + i * DAY;
        v[n + i] = (EffectSession){(control ? 10 : replayed) + 0.01 * (double)i, !control, user};
    }
    return n + n_new;
}

static void test_users(void **state)
{
    EffectSession v[100];
    usec_t starts[100], now = START + 60 * DAY;
    Benefit b = {0};
    size_t n;

    /* Replay looks harmful in the sessions of one user, who has most of the sessions. These
     * sessions decide for this user, but not for the others. */
    n = add_logins(v, starts, 0, 60, 1000, 20);
    n = add_logins(v, starts, n, 12, 1001, 5);
    assert_int_equal(benefit_judge(v, starts, n, now, &b), 0);
    assert_true(b.evidence.known && b.evidence.saved_high < 0);
    assert_true(b.effect.saved < 0);
    assert_false(b.harmful || b.slower);
    assert_true(benefit_is_harmful(&b, 1000));
    assert_false(benefit_is_harmful(&b, 1001));
    assert_false(benefit_is_harmful(&b, 1002));
    assert_false(benefit_is_harmful(&b, UID_INVALID));

    /* The other user has too few sessions for an interval. */
    n = add_logins(v, starts, 60, 3, 1001, 20);
    assert_int_equal(benefit_judge(v, starts, n, now, &b), 0);
    assert_true(b.evidence.known && b.evidence.saved_high < 0);
    assert_false(benefit_is_harmful(&b, UID_INVALID));
    assert_true(b.slower);
    assert_int_equal(b.n_harmed_users, 1);

    /* Two users agree. */
    n = add_logins(v, starts, 60, 30, 1001, 20);
    assert_int_equal(benefit_judge(v, starts, n, now, &b), 0);
    assert_true(b.harmful && b.slower);
    assert_true(benefit_is_harmful(&b, 1002));
    assert_int_equal(b.n_harmed_users, 2);

    /* If there is only one user, the sessions of this user decide for all. */
    n = add_logins(v, starts, 0, 60, 1000, 20);
    assert_int_equal(benefit_judge(v, starts, n, now, &b), 0);
    assert_true(b.harmful && b.slower);
    assert_true(benefit_is_harmful(&b, UID_INVALID));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_automatic_logins),
            cmocka_unit_test(test_boots_of_automatic_logins),
            cmocka_unit_test(test_keeps),
            cmocka_unit_test(test_keeps_undecided),
            cmocka_unit_test(test_other_disk),
            cmocka_unit_test(test_exclusions),
            cmocka_unit_test(test_gain),
            cmocka_unit_test(test_delay_by_headstart),
            cmocka_unit_test(test_harm),
            cmocka_unit_test(test_harm_with_few_boots),
            cmocka_unit_test(test_unknown),
            cmocka_unit_test(test_blocks),
            cmocka_unit_test(test_exact_recording),
            cmocka_unit_test(test_users),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
