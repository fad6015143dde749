/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads JSON documents that consist of tables. json-c allocates about 50 bytes for each number,
 * even if the number has one digit. Here columns (arrays of integers, also nested ones) stay in the
 * text and are read from it in their order. json-c parses the rest. Pure. */

#include "base/json-util.h"

/* The largest number of values outside columns. json-c allocates about 100 bytes for each value, so
 * a document with more values is refused before json-c parses it. The largest trace has fewer
 * names than this. */
#define JSON_VALUES_MAX (1U << 22)

/* The document borrows the text, so the text must stay valid and unchanged. json_document_done()
 * frees `root`. */
typedef struct JsonDocument {
    const char *text;
    size_t size;
    struct json_object *root; /* only json_get_column() can read the columns in it */
} JsonDocument;

/* Parses like json_parse() and is as strict. Returns -EBADMSG also if the document has more than
 * JSON_VALUES_MAX values outside columns. */
int json_document_parse(const char *text, size_t size, int depth, JsonDocument *ret,
                        const char **ret_reason);
void json_document_done(JsonDocument *d);
#define _cleanup_json_document_ _cleanup_(json_document_done)

/* The elements of a column that were not read yet. It owns no memory. Only json_get_column(),
 * json_get_columns() and json_next_column() create a JsonColumn. */
typedef struct JsonColumn {
    const char *at, *end;
    size_t n; /* number of elements left */
} JsonColumn;

/* Opens the column `key` of `o`, which is part of d->root. Returns 0, or -EBADMSG if the member is
 * missing, is not an array, contains anything but integers and arrays of integers, or has more than
 * `max` elements. */
int json_get_column(const JsonDocument *d, struct json_object *o, const char *key, size_t max,
                    JsonColumn *ret);

/* Opens the columns of a table: ret[i] for keys[i]. Returns 0, or -EBADMSG if a column cannot be
 * opened, or if their lengths differ. */
int json_get_columns(const JsonDocument *d, struct json_object *o, const char *const *keys,
                     size_t n_keys, size_t max, JsonColumn *ret);

/* Read the next element. Return 0, or -EBADMSG if there is none, if its type is wrong or if it is
 * out of range. After an error the column must not be used. */
int json_next_u64(JsonColumn *c, uint64_t max, uint64_t *ret);
int json_next_i64(JsonColumn *c, int64_t *ret);
int json_next_column(JsonColumn *c, size_t max, JsonColumn *ret);
