/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/checks.h"

#include "base/directory.h"
#include "base/log.h"
#include "base/text.h"
#include "execute/opening.h"
#include "state/launch-packs.h"
#include "state/packs.h"
#include "state/state.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* A pack is out of date if more than this percentage of its files has changed. */
#define CHANGED_PERCENT_MAX 10U
#define CHANGED_COST        "replay skips each file that has changed since it was planned"
/* The number of bad packs of each kind that are named. The others are only counted, because a
 * machine may have thousands of users. */
#define NAMED_MAX 8U

static void stage_pack_done(StagePack *p)
{
    free(p->buf);
}

/* Reads a pack into the zeroed *p. Returns p->result. */
static int read_pack(int state_fd, const char *name, StagePack *p)
{
    int r = packs_read(state_fd, name, &p->buf, &p->pack, &p->reason);

    if (r < 0 && r != -ENOENT && !p->reason)
        p->reason = error_text(r);
    p->result = r == -ENOENT ? 0 : r >= 0 ? 1 : r;
    return p->result;
}

void stage_packs_read(int state_fd, StagePacks *ret)
{
    *ret = (StagePacks){0};
    for (Stage s = 0; state_fd >= 0 && s < _STAGE_MAX; s++)
        if (state_pack_name(s))
            (void)read_pack(state_fd, state_pack_name(s), &ret->stages[s]);
}

void stage_packs_done(StagePacks *p)
{
    for (Stage s = 0; s < _STAGE_MAX; s++)
        stage_pack_done(&p->stages[s]);
}

void checks_add_bad_pack(Checks *checks, const Context *c, const char *name, const char *cost,
                         const char *reason)
{
    checks_add(checks, "packs", CHECK_PROBLEM, cost, "headstart plan", "%s/%s cannot be used: %s",
               c->state, name, reason);
}

int checks_add_user_pack(Checks *checks, const Context *c, int state_fd, uint32_t uid,
                         PackHeader *ret)
{
    const char *reason = NULL;
    char name[PACK_NAME_MAX];
    int r = packs_read_header(state_fd, packs_name(name, STAGE_LOGIN, uid), ret, &reason);

    if (r == -ENOENT)
        return 0;
    if (r < 0)
        checks_add_bad_pack(checks, c, name, CHECK_COST_USER_PACK, reason ? reason : error_text(r));
    return r < 0 ? r : 1;
}

void checks_add_packs(Checks *checks, const Context *c, int state_fd, const StagePacks *packs)
{
    _cleanup_user_packs_ UserPacks users = {0};
    size_t n_used = 0, n_bad = 0;

    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        const StagePack *p = &packs->stages[s];

        n_used += p->result > 0;
        n_bad += p->result < 0;
        if (p->result < 0)
            checks_add_bad_pack(checks, c, state_pack_name(s), "the stage is not replayed",
                                p->reason);
    }
    if (n_used == 0 && n_bad == 0 && packs_list_users(state_fd, &users) >= 0 && users.n > 0)
        checks_add(checks, "packs", CHECK_OK, NULL, NULL, "only users have packs");
    else if (n_used == 0 && n_bad == 0 && faccessat(state_fd, STATE_MODEL, F_OK, 0) == 0)
        checks_add(checks, "packs", CHECK_PROBLEM, "nothing is replayed", "headstart plan",
                   "there is a model and no pack");
    else if (n_used == 0 && n_bad == 0)
        checks_add(checks, "packs", CHECK_NOTE, "nothing is replayed yet", "reboot and log in once",
                   "there is no pack yet");
    else if (n_bad == 0)
        checks_add(checks, "packs", CHECK_OK, NULL, NULL, "the packs can be used");
}

/* --- packs against the files on the disk ------------------------------------------------------ */

/* Returns true if the file on the disk is the one that was planned. */
static bool is_unchanged(const Context *c, const Pack *p, const PackVolume *v, const PackFile *f)
{
    const char *mountpoint = pack_string(p, v->mountpoint);
    _cleanup_free_ char *path = NULL;
    struct stat st;

    if (asprintf(&path, "%s%s/%s", strcmp(c->root, "/") == 0 ? "" : c->root,
                 strcmp(mountpoint, "/") == 0 ? "" : mountpoint, pack_string(p, f->path)) < 0 ||
        lstat(path, &st) < 0)
        return false;
    return opening_is_planned(f, &st);
}

typedef struct FileCounts {
    unsigned long long n, changed;
} FileCounts;

