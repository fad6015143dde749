/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cli/output.h"

#include "base/json-util.h"
#include "base/time-util.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#define COLUMNS_MAX    16
#define FIELD_PATH_MIN 20 /* a path is never cut below that */
#define COLUMN_GAP     "  "

typedef struct Cell {
    union {
        char *string;
        uint64_t number;
        double probability;
    };
} Cell;

struct Table {
    struct {
        const char *title, *key;
        CellType type;
    } columns[COLUMNS_MAX];
    size_t n_columns;
    Cell *cells; /* row by row */
    size_t n_cells, allocated_cells;
    bool failed; /* out of memory at some time */
};

JsonMode json_mode_from_string(const char *s)
{
    static const char *const names[] = {
            [JSON_OFF] = "off", [JSON_SHORT] = "short", [JSON_PRETTY] = "pretty"};

    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        if (strcmp(s, names[i]) == 0)
            return (JsonMode)i;
    return _JSON_MODE_INVALID;
}

int output_json(JsonMode mode, json_object *o)
{
    const char *text;
    int r = 0;

    if (!o)
        return -ENOMEM;
    text = json_object_to_json_string_ext(
            o, JSON_C_TO_STRING_NOSLASHESCAPE |
                       (mode == JSON_PRETTY ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
                                            : JSON_C_TO_STRING_PLAIN));
    if (!text)
        r = -ENOMEM;
    else if (puts(text) < 0 || fflush(stdout) < 0)
        r = -errno;
    json_object_put(o);
    return r;
}

unsigned output_width(void)
{
    struct winsize w;

    if (!isatty(STDOUT_FILENO))
        return 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col == 0)
        return 80;
    return w.ws_col;
}

static bool is_text(CellType type)
{
    return type == CELL_STRING || type == CELL_PATH;
}

static bool is_real(CellType type)
{
    return type == CELL_PROBABILITY || type == CELL_NUMBER || type == CELL_PRECISE;
}

Table *table_new(void)
{
    return calloc(1, sizeof(Table));
}

Table *table_free(Table *t)
{
    if (!t)
        return NULL;
    for (size_t i = 0; i < t->n_cells; i++)
        if (is_text(t->columns[i % t->n_columns].type))
            free(t->cells[i].string);
    free(t->cells);
    free(t);
    return NULL;
}

void table_column(Table *t, const char *title, const char *key, CellType type)
{
    if (!t)
        return;
    if (t->n_columns == COLUMNS_MAX || t->n_cells > 0) {
        t->failed = true;
        return;
    }
    t->columns[t->n_columns].title = title;
    t->columns[t->n_columns].key = key;
    t->columns[t->n_columns++].type = type;
}

void table_row(Table *t, ...)
{
    va_list ap;

    if (!t || t->failed)
        return;
    if (grow_array(&t->cells, &t->allocated_cells, t->n_cells + t->n_columns, sizeof(Cell)) < 0) {
        t->failed = true;
        return;
    }
    va_start(ap, t);
    for (size_t i = 0; i < t->n_columns; i++) {
        Cell *c = t->cells + t->n_cells++;

        switch (t->columns[i].type) {
        case CELL_STRING:
        case CELL_PATH: {
            const char *s = va_arg(ap, const char *);

            c->string = s ? strdup(s) : NULL;
            t->failed = t->failed || (s && !c->string);
            break;
        }
        case CELL_PROBABILITY:
        case CELL_NUMBER:
        case CELL_PRECISE:
            c->probability = va_arg(ap, double);
            break;
        case CELL_BOOLEAN:
            c->number = (uint64_t) !!va_arg(ap, int);
            break;
        case CELL_COUNT:
        case CELL_BYTES:
        case CELL_TIMESPAN:
        case CELL_REALTIME:
            c->number = va_arg(ap, uint64_t);
            break;
        }
    }
    va_end(ap);
}

size_t table_n_rows(const Table *t)
{
    return t && t->n_columns > 0 ? t->n_cells / t->n_columns : 0;
}

/* --- text ------------------------------------------------------------------------------------- */

static bool is_utf8(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;

    while (*p) {
        unsigned n = *p < 0x80   ? 0
                     : *p < 0xc2 ? 9
                     : *p < 0xe0 ? 1
                     : *p < 0xf0 ? 2
                     : *p < 0xf5 ? 3
                                 : 9;
        /* The second byte excludes overlong forms, surrogates and what is beyond U+10FFFF. */
        unsigned low = *p == 0xe0 ? 0xa0 : *p == 0xf0 ? 0x90 : 0x80;
        unsigned high = *p == 0xed ? 0x9f : *p == 0xf4 ? 0x8f : 0xbf;

        if (n == 9)
            return false;
        for (p++; n > 0; n--, p++, low = 0x80, high = 0xbf)
            if (*p < low || *p > high)
                return false;
    }
    return true;
}

