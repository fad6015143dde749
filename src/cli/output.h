/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Everything headstart prints is made as a table first; a table is printed as aligned text or as
 * JSON, so that both say the same (as systemd's format-table does it). */

#include "base/macros.h"

#include <json-c/json.h>

typedef enum JsonMode {
    JSON_OFF,
    JSON_SHORT,
    JSON_PRETTY,
    _JSON_MODE_MAX,
    _JSON_MODE_INVALID = -EINVAL,
} JsonMode;

JsonMode json_mode_from_string(const char *s);

/* The JSON text and a newline, to standard output. Takes the reference, also on failure. 0, -ENOMEM
 * (o is NULL), or the error of writing. */
int output_json(JsonMode mode, json_object *o);

/* A JSON string of a name that may be any bytes: as it is if it is UTF-8, else with the bytes that
 * are not as %XX. NULL if out of memory. */
json_object *output_json_string(const char *s);

typedef enum CellType {
    CELL_STRING,      /* const char *; NULL prints as "-", in JSON null */
    CELL_PATH,        /* the same; cut on the left where the terminal is too narrow */
    CELL_COUNT,       /* uint64_t; COUNT_UNKNOWN as NULL above */
    CELL_BYTES,       /* the same, printed as "4.0K" */
    CELL_TIMESPAN,    /* usec_t, the same */
    CELL_REALTIME,    /* usec_t, printed as local date and time */
    CELL_PROBABILITY, /* double, printed as a percentage; below 0: unknown */
    CELL_NUMBER,      /* double, printed with one decimal; below 0: unknown */
    CELL_PRECISE,     /* the same with three decimals */
    CELL_BOOLEAN,     /* int */
} CellType;

#define COUNT_UNKNOWN UINT64_MAX

typedef struct Table Table;

/* NULL if out of memory; all that follows then does nothing, and table_print() says -ENOMEM. */
Table *table_new(void);
Table *table_free(Table *t);
DEFINE_CLEANUP(Table *, table_free);
#define _cleanup_table_ _cleanup_(table_freep)

/* Adds a column: its heading, its key in JSON, its type. All columns come before the first row.
 * The strings are not copied. */
void table_column(Table *t, const char *title, const char *key, CellType type);

/* Adds a row: one argument of its type for each column, in order. Strings are copied. */
void table_row(Table *t, ...);

size_t table_n_rows(const Table *t);

/* Prints as text: a heading and the rows. Bytes that a terminal could take for commands are
 * escaped. 0 or -ENOMEM. */
int table_print(const Table *t);

/* Prints an empty line, the heading and the table, and how many of `n_all` rows the table left out.
 * Prints nothing if the table has no rows. 0 or -ENOMEM. */
int table_print_section(const char *heading, const Table *t, size_t n_all);

/* Prints one "Title: value" line a column (of the first row), colons below one another. */
int table_print_fields(const Table *t);

/* An array of objects; of the first row alone: an object. NULL if out of memory. The caller owns
 * the reference. */
json_object *table_to_json(const Table *t);
json_object *table_fields_to_json(const Table *t);

/* Columns of the terminal on standard output; 0: not a terminal, nothing is cut. */
unsigned output_width(void);
