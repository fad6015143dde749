/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the table of objects and events that a stage fills. */

#include "observe/event-log.h"

#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static LoggedObject object(uint32_t filesystem, const char *handle, const char *name)
{
    return (LoggedObject){
            .filesystem = filesystem,
            .handle_type = 1,
            .handle_size = (uint16_t)strlen(handle),
            .handle = (const uint8_t *)handle,
            .name = name,
            .name_size = (uint16_t)strlen(name),
    };
}

static uint32_t intern(EventLog *l, LoggedObject o)
{
    uint32_t n = UINT32_MAX;

    assert_int_equal(event_log_intern(l, &o, true, &n), 0);
    return n;
}

static void test_each_once(void **state)
{
    EventLog *l = event_log_new();
    LoggedObject directory = object(0, "dir1", "."), o;
    uint32_t a = intern(l, object(0, "dir1", "a"));

    directory.directory = true;
    assert_int_equal(a, 0);
    /* Any part of its key distinguishes an object from the others, also if the bytes of handle and
     * name together are equal. */
    assert_int_equal(intern(l, object(0, "dir1", "b")), 1);
    assert_int_equal(intern(l, object(0, "dir2", "a")), 2);
    assert_int_equal(intern(l, object(1, "dir1", "a")), 3);
    assert_int_equal(intern(l, object(0, "dir1a", "")), 4);
    assert_int_equal(intern(l, object(0, "", "/dir1a")), 5);
    assert_int_equal(intern(l, directory), 6);
    assert_int_equal(intern(l, object(0, "dir1", ".")), 7);
    assert_int_equal(intern(l, object(0, "dir1", "a")), 0);
    assert_int_equal(intern(l, directory), 6);
    assert_int_equal(event_log_n_objects(l), 8);

    event_log_object(l, 2, &o);
    assert_int_equal(o.filesystem, 0);
    assert_int_equal(o.handle_type, 1);
    assert_int_equal(o.handle_size, 4);
    assert_memory_equal(o.handle, "dir2", 4);
    assert_string_equal(o.name, "a");
    assert_false(o.directory);
    event_log_object(l, 6, &o);
    assert_true(o.directory);
    event_log_free(l);
}

static void test_kinds(void **state)
{
    static const struct {
        const char *name;
        bool loader, env, own;
    } cases[] = {
            {"ld-linux-x86-64.so.2", true, false, false},
            {"ld-linux.so.2", true, false, false},
            {"ld-2.31.so", true, false, false},
            {"ld-musl-x86_64.so.1", true, false, false},
            {"ld64.so.2", true, false, false},
            {"ld.so", true, false, false},
            {"ld", false, false, false},
            {"ld-script", false, false, false},
            {"env", false, true, false},
            {"envsubst", false, false, false},
            {"headstartd", false, false, true},
            {"headstart-replay", false, false, true},
            {"headstart.conf", false, false, false},
    };
    EventLog *l = event_log_new();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        LoggedObject o, path;
        char name[64];

        event_log_object(l, intern(l, object(0, "handle", cases[i].name)), &o);
        snprintf(name, sizeof(name), "/usr/bin/%s", cases[i].name);
        event_log_object(l, intern(l, object(0, "", name)), &path);
        assert_int_equal(o.loader, cases[i].loader);
        assert_int_equal(o.env, cases[i].env);
        assert_int_equal(o.own, cases[i].own);
        assert_int_equal(path.loader, cases[i].loader);
        assert_int_equal(path.own, cases[i].own);
    }
    event_log_free(l);
}

/* Names of 4,095 bytes: the limit of bytes is reached long before that of objects. */
static void test_bytes(void **state)
{
    EventLog *l = event_log_new();
    char *text = calloc(1, 4096);
    LoggedObject o;
    uint64_t bytes = 0;
    uint32_t n;
    int r;

    memset(text, 'x', 4095);
    o = object(0, "", text);
    do {
        snprintf(text, 10, "/%08zu", event_log_n_objects(l));
        text[9] = 'x';
        bytes += event_log_object_bytes(&o);
        r = event_log_intern(l, &o, true, &n);
    } while (r == 0);
    assert_int_equal(r, -E2BIG);
    assert_true(bytes > EVENT_LOG_BYTES_MAX);
    assert_true(bytes - event_log_object_bytes(&o) <= EVENT_LOG_BYTES_MAX);
    free(text);
    event_log_free(l);
}

/* More objects than any first allocation holds; the numbers and the bytes stay the same. */
static void test_many(void **state)
{
    EventLog *l = event_log_new();
    char name[32], handle[32];
    size_t n;

    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 20000; i++) {
            snprintf(name, sizeof(name), "name%u", i);
            snprintf(handle, sizeof(handle), "handle%u", i % 100);
            assert_int_equal(intern(l, object(i % 3, handle, name)), i);
        }
    assert_int_equal(event_log_n_objects(l), 20000);
    for (uint32_t i = 0; i < 20000; i++) {
        LoggedObject o;

        snprintf(name, sizeof(name), "name%u", i);
        event_log_object(l, i, &o);
        assert_string_equal(o.name, name);
        assert_int_equal(o.filesystem, i % 3);
    }
    for (uint32_t i = 0; i < 50000; i++)
        assert_int_equal(
                event_log_add(l, &(LoggedEvent){.object = i % 20000, .run = i, .at_msec = i}), 0);
    assert_int_equal(event_log_events(l, &n)[49999].run, 49999);
    assert_int_equal(n, 50000);
    assert_true(sizeof(LoggedEvent) <= 16);
    event_log_free(l);
}

