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

static void store(Stage stage, uint32_t uid, unsigned number)
{
    Trace *t = trace_new(stage);
    char *path;

    assert_non_null(t);
    t->uid = uid;
    t->start_realtime = BEGIN + number * USEC_PER_SEC;
    assert_int_equal(trace_store(root.path, t, &path), 0);
    trace_free(t);
    free(path);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(many_short_sessions_leave_the_traces_of_others),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
