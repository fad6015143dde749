/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/json-document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* A document and the copy of its text. The copy has an allocation of its own, so that ASan detects
 * a read after its end. */
typedef struct Text {
    JsonDocument d;
    char *copy;
} Text;

static void text_done(Text *t)
{
    json_document_done(&t->d);
    free(t->copy);
}
#define _cleanup_text_ _cleanup_(text_done)

static int parse(const char *text, int depth, Text *ret, const char **ret_reason)
{
    size_t size = strlen(text);

    *ret_reason = NULL;
    ret->copy = malloc(size + (size == 0));
    assert_non_null(ret->copy);
    memcpy(ret->copy, text, size);
    return json_document_parse(ret->copy, size, depth, &ret->d, ret_reason);
}

/* Parses a document and gets its column "a". */
static int column(const char *text, Text *t, JsonColumn *ret)
{
    const char *reason;

    assert_int_equal(parse(text, 8, t, &reason), 0);
    return json_get_column(&t->d, t->d.root, "a", SIZE_MAX, ret);
}

static void columns_are_read(void **state)
{
    static const char text[] = "{\"b\":[7],\"a\":[ 0,18446744073709551615 ,\n\t1,[ ],-0,"
                               "[2,[3]\r,4],5 ] , \"c\":[]}";
    _cleanup_text_ Text t = {0};
    JsonColumn a, inner, innermost;
    uint64_t x;

    assert_int_equal(column(text, &t, &a), 0);
    assert_int_equal(a.n, 7);
    assert_int_equal(json_next_u64(&a, UINT64_MAX, &x), 0);
    assert_int_equal(x, 0);
    assert_int_equal(json_next_u64(&a, UINT64_MAX, &x), 0);
    assert_true(x == UINT64_MAX);
    assert_int_equal(json_next_u64(&a, 1, &x), 0);
    assert_int_equal(x, 1);
    assert_int_equal(json_next_column(&a, 0, &inner), 0);
    assert_int_equal(inner.n, 0);
    assert_int_equal(json_next_u64(&inner, UINT64_MAX, &x), -EBADMSG);
    assert_int_equal(json_next_u64(&a, 1, &x), 0);
    assert_int_equal(x, 0);
    assert_int_equal(json_next_column(&a, 3, &inner), 0);
    assert_int_equal(inner.n, 3);
    assert_int_equal(json_next_u64(&inner, 2, &x), 0);
    assert_int_equal(json_next_column(&inner, 1, &innermost), 0);
    assert_int_equal(json_next_u64(&innermost, 3, &x), 0);
    assert_int_equal(x, 3);
    assert_int_equal(json_next_u64(&innermost, 3, &x), -EBADMSG);
    assert_int_equal(json_next_u64(&inner, 4, &x), 0);
    assert_int_equal(x, 4);
    assert_int_equal(inner.n, 0);
    assert_int_equal(json_next_u64(&a, 5, &x), 0);
    assert_int_equal(x, 5);
    assert_int_equal(a.n, 0);
    assert_int_equal(json_next_u64(&a, UINT64_MAX, &x), -EBADMSG);
    assert_int_equal(json_next_column(&a, SIZE_MAX, &inner), -EBADMSG);

    assert_int_equal(json_get_column(&t.d, t.d.root, "a", 6, &a), -EBADMSG);
    assert_int_equal(json_get_column(&t.d, t.d.root, "a", 7, &a), 0);
    assert_int_equal(json_get_column(&t.d, t.d.root, "b", 0, &a), -EBADMSG);
    assert_int_equal(json_get_column(&t.d, t.d.root, "c", 0, &a), 0);
    assert_int_equal(a.n, 0);
    assert_int_equal(json_next_u64(&a, UINT64_MAX, &x), -EBADMSG);
    assert_int_equal(json_get_column(&t.d, t.d.root, "d", 9, &a), -EBADMSG);
    assert_int_equal(json_get_column(&t.d, NULL, "a", 9, &a), -EBADMSG);
}

