/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/checks.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/kernel.h"
#include "base/log.h"
#include "base/rooted.h"
#include "pack/pack.h"
#include "state/packs.h"
#include "state/refresh-request.h"
#include "state/state.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "config-paths.h"

/* A pack is out of date if more than this percentage of its files has changed. */
#define CHANGED_PERCENT_MAX 10U
/* The free space below which the filesystem counts as full. A trace and a new model need less. */
#define STATE_FREE_MIN (16U << 20)

void checks_done(Checks *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->items[i].found);
        free(c->items[i].cost);
        free(c->items[i].remedy);
    }
    free(c->items);
    *c = (Checks){0};
}

const char *check_result_to_string(CheckResult r)
{
    static const char *const names[_CHECK_RESULT_MAX] = {
            [CHECK_OK] = "ok",
            [CHECK_NOTE] = "note",
            [CHECK_PROBLEM] = "problem",
    };

    return names[r];
}

void checks_add(Checks *c, const char *name, CheckResult result, const char *cost,
                const char *remedy, const char *format, ...)
{
    Check x = {.name = name, .result = result};
    va_list ap;
    int n;

    va_start(ap, format);
    n = vasprintf(&x.found, format, ap);
    va_end(ap);
    if (n < 0) {
        c->failed = true;
        return;
    }
    x.cost = cost ? strdup(cost) : NULL;
    x.remedy = remedy ? strdup(remedy) : NULL;
    if ((cost && !x.cost) || (remedy && !x.remedy) ||
        grow_array(&c->items, &c->allocated, c->n + 1, sizeof(Check)) < 0) {
        free(x.found);
        free(x.cost);
        free(x.remedy);
        c->failed = true;
        return;
    }
    c->items[c->n++] = x;
}

/* --- the state directory ---------------------------------------------------------------------- */

static void check_switches(Checks *checks, const Context *c)
{
    _cleanup_close_ int mark = rooted_open(c->system_fd, HEADSTART_SYSCONF_DIR "/disabled", O_PATH);

    if (kernel_command_line_has(c->system_fd, "headstart=0"))
        checks_add(checks, "switch", CHECK_PROBLEM, "nothing is recorded or replayed",
                   "remove headstart=0 from the kernel command line",
                   "headstart=0 is on the kernel command line");
    else if (mark >= 0)
        checks_add(checks, "switch", CHECK_PROBLEM, "nothing is recorded or replayed",
                   "headstart enable", "headstart is disabled");
    else
        checks_add(checks, "switch", CHECK_OK, NULL, NULL, "headstart is on");
}

typedef struct PackFacts {
    char *buf;
    Pack pack;
    const char *reason;
} PackFacts;

static void pack_facts_done(PackFacts *p)
{
    free(p->buf);
}

/* Reads the pack of a stage. Returns 1 if it was read; 0 if there is none; a negative errno if it
 * cannot be used (p->reason then says why). */
static int read_pack(int state_fd, Stage stage, PackFacts *p)
{
    int r = packs_read(state_fd, state_pack_name(stage), &p->buf, &p->pack, &p->reason);

    if (r == -ENOENT)
        return 0;
    if (r >= 0)
        return 1;
    p->reason = p->reason ? p->reason : error_text(r);
    return r;
}

static void check_packs(Checks *checks, const Context *c, int state_fd)
{
    size_t n_used = 0, n_bad = 0;

    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        _cleanup_(pack_facts_done) PackFacts p = {0};
        int r = read_pack(state_fd, s, &p);

        n_used += r > 0;
        n_bad += r < 0;
        if (r < 0)
            checks_add(checks, "packs", CHECK_PROBLEM, "the stage is not replayed",
                       "headstart plan", "%s/%s cannot be used: %s", c->state, state_pack_name(s),
                       p.reason);
    }
    if (n_used == 0 && n_bad == 0 && faccessat(state_fd, STATE_MODEL, F_OK, 0) == 0)
        checks_add(checks, "packs", CHECK_PROBLEM, "nothing is replayed", "headstart plan",
                   "there is a model and no pack");
    else if (n_used == 0 && n_bad == 0)
        checks_add(checks, "packs", CHECK_NOTE, "nothing is replayed yet", "reboot and log in once",
                   "there is no pack yet");
    else if (n_bad == 0)
        checks_add(checks, "packs", CHECK_OK, NULL, NULL, "the packs can be used");
}

/* Counts the files that were set aside, in the state directory and among the traces. */
static void check_set_aside(Checks *checks, const Context *c, int state_fd)
{
    static const char *const places[] = {".", STATE_TRACES};
    size_t n = 0;

    for (size_t i = 0; i < ELEMENTSOF(places); i++) {
        _cleanup_closedir_ DIR *dir = NULL;
        const struct dirent *e;

        if (directory_open(state_fd, places[i], O_NOFOLLOW, &dir) < 0)
            continue;
        while ((e = directory_next(dir))) {
            const char *dot = strrchr(e->d_name, '.');

            n += dot && strcmp(dot, ".bad") == 0;
        }
    }
    if (n > 0)
        checks_add(checks, "set-aside", CHECK_NOTE, "what they contained is lost",
                   "look at the journal, then delete the files", "%zu files below %s end in .bad",
                   n, c->state);
}

static void check_harm(Checks *checks, const Benefits *b)
{
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++)
        if (b->stages[s].harmful)
            checks_add(checks, "benefit", CHECK_NOTE, NULL,
                       "none: headstart tries again after 90 days",
                       "replay made each %s at least %.0f %% longer and is switched off",
                       stage_to_string(s), -100 * b->stages[s].evidence.saved_high);
}