/* Counts the files of the pack. `progress` may be NULL. */
static FileCounts count_files(const Context *c, const Pack *p, Progress *progress)
{
    FileCounts f = {0};

    for (uint32_t i = 0; i < le32toh(p->header->n_volumes); i++) {
        const PackVolume *v = p->volumes + i;

        for (uint32_t k = 0; k < le32toh(v->n_files); k++, f.n++) {
            if (progress)
                progress_update(progress, f.n, le32toh(p->header->n_files));
            f.changed += !is_unchanged(c, p, v, p->files + le32toh(v->first_file) + k);
        }
    }
    return f;
}

static bool is_stale(const FileCounts *f)
{
    return f->changed * 100 > f->n * CHANGED_PERCENT_MAX;
}

static void add_freshness(Checks *checks, const char *name, const FileCounts *f)
{
    bool stale = is_stale(f);

    checks_add(checks, "freshness", stale ? CHECK_PROBLEM : CHECK_OK, stale ? CHANGED_COST : NULL,
               stale ? "headstart refresh" : NULL,
               "%s: %llu of %llu files have changed since it was planned", name, f->changed, f->n);
}

/* What is wrong with packs of one kind. */
typedef struct PackFault {
    const char *name, *cost, *remedy, *found;
} PackFault;

static const PackFault unusable = {"packs", "they are not replayed", "headstart plan",
                                   "cannot be used"};
static const PackFault outdated = {"freshness", CHANGED_COST, "headstart refresh", "out of date"};

/* Adds the packs of `owners` that were not named, and a check with CHECK_OK if all n packs are
 * good. n_bad packs have the fault. */
static void add_rest(Checks *checks, const PackFault *fault, const char *owners, size_t n,
                     size_t n_bad)
{
    size_t n_further = n_bad > NAMED_MAX ? n_bad - NAMED_MAX : 0;

    if (n_further > 0)
        checks_add(checks, fault->name, CHECK_PROBLEM, fault->cost, fault->remedy,
                   "%zu further pack%s of %s: %s", n_further, text_plural_s(n_further), owners,
                   fault->found);
    else if (n > 0 && n_bad == 0)
        checks_add(checks, fault->name, CHECK_OK, NULL, NULL, "%zu checked pack%s of %s", n,
                   text_plural_s(n), owners);
}

/* Checks that the login packs of users can be used, and compares them with the files. */
static void check_user_packs(Checks *checks, const Context *c, int state_fd, Progress *progress)
{
    _cleanup_user_packs_ UserPacks users = {0};
    size_t n_bad = 0, n_compared = 0, n_stale = 0;

    if (packs_list_users(state_fd, &users) < 0)
        return;
    for (size_t i = 0; i < users.n; i++) {
        _cleanup_(stage_pack_done) StagePack p = {0};
        char name[PACK_NAME_MAX];
        FileCounts f;
        int r = read_pack(state_fd, packs_name(name, STAGE_LOGIN, users.items[i].uid), &p);

        progress_update(progress, i, users.n);
        if (r < 0 && n_bad++ < NAMED_MAX)
            checks_add_bad_pack(checks, c, name, CHECK_COST_USER_PACK, p.reason);
        if (r <= 0)
            continue;
        f = count_files(c, &p.pack, NULL);
        n_compared++;
        if (is_stale(&f) && n_stale++ < NAMED_MAX)
            add_freshness(checks, name, &f);
    }
    add_rest(checks, &unusable, "users", users.n, n_bad);
    add_rest(checks, &outdated, "users", n_compared, n_stale);
}

/* Checks that the launch sets can be used. */
static void check_launch_packs(Checks *checks, const Context *c, int state_fd, Progress *progress)
{
    _cleanup_closedir_ DIR *dir = NULL;
    const struct dirent *e;
    size_t n = 0, n_bad = 0;
    uint64_t hash;
    uint32_t uid;

    if (directory_open(state_fd, ".", O_NOFOLLOW, &dir) < 0)
        return;
    while ((e = directory_next(dir))) {
        _cleanup_(stage_pack_done) StagePack p = {0};

        if (!launch_pack_parse_name(e->d_name, &uid, &hash))
            continue;
        progress_update(progress, n++, 0);
        if (read_pack(state_fd, e->d_name, &p) < 0 && n_bad++ < NAMED_MAX)
            checks_add_bad_pack(checks, c, e->d_name, "the application is not replayed", p.reason);
    }
    add_rest(checks, &unusable, "applications", n, n_bad);
}

void checks_add_pack_files(Checks *checks, const Context *c, int state_fd, const StagePacks *packs,
                           Progress *progress)
{
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        FileCounts f;

        if (packs->stages[s].result <= 0)
            continue;
        f = count_files(c, &packs->stages[s].pack, progress);
        add_freshness(checks, state_pack_name(s), &f);
    }
    check_user_packs(checks, c, state_fd, progress);
    check_launch_packs(checks, c, state_fd, progress);
}
