/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/launch-rows.h"

#include "base/clock.h"
#include "state/launch-packs.h"
#include "util/model-util.h"

#define OTHER "0a0b0c0d-0001-0002-0003-000000000002"

static void add(LaunchUse *u, const char *uuid, uint64_t inode, const char *pages)
{
    _cleanup_range_set_ RangeSet ranges = {0};

    test_ranges(pages, PAGE, &ranges);
    assert_int_equal(launch_use_add(u, uuid, inode, &ranges), 0);
}

static LaunchUse *start(LaunchUses *uses, uint32_t uid, const char *path)
{
    LaunchUse *u = &uses->items[uses->n++];

    u->key = (LaunchKey){uid, launch_pack_hash(path)};
    return u;
}

static uint32_t file_named(const Trace *t, const char *path)
{
    char text[TRACE_PATH_MAX];
    uint32_t i = 0;

    while (trace_format_path(t, t->files[i].path, text, sizeof(text)) < 0 ||
           strcmp(text, path) != 0)
        i++;
    return i;
}

/* A session of user 1000, in which A has touched page 1 of x. The inode of each file is 100 and its
 * number. */
static Trace *recorded(void)
{
    Trace *t = session(STAGE_SESSION, 1000, T0, 0, "A>x=0-8 A>y=0-8 B>x=0-8 B>twin=0-1", NULL);
    _cleanup_range_set_ RangeSet ranges = {0};

    for (uint32_t i = 0; i < t->n_files; i++)
        t->files[i].inode = 100 + i;
    t->files[file_named(t, "/bin/A")].inode = t->files[file_named(t, "/f/twin")].inode;
    test_ranges("1-2", PAGE, &ranges);
    assert_int_equal(trace_add_touched(t, 0, file_named(t, "/f/x"), &ranges), 0);
    return t;
}

static void needs_become_rows(void **state)
{
    _cleanup_trace_ Trace *t = recorded();
    uint64_t x = t->files[file_named(t, "/f/x")].inode, y = t->files[file_named(t, "/f/y")].inode;
    LaunchUses uses = {0};
    LaunchUse *u;

    u = start(&uses, 1000, "/bin/B");
    add(u, UUID, x, "4-5");
    add(u, UUID, 0, "7-9");
    add(u, OTHER, 0, "7-9"); /* not in the trace */
    add(u, OTHER, y, "7-9");
    add(u, UUID, 999, "7-9");
    add(u, UUID, t->files[file_named(t, "/f/twin")].inode, "0-1"); /* two files have it */
    u = start(&uses, 1000, "/bin/A");
    add(u, UUID, x, "4-5"); /* page tables have shown it */
    add(u, UUID, y, "2-3");
    add(u, UUID, 0, "3-4");
    u = start(&uses, 1000, "/bin/unknown");
    add(u, UUID, y, "2-3");
    u = start(&uses, 1001, "/bin/A"); /* another user */
    add(u, UUID, 0, "30-40");
    assert_int_equal(launch_rows_add(&uses, t), 0);
    assert_int_equal(trace_validate(t), 0);

    assert_int_equal(t->n_needed, 2);
    assert_int_equal(t->needed[0].application, 0);
    assert_int_equal(t->needed[0].ranges.ranges[0].offset, 3 * PAGE);
    assert_int_equal(t->needed[1].application, 1);
    assert_int_equal(t->needed[1].ranges.ranges[0].offset, 7 * PAGE);
    assert_int_equal(t->n_touched, 3);
    assert_int_equal(t->touched[0].file, file_named(t, "/f/x"));
    assert_int_equal(t->touched[0].ranges.ranges[0].offset, PAGE);
    assert_int_equal(t->touched[1].file, file_named(t, "/f/y"));
    assert_int_equal(t->touched[1].ranges.ranges[0].offset, 2 * PAGE);
    assert_int_equal(t->touched[2].application, 1);
    assert_int_equal(t->touched[2].ranges.ranges[0].offset, 4 * PAGE);
    launch_uses_done(&uses);
}

/* In a session of several users the starts of all of them count. */
static void the_first_start_of_several_users_counts(void **state)
{
    _cleanup_trace_ Trace *t = recorded();
    LaunchUses uses = {0};

    t->uid = UID_INVALID;
    add(start(&uses, 1001, "/bin/A"), UUID, 0, "3-4");
    add(start(&uses, 1000, "/bin/A"), UUID, 0, "5-6");
    assert_int_equal(launch_rows_add(&uses, t), 0);
    assert_int_equal(t->n_needed, 1);
    assert_int_equal(t->needed[0].ranges.ranges[0].offset, 3 * PAGE);
    launch_uses_done(&uses);
}

#define APPLICATIONS 7U
#define FILES        20000U

/* A session of user 1000 with many applications and files. */
static Trace *large(void)
{
    Trace *t = trace_new(STAGE_SESSION);
    uint32_t volume, path, file, application;

    assert_non_null(t);
    t->uid = 1000;
    assert_int_equal(trace_add_volume(t, &(TraceVolume){.uuid = (char *)UUID}, &volume), 0);
    for (unsigned i = 0; i < FILES + APPLICATIONS; i++) {
        char text[32];

        snprintf(text, sizeof(text), i < FILES ? "/f/%u" : "/bin/%u", i < FILES ? i : i - FILES);
        assert_int_equal(trace_add_path(t, text, &path), 0);
        assert_int_equal(trace_add_file(t, path, volume, false, &file), 0);
        t->files[file].inode = 100 + file;
        if (i >= FILES)
            assert_int_equal(trace_add_application(t, file, &application), 0);
    }
    return t;
}

/* One user's starts have at most as many ranges as the user may have in a recording. */
static void a_user_has_a_share_of_the_ranges(void **state)
{
    _cleanup_trace_ Trace *t = large();
    LaunchUses uses = {0};
    usec_t begin;

    (void)state;
    for (unsigned a = 0; a < APPLICATIONS; a++) {
        char path[32];
        LaunchUse *u;

        snprintf(path, sizeof(path), "/bin/%u", a);
        u = start(&uses, 1000, path);
        for (unsigned i = FILES; i-- > 0;)
            add(u, UUID, t->files[i].inode, "0-1");
    }
    begin = clock_now(CLOCK_MONOTONIC);
    assert_int_equal(launch_rows_add(&uses, t), 0);
    assert_in_range(clock_now(CLOCK_MONOTONIC) - begin, 0, 5 * USEC_PER_SEC);
    assert_int_equal(t->n_touched, TRACE_RECORD_USER_RANGES_MAX / FILES * FILES);
    assert_int_equal(trace_validate(t), 0);
    launch_uses_done(&uses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(needs_become_rows),
            cmocka_unit_test(the_first_start_of_several_users_counts),
            cmocka_unit_test(a_user_has_a_share_of_the_ranges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
