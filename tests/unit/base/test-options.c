/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const Option own[] = {
        {1, 'n', "limit", "N", "A number"}, {2, 0, "now", NULL, "No argument"}, {0}};
static const Option common[] = {{1000, 'q', "quiet", NULL, "Quiet"}, {0}};

#define MAX_WORDS 16

typedef struct Line {
    Options o;
    char *argv[MAX_WORDS + 2];
} Line;

/* Makes the options of a program that is called with these words. */
static Options *make_line(Line *l, bool stop, const char *const *words)
{
    int n = 1;

    l->argv[0] = (char *)"program";
    for (; *words; words++) {
        assert_true(n <= MAX_WORDS);
        l->argv[n++] = (char *)*words;
    }
    l->argv[n] = NULL;
    l->o = (Options){.own = own, .common = common, .argc = n, .argv = l->argv, .stop = stop};
    return &l->o;
}
#define LINE(l, stop, ...) make_line(l, stop, (const char *const[]){__VA_ARGS__, NULL})

static void test_mixed(void **state)
{
    Line l;
    Options *o = LINE(&l, false, "a", "-n5", "--limit=6", "b", "-qn", "7", "--now", "--", "--now");
    const char *value;
    char **arguments;
    int n;

    assert_int_equal(options_next(o, &value), 1);
    assert_string_equal(value, "5");
    assert_int_equal(options_next(o, &value), 1);
    assert_string_equal(value, "6");
    assert_int_equal(options_next(o, &value), 1000);
    assert_null(value);
    assert_int_equal(options_next(o, &value), 1);
    assert_string_equal(value, "7");
    assert_int_equal(options_next(o, &value), 2);
    assert_int_equal(options_next(o, &value), 0);
    arguments = options_arguments(o, &n);
    assert_int_equal(n, 3);
    assert_string_equal(arguments[0], "a");
    assert_string_equal(arguments[1], "b");
    assert_string_equal(arguments[2], "--now");
    assert_null(arguments[3]);
}

static void test_stop_at_command(void **state)
{
    Line l;
    Options *o = LINE(&l, true, "-q", "command", "--now");
    const char *value;
    char **arguments;
    int n;

    assert_int_equal(options_next(o, &value), 1000);
    assert_int_equal(options_next(o, &value), 0);
    arguments = options_arguments(o, &n);
    assert_int_equal(n, 2);
    assert_string_equal(arguments[1], "--now");
}

static void assert_refused(const char *const *words, const char *message)
{
    const char *value;
    Line l;
    Options *o = make_line(&l, false, words);
    int k;

    while ((k = options_next(o, &value)) > 0)
        continue;
    assert_int_equal(k, -EINVAL);
    assert_string_equal(o->message, message);
}
#define REFUSED(message, ...) assert_refused((const char *const[]){__VA_ARGS__, NULL}, message)

static void test_wrong_usage(void **state)
{
    REFUSED("unknown option '--frob'", "--frob");
    REFUSED("unknown option '--frob'", "--frob=1");
    REFUSED("unknown option '-x'", "-x");
    REFUSED("unknown option '-x'", "--now", "-qx");
    REFUSED("unknown option '-x'", "--limit=1", "-xq");
    REFUSED("option '--limit' needs an argument", "--limit");
    REFUSED("option '-n' needs an argument", "-qn");
    REFUSED("option '--now' takes no argument", "--now=1");
    REFUSED("option '--quiet' takes no argument", "a", "--quiet=1");
}

static void test_long_word(void **state)
{
    char word[1000] = "--";
    const char *value;
    Line l;
    Options *o;

    memset(word + 2, 'x', sizeof(word) - 3);
    o = LINE(&l, false, word);
    assert_int_equal(options_next(o, &value), -EINVAL);
    assert_int_equal(strlen(o->message), sizeof(o->message) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_mixed),
            cmocka_unit_test(test_stop_at_command),
            cmocka_unit_test(test_wrong_usage),
            cmocka_unit_test(test_long_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
