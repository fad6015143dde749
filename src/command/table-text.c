/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints tables as text with libsmartcols. */

#include "base/text.h"
#include "base/time-util.h"
#include "command/table-internal.h"

#include <inttypes.h>
#include <libsmartcols.h>
#include <string.h>
#include <time.h>

#define COLUMN_GAP "  "

DEFINE_CLEANUP(struct libscols_table *, scols_unref_table);
#define _cleanup_scols_ _cleanup_(scols_unref_tablep)

static bool is_printed(const Column *c)
{
    return c->title && c->type != CELL_TABLE && c->type != CELL_JSON;
}

/* Returns a copy of the text, which the caller frees, or NULL if out of memory. Hidden characters
 * are written as \u{…}; libsmartcols does so with control characters and with bytes that are not
 * UTF-8. */
static char *show_hidden(const char *s)
{
    char *copy = malloc(8 * strlen(s) + 1), *to = copy;

    while (copy && *s) {
        uint32_t c = 0;
        size_t n = text_read_character(s, &c);

        if (n > 1 && c >= 0xa0 && text_is_hidden(c))
            to += sprintf(to, "\\u{%" PRIx32 "}", c);
        else
            to = mempcpy(to, s, MAX(n, (size_t)1));
        s += MAX(n, (size_t)1);
    }
    if (copy)
        *to = 0;
    return copy;
}

/* Returns the text of the cell, which the caller frees, or NULL if out of memory. */
static char *cell_text(CellType type, const Cell *c)
{
    char buf[64];

    if (table_cell_is_unknown(type, c))
        return strdup("-");
    switch (type) {
    case CELL_STRING:
    case CELL_PATH:
        return show_hidden(c->string);
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
        snprintf(buf, sizeof(buf), "%.1f%%", c->real * 100);
        break;
    case CELL_NUMBER:
        snprintf(buf, sizeof(buf), "%.1f", c->real);
        break;
    case CELL_PRECISE:
        snprintf(buf, sizeof(buf), "%.3f", c->real);
        break;
    case CELL_BOOLEAN:
        return strdup(c->number ? "yes" : "no");
    case CELL_TABLE:
    case CELL_JSON:
        return strdup("");
    }
    return strdup(buf);
}

/* Gives the text to the line, which frees the text later. On failure this function frees the
 * text. */
static int set_text(struct libscols_line *line, size_t column, char *text)
{
    int r = text ? scols_line_refer_data(line, column, text) : -ENOMEM;

    if (r < 0)
        free(text);
    return r;
}

static int fill(const Table *t, struct libscols_table *s)
{
    for (size_t k = 0; k < t->n_columns; k++) {
        const Column *c = t->columns + k;
        bool text = c->type == CELL_STRING || c->type == CELL_PATH;

        if (is_printed(c) &&
            !scols_table_new_column(s, c->title, 0,
                                    (text ? 0 : SCOLS_FL_RIGHT) |
                                            (c->type == CELL_PATH ? SCOLS_FL_TRUNC : 0)))
            return -ENOMEM;
    }
    for (size_t i = 0; i < table_n_rows(t); i++) {
        struct libscols_line *line = scols_table_new_line(s, NULL);
        size_t n = 0;

        for (size_t k = 0; line && k < t->n_columns; k++)
            if (is_printed(t->columns + k)) {
                int r = set_text(line, n++, cell_text(t->columns[k].type, table_cell(t, i, k)));

                if (r < 0)
                    return r;
            }
        if (!line)
            return -ENOMEM;
    }
    return 0;
}

/* Returns the number of characters. Each byte that does not continue a UTF-8 character counts as
 * one. */
