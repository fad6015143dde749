/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests each user's share of a stage, and the order in which objects go into the stage's trace. */

#include "record/stage-select.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* needs the three headers above */
#include <cmocka.h>

#define TOTAL (uint64_t) EVENT_LOG_EVENTS_MAX

static void test_one_user(void **state)
{
    static UserShares s;
    uint16_t a, b, root;

    s = (UserShares){0};
    a = user_shares_row(&s, 1000);
    b = user_shares_row(&s, 1001);
    root = user_shares_row(&s, 0);
    assert_int_equal(user_shares_row(&s, 1000), a);
    assert_int_equal(user_shares_row(&s, UID_INVALID), 0);
    assert_true(user_shares_try_charge(&s, a, SHARED_EVENTS, TOTAL / 4));
    assert_false(user_shares_try_charge(&s, a, SHARED_EVENTS, 1));
    assert_int_equal(s.users[a].used[SHARED_EVENTS],
                     TOTAL / 4); /* a refused amount is not charged */
    assert_true(user_shares_try_charge(&s, a, SHARED_FILES, 1)); /* each resource is separate */
    assert_true(user_shares_try_charge(&s, b, SHARED_EVENTS, TOTAL / 4));
    assert_true(user_shares_try_charge(&s, root, SHARED_EVENTS, TOTAL / 2));
    assert_false(user_shares_try_charge(&s, root, SHARED_EVENTS, 1));
    assert_false(user_shares_try_charge(&s, b, SHARED_EVENTS, 1));
    assert_true(user_shares_try_charge(&s, b, SHARED_EVENTS, 0));
    /* Time is charged after it has passed. */
    user_shares_charge(&s, a, SHARED_END_USEC, STAGE_END_USEC);
    assert_int_equal(user_shares_left(&s, a, SHARED_END_USEC), 0);
    assert_int_equal(user_shares_left(&s, b, SHARED_END_USEC), 0);
    assert_int_equal(user_shares_left(&s, root, SHARED_END_USEC), 0);
}

/* One user can take at most a quarter of each resource, and root at most three quarters. */
static void test_every_resource(void **state)
{
    for (Shared what = 0; what < _SHARED_MAX; what++) {
        static UserShares s;
        uint64_t root, user;

        s = (UserShares){0};
        root = user_shares_left(&s, user_shares_row(&s, 0), what);
        user = user_shares_left(&s, user_shares_row(&s, 1000), what);
        assert_true(user > 0);
        assert_true(user <= root / 3);
    }
}

/* With as many users as a user has subordinate UIDs, root still has its quarter, and the rows are
 * bounded. Root does not take everything from the others either. */
static void test_many_users(void **state)
{
    static UserShares s;
    uint64_t taken = 0;

    s = (UserShares){0};
    for (uint32_t uid = 1000; uid < 70000; uid++)
        for (uint16_t row = user_shares_row(&s, uid);
             user_shares_try_charge(&s, row, SHARED_EVENTS, TOTAL / 100);)
            taken += TOTAL / 100;
    assert_true(taken <= TOTAL / 4 * 3 && taken > TOTAL / 2);
    assert_int_equal(s.n, USER_SHARES_MAX);
    assert_int_equal(user_shares_row(&s, 69999), 0);
    assert_int_equal(user_shares_row(&s, 0), 1);
    assert_true(user_shares_try_charge(&s, 1, SHARED_EVENTS, TOTAL / 4));

    s = (UserShares){0};
    assert_int_equal(user_shares_left(&s, user_shares_row(&s, 0), SHARED_EVENTS), TOTAL / 4 * 3);
    assert_true(user_shares_try_charge(&s, user_shares_row(&s, 0), SHARED_EVENTS, TOTAL / 4 * 3));
    assert_true(user_shares_try_charge(&s, user_shares_row(&s, 1000), SHARED_EVENTS, TOTAL / 4));
}

/* Several users who flood the recorder leave a quarter to users who take little, and another
 * quarter to root. */
