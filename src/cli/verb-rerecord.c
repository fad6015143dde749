/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart rerecord: records again, at the next boot (headstartd reads the request) or now. */

#include "base/atomic-file.h"
#include "boot/read-ahead.h"
#include "command/cli-state.h"
#include "command/progress.h"
#include "command/systemctl.h"
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

/* Parses "boot,login" into bits 1 << Stage. Returns 0, or an error that was reported. */
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

typedef struct Request {
    unsigned stages; /* bits 1 << Stage */
    uint32_t uid;    /* UID_INVALID: any */
    bool now, exact;
} Request;

static int parse_options(Context *c, Request *q)
{
    bool next_boot = false;
    const char *value;
    int k, r = 0;

    while ((k = cli_next_option(c, &value)) > 0) {
        switch (k) {
        case OPTION_NOW:
            q->now = true;
            break;
        case OPTION_NEXT_BOOT:
            next_boot = true;
            break;
        case OPTION_STAGE:
            r = parse_stages(c, value, &q->stages);
            break;
        case OPTION_USER:
            r = cli_parse_uid(c, value, &q->uid);
            break;
        case OPTION_EXACT:
            q->exact = true;
            break;
        }
        if (r < 0)
            return r;
    }
    if (k < 0)
        return k;
    if (q->now && next_boot)
        return cli_usage_error(c, "either --now or --next-boot");
    return 0;
}

/* Writes one request for each stage, because each replay unit has a condition on the request of its
 * stage. Returns 0, or an error that was reported. */
static int write_requests(const Context *c, const Request *q)
{
    _cleanup_close_ int fd = -EBADF;
    char name[RERECORD_NAME_MAX];
    int r = cli_state_open(c, true, &fd);

    for (Stage s = 0; r >= 0 && s < _STAGE_MAX; s++) {
        r = q->stages & 1U << s ? rerecord_write(fd, s, q->uid, q->exact ? READ_AHEAD_EXACT_KB : 0)
                                : 0;
        if (r < 0)
            cli_error(r, "%s/%s: %m", c->state, rerecord_name(name, s));
    }
    /* Early boot may see the copy of the boot pack but not the request, so the copy is removed. */
    if (r >= 0 && q->stages & 1U << STAGE_BOOT)
        r = cli_state_update_early_pack(c, fd, NULL, 0);
    return r;
}

static int print(const Context *c, const Request *q)
{
    static const Column columns[] = {
            {NULL, "when", CELL_STRING},
            {NULL, "exact", CELL_BOOLEAN},
            {0},
    };

    if (c->json != JSON_OFF)
        return cli_print_json(c, columns, q->now ? "now" : "next-boot", (int)q->exact);
    if (c->quiet)
        return 0;
    if (q->now) {
        puts("Recording now: headstart-record.service was restarted.");
        return 0;
    }
    fputs("The next ", stdout);
    for (Stage s = 0, n = 0; s < _STAGE_MAX; s++)
        if (q->stages & 1U << s)
            printf("%s%s", n++ == 0 ? "" : q->stages >> s > 1 ? ", " : " and ", stage_to_string(s));
    puts(" will be recorded without replay.");
    return 0;
}

/* Returns 0, or an error that systemctl or this function has reported. */
static int restart_recording(const Context *c)
{
    static const char *const restart[] = {"restart", "headstart-record.service", NULL};
    Progress progress = progress_start("Waiting for systemd", c->quiet);
    int r = systemctl_run(restart, false);

    progress_done(&progress);
    if (r < 0)
        return cli_error(r, "cannot run systemctl: %m");
    return r > 0 ? cli_error(EIO, "systemctl restart headstart-record.service failed") : 0;
}

static int run(Context *c)
{
    Request q = {.stages = 1U << STAGE_BOOT | 1U << STAGE_LOGIN, .uid = UID_INVALID};
    int r = parse_options(c, &q);

    if (r < 0)
        return r;
    if (q.now && !systemctl_available())
        return cli_error(EOPNOTSUPP, "this system was not booted with systemd: use 'headstart "
                                     "record' to record now");
    r = write_requests(c, &q);
    if (r >= 0 && q.now)
        r = restart_recording(c);
    return r < 0 ? r : print(c, &q);
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
