/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "command/table-internal.h"

#include <stdarg.h>
#include <string.h>

/* The table that table_new() returns when memory runs out. It takes ownership of the cells, so that
 * nothing leaks. */
static Table spare;
static bool spare_is_used;

static Table *take_spare(void)
{
    if (spare_is_used)
        return NULL;
    spare_is_used = true;
    spare = (Table){.failed = true};
    return &spare;
}

Table *table_new(const Column *columns)
{
    Table *t = calloc(1, sizeof(Table));

    if (!t)
        t = take_spare();
    for (const Column *c = columns; c && (c->title || c->key); c++)
        table_column(t, c->title, c->key, c->type);
    return t;
}

static void free_cell(CellType type, Cell *c)
{
    if (type == CELL_STRING || type == CELL_PATH || type == CELL_TEXT)
        free(c->string);
    else if (type == CELL_TABLE)
        table_free(c->table);
    else if (type == CELL_JSON)
        json_object_put(c->json);
}

Table *table_free(Table *t)
{
    if (!t)
        return NULL;
    for (size_t i = 0; i < t->n_cells; i++)
        free_cell(t->columns[i % t->n_columns].type, t->cells + i);
    free(t->cells);
    free(t->heading);
    if (t == &spare)
        spare_is_used = false;
    else
        free(t);
    return NULL;
}

void table_column(Table *t, const char *title, const char *key, CellType type)
{
    if (!t)
        return;
    if (t->n_columns == TABLE_COLUMNS_MAX || t->n_cells > 0) {
        t->failed = true;
        return;
    }
    t->columns[t->n_columns++] = (Column){title, key, type};
}

/* Reads the next argument of a row into a cell. Returns false if memory ran out. */
static bool read_cell(CellType type, va_list *ap, Cell *ret)
{
    const char *s;

    switch (type) {
    case CELL_STRING:
    case CELL_PATH:
    case CELL_TEXT:
        s = va_arg(*ap, const char *);
        ret->string = s ? strdup(s) : NULL;
        return !s || ret->string;
    case CELL_PROBABILITY:
    case CELL_NUMBER:
    case CELL_PRECISE:
        ret->real = va_arg(*ap, double);
        break;
    case CELL_BOOLEAN:
        ret->number = (uint64_t) !!va_arg(*ap, int);
        break;
    case CELL_COUNT:
    case CELL_BYTES:
    case CELL_TIMESPAN:
    case CELL_REALTIME:
        ret->number = va_arg(*ap, uint64_t);
        break;
    case CELL_TABLE:
        ret->table = va_arg(*ap, Table *);
        return !ret->table || !ret->table->failed;
    case CELL_JSON:
        ret->json = va_arg(*ap, json_object *);
        break;
    }
    return true;
}

void table_row_va(Table *t, va_list ap)
{
    va_list cells;
    bool full;

    if (!t)
        return;
    full = grow_array(&t->cells, &t->allocated_cells, t->n_cells + t->n_columns, sizeof(Cell)) < 0;
    t->failed = t->failed || full;
    va_copy(cells, ap);
    for (size_t i = 0; i < t->n_columns; i++) {
        Cell unused, *c = full ? &unused : t->cells + t->n_cells++;

        t->failed = !read_cell(t->columns[i].type, &cells, c) || t->failed;
        if (full)
            free_cell(t->columns[i].type, c);
    }
    va_end(cells);
}

void table_row(Table *t, ...)
{
    va_list ap;

    va_start(ap, t);
    table_row_va(t, ap);
    va_end(ap);
}

void table_set_optional(Table *t, const char *const *titles)
{
    if (t)
        t->optional = titles;
}

void table_set_heading(Table *t, const char *format, ...)
{
    va_list ap;

    if (!t)
        return;
    free(t->heading);
    va_start(ap, format);
    if (vasprintf(&t->heading, format, ap) < 0) {
        t->heading = NULL;
        t->failed = true;
    }
    va_end(ap);
}

void table_set_total(Table *t, size_t n_rows)
{
    if (t)
        t->n_total = n_rows;
}

size_t table_n_rows(const Table *t)
{
    return t && t->n_columns > 0 ? t->n_cells / t->n_columns : 0;
}

bool table_cell_is_unknown(CellType type, const Cell *c)
{
    switch (type) {
    case CELL_STRING:
    case CELL_PATH:
    case CELL_TEXT:
        return !c->string;
    case CELL_PROBABILITY:
    case CELL_NUMBER:
    case CELL_PRECISE:
        return !(c->real >= 0); /* also NaN */
    case CELL_COUNT:
    case CELL_BYTES:
    case CELL_TIMESPAN:
    case CELL_REALTIME:
        return c->number == COUNT_UNKNOWN;
    case CELL_BOOLEAN:
        return false;
    case CELL_TABLE:
        return !c->table;
    case CELL_JSON:
        return !c->json;
    }
    return true;
}
