/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/proc-facts.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/open.h"
#include "base/rooted.h"
#include "base/uid.h"
#include "observe/subordinate-uids.h"
#include "system/disk-call.h"
#include "volume/mount-table.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define MOUNTINFO_SIZE_MAX (1024U * 1024)

/* A user may make mount namespaces with thousands of mounts, and execute programs there. Reading
 * the mounts of other namespaces therefore takes at most a tenth of the time, and about
 * FOREIGN_USEC in a row. */
#define FOREIGN_SHARE 10U
#define FOREIGN_USEC  USEC_PER_SEC

struct ProcReader {
    int mountinfo_fd;   /* opened here; POLLPRI signals a change */
    MountTable mounts;  /* mounts of this process */
    uint64_t root_dev;  /* st_dev of "/" */
    char namespace[64]; /* mount namespace of this process, as /proc/self/ns/mnt names it */
    /* The mounts of other namespaces may be read again from this time on (CLOCK_MONOTONIC). */
    usec_t foreign_due;
};

ProcReader *proc_reader_free(ProcReader *x)
{
    if (!x)
        return NULL;
    if (x->mountinfo_fd >= 0)
        close(x->mountinfo_fd);
    mount_table_done(&x->mounts);
    free(x);
    return NULL;
}
DEFINE_CLEANUP(ProcReader *, proc_reader_free);

static bool read_link(const char *path, char *ret, size_t size)
{
    ssize_t n = readlink(path, ret, size - 1);

    ret[n > 0 ? n : 0] = 0;
    return n > 0;
}

int proc_reader_new(ProcReader **ret)
{
    _cleanup_(proc_reader_freep) ProcReader *x = calloc(1, sizeof(*x));
    struct stat st;
    int r;

    if (!x)
        return -ENOMEM;
    x->mountinfo_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (x->mountinfo_fd < 0)
        return -errno;
    r = mount_table_read(AT_FDCWD, &x->mounts);
    if (r < 0)
        return r;
    x->root_dev = stat("/", &st) < 0 ? 0 : st.st_dev;
    (void)read_link("/proc/self/ns/mnt", x->namespace, sizeof(x->namespace));
    *ret = TAKE_PTR(x);
    return 0;
}

/* Reads the mounts of this process again if they changed. The kernel reports each change once to
 * each open file. */
static void update_mounts(ProcReader *x)
{
    struct pollfd p = {.fd = x->mountinfo_fd, .events = POLLPRI};
    MountTable now = {0};

    if (poll(&p, 1, 0) <= 0 || mount_table_read(AT_FDCWD, &now) < 0)
        return;
    mount_table_done(&x->mounts);
    x->mounts = now;
}

/* Returns true if the path is local in the mount namespace of the process. */
static bool is_local_in(uint32_t pid, const char *exe)
{
    _cleanup_mount_table_ MountTable mounts = {0};
    _cleanup_free_ char *text = NULL;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%u/mountinfo", pid);
    return rooted_read(AT_FDCWD, path, MOUNTINFO_SIZE_MAX, &text, NULL) >= 0 &&
           mount_table_parse(text, &mounts, NULL) >= 0 && mount_table_path_is_local(&mounts, exe);
}

/* Returns true if the path is local in the mount namespace of the process, and if there is time to
 * find this out. */
static bool is_local_for(ProcReader *x, uint32_t pid, const char *exe)
{
    usec_t start = clock_now(CLOCK_MONOTONIC);
    bool local;

    x->foreign_due = MAX(x->foreign_due, start - MIN(start, FOREIGN_SHARE * FOREIGN_USEC));
    if (x->foreign_due > start)
        return false;
    local = is_local_in(pid, exe);
    x->foreign_due += FOREIGN_SHARE * (clock_now(CLOCK_MONOTONIC) - start);
    return local;
}

/* Looks up where a path leads. */
typedef struct LookupJob {
    DiskJob job;
    char *path;
    struct stat st; /* all zero: nowhere */
} LookupJob;

static void lookup_free(DiskJob *job)
{
    LookupJob *l = (LookupJob *)job;

    free(l->path);
    free(l);
}

/* The path of an executable has no symlinks. If a user puts one into it now, the symlink could lead
 * to an automount or a filesystem that hangs. */
static void lookup_run(DiskJob *job)
{
    LookupJob *l = (LookupJob *)job;
    _cleanup_close_ int fd = open_without_symlinks(l->path);

    if (fd < 0 || fstat(fd, &l->st) < 0)
        l->st = (struct stat){0};
}

/* Returns true if the path leads to the file with these attributes, as far as its disk answers. */
static bool leads_to(const ProcReader *x, const char *path, const struct stat *st)
{
    LookupJob *l = calloc(1, sizeof(*l));
    bool same;

    if (!l)
        return false;
    l->job = (DiskJob){lookup_run, lookup_free};
    l->path = strdup(path);
    if (!l->path) {
        free(l);
        return false;
    }
    if (disk_call(st->st_dev == x->root_dev ? 0 : st->st_dev, &l->job) < 0)
        return false;
    same = l->st.st_dev == st->st_dev && l->st.st_ino == st->st_ino;
    lookup_free(&l->job);
    return same;
}

/* Finds the filesystem and the inode of an open file. A network filesystem is not asked: its server
 * may not answer, and a mount that was detached is in no table of mounts. */
