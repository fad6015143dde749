/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/launch-record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint32_t add_file(Trace *t, const char *path)
{
    uint32_t p, f;

    assert_int_equal(trace_add_path(t, path, &p), 0);
    assert_int_equal(trace_add_file(t, p, TRACE_NONE, false, &f), 0);
    return f;
}

static uint32_t add_application(Trace *t, const char *path)
{
    uint32_t a;

    assert_int_equal(trace_add_application(t, add_file(t, path), &a), 0);
    return a;
}

static void add_start(Trace *t, uint32_t application, usec_t at)
{
    assert_int_equal(trace_add_lifetime(t, &(TraceLifetime){.application = application,
                                                            .start = at,
                                                            .end = USEC_INFINITY}),
                     0);
}

/* Adds n opens of the application, the first at `from` and the others `step` apart. */
static void add_opens(Trace *t, uint32_t application, usec_t from, usec_t step, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(trace_add_access(t, &(TraceAccess){.at = from + i * step,
                                                            .file = 0,
                                                            .application = application}),
                         0);
}

/* A start lasts until a pause of three seconds. A second process of the application belongs to the
 * same start. A start that opens few files is left out, and so is an application that ran before
 * the session. */
static void starts_are_found_in_a_session(void **state _unused_)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_SESSION);
    _cleanup_launch_records_ LaunchRecords l = {0};
    uint32_t editor = add_application(t, "/usr/bin/editor"), tool = add_application(t, "/bin/tool");
    uint32_t panel = add_application(t, "/usr/bin/panel");

    t->uid = 1000;
    t->start_realtime = 1760000000 * USEC_PER_SEC;
    free(t->boot_id);
    t->boot_id = strdup("0123456789abcdef0123456789abcdef");
    add_start(t, panel, 0);
    add_start(t, editor, 10 * USEC_PER_SEC);
    add_start(t, editor, 11 * USEC_PER_SEC);
    add_start(t, tool, 12 * USEC_PER_SEC);
    add_start(t, editor, 60 * USEC_PER_SEC);
    add_opens(t, panel, USEC_PER_SEC, USEC_PER_MSEC, 50);
    add_opens(t, editor, 10 * USEC_PER_SEC, 100 * USEC_PER_MSEC, 21);
    add_opens(t, tool, 12 * USEC_PER_SEC + 1, 1, 19);
    add_opens(t, editor, 20 * USEC_PER_SEC, USEC_PER_MSEC, 50); /* after the end of its start */
    add_opens(t, editor, 61 * USEC_PER_SEC, USEC_PER_MSEC, 30);
    assert_int_equal(launch_records_from_trace(t, &l), 0);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.items[0].application, "/usr/bin/editor");
    assert_int_equal(l.items[0].start_realtime_usec, t->start_realtime + 10 * USEC_PER_SEC);
    assert_int_equal(l.items[0].took_usec, 2 * USEC_PER_SEC);
    assert_int_equal(l.items[0].files, 21);
    assert_int_equal(l.items[0].uid, 1000);
    assert_string_equal(l.items[0].boot_id, t->boot_id);
    assert_int_equal(l.items[1].took_usec, USEC_PER_SEC + 29 * USEC_PER_MSEC);
}

static void other_stages_have_no_starts(void **state _unused_)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_LOGIN);
    _cleanup_launch_records_ LaunchRecords l = {0};
    uint32_t editor = add_application(t, "/usr/bin/editor");

    add_start(t, editor, USEC_PER_SEC);
    add_opens(t, editor, USEC_PER_SEC, USEC_PER_MSEC, 50);
    assert_int_equal(launch_records_from_trace(t, &l), 0);
    assert_int_equal(l.n, 0);
}

