/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "command/table.h"

#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* Checks what `print` writes to standard output. */
static void assert_prints(int (*print)(const Table *t), const Table *t, const char *expected)
{
    char text[2048] = "";
    int saved, fd = memfd_create("stdout", 0);
    ssize_t n;

    assert_true(fd >= 0);
    fflush(stdout);
    saved = dup(STDOUT_FILENO);
    assert_true(dup2(fd, STDOUT_FILENO) >= 0);
    assert_int_equal(print(t), 0);
    fflush(stdout);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    close(saved);
    n = pread(fd, text, sizeof(text) - 1, 0);
    assert_true(n >= 0);
    close(fd);
    assert_string_equal(text, expected);
}

static void assert_json(json_object *o, const char *expected)
{
    assert_non_null(o);
    assert_string_equal(json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE),
                        expected);
    json_object_put(o);
}

static const Column every_type[] = {
        {"NAME", "name", CELL_STRING},  {"N", "n", CELL_COUNT},
        {"BYTES", "bytes", CELL_BYTES}, {"TIME", "time_usec", CELL_TIMESPAN},
        {"P", "p", CELL_PROBABILITY},   {"X", "x", CELL_NUMBER},
        {"Y", "y", CELL_PRECISE},       {"B", "b", CELL_BOOLEAN},
        {"PATH", "path", CELL_PATH},    {0},
};

static void test_every_type(void **state)
{
    _cleanup_table_ Table *t = table_new(every_type);

    table_row(t, "a", (uint64_t)12, (uint64_t)4096, (uint64_t)1500000, 0.25, 1.5, 0.125, 1, "/x");
    table_row(t, NULL, COUNT_UNKNOWN, COUNT_UNKNOWN, COUNT_UNKNOWN, -1.0, -1.0, -1.0, 0, NULL);
    assert_int_equal(table_n_rows(t), 2);
    assert_prints(table_print, t,
                  "NAME   N  BYTES   TIME      P    X      Y    B  PATH\n"
                  "a     12   4.0K  1.50s  25.0%  1.5  0.125  yes  /x\n"
                  "-      -      -      -      -    -      -   no  -\n");
    assert_json(table_to_json(t),
                "[{\"name\":\"a\",\"n\":12,\"bytes\":4096,\"time_usec\":1500000,\"p\":0.25,"
                "\"x\":1.5,\"y\":0.125,\"b\":true,\"path\":\"/x\"},"
                "{\"name\":null,\"n\":null,\"bytes\":null,\"time_usec\":null,\"p\":null,"
                "\"x\":null,\"y\":null,\"b\":false,\"path\":null}]");
}

/* Tests columns that only one kind of output contains, and tables in cells. */
static void test_document(void **state)
{
    static const Column document[] = {
            {"Title", "title", CELL_STRING}, {NULL, "kind", CELL_STRING},
            {"Only text", NULL, CELL_COUNT}, {"Rows", "rows", CELL_TABLE},
            {NULL, "hidden", CELL_TABLE},    {"Missing", "missing", CELL_TABLE},
            {NULL, "list", CELL_JSON},       {0},
    };
    static const Column row[] = {{"A", "a", CELL_COUNT}, {0}};
    _cleanup_table_ Table *t = table_new(document);
    Table *rows = table_new(row), *hidden = table_new(row);
    json_object *list = json_object_new_array();

    table_row(rows, (uint64_t)1);
    table_row(rows, (uint64_t)2);
    table_set_total(rows, 5);
    table_row(hidden, (uint64_t)3);
    json_object_array_add(list, json_object_new_int(7));
    table_row(t, "x", "test", (uint64_t)9, rows, hidden, NULL, list);
    assert_prints(table_print_fields, t,
                  "    Title: x\n"
                  "Only text: 9\n"
                  "\nRows\nA\n1\n2\n(3 more: --limit=0 shows all)\n");
    assert_json(table_fields_to_json(t),
                "{\"title\":\"x\",\"kind\":\"test\",\"rows\":[{\"a\":1},{\"a\":2}],"
                "\"hidden\":[{\"a\":3}],\"missing\":null,\"list\":[7]}");
    table_set_heading(rows, "%d rows", 5);
    assert_prints(table_print_fields, t,
                  "    Title: x\n"
                  "Only text: 9\n"
                  "\n5 rows\nA\n1\n2\n(3 more: --limit=0 shows all)\n");
}

/* A section without rows is not printed; in JSON it is an empty array. */
static void test_empty_section(void **state)
{
    static const Column document[] = {
            {"Title", "title", CELL_STRING}, {"Rows", "rows", CELL_TABLE}, {0}};
    static const Column row[] = {{"A", "a", CELL_COUNT}, {0}};
    _cleanup_table_ Table *t = table_new(document);

    table_row(t, "x", table_new(row));
    assert_prints(table_print_fields, t, "Title: x\n");
    assert_json(table_fields_to_json(t), "{\"title\":\"x\",\"rows\":[]}");
}

/* Names of files can contain any bytes. */
static void test_hostile_names(void **state)
{
    static const Column columns[] = {{"NAME", "name", CELL_PATH}, {0}};
    _cleanup_table_ Table *t = table_new(columns);

    table_row(t, "/b\xff\x1b[31mar\n");
    table_row(t, "/gr\xc3\xbc\xc3\x9f"
                 "e\x07");
    table_row(t, "/\xc2\x9b"
                 "1A");
    assert_prints(table_print, t,
                  "NAME\n"
                  "/b\\xff\\x1b[31mar\\x0a\n"
                  "/gr\xc3\xbc\xc3\x9f"
                  "e\\x07\n"
                  "/\\xc2\\x9b1A\n");
    assert_json(table_to_json(t), "[{\"name\":\"/b%FF%1B[31mar%0A\"},"
                                  "{\"name\":\"/gr\xc3\xbc\xc3\x9f"
                                  "e\\u0007\"},"
                                  "{\"name\":\"/\xc2\x9b"
                                  "1A\"}]");
}

/* After a failure in one table, the whole document counts as out of memory. */
static void test_failure_sticks(void **state)
{
    static const Column row[] = {{"A", "a", CELL_COUNT}, {0}};
    static const Column document[] = {{"Rows", "rows", CELL_TABLE}, {0}};
    _cleanup_table_ Table *t = table_new(document);
    Table *rows = table_new(row);

    table_row(rows, (uint64_t)1);
    table_column(rows, "B", "b", CELL_COUNT); /* a column after the first row: a failure */
    table_row(t, rows);
    assert_int_equal(table_print_fields(t), -ENOMEM);
    assert_null(table_fields_to_json(t));
    assert_int_equal(table_print(NULL), -ENOMEM);
    assert_null(table_to_json(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_every_type),     cmocka_unit_test(test_document),
            cmocka_unit_test(test_empty_section),  cmocka_unit_test(test_hostile_names),
            cmocka_unit_test(test_failure_sticks),
    };

    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
