/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests that storing a trace keeps the quotas, also while nothing is learned. */

#include "state/retention.h"
#include "state/trace-store.h"
#include "util/root-util.h"

#define BEGIN ((usec_t)1767322800 * USEC_PER_SEC)

static TestRoot root;

static int set_up(void **state)
{
    return test_root_make(&root);
}

static int tear_down(void **state)
{
    return test_root_remove(&root);
}

static void store_flagged(Stage stage, uint32_t uid, unsigned number, unsigned flags)
{
    Trace *t = trace_new(stage);
    char *path;

    assert_non_null(t);
    t->uid = uid;
    t->flags = flags;
    t->start_realtime = BEGIN + number * USEC_PER_SEC;
    assert_int_equal(trace_store(root.path, t, &path), 0);
    trace_free(t);
    free(path);
}

static void store(Stage stage, uint32_t uid, unsigned number)
{
    store_flagged(stage, uid, number, TRACE_REPLAYED);
}

/* Counts the traces of the user. */
static size_t count(uint32_t uid)
{
    TraceNames names = {0};
    size_t n = 0;
    int fd;

    assert_int_equal(state_list_traces(root.fd, &names), 0);
    fd = openat(root.fd, "traces", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t i = 0; i < names.n; i++) {
        TraceIdentity id;

        assert_int_equal(trace_peek(fd, names.items[i].name, &id), 0);
        n += id.uid == uid;
    }
    close(fd);
    trace_names_done(&names);
    return n;
}

static void many_short_sessions_leave_the_traces_of_others(void **state)
{
    const RetentionQuota *quota = &RETENTION_QUOTAS_DEFAULT[RETENTION_TRACE];

    store(STAGE_BOOT, UID_INVALID, 0);
    store(STAGE_SESSION, 1000, 1);
    for (unsigned i = 2; i < 2 * quota->count; i++)
        store(STAGE_SESSION, 1001, i);
    assert_int_equal(count(UID_INVALID), 1);
    assert_int_equal(count(1000), 1);
    assert_int_equal(count(1001), quota->count - 1);
}

/* Returns true if the trace with that number is there. */
static bool is_there(Stage stage, unsigned number)
{
    TraceNames names = {0};
    bool found = false;
    int fd;

    assert_int_equal(state_list_traces(root.fd, &names), 0);
    fd = openat(root.fd, "traces", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t i = 0; i < names.n; i++) {
        TraceIdentity id;

        assert_int_equal(trace_peek(fd, names.items[i].name, &id), 0);
        found = found || (id.stage == stage && id.start_realtime == BEGIN + number * USEC_PER_SEC);
    }
    close(fd);
    trace_names_done(&names);
    return found;
}

/* A session that has read ahead can have a control start, which `headstart plot launch
 * --compare=control` draws. A login with both flags was partly replayed. */
static void the_last_session_with_a_control_start_stays(void **state)
{
    const unsigned n = (unsigned)RETENTION_QUOTAS_DEFAULT[RETENTION_TRACE].count;

    for (unsigned i = 1; i <= 2 * n; i++) {
        unsigned flags = TRACE_REPLAYED | (i == 2 || i == 3 ? TRACE_CONTROL : 0);

        store_flagged(STAGE_SESSION, 1002, 1000 + i, flags);
        store_flagged(STAGE_LOGIN, 1002, 1000 + i, flags);
    }
    assert_true(is_there(STAGE_SESSION, 1003));
    assert_false(is_there(STAGE_SESSION, 1002));
    assert_false(is_there(STAGE_LOGIN, 1003));
    assert_true(is_there(STAGE_SESSION, 1000 + 2 * n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(many_short_sessions_leave_the_traces_of_others),
            cmocka_unit_test(the_last_session_with_a_control_start_stays),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
