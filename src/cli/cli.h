/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What every verb of `headstart` shares. One file a verb (verb-NAME.c), one table of verbs
 * (main.c). Options are declared, not coded, so that --help, the parser and the tests see the same
 * list. */

#include "base/config.h"
#include "base/macros.h"
#include "base/table.h"

/* Exit statuses; those below zero stand for EXIT_FAILURE, said already. */
#define EXIT_USAGE 2

/* Returned by cli_next_option() and to be passed on by the verb: --help was printed; wrong usage
 * was reported. No errno is as large. */
#define CLI_HELP_SHOWN  (-10001)
#define CLI_WRONG_USAGE (-10002)

typedef enum JsonMode {
    JSON_OFF, /* text */
    JSON_SHORT,
    JSON_PRETTY,
    _JSON_MODE_MAX,
    _JSON_MODE_INVALID = -EINVAL,
} JsonMode;

typedef struct Option {
    int id;               /* > 0; what cli_next_option() returns */
    char letter;          /* 0: no short form */
    const char *name;     /* without the dashes */
    const char *argument; /* what its argument is called in --help; NULL: it takes none */
    const char *help;     /* one line, not ended by a period */
} Option;

typedef struct Context Context;

typedef struct Verb {
    const char *name;
    const char *arguments; /* for --help; "" if there are none */
    const char *summary;   /* one line, not ended by a period */
    const char *description;
    const Option *options; /* ended by an entry with id 0; NULL: none of its own */
    bool takes_command;    /* what follows the first argument is a command's, not ours */
    /* Returns 0 or above: the exit status. Below: a negative errno or CLI_*, reported already. */
    int (*run)(Context *c);
} Verb;

struct Context {
    const Verb *verb;
    const char *state; /* --state, or the default */
    const char *root;  /* --root, or "/" */
    JsonMode json;
    bool quiet;
    int system_fd; /* below which /etc, /run and /proc are: AT_FDCWD, or a fixture */
    Config config;

    /* The verb's own options and arguments: private to options.c, see below. */
    int argc;
    char **argv;
    void *getopt_table;
    char *getopt_letters;
};

extern const Verb verb_status, verb_record, verb_learn, verb_plan, verb_replay, verb_show,
        verb_rerecord, verb_refresh, verb_forget, verb_enable, verb_disable, verb_evaluate,
        verb_merge, verb_export, verb_import;

/* --- options.c -------------------------------------------------------------------------------- */

/* Reads what stands before the verb, from argv[1] on. The index of the verb in argv, 0 if there is
 * none, CLI_HELP_SHOWN or CLI_WRONG_USAGE. */
int cli_parse_global(Context *c, const Verb *const *verbs, int argc, char **argv);

/* The verb's next option: its id, and *ret_value points to its argument (or NULL). 0 when there are
 * no more; then cli_arguments() tells what is left. Global options are taken on the way. Below 0:
 * return it. */
int cli_next_option(Context *c, const char **ret_value);

/* What follows the options: a NULL-terminated part of argv. */
char **cli_arguments(const Context *c, int *ret_n);

void cli_done(Context *c);

/* Runs another verb with one option of its own (or NULL), as if it had been called with --quiet.
 * 0 or its error, reported by it. */
int cli_run_verb(const Context *c, const Verb *verb, const char *option);

/* The exit status of a program whose verb returned `r`. Flushes standard output first: output that
 * could not be written is reported and makes the status EXIT_FAILURE. */
int cli_exit_status(int r);

/* Says "headstart: …" and where help is; returns CLI_WRONG_USAGE. */
int cli_usage_error(const Context *c, const char *format, ...) _printf_(2, 3);

/* Says "headstart: …" in one line; "%m" is the text of `error`, which may have either sign.
 * Returns -abs(error) (-EIO for 0), so that it can be returned as it is. */
int cli_error(int error, const char *format, ...) _printf_(2, 3);

/* The same for what does not stop us. */
void cli_warning(int error, const char *format, ...) _printf_(2, 3);

/* Parse an option's argument; complain as wrong usage. 0 or CLI_WRONG_USAGE. */
int cli_parse_stage(const Context *c, const char *value, Stage *ret);
int cli_parse_uid(const Context *c, const char *value, uint32_t *ret); /* of --user=: uid or name */

/* --- output.c --------------------------------------------------------------------------------- */

/* Sets the locale's characters, by which tables are aligned and names of files printed. Where the
 * environment names no locale they are UTF-8: names are, on nearly every system. For main(). */
void cli_set_locale(void);

/* The JSON text and a newline, to standard output. Takes the reference, also on failure. 0, -ENOMEM
 * (o is NULL), or the error of writing. */
int output_json(JsonMode mode, json_object *o);

/* Print the table, or its only row as fields: as text, or as JSON with --json=. 0, or an error that
 * was reported. */
int cli_print(const Context *c, const Table *t);
int cli_print_fields(const Context *c, const Table *t);

/* Prints one object as JSON, whatever --json= says: the arguments are those of table_row(). 0, or
 * an error that was reported. */
int cli_print_json(const Context *c, const Column *columns, ...);
