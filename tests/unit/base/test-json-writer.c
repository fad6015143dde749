/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the writer of base/json-util.h. */

#include "base/json-util.h"
#include "base/macros.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void expect_text(JsonWriter *w, const char *wanted)
{
    _cleanup_free_ char *text = NULL;
    size_t size;

    assert_int_equal(json_writer_finish(w, &text, &size), 0);
    assert_string_equal(text, wanted);
    assert_int_equal(size, strlen(wanted));
}

/* Files that json-c wrote are compared with files that the writer writes. */
static void strings_are_those_of_json_c(void **state)
{
    char value[130], wanted[1024];
    struct json_object *o;
    JsonWriter w = {.compact = true};

    for (int c = 1; c < 128; c++)
        value[c - 1] = (char)c;
    memcpy(value + 127, "\xc3\xa9", 3);
    o = json_object_new_string(value);
    snprintf(wanted, sizeof(wanted), "{\"s\":%s,\"empty\":\"\"}",
             json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
                                                       JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
    json_writer_add_string(&w, "s", value);
    json_writer_add_string(&w, "empty", "");
    expect_text(&w, wanted);
}

static void bytes_are_escaped(void **state)
{
    JsonWriter w = {.compact = true};

    json_writer_add_bytes(&w, "b", "a\n\xff%");
    expect_text(&w, "{\"b\":\"a%0A%FF%25\"}");
}

static void numbers_and_flags(void **state)
{
    static const char *const names[] = {"first", "second", "third"};
    JsonWriter w = {.compact = true};

    json_writer_add_u64(&w, "u", UINT64_MAX);
    json_writer_add_i64(&w, "least", INT64_MIN);
    json_writer_add_i64(&w, "most", INT64_MAX);
    json_writer_add_bool(&w, "yes", true);
    json_writer_add_bool(&w, "no", false);
    json_writer_add_flags(&w, "flags", 1U << 2 | 1U, names, ELEMENTSOF(names));
    json_writer_add_flags(&w, "none", 0, names, ELEMENTSOF(names));
    json_writer_add_u64(&w, "end", 0);
    expect_text(&w, "{\"u\":18446744073709551615,\"least\":-9223372036854775808,"
                    "\"most\":9223372036854775807,\"yes\":true,\"no\":false,"
                    "\"flags\":[\"first\",\"third\"],\"none\":[],\"end\":0}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(strings_are_those_of_json_c),
            cmocka_unit_test(bytes_are_escaped),
            cmocka_unit_test(numbers_and_flags),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