static int stat_cached(const char *path, struct stat *ret)
{
    struct statx st;

    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO, &st) <
        0)
        return -errno;
    *ret = (struct stat){
            .st_dev = makedev(st.stx_dev_major, st.stx_dev_minor),
            .st_ino = st.stx_ino,
            .st_mode = st.stx_mode,
    };
    return 0;
}

static void read_exe(ProcReader *x, uint32_t pid, ProcFacts *f)
{
    char exe[64], namespace[64], path[64];
    struct stat st = {0};
    bool same, local;

    snprintf(exe, sizeof(exe), "/proc/%u/exe", pid);
    if (!read_link(exe, f->exe, sizeof(f->exe)))
        return;
    snprintf(path, sizeof(path), "/proc/%u/ns/mnt", pid);
    same = read_link(path, namespace, sizeof(namespace)) && strcmp(namespace, x->namespace) == 0;
    update_mounts(x);
    local = mount_table_path_is_local(&x->mounts, f->exe);
    if (!local || (!same && !is_local_for(x, pid, f->exe))) {
        f->remote = true;
        /* The process may see another file at this path, or the name may be a secret. */
        if (!same || mount_table_path_may_be_encrypted(&x->mounts, f->exe))
            f->exe[0] = 0;
        return;
    }
    if (stat_cached(exe, &st) < 0)
        return;
    f->exe_dev = st.st_dev;
    if (!leads_to(x, f->exe, &st))
        f->exe[0] = 0;
}

/* Reads parent and real UID of a process. Returns 0 or -ESRCH. */
static int read_status(uint32_t pid, ProcFacts *f)
{
    _cleanup_free_ char *status = NULL;
    char path[64];
    const char *line;

    snprintf(path, sizeof(path), "/proc/%u/status", pid);
    if (rooted_read(AT_FDCWD, path, 65536, &status, NULL) < 0)
        return -ESRCH;
    line = strstr(status, "\nPPid:");
    if (line)
        f->parent = (uint32_t)strtoul(line + 6, NULL, 10);
    line = strstr(status, "\nUid:");
    if (line)
        f->uid = (uint32_t)strtoul(line + 5, NULL, 10);
    return 0;
}

uint32_t proc_cgroup_user(const char *text)
{
    static const char slice[] = "/user.slice/user-";

    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *path = strchr(line, ':');
        unsigned long uid;
        char *end;

        path = path ? strchr(path + 1, ':') : NULL;
        if (!path || strncmp(path + 1, slice, strlen(slice)) != 0)
            continue;
        uid = strtoul(path + 1 + strlen(slice), &end, 10);
        if (end != path + 1 + strlen(slice) && strncmp(end, ".slice/", 7) == 0 && uid < UID_INVALID)
            return (uint32_t)uid;
    }
    return UID_INVALID;
}

/* Returns the user whose session contains the process. Its control group shows the user, because no
 * user can move a process to the group of another; otherwise its login UID (pam_loginuid(8)) does.
 * UID_INVALID: none is known. */
static uint32_t session_user(uint32_t pid)
{
    _cleanup_free_ char *cgroup = NULL, *login = NULL;
    uint32_t uid = UID_INVALID;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
    if (rooted_read(AT_FDCWD, path, 65536, &cgroup, NULL) >= 0)
        uid = proc_cgroup_user(cgroup);
    snprintf(path, sizeof(path), "/proc/%u/loginuid", pid);
    if (uid == UID_INVALID && rooted_read(AT_FDCWD, path, 64, &login, NULL) >= 0)
        uid = (uint32_t)strtoul(login, NULL, 10);
    return uid;
}

/* Returns the user to whom a process with this real UID belongs. */
static uint32_t user_of(uint32_t pid, uint32_t uid)
{
    uint32_t session;

    if (uid != 0 && !subordinate_uid_is_possible(uid))
        return uid;
    session = session_user(pid);
    return uid_is_person(session) ? session : uid;
}

uint32_t proc_user(uint32_t pid)
{
    ProcFacts f = {.uid = UID_INVALID};

    return read_status(pid, &f) < 0 ? UID_INVALID : user_of(pid, f.uid);
}

int proc_facts_read(ProcReader *x, uint32_t pid, ProcFacts *ret)
{
    ProcFacts f = {.uid = UID_INVALID};
    int r = read_status(pid, &f);

    if (r < 0)
        return r;
    f.uid = user_of(pid, f.uid);
    read_exe(x, pid, &f);
    *ret = f;
    return 0;
}

size_t proc_lineage(uint32_t pid, uint32_t *ret, size_t max)
{
    ProcFacts f = {.parent = pid};
    size_t n = 0;

    do
        ret[n++] = f.parent;
    while (n < max && read_status(ret[n - 1], &f) == 0 && f.parent > 1);
    return n;
}

int proc_scan(ProcReader *x, int (*each)(uint32_t pid, const ProcFacts *facts, void *arg),
              void *arg)
{
    _cleanup_closedir_ DIR *d = NULL;
    int r = directory_open(AT_FDCWD, "/proc", 0, &d);

    for (const struct dirent *e; r >= 0 && (e = directory_next(d));) {
        char *end;
        unsigned long pid = strtoul(e->d_name, &end, 10);
        ProcFacts f;

        if (*end || end == e->d_name || pid == 0 || proc_facts_read(x, (uint32_t)pid, &f) < 0)
            continue;
        r = each((uint32_t)pid, &f, arg);
    }
    return r < 0 ? r : 0;
}
