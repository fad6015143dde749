/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "trace/trace.h"

#include "util/range-util.h"
#include "util/synthetic.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* needs the four headers above */
#include <cmocka.h>

static uint32_t path_of(Trace *t, const char *path)
{
    uint32_t id = TRACE_NONE;

    assert_int_equal(trace_add_path(t, path, &id), 0);
    return id;
}

static void paths_are_interned(void **state)
{
    static const char *const paths[] = {"/",        "/usr",     "/usr/lib", "/usr/lib/a", "/lib",
                                        "/lib/usr", "/usr/usr", "/a b/ä\n", "/\xff\x80",  "/..."};
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    uint32_t ids[ELEMENTSOF(paths)];
    char buf[TRACE_PATH_MAX];

    for (size_t i = 0; i < ELEMENTSOF(paths); i++)
        ids[i] = path_of(t, paths[i]);
    assert_int_equal(ids[0], 0);
    for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
        size_t n = t->n_paths;

        assert_int_equal(path_of(t, paths[i]), ids[i]);
        assert_int_equal(t->n_paths, n);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(ids[i], ids[k]);
        assert_int_equal(trace_format_path(t, ids[i], buf, sizeof(buf)), 0);
        assert_string_equal(buf, paths[i]);
    }
    assert_int_equal(trace_validate(t), 0);
    assert_int_equal(trace_format_path(t, (uint32_t)t->n_paths, buf, sizeof(buf)), -EINVAL);
}

static void bad_paths_are_refused(void **state)
{
    static const char *const bad[] = {"",   "usr", "./usr",  "//",      "/usr/",  "/usr//lib",
                                      "/.", "/..", "/usr/.", "/usr/..", "/./usr", "/../usr"};
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    char name[300] = "/", path[2 * TRACE_PATH_MAX] = "";
    uint32_t id = 77;

    for (size_t i = 0; i < ELEMENTSOF(bad); i++)
        assert_int_equal(trace_add_path(t, bad[i], &id), -EINVAL);

    memset(name + 1, 'x', 256);
    assert_int_equal(trace_add_path(t, name, &id), -EINVAL);
    name[256] = 0; /* 255 bytes: the longest possible name */
    assert_int_equal(trace_add_path(t, name, &id), 0);

    id = 77;
    while (strlen(path) + 2 < TRACE_PATH_MAX)
        strcat(path, "/y");
    strcat(path, "y");
    assert_int_equal(strlen(path), TRACE_PATH_MAX - 1);
    assert_int_equal(trace_add_path(t, path, &id), 0);
    assert_int_equal(trace_validate(t), 0);
    strcat(path, "y");
    id = 77;
    assert_int_equal(trace_add_path(t, path, &id), -EINVAL);
    assert_int_equal(id, 77);
}

static void formatting_fits_or_says_so(void **state)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    const char *path = "/usr/lib/xyz";
    uint32_t id = path_of(t, path);

    for (size_t size = 0; size < 20; size++) {
        _cleanup_free_ char *buf = malloc(size + 1); /* ASan detects overruns */
        int r = trace_format_path(t, id, buf, size);

        if (size <= strlen(path))
            assert_int_equal(r, -ENAMETOOLONG);
        else {
            assert_int_equal(r, 0);
            assert_string_equal(buf, path);
        }
        assert_int_equal(trace_format_path(t, 0, buf, size), size < 2 ? -ENAMETOOLONG : 0);
    }
}

