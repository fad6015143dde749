/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/axis.h"
#include "report/markup.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Checks the text and the attribute that the writer makes of a name. */
static void check_escaped(const char *name, const char *expected)
{
    _cleanup_free_ char *text = NULL, *wanted = NULL;
    _cleanup_markup_ Markup m = {0};
    size_t size;

    markup_open(&m, "p");
    markup_attribute(&m, "title", name);
    markup_text(&m, name);
    assert_int_equal(markup_finish(&m, &text, &size), 0);
    assert_true(asprintf(&wanted, "<p title=\"%s\">%s</p>\n", expected, expected) > 0);
    assert_string_equal(text, wanted);
    assert_int_equal(size, strlen(text));
}

static void test_escape(void **state _unused_)
{
    check_escaped("plain", "plain");
    check_escaped("</script><b a='\"&\">", "&lt;/script&gt;&lt;b a=&#39;&quot;&amp;&quot;&gt;");
    check_escaped("a\tb\nc\x01\x7f", "a\\x09b\\x0ac\\x01\\x7f");
    /* U+202E reverses the text direction; U+200F and U+FEFF are invisible. */
    check_escaped("x\xe2\x80\xaegpj.sh", "x\\u{202e}gpj.sh");
    check_escaped("\xe2\x80\x8f\xef\xbb\xbf\xc2\x85", "\\u{200f}\\u{feff}\\u{85}");
    check_escaped("\xef\xbf\xbf", "\\u{ffff}");
    /* Letters stay. */
    check_escaped("\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80", "\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80");
    /* Invalid UTF-8: overlong, a surrogate, beyond U+10FFFF, cut off, a lone continuation byte. */
    check_escaped("\xc0\xbc", "\\xc0\\xbc");
    check_escaped("\xed\xa0\x80", "\\xed\\xa0\\x80");
    check_escaped("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
    check_escaped("\xe4\xb8", "\\xe4\\xb8");
    check_escaped("\x80", "\\x80");
}

static void check_name(const char *name, size_t max, const char *expected)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_markup_ Markup m = {0};
    size_t size;

    markup_name(&m, name, max);
    assert_int_equal(markup_finish(&m, &text, &size), 0);
    text[strlen(text) - 1] = 0;
    assert_string_equal(text, expected);
}

static void test_name(void **state _unused_)
{
    check_name("/usr/bin/cat", 12, "/usr/bin/cat");
    check_name("/usr/bin/cat", 11, "…sr/bin/cat");
    check_name("/usr/bin/cat", 4, "…cat");
    /* Characters count, not bytes. */
    check_name("äöü", 3, "äöü");
    check_name("xäöü", 3, "…öü");
}

static void test_structure(void **state _unused_)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_markup_ Markup m = {0};
    size_t size;

    markup_open(&m, "svg");
    markup_open(&m, "rect");
    markup_number(&m, "x", 1.0 / 3);
    markup_number(&m, "y", 1234567.04);
    markup_close(&m);
    markup_element(&m, "td", NULL, "%s", "");
    markup_element(&m, "td", "a", "%d", 7);
    assert_int_equal(markup_finish(&m, &text, &size), 0);
    assert_string_equal(text, "<svg><rect x=\"0.3\" y=\"1.23457e+06\"/><td></td>"
                              "<td class=\"a\">7</td></svg>\n");
}

static void test_errors(void **state _unused_)
{
    _cleanup_markup_ Markup deep = {0}, shallow = {0}, late = {0};
    char *text = (char *)"untouched";
    size_t size;

    for (unsigned i = 0; i <= MARKUP_DEPTH_MAX; i++)
        markup_open(&deep, "g");
    assert_int_equal(markup_finish(&deep, &text, &size), -EINVAL);
    markup_close(&shallow);
    assert_int_equal(markup_finish(&shallow, &text, &size), -EINVAL);
    markup_open(&late, "g");
    markup_text(&late, "x");
    markup_attribute(&late, "a", "b");
    assert_int_equal(markup_finish(&late, &text, &size), -EINVAL);
    assert_string_equal(text, "untouched");
}

static void test_steps(void **state _unused_)
{
    for (double to = 1e-5; to < 1e7; to *= 1.37)
        for (unsigned n = 1; n < 20; n++) {
            double step = axis_step(0, to, n), digit = step / pow(10, floor(log10(step) + 1e-9));

            assert_true(to / step <= n * (1 + 1e-6));
            assert_true(to / step > n / 2.6);
            assert_true(fabs(digit - 1) < 1e-6 || fabs(digit - 2) < 1e-6 || fabs(digit - 5) < 1e-6);
        }
    assert_true(axis_step(3, 3, 5) > 0);
}

static void test_place(void **state _unused_)
{
    Axis a = {10, 20, 100, 50}, up = {0, 1, 200, -100}, empty = {5, 5, 7, 10};

    assert_true(axis_place(&a, 15) == 125);
    assert_true(axis_place(&a, 9) == 100);
    assert_true(axis_place(&a, 99) == 150);
    assert_true(axis_place(&up, 0.25) == 175);
    assert_true(axis_place(&empty, 5) == 7);
}

/* A folded axis rises from 0 to 1, and used buckets are longer than empty ones. */
static void test_fold(void **state _unused_)
{
    bool used[FOLD_BUCKETS] = {[10] = true, [11] = true, [200] = true};
    double before = -1;
    Fold f;

    fold_compute(&f, 1000, 1000 + 10.0 * FOLD_BUCKETS, used);
    for (double v = 1000; v <= f.to; v += 3) {
        double place = fold_place(&f, v);

        assert_true(place > before && place <= 1);
        assert_true(fabs(fold_value(&f, place) - v) < 1e-6);
        before = place;
    }
    assert_true(fold_place(&f, 1000) == 0);
    assert_true(fold_place(&f, f.to) == 1);
    assert_true(fold_place(&f, 0) == 0);
    assert_true(fold_place(&f, 1e9) == 1);
    assert_true(fold_place(&f, 1120) - fold_place(&f, 1100) > 0.14);
    fold_compute(&f, 5, 5, used);
    assert_true(fold_place(&f, 5) >= 0 && fold_place(&f, 5) <= 1);
}

static void test_labels(void **state _unused_)
{
    char b[AXIS_LABEL_MAX];

    assert_string_equal(axis_seconds(2.5, 0.5, b), "2.5 s");
    assert_string_equal(axis_seconds(10, 5, b), "10 s");
    assert_string_equal(axis_seconds(0.25, 0.05, b), "0.25 s");
    assert_string_equal(axis_seconds(0.004, 0.002, b), "4 ms");
    assert_string_equal(axis_bytes(999, b), "999 B");
    assert_string_equal(axis_bytes(999.9e3, b), "1.0 MB");
    assert_string_equal(axis_bytes(45.54e6, b), "45.5 MB");
    assert_string_equal(axis_bytes(455.4e6, b), "455 MB");
    assert_string_equal(axis_duration(82900, b), "83 ms");
    assert_string_equal(axis_duration(8200000, b), "8.2 s");
    assert_string_equal(axis_duration(9960000, b), "10 s");
    assert_string_equal(axis_duration(119600000, b), "2 min 00 s");
    assert_string_equal(axis_duration(3599600000, b), "1 h 00 min");
    assert_string_equal(axis_duration(84680000000, b), "23 h 31 min");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_escape),    cmocka_unit_test(test_name),
            cmocka_unit_test(test_structure), cmocka_unit_test(test_errors),
            cmocka_unit_test(test_steps),     cmocka_unit_test(test_place),
            cmocka_unit_test(test_labels),    cmocka_unit_test(test_fold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