static void test_limits(void **state)
{
    EventLog *l = event_log_new();
    char *text = calloc(1, 5000);
    LoggedObject o;
    uint32_t n = 7;
    int r = 0;

    memset(text, 'x', 4999);
    o = object(0, "handle", "");
    o.name = text;
    o.name_size = 255;
    assert_int_equal(event_log_intern(l, &o, true, &n), 0);
    n = 7;
    o.name_size = 256;
    assert_int_equal(event_log_intern(l, &o, true, &n), -EINVAL);
    o.name_size = 10;
    o.handle = (const uint8_t *)text;
    o.handle_size = 129;
    assert_int_equal(event_log_intern(l, &o, true, &n), -EINVAL);
    o.handle_size = 0;
    text[0] = '/';
    o.name_size = 4095;
    assert_int_equal(event_log_intern(l, &o, true, &n), 0);
    n = 7;
    o.name_size = 4096;
    assert_int_equal(event_log_intern(l, &o, true, &n), -EINVAL);
    assert_int_equal(n, 7);

    /* Without `add`, an unknown object is not added. */
    o = object(0, "handle", "absent");
    assert_int_equal(event_log_intern(l, &o, false, &n), -ENOENT);
    assert_int_equal(event_log_n_objects(l), 2);
    assert_int_equal(event_log_intern(l, &o, true, &n), 0);
    assert_int_equal(event_log_intern(l, &o, false, &n), 0);
    assert_int_equal(n, 2);

    for (uint32_t i = 0; i < EVENT_LOG_EVENTS_MAX && r == 0; i++)
        r = event_log_add(l, &(LoggedEvent){.at_msec = i});
    assert_int_equal(r, 0);
    assert_int_equal(event_log_add(l, &(LoggedEvent){0}), -E2BIG);
    free(text);
    event_log_free(l);
    assert_null(event_log_free(NULL));
}

static void test_spread(void **state)
{
    EventLog *l = event_log_new();
    const LoggedEvent *e;
    size_t n;

    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(event_log_add(l, &(LoggedEvent){.object = i, .at_msec = 40}), 0);
    event_log_spread(l, 1, 20, 40);
    event_log_spread(l, 5, 40, 60); /* an empty batch */
    event_log_spread(l, 9, 40, 60);
    event_log_spread(l, 0, 50, 50); /* no time has passed */
    e = event_log_events(l, &n);
    assert_int_equal(n, 5);
    assert_int_equal(e[0].at_msec, 40); /* not part of the batch */
    for (uint32_t i = 1; i < 5; i++) {
        assert_int_equal(e[i].at_msec, 20 + 5 * i);
        assert_int_equal(e[i].object, i);
    }
    event_log_free(l);
}

/* A user who knows the hash chooses names that would all have one hash without a seed: a product of
 * XXH3 is 0 if one of its factors is, and eight bytes of a name can be this factor. */
static void test_chosen_names(void **state)
{
    enum { NAMES = 40000 };
    static const char zero[] = "\xb8\x08\x46\x74\xf7\x43\x24\x8e";
    uint8_t bytes[2][64] = {{0}};
    EventLog *l = event_log_new();
    clock_t start = clock();
    uint32_t first = 0, number = 0;

    memcpy(bytes[0] + 32, zero, 8);
    memcpy(bytes[1] + 32, zero, 8);
    memcpy(bytes[0] + 40, "00000001", 8);
    memcpy(bytes[1] + 40, "00000002", 8);
    assert_true(hash64(bytes[0], 64, 0) == hash64(bytes[1], 64, 0));
    assert_true(hash64(bytes[0], 64, 1) != hash64(bytes[1], 64, 1));
    for (unsigned i = 0; i < NAMES; i++) {
        char name[48];

        /* The head of a record has 16 bytes, and so has this handle. The name has 31, and a NUL. */
        snprintf(name, sizeof(name), "%s%08u%s", zero, i, "fifteen letters");
        number = intern(l, object(0, "handle of a file", name));
        if (i == 0)
            first = number;
    }
    assert_int_equal(number - first, NAMES - 1);
    assert_true(clock() - start < CLOCKS_PER_SEC);
    event_log_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_each_once),    cmocka_unit_test(test_kinds),
            cmocka_unit_test(test_many),         cmocka_unit_test(test_limits),
            cmocka_unit_test(test_bytes),        cmocka_unit_test(test_spread),
            cmocka_unit_test(test_chosen_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
