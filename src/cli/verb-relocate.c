/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart relocate: moves the files of the packs next to each other on a disk that seeks
 * slowly. */

#include "base/directory.h"
#include "base/log.h"
#include "command/cli-state.h"
#include "command/progress.h"
#include "relocate/move-extents.h"
#include "relocate/relocate.h"
#include "state/packs.h"
#include "view/devices.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

enum {
    OPTION_DRY_RUN = 1,
    OPTION_FORCE,
};

static const Option options[] = {
        {OPTION_DRY_RUN, 0, "dry-run", NULL, "Print what would be gained, change nothing"},
        {OPTION_FORCE, 0, "force", NULL, "Move also where little is gained"},
        {0},
};

/* Files are moved if a sweep over them gains at least this time. */
#define GAIN_MIN_USEC (100.0 * USEC_PER_MSEC)

#define SKIPPED_SHOWN 20U

typedef struct Work {
    const Context *c;
    bool dry_run, force;
    int state_fd;
    VolumeTable volumes;
    Relocate *filesystems; /* one for each volume; root_fd is negative if the volume has none */
    uint64_t n_moved;
    Table *table, *skipped;
} Work;

static void work_done(Work *w)
{
    for (size_t i = 0; w->filesystems && i < w->volumes.n; i++)
        relocate_done(&w->filesystems[i]);
    free(w->filesystems);
    volume_table_done(&w->volumes);
    table_free(w->table);
    table_free(w->skipped);
    closep(&w->state_fd);
}

/* --- what the packs read ---------------------------------------------------------------------- */

static bool is_suitable(const Work *w, const Volume *v)
{
    return strcmp(v->fstype, "ext4") == 0 && v->uuid[0] && (v->seeks_slowly || w->force) &&
           filesystem_has_journal(v->block_dev);
}

/* Opens the root directory of the volume. Returns the descriptor, or -ENOENT if the mount point is
 * now something else, or another negative errno. */
