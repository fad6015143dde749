/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests which starts and exits of applications are reported: record/following.h. */

#include "record/following.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* needs the four headers above */
#include <cmocka.h>

typedef struct World {
    ProcessTable *table;
    Following *following;
    char reported[1024]; /* "+a@5 -a@9 " */
    usec_t now;
} World;

/* Object n is named by the letter n; 25 has no name. */
static char *name(void *arg, uint32_t object)
{
    char text[2] = {(char)('a' + object), 0};

    return object == 25 ? NULL : strdup(text);
}

static void report(void *arg, const char *what, const ProcessRun *run, bool started)
{
    World *w = arg;
    size_t l = strlen(w->reported);

    snprintf(w->reported + l, sizeof(w->reported) - l, "%c%s@%u ", started ? '+' : '-', what,
             (unsigned)(started ? run->start : run->end));
}

static int set_up(void **state)
{
    World *w = calloc(1, sizeof(*w));

    w->table = process_table_new();
    w->following = following_new();
    *state = w;
    if (!w->table || !w->following)
        return -1;
    return following_update(w->following, NULL, 0, 0, name, report, w); /* nothing runs yet */
}

static int tear_down(void **state)
{
    World *w = *state;

    process_table_free(w->table);
    following_free(w->following);
    free(w);
    return 0;
}

/* Runs n batches without further events. */
static void batches(World *w, unsigned n)
{
    while (n-- > 0) {
        const ProcessRun *runs;
        size_t n_runs;

        process_table_settle(w->table, NULL, NULL);
        runs = process_table_runs(w->table, &n_runs);
        assert_int_equal(following_update(w->following, runs, n_runs, w->now, name, report, w), 0);
    }
}

/* Lets the process execute the object. The execve is reported, and its program is named. */
static void execute(World *w, uint32_t pid, uint32_t what, usec_t at)
{
    uint32_t run;

    assert_int_equal(process_table_exec(w->table, pid, at), 0);
    assert_int_equal(process_table_open(w->table, pid, what, OPEN_EXEC | OPEN_REPORTED, at, &run),
                     0);
    assert_int_equal(process_table_open(w->table, pid, 20, OPEN_EXEC | OPEN_LOADER | OPEN_REPORTED,
                                        at, &run),
                     0);
}

static void test_start_and_exit(void **state)
{
    World *w = *state;

    execute(w, 10, 0, 5);
    assert_false(following_waits(w->following));
    batches(w, 1);
    assert_true(following_waits(w->following));
    batches(w, FOLLOWING_BATCHES);
    assert_false(following_waits(w->following));
    assert_string_equal(w->reported, "+a@5 ");
    process_table_exit(w->table, 10, 9);
    batches(w, 3);
    assert_string_equal(w->reported, "+a@5 -a@9 ");
}

/* A run that ends before it can be reported is reported as a start and an exit, in order. */
static void test_within_one_batch(void **state)
{
    World *w = *state;

    execute(w, 10, 0, 5);
    process_table_exit(w->table, 10, 6);
    execute(w, 11, 1, 7);
    batches(w, 5);
    assert_string_equal(w->reported, "+a@5 -a@6 +b@7 ");
}

/* The pid is used again before the exit of its first process was settled. */
static void test_duplicate_pid(void **state)
{
    World *w = *state;

    execute(w, 10, 0, 5);
    process_table_exit(w->table, 10, 6);
    assert_int_equal(process_table_fork(w->table, 1, 10), 0);
    execute(w, 10, 1, 8);
    batches(w, 5);
    assert_string_equal(w->reported, "+a@5 -a@6 +b@8 ");
}

/* A process and its children are one run; executing something else ends one run and begins
 * another. */
static void test_family(void **state)
{
    World *w = *state;

    execute(w, 10, 0, 5);
    batches(w, 5);
    assert_int_equal(process_table_fork(w->table, 10, 11), 0);
    process_table_exit(w->table, 10, 9);
    batches(w, 5);
    assert_string_equal(w->reported, "+a@5 ");
    execute(w, 11, 2, 20);
    batches(w, 5);
    assert_string_equal(w->reported, "+a@5 -a@20 +c@20 ");
}

