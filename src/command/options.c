/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The command line of `headstart`: global options, the verb, and its --help. */

#include "base/parse.h"
#include "base/uid.h"
#include "command/cli.h"

#include <fcntl.h>
#include <pwd.h>
#include <string.h>

#include "config-paths.h"

enum {
    GLOBAL_HELP = 100000, /* ids above those of any verb */
    GLOBAL_VERSION,
    GLOBAL_JSON,
    GLOBAL_STATE,
    GLOBAL_ROOT,
    GLOBAL_QUIET,
};

static const Option global_options[] = {
        {GLOBAL_HELP, 'h', "help", NULL, "Show this help"},
        {GLOBAL_VERSION, 0, "version", NULL, "Show the version"},
        {GLOBAL_STATE, 0, "state", "DIR",
         "State directory: traces, model and packs\n[" HEADSTART_STATE_DIR "]"},
        {GLOBAL_ROOT, 0, "root", "DIR",
         "Directory to which the paths in traces, model and\npacks are relative [/]"},
        {GLOBAL_JSON, 0, "json", "MODE", "Print JSON: short, pretty or off"},
        {GLOBAL_QUIET, 'q', "quiet", NULL, "Print no summary, note or progress"},
        {0},
};

Context cli_context_default(void)
{
    return (Context){
            .state = HEADSTART_STATE_DIR,
            .root = "/",
            .system_fd = AT_FDCWD,
            .config = config_default(),
    };
}

/* --- arguments of options --------------------------------------------------------------------- */

int cli_parse_stage(const Context *c, const char *value, Stage *ret)
{
    Stage s = stage_from_string(value);

    if (s < 0)
        return cli_usage_error(c, "no such stage: '%s' (boot, login or session)", value);
    *ret = s;
    return 0;
}

int cli_parse_limit(const Context *c, const char *value, uint64_t *ret)
{
    return parse_u64(value, ret) < 0 ? cli_usage_error(c, "--limit=%s: not a number", value) : 0;
}

int cli_parse_uid(const Context *c, const char *value, uint32_t *ret)
{
    const struct passwd *p;
    uint64_t uid;

    if (parse_u64(value, &uid) >= 0 && uid < UID_INVALID) {
        *ret = (uint32_t)uid;
        return 0;
    }
    p = value[0] < '0' || value[0] > '9' ? getpwnam(value) : NULL;
    if (!p)
        return cli_usage_error(c, "--user=%s: no such user", value);
    *ret = p->pw_uid;
    return 0;
}

/* --- help ------------------------------------------------------------------------------------- */

/* Returns the options as rows of a table, for --help with --json=. */
static Table *options_table(const Option *list)
{
    static const Column columns[] = {
            {NULL, "letter", CELL_STRING},
            {NULL, "name", CELL_STRING},
            {NULL, "argument", CELL_STRING},
            {NULL, "help", CELL_STRING},
            {0},
    };
    Table *t = table_new(columns);

    for (const Option *o = list; o && o->id; o++) {
        const char letter[] = {o->letter, 0};

        table_row(t, o->letter ? letter : NULL, o->name, o->argument, o->help);
    }
    return t;
}

static const Column verb_columns[] = {
        {NULL, "name", CELL_STRING},    {NULL, "arguments", CELL_STRING},
        {NULL, "summary", CELL_STRING}, {NULL, "description", CELL_STRING},
        {NULL, "options", CELL_TABLE},  {0},
};

static void add_verb(Table *t, const Verb *v)
{
    table_row(t, v->name, v->arguments, v->summary, v->description, options_table(v->options));
}

static int print_help_json(const Context *c, const Verb *const *verbs)
{
    static const Column columns[] = {
            {NULL, "verbs", CELL_TABLE},
            {NULL, "options", CELL_TABLE},
            {0},
    };
    _cleanup_table_ Table *t = table_new(columns);
    Table *v = table_new(verb_columns);

    for (; *verbs; verbs++)
        add_verb(v, *verbs);
    table_row(t, v, options_table(global_options));
    return cli_print_fields(c, t);
}

static int print_verb_help_json(const Context *c)
{
    _cleanup_table_ Table *t = table_new(verb_columns);

    add_verb(t, c->verb);
    return cli_print_fields(c, t);
}

static void print_help(const Verb *const *verbs)
{
    puts("headstart [OPTIONS…] VERB …\n\n"
         "Make this machine boot and log in faster.\n\n"
         "Verbs:");
    for (; *verbs; verbs++) {
        char text[64];

        snprintf(text, sizeof(text), "  %s%s%s", (*verbs)->name, *(*verbs)->arguments ? " " : "",
                 (*verbs)->arguments);
        options_print_term(text, (*verbs)->summary);
    }
    puts("\nOptions:");
    options_print(global_options);
    puts("\nSee the headstart(8) man page for details.");
}