static void the_first_of_a_file_is_found_again(void **state)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_LOGIN);
    TraceVolume v = {.uuid = (char *)"u", .device_class = DEVICE_CLASS_SSD, .size_bytes = 5};
    uint32_t volume, a, b, again, application;

    assert_int_equal(trace_add_volume(t, &v, &volume), 0);
    assert_string_equal(t->volumes[volume].fstype, "");
    assert_string_equal(t->volumes[volume].mountpoint, "/");
    assert_int_equal(trace_add_file(t, path_of(t, "/usr/bin/a"), volume, false, &a), 0);
    assert_int_equal(trace_add_file(t, path_of(t, "/usr/bin"), volume, true, &b), 0);
    assert_int_not_equal(a, b);
    t->files[a].inode = 12;
    assert_int_equal(trace_add_file(t, path_of(t, "/usr/bin/a"), TRACE_NONE, true, &again), 0);
    assert_int_equal(again, a);
    assert_int_equal(t->n_files, 2);
    assert_int_equal(t->files[a].inode, 12);
    assert_false(t->files[a].directory);

    assert_int_equal(trace_add_application(t, b, &application), 0);
    assert_int_equal(trace_add_application(t, a, &application), 0);
    assert_int_equal(application, 1);
    assert_int_equal(trace_add_application(t, b, &application), 0);
    assert_int_equal(application, 0);
    assert_int_equal(t->n_applications, 2);

    assert_int_equal(trace_add_file(t, (uint32_t)t->n_paths, volume, false, &a), -EINVAL);
    assert_int_equal(trace_add_file(t, 0, 1, false, &a), -EINVAL);
    assert_int_equal(trace_add_application(t, 2, &a), -EINVAL);
    assert_int_equal(trace_validate(t), 0);
}

static void accesses_come_in_order(void **state)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_LOGIN);
    TraceAccess a = {.at = 5, .application = TRACE_NONE, .kind = ACCESS_OPEN}, bad;
    TraceLifetime l = {.start = 3, .end = USEC_INFINITY}, wrong;
    uint32_t file, application;

    assert_int_equal(trace_add_access(t, &a), -EINVAL); /* no file has that number */
    assert_int_equal(trace_add_lifetime(t, &l), -EINVAL);
    assert_int_equal(trace_add_file(t, path_of(t, "/a"), TRACE_NONE, false, &file), 0);
    assert_int_equal(trace_add_application(t, file, &application), 0);
    assert_int_equal(trace_add_access(t, &a), 0);
    assert_int_equal(trace_add_access(t, &a), 0);

    bad = a;
    bad.at = 4;
    assert_int_equal(trace_add_access(t, &bad), -EINVAL);
    bad.at = TRACE_NUMBER_MAX + 1;
    assert_int_equal(trace_add_access(t, &bad), -EINVAL);
    bad = a;
    bad.kind = _ACCESS_KIND_MAX;
    assert_int_equal(trace_add_access(t, &bad), -EINVAL);
    bad = a;
    bad.application = 1;
    assert_int_equal(trace_add_access(t, &bad), -EINVAL);
    assert_int_equal(t->n_accesses, 2);

    assert_int_equal(trace_add_lifetime(t, &l), 0);
    l.end = l.start;
    assert_int_equal(trace_add_lifetime(t, &l), 0);
    wrong = l;
    wrong.end = 2;
    assert_int_equal(trace_add_lifetime(t, &wrong), -EINVAL);
    wrong.end = TRACE_NUMBER_MAX + 1;
    assert_int_equal(trace_add_lifetime(t, &wrong), -EINVAL);
    assert_int_equal(t->n_lifetimes, 2);
    assert_int_equal(trace_validate(t), 0);
}

static void volumes_are_limited(void **state)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    TraceVolume v = {.uuid = (char *)"u"};
    uint32_t id;

    for (unsigned i = 0; i < TRACE_VOLUMES_MAX; i++)
        assert_int_equal(trace_add_volume(t, &v, &id), 0);
    assert_int_equal(trace_add_volume(t, &v, &id), -E2BIG);
    assert_int_equal(trace_validate(t), 0);
}

