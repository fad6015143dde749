/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/json-util.h"
#include "command/table-internal.h"

json_object *table_json_string(const char *s)
{
    _cleanup_free_ char *escaped = NULL;

    if (json_is_utf8(s))
        return json_object_new_string(s);
    escaped = json_escape_bytes(s);
    return escaped ? json_object_new_string(escaped) : NULL;
}

/* Returns NULL if out of memory. */
static json_object *cell_to_json(CellType type, const Cell *c)
{
    switch (type) {
    case CELL_STRING:
    case CELL_PATH:
    case CELL_TEXT:
        return table_json_string(c->string);
    case CELL_PROBABILITY:
    case CELL_NUMBER:
    case CELL_PRECISE:
        return json_object_new_double(c->real);
    case CELL_BOOLEAN:
        return json_object_new_boolean((json_bool)c->number);
    case CELL_COUNT:
    case CELL_BYTES:
    case CELL_TIMESPAN:
    case CELL_REALTIME:
        return json_object_new_uint64(c->number);
    case CELL_TABLE:
        return table_to_json(c->table);
    case CELL_JSON:
        return json_object_get(c->json);
    }
    return NULL;
}

static json_object *row_to_json(const Table *t, size_t row)
{
    _cleanup_json_ json_object *o = json_object_new_object();

    for (size_t k = 0; o && k < t->n_columns; k++) {
        const Column *column = t->columns + k;
        const Cell *c = table_cell(t, row, k);
        json_object *v = NULL;

        if (!column->key)
            continue;
        if (!table_cell_is_unknown(column->type, c) && !(v = cell_to_json(column->type, c)))
            return NULL;
        if (!json_add_member(o, column->key, v))
            return NULL;
    }
    return TAKE_PTR(o);
}

json_object *table_to_json(const Table *t)
{
    _cleanup_json_ json_object *a = NULL;

    if (!t || t->failed)
        return NULL;
    a = json_object_new_array();
    for (size_t i = 0; a && i < table_n_rows(t); i++) {
        json_object *o = row_to_json(t, i);

        if (!o || !json_add_item(a, o))
            return NULL;
    }
    return TAKE_PTR(a);
}

json_object *table_fields_to_json(const Table *t)
{
    if (!t || t->failed || t->n_cells == 0)
        return NULL;
    return row_to_json(t, 0);
}