static void elements_out_of_range_are_refused(void **state)
{
    static const struct {
        const char *text;
        uint64_t max;
        bool u64, i64;
    } cases[] = {
            {"{\"a\":[5]}", 4, false, true},
            {"{\"a\":[-1]}", UINT64_MAX, false, true},
            {"{\"a\":[9223372036854775807]}", UINT64_MAX, true, true},
            {"{\"a\":[9223372036854775808]}", UINT64_MAX, true, false},
            {"{\"a\":[-9223372036854775808]}", UINT64_MAX, false, true},
            {"{\"a\":[-9223372036854775809]}", UINT64_MAX, false, false},
            {"{\"a\":[18446744073709551616]}", UINT64_MAX, false, false},
            {"{\"a\":[184467440737095516150]}", UINT64_MAX, false, false},
            {"{\"a\":[99999999999999999999999999]}", UINT64_MAX, false, false},
            {"{\"a\":[[1]]}", UINT64_MAX, false, false},
            {"{\"a\":[[]]}", UINT64_MAX, false, false},
            {"{\"a\":[]}", UINT64_MAX, false, false},
    };

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        _cleanup_text_ Text t = {0};
        JsonColumn a, b, c;
        uint64_t u = 77;
        int64_t s = 77;

        print_message("# %s\n", cases[i].text);
        assert_int_equal(column(cases[i].text, &t, &a), 0);
        b = a;
        assert_int_equal(json_next_u64(&a, cases[i].max, &u), cases[i].u64 ? 0 : -EBADMSG);
        assert_true((u == 77) == !cases[i].u64);
        assert_int_equal(json_next_i64(&b, &s), cases[i].i64 ? 0 : -EBADMSG);
        assert_true((s == 77) == !cases[i].i64);
        assert_int_equal(column(cases[i].text, (text_done(&t), &t), &a), 0);
        if (!strstr(cases[i].text, "[["))
            assert_int_equal(json_next_column(&a, SIZE_MAX, &c), -EBADMSG);
    }
}

