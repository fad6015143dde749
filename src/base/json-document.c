/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the columns of a document from its text and leaves the rest to json-c.
 *
 * Why this file exists although json-c is linked: json-c allocates an object for each number. To
 * read a model of 7.3 MB (120,000 files of 22 users, the largest that learning keeps), json-c alone
 * needs 184 MB and 0.7 s. This file needs 11 MB and 0.05 s. model_from_json(), which calls it,
 * needs 86 MB and 0.25 s in all (2026-11-22, Debian 12, json-c 0.16). Learning runs below
 * MemoryMax=256M with two models in memory, so json-c alone would need too much memory. A binary
 * container would be smaller still, but administrators merge, ship and read models.
 *
 * How: json-c gets a copy of the document in which each column is replaced by [N], where N is the
 * place of the column's bracket in the text. An array with one integer in the copy is always a
 * mark, never content of the document, because every array of the document that holds only integers
 * was replaced. An empty array stays, because its type is unknown. */

#include "base/json-document.h"

#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns whether the byte is allowed outside strings. json-c also accepts comments and 'keys' in
 * single quotes; this scanner could not find the strings in such text. */
static bool is_json(char c)
{
    return is_space(c) || is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("[]{},:+-.", c));
}

/* Returns the end of the integer at p, or NULL. The syntax is that of JSON, -?(0|[1-9][0-9]*);
 * json-c would also accept 007. */
static const char *skip_integer(const char *p, const char *end)
{
    const char *digits = *p == '-' ? p + 1 : p;

    for (p = digits; p < end && is_digit(*p);)
        p++;
    return p == digits || (*digits == '0' && p - digits > 1) ? NULL : p;
}

/* Checks whether the array at p is a column of at most `depth` levels. Returns 1 and the column's
 * end if it is one; 0 if the array is empty, too deep or contains anything but integers and arrays;
 * -EBADMSG if its syntax is wrong; -ENODATA if the text ends inside it. */
static int find_column(const char *p, const char *end, int depth, const char **ret_end)
{
    enum {
        FIRST,
        NEXT,
        AFTER
    } expect =
            NEXT; /* after "[": element or "]"; after ",": element; after an element: "," or "]" */
    const char *begin = p;
    bool empty = true;
    int level = 0;

    while (p < end) {
        char c = *p;

        if (is_space(c)) {
            p++;
        } else if (c == '-' || is_digit(c)) {
            if (expect == AFTER)
                return -EBADMSG;
            /* "-" may be the last byte of the text, or begin a number that only json-c reads
             * (-Infinity). */
            if (c == '-' && (p + 1 == end || !is_digit(p[1])))
                return 0;
            p = skip_integer(p, end);
            if (!p)
                return -EBADMSG;
            expect = AFTER;
            empty = false;
        } else if (c == ',') {
            if (expect != AFTER)
                return -EBADMSG;
            expect = NEXT;
            p++;
        } else if (c == '[') {
            if (expect == AFTER)
                return -EBADMSG;
            if (++level > depth)
                return 0;
            expect = FIRST;
            empty = empty && p == begin;
            p++;
        } else if (c == ']') {
            if (expect == NEXT)
                return -EBADMSG;
            expect = AFTER;
            p++;
            if (--level == 0) {
                *ret_end = p;
                return !empty;
            }
        } else {
            return 0;
        }
    }
    return -ENODATA;
}

/* Returns the end of the string at p, or the end of the text if the string does not end. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\' && end - p > 1)
            p++;
    return p < end ? p + 1 : end;
}

typedef struct Rest {
    char *buf;
    size_t n, allocated;
} Rest;

static int append(Rest *x, const char *s, size_t n)
{
    int r = n == 0 ? 0 : grow_array(&x->buf, &x->allocated, x->n + n, 1);

    if (r < 0 || n == 0)
        return r;
    memcpy(x->buf + x->n, s, n);
    x->n += n;
    return 0;
}

/* Copies the document with a mark in place of each column. */
static int without_columns(const char *text, size_t size, int depth, Rest *ret,
                           const char **ret_reason)
{
    const char *end = text + size, *done = text, *after;
    size_t n_values = 0;
    int level = 0, r;

    for (const char *p = text; p < end;) {
        char mark[32];

        if (*p == '"') {
            p = skip_string(p, end);
            continue;
        }
        if (!is_json(*p)) {
            *ret_reason = "not valid JSON";
            return -EBADMSG;
        }
        if (*p == ',' || *p == ':' || *p == '[' || *p == '{')
            n_values++;
        if (n_values > JSON_VALUES_MAX) {
            *ret_reason = "too many values";
            return -EBADMSG;
        }
        if (*p == '[') {
            /* json-c counts the document itself as a level. */
            r = find_column(p, end, depth - 1 - level, &after);
            if (r < 0) {
                *ret_reason = r == -ENODATA ? "truncated" : "not valid JSON";
                return -EBADMSG;
            }
            if (r > 0) {
                r = append(ret, done, (size_t)(p - done));
                if (r >= 0)
                    r = append(ret, mark, (size_t)sprintf(mark, "[%zu]", (size_t)(p - text)));
                if (r < 0)
                    return r;
                p = done = after;
                n_values++;
                continue;
            }
        }
        if (*p == '[' || *p == '{')
            level++;
        else if ((*p == ']' || *p == '}') && --level < 0) {
            /* With a negative level, `depth` would not limit the nesting of arrays, and the scanner
             * would read nested arrays once for each level of nesting. */
            *ret_reason = "not valid JSON";
            return -EBADMSG;
        }
        p++;
    }
    return append(ret, done, (size_t)(end - done));
}

