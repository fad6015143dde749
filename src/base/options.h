/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parses command lines. Every program of headstart declares its options in tables. The functions
 * below parse the options according to these tables, with getopt_long(3), and print --help from
 * them. Needs only libc. */

#include "base/macros.h"

typedef struct Option {
    int id;               /* > 0: what options_next() returns */
    char letter;          /* 0: no short form */
    const char *name;     /* without the dashes */
    const char *argument; /* name of its argument in --help; NULL: it takes none */
    const char *help;     /* without a period at the end; further lines are indented */
} Option;

/* Both lists end with an entry of id 0; either may be NULL. They have at most 48 options together.
 */
typedef struct Options {
    const Option *own;    /* of the program or verb */
    const Option *common; /* of all verbs */
    int argc;
    char **argv; /* argv[0] is skipped; options are moved before arguments */
    bool stop;   /* the first argument ends the options: the rest belongs to a command */

    /* Private. */
    bool started;
    char message[160];
} Options;

/* Returns the id of the next option; *ret_value becomes its argument, or NULL. Returns 0 if no
 * option is left; options_arguments() then returns the arguments. Returns -EINVAL if the usage is
 * wrong; o->message then describes the error in one line. One command line is parsed at a time:
 * getopt_long(3) has global state. */
int options_next(Options *o, const char **ret_value);

/* Returns the arguments after the options: a NULL-terminated part of argv. */
char **options_arguments(const Options *o, int *ret_n);

/* Reports wrong usage in one line that names --help. `command` is the name of the program, or the
 * names of the program and the verb. Returns -EINVAL. */
int options_refuse(const char *command, const char *format, ...) _printf_(2, 3);

/* Prints the list for --help, for a screen of 80 columns. */
void options_print(const Option *list);

/* Prints a term and its explanation in the two columns that options_print() uses. */
void options_print_term(const char *term, const char *text);
