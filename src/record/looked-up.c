/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/looked-up.h"

#include "base/clock.h"
#include "base/open.h"
#include "system/disk-call.h"
#include "volume/encryption.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* How long the search of one directory may take. */
#define DIRECTORY_USEC (200 * USEC_PER_MSEC)

/* --- in the thread of the disk ---------------------------------------------------------------- */

typedef struct Name {
    char *name; /* "": the directory itself */
    uint64_t inode;
    bool directory;
} Name;

typedef struct NamesJob {
    DiskJob job;
    char *target;    /* of the volume */
    char *below;     /* path of the directory below the target */
    uint64_t st_dev; /* of the volume */
    size_t most;
    usec_t until; /* CLOCK_MONOTONIC */
    Name *names;
    size_t n, allocated;
    int r;
} NamesJob;

static void job_free(DiskJob *job)
{
    NamesJob *x = (NamesJob *)job;

    for (size_t i = 0; i < x->n; i++)
        free(x->names[i].name);
    free(x->names);
    free(x->target);
    free(x->below);
    free(x);
}

static int add_name(NamesJob *x, const char *name, const struct stat *st)
{
    char *copy = strdup(name);

    if (!copy || grow_array(&x->names, &x->allocated, x->n + 1, sizeof(Name)) < 0) {
        free(copy);
        return -ENOMEM;
    }
    x->names[x->n++] = (Name){copy, st->st_ino, S_ISDIR(st->st_mode)};
    return 0;
}

static bool is_wanted(const struct stat *st)
{
    return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode);
}

/* Adds the names of the directory that are in the kernel's cache. */
static int list_names(NamesJob *x, int dir_fd)
{
    DIR *d = fdopendir(dir_fd);
    struct dirent *e;
    int r = 0;

    if (!d) {
        close(dir_fd);
        return 0;
    }
    while (r >= 0 && x->n < x->most && clock_now(CLOCK_MONOTONIC) < x->until && (e = readdir(d))) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        fd = open_beneath_cached(dir_fd, e->d_name);
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == x->st_dev && is_wanted(&st))
            r = add_name(x, e->d_name, &st);
    }
    closedir(d);
    return r;
}

static void run(DiskJob *job)
{
    NamesJob *x = (NamesJob *)job;
    _cleanup_close_ int mount_fd = volume_open(x->target, x->st_dev);
    _cleanup_close_ int fd = open_beneath(mount_fd, x->below), cached = -EBADF;
    struct stat st;
    int dir_fd;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_dev != x->st_dev ||
        st.st_uid != 0 || st.st_mode & (S_IWGRP | S_IWOTH))
        return;
    /* The names in a directory with a key of its own are not stored in clear. */
    if (encryption_read_file(fd, &(Encryption){0}).by_file)
        return;
    cached = open_beneath_cached(fd, ".");
    if (cached < 0)
        return; /* the kernel does not tell what is in its cache */
    x->r = add_name(x, "", &st);
    dir_fd = x->r >= 0 ? fd_reopen_noatime(fd, O_RDONLY | O_DIRECTORY) : -EBADF;
    if (dir_fd >= 0)
        x->r = list_names(x, dir_fd);
}

/* --- in the recorder -------------------------------------------------------------------------- */

/* Adds one name. If its file is in the trace already, nothing changes. */
static int add_file(Trace *t, const char *path, uint32_t volume, const Name *name, size_t *left)
{
    size_t n_files = t->n_files;
    uint32_t path_id, file;
    int r = trace_add_path(t, path, &path_id);

    if (r == -EINVAL)
        return 0; /* a name longer than the format allows */
    if (r >= 0)
        r = trace_add_file(t, path_id, volume, name->directory, &file);
    if (r < 0 || t->n_files == n_files)
        return r;
    t->files[file].inode = name->inode;
    t->files[file].looked_up = true;
    (*left)--;
    return 0;
}

static int add_names(Trace *t, const char *directory, uint32_t volume, const NamesJob *x,
                     size_t *left)
{
    for (size_t i = 0; i < x->n; i++) {
        const Name *name = &x->names[i];
        char path[TRACE_PATH_MAX];
        int n = !name->name[0] ? snprintf(path, sizeof(path), "%s", directory)
                               : snprintf(path, sizeof(path), "%s/%s",
                                          directory[1] ? directory : "", name->name);
        int r;

        if (*left == 0)
            break;
        r = n < (int)sizeof(path) ? add_file(t, path, volume, name, left) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

int looked_up_add(Trace *t, uint32_t directory, uint32_t volume, const VolumeTable *volumes,
                  const char *root, size_t *left)
{
    char path[TRACE_PATH_MAX];
    int r = trace_format_path(t, directory, path, sizeof(path));
    const char *below;
    const Volume *v = r < 0 ? NULL : volume_of_path(volumes, root, path, &below);
    NamesJob *x;

    if (!v)
        return 0;
    x = calloc(1, sizeof(*x));
    if (!x)
        return -ENOMEM;
    x->job = (DiskJob){run, job_free, 0};
    x->target = strdup(v->target);
    x->below = strdup(below);
    x->st_dev = v->st_dev;
    x->most = *left;
    x->until = clock_now(CLOCK_MONOTONIC) + DIRECTORY_USEC;
    if (!x->target || !x->below) {
        job_free(&x->job);
        return -ENOMEM;
    }
    if (disk_call(volume_call_dev(v), &x->job) < 0)
        return 0;
    r = x->r < 0 ? x->r : add_names(t, path, volume, x, left);
    job_free(&x->job);
    return r;
}
