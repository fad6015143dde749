/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart rerecord: records again, at the next boot (headstartd reads the request) or now. */

#include "base/atomic-file.h"
#include "cli/cli-state.h"
#include "cli/early.h"
#include "cli/systemctl.h"
#include "state/rerecord.h"

#include <fcntl.h>
#include <string.h>

enum {
    OPTION_NOW = 1,
    OPTION_NEXT_BOOT,
    OPTION_STAGE,
    OPTION_USER,
    OPTION_EXACT,
};

static const Option options[] = {
        {OPTION_NOW, 0, "now", NULL, "Start recording now: restart headstart-record.service"},
        {OPTION_NEXT_BOOT, 0, "next-boot", NULL, "Record the next boot and login (the default)"},
        {OPTION_STAGE, 0, "stage", "STAGE[,…]", "Record only these stages [boot,login]"},
        {OPTION_USER, 0, "user", "USER", "Record only logins and sessions of this user"},
        {OPTION_EXACT, 0, "exact", NULL, "Lower read-ahead to record exact ranges; slower"},
        {0},
};

/* "boot,login" -> set of stages as bits */
static int parse_stages(const Context *c, const char *value, unsigned *ret)
{
    _cleanup_free_ char *copy = strdup(value);
    unsigned set = 0;
    char *p = copy, *word;

    if (!copy)
        return cli_error(ENOMEM, "%m");
    while ((word = strsep(&p, ","))) {
        Stage s;
        int r = cli_parse_stage(c, word, &s);

        if (r < 0)
            return r;
        set |= 1U << s;
    }
    *ret = set;
    return 0;
}

/* A file a stage: the units' conditions look for them. */
static int write_flags(const Context *c, unsigned stages, uint32_t uid, bool exact)
{
    _cleanup_close_ int fd = -EBADF;
    char name[RERECORD_NAME_MAX];
    int r = cli_state_open(c, true, &fd);

    for (Stage s = 0; r >= 0 && s < _STAGE_MAX; s++) {
        r = stages & 1U << s ? rerecord_write(fd, s, uid, exact) : 0;
        if (r < 0)
            cli_error(r, "%s/%s: %m", c->state, rerecord_name(name, s));
    }
    /* Early boot might see the copy, and not the flag. */
    if (r >= 0 && stages & 1U << STAGE_BOOT)
        r = early_pack_update(c, fd, NULL, 0);
    return r;
}

static int run(Context *c)
{
    unsigned stages = 1U << STAGE_BOOT | 1U << STAGE_LOGIN;
    uint32_t uid = UID_INVALID;
    bool now = false, next_boot = false, exact = false;
    const char *value;
    int k, r;

    while ((k = cli_next_option(c, &value)) > 0)
        switch (k) {
        case OPTION_NOW:
            now = true;
            break;
        case OPTION_NEXT_BOOT:
            next_boot = true;
            break;
        case OPTION_STAGE:
            r = parse_stages(c, value, &stages);
            if (r < 0)
                return r;
            break;
        case OPTION_USER:
            r = cli_parse_uid(c, value, &uid);
            if (r < 0)
                return r;
            break;
        case OPTION_EXACT:
            exact = true;
            break;
        }
    if (k < 0)
        return k;
    if (now && next_boot)
        return cli_usage_error(c, "either --now or --next-boot");
    if (now && !systemctl_available())
        return cli_error(EOPNOTSUPP, "this system was not booted with systemd: use 'headstart "
                                     "record' to record now");

    r = write_flags(c, stages, uid, exact);
    if (r < 0)
        return r;
    if (c->json != JSON_OFF) {
        static const Column columns[] = {
                {NULL, "when", CELL_STRING},
                {NULL, "exact", CELL_BOOLEAN},
                {0},
        };

        r = cli_print_json(c, columns, now ? "now" : "next-boot", (int)exact);
        if (r < 0)
            return r;
    } else if (!c->quiet)
        puts(now ? "Recording now: headstart-record.service is started anew."
                 : "The next boot will be recorded anew.");
    if (!now)
        return 0;
    fflush(stdout);
    execlp("systemctl", "systemctl", "restart", "headstart-record.service", NULL);
    return cli_error(errno, "cannot run systemctl: %m");
}

const Verb verb_rerecord = {
        .name = "rerecord",
        .arguments = "",
        .summary = "Record the next boot and login without replay",
        .description =
                "Nothing is replayed in a stage that is recorded again, so that its trace shows\n"
                "what is really used. The model is kept, and the new traces are added to it. A\n"
                "request expires after a week.",
        .options = options,
        .run = run,
};
