/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What all verbs of `headstart` share. Each verb has a file (verb-NAME.c) and an entry in the table
 * of verbs (main.c). The verb declares its options and its number of arguments, so that --help, the
 * parser and the tests use the same declaration. */

#include "base/macros.h"
#include "base/options.h"
#include "command/table.h"
#include "config/config.h"

#include <limits.h>

#define EXIT_USAGE 2 /* exit status for wrong usage */

/* The parsers of options and the verb return CLI_HELP_SHOWN if --help or --version was printed, and
 * CLI_WRONG_USAGE if wrong usage was reported. No negative errno has these values. */
#define CLI_HELP_SHOWN  (-10001)
#define CLI_WRONG_USAGE (-10002)

typedef enum JsonMode {
    JSON_OFF, /* text */
    JSON_SHORT,
    JSON_PRETTY,
    _JSON_MODE_MAX,
    _JSON_MODE_INVALID = -EINVAL,
} JsonMode;

typedef struct Context Context;

#define VERB_ANY UINT_MAX

typedef struct Verb {
    const char *name;
    const char *arguments;                 /* for --help; "" if there are none */
    unsigned min_arguments, max_arguments; /* VERB_ANY: no upper limit */
    const char *summary;                   /* one line without a period at the end */
    const char *description;               /* NULL: none */
    const Option *options; /* ends with an entry of id 0; NULL: the verb has no options */
    bool takes_command;    /* options after the first argument belong to a command */
    /* Returns the exit status, or a negative errno or CLI_* that was reported. */
    int (*run)(Context *c);
} Verb;

struct Context {
    const Verb *verb;
    const char *state; /* --state, or the default */
    const char *root;  /* --root, or "/" */
    JsonMode json;
    bool quiet;
    int system_fd; /* /etc, /run and /proc are below it: AT_FDCWD, or a fixture */
    Config config;
    Options options; /* the verb's options and arguments, argv[0] is its name */
};

/* Returns the context as it is before the command line is read (options.c). */
Context cli_context_default(void);

extern const Verb verb_status, verb_record, verb_learn, verb_plan, verb_replay, verb_show,
        verb_rerecord, verb_refresh, verb_relocate, verb_forget, verb_enable, verb_disable,
        verb_evaluate, verb_merge, verb_export, verb_import, verb_config, verb_history,
        verb_measure, verb_doctor, verb_explain, verb_metrics, verb_plot, verb_report;

/* --- messages.c ------------------------------------------------------------------------------- */

/* Returns the exit status of a program whose verb returned `r`. Flushes standard output first. If
 * output could not be written, reports this and returns EXIT_FAILURE instead of success. */
int cli_exit_status(int r);

/* Reports wrong usage in one line that names --help. Returns CLI_WRONG_USAGE. */
int cli_usage_error(const Context *c, const char *format, ...) _printf_(2, 3);

/* Reports an error in one line; "%m" is the text of `error`, which may have either sign. Returns
 * -abs(error), or -EIO for 0, for the caller to return. */
int cli_error(int error, const char *format, ...) _printf_(2, 3);

/* Reports an error that does not stop the verb. */
void cli_warning(int error, const char *format, ...) _printf_(2, 3);

/* --- options.c -------------------------------------------------------------------------------- */

/* Parses the options before the verb, then sets c->verb and c->options for the verb. Returns 0,
 * CLI_*, or a negative errno that was reported. */
int cli_parse_global(Context *c, const Verb *const *verbs, int argc, char **argv);

/* Sets c->verb and c->options; argv[0] is the verb's name. */
void cli_set_verb(Context *c, const Verb *verb, int argc, char **argv);

/* Returns the id of the verb's next option; *ret_value becomes the option's argument, or NULL.
 * Returns 0 if no option is left and the number of arguments is right. Returns a negative errno or
 * CLI_* after an error that was reported; the verb then returns the same value. Handles global
 * options itself. */
int cli_next_option(Context *c, const char **ret_value);

/* Returns the arguments after the options: a NULL-terminated part of argv. */
char **cli_arguments(const Context *c, int *ret_n);

/* Handles the global options for a verb without options. Returns 0, or an error as
 * cli_next_option() does. */
int cli_no_options(Context *c);

/* Runs another verb with --quiet and with the option `option` (NULL: no option). Returns 0 or the
 * verb's error, which the verb has reported. An exit status above 0 becomes -EIO. */
int cli_run_verb(const Context *c, const Verb *verb, const char *option);

/* Parse an option's argument. Return 0, or CLI_WRONG_USAGE, which was reported. */
int cli_parse_stage(const Context *c, const char *value, Stage *ret);
int cli_parse_limit(const Context *c, const char *value, uint64_t *ret);
int cli_parse_uid(const Context *c, const char *value,
                  uint32_t *ret); /* parses --user=: UID or name */

/* --- output.c --------------------------------------------------------------------------------- */

/* Sets the character encoding of the locale. It determines how wide the columns of tables are and
 * which bytes of file names are printed unchanged. If the environment sets no locale, the encoding
 * is UTF-8, because file names are UTF-8 on nearly every system. Only main() calls this function.
 */
void cli_set_locale(void);

/* Print the table, or its only row as fields. The output is text, or JSON with --json=. Return 0,
 * or an error that was reported. */
int cli_print(const Context *c, const Table *t);
int cli_print_fields(const Context *c, const Table *t);

/* Prints a text and a newline. On a terminal, a text that does not fit the line continues in
 * further lines, which begin with `indent` blanks; it is broken at blanks. `column`: how many
 * characters of the first line are printed already. */
void cli_print_wrapped(size_t column, size_t indent, const char *format, ...) _printf_(3, 4);

/* Prints one object as JSON, even without --json=. The arguments are those of table_row(). Returns
 * 0, or an error that was reported. */
int cli_print_json(const Context *c, const Column *columns, ...);