/* Files below a path of 3,765 bytes: the tree is small, but the paths together are not. */
static void path_bytes_are_limited(void **state)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    char path[TRACE_PATH_MAX] = "";
    size_t length = 0, n = 0;
    uint64_t bytes = 0;
    uint32_t id, file;
    int r = 0;

    while (length + 251 < 4000)
        length += (size_t)snprintf(path + length, sizeof(path) - length, "/%0250d", 0);
    for (; r >= 0; n++) {
        snprintf(path + length, sizeof(path) - length, "/%zu", n);
        assert_int_equal(trace_add_path(t, path, &id), 0);
        assert_int_equal(trace_path_bytes(t, id), strlen(path) + 1);
        r = trace_add_file(t, id, TRACE_NONE, false, &file);
        bytes += strlen(path) + 1;
    }
    assert_int_equal(r, -E2BIG);
    assert_true(bytes > TRACE_PATH_BYTES_MAX && bytes - strlen(path) - 1 <= TRACE_PATH_BYTES_MAX);
    assert_int_equal(t->n_files, n - 1);
    assert_int_equal(trace_validate(t), 0);
    /* One file more than the builder accepts, as in a hostile file. */
    assert_int_equal(grow_array(&t->files, &t->allocated_files, t->n_files + 1, sizeof(TraceFile)),
                     0);
    t->files[t->n_files++] = (TraceFile){.path = id, .volume = TRACE_NONE};
    assert_int_equal(trace_validate(t), -EBADMSG);
}

static void ranges_are_limited(void **state)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    const unsigned n_files = 8;
    uint32_t id, file;

    for (unsigned i = 0; i < n_files; i++) {
        char path[16];

        snprintf(path, sizeof(path), "/%u", i);
        assert_int_equal(trace_add_path(t, path, &id), 0);
        assert_int_equal(trace_add_file(t, id, TRACE_NONE, false, &file), 0);
        for (uint64_t k = 0; k < TRACE_RANGES_MAX / n_files; k++)
            assert_int_equal(range_set_insert_span(&t->files[file].resident, 2 * k, 2 * k + 1), 0);
    }
    assert_int_equal(trace_validate(t), 0);
    assert_int_equal(
            range_set_insert_span(&t->files[file].resident, TRACE_RANGES_MAX, TRACE_NUMBER_MAX), 0);
    assert_int_equal(trace_validate(t), -EBADMSG);
}

/* Gives the member a wrong value. Validation must refuse the trace, and accept it after the value
 * is restored. */
#define BREAK(t, member, wrong)                        \
    do {                                               \
        __typeof__((t)->member) _kept = (t)->member;   \
        (t)->member = (wrong);                         \
        assert_int_equal(trace_validate(t), -EBADMSG); \
        (t)->member = _kept;                           \
        assert_int_equal(trace_validate(t), 0);        \
    } while (0)

static void what_was_left_out_is_described(void **state)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    char *text;

    assert_null(trace_describe_left_out(t));
    assert_int_equal(trace_add_left_out(t, &(TraceLeftOut){1000, 1, 2, 3}), 0);
    assert_int_equal(trace_add_left_out(t, &(TraceLeftOut){1000, 1, 2, 3}), -EINVAL);
    assert_int_equal(trace_add_left_out(t, &(TraceLeftOut){TRACE_NONE, 0, 7, 0}), 0);
    assert_int_equal(trace_add_left_out(t, &(TraceLeftOut){1001, 1, 2, 3}), -EINVAL);
    text = trace_describe_left_out(t);
    assert_string_equal(text, "UID 1000: 1 opens, 2 files, incomplete page ranges in 3 files; "
                              "UID unknown: 0 opens, 7 files, incomplete page ranges in 0 files");
    free(text);
    assert_int_equal(trace_validate(t), 0);
    t->left_out[0].uid = TRACE_NONE;
    assert_int_equal(trace_validate(t), -EBADMSG);
    t->left_out[0].uid = 0;
    BREAK(t, left_out[1].n_files, TRACE_NUMBER_MAX + 1);
    t->n_left_out = 0;
    /* The longest possible line. */
    for (uint32_t uid = 4000000000; uid < 4000000000 + TRACE_LEFT_OUT_MAX; uid++)
        assert_int_equal(trace_add_left_out(t, &(TraceLeftOut){uid, TRACE_NUMBER_MAX,
                                                               TRACE_NUMBER_MAX, TRACE_NUMBER_MAX}),
                         0);
    assert_int_equal(trace_add_left_out(t, &(TraceLeftOut){4200000000, 1, 1, 1}), -E2BIG);
    text = trace_describe_left_out(t);
    assert_non_null(strstr(text, "page ranges in 9223372036854775807 files; 4092 more users"));
    free(text);
}

