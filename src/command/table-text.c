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

/* Columns are left out before cells become shorter than this. */
#define SHORTENED_WIDTH 20

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
    case CELL_TEXT:
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

/* Returns the number of characters. Each byte that does not continue a UTF-8 character counts as
 * one. */
static size_t text_width(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* The columns of a table that are shown. */
typedef struct Shown {
    size_t columns[TABLE_COLUMNS_MAX]; /* of the table */
    size_t widths[TABLE_COLUMNS_MAX];  /* that they need */
    size_t n;
} Shown;

static bool is_in_group(const char *group, const char *title)
{
    for (size_t n; *group; group += n + (group[n] == ',')) {
        n = strcspn(group, ",");
        if (n == strlen(title) && strncmp(group, title, n) == 0)
            return true;
    }
    return false;
}

/* Chooses the columns that are printed, without those of the first `n_hidden` optional entries. */
static void choose_columns(const Table *t, size_t n_hidden, Shown *ret)
{
    *ret = (Shown){0};
    for (size_t k = 0; k < t->n_columns; k++) {
        bool shown = is_printed(t->columns + k);

        for (size_t i = 0; shown && i < n_hidden; i++)
            shown = !is_in_group(t->optional[i], t->columns[k].title);
        if (!shown)
            continue;
        ret->widths[ret->n] = text_width(t->columns[k].title);
        ret->columns[ret->n++] = k;
    }
}

static bool is_shortened(CellType type)
{
    return type == CELL_PATH || type == CELL_TEXT;
}

static void note_width(Shown *x, size_t i, CellType type, const char *text)
{
    size_t width = text ? text_width(text) : 0;

    x->widths[i] =
            MAX(x->widths[i], is_shortened(type) ? MIN(width, (size_t)SHORTENED_WIDTH) : width);
}

static int fill(const Table *t, Shown *x, struct libscols_table *s)
{
    for (size_t k = 0; k < x->n; k++) {
        const Column *c = t->columns + x->columns[k];
        bool text = c->type == CELL_STRING || is_shortened(c->type);

        if (!scols_table_new_column(s, c->title, 0,
                                    (text ? 0 : SCOLS_FL_RIGHT) |
                                            (is_shortened(c->type) ? SCOLS_FL_TRUNC : 0)))
            return -ENOMEM;
    }
    for (size_t i = 0; i < table_n_rows(t); i++) {
        struct libscols_line *line = scols_table_new_line(s, NULL);

        if (!line)
            return -ENOMEM;
        for (size_t k = 0; k < x->n; k++) {
            CellType type = t->columns[x->columns[k]].type;
            char *text = cell_text(type, table_cell(t, i, x->columns[k]));

            note_width(x, k, type, text);
            CHECK(set_text(line, k, text));
        }
    }
    return 0;
}

/* Returns the width of the table if the cells that may be shortened are so. */
static size_t needed_width(const Shown *x)
{
    size_t sum = x->n > 0 ? (x->n - 1) * strlen(COLUMN_GAP) : 0;

    for (size_t k = 0; k < x->n; k++)
        sum += x->widths[k];
    return sum;
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

/* Returns the first `width` - 1 characters of the text and "…". Returns NULL if out of memory. */
static char *keep_begin(const char *text, size_t width)
{
    const char *end = text;
    char *ret = NULL;

    for (size_t n = 1; n < width; n++)
        do
            end++;
        while (((unsigned char)*end & 0xc0) == 0x80);
    return asprintf(&ret, "%.*s…", (int)(end - text), text) < 0 ? NULL : ret;
}

/* libsmartcols cuts long cells and shows nothing in place of what is missing. This function
 * shortens these cells. The end of a path says more than its beginning, and the beginning of a text
 * more than its end. The function uses the widths that libsmartcols has found. */
static int shorten(const Table *t, const Shown *x, struct libscols_table *s)
{
    _cleanup_free_ char *unused = NULL;
    int r = scols_print_table_to_string(s, &unused); /* finds the widths */

    for (size_t k = 0; r >= 0 && k < x->n; k++) {
        CellType type = t->columns[x->columns[k]].type;
        size_t width = scols_column_get_width(scols_table_get_column(s, k));

        if (!is_shortened(type) || width == 0)
            continue;
        for (size_t i = 0; r >= 0 && i < table_n_rows(t); i++) {
            const char *text = table_cell(t, i, x->columns[k])->string;

            if (text && text_width(text) > width)
                r = set_text(scols_table_get_line(s, i), k,
                             type == CELL_PATH ? keep_end(text, width) : keep_begin(text, width));
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

/* Prints the table without the columns of the first `n_hidden` optional entries. Returns 1 if the
 * terminal is too narrow and further columns can be left out; then nothing was printed. */
static int try_rows(const Table *t, size_t n_hidden, bool terminal)
{
    _cleanup_scols_ struct libscols_table *s = new_text(COLUMN_GAP);
    Shown x;
    int r;

    choose_columns(t, n_hidden, &x);
    r = s ? fill(t, &x, s) : -ENOMEM;
    if (r >= 0 && terminal && t->optional && t->optional[n_hidden] &&
        needed_width(&x) > scols_table_get_termwidth(s))
        return 1;
    if (r >= 0 && terminal)
        r = shorten(t, &x, s);
    return r < 0 ? r : scols_print_table(s);
}

static int print_rows(const Table *t)
{
    bool terminal = isatty(STDOUT_FILENO);
    size_t n_hidden = 0;
    int r;

    while ((r = try_rows(t, n_hidden, terminal)) > 0)
        n_hidden++;
    return r;
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