/* A copy in which nothing is left that a terminal obeys: names of files are anybody's. */
static char *escape(const char *s)
{
    char *ret = malloc(strlen(s) * 4 + 1), *p = ret;
    bool utf8 = is_utf8(s);

    if (!ret)
        return NULL;
    for (; *s; s++) {
        unsigned char b = (unsigned char)*s;

        /* C0, DEL, C1 (two bytes in UTF-8), and what is not UTF-8 at all. */
        if (b < 0x20 || b == 0x7f || (b >= 0x80 && !utf8))
            p += sprintf(p, "\\x%02x", b);
        else if (b == 0xc2 && (unsigned char)s[1] < 0xa0)
            p += sprintf(p, "\\x%02x", (unsigned char)*++s);
        else
            *p++ = *s;
    }
    *p = 0;
    return ret;
}

/* Characters, not bytes; what is not UTF-8 counts a byte for a character. Good enough to align. */
static size_t text_width(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static char *cell_text(CellType type, const Cell *c)
{
    char buf[64];

    if (!is_text(type) && !is_real(type) && c->number == COUNT_UNKNOWN)
        return strdup("-");
    switch (type) {
    case CELL_STRING:
    case CELL_PATH:
        return c->string ? escape(c->string) : strdup("-");
    case CELL_COUNT:
        snprintf(buf, sizeof(buf), "%" PRIu64, c->number);
        break;
    case CELL_BYTES:
        format_bytes(buf, sizeof(buf), c->number);
        break;
    case CELL_TIMESPAN:
        format_timespan(buf, sizeof(buf), c->number);
        break;
    case CELL_REALTIME: {
        time_t seconds = (time_t)(c->number / USEC_PER_SEC);
        struct tm tm;

        if (!localtime_r(&seconds, &tm) ||
            strftime(buf, sizeof(buf), "%a %Y-%m-%d %H:%M:%S", &tm) == 0)
            snprintf(buf, sizeof(buf), "%" PRIu64 "us", c->number);
        break;
    }
    case CELL_PROBABILITY:
        if (!(c->probability >= 0))
            return strdup("-");
        snprintf(buf, sizeof(buf), "%.1f%%", c->probability * 100);
        break;
    case CELL_NUMBER:
        if (!(c->probability >= 0))
            return strdup("-");
        snprintf(buf, sizeof(buf), "%.1f", c->probability);
        break;
    case CELL_PRECISE:
        if (!(c->probability >= 0))
            return strdup("-");
        snprintf(buf, sizeof(buf), "%.3f", c->probability);
        break;
    case CELL_BOOLEAN:
        return strdup(c->number ? "yes" : "no");
    }
    return strdup(buf);
}

/* Writes the text in so many columns; what is too long loses its beginning (the end of a path
 * tells more), cut between characters. */
static void print_padded(const char *text, size_t width, bool right, bool last)
{
    size_t w = text_width(text);

    if (w > width) {
        while (w > width - 1) {
            text++;
            while (((unsigned char)*text & 0xc0) == 0x80)
                text++;
            w--;
        }
        fputs("…", stdout);
        fputs(text, stdout);
        return;
    }
    if (right)
        printf("%*s", (int)(width - w), "");
    fputs(text, stdout);
    if (!right && !last)
        printf("%*s", (int)(width - w), "");
}

static void free_texts(char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(texts[i]);
    free(texts);
}

/* All cells as text, or NULL. */
static char **all_texts(const Table *t)
{
    char **texts = calloc(MAX(t->n_cells, (size_t)1), sizeof(char *));

    if (!texts)
        return NULL;
    for (size_t i = 0; i < t->n_cells; i++) {
        texts[i] = cell_text(t->columns[i % t->n_columns].type, t->cells + i);
        if (!texts[i]) {
            free_texts(texts, i);
            return NULL;
        }
    }
    return texts;
}

int table_print(const Table *t)
{
    size_t widths[COLUMNS_MAX], total = 0;
    unsigned screen = output_width();
    char **texts;

    if (!t || t->failed)
        return -ENOMEM;
    texts = all_texts(t);
    if (!texts)
        return -ENOMEM;
    for (size_t k = 0; k < t->n_columns; k++) {
        widths[k] = text_width(t->columns[k].title);
        for (size_t i = k; i < t->n_cells; i += t->n_columns)
            widths[k] = MAX(widths[k], text_width(texts[i]));
        total += widths[k] + (k > 0 ? strlen(COLUMN_GAP) : 0);
    }
    for (size_t k = 0; k < t->n_columns && screen > 0 && total > screen; k++)
        if (t->columns[k].type == CELL_PATH && widths[k] > FIELD_PATH_MIN) {
            size_t less = MIN(total - screen, widths[k] - FIELD_PATH_MIN);

            widths[k] -= less;
            total -= less;
        }

    for (size_t k = 0; k < t->n_columns; k++) {
        fputs(k > 0 ? COLUMN_GAP : "", stdout);
        print_padded(t->columns[k].title, widths[k], !is_text(t->columns[k].type),
                     k + 1 == t->n_columns);
    }
    putchar('\n');
    for (size_t i = 0; i < t->n_cells; i++) {
        size_t k = i % t->n_columns;

        fputs(k > 0 ? COLUMN_GAP : "", stdout);
        print_padded(texts[i], widths[k], !is_text(t->columns[k].type), k + 1 == t->n_columns);
        if (k + 1 == t->n_columns)
            putchar('\n');
    }
    free_texts(texts, t->n_cells);
    return 0;
}

int table_print_section(const char *heading, const Table *t, size_t n_all)
{
    size_t n = table_n_rows(t);
    int r;

    if (n == 0 && t)
        return 0;
    printf("\n%s\n", heading);
    r = table_print(t);
    if (r == 0 && n < n_all)
        printf("(%zu more: --limit=0 shows all)\n", n_all - n);
    return r;
}

int table_print_fields(const Table *t)
{
    size_t width = 0;
    char **texts;

    if (!t || t->failed || t->n_cells == 0)
        return -ENOMEM;
    texts = all_texts(t);
    if (!texts)
        return -ENOMEM;
    for (size_t k = 0; k < t->n_columns; k++)
        width = MAX(width, text_width(t->columns[k].title));
    for (size_t k = 0; k < t->n_columns; k++) {
        print_padded(t->columns[k].title, width, true, true);
        printf(": %s\n", texts[k]);
    }
    free_texts(texts, t->n_cells);
    return 0;
}

/* --- JSON ------------------------------------------------------------------------------------- */

json_object *output_json_string(const char *s)
{
    _cleanup_free_ char *escaped = NULL;

    if (is_utf8(s))
        return json_object_new_string(s);
    escaped = json_escape_bytes(s);
    return escaped ? json_object_new_string(escaped) : NULL;
}

static int add_json(json_object *o, const char *key, CellType type, const Cell *c)
{
    json_object *v = NULL;
    bool null = false;

    switch (type) {
    case CELL_STRING:
    case CELL_PATH:
        null = !c->string;
        v = c->string ? output_json_string(c->string) : NULL;
        break;
    case CELL_PROBABILITY:
    case CELL_NUMBER:
    case CELL_PRECISE:
        null = !(c->probability >= 0);
        v = null ? NULL : json_object_new_double(c->probability);
        break;
    case CELL_BOOLEAN:
        v = json_object_new_boolean((json_bool)c->number);
        break;
    case CELL_COUNT:
    case CELL_BYTES:
    case CELL_TIMESPAN:
    case CELL_REALTIME:
        null = c->number == COUNT_UNKNOWN;
        v = null ? NULL : json_object_new_uint64(c->number);
        break;
    }
    if (!v && !null)
        return -ENOMEM;
    if (json_object_object_add(o, key, v) < 0) {
        json_object_put(v);
        return -ENOMEM;
    }
    return 0;
}

static json_object *row_to_json(const Table *t, size_t row)
{
    json_object *o = json_object_new_object();

    for (size_t k = 0; o && k < t->n_columns; k++)
        if (add_json(o, t->columns[k].key, t->columns[k].type, t->cells + row * t->n_columns + k) <
            0) {
            json_object_put(o);
            return NULL;
        }
    return o;
}

json_object *table_to_json(const Table *t)
{
    json_object *a;

    if (!t || t->failed)
        return NULL;
    a = json_object_new_array();
    for (size_t i = 0; a && i < table_n_rows(t); i++) {
        json_object *o = row_to_json(t, i);

        if (!o || json_object_array_add(a, o) < 0) {
            json_object_put(o);
            json_object_put(a);
            return NULL;
        }
    }
    return a;
}

json_object *table_fields_to_json(const Table *t)
{
    if (!t || t->failed || t->n_cells == 0)
        return NULL;
    return row_to_json(t, 0);
}
