/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The command line: declared options, getopt_long(3), and the --help that is printed from them. */

#include "base/parse.h"
#include "base/uid.h"
#include "cli/cli.h"

#include <getopt.h>
#include <pwd.h>
#include <stdarg.h>
#include <string.h>

#include "config-paths.h"

#define HELP_COLUMN 28

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
         "Where traces, model and packs are [" HEADSTART_STATE_DIR "]"},
        {GLOBAL_ROOT, 0, "root", "DIR", "Where the paths in them begin [/]"},
        {GLOBAL_JSON, 0, "json", "MODE", "Print JSON: short, pretty or off"},
        {GLOBAL_QUIET, 'q', "quiet", NULL, "Print errors only"},
        {0},
};

/* --- messages --------------------------------------------------------------------------------- */

int cli_usage_error(const Context *c, const char *format, ...)
{
    char message[1024];
    va_list ap;

    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    fprintf(stderr, "headstart: %s (try 'headstart%s%s --help')\n", message, c->verb ? " " : "",
            c->verb ? c->verb->name : "");
    return CLI_WRONG_USAGE;
}

int cli_error(int error, const char *format, ...)
{
    char message[2048];
    va_list ap;

    error = error < 0 ? -error : error;
    errno = error; /* for %m */
    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    fprintf(stderr, "headstart: %s\n", message);
    return error ? -error : -EIO;
}

void cli_warning(int error, const char *format, ...)
{
    char message[2048];
    va_list ap;

    errno = error < 0 ? -error : error;
    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    fprintf(stderr, "headstart: %s\n", message);
}

int cli_exit_status(int r)
{
    if (r == CLI_WRONG_USAGE)
        return EXIT_USAGE;
    if (r == CLI_HELP_SHOWN)
        r = EXIT_SUCCESS;
    if (fflush(stdout) < 0 || ferror(stdout)) {
        cli_error(errno, "cannot write the output: %m");
        r = r > 0 ? r : EXIT_FAILURE;
    }
    return r < 0 ? EXIT_FAILURE : r;
}

int cli_parse_stage(const Context *c, const char *value, Stage *ret)
{
    Stage s = stage_from_string(value);

    if (s < 0)
        return cli_usage_error(c, "no such stage: '%s' (boot, login or session)", value);
    *ret = s;
    return 0;
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

/* What a text has more in bytes than in columns: "…" is three bytes and one column. */
static int continuation_bytes(const char *s)
{
    int n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) == 0x80;
    return n;
}

static void print_options(const Option *options)
{
    for (const Option *o = options; o && o->id; o++) {
        int n = o->letter ? printf("  -%c --%s", o->letter, o->name) : printf("     --%s", o->name);

        if (o->argument)
            n += printf("=%s", o->argument) - continuation_bytes(o->argument);
        if (n >= HELP_COLUMN)
            printf("\n%*s", HELP_COLUMN, "");
        else
            printf("%*s", HELP_COLUMN - n, "");
        puts(o->help);
    }
}

static void print_help(const Verb *const *verbs)
{
    puts("headstart [OPTIONS…] VERB …\n\n"
         "Make this machine boot and log in faster.\n\n"
         "Verbs:");
    for (; *verbs; verbs++) {
        int n = printf("  %s%s%s", (*verbs)->name, *(*verbs)->arguments ? " " : "",
                       (*verbs)->arguments);

        n -= continuation_bytes((*verbs)->arguments);
        if (n >= HELP_COLUMN)
            printf("\n%*s", HELP_COLUMN, "");
        else
            printf("%*s", HELP_COLUMN - n, "");
        puts((*verbs)->summary);
    }
    puts("\nOptions:");
    print_options(global_options);
    puts("\nSee the headstart(8) man page for details.");
}

static void print_verb_help(const Verb *v)
{
    printf("headstart %s [OPTIONS…]%s%s\n\n%s.\n", v->name, *v->arguments ? " " : "", v->arguments,
           v->summary);
    if (v->description)
        printf("\n%s\n", v->description);
    puts("\nOptions:");
    print_options(v->options);
    print_options(global_options);
    puts("\nSee the headstart(8) man page for details.");
}

/* --- parsing ---------------------------------------------------------------------------------- */

static size_t count_options(const Option *options)
{
    size_t n = 0;

    while (options && options[n].id)
        n++;
    return n;
}

/* Fills getopt's tables from ours. `start`: "+" stops at the first argument. The leading ':' lets
 * us word the messages. */
