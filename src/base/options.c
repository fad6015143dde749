/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/options.h"

#include "base/log.h"

#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#define OPTIONS_MAX 48U
/* For a short option getopt returns its letter, for a long option the sum of LONG_BASE and its id.
 * The sum is above all letters. */
#define LONG_BASE   256
#define HELP_COLUMN 28

typedef struct GetoptTables {
    struct option names[OPTIONS_MAX + 1];
    char letters[2 * OPTIONS_MAX + 3];
} GetoptTables;

static void make_tables(const Options *o, GetoptTables *ret)
{
    char *p = ret->letters;
    size_t n = 0;

    *ret = (GetoptTables){0};
    if (o->stop)
        *p++ = '+';
    *p++ = ':'; /* getopt prints no messages and reports a missing argument as ':', not '?' */
    for (int pass = 0; pass < 2; pass++)
        for (const Option *x = pass ? o->common : o->own; x && x->id && n < OPTIONS_MAX; x++) {
            ret->names[n++] = (struct option){
                    .name = x->name,
                    .has_arg = x->argument ? required_argument : no_argument,
                    .val = LONG_BASE + x->id,
            };
            if (x->letter)
                *p++ = x->letter;
            if (x->letter && x->argument)
                *p++ = ':';
        }
}

static int id_of(const Options *o, int k)
{
    if (k >= LONG_BASE)
        return k - LONG_BASE;
    for (int pass = 0; pass < 2; pass++)
        for (const Option *x = pass ? o->common : o->own; x && x->id; x++)
            if (x->letter == k)
                return x->id;
    return -EINVAL;
}

/* Describes the option that getopt refused: k is ':' if its argument is missing. */
static int refuse(Options *o, int k)
{
    const char *word = o->argv[optind - 1];
    int length = (int)strcspn(word, "=");

    if (optopt > 0 && optopt < LONG_BASE)
        snprintf(o->message, sizeof(o->message),
                 k == ':' ? "option '-%c' needs an argument" : "unknown option '-%c'", optopt);
    else if (k == ':')
        snprintf(o->message, sizeof(o->message), "option '%s' needs an argument", word);
    else
        snprintf(o->message, sizeof(o->message),
                 optopt ? "option '%.*s' takes no argument" : "unknown option '%.*s'", length,
                 word);
    return -EINVAL;
}

int options_next(Options *o, const char **ret_value)
{
    GetoptTables tables;
    int k;

    make_tables(o, &tables);
    if (!o->started) {
        optind = 0; /* glibc restarts with 0 */
        opterr = 0;
        o->started = true;
    }
    k = getopt_long(o->argc, o->argv, tables.letters, tables.names, NULL);
    if (k == -1)
        return 0;
    if (k == ':' || k == '?')
        return refuse(o, k);
    *ret_value = optarg;
    return id_of(o, k);
}

char **options_arguments(const Options *o, int *ret_n)
{
    *ret_n = o->argc - optind;
    return o->argv + optind;
}

int options_refuse(const char *command, const char *format, ...)
{
    char message[1024];
    va_list ap;

    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    log_error("%.*s: %s (try '%s --help')", (int)strcspn(command, " "), command, message, command);
    return -EINVAL;
}

/* Returns how many bytes of the text only continue a character: "…" has three bytes, but needs one
 * column. */
static int continuation_bytes(const char *s)
{
    int n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) == 0x80;
    return n;
}

void options_print_term(const char *term, const char *text)
{
    int used = printf("%s", term) - continuation_bytes(term);
    const char *end;

    if (used >= HELP_COLUMN)
        printf("\n%*s", HELP_COLUMN, "");
    else
        printf("%*s", HELP_COLUMN - used, "");
    for (; (end = strchr(text, '\n')); text = end + 1)
        printf("%.*s\n%*s", (int)(end - text), text, HELP_COLUMN, "");
    puts(text);
}

void options_print(const Option *list)
{
    char term[80];

    for (const Option *o = list; o && o->id; o++) {
        if (o->letter)
            snprintf(term, sizeof(term), "  -%c --%s%s%s", o->letter, o->name,
                     o->argument ? "=" : "", o->argument ? o->argument : "");
        else
            snprintf(term, sizeof(term), "     --%s%s%s", o->name, o->argument ? "=" : "",
                     o->argument ? o->argument : "");
        options_print_term(term, o->help);
    }
}