static void test_not_followed(void **state)
{
    World *w = *state;

    execute(w, 10, 25, 5);                                               /* without a name */
    assert_int_equal(process_table_add(w->table, 11, 0, 0, 0, true), 0); /* headstart's own */
    assert_int_equal(process_table_add(w->table, 12, PROCESS_NONE, 0, 0, false), 0);
    assert_int_equal(process_table_add(w->table, 13, 3, 0, 0, false), 0);
    batches(w, 5);
    assert_string_equal(w->reported, "+d@0 ");
}

static uint32_t same(uint32_t object, void *arg)
{
    return object;
}

/* A new stage does not report continuing runs again. If the new stage drops a run that has ended,
 * the exit of this run is reported with the present time. */
static void test_new_stage(void **state)
{
    World *w = *state;

    execute(w, 10, 0, 5);
    execute(w, 11, 1, 6);
    batches(w, 5);
    process_table_exit(w->table, 10, 7);
    process_table_settle(w->table, NULL, NULL);
    process_table_settle(w->table, NULL, NULL);
    assert_int_equal(process_table_new_stage(w->table, same, NULL), 0);
    w->now = 9;
    execute(w, 12, 2, 8);
    batches(w, 5);
    assert_string_equal(w->reported, "+a@5 +b@6 -a@9 +c@8 ");
    process_table_exit(w->table, 11, 12);
    batches(w, 3);
    assert_string_equal(w->reported, "+a@5 +b@6 -a@9 +c@8 -b@12 ");
}

/* Begins to follow anew, as the session cycle does when it has read other chains. */
static void renew(World *w)
{
    following_free(w->following);
    w->following = following_new();
    assert_non_null(w->following);
    w->reported[0] = 0;
}

/* Runs that have ended are not reported again when the runs are followed anew. */
static void test_followed_anew(void **state)
{
    World *w = *state;

    execute(w, 10, 0, 5);
    execute(w, 11, 1, 6);
    process_table_exit(w->table, 10, 7);
    batches(w, 5);
    assert_string_equal(w->reported, "+a@5 -a@7 +b@6 ");
    renew(w);
    batches(w, 3);
    assert_string_equal(w->reported, "+b@6 ");
    assert_false(following_waits(w->following));
    process_table_exit(w->table, 11, 9);
    batches(w, 3);
    renew(w);
    batches(w, 3);
    assert_string_equal(w->reported, "");
}

/* A process_name_t: the program is on a filesystem that is not watched. */
static bool unwatched(void *arg, uint32_t pid, uint32_t *ret_object, bool *ret_own)
{
    (void)arg;
    (void)pid;
    (void)ret_own;
    *ret_object = 2;
    return false;
}

/* The connector has reported an execve that is not settled: its run has no process yet. */
static void test_unsettled_when_followed_anew(void **state)
{
    World *w = *state;

    assert_int_equal(process_table_exec(w->table, 10, 5), 0);
    renew(w);
    for (unsigned i = 0; i < 5; i++) {
        const ProcessRun *runs;
        size_t n;

        process_table_settle(w->table, unwatched, NULL);
        runs = process_table_runs(w->table, &n);
        assert_int_equal(following_update(w->following, runs, n, w->now, name, report, w), 0);
    }
    assert_string_equal(w->reported, "+c@5 ");
}

static void count(void *arg, const char *what, const ProcessRun *run, bool started)
{
    unsigned *n = arg;

    assert_true(started ? run->start > 0 : run->end > run->start);
    n[started]++;
}

/* Compacts the table, as the recorder does when a stage is over. */
static void compact(World *w)
{
    assert_int_equal(
            process_table_compact(w->table, following_first_waiting(w->following), same, NULL), 0);
}

/* A run that is not to be reported is waited for no longer, whatever the reason, so that it can be
 * forgotten, and the recorder reads its queue seldom again. */
