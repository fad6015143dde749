/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests measure/pack-usage.h. */

#include "measure/pack-usage.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PAGE 4096U

/* A pack with the files /a, /b, /c and /d of two pages each. */
static const char strings[] = "\0a\0b\0c\0d\0/";
static PackHeader header;
static PackVolume volume;
static PackFile files[4];
static PackData data[4];
static const Pack pack = {
        .header = &header, .volumes = &volume, .files = files, .data = data, .strings = strings};

static int make_pack(void **state _unused_)
{
    header.n_files = htole32(ELEMENTSOF(files));
    header.n_volumes = htole32(1);
    volume.mountpoint = htole32(9);
    volume.n_files = htole32(ELEMENTSOF(files));
    volume.n_data = htole32(ELEMENTSOF(data));
    for (uint32_t i = 0; i < ELEMENTSOF(files); i++) {
        files[i].path = htole32(1 + 2 * i);
        data[i] = (PackData){.length = htole64(2 * PAGE), .file = htole32(i)};
    }
    return 0;
}

/* Adds a file whose first `n` pages are in memory. */
static uint32_t add_file(Trace *t, const char *path, uint64_t n)
{
    uint32_t p, f;

    assert_int_equal(trace_add_path(t, path, &p), 0);
    assert_int_equal(trace_add_file(t, p, TRACE_NONE, false, &f), 0);
    if (n > 0)
        assert_int_equal(range_set_insert(&t->files[f].resident, 0, n * PAGE), 0);
    return f;
}

static void add_open(Trace *t, uint32_t file, uint32_t application, usec_t at)
{
    assert_int_equal(
            trace_add_access(t, &(TraceAccess){.at = at, .file = file, .application = application}),
            0);
}

static void assert_bytes(const PackUsage *u, uint64_t hits, uint64_t waste, uint64_t misses)
{
    assert_int_equal(u->hit_bytes, hits * PAGE);
    assert_int_equal(u->waste_bytes, waste * PAGE);
    assert_int_equal(u->miss_bytes, misses * PAGE);
}

/* Without replay each page counts. With replay, a file counts as a whole. Misses count by page in
 * both cases. */
static void pages_or_files_count(void **state _unused_)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_BOOT);
    PackUsage u;

    add_file(t, "/a", 1);
    add_file(t, "/b", 3);
    add_file(t, "/other", 5);
    assert_int_equal(pack_usage_compare(&pack, t, NULL, NULL, &u), 0);
    assert_int_equal(u.source, USAGE_PER_PAGE);
    assert_bytes(&u, 3, 5, 6);
    t->flags |= TRACE_REPLAYED;
    assert_int_equal(pack_usage_compare(&pack, t, NULL, NULL, &u), 0);
    assert_int_equal(u.source, USAGE_PER_FILE);
    assert_bytes(&u, 4, 4, 6);
    assert_int_equal(u.hit_files, 2);
    assert_int_equal(u.waste_files, 2);
    assert_int_equal(u.miss_files, 2);
}

/* Only opens during the start count. A file of the set that a helper opened is a hit. A file
 * outside the set counts only if the application itself opened it. */
static void a_start_uses_its_set(void **state _unused_)
{
    _cleanup_trace_ Trace *t = trace_new(STAGE_SESSION);
    uint32_t editor, helper, a, b, c, own, foreign, late;
    PackUsage u;

    assert_int_equal(trace_add_application(t, add_file(t, "/bin/editor", 0), &editor), 0);
    assert_int_equal(trace_add_application(t, add_file(t, "/bin/helper", 0), &helper), 0);
    a = add_file(t, "/a", 2);
    b = add_file(t, "/b", 4);
    c = add_file(t, "/c", 2);
    own = add_file(t, "/own", 3);
    foreign = add_file(t, "/foreign", 7);
    late = add_file(t, "/late", 9);
    add_open(t, c, editor, 99);
    add_open(t, a, editor, 100);
    add_open(t, b, helper, 120);
    add_open(t, foreign, helper, 130);
    add_open(t, own, helper, 140);
    add_open(t, own, editor, 150);
    add_open(t, c, editor, 151);
    add_open(t, late, editor, 151);
    assert_int_equal(pack_usage_compare_start(&pack, t, editor, 100, 50, NULL, NULL, &u), 0);
    assert_int_equal(u.source, USAGE_PER_FILE);
    assert_bytes(&u, 4, 4, 3);
    assert_int_equal(u.hit_files, 2);
    assert_int_equal(u.waste_files, 2);
    assert_int_equal(u.miss_files, 1);
    /* The helper's own start. */
    assert_int_equal(pack_usage_compare_start(&pack, t, helper, 110, 20, NULL, NULL, &u), 0);
    assert_bytes(&u, 2, 6, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(pages_or_files_count),
            cmocka_unit_test(a_start_uses_its_set),
    };

    return cmocka_run_group_tests(tests, make_pack, NULL);
}