static void what_is_wrong_is_refused(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
            {"", "empty file"},
            {"{\"a\":[1,2", "truncated"},
            {"{\"a\":[1,2,", "truncated"},
            {"{\"a\":[1,-", "truncated"},
            {"{\"a\":[", "truncated"},
            {"{\"a\":[[1]", "truncated"},
            {"{\"a\":[1]", "truncated"},
            {"{\"a\":\"[1]", "truncated"},
            {"{\"a\":\"[1\\", "truncated"},
            {"{\"a\":[1]}x", "data after its end"},
            {"{\"a\":[1]}[1]", "data after its end"},
            {"[1],[1]", "data after its end"},
            {"{\"a\":[1,]}", "not valid JSON"},
            {"{\"a\":[,1]}", "not valid JSON"},
            {"{\"a\":[1,,2]}", "not valid JSON"},
            {"{\"a\":[,]}", "not valid JSON"},
            {"{\"a\":[1 2]}", "not valid JSON"},
            {"{\"a\":[1[2]]}", "not valid JSON"},
            {"{\"a\":[[1]2]}", "not valid JSON"},
            {"{\"a\":[[1][2]]}", "not valid JSON"},
            {"{\"a\":[[1,],2]}", "not valid JSON"},
            {"{\"a\":[1]]}", "not valid JSON"},
            {"{\"a\":[01]}", "not valid JSON"},
            {"{\"a\":[00]}", "not valid JSON"},
            {"{\"a\":[-01]}", "not valid JSON"},
            {"{\"a\":[0,-00]}", "not valid JSON"},
            {"{\"a\":[-]}", "not valid JSON"},
            {"{\"a\":[--1]}", "not valid JSON"},
            {"{\"a\":[- 1]}", "not valid JSON"},
            {"{\"a\":[1-1]}", "not valid JSON"},
            {"{\"a\":[+1]}", "not valid JSON"},
            {"{\"a\":[1\v]}", "not valid JSON"},
            {"{\"a\":[\f1]}", "not valid JSON"},
            {"{\"a\":[1/**/]}", "not valid JSON"},
            {"{\"a\":[0x1]}", "not valid JSON"},
            {"{\"a\":[1;2]}", "not valid JSON"},
            {"{\"a\":[1:2]}", "not valid JSON"},
            {"{\"a\":[1}", "not valid JSON"},
            {"{\"a\":[\xff]}", "not valid JSON"},
            {"{\"a\":['1']}", "not valid JSON"},
            {"{'a':[1]}", "not valid JSON"},
            {"{'[1]':[1]}", "not valid JSON"},
            {"{'\"':1,\"a\":[9]}", "not valid JSON"}, /* json-c accepts such keys */
            {"{/*\"*/\"a\":[1]}", "not valid JSON"},
            {"{\"a\":[-NaN]}", "not valid JSON"},
            {"{[1]:1}", "not valid JSON"},
            {"{\"a\"[1]}", "not valid JSON"},
            {"{\"a\":1[1]}", "not valid JSON"},
            {"{\"a\":[1]1}", "not valid JSON"},
            {"[[[[[[[[1]]]]]]]]", "not valid JSON"}, /* one level too deep */
            {"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":[[[1]]]}}}}}", "not valid JSON"},
    };
    static char deep[100001];

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        Text t = {.d.root = (struct json_object *)1};
        const char *reason;

        print_message("# %s\n", cases[i].text);
        assert_int_equal(parse(cases[i].text, 8, &t, &reason), -EBADMSG);
        assert_string_equal(reason, cases[i].reason);
        assert_ptr_equal(t.d.root, (struct json_object *)1);
        free(t.copy);
    }
    for (int k = 0; k < 2; k++) {
        _cleanup_text_ Text t = {0};
        const char *reason;

        memset(deep, k ? '{' : '[', sizeof(deep) - 1);
        assert_int_equal(parse(deep, 12, &t, &reason), -EBADMSG);
    }
}

/* json-c reads these values, NaN included. They are no columns. json-c gets a mark such as [6] in
 * place of each column, and none of these values may be taken for such a mark. */
static void what_is_no_column_is_refused(void **state)
{
    static const char *const values[] = {
            "1",
            "\"1\"",
            "\"[1]\"",
            "\"1,2\"",
            "\"\\\"1,2\\\"\"",
            "null",
            "true",
            "{}",
            "{\"a\":[1]}",
            "[1.0]",
            "[6.0]",
            "[6e0]",
            "[-6.5]",
            "[\"6\"]",
            "[null]",
            "[true]",
            "[1,\"2\"]",
            "[1,2.5]",
            "[1,[2,{}]]",
            "[{\"a\":1}]",
            "[1,null]",
            "[[6],1.5]",
            "[[6],\"x\"]",
            "[\"[6]\"]",
            "[1e400]",
            "[NaN]",
            "[1,-Infinity]",
            "[Infinity]",
            "[{}]",
            "[1,2,false]",
            "[\"\\\"[6]\"]",
    };

    for (size_t i = 0; i < ELEMENTSOF(values); i++) {
        _cleanup_text_ Text t = {0};
        char text[100];
        JsonColumn c;

        print_message("# %s\n", values[i]);
        snprintf(text, sizeof(text), "{\"b\":[9,9],\"a\":%s}", values[i]);
        assert_int_equal(column(text, &t, &c), -EBADMSG);
        assert_int_equal(json_get_column(&t.d, t.d.root, "b", 2, &c), 0);
    }
}