static void every_wrong_member_is_seen(void **state)
{
    SyntheticParameters p = synthetic_login(0);
    _cleanup_trace_ Trace *t = NULL;
    size_t ranges = 0, directory = 0;

    p.n_files = 40;
    p.n_applications = 4;
    p.n_accesses = 80;
    p.own_files = 2;
    assert_int_equal(synthetic_trace(&p, &t), 0);
    while (t->files[ranges].resident.n == 0)
        ranges++;
    while (!t->files[directory].directory)
        directory++;

    BREAK(t, stage, _STAGE_MAX);
    BREAK(t, stage, (Stage)-1);
    BREAK(t, policy, _POLICY_MAX);
    BREAK(t, process_source, _PROCESS_SOURCE_MAX);
    BREAK(t, boot_id, NULL);
    BREAK(t, duration, TRACE_NUMBER_MAX + 1);
    BREAK(t, start_realtime, TRACE_NUMBER_MAX + 1);
    BREAK(t, start_boottime, TRACE_NUMBER_MAX + 1);
    BREAK(t, n_own, TRACE_NUMBER_MAX + 1);
    BREAK(t, n_overflows, TRACE_NUMBER_MAX + 1);
    BREAK(t, n_paths, 0);
    BREAK(t, paths[0].parent, 1);
    BREAK(t, paths[0].name, (char *)"x");
    BREAK(t, paths[1].parent, 1);
    BREAK(t, paths[1].name, (char *)"");
    BREAK(t, paths[1].name, (char *)".");
    BREAK(t, paths[1].name, (char *)"..");
    BREAK(t, paths[1].name, (char *)"a/b");
    BREAK(t, paths[1].name, NULL);
    BREAK(t, volumes[0].uuid, NULL);
    BREAK(t, volumes[0].size_bytes, TRACE_NUMBER_MAX + 1);
    BREAK(t, volumes[0].metadata.ranges[t->volumes[0].metadata.n - 1].length, TRACE_NUMBER_MAX);
    BREAK(t, volumes[0].device_class, _DEVICE_CLASS_MAX);
    BREAK(t, volumes[0].metadata_source, _METADATA_SOURCE_MAX);
    BREAK(t, volumes[0].metadata.ranges[0].length, 0);
    BREAK(t, files[3].path, (uint32_t)t->n_paths);
    BREAK(t, files[3].volume, 1);
    BREAK(t, files[3].size_bytes, UINT64_MAX);
    BREAK(t, files[ranges].resident.ranges[0].length, 0);
    BREAK(t, files[ranges].directory, true);
    BREAK(t, files[directory].resident, t->files[ranges].resident);
    BREAK(t, applications[1].file, (uint32_t)t->n_files);
    BREAK(t, lifetimes[0].application, (uint32_t)t->n_applications);
    BREAK(t, lifetimes[1].start, t->lifetimes[1].end);
    BREAK(t, lifetimes[0].end, TRACE_NUMBER_MAX + 1);
    BREAK(t, accesses[2].file, (uint32_t)t->n_files);
    BREAK(t, accesses[2].application, (uint32_t)t->n_applications);
    BREAK(t, accesses[2].kind, _ACCESS_KIND_MAX);
    BREAK(t, accesses[0].at, TRACE_NUMBER_MAX);
    BREAK(t, accesses[t->n_accesses - 1].at, TRACE_NUMBER_MAX + 1);
}