int json_document_parse(const char *text, size_t size, int depth, JsonDocument *ret,
                        const char **ret_reason)
{
    struct json_object *root;
    Rest rest = {0};
    int r;

    /* json-c refuses longer text, and json_parse() reports that error. */
    if (size > INT32_MAX)
        return json_parse(text, size, depth, &root, ret_reason);
    r = without_columns(text, size, depth, &rest, ret_reason);
    if (r >= 0)
        r = json_parse(rest.buf, rest.n, depth, &root, ret_reason);
    free(rest.buf);
    if (r < 0)
        return r;
    *ret = (JsonDocument){text, size, root};
    return 0;
}

void json_document_done(JsonDocument *d)
{
    json_object_put(d->root);
    *d = (JsonDocument){0};
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && is_space(*p))
        p++;
    return p;
}

/* Opens the array at p, which find_column() has checked. Nevertheless this function never reads
 * beyond `end`. */
static int open_column(const char *p, const char *end, size_t max, JsonColumn *ret)
{
    JsonColumn c = {.at = p + 1};
    size_t level = 1;

    for (p = skip_space(p + 1, end); p < end; p++) {
        if (*p == '[')
            level++;
        else if (*p == ']' && --level == 0)
            break;
        if (level == 1 && *p == ',')
            c.n++;
        else if (c.n == 0)
            c.n = 1;
    }
    if (p >= end || c.n > max)
        return -EBADMSG;
    c.end = p;
    *ret = c;
    return 0;
}

int json_get_column(const JsonDocument *d, struct json_object *o, const char *key, size_t max,
                    JsonColumn *ret)
{
    struct json_object *a, *at;
    int64_t place;

    if (json_get_array(o, key, 1, &a) < 0)
        return -EBADMSG;
    if (json_object_array_length(a) == 0) {
        *ret = (JsonColumn){0};
        return 0;
    }
    at = json_object_array_get_idx(a, 0);
    if (!json_object_is_type(at, json_type_int))
        return -EBADMSG;
    place = json_object_get_int64(at);
    if (place < 0 || (uint64_t)place >= d->size || d->text[place] != '[')
        return -EBADMSG;
    return open_column(d->text + place, d->text + d->size, max, ret);
}

int json_get_columns(const JsonDocument *d, struct json_object *o, const char *const *keys,
                     size_t n_keys, size_t max, JsonColumn *ret)
{
    for (size_t k = 0; k < n_keys; k++)
        if (json_get_column(d, o, keys[k], max, &ret[k]) < 0 || ret[k].n != ret[0].n)
            return -EBADMSG;
    return 0;
}

/* Moves past an element that ends at p and past the comma that follows it. */
static int step(JsonColumn *c, const char *p)
{
    c->at = skip_space(p, c->end);
    if (c->at < c->end && *c->at++ != ',')
        return -EBADMSG;
    c->n--;
    return 0;
}

static int next_integer(JsonColumn *c, bool *ret_negative, uint64_t *ret)
{
    const char *p = skip_space(c->at, c->end), *after;
    uint64_t x = 0;

    if (c->n == 0 || p >= c->end || !(after = skip_integer(p, c->end)))
        return -EBADMSG;
    *ret_negative = *p == '-';
    for (p += *ret_negative; p < after; p++)
        if (__builtin_mul_overflow(x, 10U, &x) ||
            __builtin_add_overflow(x, (uint64_t)(*p - '0'), &x))
            return -EBADMSG;
    *ret = x;
    return step(c, after);
}

int json_next_u64(JsonColumn *c, uint64_t max, uint64_t *ret)
{
    bool negative;
    uint64_t x;

    if (next_integer(c, &negative, &x) < 0 || (negative && x > 0) || x > max)
        return -EBADMSG;
    *ret = x;
    return 0;
}

int json_next_i64(JsonColumn *c, int64_t *ret)
{
    bool negative;
    uint64_t x;

    if (next_integer(c, &negative, &x) < 0 || x > (uint64_t)INT64_MAX + negative)
        return -EBADMSG;
    *ret = negative ? (int64_t)-x : (int64_t)x;
    return 0;
}

int json_next_column(JsonColumn *c, size_t max, JsonColumn *ret)
{
    const char *p = skip_space(c->at, c->end);
    JsonColumn inner;

    if (c->n == 0 || p >= c->end || *p != '[' || open_column(p, c->end, max, &inner) < 0 ||
        step(c, inner.end + 1) < 0)
        return -EBADMSG;
    *ret = inner;
    return 0;
}
