/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests how long the end of a stage may take: the shares of the users in that time, and a request
 * to stop. Clock and fanotify are fakes: the linker wraps the functions. */

#include "record/trace-builder.h"

#include "base/clock.h"
#include "util/record-util.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILES 100 /* that each of two users has opened */

static TestRoot root;
static usec_t now;
static unsigned n_searched;

usec_t __wrap_clock_now(clockid_t clock);
int __wrap_fanotify_resolve(Fanotify *f, const LoggedObject *o, char *path, size_t size);
void __wrap_fanotify_resolve_done(Fanotify *f);
int __wrap_residency_read(int fd, uint64_t size, usec_t deadline, RangeSet *ret);

usec_t __wrap_clock_now(clockid_t clock)
{
    return now;
}

/* Every object is the same file, and each look-up takes a second. */
int __wrap_fanotify_resolve(Fanotify *f, const LoggedObject *o, char *path, size_t size)
{
    now += USEC_PER_SEC;
    snprintf(path, size, "%s", o->name);
    return openat(root.fd, "file", O_PATH | O_CLOEXEC);
}

void __wrap_fanotify_resolve_done(Fanotify *f)
{
}

/* The search in one file may take at most 20 ms, however large the file is. */
int __wrap_residency_read(int fd, uint64_t size, usec_t deadline, RangeSet *ret)
{
    assert_true(deadline > now && deadline <= now + 20 * USEC_PER_MSEC);
    n_searched++;
    return 1;
}

static int set_up(void **state)
{
    if (test_root_make(&root) < 0)
        return -1;
    test_root_put(&root, "file", "x");
    return 0;
}

static int tear_down(void **state)
{
    return test_root_remove(&root);
}

/* Builds the trace of what the observer has recorded. */
static Trace *build_trace(Observer *o)
{
    char empty[] = "", slash[] = "/", fstype[] = "xfs";
    struct stat st;
    Volume v = {
            .uuid = empty,
            .fstype = fstype,
            .target = slash,
            .mountpoint = slash,
            .subvolume = empty,
            .device = empty,
            .disk = empty,
            .scheduler = empty,
            .with_root = true,
    };
    TraceBuilder *b = NULL;
    Trace *t = NULL;

    assert_int_equal(fstatat(root.fd, "file", &st, 0), 0);
    v.st_dev = v.mount_dev = st.st_dev;
    o->volumes.table = (VolumeTable){&v, 1, 1};
    assert_int_equal(trace_builder_new(o, &b), 0);
    assert_int_equal(trace_builder_build(b, "/", NULL, &t), 0);
    trace_builder_free(b);
    return t;
}

static Observer observer_of(StageRecord *s)
{
    Observer o = {.stage = s, .connector_fd = -EBADF, .processes = process_table_new()};

    assert_non_null(o.processes);
    assert_int_equal(stage_record_init(s), 0);
    s->residency_known = true;
    return o;
}

/* Builds the trace of a stage in which root and user 1000 opened files. Returns the number of
 * opened files in the trace. */
static size_t build(StageRecord *s)
{
    Observer o = observer_of(s);
    Trace *t;
    size_t n = 0;

    log_opens(s->log, &s->shares, 0, 0, FILES);
    log_opens(s->log, &s->shares, 1000, FILES, FILES);
    t = build_trace(&o);
    for (size_t i = 0; i < t->n_files; i++)
        n += !t->files[i].looked_up;
    trace_free(t);
    process_table_free(o.processes);
    stage_record_done(s);
    return n;
}

static void each_user_has_a_share_of_the_time(void **state)
{
    static StageRecord s;
    unsigned user = STAGE_END_USEC / 4 / USEC_PER_SEC, all = STAGE_END_USEC / 4 * 3 / USEC_PER_SEC;
    size_t n = build(&s);

    assert_int_equal(s.shares.users[user_shares_row(&s.shares, 1000)].n_files_left_out,
                     FILES - user);
    assert_int_equal(s.shares.users[user_shares_row(&s.shares, 0)].n_files_left_out, FILES - all);
    assert_int_equal(n, user + all);
    assert_int_equal(n_searched, n);
    /* The search in each file was cut short. */
    assert_int_equal(s.shares.users[user_shares_row(&s.shares, 1000)].n_files_cut, user);
}

static void a_request_to_stop_ends_it(void **state)
{
    static StageRecord s;
    usec_t begun = now;
    sigset_t stop;
    int sig;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    raise(SIGTERM);
    assert_int_equal(build(&s), 0);
    assert_int_equal(sigwait(&stop, &sig), 0);
    assert_true(now == begun);
    assert_int_equal(s.shares.users[user_shares_row(&s.shares, 0)].n_files_left_out, FILES);
}

/* In the session of user 1000, root opens files 0 and 1, the user 1 to 3, and user 1001 opens 3
 * to 5. Both users run file 3. */
static void a_user_has_nothing_of_other_people(void **state)
{
    static StageRecord s;
    Observer o = observer_of(&s);
    Trace *t;

    s.stage = STAGE_SESSION;
    s.uid = 1000;
    log_opens(s.log, &s.shares, 0, 0, 2);
    log_opens(s.log, &s.shares, 1000, 1, 3);
    log_opens(s.log, &s.shares, 1001, 3, 3);
    assert_int_equal(process_table_add(o.processes, 10, 3, 1000, 0, false), 0);
    assert_int_equal(process_table_add(o.processes, 11, 3, 1001, 0, false), 0);
    t = build_trace(&o);
    assert_int_equal(t->n_files, 4);
    assert_int_equal(t->n_accesses, 5);
    assert_int_equal(t->n_applications, 1);
    assert_int_equal(t->n_lifetimes, 1);
    assert_int_equal(t->lifetimes[0].uid, 1000);
    trace_free(t);
    process_table_free(o.processes);
    stage_record_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(each_user_has_a_share_of_the_time),
            cmocka_unit_test(a_request_to_stop_ends_it),
            cmocka_unit_test(a_user_has_nothing_of_other_people),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
