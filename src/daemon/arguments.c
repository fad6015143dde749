/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/arguments.h"

#include "base/log.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/uid.h"
#include "boot/read-ahead.h"
#include "config-paths.h"

#include <stdio.h>
#include <string.h>

enum {
    OPTION_HELP = 1,
    OPTION_VERSION,
    OPTION_ROOT,
    OPTION_STATE,
    OPTION_RUN,
    OPTION_STAGE,
    OPTION_UID,
    OPTION_EXACT,
    OPTION_RESTORE,
    OPTION_PRETEND,
};

static const Option options[] = {
        {OPTION_HELP, 'h', "help", NULL, "Show this help"},
        {OPTION_VERSION, 0, "version", NULL, "Show the version"},
        {OPTION_ROOT, 0, "root", "DIR", "Record only below DIR; paths are relative to it"},
        {OPTION_STATE, 0, "state", "DIR", "State directory [" HEADSTART_STATE_DIR "]"},
        {OPTION_RUN, 0, "run", "DIR", "Runtime directory [" HEADSTART_RUN_DIR "]"},
        {OPTION_STAGE, 0, "stage", "STAGE[,…]",
         "Record these stages; SIGUSR1 ends a stage and\nbegins the next. auto, or auto,STAGE[,…]: "
         "follow\nsystemd and logind, record all or only these"},
        {OPTION_UID, 0, "uid", "UID", "User of the recorded login and session"},
        {OPTION_EXACT, 0, "exact", NULL, "Lower read-ahead to record exact ranges; slower"},
        {OPTION_RESTORE, 0, "restore", NULL, "Restore read-ahead after a crash, and exit"},
        {OPTION_PRETEND, 0, "pretend", "no-THING[,…]",
         "Do without cachestat, proc-connector, fowner or\nunlimited-queue"},
        {0},
};

static void help(void)
{
    puts("headstartd [OPTIONS…]\n\n"
         "Record what a boot, a login and a session read.\n\n"
         "Options:");
    options_print(options);
    puts("\nSee the headstartd(8) man page for details.");
}

/* Parses the list of stages. Returns 1, or -EINVAL or -ENOMEM, which were reported. */
static int parse_stages(const char *value, Arguments *a)
{
    _cleanup_free_ char *list = strdup(value);

    if (!list)
        return log_oom();
    a->n_stages = 0;
    a->automatic = false;
    for (char *save = NULL, *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        Stage s = stage_from_string(w);

        if (w == list && strcmp(w, "auto") == 0) {
            a->automatic = true;
            continue;
        }
        if ((int)s < 0 || a->n_stages >= _STAGE_MAX)
            return options_refuse("headstartd", "--stage=%s: no such stage: '%s'", value, w);
        a->stages[a->n_stages++] = s;
    }
    return 1;
}

/* Parses the list of abilities that the recorder pretends to lack. Returns 1, or -EINVAL or
 * -ENOMEM, which were reported. */
static int parse_pretend(const char *value, RecorderOptions *o)
{
    _cleanup_free_ char *list = strdup(value);

    if (!list)
        return log_oom();
    for (char *save = NULL, *w = strtok_r(list, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (strcmp(w, "no-cachestat") == 0)
            o->no_cachestat = true;
        else if (strcmp(w, "no-proc-connector") == 0)
            o->no_proc_connector = true;
        else if (strcmp(w, "no-fowner") == 0)
            o->no_fowner = true;
        else if (strcmp(w, "no-unlimited-queue") == 0)
            o->no_unlimited_queue = true;
        else
            return options_refuse("headstartd", "--pretend=%s: cannot pretend '%s'", value, w);
    }
    return 1;
}

/* Applies one option. Returns 1 to continue, 0 if help or version was printed, or an error as
 * arguments_parse() does. */
static int parse_option(int option, const char *value, Arguments *a)
{
    uint64_t number;

    switch (option) {
    case OPTION_HELP:
        help();
        return 0;
    case OPTION_VERSION:
        printf("headstartd %s\n", HEADSTART_VERSION);
        return 0;
    case OPTION_ROOT:
        a->root = value;
        break;
    case OPTION_STATE:
        a->state = value;
        break;
    case OPTION_RUN:
        a->run = value;
        break;
    case OPTION_STAGE:
        return parse_stages(value, a);
    case OPTION_UID:
        if (parse_u64(value, &number) < 0 || number >= UID_INVALID)
            return options_refuse("headstartd", "--uid=%s: not a user id", value);
        a->uid = (uint32_t)number;
        break;
    case OPTION_EXACT:
        a->recorder.exact_kb = READ_AHEAD_EXACT_KB;
        break;
    case OPTION_RESTORE:
        a->restore = true;
        break;
    case OPTION_PRETEND:
        return parse_pretend(value, &a->recorder);
    }
    return 1;
}

int arguments_parse(int argc, char **argv, Arguments *ret)
{
    Options o = {.own = options, .argc = argc, .argv = argv};
    Arguments a = {.root = "/", .state = HEADSTART_STATE_DIR, .uid = UID_INVALID};
    const char *value;
    int k, r, n;

    while ((k = options_next(&o, &value)) > 0) {
        r = parse_option(k, value, &a);
        if (r <= 0)
            return r;
    }
    if (k < 0)
        return options_refuse("headstartd", "%s", o.message);
    value = *options_arguments(&o, &n);
    if (n > 0)
        return options_refuse("headstartd", "unexpected argument: '%s'", value);
    if (!a.automatic && a.n_stages == 0)
        a.stages[a.n_stages++] = STAGE_BOOT;
    /* The machine's /run belongs to the recorder whose root is "/". */
    if (!a.run && strcmp(a.root, "/") == 0)
        a.run = HEADSTART_RUN_DIR;
    a.recorder.root = a.root;
    a.recorder.run_dir = a.run;
    a.recorder.store = a.state;
    a.recorder.take_over = a.recorder.intervals = a.automatic;
    *ret = a;
    return 1;
}
