/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/session-record.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static SessionRecord sample(void)
{
    SessionRecord s = session_record_empty(STAGE_LOGIN);

    s.uid = 1000;
    s.flags = SESSION_CONTROL | SESSION_SHARED;
    s.start_realtime_usec = 1767225600000000;
    s.ready_usec = 4200000;
    s.disk_read_bytes = UINT64_C(1) << 53;
    s.policy = POLICY_IDLE;
    s.usage = (PackUsage){USAGE_PER_PAGE, 1, 2, 3, 4096, 8192, 12288};
    s.usage.planned[9] = 100;
    s.usage.opened[9] = 97;
    snprintf(s.outcome, sizeof(s.outcome), "done");
    snprintf(s.kernel, sizeof(s.kernel), "6.1 \"quoted\" \\");
    return s;
}

static void test_round_trip(void **state)
{
    _cleanup_free_ char *line = NULL, *again = NULL;
    SessionRecord s = sample(), t;
    size_t n, m;

    assert_int_equal(session_record_to_line(&s, &line, &n), 0);
    assert_int_equal(line[n - 1], '\n');
    assert_null(memchr(line, '\n', n - 1));
    assert_int_equal(session_record_from_line(line, n - 1, &t), 0);
    assert_int_equal(t.uid, 1000);
    assert_int_equal(t.flags, s.flags);
    assert_int_equal(t.usage.waste_bytes, 8192);
    assert_int_equal(t.usage.planned[9], 100);
    assert_int_equal(t.usage.opened[9], 97);
    assert_int_equal(t.disk_read_bytes, s.disk_read_bytes);
    assert_true(t.firmware_usec == SESSION_UNKNOWN);
    assert_string_equal(t.kernel, s.kernel);
    assert_int_equal(session_record_to_line(&t, &again, &m), 0);
    assert_int_equal(n, m);
    assert_memory_equal(line, again, n);
}

/* Every truncated line is refused, and a line with one changed byte is refused or read without
 * harm. */
static void test_damage(void **state)
{
    _cleanup_free_ char *line = NULL;
    SessionRecord s = sample(), t;
    size_t n;

    assert_int_equal(session_record_to_line(&s, &line, &n), 0);
    n--;
    for (size_t i = 0; i < n; i++)
        assert_true(session_record_from_line(line, i, &t) < 0);
    for (size_t i = 0; i < n; i++) {
        char old = line[i];

        line[i] = '7';
        if (session_record_from_line(line, n, &t) >= 0)
            assert_true(t.stage == STAGE_BOOT || t.stage == STAGE_LOGIN);
        line[i] = old;
    }
}

static void refuse(const char *line, int error)
{
    SessionRecord t = {.ready_usec = 5};

    assert_int_equal(session_record_from_line(line, strlen(line), &t), error);
    assert_int_equal(t.ready_usec, 5);
}

static void test_refused(void **state)
{
#define HEAD "{\"version\":1,\"stage\":\"boot\",\"flags\":[],\"policy\":\"off\",\"usage\":\"none\""
    SessionRecord t;

    refuse("", -EBADMSG);
    refuse("[]", -EBADMSG);
    refuse("{\"version\":2}", -EPROTONOSUPPORT);
    refuse(HEAD "}", -EBADMSG);
    refuse(HEAD ",\"start_realtime_usec\":-1}", -EBADMSG);
    refuse(HEAD ",\"start_realtime_usec\":1,\"ready_usec\":\"5\"}", -EBADMSG);
    refuse(HEAD ",\"start_realtime_usec\":1,\"uid\":4294967295}", -EBADMSG);
    refuse(HEAD ",\"start_realtime_usec\":1,\"boot_id\":\"0123456789012345678901234567890123\"}",
           -EBADMSG);
    refuse("{\"version\":1,\"stage\":\"session\",\"flags\":[],\"policy\":\"off\",\"usage\":"
           "\"none\",\"start_realtime_usec\":1}",
           -EBADMSG);
    refuse(HEAD ",\"start_realtime_usec\":1,\"planned\":[1],\"opened\":[1]}", -EBADMSG);
    refuse(HEAD ",\"start_realtime_usec\":1,\"planned\":[0,0,0,0,0,0,0,0,0,1]}", -EBADMSG);
    refuse(HEAD ",\"start_realtime_usec\":1,\"planned\":[0,0,0,0,0,0,0,0,0,1],"
                "\"opened\":[0,0,0,0,0,0,0,0,0,2]}",
           -EBADMSG);
    refuse(HEAD ",\"start_realtime_usec\":1,\"planned\":[0,0,0,0,0,0,0,0,0,1],"
                "\"opened\":[0,0,0,0,0,0,0,0,0,\"\"]}",
           -EBADMSG);
    /* A later version may add members. */
    assert_int_equal(
            session_record_from_line(HEAD ",\"start_realtime_usec\":1,\"new\":[1]}",
                                     strlen(HEAD ",\"start_realtime_usec\":1,\"new\":[1]}"), &t),
            0);
}

static void test_replayed(void **state)
{
    SessionRecord s = sample();

    assert_true(session_was_replayed(&s));
    strcpy(s.outcome, "control");
    assert_false(session_was_replayed(&s));
    strcpy(s.outcome, "stopped");
    s.replay_files = 0;
    assert_false(session_was_replayed(&s));
    s.replay_files = 3;
    assert_true(session_was_replayed(&s));
    s.policy = POLICY_OFF;
    assert_false(session_was_replayed(&s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_round_trip),
            cmocka_unit_test(test_damage),
            cmocka_unit_test(test_refused),
            cmocka_unit_test(test_replayed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
