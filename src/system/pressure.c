/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/pressure.h"

#include "base/rooted.h"
#include "base/time-util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "config-paths.h"

#define TEXT_MAX (1U << 20)

/* The control groups of headstart's own units, from units/meson.build. Their I/O is subtracted,
 * because a replay may still read when the greeter has settled. */
static const char *const own_groups[] = {HEADSTART_OWN_GROUPS};
_Static_assert(ELEMENTSOF(own_groups) == PRESSURE_OWN_MAX, "one slot a group");

/* The group into which systemd moves what ran before it, here the replay of headstart-init. PID 1
 * is in the same group, so its waits are subtracted while that replay runs, and only then. The
 * kernel keeps 15 bytes of the name of a process. */
static const char init_group[] = "/sys/fs/cgroup/init.scope";
static const char replay_name[] = "headstart-repla\n";

/* The group of all sessions and user managers. */
static const char users_group[] = "/sys/fs/cgroup/user.slice";

/* The unit of /proc/diskstats. */
#define SECTOR_BYTES 512U

/* Reads a file of pressure stall information and returns the "total" of its "some" line in
 * microseconds. The line looks like "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345". */
static int read_stall(int root_fd, const char *path, uint64_t *ret)
{
    _cleanup_free_ char *text = NULL;
    int r = rooted_read(root_fd, path, TEXT_MAX, &text, NULL);
    const char *p;

    if (r < 0)
        return r;
    if (strncmp(text, "some ", 5) != 0)
        return -EBADMSG;
    p = strstr(text, " total=");
    return p && sscanf(p, " total=%" SCNu64, ret) == 1 ? 0 : -EBADMSG;
}

/* Returns true for whole disks. The I/O of partitions, loop devices and mapped devices is also
 * counted on the disk below them. */