static void lines_come_back(void **state _unused_)
{
    LaunchRecord a = {.application = "/usr/bin/\"x\" \\",
                      .uid = 1000,
                      .start_realtime_usec = 5,
                      .took_usec = 7,
                      .files = 9,
                      .replayed = LAUNCH_CONTROL,
                      .boot_id = "0123456789abcdef0123456789abcdef",
                      .packages_usec = 11,
                      .policy = POLICY_CONCURRENT,
                      .usage = {.source = USAGE_PER_FILE,
                                .hit_files = 1,
                                .hit_bytes = 4096,
                                .waste_bytes = 0,
                                .miss_bytes = SESSION_UNKNOWN},
                      .replay_begin_usec = 0,
                      .replay_end_usec = 13,
                      .replay_bytes = 8192,
                      .kernel = "6.18.0-test"},
                 b;
    static const char *const bad[] = {
            "",
            "{}",
            "[]",
            "{\"version\":2}",
            "{\"version\":1,\"application\":\"/x\",\"start_realtime_usec\":1,\"took_usec\":0,"
            "\"files\":1,\"replayed\":\"no\"}",
            "{\"version\":1,\"application\":\"/x\",\"start_realtime_usec\":1,\"took_usec\":1,"
            "\"files\":1,\"replayed\":\"maybe\"}",
            "{\"version\":1,\"application\":\"/x\",\"start_realtime_usec\":1,\"took_usec\":1,"
            "\"files\":1,\"replayed\":\"no\","
            "\"boot_id\":\"0123456789abcdef0123456789abcdef0\"}",
            "{\"version\":1,\"application\":\"/x\",\"start_realtime_usec\":1,\"took_usec\":1,"
            "\"files\":1,\"replayed\":\"no\",\"policy\":\"maybe\"}",
            "{\"version\":1,\"application\":\"/x\",\"start_realtime_usec\":1,\"took_usec\":1,"
            "\"files\":1,\"replayed\":\"no\",\"usage\":\"per-byte\"}",
            "{\"version\":1,\"application\":\"/x\",\"start_realtime_usec\":1,\"took_usec\":1,"
            "\"files\":1,\"replayed\":\"yes\",\"replay_end_usec\":5}",
            "{\"version\":1,\"application\":\"/x\",\"start_realtime_usec\":1,\"took_usec\":1,"
            "\"files\":1,\"replayed\":\"yes\",\"replay_begin_usec\":6,\"replay_end_usec\":5,"
            "\"replay_bytes\":1}"};
    _cleanup_free_ char *line = NULL;
    size_t n;

    assert_int_equal(launch_record_to_line(&a, &line, &n), 0);
    assert_true(line[n - 1] == '\n' && strlen(line) == n);
    assert_int_equal(launch_record_from_line(line, n - 1, &b), 0);
    assert_string_equal(a.application, b.application);
    assert_true(a.uid == b.uid && a.took_usec == b.took_usec && a.files == b.files &&
                a.replayed == b.replayed && a.start_realtime_usec == b.start_realtime_usec &&
                a.packages_usec == b.packages_usec);
    assert_string_equal(a.boot_id, b.boot_id);
    assert_string_equal(a.kernel, b.kernel);
    assert_int_equal(a.policy, b.policy);
    assert_int_equal(b.usage.source, USAGE_PER_FILE);
    assert_int_equal(b.usage.hit_bytes, a.usage.hit_bytes);
    assert_int_equal(b.usage.waste_bytes, a.usage.waste_bytes);
    assert_int_equal(b.usage.miss_bytes, SESSION_UNKNOWN);
    assert_int_equal(b.replay_begin_usec, 0);
    assert_int_equal(b.replay_end_usec, 13);
    assert_int_equal(b.replay_bytes, 8192);
    /* A line of an application without a set. */
    a.policy = _POLICY_INVALID;
    a.usage = pack_usage_empty();
    a.replay_end_usec = 0;
    free(line);
    line = NULL;
    assert_int_equal(launch_record_to_line(&a, &line, &n), 0);
    assert_int_equal(launch_record_from_line(line, n - 1, &b), 0);
    assert_int_equal(b.policy, _POLICY_INVALID);
    assert_int_equal(b.usage.source, USAGE_NONE);
    assert_int_equal(b.replay_end_usec, 0);
    /* If the time of the last upgrade is not known, the line can be read again, too. */
    a.packages_usec = USEC_INFINITY;
    free(line);
    line = NULL;
    assert_int_equal(launch_record_to_line(&a, &line, &n), 0);
    assert_int_equal(launch_record_from_line(line, n - 1, &b), 0);
    assert_int_equal(b.packages_usec, 0);
    for (size_t i = 0; i < ELEMENTSOF(bad); i++)
        assert_int_equal(launch_record_from_line(bad[i], strlen(bad[i]), &b), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(starts_are_found_in_a_session),
            cmocka_unit_test(other_stages_have_no_starts),
            cmocka_unit_test(lines_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
