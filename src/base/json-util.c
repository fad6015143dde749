/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/json-util.h"

#include "base/text.h"

#include <string.h>

/* If this allocation fails, the machine is out of memory. If it succeeds, and a file still needs
 * more memory than there is, the file is too large. */
#define MEMORY_PROBE_BYTES (1U << 20)

void json_writer_done(JsonWriter *w)
{
    free(w->buf);
    *w = (JsonWriter){0};
}

static void append(JsonWriter *w, const char *s, size_t n)
{
    if (w->error < 0)
        return;
    w->error = grow_array(&w->buf, &w->allocated, w->n + n + 1, 1);
    if (w->error < 0)
        return;
    memcpy(w->buf + w->n, s, n);
    w->n += n;
    w->buf[w->n] = 0;
}

/* Writes what precedes a member or element: the separator, and the key if there is one. */
static void begin(JsonWriter *w, const char *key)
{
    char last = w->n > 0 ? w->buf[w->n - 1] : 0;

    if (w->n == 0)
        append(w, "{\n", w->compact ? 1 : 2);
    else if (last != '\n' && last != '[' && last != '{')
        append(w, ",\n", key && !w->compact ? 2 : 1);
    if (key) {
        append(w, "\"", 1);
        append(w, key, strlen(key));
        append(w, "\":", 2);
    }
}

/* Writes a string as json-c does, but without it: json_object_to_json_string() drops bytes without
 * an error if its buffer cannot grow, and the file would not be valid JSON. */