static void test_users_who_take_little(void **state)
{
    static UserShares s;

    s = (UserShares){0};
    for (uint32_t uid = 1000; uid < 1100; uid++)
        while (user_shares_try_charge(&s, user_shares_row(&s, uid), SHARED_EVENTS, TOTAL / 32))
            ;
    assert_true(s.used_others[SHARED_EVENTS] >= TOTAL / 2);
    s = (UserShares){0};
    for (uint32_t uid = 1000; uid < 1004; uid++)
        while (user_shares_try_charge(&s, user_shares_row(&s, uid), SHARED_EVENTS, 1))
            ;
    assert_int_equal(s.used_others[SHARED_EVENTS], TOTAL / 2 + 2 * (TOTAL / 32));
    for (uint32_t uid = 2000; uid < 2006; uid++)
        assert_true(
                user_shares_try_charge(&s, user_shares_row(&s, uid), SHARED_EVENTS, TOTAL / 32));
    assert_int_equal(s.used_others[SHARED_EVENTS], TOTAL / 4 * 3);
    assert_false(user_shares_try_charge(&s, user_shares_row(&s, 3000), SHARED_EVENTS, 1));
    assert_int_equal(user_shares_left(&s, user_shares_row(&s, 0), SHARED_EVENTS), TOTAL / 4);
}

/* The subordinate UIDs of a user have this user's share. Those of root, and of unknown users, share
 * the row of unknown users. */
static void test_subordinate_uids(void **state)
{
    static UserShares s;
    SubordinateUids subordinate = {
            .subuid = strdup("ann:100000:65536\nbad line\nann:x:1\nroot:400000:65536\n"
                             "1001:200000:65536\ngone:300000:65536\nann:4294900000:65536"),
            .passwd = strdup("root:x:0:0:root:/root:/bin/sh\nannabel::1003:1003::/:\n"
                             "ann:x:1000:1000:Ann:/home/ann:/bin/sh\n"),
    };
    uint16_t ann, other;

    s = (UserShares){.subordinate = &subordinate};
    ann = user_shares_row(&s, 1000);
    other = user_shares_row(&s, 1001);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(user_shares_row(&s, 100000), ann);
        assert_int_equal(user_shares_row(&s, 165535), ann);
        assert_int_equal(user_shares_row(&s, 4294900000), ann);
        assert_int_equal(user_shares_row(&s, 200000), other);
        assert_int_equal(user_shares_row(&s, 300000), 0);
        assert_int_equal(user_shares_row(&s, 400000), 0);
        assert_int_equal(user_shares_row(&s, 99999), 4);
        assert_int_equal(user_shares_row(&s, 165536), 5);
    }
    for (uint32_t uid = 500000; uid < 500000 + 3 * SUBORDINATE_KNOWN_MAX; uid++)
        assert_int_equal(user_shares_row(&s, uid), uid - 500000 + 6);
    assert_int_equal(user_shares_row(&s, 165535), ann);
    /* However many of its UIDs a user takes, another user still has a share. */
    for (uint32_t uid = 100000; uid < 165536; uid++)
        while (user_shares_try_charge(&s, user_shares_row(&s, uid), SHARED_EVENTS, TOTAL / 32))
            ;
    assert_int_equal(s.used_others[SHARED_EVENTS], TOTAL / 4);
    assert_true(user_shares_try_charge(&s, other, SHARED_EVENTS, TOTAL / 4));
    subordinate_uids_done(&subordinate);
}

/* --- the order ---------------------------------------------------------------------------------
 */

typedef struct Recorded {
    StageRecord record;
    uint32_t n;
} Recorded;

static uint32_t object(Recorded *s)
{
    char name[16];
    uint32_t ret;

    snprintf(name, sizeof(name), "/%u", s->n++);
    assert_int_equal(
            event_log_intern(s->record.log,
                             &(LoggedObject){.name = name, .name_size = (uint16_t)strlen(name)},
                             true, &ret),
            0);
    return ret;
}

static void opened(Recorded *s, uint32_t what, uint32_t uid, uint32_t run)
{
    assert_int_equal(event_log_add(s->record.log,
                                   &(LoggedEvent){.object = what,
                                                  .run = run,
                                                  .user = user_shares_row(&s->record.shares, uid)}),
                     0);
}

/* Writes the objects in the order of stage_select() to `text`, each as "number:uid ", or as
 * "number:uidr " if it was not opened. */
static void select_into(Recorded *s, const ProcessRun *runs, size_t n_runs, char *text, size_t size)
{
    _cleanup_free_ StageObject *o = NULL;
    size_t n, at = 0;

    assert_int_equal(stage_select(&s->record, runs, n_runs, &o, &n), 0);
    text[0] = 0;
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, size - at, "%u:%d%s ", o[i].object,
                               (int)s->record.shares.users[o[i].user].uid, o[i].opened ? "" : "r");
}

static int set_up(void **state)
{
    Recorded *s = calloc(1, sizeof(*s));

    s->record.log = event_log_new();
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    Recorded *s = *state;

    event_log_free(s->record.log);
    free(s);
    return 0;
}

