/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart refresh: finds files that were changed, renamed or removed since the packs were
 * planned, for example by an upgrade of packages. The new file gets what the model knows of the old
 * one. */

#include "base/directory.h"
#include "base/log.h"
#include "base/open.h"
#include "base/text.h"
#include "command/cli-state.h"
#include "command/progress.h"
#include "pack/pack.h"
#include "plan/versions.h"
#include "state/packs.h"
#include "state/refresh-request.h"
#include "volume/presence.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum {
    OPTION_DRY_RUN = 1,
};

static const Option options[] = {
        {OPTION_DRY_RUN, 0, "dry-run", NULL, "Print what has changed, write nothing"},
        {0},
};

/* A file as a pack describes it. */
typedef struct Planned {
    UT_hash_handle hh;
    uint64_t inode, size, mtime_nsec, ctime_nsec;
    bool volatile_content;
    bool oom;
    char path[];
} Planned;

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

typedef struct Refresh {
    const Context *c;
    int state_fd;
    RefreshRequest request; /* the request as it was when the refresh began */
    Model *model; /* NULL: nothing was learned, and packs were planned from the shipped model */
    VolumeTable volumes;
    char root[PATH_MAX];
    Planned *planned;
    char **to;            /* new names of the model's files, for model_move_files() */
    ModelResize *resizes; /* of the model's files */
    size_t n_resizes;
    Table *table;
    uint64_t n_changed, n_renamed, n_gone, n_unknown;
    /* The path that was searched for last, up to the component that is gone, and the name that
     * succeeds this component. Both are kept for the next file, because often a whole directory is
     * renamed. */
    char gone[PATH_MAX], successor[NAME_MAX + 1];
} Refresh;

static void refresh_done(Refresh *x)
{
    Planned *p, *tmp;

    HASH_ITER (hh, x->planned, p, tmp) {
        HASH_DEL(x->planned, p);
        free(p);
    }
    for (size_t i = 0; x->to && i < x->model->n_files; i++)
        free(x->to[i]);
    free(x->to);
    free(x->resizes);
    model_free(x->model);
    volume_table_done(&x->volumes);
    table_free(x->table);
    closep(&x->state_fd);
}

/* --- files in the packs ----------------------------------------------------------------------- */

static int note_planned(Refresh *x, const char *mountpoint, const Pack *pack, const PackFile *f)
{
    const char *below = pack_string(pack, f->path);
    const char *slash = strcmp(mountpoint, "/") == 0 ? "" : "/";
    size_t l = strlen(mountpoint) + 1 + strlen(below);
    Planned *p = calloc(1, sizeof(*p) + l + 1), *known;

    if (!p)
        return -ENOMEM;
    if (strcmp(below, ".") == 0)
        snprintf(p->path, l + 1, "%s", mountpoint);
    else
        snprintf(p->path, l + 1, "%s%s%s", *slash ? mountpoint : "", "/", below);
    p->inode = le64toh(f->inode);
    p->size = le64toh(f->size);
    p->mtime_nsec = le64toh(f->mtime_nsec);
    p->ctime_nsec = le64toh(f->ctime_nsec);
    p->volatile_content = le16toh(f->flags) & (PACK_FILE_VOLATILE | PACK_FILE_DIRECTORY);
    HASH_FIND_STR(x->planned, p->path, known);
    if (!known)
        HASH_ADD_STR(x->planned, path, p);
    if (known || p->oom) {
        bool oom = p->oom;

        free(p);
        return oom ? -ENOMEM : 0;
    }
    return 0;
}

/* Notes the files of one pack. A pack that cannot be read is passed over: a file that is in no
 * other pack then counts as unchanged. Returns 0 or -ENOMEM. */
