/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/text.h"
#include "command/cli.h"

#include <inttypes.h>
#include <locale.h>
#include <string.h>

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

/* Prints the JSON text and a newline. Takes ownership of `o`, also on failure. Returns 0, -ENOMEM
 * (also if `o` is NULL), or the error of writing. */
static int output_json(JsonMode mode, json_object *o)
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