static void check_directory(Checks *checks, const Context *c, int state_fd)
{
    struct statvfs fs = {0};
    struct stat st;

    if (state_fd < 0) {
        checks_add(checks, "state", CHECK_NOTE, "nothing was recorded yet",
                   "reboot and log in once", "%s does not exist", c->state);
        return;
    }
    if (fstat(state_fd, &st) == 0 && (st.st_mode & 077))
        checks_add(checks, "state", CHECK_PROBLEM, "users see what others opened",
                   "set its mode to 0700", "%s is open to other users", c->state);
    if (fstatvfs(state_fd, &fs) == 0 && (fs.f_flag & ST_RDONLY))
        checks_add(checks, "state", CHECK_PROBLEM, "nothing can be recorded or learned",
                   "mount its filesystem writable", "%s is read-only", c->state);
    else if (fs.f_frsize > 0 && fs.f_bavail * fs.f_frsize < STATE_FREE_MIN)
        checks_add(checks, "state", CHECK_PROBLEM, "nothing can be recorded or learned",
                   "free some space", "the filesystem of %s has less than 16 MiB of free space",
                   c->state);
    if (refresh_request_read(state_fd).inode != 0)
        checks_add(checks, "packages", CHECK_NOTE, "replay skips files that were replaced",
                   "headstart refresh", "packages have changed since the packs were planned");
}

void checks_add_state(Checks *checks, const Context *c, int state_fd, const Benefits *b)
{
    check_switches(checks, c);
    check_directory(checks, c, state_fd);
    if (state_fd < 0)
        return;
    check_packs(checks, c, state_fd);
    check_set_aside(checks, c, state_fd);
    check_harm(checks, b);
}

/* --- slower checks ---------------------------------------------------------------------------- */

static void check_model(Checks *checks, const Context *c, int state_fd)
{
    _cleanup_model_ Model *m = NULL;
    _cleanup_free_ char *error = NULL;
    int r = state_load_model(state_fd, &m, &error);

    if (r >= 0)
        checks_add(checks, "model", CHECK_OK, NULL, NULL, "%zu traces were learned", m->n_learned);
    else if (r != -ENOENT)
        checks_add(checks, "model", CHECK_PROBLEM, "nothing can be planned", "headstart learn",
                   "%s/" STATE_MODEL " cannot be used: %s", c->state,
                   error ? error : error_text(r));
}

/* Returns true if the file on the disk is the one that was planned. */
static bool is_unchanged(const Context *c, const Pack *p, const PackVolume *v, const PackFile *f)
{
    const char *mountpoint = pack_string(p, v->mountpoint);
    _cleanup_free_ char *path = NULL;
    struct stat st;

    if (asprintf(&path, "%s%s/%s", strcmp(c->root, "/") == 0 ? "" : c->root,
                 strcmp(mountpoint, "/") == 0 ? "" : mountpoint, pack_string(p, f->path)) < 0 ||
        lstat(path, &st) < 0 || st.st_ino != le64toh(f->inode))
        return false;
    return le16toh(f->flags) & (PACK_FILE_VOLATILE | PACK_FILE_DIRECTORY) ||
           ((uint64_t)st.st_size == le64toh(f->size) &&
            timespec_nsec(&st.st_mtim) == le64toh(f->mtime_nsec));
}

static void check_pack_files(Checks *checks, const Context *c, int state_fd, Stage stage)
{
    _cleanup_(pack_facts_done) PackFacts p = {0};
    uint64_t n = 0, changed = 0;

    if (read_pack(state_fd, stage, &p) <= 0)
        return;
    for (uint32_t i = 0; i < le32toh(p.pack.header->n_volumes); i++) {
        const PackVolume *v = p.pack.volumes + i;

        for (uint32_t k = 0; k < le32toh(v->n_files); k++, n++)
            changed += !is_unchanged(c, &p.pack, v, p.pack.files + le32toh(v->first_file) + k);
    }
    if (changed * 100 > n * CHANGED_PERCENT_MAX)
        checks_add(checks, "freshness", CHECK_PROBLEM, "replay skips files that were replaced",
                   "headstart refresh", "%s: %llu of %llu files have changed since it was planned",
                   state_pack_name(stage), (unsigned long long)changed, (unsigned long long)n);
    else
        checks_add(checks, "freshness", CHECK_OK, NULL, NULL,
                   "%s: %llu of %llu files have changed since it was planned",
                   state_pack_name(stage), (unsigned long long)changed, (unsigned long long)n);
}

static void check_control(Checks *checks, const Context *c, const Benefits *b)
{
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        char text[BENEFIT_TEXT_MAX];
        bool off = c->config.control_interval == 0 && !b->stages[s].effect.known;

        checks_add(checks, "benefit", off ? CHECK_NOTE : CHECK_OK,
                   off ? "the benefit stays unknown" : NULL,
                   off ? "headstart measure, or ControlInterval=auto in headstart.conf" : NULL,
                   "%s: %s%s", stage_to_string(s), benefit_to_text(&b->stages[s], "sessions", text),
                   off ? ", and there are no control sessions" : "");
    }
}

void checks_add_thorough(Checks *checks, const Context *c, int state_fd, const Benefits *b)
{
    if (state_fd < 0)
        return;
    check_model(checks, c, state_fd);
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++)
        check_pack_files(checks, c, state_fd, s);
    if (b->history.n_bad > 0)
        checks_add(checks, "history", CHECK_NOTE, "these sessions are not compared", NULL,
                   "%zu lines of %s/" HISTORY_FILE " cannot be used", b->history.n_bad, c->state);
    check_control(checks, c, b);
}
