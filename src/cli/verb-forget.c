/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart forget: deletes recordings and everything that was learned from them, or only what
 * belongs to one stage or user. */

#include "base/directory.h"
#include "base/json-util.h"
#include "base/text.h"
#include "boot/last-control.h"
#include "command/cli-state.h"
#include "command/systemctl.h"
#include "measure/history.h"
#include "state/idle-boot.h"
#include "state/trace-store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

enum {
    OPTION_STAGE = 1,
    OPTION_USER,
};

static const Option options[] = {
        {OPTION_STAGE, 0, "stage", "STAGE", "Delete only recordings of boot, login or session"},
        {OPTION_USER, 0, "user", "USER", "Delete only recordings of this user"},
        {0},
};

typedef struct Forgetting {
    const Context *c;
    int state_fd;
    Stage stage;   /* _STAGE_INVALID: all */
    uint32_t user; /* UID_INVALID: all */
    uint64_t n_traces, n_packs, n_left;
} Forgetting;

static bool is_partial(const Forgetting *f)
{
    return f->stage >= 0 || f->user != UID_INVALID;
}

/* Returns 0, or an error that was reported. */
static int drop(const Forgetting *f, int dir_fd, const char *name)
{
    if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
        return cli_error(errno, "%s: cannot remove %s: %m", f->c->state, name);
    return 0;
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), l = strlen(suffix);

    return n > l && strcmp(name + n - l, suffix) == 0;
}

/* Returns 1 if the trace belongs to the user or may belong to any user, because its content is bad;
 * 0 if it belongs to another; or the error of reading. */
static int read_affected(const Forgetting *f, int dir_fd, const char *name)
{
    _cleanup_free_ char *error = NULL;
    _cleanup_trace_ Trace *t = NULL;
    int r = state_read_trace(dir_fd, name, &t, &error);

    if (r < 0)
        return state_is_bad_content(r) ? 1 : r;
    return t->uid == f->user || (t->stage != STAGE_BOOT && t->uid == UID_INVALID);
}

/* Finds the stage of a trace by its name. *ret_aside becomes true if the trace was set aside.
 * Returns false if the name is not that of a trace. */
static bool parse_name(const char *name, Stage *ret_stage, bool *ret_aside)
{
    const char *end = strstr(name, ".json");
    size_t n = end ? (size_t)(end - name) + strlen(".json") : 0;
    char head[64];
    unsigned number;

    if (n == 0 || n >= sizeof(head))
        return false;
    memcpy(head, name, n);
    head[n] = 0;
    *ret_aside = name[n] != 0;
    return trace_name_parse(head, ret_stage, &number) >= 0;
}

/* Returns 1 if the trace is to be deleted, 0 if it stays, or a negative errno. */
static int is_affected(const Forgetting *f, int dir_fd, const char *name)
{
    Stage stage;
    bool aside;

    if (!is_partial(f))
        return 1;
    if (!parse_name(name, &stage, &aside))
        return f->user != UID_INVALID; /* it may contain anything */
    if (f->stage >= 0 && stage != f->stage)
        return 0;
    if (f->user == UID_INVALID || aside)
        return 1;
    /* If an allocation fails, json-c may lose a member or report a bad text. A trace is therefore
     * deleted only if it is affected twice while there is memory. */
    for (int attempt = 0; attempt < 2; attempt++) {
        int r = read_affected(f, dir_fd, name);

        if (r != 1)
            return r;
    }
    return memory_is_short() ? -ENOMEM : 1;
}

/* Calls `each` for the regular files of the directory. Returns 0, or an error that was reported. */
static int for_each_file(Forgetting *f, const char *path,
                         int (*each)(Forgetting *f, int dir_fd, const char *name))
{
    _cleanup_closedir_ DIR *dir = NULL;
    int r = directory_open(f->state_fd, path, O_NOFOLLOW, &dir);
    const struct dirent *e;

    if (r < 0)
        return r == -ENOENT ? 0 : cli_error(r, "%s/%s: %m", f->c->state, path);
    while (r >= 0 && (e = directory_next(dir)))
        if (e->d_type == DT_REG || e->d_type == DT_UNKNOWN)
            r = each(f, dirfd(dir), e->d_name);
    /* What was deleted does not come back after a power cut. */
    if (r >= 0 && fsync(dirfd(dir)) < 0)
        r = cli_error(errno, "%s/%s: %m", f->c->state, path);
    return r;
}