static int open_root(const Volume *v)
{
    _cleanup_close_ int fd =
            open(v->target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return st.st_dev == v->st_dev ? TAKE_FD(fd) : -ENOENT;
}

static int add_volume(Work *w, const Pack *p, uint32_t volume)
{
    for (size_t i = 0; i < w->volumes.n; i++) {
        const Volume *v = &w->volumes.volumes[i];
        Relocate *x = &w->filesystems[i];

        if (memcmp(v->uuid_bytes, p->volumes[volume].uuid, sizeof(v->uuid_bytes)) != 0 ||
            !is_suitable(w, v))
            continue;
        if (x->root_fd < 0)
            x->root_fd = open_root(v);
        return x->root_fd < 0 ? x->root_fd : relocate_add_pack(x, p, volume);
    }
    return 0;
}

static int add_pack(Work *w, const char *name)
{
    _cleanup_free_ char *buf = NULL;
    Pack pack;
    int r = packs_read(w->state_fd, name, &buf, &pack, NULL);

    if (r == -ENOENT)
        return 0;
    for (uint32_t i = 0; r >= 0 && i < le32toh(pack.header->n_volumes); i++)
        r = add_volume(w, &pack, i);
    return r < 0 ? cli_error(r, "%s/%s: %m", w->c->state, name) : 0;
}

/* Adds the packs: first the one of the boot, whose data then lies first. */
static int add_packs(Work *w)
{
    _cleanup_closedir_ DIR *d = NULL;
    const struct dirent *e;
    uint32_t uid;
    int r;

    if (!packs_exist(w->state_fd))
        return cli_error(ENODATA, "nothing was planned yet (headstart plan)");
    r = add_pack(w, "boot.pack");
    if (r >= 0)
        r = add_pack(w, "login.pack");
    if (r >= 0 && directory_open(w->state_fd, ".", 0, &d) < 0)
        return cli_error(errno, "%s: %m", w->c->state);
    while (r >= 0 && (e = directory_next(d)))
        if (packs_parse_user_name(e->d_name, &uid))
            r = add_pack(w, e->d_name);
    return r;
}

static int load(Work *w)
{
    char root[PATH_MAX];
    int r = cli_state_open(w->c, false, &w->state_fd);

    if (r == -ENOENT)
        return cli_error(r, "%s: nothing was recorded yet", w->c->state);
    if (r >= 0)
        r = cli_state_lock(w->c, w->state_fd);
    if (r < 0)
        return r;
    if (!realpath(w->c->root, root))
        return cli_error(errno, "%s: %m", w->c->root);
    r = volume_table_read(AT_FDCWD, root, &w->volumes);
    if (r < 0)
        return cli_error(r, "cannot read the list of mounts: %m");
    devices_load(w->c, w->state_fd, DEVICES_KNOWN, &w->volumes);
    w->filesystems = calloc(w->volumes.n + 1, sizeof(*w->filesystems));
    if (!w->filesystems)
        return cli_error(ENOMEM, "%m");
    for (size_t i = 0; i < w->volumes.n; i++)
        w->filesystems[i] = (Relocate){
                .target = w->volumes.volumes[i].target,
                .profile = &w->volumes.volumes[i].profile,
                .device_bytes = w->volumes.volumes[i].size_bytes,
                .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
                .root_fd = -EBADF,
        };
    return add_packs(w);
}

/* --- one filesystem --------------------------------------------------------------------------- */

static void note_skipped(Work *w, const Relocate *x)
{
    double all = 0;

    for (size_t i = 0; i < x->n_files; i++)
        all += x->files[i].cost.usec;
    for (size_t i = 0; i < x->n_files; i++) {
        const RelocateFile *f = &x->files[i];

        if (f->skip != _RELOCATE_SKIP_INVALID &&
            (w->c->json != JSON_OFF || table_n_rows(w->skipped) < SKIPPED_SHOWN))
            table_row(w->skipped, f->path, relocate_skip_to_string(f->skip),
                      all > 0 ? f->cost.usec / all : 0.0);
    }
}

static void show_progress(void *arg, uint64_t done, uint64_t total)
{
    progress_update(arg, done, total);
}

/* Reports why files could not be moved. Returns the error. */
static int report(const Relocate *x, int error)
{
    for (size_t i = 0; i < x->n_files; i++)
        if (x->files[i].differs)
            cli_warning(0,
                        "%s: the move has changed its content: restore the file from a backup, or "
                        "reinstall its package",
                        x->files[i].path);
    if (error == -ENOSPC)
        return cli_error(error, "%s: too little free space for %" PRIu64 " MiB", x->target,
                         DIV_ROUND_UP(x->bytes, UINT64_C(1) << 20));
    return cli_error(error, "%s: cannot move the files: %m", x->target);
}

static int relocate_filesystem(Work *w, Relocate *x)
{
    Progress progress = progress_start("Examining files", w->c->quiet);
    RelocationCost before;
    uint64_t n_skipped = 0;
    int r = relocate_inspect(x, show_progress, &progress);

    progress_done(&progress);
    if (r < 0)
        return cli_error(r, "%s: %m", x->target);
    before = x->before;
    if (!w->dry_run && (w->force || before.usec - x->after.usec >= GAIN_MIN_USEC)) {
        progress = progress_start("Moving files", w->c->quiet);
        r = relocate_run(x, show_progress, &progress);
        progress_done(&progress);
        w->n_moved += x->moved_bytes > 0;
    }
    for (size_t i = 0; i < x->n_files; i++)
        n_skipped += x->files[i].skip != _RELOCATE_SKIP_INVALID;
    table_row(w->table, x->target, (uint64_t)x->n_files, n_skipped, x->bytes, x->moved_bytes,
              (uint64_t)before.n_fragments, (uint64_t)x->after.n_fragments, (usec_t)before.usec,
              (usec_t)x->after.usec);
    note_skipped(w, x);
    return r < 0 ? report(x, r) : 0;
}

/* --- output ----------------------------------------------------------------------------------- */

static void make_tables(Work *w)
{
    static const Column columns[] = {
            {"FILESYSTEM", "target", CELL_PATH},
            {"FILES", "n_files", CELL_COUNT},
            {"SKIPPED", "n_skipped", CELL_COUNT},
            {"DATA", "bytes", CELL_BYTES},
            {"MOVED", "moved_bytes", CELL_BYTES},
            {"FRAGMENTS", "n_fragments_before", CELL_COUNT},
            {"AFTER", "n_fragments_after", CELL_COUNT},
            {"READ IN", "predicted_usec_before", CELL_TIMESPAN},
            {"AFTER", "predicted_usec_after", CELL_TIMESPAN},
            {0},
    };
    static const Column skipped[] = {
            {"NOT MOVED", "path", CELL_PATH},
            {"BECAUSE", "reason", CELL_STRING},
            {"SHARE", "share", CELL_PROBABILITY},
            {0},
    };

    w->table = table_new(columns);
    w->skipped = table_new(skipped);
}

static int print(Work *w)
{
    int r;

    if (w->c->json != JSON_OFF) {
        static const Column document[] = {
                {NULL, "filesystems", CELL_TABLE},
                {NULL, "skipped", CELL_TABLE},
                {0},
        };
        _cleanup_table_ Table *t = table_new(document);

        table_row(t, TAKE_PTR(w->table), TAKE_PTR(w->skipped));
        return cli_print_fields(w->c, t);
    }
    if (w->c->quiet)
        return 0;
    if (table_n_rows(w->table) == 0) {
        printf("Nothing to do: no pack reads from an ext4 filesystem with a journal%s.\n",
               w->force ? "" : " on a disk that seeks slowly");
        return 0;
    }
    r = cli_print(w->c, w->table);
    if (r >= 0 && table_n_rows(w->skipped) > 0) {
        puts("");
        r = cli_print(w->c, w->skipped);
    }
    return r;
}

static int run(Context *c)
{
    _cleanup_(work_done) Work w = {.c = c, .state_fd = -EBADF};
    const char *value;
    int k, r;

    while ((k = cli_next_option(c, &value)) > 0)
        *(k == OPTION_DRY_RUN ? &w.dry_run : &w.force) = true;
    if (k < 0)
        return k;
    make_tables(&w);
    /* The kernel sends SIGIO if somebody opens a file while the lease on it is tried
     * (relocate/relocate.c). */
    (void)signal(SIGIO, SIG_IGN);
    r = load(&w);
    for (size_t i = 0; r >= 0 && i < w.volumes.n; i++)
        if (w.filesystems[i].n_files > 0)
            r = relocate_filesystem(&w, &w.filesystems[i]);
    close(TAKE_FD(w.state_fd)); /* releases the lock, too */
    /* Also after an error: the order of the packs must follow what was moved. */
    if (w.n_moved > 0) {
        int q = cli_run_verb(c, &verb_plan, NULL);

        r = r < 0 ? r : q;
    }
    return r < 0 ? r : print(&w);
}

const Verb verb_relocate = {
        .name = "relocate",
        .arguments = "",
        .summary = "Move the files of the packs next to each other on a slow disk",
        .description =
                "Moves what boots and logins read on ext4 filesystems of disks that seek slowly\n"
                "into contiguous space. Files that are running or open for writing stay. The\n"
                "command may be interrupted at any time. Afterwards the packs are planned again.",
        .options = options,
        .run = run,
};