/* A column is refused where an array of strings is expected. */
static void columns_are_nothing_else(void **state)
{
    _cleanup_text_ Text t = {0};
    struct json_object *a;
    const char *reason, *s;

    assert_int_equal(parse("{\"a\":[1,2],\"b\":[\"[1,2]\",\"]\\\\\"],\"c\":[]}", 8, &t, &reason),
                     0);
    assert_int_equal(json_get_array(t.d.root, "a", 9, &a), 0);
    assert_int_equal(json_at_string(a, 0, &s), -EBADMSG);
    assert_int_equal(json_get_array(t.d.root, "b", 9, &a), 0);
    assert_int_equal(json_object_array_length(a), 2);
    assert_int_equal(json_at_string(a, 0, &s), 0);
    assert_string_equal(s, "[1,2]");
    assert_int_equal(json_at_string(a, 1, &s), 0);
    assert_string_equal(s, "]\\");
    assert_int_equal(json_get_array(t.d.root, "c", 9, &a), 0);
    assert_int_equal(json_object_array_length(a), 0);
}

static void tables_have_columns_of_one_length(void **state)
{
    static const char *const keys[] = {"a", "b", "c"};
    _cleanup_text_ Text t = {0}, u = {0};
    JsonColumn c[3];
    const char *reason;
    uint64_t x;

    assert_int_equal(parse("{\"a\":[1,2],\"b\":[[],[1]],\"c\":[3,4]}", 8, &t, &reason), 0);
    assert_int_equal(json_get_columns(&t.d, t.d.root, keys, 3, 2, c), 0);
    assert_int_equal(json_next_u64(&c[2], 3, &x), 0);
    assert_int_equal(x, 3);
    assert_int_equal(json_get_columns(&t.d, t.d.root, keys, 3, 1, c), -EBADMSG);
    assert_int_equal(parse("{\"a\":[1,2],\"b\":[[],[1]],\"c\":[3]}", 8, &u, &reason), 0);
    assert_int_equal(json_get_columns(&u.d, u.d.root, keys, 3, 2, c), -EBADMSG);
    assert_int_equal(json_get_columns(&u.d, u.d.root, keys, 2, 2, c), 0);
}

static void too_many_values_are_refused(void **state)
{
    static const char element[] = "1.5,";
    size_t n = JSON_VALUES_MAX + 1, l = strlen(element);
    _cleanup_free_ char *text = malloc(n * l + 3);
    _cleanup_json_document_ JsonDocument d = {0};
    const char *reason = NULL;

    assert_non_null(text);
    text[0] = '[';
    for (size_t i = 0; i < n; i++)
        memcpy(text + 1 + i * l, element, l);
    text[n * l] = ']';
    assert_int_equal(json_document_parse(text, n * l + 1, 8, &d, &reason), -EBADMSG);
    assert_string_equal(reason, "too many values");
    /* An array of integers is a column. */
    for (size_t i = 0; i < n; i++)
        memcpy(text + 1 + i * l, "115,", l);
    text[n * l] = ']';
    assert_int_equal(json_document_parse(text, n * l + 1, 8, &d, &reason), 0);
}

/* Checks that an array, as json-c has read it, equals the column. */
static void same_column(struct json_object *a, JsonColumn c)
{
    assert_int_equal(json_object_array_length(a), c.n);
    for (size_t i = 0; i < json_object_array_length(a); i++) {
        struct json_object *v = json_object_array_get_idx(a, i);
        JsonColumn inner;
        int64_t x;

        if (json_object_is_type(v, json_type_array)) {
            assert_int_equal(json_next_column(&c, SIZE_MAX, &inner), 0);
            same_column(v, inner);
        } else {
            assert_true(json_object_is_type(v, json_type_int));
            assert_int_equal(json_next_i64(&c, &x), 0);
            assert_true(x == json_object_get_int64(v));
        }
    }
    assert_int_equal(c.n, 0);
}

static bool holds_integers_only(struct json_object *v)
{
    if (!json_object_is_type(v, json_type_array))
        return json_object_is_type(v, json_type_int);
    for (size_t i = 0; i < json_object_array_length(v); i++)
        if (!holds_integers_only(json_object_array_get_idx(v, i)))
            return false;
    return true;
}

/* Returns true if a number in the text begins with a zero and another digit. json-c accepts such a
 * number, but JSON does not. */