static int forget_trace(Forgetting *f, int dir_fd, const char *name)
{
    Stage stage;
    bool aside;
    int r;

    /* Only traces, traces that were set aside, and temporary files of killed writers are
     * deleted. */
    if (!strstr(name, ".json") && !has_suffix(name, ".tmp"))
        return 0;
    r = is_affected(f, dir_fd, name);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return cli_error(r, "%s/" STATE_TRACES "/%s: %m", f->c->state, name);
    if (r == 0) {
        f->n_left += parse_name(name, &stage, &aside) && !aside;
        return 0;
    }
    r = drop(f, dir_fd, name);
    f->n_traces += r >= 0;
    return r;
}

/* Returns true for files with lines of sessions or starts that doctor's remedy has set aside.
 * Nobody can say whose lines they contain. */
static bool is_bad_history(const char *name)
{
    static const char *const names[] = {HISTORY_FILE ".bad", HISTORY_OLD_FILE ".bad",
                                        LAUNCHES_FILE ".bad", LAUNCHES_OLD_FILE ".bad"};

    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Deletes the file if it was made from traces. The packs are planned again from the traces that
 * stay. A temporary file of a killed writer is deleted as well, because it may contain anything. If
 * everything is forgotten, requests to record again or to refresh are deleted, too. */
static int forget_derived(Forgetting *f, int dir_fd, const char *name)
{
    bool pack = has_suffix(name, ".pack");
    int r;

    if (!pack && strcmp(name, STATE_IDLE_BOOT) != 0 && strcmp(name, LAST_CONTROL_FILE) != 0 &&
        !has_suffix(name, ".pack.bad") && !has_suffix(name, ".tmp") &&
        strcmp(name, STATE_MODEL ".bad") != 0 && !is_bad_history(name) &&
        strcmp(name, STATE_REBUILD) != 0 &&
        (is_partial(f) || (strncmp(name, STATE_RERECORD, strlen(STATE_RERECORD)) != 0 &&
                           strcmp(name, STATE_REFRESH) != 0)))
        return 0;
    r = drop(f, dir_fd, name);
    f->n_packs += r >= 0 && pack;
    return r;
}

static bool is_forgotten(const SessionRecord *s, const void *argument)
{
    const Forgetting *f = argument;

    return (f->stage < 0 || s->stage == f->stage) &&
           (f->user == UID_INVALID || s->uid == f->user ||
            (s->stage != STAGE_BOOT && s->uid == UID_INVALID));
}

static bool is_forgotten_start(const LaunchRecord *l, const void *argument)
{
    const Forgetting *f = argument;

    return l->uid == f->user || l->uid == UID_INVALID;
}

/* Deletes the affected starts of applications. Returns 0, or an error that was reported. */
static int forget_starts(const Forgetting *f)
{
    const LaunchTest test = {is_forgotten_start, f};
    int r;

    if (f->stage >= 0 && f->stage != STAGE_SESSION)
        return 0;
    if (f->user == UID_INVALID) {
        r = drop(f, f->state_fd, LAUNCHES_OLD_FILE);
        return r < 0 ? r : drop(f, f->state_fd, LAUNCHES_FILE);
    }
    r = launches_delete(f->state_fd, &test);
    return r < 0 ? cli_error(r, "%s/" LAUNCHES_FILE ": %m", f->c->state) : 0;
}

/* Deletes the affected lines of the history. Returns 0, or an error that was reported. */
static int forget_history(const Forgetting *f)
{
    const HistoryTest test = {is_forgotten, f};
    int r;

    if (!is_partial(f)) {
        r = drop(f, f->state_fd, HISTORY_OLD_FILE);
        return r < 0 ? r : drop(f, f->state_fd, HISTORY_FILE);
    }
    r = history_delete(f->state_fd, &test);
    return r < 0 ? cli_error(r, "%s/" HISTORY_FILE ": %m", f->c->state) : 0;
}

/* A killed `forget` loses nothing that it is to keep, and the next one deletes the rest. */
static int forget(Forgetting *f)
{
    int r;

    r = cli_state_lock(f->c, f->state_fd);
    if (r < 0)
        return r;
    /* The model is deleted before the traces from which it can be made again, so that after an
     * interruption no model contains what was learned from deleted traces. */
    r = drop(f, f->state_fd, STATE_MODEL);
    if (r >= 0)
        r = cli_state_update_early_pack(f->c, f->state_fd, NULL, 0);
    if (r >= 0)
        r = for_each_file(f, ".", forget_derived);
    if (r >= 0)
        r = for_each_file(f, STATE_TRACES, forget_trace);
    if (r >= 0)
        r = forget_history(f);
    if (r >= 0)
        r = forget_starts(f);
    if (r >= 0 && fsync(f->state_fd) < 0)
        r = cli_error(errno, "%s: %m", f->c->state);
    if (r < 0)
        return r;
    close(TAKE_FD(f->state_fd)); /* this also releases the lock */
    systemctl_reload_headstartd(f->c);
    if (!is_partial(f) || f->n_left == 0)
        return 0;
    r = cli_run_verb(f->c, &verb_learn, "--rebuild");
    if (r < 0)
        return r;
    r = cli_run_verb(f->c, &verb_plan, NULL);
    /* The recordings that are left may be of sessions only. `headstart plan` has said so. */
    return r == -ENODATA ? 0 : r;
}

static int print(const Forgetting *f)
{
    static const Column columns[] = {
            {NULL, "n_traces", CELL_COUNT},
            {NULL, "n_packs", CELL_COUNT},
            {NULL, "n_traces_left", CELL_COUNT},
            {0},
    };

    if (f->c->json != JSON_OFF)
        return cli_print_json(f->c, columns, f->n_traces, f->n_packs, f->n_left);
    if (!f->c->quiet)
        printf("Deleted: %" PRIu64 " trace%s, %" PRIu64 " pack%s, and the model.%s\n", f->n_traces,
               text_plural_s(f->n_traces), f->n_packs, text_plural_s(f->n_packs),
               is_partial(f) && f->n_left > 0 ? " The remaining traces were learned again, and "
                                                "the packs were planned again."
                                              : "");
    return 0;
}

static int run(Context *c)
{
    Forgetting f = {.c = c, .state_fd = -EBADF, .stage = _STAGE_INVALID, .user = UID_INVALID};
    const char *value;
    int k, r;

    while ((k = cli_next_option(c, &value)) > 0) {
        r = k == OPTION_STAGE ? cli_parse_stage(c, value, &f.stage)
                              : cli_parse_uid(c, value, &f.user);
        if (r < 0)
            return r;
    }
    if (k < 0)
        return k;
    if (f.stage == STAGE_BOOT && f.user != UID_INVALID)
        return cli_usage_error(c, "--user= is for logins and sessions: a boot has no user");
    r = cli_state_open(c, false, &f.state_fd);
    if (r == -ENOENT) /* there is nothing to forget */
        return print(&f);
    if (r >= 0)
        r = forget(&f);
    closep(&f.state_fd);
    return r < 0 ? r : print(&f);
}

const Verb verb_forget = {
        .name = "forget",
        .arguments = "",
        .summary = "Delete what was recorded and learned",
        .description =
                "Deletes traces, model, packs and history. With --stage= or --user=, deletes the\n"
                "traces and the history of that stage or user, and learns and plans again from\n"
                "the others. A trace whose user is unknown is deleted with any user, and those of\n"
                "boots with none. The configuration is kept, and recording continues.",
        .options = options,
        .run = run,
};
