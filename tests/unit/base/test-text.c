/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests names in text: base/text.h, messages with names: format_message(), and names in JSON:
 * base/json-util.h. */

#include "base/json-util.h"
#include "base/log.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* needs the four headers above */
#include <cmocka.h>

static void characters(void **state)
{
    static const struct {
        const char *s;
        size_t n;
        uint32_t c;
    } rows[] = {
            {"", 1, 0},
            {"a", 1, 'a'},
            {"\xc3\xa9", 2, 0xe9},
            {"\xe2\x82\xac", 3, 0x20ac},
            {"\xf0\x9f\x98\x80", 4, 0x1f600},
            {"\x80", 0, 0},             /* begins no character */
            {"\xc3", 0, 0},             /* ends too early */
            {"\xc0\xaf", 0, 0},         /* too long for "/" */
            {"\xed\xa0\x80", 0, 0},     /* a surrogate */
            {"\xf4\x90\x80\x80", 0, 0}, /* beyond Unicode */
            {"\xff", 0, 0},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        uint32_t c = 0;

        assert_int_equal(text_read_character(rows[i].s, &c), rows[i].n);
        assert_int_equal(c, rows[i].c);
    }
}

static void expect_neutral(const char *s, const char *expected)
{
    char buf[64];

    snprintf(buf, sizeof(buf), "%s", s);
    text_neutralize(buf);
    assert_string_equal(buf, expected);
}

static void hidden_characters_are_replaced(void **state)
{
    expect_neutral("", "");
    expect_neutral("a \xc3\xa9 \xe2\x80\xa6", "a \xc3\xa9 \xe2\x80\xa6");
    expect_neutral("a\nb\x1b[31m\x7f", "a?b?[31m?");
    expect_neutral("\xc2\x9b"
                   "31m",
                   "?31m"); /* CSI of 8 bits */
    expect_neutral("\xe2\x80\xae"
                   "exe",
                   "?exe"); /* right to left */
    expect_neutral("\x9b\xff"
                   "a\xc3",
                   "??a?");
}

static void _printf_(3, 4) message(char *buf, size_t size, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    format_message(buf, size, 2, format, ap);
    va_end(ap);
}

static void a_name_begins_no_line_of_a_message(void **state)
{
    char buf[128];

    message(buf, sizeof(buf), "%s: %m", "a\n<2>forged\x1b[2J");
    assert_string_equal(buf, "a?<2>forged?[2J: No such file or directory");
}

static void json_gives_the_bytes_back(void **state)
{
    static const char name[] = "a\n\x1b\xc2\x9b\xe2\x80\xae\xff%\xc3\xa9";
    char *escaped = json_escape_bytes(name), *again;

    assert_string_equal(escaped, "a%0A%1B\xc2\x9b\xe2\x80\xae%FF%25\xc3\xa9");
    again = json_unescape_bytes(escaped);
    assert_string_equal(again, name);
    free(escaped);
    free(again);
}

/* An item that could not be allocated is NULL. As null in the array, it would make the file
 * unreadable. */
static void an_item_that_does_not_exist_is_not_added(void **state)
{
    static const char *const names[] = {"first", "second", "third"};
    struct json_object *a = json_flags(1U << 2 | 1U, names, ELEMENTSOF(names));

    assert_string_equal(json_object_to_json_string(a), "[ \"first\", \"third\" ]");
    assert_false(json_add_item(a, NULL));
    assert_int_equal(json_object_array_length(a), 2);
    json_object_put(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(characters),
            cmocka_unit_test(hidden_characters_are_replaced),
            cmocka_unit_test(a_name_begins_no_line_of_a_message),
            cmocka_unit_test(json_gives_the_bytes_back),
            cmocka_unit_test(an_item_that_does_not_exist_is_not_added),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
