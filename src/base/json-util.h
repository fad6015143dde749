/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes and reads JSON state files with json-c. The writer emits one member after the other, so a
 * large document never exists in memory as objects. The readers check every type and bound.
 * Pure. */

#include "base/macros.h"

#include <json-c/json.h>

DEFINE_CLEANUP(struct json_object *, json_object_put);
#define _cleanup_json_ _cleanup_(json_object_putp)

/* A JSON object that grows as text. The writer remembers the first error, so callers check only the
 * result of json_writer_finish(). */
typedef struct JsonWriter {
    char *buf;
    size_t n, allocated;
    int error;
    bool compact; /* write without line breaks; may be changed between members */
} JsonWriter;

void json_writer_done(JsonWriter *w);
#define _cleanup_json_writer_ _cleanup_(json_writer_done)

/* Add "key": value. Strings must be valid UTF-8; json_writer_add_bytes() escapes other bytes
 * (json_escape_bytes()). json_writer_add_flags() adds an array of the names whose bits are set in
 * `flags`: bit i has names[i]. */
void json_writer_add_string(JsonWriter *w, const char *key, const char *value);
void json_writer_add_bytes(JsonWriter *w, const char *key, const char *value);
void json_writer_add_u64(JsonWriter *w, const char *key, uint64_t value);
void json_writer_add_i64(JsonWriter *w, const char *key, int64_t value);
void json_writer_add_bool(JsonWriter *w, const char *key, bool value);
void json_writer_add_flags(JsonWriter *w, const char *key, unsigned flags, const char *const *names,
                           size_t n);

/* Open and close an object or array that is written member by member. For an element of an array
 * the key is NULL. */
void json_writer_open(JsonWriter *w, const char *key, char bracket);
void json_writer_close(JsonWriter *w, char bracket);

/* Adds a column: an array of n integers. `get` returns integer i. */
typedef int64_t (*json_column_t)(const void *table, size_t i);
void json_writer_add_column(JsonWriter *w, const char *key, const void *table, size_t n,
                            json_column_t get);

/* Adds a column whose integers are in the array v. */
void json_writer_add_numbers(JsonWriter *w, const char *key, const uint64_t *v, size_t n);

/* Adds a member whose value is already JSON text. The caller guarantees that the text is valid. */
void json_writer_add_text(JsonWriter *w, const char *key, const char *text);

/* Ends the document; the caller frees *ret. Returns 0 or -ENOMEM. */
int json_writer_finish(JsonWriter *w, char **ret, size_t *ret_size);

/* Like json_writer_finish() for a compact document: one line that ends with a newline. */
int json_writer_finish_line(JsonWriter *w, char **ret, size_t *ret_size);

/* Returns true if the string is valid UTF-8 (RFC 3629: no overlong forms, no surrogates). */
bool json_is_utf8(const char *s);

/* Names are bytes, and JSON is UTF-8. json_escape_bytes() writes bytes that are not valid UTF-8,
 * control characters and "%" as %XX. json_unescape_bytes() is the reverse. Both return a new
 * string, or NULL if out of memory. json_unescape_bytes() also returns NULL if a %XX is malformed
 * or is a NUL. */
char *json_escape_bytes(const char *s);
char *json_unescape_bytes(const char *s);

/* Add `value` to an object or an array, which then owns it. Free `value` and return false if memory
 * runs out, or if `to` is NULL. As a member a `value` of NULL is null; as an item it is refused. */
bool json_add_member(struct json_object *to, const char *key, struct json_object *value);
bool json_add_item(struct json_object *to, struct json_object *value);

/* Returns a new array of the names whose bits are set in `flags`: bit i has names[i]. NULL: out of
 * memory. */
struct json_object *json_flags(unsigned flags, const char *const *names, size_t n);

/* Formats a value with the flags JSON_C_TO_STRING_*. The text belongs to the value. Returns NULL if
 * out of memory, even if json-c reports no error. */
const char *json_to_text(struct json_object *o, int flags);

/* Returns true if memory has run out. A failed allocation is then not the fault of a file. */
bool memory_is_short(void);

/* Parses text that consists of one JSON value of at most `depth` levels. Only white space may
 * follow the value. Returns 0, -EBADMSG (with a static string in *ret_reason), or -ENOMEM. */
int json_parse(const char *text, size_t size, int depth, struct json_object **ret,
               const char **ret_reason);

/* Read a member of an object. Return 0, or -EBADMSG if the member is missing, has another type or
 * is out of range. Strings, arrays and objects are borrowed from `o`. */
int json_get_u64(struct json_object *o, const char *key, uint64_t max, uint64_t *ret);
int json_get_i64(struct json_object *o, const char *key, int64_t *ret);
int json_get_bool(struct json_object *o, const char *key, bool *ret);
int json_get_string(struct json_object *o, const char *key, const char **ret);
int json_get_array(struct json_object *o, const char *key, size_t max, struct json_object **ret);
int json_get_object(struct json_object *o, const char *key, struct json_object **ret);

/* Reads element i of an array as a number. Returns 0, or -EBADMSG if the element is not a number,
 * is negative or is above `max`. */
int json_at_u64(struct json_object *array, size_t i, uint64_t max, uint64_t *ret);

/* Reads element i of an array as a string, which is borrowed. Returns 0, or -EBADMSG if the element
 * is not a string or contains a NUL. */
int json_at_string(struct json_object *array, size_t i, const char **ret);