static void test_nothing_is_followed_for_ever(void **state)
{
    World *w = *state;
    uint32_t run;
    size_t n;

    execute(w, 10, 25, 5);                                    /* without a name */
    assert_int_equal(process_table_exec(w->table, 11, 6), 0); /* no program is ever named */
    assert_int_equal(
            process_table_open(w->table, 12, 3, OPEN_EXEC | OPEN_REPORTED | OPEN_OWN, 6, &run),
            0); /* headstart's own */
    assert_int_equal(process_table_open(w->table, 13, 4, OPEN_EXEC | OPEN_REPORTED, 6, &run), 0);
    assert_int_equal(process_table_open(w->table, 13, 5, 0, 6, &run), 0); /* a failed execve */
    batches(w, 1);
    assert_true(following_waits(w->following));
    assert_int_equal(following_first_waiting(w->following), 0);
    for (uint32_t pid = 10; pid < 14; pid++)
        process_table_exit(w->table, pid, 8);
    batches(w, FOLLOWING_BATCHES + 2);
    assert_false(following_waits(w->following));
    assert_string_equal(w->reported, "");
    compact(w);
    process_table_runs(w->table, &n);
    assert_int_equal(n, 0);
    /* The table forgets a run before it is reported. */
    execute(w, 20, 0, 10);
    process_table_exit(w->table, 20, 11);
    batches(w, 1);
    assert_true(following_waits(w->following));
    process_table_settle(w->table, NULL, NULL);
    process_table_settle(w->table, NULL, NULL);
    assert_int_equal(process_table_new_stage(w->table, same, NULL), 0);
    batches(w, 1);
    assert_false(following_waits(w->following));
    compact(w);
    process_table_runs(w->table, &n);
    assert_int_equal(n, 0);
}

/* What test_for_ever() does in turn. */
static const struct {
    uint32_t object;
    unsigned flags;
    bool reported;
} kinds[] = {
        {0, OPEN_EXEC | OPEN_REPORTED, true},
        {25, OPEN_EXEC | OPEN_REPORTED, false},           /* without a name */
        {3, OPEN_EXEC | OPEN_REPORTED | OPEN_OWN, false}, /* headstart's own */
        {1, OPEN_EXEC | OPEN_REPORTED, true},
};

/* More runs than the table holds, of many users: ended runs are forgotten, and every run that is to
 * be reported is. A process that has exited is forgotten, too. */
static void test_for_ever(void **state)
{
    World *w = *state;
    const unsigned n = 2 * PROCESS_RUNS_MAX;
    unsigned counts[2] = {0}, expected = 0;
    const ProcessRun *runs;
    size_t n_runs;

    for (unsigned i = 0; i < n; i++) {
        uint32_t pid = 10 + i, run;

        w->now = i + 1;
        assert_int_equal(process_table_uid(w->table, pid, 1000 + i % 7), 0);
        assert_int_equal(process_table_exec(w->table, pid, w->now), 0);
        assert_int_equal(process_table_open(w->table, pid, kinds[i % ELEMENTSOF(kinds)].object,
                                            kinds[i % ELEMENTSOF(kinds)].flags, w->now, &run),
                         0);
        assert_true(run != PROCESS_NONE);
        expected += kinds[i % ELEMENTSOF(kinds)].reported;
        process_table_exit(w->table, pid, w->now + 1);
        if (i % 100 > 0 && i < n - 1)
            continue;
        for (int batch = 0; batch < (i < n - 1 ? 1 : 6); batch++) {
            process_table_settle(w->table, NULL, NULL);
            runs = process_table_runs(w->table, &n_runs);
            assert_int_equal(
                    following_update(w->following, runs, n_runs, w->now + 2, name, count, counts),
                    0);
        }
        if (n_runs > 5000)
            compact(w);
        process_table_runs(w->table, &n_runs);
        assert_true(n_runs < 6000);
        if (i >= 300)
            assert_int_equal(process_table_uid_of(w->table, pid - 300), UID_INVALID);
    }
    assert_int_equal(counts[true], expected);
    assert_int_equal(counts[false], expected);
    assert_false(following_waits(w->following));
    compact(w);
    process_table_runs(w->table, &n_runs);
    assert_int_equal(n_runs, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
            TEST(test_start_and_exit),
            TEST(test_within_one_batch),
            TEST(test_duplicate_pid),
            TEST(test_family),
            TEST(test_not_followed),
            TEST(test_new_stage),
            TEST(test_followed_anew),
            TEST(test_unsettled_when_followed_anew),
            TEST(test_nothing_is_followed_for_ever),
            TEST(test_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