/* Running programs, except headstart's own, come before all other objects. Then come the objects
 * that several runs opened, then those that one run opened. In each of these two groups, earlier
 * opens come first. Other objects without opens are missing. */
static void test_likeliest_first(void **state)
{
    Recorded *s = *state;
    char text[256];

    for (int i = 0; i < 8; i++)
        object(s);
    opened(s, 5, 1000, 1);
    opened(s, 2, 1000, 1);
    opened(s, 2, 1000, 1); /* twice, by one run */
    opened(s, 3, 1000, 1);
    opened(s, 4, 1000, 1);
    opened(s, 4, 1000, 2);
    select_into(s,
                (ProcessRun[]){{.object = 6, .uid = 1000},
                               {.object = 7, .uid = 1000, .own = true},
                               {.object = PROCESS_NONE}},
                3, text, sizeof(text));
    assert_string_equal(text, "6:1000r 4:1000 5:1000 2:1000 3:1000 ");
}

/* An object that root opened is charged to root, whoever opened it first. Users take turns, and
 * root has four places in each turn. */
static void test_turns(void **state)
{
    Recorded *s = *state;
    char text[256];

    for (int i = 0; i < 20; i++)
        object(s);
    opened(s, 0, 1000, 1);
    opened(s, 0, 0, 2);
    for (uint32_t i = 1; i < 8; i++)
        opened(s, i, 1000, 1);
    for (uint32_t i = 8; i < 12; i++)
        opened(s, i, 1001, 1);
    for (uint32_t i = 12; i < 17; i++)
        opened(s, i, 0, 1);
    select_into(s, NULL, 0, text, sizeof(text));
    assert_string_equal(text, "0:0 12:0 13:0 14:0 1:1000 8:1001 15:0 16:0 2:1000 9:1001 3:1000 "
                              "10:1001 4:1000 11:1001 5:1000 6:1000 7:1000 ");
}

/* An object that several users opened is listed for each of them: one who has no room left for it
 * does not keep it out. Only a user's own runs make an object likelier for that user. */
static void test_several_users(void **state)
{
    Recorded *s = *state;
    char text[256];

    for (int i = 0; i < 4; i++)
        object(s);
    opened(s, 0, 1000, 1);
    opened(s, 0, 1000, 2);
    opened(s, 1, 1000, 1);
    opened(s, 2, 1000, 1);
    opened(s, 2, 1001, 3);
    select_into(s, (ProcessRun[]){{.object = 3, .uid = 1001}}, 1, text, sizeof(text));
    assert_string_equal(text, "0:1000 3:1001r 1:1000 2:1001 2:1000 ");
}

/* The login or session of one user has nothing that only other people opened or ran. */
static void test_other_people(void **state)
{
    static const struct {
        Stage stage;
        uint32_t uid;
        const char *selected;
    } cases[] = {
            {STAGE_LOGIN, 1000, "0:0 3:65534 1:1000 4:33 "},
            {STAGE_SESSION, 1000, "0:0 3:65534 1:1000 4:33 "},
            {STAGE_LOGIN, UID_INVALID, "0:0 5:1001r 3:65534 1:1000 4:33 1:1001 2:1001 "},
            {STAGE_BOOT, UID_INVALID, "0:0 5:1001r 3:65534 1:1000 4:33 1:1001 2:1001 "},
    };
    Recorded *s = *state;
    char text[256];

    for (int i = 0; i < 6; i++)
        object(s);
    opened(s, 0, 1001, 1);
    opened(s, 0, 0, 2);
    opened(s, 1, 1001, 1);
    opened(s, 2, 1001, 1);
    opened(s, 3, 65534, 3);
    opened(s, 1, 1000, 4);
    opened(s, 4, 33, 5);
    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        s->record.stage = cases[i].stage;
        s->record.uid = cases[i].uid;
        select_into(s, (ProcessRun[]){{.object = 5, .uid = 1001}}, 1, text, sizeof(text));
        assert_string_equal(text, cases[i].selected);
    }
}

static void test_nothing(void **state)
{
    char text[8];

    select_into(*state, NULL, 0, text, sizeof(text));
    assert_string_equal(text, "");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_one_user),
            cmocka_unit_test(test_every_resource),
            cmocka_unit_test(test_many_users),
            cmocka_unit_test(test_users_who_take_little),
            cmocka_unit_test(test_subordinate_uids),
            TEST(test_likeliest_first),
            TEST(test_turns),
            TEST(test_several_users),
            TEST(test_other_people),
            TEST(test_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