static bool has_leading_zero(const char *text)
{
    for (const char *p = text; *p; p++)
        if (*p == '0' && p[1] >= '0' && p[1] <= '9' && (p == text || p[-1] < '0' || p[-1] > '9'))
            return true;
    return false;
}

/* The number of texts that both readers read. With sanitizers json-c takes a minute for all of
 * them. */
#ifdef __SANITIZE_ADDRESS__
#define N_TEXTS 50000U
#else
#define N_TEXTS 400000U
#endif

/* Compares the reader with json-c on random short texts of the significant bytes. Both accept and
 * refuse the same texts, except for leading zeros, and read the same values. */
static void agrees_with_json_c(void **state)
{
    static const char alphabet[] = "[[[]]],,,1129-0 \n\"\\n.{}:e/*";
    unsigned n_columns = 0, n_others = 0, n_refused = 0;
    uint64_t seed = 42;

    for (unsigned k = 0; k < N_TEXTS; k++) {
        _cleanup_json_ struct json_object *whole = NULL;
        _cleanup_text_ Text t = {0};
        struct json_object *a;
        char text[40] = "{\"a\":[";
        size_t n = strlen(text), l;
        const char *reason;
        JsonColumn c;
        int r, of_json_c;

        seed = seed * 6364136223846793005U + 1442695040888963407U;
        l = (seed >> 40) % 9;
        for (size_t i = 0; i < l; i++) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            text[n++] = alphabet[(seed >> 40) % (sizeof(alphabet) - 1)];
        }
        strcpy(text + n, "]}");
        of_json_c = json_parse(text, strlen(text), 5, &whole, &reason);
        r = parse(text, 5, &t, &reason);
        if (r != of_json_c && !(r < 0 && has_leading_zero(text)))
            fail_msg("%s: %d, json-c %d", text, r, of_json_c);
        n_refused += r < 0;
        if (r < 0)
            continue;
        assert_true(json_object_object_get_ex(whole, "a", &a));
        r = json_get_column(&t.d, t.d.root, "a", SIZE_MAX, &c);
        if ((r == 0) != (json_object_is_type(a, json_type_array) && holds_integers_only(a)))
            fail_msg("%s: %d", text, r);
        if (r == 0)
            same_column(a, c);
        n_columns += r == 0;
        n_others += r < 0;
    }
    print_message("# %u columns, %u others, %u refused\n", n_columns, n_others, n_refused);
    assert_true(n_columns > N_TEXTS / 80 && n_others > N_TEXTS / 2000 && n_refused > N_TEXTS / 80);
}

/* Brackets without a match do not make the reader descend deeper than `depth`. A reader that needs
 * quadratic time needs most of a minute of processor time for this text. */
static void brackets_that_close_nothing_are_refused(void **state)
{
    enum { N = 300000 };
    _cleanup_free_ char *text = malloc(2 * N + 2);
    const clock_t begun = clock();
    const char *reason;

    assert_non_null(text);
    memset(text, ']', N);
    memset(text + N, '[', N);
    strcpy(text + 2 * N, "t");
    for (size_t skip = 0; skip < N; skip += N - 1) {
        _cleanup_text_ Text t = {0};

        assert_int_equal(parse(text + skip, 8, &t, &reason), -EBADMSG);
        assert_string_equal(reason, "not valid JSON");
    }
    assert_true(clock() - begun < 5 * CLOCKS_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(columns_are_read),
            cmocka_unit_test(elements_out_of_range_are_refused),
            cmocka_unit_test(what_is_wrong_is_refused),
            cmocka_unit_test(what_is_no_column_is_refused),
            cmocka_unit_test(columns_are_nothing_else),
            cmocka_unit_test(tables_have_columns_of_one_length),
            cmocka_unit_test(too_many_values_are_refused),
            cmocka_unit_test(brackets_that_close_nothing_are_refused),
            cmocka_unit_test(agrees_with_json_c),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