static bool is_disk(int root_fd, const char *name)
{
    static const char *const not [] = {"loop", "ram", "zram", "dm-", "md", "sr", "fd"};
    char path[128];
    int fd;

    for (size_t i = 0; i < ELEMENTSOF(not ); i++)
        if (strncmp(name, not [i], strlen(not [i])) == 0)
            return false;
    snprintf(path, sizeof(path), "/sys/block/%s/stat", name);
    fd = rooted_open(root_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Sums the busy time of all disks, and the bytes that were read from them. */
static int read_disks(int root_fd, uint64_t *ret_busy_usec, uint64_t *ret_bytes)
{
    _cleanup_free_ char *text = NULL;
    uint64_t sum = 0, bytes = 0;
    int r = rooted_read(root_fd, "/proc/diskstats", TEXT_MAX, &text, NULL);

    if (r < 0)
        return r;
    for (char *save = NULL, *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        uint64_t sectors, busy_msec;
        char name[64];

        /* major, minor, name, four fields of reads (the third one is in sectors), four of writes,
         * requests in flight, busy time */
        if (sscanf(l, "%*u %*u %63s %*u %*u %" SCNu64 " %*u %*u %*u %*u %*u %*u %" SCNu64, name,
                   &sectors, &busy_msec) == 3 &&
            !strchr(name, '/') && is_disk(root_fd, name)) {
            sum += busy_msec * USEC_PER_MSEC;
            bytes += sectors * SECTOR_BYTES;
        }
    }
    *ret_busy_usec = sum;
    *ret_bytes = bytes;
    return 0;
}

/* Returns how long tasks of the group waited, in microseconds; 0 if the group does not exist. A new
 * group of the same name starts at 0. */
static uint64_t group_stall(int root_fd, const char *group)
{
    char path[256];
    uint64_t stalled;

    snprintf(path, sizeof(path), "%s/io.pressure", group);
    return read_stall(root_fd, path, &stalled) < 0 ? 0 : stalled;
}

/* Returns how many bytes the process has read from disks. For a process that has waited for its
 * children, the kernel adds what these have read. */
static uint64_t process_read_bytes(int root_fd, const char *pid)
{
    _cleanup_free_ char *text = NULL;
    char path[64];
    const char *at;
    uint64_t n;

    snprintf(path, sizeof(path), "/proc/%.10s/io", pid);
    if (rooted_read(root_fd, path, TEXT_MAX, &text, NULL) < 0)
        return 0;
    at = strstr(text, "\nread_bytes: ");
    return at && sscanf(at, "\nread_bytes: %" SCNu64, &n) == 1 ? n : 0;
}

static bool process_has_name(int root_fd, const char *pid, const char *name)
{
    _cleanup_free_ char *text = NULL;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%.10s/comm", pid);
    return rooted_read(root_fd, path, TEXT_MAX, &text, NULL) >= 0 && strcmp(text, name) == 0;
}

/* Adds up how many bytes the processes of the group have read from disks; of all processes, or of
 * those with the name (NULL: all). Without pressure stall information, this is the only sign that
 * they read. Returns true if there is such a process. */
static bool sum_read_bytes(int root_fd, const char *group, const char *name, uint64_t *ret)
{
    _cleanup_free_ char *pids = NULL;
    char path[256];
    bool found = false;

    *ret = 0;
    snprintf(path, sizeof(path), "%s/cgroup.procs", group);
    if (rooted_read(root_fd, path, TEXT_MAX, &pids, NULL) < 0)
        return false;
    for (char *save = NULL, *p = strtok_r(pids, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
        if (!name || process_has_name(root_fd, p, name)) {
            *ret += process_read_bytes(root_fd, p);
            found = true;
        }
    return found;
}

static uint64_t group_read_bytes(int root_fd, const char *group)
{
    uint64_t sum;

    (void)sum_read_bytes(root_fd, group, NULL, &sum);
    return sum;
}

int pressure_read_total(int root_fd, uint64_t *ret_stalled_usec)
{
    return read_stall(root_fd, "/proc/pressure/io", ret_stalled_usec);
}

/* Returns by how much a counter has grown; 0 if it was reset. */
static uint64_t growth(uint64_t last, uint64_t now)
{
    return now > last ? now - last : 0;
}

/* Returns by how much the waits of headstart's own tasks have grown since the last call, or with
 * `disks` the bytes that they have read. */
static uint64_t own_growth(Pressure *p, bool disks)
{
    uint64_t ours = 0, now;
    bool replays;

    for (size_t i = 0; i < PRESSURE_OWN_MAX; i++) {
        now = (disks ? group_read_bytes : group_stall)(p->root_fd, own_groups[i]);
        ours += growth(p->last_own[i], now);
        p->last_own[i] = now;
    }
    replays = sum_read_bytes(p->root_fd, init_group, replay_name, &now);
    if (!disks)
        now = group_stall(p->root_fd, init_group);
    if (replays || p->replayed_early) /* it may have ended since the last call */
        ours += growth(p->last_early, now);
    p->last_early = now;
    p->replayed_early = replays;
    return ours;
}

/* Returns the part of the time in which others waited: pressure.h. `ours` and `users` are in
 * microseconds. */
static uint64_t waited_of_others(uint64_t time, uint64_t ours, uint64_t users)
{
    return MAX(time - MIN(time, ours), MIN(users, time));
}

/* Returns the part of the busy time of the disks that counts for others. */
static uint64_t busy_of_others(uint64_t time, uint64_t our_bytes, uint64_t bytes)
{
    if (our_bytes == 0)
        return time;
    if (our_bytes >= bytes)
        return 0;
    return (uint64_t)((double)time * (double)(bytes - our_bytes) / (double)bytes);
}

int pressure_read(Pressure *p, uint64_t *ret_stalled_usec)
{
    uint64_t now, bytes = 0, users = 0, ours;
    int r = pressure_read_total(p->root_fd, &now);
    bool disks = r < 0;

    /* If pressure stall information is off (psi=0), reading the file fails with EOPNOTSUPP. */
    if (disks)
        r = read_disks(p->root_fd, &now, &bytes);
    if (r < 0)
        return r;
    if (!disks)
        users = group_stall(p->root_fd, users_group);
    ours = own_growth(p, disks);
    if (p->begun && now > p->last) {
        uint64_t more = now - p->last;

        p->stalled_usec += disks ? busy_of_others(more, ours, growth(p->last_bytes, bytes))
                                 : waited_of_others(more, ours, growth(p->last_users, users));
    }
    p->begun = true;
    p->last = now;
    p->last_users = users;
    p->last_bytes = bytes;
    *ret_stalled_usec = p->stalled_usec;
    return 0;
}
