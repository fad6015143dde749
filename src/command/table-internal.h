/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by table.c, table-text.c and table-json.c. */

#include "command/table.h"

#define TABLE_COLUMNS_MAX 64

typedef union Cell {
    char *string;
    uint64_t number;
    double real;
    Table *table;
    json_object *json;
} Cell;

struct Table {
    Column columns[TABLE_COLUMNS_MAX];
    size_t n_columns;
    Cell *cells; /* row by row */
    size_t n_cells, allocated_cells;
    char *heading;
    const char *const *optional; /* table_set_optional(); NULL: none */
    size_t n_total; /* number of all rows, also of those that were not added; 0: all were added */
    bool failed;    /* memory ran out */
};

static inline const Cell *table_cell(const Table *t, size_t row, size_t column)
{
    return t->cells + row * t->n_columns + column;
}

/* Returns true if a cell of this type has no value. Such a cell is printed as "-" in text and as
 * null in JSON. */
bool table_cell_is_unknown(CellType type, const Cell *c);