static int read_pack(Refresh *x, const char *name)
{
    _cleanup_free_ char *buf = NULL;
    Pack pack;
    int r = packs_read(x->state_fd, name, &buf, &pack, NULL);

    if (r < 0)
        return r == -ENOMEM ? r : 0;
    for (uint32_t i = 0; i < le32toh(pack.header->n_volumes); i++) {
        const PackVolume *s = &pack.volumes[i];

        for (uint32_t k = 0; k < le32toh(s->n_files); k++) {
            r = note_planned(x, pack_string(&pack, s->mountpoint), &pack,
                             &pack.files[le32toh(s->first_file) + k]);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static int read_packs(Refresh *x)
{
    _cleanup_closedir_ DIR *dir = NULL;
    const struct dirent *e;
    int r = directory_open(x->state_fd, ".", 0, &dir);

    if (r < 0)
        return cli_error(r, "%s: %m", x->c->state);
    while (r >= 0 && (e = directory_next(dir))) {
        size_t l = strlen(e->d_name);

        if (l > 5 && strcmp(e->d_name + l - 5, ".pack") == 0)
            r = read_pack(x, e->d_name);
    }
    return r < 0 ? cli_error(r, "%m") : 0;
}

/* --- the new state of a file ------------------------------------------------------------------ */

static bool has_changed(const Planned *p, const struct stat *st)
{
    if (p->inode != st->st_ino)
        return true;
    /* A directory, or a volatile file, is in the same place while its inode is the same. */
    if (p->volatile_content)
        return false;
    return p->size != (uint64_t)st->st_size || p->mtime_nsec != timespec_nsec(&st->st_mtim) ||
           p->ctime_nsec != timespec_nsec(&st->st_ctim);
}

static int stat_below(const Refresh *x, const char *path, struct stat *ret)
{
    _cleanup_close_ int fd = volume_open_path(&x->volumes, x->root, path);

    if (fd < 0)
        return fd;
    return fstat(fd, ret) < 0 ? -errno : 0;
}

/* The files are examined in rising order, so the list is sorted. */
static void note_size(Refresh *x, uint32_t file, uint64_t old_size, uint64_t new_size)
{
    x->resizes[x->n_resizes++] = (ModelResize){file, old_size, new_size};
}

static void examine_present(Refresh *x, uint32_t file)
{
    const char *path = x->model->files[file].path;
    const Planned *p;
    struct stat st;

    HASH_FIND_STR(x->planned, path, p);
    if (!p || stat_below(x, path, &st) < 0 || !has_changed(p, &st))
        return;
    x->n_changed++;
    table_row(x->table, path, "changed", NULL);
    if (S_ISREG(st.st_mode))
        note_size(x, file, p->size, (uint64_t)st.st_size);
}

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

/* Finds the name that succeeds `gone` in the directory; "" if there is none. Returns 0 or
 * -ENOMEM. */
static int find_successor(const Refresh *x, const char *directory, const char *gone,
                          char ret[static NAME_MAX + 1])
{
    _cleanup_close_ int fd = volume_open_path(&x->volumes, x->root, *directory ? directory : "/");
    size_t n = 0, allocated = 0;
    const struct dirent *e;
    const char *successor;
    _cleanup_closedir_ DIR *dir = NULL;
    char **names = NULL;
    int r = 0;

    ret[0] = 0;
    if (fd < 0 || directory_from_fd(fd_reopen_noatime(fd, O_RDONLY | O_DIRECTORY), &dir) < 0)
        return 0;
    while (r >= 0 && (e = directory_next(dir)))
        if (versions_alike(gone, e->d_name)) {
            r = grow_array(&names, &allocated, n + 1, sizeof(*names));
            if (r >= 0 && !(names[n] = strdup(e->d_name)))
                r = -ENOMEM;
            n += r >= 0;
        }
    successor = r >= 0 ? versions_successor(gone, names, n) : NULL;
    if (successor)
        snprintf(ret, NAME_MAX + 1, "%s", successor);
    free_names(names, n);
    return r;
}

/* Finds the successor of a file. *ret becomes the successor's path, or NULL if the file has none.
 * Returns 0 or -ENOMEM. */
static int follow(Refresh *x, const char *path, size_t above, char **ret)
{
    size_t end = above + 1 + strcspn(path + above + 1, "/");
    char directory[PATH_MAX], component[NAME_MAX + 1];
    struct stat st;
    int r;

    *ret = NULL;
    if (end >= sizeof(directory) || end - above - 1 > NAME_MAX)
        return 0;
    if (strncmp(x->gone, path, end) != 0 || x->gone[end]) {
        memcpy(x->gone, path, end);
        x->gone[end] = 0;
        memcpy(directory, path, above);
        directory[above] = 0;
        memcpy(component, path + above + 1, end - above - 1);
        component[end - above - 1] = 0;
        r = find_successor(x, directory, component, x->successor);
        if (r < 0)
            return r;
    }
    if (!x->successor[0])
        return 0;
    if (asprintf(ret, "%.*s/%s%s", (int)above, path, x->successor, path + end) < 0) {
        *ret = NULL;
        return -ENOMEM;
    }
    /* A file that the model already knows is no successor: it keeps what was learned of it. */
    if (model_find_file(x->model, *ret) != MODEL_NONE || stat_below(x, *ret, &st) < 0 ||
        !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
        free(*ret);
        *ret = NULL;
    }
    return 0;
}

static int examine_gone(Refresh *x, uint32_t file, size_t above)
{
    const char *path = x->model->files[file].path;
    const Planned *p;
    struct stat st;
    int r = follow(x, path, above, &x->to[file]);

    if (r < 0)
        return r;
    if (!x->to[file]) {
        x->to[file] = strdup("");
        x->n_gone++;
        table_row(x->table, path, "gone", NULL);
        return x->to[file] ? 0 : -ENOMEM;
    }
    x->n_renamed++;
    table_row(x->table, path, "succeeded", x->to[file]);
    HASH_FIND_STR(x->planned, path, p);
    if (p && stat_below(x, x->to[file], &st) >= 0 && S_ISREG(st.st_mode))
        note_size(x, file, p->size, (uint64_t)st.st_size);
    return 0;
}

static int examine_files(Refresh *x)
{
    _cleanup_(progress_done) Progress progress = progress_start("Examining files", x->c->quiet);

    x->to = calloc(x->model->n_files + 1, sizeof(*x->to));
    x->resizes = calloc(x->model->n_files + 1, sizeof(*x->resizes));
    if (!x->to || !x->resizes)
        return -ENOMEM;
    for (uint32_t i = 0; i < x->model->n_files; i++) {
        size_t above;
        int r = 0;

        progress_update(&progress, i, x->model->n_files);
        switch (presence_find(&x->volumes, x->root, x->model->files[i].path, &above)) {
        case PRESENCE_THERE:
            examine_present(x, i);
            break;
        case PRESENCE_GONE:
            r = examine_gone(x, i, above);
            break;
        default:
            x->n_unknown++;
            table_row(x->table, x->model->files[i].path, "unknown", NULL);
            break;
        }
        if (r < 0)
            return r;
    }
    model_stretch_files(x->model, x->resizes, x->n_resizes);
    return 0;
}

/* --- the whole refresh ------------------------------------------------------------------------ */

static bool is_stale(const Refresh *x)
{
    return !x->model || x->n_changed + x->n_renamed + x->n_gone > 0;
}

static int load(Refresh *x)
{
    _cleanup_free_ char *error = NULL;
    int r = cli_state_open(x->c, false, &x->state_fd);

    if (r == -ENOENT)
        return cli_error(r, "%s: nothing was recorded yet", x->c->state);
    if (r >= 0)
        r = cli_state_lock(x->c, x->state_fd);
    if (r < 0)
        return r;
    x->request = refresh_request_read(x->state_fd);
    r = state_load_model(x->state_fd, &x->model, &error);
    /* Without a model there is no name to change, but the files in packs that were planned from the
     * shipped model may have changed. */
    if (r == -ENOENT && packs_exist(x->state_fd))
        return 0;
    if (r < 0)
        return cli_error(r, "%s/" STATE_MODEL ": %s", x->c->state,
                         r == -ENOENT ? "nothing was learned yet (headstart learn)"
                         : error      ? error
                                      : error_text(r));
    if (!realpath(x->c->root, x->root))
        return cli_error(errno, "%s: %m", x->c->root);
    r = volume_table_read(AT_FDCWD, x->root, &x->volumes);
    return r < 0 ? cli_error(r, "cannot read the list of mounts: %m") : read_packs(x);
}

static int print(Refresh *x, bool dry_run)
{
    static const Column columns[] = {
            {NULL, "n_changed", CELL_COUNT}, {NULL, "n_succeeded", CELL_COUNT},
            {NULL, "n_gone", CELL_COUNT},    {NULL, "n_unknown", CELL_COUNT},
            {NULL, "planned", CELL_BOOLEAN}, {0},
    };
    bool changed = is_stale(x);
    int r = 0;

    if (x->c->json != JSON_OFF) {
        _cleanup_table_ Table *t = table_new(columns);

        if (dry_run)
            table_column(t, NULL, "files", CELL_TABLE);
        table_row(t, x->n_changed, x->n_renamed, x->n_gone, x->n_unknown, changed && !dry_run,
                  dry_run ? TAKE_PTR(x->table) : NULL);
        return cli_print_fields(x->c, t);
    }
    if (x->c->quiet)
        return 0;
    if (!x->model)
        puts(dry_run ? "Nothing was learned yet."
                     : "Nothing was learned yet: packs planned from the model of the distribution.");
    else {
        if (dry_run && table_n_rows(x->table) > 0) {
            r = cli_print(x->c, x->table);
            puts("");
        }
        printf("%" PRIu64 " file%s changed, %" PRIu64 " continued under a new name, %" PRIu64
               " removed",
               x->n_changed, text_plural_s(x->n_changed), x->n_renamed, x->n_gone);
        if (x->n_unknown > 0)
            printf(", %" PRIu64 " unknown (their filesystem is locked or not mounted)",
                   x->n_unknown);
        puts(dry_run ? "." : changed ? ": packs planned again." : ": nothing to do.");
    }
    return r;
}

/* Renames the model's files to the successors that were found, and saves the model. Returns 0, or
 * an error that was reported. */
static int move_files(Refresh *x)
{
    size_t n_files = x->model->n_files;
    int r = model_move_files(x->model, x->to);

    for (size_t i = 0; i < n_files; i++)
        free(x->to[i]);
    free(x->to);
    x->to = NULL;
    return r < 0 ? cli_error(r, "%m") : cli_state_write_model(x->c, x->state_fd, x->model);
}

/* Removes the request, unless packages were changed again during the refresh. */
static int remove_request(Refresh *x)
{
    int r = cli_state_open(x->c, false, &x->state_fd);

    if (r < 0)
        return r;
    r = refresh_request_remove(x->state_fd, &x->request);
    return r < 0 ? cli_error(r, "%s/" STATE_REFRESH ": %m", x->c->state) : 0;
}

/* Returns 0, or an error that was reported. */
static int plan(const Context *c)
{
    Progress progress = progress_start("Planning", c->quiet);
    int r = cli_run_verb(c, &verb_plan, NULL);

    progress_done(&progress);
    return r;
}

static int run(Context *c)
{
    static const Column columns[] = {
            {"FILE", "path", CELL_PATH},
            {"IS", "state", CELL_STRING},
            {"NOW", "successor", CELL_PATH},
            {0},
    };
    _cleanup_(refresh_done) Refresh x = {.c = c, .state_fd = -EBADF};
    bool dry_run = false;
    const char *value;
    int k, r;

    while ((k = cli_next_option(c, &value)) > 0)
        dry_run = true;
    if (k < 0)
        return k;
    x.table = table_new(columns);
    r = load(&x);
    if (r < 0)
        return r;
    if (x.model && (r = examine_files(&x)) < 0)
        return cli_error(r, "%m");
    if (!dry_run) {
        if (x.model && is_stale(&x))
            r = move_files(&x);
        close(TAKE_FD(x.state_fd)); /* releases the lock, too */
        if (r >= 0 && is_stale(&x))
            r = plan(c);
        if (r >= 0)
            r = remove_request(&x);
        if (r < 0)
            return r;
    }
    return print(&x, dry_run);
}

const Verb verb_refresh = {
        .name = "refresh",
        .arguments = "",
        .summary = "Update the model and the packs after an upgrade",
        .description =
                "A file that was replaced keeps what was learned of it. So does a file whose new\n"
                "name differs only in version numbers. Files that were removed are forgotten.\n"
                "Files on a filesystem that is locked or not mounted are kept. Then the packs\n"
                "are planned again.",
        .options = options,
        .run = run,
};