static void append_string(JsonWriter *w, const char *s)
{
    static const char controls[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";

    append(w, "\"", 1);
    while (*s) {
        size_t n = 0;
        const char *short_form;
        char escape[16];

        while ((unsigned char)s[n] >= 0x20 && s[n] != '"' && s[n] != '\\')
            n++;
        append(w, s, n);
        s += n;
        if (!*s)
            break;
        short_form = strchr(controls, *s);
        if (short_form)
            snprintf(escape, sizeof(escape), "\\%c", letters[short_form - controls]);
        else
            snprintf(escape, sizeof(escape), "\\u%04x", (unsigned char)*s);
        append(w, escape, strlen(escape));
        s++;
    }
    append(w, "\"", 1);
}

/* Formats the number without json-c, because most of the time for writing columns was spent on a
 * json-c object for each number. */
static void append_number(JsonWriter *w, bool negative, uint64_t magnitude)
{
    char digits[24];
    size_t at = sizeof(digits);

    do
        digits[--at] = (char)('0' + magnitude % 10);
    while (magnitude /= 10);
    if (negative)
        digits[--at] = '-';
    append(w, digits + at, sizeof(digits) - at);
}

void json_writer_add_string(JsonWriter *w, const char *key, const char *value)
{
    begin(w, key);
    append_string(w, value);
}

void json_writer_add_bytes(JsonWriter *w, const char *key, const char *value)
{
    _cleanup_free_ char *escaped = json_escape_bytes(value);

    if (escaped)
        json_writer_add_string(w, key, escaped);
    else
        w->error = w->error < 0 ? w->error : -ENOMEM;
}

void json_writer_add_u64(JsonWriter *w, const char *key, uint64_t value)
{
    begin(w, key);
    append_number(w, false, value);
}

void json_writer_add_i64(JsonWriter *w, const char *key, int64_t value)
{
    begin(w, key);
    append_number(w, value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void json_writer_add_bool(JsonWriter *w, const char *key, bool value)
{
    json_writer_add_text(w, key, value ? "true" : "false");
}

void json_writer_add_flags(JsonWriter *w, const char *key, unsigned flags, const char *const *names,
                           size_t n)
{
    json_writer_open(w, key, '[');
    for (size_t i = 0; i < n; i++)
        if (flags & 1U << i)
            json_writer_add_string(w, NULL, names[i]);
    json_writer_close(w, ']');
}

void json_writer_open(JsonWriter *w, const char *key, char bracket)
{
    begin(w, key);
    append(w, &bracket, 1);
}

void json_writer_close(JsonWriter *w, char bracket)
{
    append(w, &bracket, 1);
}

void json_writer_add_text(JsonWriter *w, const char *key, const char *text)
{
    begin(w, key);
    append(w, text, strlen(text));
}

void json_writer_add_column(JsonWriter *w, const char *key, const void *table, size_t n,
                            json_column_t get)
{
    json_writer_open(w, key, '[');
    for (size_t i = 0; i < n; i++) {
        int64_t v = get(table, i);

        if (i > 0)
            append(w, ",", 1);
        append_number(w, v < 0, v < 0 ? -(uint64_t)v : (uint64_t)v);
    }
    json_writer_close(w, ']');
}

void json_writer_add_numbers(JsonWriter *w, const char *key, const uint64_t *v, size_t n)
{
    json_writer_open(w, key, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            append(w, ",", 1);
        append_number(w, false, v[i]);
    }
    json_writer_close(w, ']');
}

static int finish(JsonWriter *w, const char *end, char **ret, size_t *ret_size)
{
    if (w->n == 0)
        append(w, "{", 1);
    append(w, end, strlen(end));
    if (w->error < 0)
        return w->error;
    *ret_size = w->n;
    *ret = TAKE_PTR(w->buf);
    json_writer_done(w);
    return 0;
}

int json_writer_finish(JsonWriter *w, char **ret, size_t *ret_size)
{
    return finish(w, w->compact ? "}" : "\n}\n", ret, ret_size);
}

int json_writer_finish_line(JsonWriter *w, char **ret, size_t *ret_size)
{
    return finish(w, "}\n", ret, ret_size);
}

bool json_is_utf8(const char *s)
{
    uint32_t c;
    size_t n = 1;

    for (; *s && n > 0; s += n)
        n = text_read_character(s, &c);
    return n > 0;
}

char *json_escape_bytes(const char *s)
{
    char *out = malloc(3 * strlen(s) + 1), *p = out;

    if (!out)
        return NULL;
    while (*s) {
        uint32_t c;
        size_t n = text_read_character(s, &c);
        bool escape = n == 0 || c == '%' || c < 0x20 || c == 0x7f;

        for (n = MAX(n, (size_t)1); n > 0; n--, s++)
            if (escape)
                p += sprintf(p, "%%%02X", (unsigned char)*s);
            else
                *p++ = *s;
    }
    *p = 0;
    return out;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

char *json_unescape_bytes(const char *s)
{
    char *out = malloc(strlen(s) + 1), *p = out;

    if (!out)
        return NULL;
    for (; *s; s++) {
        int high, low;

        if (*s != '%') {
            *p++ = *s;
            continue;
        }
        high = hex_digit(s[1]);
        low = high < 0 ? -1 : hex_digit(s[2]);
        if (low < 0 || high * 16 + low == 0) {
            free(out);
            return NULL;
        }
        *p++ = (char)(high * 16 + low);
        s += 2;
    }
    *p = 0;
    return out;
}

bool json_add_member(json_object *to, const char *key, json_object *value)
{
    if (to && json_object_object_add(to, key, value) == 0)
        return true;
    json_object_put(value);
    return false;
}

bool json_add_item(json_object *to, json_object *value)
{
    if (to && value && json_object_array_add(to, value) == 0)
        return true;
    json_object_put(value);
    return false;
}

json_object *json_flags(unsigned flags, const char *const *names, size_t n)
{
    _cleanup_json_ json_object *a = json_object_new_array();

    for (size_t i = 0; a && i < n; i++)
        if (flags & 1U << i && !json_add_item(a, json_object_new_string(names[i])))
            return NULL;
    return TAKE_PTR(a);
}

static int parse_once(const char *text, size_t size, int depth, struct json_object **ret,
                      const char **ret_reason)
{
    struct json_tokener *t;
    struct json_object *o;
    enum json_tokener_error e;
    size_t end;

    if (size > INT32_MAX) {
        *ret_reason = "too large";
        return -EBADMSG;
    }
    if (size == 0) {
        *ret_reason = "empty file";
        return -EBADMSG;
    }
    t = json_tokener_new_ex(depth);
    if (!t)
        return -ENOMEM;
    json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
    o = json_tokener_parse_ex(t, text, (int)size);
    e = json_tokener_get_error(t);
    end = json_tokener_get_parse_end(t);
    json_tokener_free(t);

    if (e == json_tokener_continue) {
        json_object_put(o);
        *ret_reason = "truncated";
        return -EBADMSG;
    }
    while (e == json_tokener_success && end < size &&
           (text[end] == '\n' || text[end] == ' ' || text[end] == '\r' || text[end] == '\t'))
        end++;
    if (e != json_tokener_success || end != size) {
        json_object_put(o);
        *ret_reason = e == json_tokener_success ? "data after its end" : "not valid JSON";
        return -EBADMSG;
    }
    *ret = o;
    return 0;
}

bool memory_is_short(void)
{
    /* `p` is volatile, because the compiler drops an allocation that nothing uses. */
    void *volatile p = malloc(MEMORY_PROBE_BYTES);
    bool is_short = !p;

    free(p);
    return is_short;
}

const char *json_to_text(struct json_object *o, int flags)
{
    size_t n = 0, again = 0;
    const char *text = json_object_to_json_string_length(o, flags, &n);

    /* json-c drops bytes without an error if its buffer cannot grow. The second call uses the
     * buffer of the first, so its text is longer if the first call dropped bytes. */
    if (text)
        text = json_object_to_json_string_length(o, flags, &again);
    return text && n == again && !memory_is_short() ? text : NULL;
}

int json_parse(const char *text, size_t size, int depth, struct json_object **ret,
               const char **ret_reason)
{
    int r = parse_once(text, size, depth, ret, ret_reason);

    /* json-c reports a failed allocation as an error in the text. Callers set aside a file with
     * such an error. -EBADMSG is therefore returned only if parsing fails twice and memory is not
     * short after that. */
    if (r == -EBADMSG)
        r = parse_once(text, size, depth, ret, ret_reason);
    return r == -EBADMSG && memory_is_short() ? -ENOMEM : r;
}

static int get(struct json_object *o, const char *key, enum json_type type,
               struct json_object **ret)
{
    struct json_object *v;

    if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, key, &v) ||
        !json_object_is_type(v, type))
        return -EBADMSG;
    *ret = v;
    return 0;
}

static int to_i64(struct json_object *v, int64_t *ret)
{
    if (!json_object_is_type(v, json_type_int))
        return -EBADMSG;
    errno = 0;
    *ret = json_object_get_int64(v);
    return errno ? -EBADMSG : 0;
}

static int to_u64(struct json_object *v, uint64_t max, uint64_t *ret)
{
    uint64_t u;

    if (!json_object_is_type(v, json_type_int) || json_object_get_int64(v) < 0)
        return -EBADMSG;
    /* json-c replaces a number that does not fit into 64 bits by the largest one, without an
     * error. */
    u = json_object_get_uint64(v);
    if (u > max)
        return -EBADMSG;
    *ret = u;
    return 0;
}

int json_get_u64(struct json_object *o, const char *key, uint64_t max, uint64_t *ret)
{
    struct json_object *v;

    return get(o, key, json_type_int, &v) < 0 ? -EBADMSG : to_u64(v, max, ret);
}

int json_get_i64(struct json_object *o, const char *key, int64_t *ret)
{
    struct json_object *v;

    return get(o, key, json_type_int, &v) < 0 ? -EBADMSG : to_i64(v, ret);
}

int json_get_bool(struct json_object *o, const char *key, bool *ret)
{
    struct json_object *v;

    if (get(o, key, json_type_boolean, &v) < 0)
        return -EBADMSG;
    *ret = json_object_get_boolean(v);
    return 0;
}

static int to_string(struct json_object *v, const char **ret)
{
    if (!json_object_is_type(v, json_type_string) ||
        strlen(json_object_get_string(v)) != (size_t)json_object_get_string_len(v))
        return -EBADMSG;
    *ret = json_object_get_string(v);
    return 0;
}

int json_get_string(struct json_object *o, const char *key, const char **ret)
{
    struct json_object *v;

    return get(o, key, json_type_string, &v) < 0 ? -EBADMSG : to_string(v, ret);
}

int json_get_array(struct json_object *o, const char *key, size_t max, struct json_object **ret)
{
    struct json_object *v;

    if (get(o, key, json_type_array, &v) < 0 || json_object_array_length(v) > max)
        return -EBADMSG;
    *ret = v;
    return 0;
}

int json_get_object(struct json_object *o, const char *key, struct json_object **ret)
{
    return get(o, key, json_type_object, ret);
}

int json_at_u64(struct json_object *array, size_t i, uint64_t max, uint64_t *ret)
{
    return to_u64(json_object_array_get_idx(array, i), max, ret);
}

int json_at_string(struct json_object *array, size_t i, const char **ret)
{
    return to_string(json_object_array_get_idx(array, i), ret);
}