static void paths_longer_than_allowed_are_seen(void **state)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    char path[TRACE_PATH_MAX] = "";

    while (strlen(path) + 2 < TRACE_PATH_MAX)
        strcat(path, "/y");
    path_of(t, path);
    assert_int_equal(trace_validate(t), 0);
    free(t->paths[1].name);
    t->paths[1].name = strdup("yyyy");
    assert_int_equal(trace_validate(t), -EBADMSG);
}

static void words_both_ways(void **state)
{
    for (int i = 0; i < _METADATA_SOURCE_MAX; i++)
        assert_int_equal(metadata_source_from_string(metadata_source_to_string((MetadataSource)i)),
                         i);
    for (int i = 0; i < _PROCESS_SOURCE_MAX; i++)
        assert_int_equal(process_source_from_string(process_source_to_string((ProcessSource)i)), i);
    assert_null(metadata_source_to_string(_METADATA_SOURCE_MAX));
    assert_null(process_source_to_string((ProcessSource)-1));
    assert_int_equal(metadata_source_from_string("x"), -EINVAL);
    assert_int_equal(process_source_from_string(NULL), -EINVAL);
}

static void synthetic_traces_are_valid_and_repeat(void **state)
{
    for (uint64_t session = 0; session < 4; session++) {
        SyntheticParameters p = synthetic_login(session);
        _cleanup_trace_ Trace *a = NULL, *b = NULL;

        p.n_files = 500;
        p.n_applications = 20;
        p.n_accesses = 1500;
        assert_int_equal(synthetic_trace(&p, &a), 0);
        assert_int_equal(synthetic_trace(&p, &b), 0);
        assert_int_equal(trace_validate(a), 0);
        assert_int_equal(a->n_accesses, b->n_accesses);
        assert_memory_equal(a->accesses, b->accesses, a->n_accesses * sizeof(TraceAccess));
        assert_true(a->n_accesses > 1400);
    }
}

/* Only a filesystem check of at least ten seconds counts. A check that still runs at the end of
 * the stage, here after 30 s, counts as running until then. */
static void checks_are_found(void **state)
{
    static const struct {
        const char *path;
        usec_t start, end;
        bool found;
    } rows[] = {
            {"/usr/sbin/e2fsck", 1, 10, false},
            {"/usr/sbin/e2fsck", 1, 12, true},
            {"/sbin/fsck.xfs", 0, 10, true},
            {"/usr/sbin/xfs_repair", 5, USEC_INFINITY, true},
            {"/usr/sbin/e2fsck", 25, USEC_INFINITY, false},
            {"/usr/bin/e2fscks", 0, 20, false},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
        TraceLifetime l = {.uid = 0, .start = rows[i].start * USEC_PER_SEC};
        uint32_t file;

        t->duration = 30 * USEC_PER_SEC;
        l.end = rows[i].end == USEC_INFINITY ? USEC_INFINITY : rows[i].end * USEC_PER_SEC;
        assert_int_equal(trace_add_file(t, path_of(t, rows[i].path), TRACE_NONE, false, &file), 0);
        assert_int_equal(trace_add_application(t, file, &l.application), 0);
        assert_int_equal(trace_add_lifetime(t, &l), 0);
        assert_int_equal(trace_has_fsck(t), rows[i].found);
    }
}

#define MSEC USEC_PER_MSEC

/* Returns a trace with these times, in ms. */
static Trace *timed(usec_t ready, usec_t busy, usec_t stalled, uint32_t n_cpus)
{
    Trace *t = trace_new(STAGE_BOOT);

    t->timing = (TraceTiming){ready * MSEC, stalled * MSEC, busy * MSEC, n_cpus};
    return t;
}

static usec_t waited(usec_t ready, usec_t busy, usec_t stalled, uint32_t n_cpus)
{
    _cleanup_trace_ Trace *t = timed(ready, busy, stalled, n_cpus);

    return trace_waited(t);
}