static size_t text_width(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* Returns "…" and the last `width` - 1 characters of the text. Returns NULL if out of memory. */
static char *keep_end(const char *text, size_t width)
{
    char *ret = NULL;

    for (size_t w = text_width(text); w > width - 1; w--) {
        text++;
        while (((unsigned char)*text & 0xc0) == 0x80)
            text++;
    }
    return asprintf(&ret, "…%s", text) < 0 ? NULL : ret;
}

/* libsmartcols truncates long cells at the end. The end of a path says more than its beginning, so
 * this function removes the beginning of long paths. It uses the widths that libsmartcols has
 * found. */
static int shorten_paths(const Table *t, struct libscols_table *s)
{
    _cleanup_free_ char *unused = NULL;
    size_t n = 0;
    int r = scols_print_table_to_string(s, &unused); /* finds the widths */

    for (size_t k = 0; r >= 0 && k < t->n_columns; k++) {
        struct libscols_column *column;
        size_t width;

        if (!is_printed(t->columns + k))
            continue;
        column = scols_table_get_column(s, n++);
        width = scols_column_get_width(column);
        if (t->columns[k].type != CELL_PATH || width == 0)
            continue;
        for (size_t i = 0; r >= 0 && i < table_n_rows(t); i++) {
            const char *text = table_cell(t, i, k)->string;

            if (text && text_width(text) > width)
                r = set_text(scols_table_get_line(s, i), n - 1, keep_end(text, width));
        }
    }
    return r;
}

static struct libscols_table *new_text(const char *separator)
{
    struct libscols_table *s = scols_new_table();

    if (s && scols_table_set_column_separator(s, separator) < 0) {
        scols_unref_table(s);
        return NULL;
    }
    return s;
}

static int print_rows(const Table *t)
{
    _cleanup_scols_ struct libscols_table *s = new_text(COLUMN_GAP);
    int r = s ? fill(t, s) : -ENOMEM;

    if (r >= 0 && isatty(STDOUT_FILENO))
        r = shorten_paths(t, s);
    return r < 0 ? r : scols_print_table(s);
}

/* Prints the first row, one line for each column. */
static int print_first_row(const Table *t)
{
    _cleanup_scols_ struct libscols_table *s = new_text(" ");
    int r = s ? scols_table_enable_noheadings(s, 1) : -ENOMEM;

    if (r < 0)
        return r;
    if (!scols_table_new_column(s, "title", 0, SCOLS_FL_RIGHT) ||
        !scols_table_new_column(s, "value", 0, 0))
        return -ENOMEM;
    for (size_t k = 0; k < t->n_columns; k++) {
        struct libscols_line *line;
        char *title = NULL;

        if (!is_printed(t->columns + k))
            continue;
        line = scols_table_new_line(s, NULL);
        if (!line || asprintf(&title, "%s:", t->columns[k].title) < 0)
            return -ENOMEM;
        r = set_text(line, 0, title);
        if (r >= 0)
            r = set_text(line, 1, cell_text(t->columns[k].type, table_cell(t, 0, k)));
        if (r < 0)
            return r;
    }
    return scols_print_table(s);
}

/* Prints the tables in the cells of this table's rows. */
static int print_sections(const Table *t)
{
    int r = 0;

    for (size_t i = 0; i < table_n_rows(t); i++)
        for (size_t k = 0; r >= 0 && k < t->n_columns; k++) {
            const Table *section = table_cell(t, i, k)->table;
            size_t n;

            if (t->columns[k].type != CELL_TABLE || !t->columns[k].title || !section)
                continue;
            n = table_n_rows(section);
            if (n == 0)
                continue;
            printf("\n%s\n", section->heading ? section->heading : t->columns[k].title);
            r = table_print(section);
            if (r >= 0 && n < section->n_total)
                printf("(%zu more: --limit=0 shows all)\n", section->n_total - n);
        }
    return r;
}

int table_print(const Table *t)
{
    int r = t && !t->failed ? print_rows(t) : -ENOMEM;

    return r < 0 ? r : print_sections(t);
}

int table_print_fields(const Table *t)
{
    int r = t && !t->failed && t->n_cells > 0 ? print_first_row(t) : -ENOMEM;

    return r < 0 ? r : print_sections(t);
}