static int make_getopt(Context *c, const Option *own, const char *start)
{
    size_t n = count_options(own) + count_options(global_options), k = 0;
    struct option *table = calloc(n + 1, sizeof(struct option));
    char *letters = malloc(2 * n + 4), *p = letters;

    cli_done(c);
    c->getopt_table = table;
    c->getopt_letters = letters;
    if (!table || !letters)
        return cli_error(ENOMEM, "out of memory");
    p = stpcpy(p, start);
    *p++ = ':';
    for (int pass = 0; pass < 2; pass++)
        for (const Option *o = pass ? global_options : own; o && o->id; o++) {
            table[k++] = (struct option){
                    .name = o->name,
                    .has_arg = o->argument ? required_argument : no_argument,
                    .val = o->id,
            };
            if (o->letter)
                *p++ = o->letter;
            if (o->letter && o->argument)
                *p++ = ':';
        }
    *p = 0;
    return 0;
}

static int id_of_letter(const Option *own, int letter)
{
    for (int pass = 0; pass < 2; pass++)
        for (const Option *o = pass ? global_options : own; o && o->id; o++)
            if (o->letter && o->letter == letter)
                return o->id;
    return letter;
}

static JsonMode json_mode_from_string(const char *s)
{
    static const char *const names[] = {
            [JSON_OFF] = "off", [JSON_SHORT] = "short", [JSON_PRETTY] = "pretty"};

    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        if (strcmp(s, names[i]) == 0)
            return (JsonMode)i;
    return _JSON_MODE_INVALID;
}

static int take_global(Context *c, int id, const char *value)
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

/* What getopt could not use, in one line. */
static int bad_option(const Context *c, int k, char **argv)
{
    const char *word = argv[optind - 1];

    if (optopt >= GLOBAL_HELP || (optopt > 0 && strncmp(word, "--", 2) == 0)) {
        if (k == ':')
            return cli_usage_error(c, "option '%s' needs an argument", word);
        return cli_usage_error(c, "option '%.*s' takes no argument", (int)strcspn(word, "="), word);
    }
    if (optopt > 0)
        return cli_usage_error(
                c, k == ':' ? "option '-%c' needs an argument" : "unknown option '-%c'", optopt);
    return cli_usage_error(c, "unknown option '%.*s'", (int)strcspn(word, "="), word);
}

int cli_parse_global(Context *c, const Verb *const *verbs, int argc, char **argv)
{
    int k, r;

    r = make_getopt(c, NULL, "+");
    if (r < 0)
        return r;
    opterr = 0;
    optind = 0;
    while ((k = getopt_long(argc, argv, c->getopt_letters, c->getopt_table, NULL)) != -1) {
        if (k == ':' || k == '?')
            return bad_option(c, k, argv);
        k = id_of_letter(NULL, k);
        if (k == GLOBAL_HELP) {
            print_help(verbs);
            return CLI_HELP_SHOWN;
        }
        r = take_global(c, k, optarg);
        if (r < 0)
            return r;
    }
    return optind < argc ? optind : 0;
}

int cli_next_option(Context *c, const char **ret_value)
{
    int k, r;

    if (!c->getopt_table) { /* the first call for this verb */
        r = make_getopt(c, c->verb->options, c->verb->takes_command ? "+" : "");
        if (r < 0)
            return r;
        optind = 0;
    }
    while ((k = getopt_long(c->argc, c->argv, c->getopt_letters, c->getopt_table, NULL)) != -1) {
        if (k == ':' || k == '?')
            return bad_option(c, k, c->argv);
        k = id_of_letter(c->verb->options, k);
        if (k == GLOBAL_HELP) {
            print_verb_help(c->verb);
            return CLI_HELP_SHOWN;
        }
        if (k < GLOBAL_HELP) {
            *ret_value = optarg;
            return k;
        }
        r = take_global(c, k, optarg);
        if (r < 0)
            return r;
    }
    return 0;
}

char **cli_arguments(const Context *c, int *ret_n)
{
    *ret_n = c->argc - optind;
    return c->argv + optind;
}

void cli_done(Context *c)
{
    free(c->getopt_table);
    free(c->getopt_letters);
    c->getopt_table = NULL;
    c->getopt_letters = NULL;
}

int cli_run_verb(const Context *c, const Verb *verb, const char *option)
{
    char *argv[] = {(char *)verb->name, (char *)option, NULL};
    Context x = *c;
    int r;

    x.verb = verb;
    x.json = JSON_OFF;
    x.quiet = true;
    x.argv = argv;
    x.argc = option ? 2 : 1;
    x.getopt_table = NULL;
    x.getopt_letters = NULL;
    r = verb->run(&x);
    cli_done(&x);
    return r > 0 ? -EIO : r;
}
