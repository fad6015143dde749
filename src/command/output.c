/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/json-util.h"
#include "base/text.h"
#include "command/cli.h"

#include <inttypes.h>
#include <locale.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void cli_set_locale(void)
{
    const char *locale = setlocale(LC_CTYPE, "");

    if (!locale || strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
}

/* Prints JSON and a newline. Hidden characters of strings are written as \uXXXX, because a terminal
 * interprets some of them; json-c does so with ASCII. Returns 0 or -1. */
static int print_text(const char *text)
{
    while (*text) {
        uint32_t c = 0;
        size_t n = MAX(text_read_character(text, &c), (size_t)1);

        if (c < 0x7f || !text_is_hidden(c))
            (void)fwrite(text, n, 1, stdout);
        else if (c < 0x10000)
            printf("\\u%04" PRIx32, c);
        else
            printf("\\u%04" PRIx32 "\\u%04" PRIx32, 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
        text += n;
    }
    (void)putchar('\n');
    return fflush(stdout) < 0 || ferror(stdout) ? -1 : 0;
}

/* Returns the number of characters of the word or, with `blanks`, of the blanks at the beginning of
 * the text, and through *ret_bytes their length. */
static size_t measure_word(const char *text, bool blanks, size_t *ret_bytes)
{
    const char *end = text + (blanks ? strspn(text, " ") : strcspn(text, " "));
    size_t n = 0;

    for (const char *p = text; p < end; p++)
        n += ((unsigned char)*p & 0xc0) != 0x80;
    *ret_bytes = (size_t)(end - text);
    return n;
}

/* Returns the number of columns of the terminal, or SIZE_MAX if standard output is none. */
static size_t terminal_columns(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 ? SIZE_MAX : size.ws_col;
}

void cli_print_wrapped(size_t column, size_t indent, const char *format, ...)
{
    size_t columns = terminal_columns(), at = column, blanks = 0, skipped, bytes;
    _cleanup_free_ char *all = NULL;
    const char *text;
    bool begun = false;
    va_list ap;

    va_start(ap, format);
    if (vasprintf(&all, format, ap) < 0)
        all = NULL;
    va_end(ap);
    text = all ? all : "(out of memory)";
    while (*text) {
        size_t width = measure_word(text, false, &bytes);

        /* The first word stays in the first line, however long it is. */
        if (begun && blanks + width > columns - MIN(at, columns)) {
            printf("\n%*s", (int)indent, "");
            at = indent;
            blanks = 0;
        }
        begun = true;
        printf("%*s%.*s", (int)blanks, "", (int)bytes, text);
        at += blanks + width;
        text += bytes;
        blanks = measure_word(text, true, &skipped);
        text += skipped;
    }
    putchar('\n');
}

/* Prints the JSON text and a newline. Takes ownership of `o`, also on failure. Returns 0, -ENOMEM
 * (also if `o` is NULL), or the error of writing. */
static int output_json(JsonMode mode, json_object *o)
{
    const char *text;
    int r = 0;

    if (!o)
        return -ENOMEM;
    text = json_to_text(o, JSON_C_TO_STRING_NOSLASHESCAPE |
                                   (mode == JSON_PRETTY
                                            ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED
                                            : JSON_C_TO_STRING_PLAIN));
    if (!text)
        r = -ENOMEM;
    else if (print_text(text) < 0)
        r = -errno;
    json_object_put(o);
    return r;
}

int cli_print(const Context *c, const Table *t)
{
    int r = c->json == JSON_OFF ? table_print(t) : output_json(c->json, table_to_json(t));

    return r < 0 ? cli_error(r, "cannot write the output: %m") : 0;
}

int cli_print_fields(const Context *c, const Table *t)
{
    int r = c->json == JSON_OFF ? table_print_fields(t)
                                : output_json(c->json, table_fields_to_json(t));

    return r < 0 ? cli_error(r, "cannot write the output: %m") : 0;
}

int cli_print_json(const Context *c, const Column *columns, ...)
{
    _cleanup_table_ Table *t = table_new(columns);
    va_list ap;
    int r;

    va_start(ap, columns);
    table_row_va(t, ap);
    va_end(ap);
    r = output_json(c->json, table_fields_to_json(t));
    return r < 0 ? cli_error(r, "cannot write the output: %m") : 0;
}
