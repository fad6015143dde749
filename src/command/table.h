/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tables that a program prints. One description of the columns serves text (libsmartcols,
 * table-text.c) and JSON (json-c, table-json.c), so both show the same. A cell may contain a table,
 * so a whole document can be one table.
 *
 * In text, columns are aligned below their titles, or, with table_print_fields(), the only row is
 * printed as "Title: value" lines. A table in a cell becomes a separate section below the table of
 * its row. In JSON a row is an object; a table in a cell is an array of objects. */

#include "base/macros.h"

#include <json-c/json.h>
#include <stdarg.h>

typedef enum CellType {
    CELL_STRING,      /* const char *, copied; NULL: unknown */
    CELL_PATH,        /* a string; a terminal that is too narrow shows only the end of the path */
    CELL_TEXT,        /* a string; such a terminal shows only its beginning */
    CELL_COUNT,       /* uint64_t; COUNT_UNKNOWN: unknown */
    CELL_BYTES,       /* uint64_t, COUNT_UNKNOWN: unknown; as text "4.0K" */
    CELL_TIMESPAN,    /* usec_t, COUNT_UNKNOWN: unknown; as text "1.50s" */
    CELL_REALTIME,    /* usec_t, COUNT_UNKNOWN: unknown; as text local date and time */
    CELL_PROBABILITY, /* double, as text a percentage; below 0: unknown */
    CELL_NUMBER,      /* double, as text with one decimal; below 0: unknown */
    CELL_PRECISE,     /* CELL_NUMBER with three decimals */
    CELL_BOOLEAN,     /* int, as text "yes" or "no" */
    CELL_TABLE,       /* Table *, which the cell then owns; NULL: none */
    CELL_JSON,        /* json_object *, which the cell then owns; never printed as text */
} CellType;

/* Unknown values are "-" in text and null in JSON. */
#define COUNT_UNKNOWN UINT64_MAX

typedef struct Column {
    const char *title; /* in text; NULL: the column is in JSON only */
    const char *key;   /* in JSON; NULL: the column is in text only */
    CellType type;
} Column;

typedef struct Table Table;

/* Returns a table with these columns. An entry without title and key ends the list. If `columns` is
 * NULL, the table has no columns yet. Titles and keys are not copied. If memory runs out, the
 * function returns a spare table: its rows take ownership as usual, and printing it returns
 * -ENOMEM. While the spare table is in use, the function returns NULL. For NULL the functions below
 * do nothing, printing returns -ENOMEM, and tables and JSON in the arguments of table_row() are
 * never freed. */
Table *table_new(const Column *columns);
Table *table_free(Table *t);
DEFINE_CLEANUP(Table *, table_free);
#define _cleanup_table_ _cleanup_(table_freep)

/* Adds a column. All columns come before the first row. */
void table_column(Table *t, const char *title, const char *key, CellType type);

/* Adds a row with one argument for each column. CellType states the C type of the argument. */
void table_row(Table *t, ...);
void table_row_va(Table *t, va_list ap);

/* Sets the columns that a terminal does not show if it is too narrow for the table. `titles` ends
 * with NULL and is not copied. An entry has one title, or several with a comma between them, which
 * are left out together. The columns of the first entry are left out first. Output that is not a
 * terminal has all columns. */
void table_set_optional(Table *t, const char *const *titles);

/* A table in a cell is printed as a section. table_set_heading() sets the line above the section of
 * such a table; without this call the line is the title of the cell's column. If the table holds
 * only the first rows, table_set_total() sets the number of all rows. The last line of the section
 * then names --limit=. */
void table_set_heading(Table *t, const char *format, ...) _printf_(2, 3);
void table_set_total(Table *t, size_t n_rows);

size_t table_n_rows(const Table *t);

/* Print to standard output: all rows, or the only row as fields. Control characters, and bytes that
 * are not valid in the locale, are printed as \xNN. Returns 0, -ENOMEM, or the error of writing. */
int table_print(const Table *t);
int table_print_fields(const Table *t);

/* table_to_json() returns an array of objects, table_fields_to_json() the first row as an object.
 * The caller owns the reference. Both return NULL if memory ran out, also while the table was
 * filled. table_fields_to_json() returns NULL also if the table has no row. */
json_object *table_to_json(const Table *t);
json_object *table_fields_to_json(const Table *t);

/* Returns a JSON string. JSON is UTF-8 and file names are any bytes: if `s` is not valid UTF-8,
 * json_escape_bytes() escapes it. Returns NULL if out of memory. */
json_object *table_json_string(const char *s);