static void waits_by_hand(void **state)
{
    /* The CPU time is unknown. */
    assert_int_equal(waited(1000, 0, 500, 2), 500 * MSEC);
    /* One processor: the kernel's measure is too low only if it computes for others. */
    assert_int_equal(waited(1000, 100, 900, 1), 900 * MSEC);
    /* A task that changes between two processors counts half. */
    assert_int_equal(waited(1000, 100, 450, 2), 900 * MSEC);
    /* Computing at the same time does not shorten the wait. */
    assert_int_equal(waited(1000, 900, 450, 2), 450 * MSEC);
    assert_int_equal(waited(1000, 1500, 450, 2), 450 * MSEC);
    /* A boot that sleeps for a second: w^2 = 2 (w + 50) * 20, so w = 68.99. */
    assert_in_range(waited(1000, 50, 20, 2), 68980, 69000);
    assert_int_equal(waited(1000, 50, 0, 2), 0);
    /* No estimate is longer than the stage. */
    assert_int_equal(waited(1000, 1, 1000, 64), 1000 * MSEC);
    assert_int_equal(waited(1000, 0, 1001, 2), 1000 * MSEC);
}

/* A second of reading and a second of sleep: together they look like two seconds of reading. */
static void waits_are_estimated_between_samples(void **state)
{
    _cleanup_trace_ Trace *t = timed(2000, 100, 500, 2);

    assert_true(trace_waited(t) > 1000 * MSEC);
    assert_int_equal(trace_add_sample(t, &(TraceSample){1000 * MSEC, 100 * MSEC, 500 * MSEC}), 0);
    assert_int_equal(trace_waited(t), 900 * MSEC);
    /* Samples after the stage was ready do not count, nor does one that contradicts the sums. */
    assert_int_equal(trace_add_sample(t, &(TraceSample){3000 * MSEC, 200 * MSEC, 1000 * MSEC}), 0);
    assert_int_equal(trace_waited(t), 900 * MSEC);
    t->samples[0].busy = 101 * MSEC;
    assert_int_equal(trace_waited(t), waited(2000, 100, 500, 2));
}

static uint64_t wait_seed = 1;

static uint64_t wait_chance(uint64_t n)
{
    wait_seed = wait_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (wait_seed >> 33) % n;
}

/* At each moment either one task waits or one processor computes. The kernel's measure is computed
 * from that as the kernel does it, and the estimate finds the true wait. */
static void the_estimate_undoes_the_mean_over_processors(void **state)
{
    for (int round = 0; round < 2000; round++) {
        uint32_t n = 1 + (uint32_t)wait_chance(8);
        usec_t waiting = 0, busy = 0;
        double weighted = 0, found;

        for (uint32_t i = 0; i < n; i++) {
            usec_t w = wait_chance(USEC_PER_SEC), b = 1 + wait_chance(USEC_PER_SEC);

            weighted += (double)w * (double)(w + b);
            waiting += w;
            busy += b;
        }
        found = weighted / (double)(waiting + busy);
        {
            _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);

            t->timing = (TraceTiming){waiting + busy, (usec_t)ceil(found), busy, n};
            assert_in_range(trace_waited(t), waiting - MIN(waiting, 2U), waiting + 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(checks_are_found),
            cmocka_unit_test(paths_are_interned),
            cmocka_unit_test(bad_paths_are_refused),
            cmocka_unit_test(formatting_fits_or_says_so),
            cmocka_unit_test(the_first_of_a_file_is_found_again),
            cmocka_unit_test(accesses_come_in_order),
            cmocka_unit_test(volumes_are_limited),
            cmocka_unit_test(path_bytes_are_limited),
            cmocka_unit_test(ranges_are_limited),
            cmocka_unit_test(what_was_left_out_is_described),
            cmocka_unit_test(every_wrong_member_is_seen),
            cmocka_unit_test(paths_longer_than_allowed_are_seen),
            cmocka_unit_test(waits_by_hand),
            cmocka_unit_test(waits_are_estimated_between_samples),
            cmocka_unit_test(the_estimate_undoes_the_mean_over_processors),
            cmocka_unit_test(words_both_ways),
            cmocka_unit_test(synthetic_traces_are_valid_and_repeat),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
