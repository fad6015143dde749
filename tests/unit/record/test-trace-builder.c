/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests how long the end of a stage may take: the shares of the users in that time, and a request
 * to stop. Tests volumes that users have attached. Clock, fanotify and the search in the page cache
 * of a block device are fakes: the linker wraps the functions. */

#include "record/trace-builder.h"

#include "base/clock.h"
#include "record/stage-metadata.h"
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

int __wrap_volume_snapshots_added(const VolumeSnapshots *s, const Volume *v, RangeSet *ret);

int __wrap_volume_snapshots_added(const VolumeSnapshots *s, const Volume *v, RangeSet *ret)
{
    return volume_is_ext(v) ? range_set_insert(ret, 0, 4096) : -EOPNOTSUPP;
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

static Volume volume_on(uint64_t dev)
{
    static char empty[] = "", slash[] = "/", fstype[] = "xfs";

    return (Volume){
            .uuid = empty,
            .fstype = fstype,
            .target = slash,
            .mountpoint = slash,
            .subvolume = empty,
            .device = empty,
            .disk = empty,
            .scheduler = empty,
            .with_root = true,
            .st_dev = dev,
            .mount_dev = dev,
    };
}

static uint64_t dev_of_file(void)
{
    struct stat st;

    assert_int_equal(fstatat(root.fd, "file", &st, 0), 0);
    return st.st_dev;
}

/* Builds the trace of what the observer has recorded on these volumes. */
static Trace *build_trace_on(Observer *o, Volume *volumes, size_t n)
{
    TraceBuilder *b = NULL;
    Trace *t = NULL;

    o->volumes.table = (VolumeTable){.volumes = volumes, .n = n, .allocated = n};
    assert_int_equal(trace_builder_new(o, &b), 0);
    assert_int_equal(trace_builder_build(b, "/", NULL, &t), 0);
    trace_builder_free(b);
    return t;
}

static Trace *build_trace(Observer *o)
{
    Volume v = volume_on(dev_of_file());

    return build_trace_on(o, &v, 1);
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

#define MOUNTED (TRACE_VOLUMES_MAX + 10)

/* Builds the trace of root's opens while users have attached many volumes; volume `at` contains the
 * opened files. The last volume is the only one that users cannot attach. Returns the number of
 * opened files in the trace. */
static size_t build_on_many(size_t at)
{
    static StageRecord s;
    static Volume volumes[MOUNTED];
    Observer o = observer_of(&s);
    size_t n = 0;
    Trace *t;

    for (size_t i = 0; i < MOUNTED; i++) {
        volumes[i] = volume_on(i == at ? dev_of_file() : UINT64_MAX - i);
        volumes[i].removable = i < MOUNTED - 1;
    }
    log_opens(s.log, &s.shares, 0, 0, 2);
    t = build_trace_on(&o, volumes, MOUNTED);
    assert_int_equal(t->n_volumes, TRACE_VOLUMES_MAX);
    for (size_t i = 0; i < t->n_files; i++) {
        assert_int_equal(t->files[i].volume, MIN(at, TRACE_VOLUMES_MAX - 1));
        n += !t->files[i].looked_up;
    }
    trace_free(t);
    process_table_free(o.processes);
    stage_record_done(&s);
    return n;
}

static void volumes_beyond_the_limit_are_left_out(void **state)
{
    assert_int_equal(build_on_many(MOUNTED - 1), 2);
    assert_int_equal(build_on_many(0), 2);
    assert_int_equal(build_on_many(MOUNTED - 2), 0);
}

static void no_metadata_is_recorded_of_foreign_volumes(void **state)
{
    const VolumeSnapshots snapshots = {0};
    char ext4[] = "ext4";
    Volume v = volume_on(1);
    StageMetadata m = {0};

    v.fstype = ext4;
    v.removable = v.of_system = true;
    assert_int_equal(stage_metadata_observe(&m, &snapshots, &v), 0);
    assert_int_equal(m.source, METADATA_SOURCE_CACHESTAT);
    assert_int_equal(m.ranges.n, 1);
    stage_metadata_done(&m);

    m = (StageMetadata){0};
    v.of_system = false;
    assert_int_equal(stage_metadata_observe(&m, &snapshots, &v), 0);
    assert_int_equal(stage_metadata_add(&m, &v, "/file", 12), 0);
    assert_null(m.deriver);
    assert_int_equal(stage_metadata_finish(&m, &v), 0);
    assert_int_equal(m.source, METADATA_SOURCE_NONE);
    assert_int_equal(m.ranges.n, 0);
    stage_metadata_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(each_user_has_a_share_of_the_time),
            cmocka_unit_test(a_request_to_stop_ends_it),
            cmocka_unit_test(a_user_has_nothing_of_other_people),
            cmocka_unit_test(volumes_beyond_the_limit_are_left_out),
            cmocka_unit_test(no_metadata_is_recorded_of_foreign_volumes),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
