/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the small parsers, formatters and tables of src/base. */

#include "base/macros.h"
#include "base/parse.h"
#include "base/time-util.h"
#include "base/vocabulary.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void numbers(void **state)
{
    uint64_t v = 7;

    assert_int_equal(parse_u64("18446744073709551615", &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(parse_u64("18446744073709551616", &v), -ERANGE);
    assert_int_equal(parse_u64("", &v), -EINVAL);
    assert_int_equal(parse_u64("-1", &v), -EINVAL);
    assert_int_equal(parse_u64(" 1", &v), -EINVAL);
    assert_int_equal(parse_u64("1x", &v), -EINVAL);
    assert_true(v == UINT64_MAX); /* untouched by failed calls */

    assert_int_equal(parse_bytes("3M", &v), 0);
    assert_true(v == 3U << 20);
    assert_int_equal(parse_bytes("512", &v), 0);
    assert_true(v == 512);
    assert_int_equal(parse_bytes("99999999999999T", &v), -ERANGE);
    assert_int_equal(parse_bytes("3Q", &v), -EINVAL);
}

static void booleans(void **state)
{
    bool b = false;

    assert_int_equal(parse_boolean("Yes", &b), 0);
    assert_true(b);
    assert_int_equal(parse_boolean("off", &b), 0);
    assert_false(b);
    assert_int_equal(parse_boolean("maybe", &b), -EINVAL);
    assert_int_equal(parse_boolean("", &b), -EINVAL);
}

static void time_spans(void **state)
{
    usec_t t = 0;

    assert_int_equal(parse_timespan("20", &t), 0);
    assert_true(t == 20 * USEC_PER_SEC);
    assert_int_equal(parse_timespan("150ms", &t), 0);
    assert_true(t == 150 * USEC_PER_MSEC);
    assert_int_equal(parse_timespan("168h", &t), 0);
    assert_true(t == 168 * USEC_PER_HOUR);
    assert_int_equal(parse_timespan("infinity", &t), 0);
    assert_true(t == USEC_INFINITY);
    assert_int_equal(parse_timespan("18446744073709551615w", &t), -ERANGE);
    assert_int_equal(parse_timespan("5 parsecs", &t), -EINVAL);
}

static void percentages(void **state)
{
    int p = 0;

    assert_int_equal(parse_percent("-10%", &p), 0);
    assert_int_equal(p, -10);
    assert_int_equal(parse_percent("100", &p), 0);
    assert_int_equal(p, 100);
    assert_int_equal(parse_percent("101", &p), -ERANGE);
    assert_int_equal(parse_percent("--1", &p), -EINVAL);
    assert_int_equal(parse_percent("", &p), -EINVAL);
}

static void formats(void **state)
{
    char b[FORMAT_TIMESPAN_MAX];

    assert_string_equal(format_timespan(b, sizeof(b), 812), "812us");
    assert_string_equal(format_timespan(b, sizeof(b), 3200), "3.2ms");
    assert_string_equal(format_timespan(b, sizeof(b), 4810000), "4.81s");
    assert_string_equal(format_timespan(b, sizeof(b), 123 * USEC_PER_SEC), "2min 3s");
    assert_string_equal(format_timespan(b, sizeof(b), 60 * USEC_PER_SEC * 61), "1h 1min");
    assert_string_equal(format_timespan(b, sizeof(b), 168 * USEC_PER_HOUR), "7d 0h");
    assert_string_equal(format_timespan(b, sizeof(b), USEC_INFINITY), "infinity");
    assert_string_equal(format_bytes(b, sizeof(b), 512), "512B");
    assert_string_equal(format_bytes(b, sizeof(b), 4096), "4.0K");
    assert_string_equal(format_bytes(b, sizeof(b), (1U << 20) - 1), "1.0M");
    assert_string_equal(format_bytes(b, sizeof(b), UINT64_MAX), "16.0E");
}

static void words(void **state)
{
    for (int i = 0; i < _STAGE_MAX; i++)
        assert_int_equal(stage_from_string(stage_to_string((Stage)i)), i);
    for (int i = 0; i < _POLICY_MAX; i++)
        assert_int_equal(policy_from_string(policy_to_string((Policy)i)), i);
    for (int i = 0; i < _DEVICE_CLASS_MAX; i++)
        assert_int_equal(device_class_from_string(device_class_to_string((DeviceClass)i)), i);
    assert_null(stage_to_string(_STAGE_MAX));
    assert_null(stage_to_string(_STAGE_INVALID));
    assert_int_equal(policy_from_string("concurrent"), POLICY_CONCURRENT);
    assert_int_equal(policy_from_string("beside"), POLICY_CONCURRENT);
    assert_int_equal(policy_from_string("nonsense"), _POLICY_INVALID);
    assert_int_equal(policy_from_string(NULL), _POLICY_INVALID);
}

static void arrays_grow_and_keep(void **state)
{
    _cleanup_free_ uint32_t *a = NULL;
    size_t allocated = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(grow_array(&a, &allocated, i + 1, sizeof(*a)), 0);
        assert_true(allocated > i);
        a[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(a[i], i);
    /* Without volatile, the compiler would detect the error and refuse to build the test. */
    volatile size_t too_many = SIZE_MAX / 2;
    assert_int_equal(grow_array(&a, &allocated, too_many, 64), -ENOMEM);
    assert_int_equal(a[999], 999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(numbers),
            cmocka_unit_test(booleans),
            cmocka_unit_test(time_spans),
            cmocka_unit_test(percentages),
            cmocka_unit_test(formats),
            cmocka_unit_test(words),
            cmocka_unit_test(arrays_grow_and_keep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
