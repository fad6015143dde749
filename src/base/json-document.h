/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* JSON documents that are tables: json-c makes an object of each number, some 50 bytes of a digit
 * or two. Here columns (arrays that hold nothing but integers, and such arrays) stay the text they
 * are, and are read from it in their order; json-c sees what is left. Pure. */

#include "base/json-util.h"

/* Values outside columns that a document may have: json-c needs some 100 bytes for each, and it is
 * to be refused before that, not to eat the memory. Room for the names of the largest trace. */
#define JSON_VALUES_MAX (1U << 22)

/* Everything in it borrows from the text, which must stay as it is. */
typedef struct JsonDocument {
    const char *text;
    size_t size;
    struct json_object *root; /* where a column is, nothing but json_get_column() can read */
} JsonDocument;

/* Like json_parse(), and as strict; moreover -EBADMSG if there are more than JSON_VALUES_MAX values
 * beside the columns. */
int json_document_parse(const char *text, size_t size, int depth, JsonDocument *ret,
                        const char **ret_reason);
void json_document_done(JsonDocument *d);
#define _cleanup_json_document_ _cleanup_(json_document_done)

/* What is left of a column: plain values, nothing to free. Only json_get_column(s)() and
 * json_next_column() make one. */
typedef struct JsonColumn {
    const char *at, *end;
    size_t n; /* elements */
} JsonColumn;

/* A member of `o`, which is part of d->root. -EBADMSG if it is missing, no array, holds anything
 * but integers and arrays of them, or more than `max` elements. */
int json_get_column(const JsonDocument *d, struct json_object *o, const char *key, size_t max,
                    JsonColumn *ret);

/* The columns of a table, all of one length: ret[i] for keys[i]. -EBADMSG. */
int json_get_columns(const JsonDocument *d, struct json_object *o, const char *const *keys,
                     size_t n_keys, size_t max, JsonColumn *ret);

/* Takes the next element. -EBADMSG if there is none, or it is none of these or out of range; the
 * column is not to be used any more then. */
int json_next_u64(JsonColumn *c, uint64_t max, uint64_t *ret);
int json_next_i64(JsonColumn *c, int64_t *ret);
int json_next_column(JsonColumn *c, size_t max, JsonColumn *ret);