static void print_verb_help(const Verb *v)
{
    printf("headstart %s [OPTIONS…]%s%s\n\n%s.\n", v->name, *v->arguments ? " " : "", v->arguments,
           v->summary);
    if (v->description)
        printf("\n%s\n", v->description);
    puts("\nOptions:");
    options_print(v->options);
    options_print(global_options);
    puts("\nSee the headstart(8) man page for details.");
}

/* --- parsing ---------------------------------------------------------------------------------- */

static JsonMode json_mode_from_string(const char *s)
{
    static const char *const names[] = {
            [JSON_OFF] = "off", [JSON_SHORT] = "short", [JSON_PRETTY] = "pretty"};

    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        if (strcmp(s, names[i]) == 0)
            return (JsonMode)i;
    return _JSON_MODE_INVALID;
}

static int set_global(Context *c, int id, const char *value)
{
    switch (id) {
    case GLOBAL_VERSION:
        puts("headstart " HEADSTART_VERSION);
        return CLI_HELP_SHOWN;
    case GLOBAL_JSON: {
        JsonMode m = json_mode_from_string(value);

        if (m < 0)
            return cli_usage_error(c, "no such JSON mode: '%s' (short, pretty or off)", value);
        c->json = m;
        return 0;
    }
    case GLOBAL_STATE:
        if (!*value)
            return cli_usage_error(c, "--state= needs a directory");
        c->state = value;
        return 0;
    case GLOBAL_ROOT:
        if (!*value)
            return cli_usage_error(c, "--root= needs a directory");
        c->root = value;
        return 0;
    default:
        c->quiet = true;
        return 0;
    }
}

int cli_parse_global(Context *c, const Verb *const *verbs, int argc, char **argv)
{
    Options o = {.common = global_options, .argc = argc, .argv = argv, .stop = true};
    const char *value;
    char **arguments;
    int k, n, r;

    while ((k = options_next(&o, &value)) > 0) {
        if (k == GLOBAL_HELP && c->json != JSON_OFF) {
            r = print_help_json(c, verbs);
            return r < 0 ? r : CLI_HELP_SHOWN;
        }
        if (k == GLOBAL_HELP) {
            print_help(verbs);
            return CLI_HELP_SHOWN;
        }
        r = set_global(c, k, value);
        if (r < 0)
            return r;
    }
    if (k < 0)
        return cli_usage_error(c, "%s", o.message);
    arguments = options_arguments(&o, &n);
    if (n == 0)
        return cli_usage_error(c, "no verb given");
    for (; *verbs && strcmp((*verbs)->name, arguments[0]) != 0;)
        verbs++;
    if (!*verbs)
        return cli_usage_error(c, "unknown verb '%s'", arguments[0]);
    cli_set_verb(c, *verbs, n, arguments);
    return 0;
}

void cli_set_verb(Context *c, const Verb *verb, int argc, char **argv)
{
    c->verb = verb;
    c->options = (Options){
            .own = verb->options,
            .common = global_options,
            .argc = argc,
            .argv = argv,
            .stop = verb->takes_command,
    };
}

static int check_arguments(const Context *c)
{
    const Verb *v = c->verb;
    int n;

    cli_arguments(c, &n);
    if ((unsigned)n < v->min_arguments)
        return cli_usage_error(c, "%s needs an argument: %s", v->name, v->arguments);
    if ((unsigned)n > v->max_arguments && v->max_arguments == 0)
        return cli_usage_error(c, "%s takes no arguments", v->name);
    if ((unsigned)n > v->max_arguments)
        return v->max_arguments == 1
                       ? cli_usage_error(c, "%s takes one argument: %s", v->name, v->arguments)
                       : cli_usage_error(c, "%s takes at most %u arguments: %s", v->name,
                                         v->max_arguments, v->arguments);
    return 0;
}

int cli_next_option(Context *c, const char **ret_value)
{
    int k, r;

    while ((k = options_next(&c->options, ret_value)) >= GLOBAL_HELP) {
        if (k == GLOBAL_HELP && c->json != JSON_OFF) {
            r = print_verb_help_json(c);
            return r < 0 ? r : CLI_HELP_SHOWN;
        }
        if (k == GLOBAL_HELP) {
            print_verb_help(c->verb);
            return CLI_HELP_SHOWN;
        }
        r = set_global(c, k, *ret_value);
        if (r < 0)
            return r;
    }
    if (k < 0)
        return cli_usage_error(c, "%s", c->options.message);
    return k > 0 ? k : check_arguments(c);
}

int cli_no_options(Context *c)
{
    const char *value;

    return cli_next_option(c, &value);
}

char **cli_arguments(const Context *c, int *ret_n)
{
    return options_arguments(&c->options, ret_n);
}

int cli_run_verb(const Context *c, const Verb *verb, const char *option)
{
    char *argv[] = {(char *)verb->name, (char *)option, NULL};
    Context x = *c;
    int r;

    x.json = JSON_OFF;
    x.quiet = true;
    cli_set_verb(&x, verb, option ? 2 : 1, argv);
    r = verb->run(&x);
    return r > 0 ? -EIO : r;
}
