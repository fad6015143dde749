/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/checks.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/rooted.h"
#include "base/text.h"
#include "command/systemctl.h"
#include "device/block-device.h"
#include "model/model.h"
#include "system/memory.h"
#include "volume/mount-table.h"
#include "volume/root-kind.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#define MEMORY_LOW     (512U << 20)
#define RECORD_SERVICE "headstart-record.service"
#define REPLAY_SERVICE "headstart-replay-boot.service"

static bool exists(const Context *c, const char *path)
{
    _cleanup_close_ int fd = rooted_open(c->system_fd, path, O_PATH);

    return fd >= 0;
}

static void check_kernel(Checks *checks, const Context *c)
{
    _cleanup_free_ char *release = NULL;
    unsigned major, minor;

    if (rooted_read(c->system_fd, "/proc/sys/kernel/osrelease", 4096, &release, NULL) < 0 ||
        sscanf(release, "%u.%u", &major, &minor) != 2)
        return;
    if (major < 5 || (major == 5 && minor < 10))
        checks_add(checks, "kernel", CHECK_PROBLEM, "nothing can be recorded",
                   "boot a kernel from 5.10 on",
                   "Linux %u.%u is older than Linux 5.10, which headstart needs", major, minor);
    else if (!exists(c, "/proc/sys/fs/fanotify"))
        checks_add(checks, "kernel", CHECK_PROBLEM, "nothing can be recorded",
                   "boot a kernel with CONFIG_FANOTIFY", "the kernel has no fanotify");
    else if (major < 6 || (major == 6 && minor < 5))
        checks_add(checks, "kernel", CHECK_NOTE,
                   "metadata of filesystems is derived from paths instead of observed",
                   "boot a kernel from 6.5 on", "Linux %u.%u has no cachestat(2)", major, minor);
    else
        checks_add(checks, "kernel", CHECK_OK, NULL, NULL,
                   "Linux %u.%u can report all that headstart uses", major, minor);
    if (!exists(c, "/proc/net/connector"))
        checks_add(checks, "processes", CHECK_NOTE,
                   "programs that end at once are not recorded as applications",
                   "boot a kernel with CONFIG_PROC_EVENTS",
                   "the kernel does not report forks and exits");
    else
        checks_add(checks, "processes", CHECK_OK, NULL, NULL, "the kernel reports forks and exits");
    if (!exists(c, "/proc/pressure/io"))
        checks_add(checks, "pressure", CHECK_NOTE,
                   "the end of a login is found less exactly, and stalls are not measured",
                   "add psi=1 to the kernel command line, or boot a kernel with CONFIG_PSI",
                   "the kernel reports no I/O pressure");
    else
        checks_add(checks, "pressure", CHECK_OK, NULL, NULL, "the kernel reports I/O pressure");
}

/* Returns the active scheduler, which is the word in brackets: "none [mq-deadline] bfq". */
static char *active_scheduler(char *text)
{
    char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

    if (!close)
        return NULL;
    *close = 0;
    return open + 1;
}

/* Returns the I/O scheduler of the disk below a filesystem, also through encryption and logical
 * volumes, and writes the path of its file into `path`; the caller frees the result. NULL: there is
 * none, or the filesystem is on several disks or in a file. */
#define SCHEDULER_PATH_MAX 320U
static char *read_scheduler(const Context *c, const Mount *m, char path[static SCHEDULER_PATH_MAX])
{
    static const char *const queues[] = {"queue/scheduler", "../queue/scheduler"};
    _cleanup_block_disk_ BlockDisk disk = {0};
    _cleanup_free_ char *text = NULL;
    const char *active;

    if (block_device_find_disk(c->system_fd, makedev(m->major, m->minor), &disk) >= 0) {
        if (disk.several || strncmp(disk.name, "loop", 4) == 0)
            return NULL;
        snprintf(path, SCHEDULER_PATH_MAX, "/sys/class/block/%s/queue/scheduler", disk.name);
        (void)rooted_read(c->system_fd, path, 4096, &text, NULL);
    }
    for (size_t i = 0; !text && i < ELEMENTSOF(queues); i++) {
        snprintf(path, SCHEDULER_PATH_MAX, "/sys/dev/block/%u:%u/%s", m->major, m->minor,
                 queues[i]);
        (void)rooted_read(c->system_fd, path, 4096, &text, NULL);
    }
    active = text ? active_scheduler(text) : NULL;
    return active ? strdup(active) : NULL;
}

/* Returns true if an earlier mount is of the same filesystem. */
static bool is_repeated(const MountTable *mounts, size_t k)
{
    for (size_t i = 0; i < k; i++)
        if (mounts->mounts[i].major == mounts->mounts[k].major &&
            mounts->mounts[i].minor == mounts->mounts[k].minor)
            return true;
    return false;
}

/* Loop devices pass their reads on to another disk. */
#define LOOP_MAJOR 7U

static void check_schedulers(Checks *checks, const Context *c, const MountTable *mounts)
{
    size_t n_good = 0, n_bad = 0;

    for (size_t i = 0; i < mounts->n; i++) {
        const Mount *m = mounts->mounts + i;
        _cleanup_free_ char *active = NULL;
        char path[SCHEDULER_PATH_MAX], remedy[SCHEDULER_PATH_MAX + 64];

        if (!fstype_is_local_block(m->fstype) || m->major == LOOP_MAJOR || is_repeated(mounts, i))
            continue;
        active = read_scheduler(c, m, path);
        if (!active)
            continue;
        if (strcmp(active, "bfq") == 0 || strcmp(active, "mq-deadline") == 0) {
            n_good++;
            continue;
        }
        snprintf(remedy, sizeof(remedy), "echo mq-deadline >%s, and a udev rule that keeps it",
                 path);
        if (n_bad++ == 0)
            checks_add(checks, "scheduler", CHECK_NOTE,
                       "reading ahead can delay other reads on a slow disk", remedy,
                       "the I/O scheduler %s of %s (%s) ignores idle priority", active, m->source,
                       m->target);
    }
    if (n_good > 0 && n_bad == 0)
        checks_add(checks, "scheduler", CHECK_OK, NULL, NULL,
                   "the I/O schedulers of the disks honour idle priority");
}

/* Returns true if the directory is one from which boots and logins read. */
static bool is_read_by_stages(const char *target)
{
    static const char *const names[] = {"/home", "/usr", "/var", "/opt", "/srv"};

    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        if (path_is_below(target, names[i]))
            return true;
    return false;
}

static bool is_network(const char *fstype)
{
    static const char *const names[] = {"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph"};

    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        if (strcmp(fstype, names[i]) == 0)
            return true;
    return false;
}

static void check_mounts(Checks *checks, const MountTable *mounts)
{
    size_t n_local = 0;

    for (size_t i = 0; i < mounts->n; i++) {
        const Mount *m = mounts->mounts + i;

        n_local += fstype_is_local_block(m->fstype) && !is_repeated(mounts, i);
        if (is_network(m->fstype) && is_read_by_stages(m->target))
            checks_add(checks, "mounts", CHECK_NOTE, "files there are not read ahead",
                       "none: headstart reads local disks only", "%s is a network filesystem (%s)",
                       m->target, m->fstype);
    }
    if (n_local > 0)
        checks_add(checks, "mounts", CHECK_OK, NULL, NULL, "%zu filesystem%s on local disks",
                   n_local, text_plural_s(n_local));
}

static void check_filesystems(Checks *checks, const Context *c)
{
    _cleanup_mount_table_ MountTable mounts = {0};
    const char *subvolume;
    const Mount *root;
    RootKind kind;

    if (mount_table_read(c->system_fd, &mounts) < 0)
        return;
    root = mount_table_root(&mounts);
    if (!root)
        return;
    kind = root_kind(&mounts, &subvolume);
    if (fstype_is_local_block(root->fstype))
        checks_add(checks, "root", CHECK_OK, NULL, NULL,
                   "the root filesystem is %s on a local disk (%s)", root->fstype,
                   (int)kind >= 0 ? root_kind_to_string(kind) : "unknown kind");
    else
        checks_add(
                checks, "root", CHECK_NOTE,
                "its files are recorded and replayed only where a filesystem beneath it is local",
                "none: headstart reads local disks only",
                "the root filesystem is %s, which has no local disk of its own", root->fstype);
    check_mounts(checks, &mounts);
    check_schedulers(checks, c, &mounts);
}

/* Returns true if a directory TARGET.wants below `path` has a link to the unit. */
static bool is_wanted(const Context *c, const char *path, const char *unit)
{
    int fd = rooted_open(c->system_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = NULL;
    const struct dirent *e;
    bool found = false;

    if (directory_from_fd(fd, &dir) < 0)
        return false;
    while (!found && (e = directory_next(dir))) {
        char entry[600];

        if (!strstr(e->d_name, ".wants"))
            continue;
        snprintf(entry, sizeof(entry), "%s/%s", e->d_name, unit);
        found = faccessat(dirfd(dir), entry, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    }
    return found;
}

/* Returns true if the unit is enabled by systemctl, or by a package or image with links below
 * /usr. */
static bool is_enabled(const Context *c, const char *unit)
{
    return is_wanted(c, "/etc/systemd/system", unit) ||
           is_wanted(c, "/usr/lib/systemd/system", unit);
}

/* What does not work after a unit has failed. Nothing starts such a unit again by itself. */
static const struct {
    const char *unit, *cost;
} failing[] = {
        {RECORD_SERVICE, "nothing is recorded"},
        {"headstart-record-late.service", "nothing is recorded"},
        {REPLAY_SERVICE, "the boot was not replayed"},
        {"headstart-replay-login.service", "the login pack was not read at the greeter"},
        {"headstart-replay-user@*.service", "a login was not replayed"},
        {"headstart-learn.path", "what was recorded is not learned"},
        {"headstart-learn.service", "what was recorded is not learned"},
        {"headstart-learn.timer", "what was recorded is not learned"},
        {"headstart-plan.service", "packs are not planned anew"},
        {"headstart-refresh.service", "replay skips files that were replaced"},
        {"headstart-refresh.timer", "replay skips files that were replaced"},
        {"headstart-bus.service", "users cannot see what headstart saves"},
};

static bool has_failed(const char *unit)
{
    return systemctl_run((const char *const[]){"--quiet", "is-failed", unit, NULL}, true) == 0;
}

/* Adds a problem for each unit that has failed. Returns true if the recorder has. */
static bool check_failed(Checks *checks)
{
    bool recorder = false;

    for (size_t i = 0; i < ELEMENTSOF(failing); i++) {
        const char *unit = failing[i].unit;
        char remedy[128];

        if (!has_failed(unit))
            continue;
        recorder = recorder || strcmp(unit, RECORD_SERVICE) == 0;
        snprintf(remedy, sizeof(remedy), "systemctl status '%s'", unit);
        checks_add(checks, strcmp(unit, RECORD_SERVICE) == 0 ? "recorder" : "units", CHECK_PROBLEM,
                   failing[i].cost, remedy, "%s has failed", unit);
    }
    return recorder;
}

static void check_units(Checks *checks, const Context *c)
{
    /* The units in data/90-headstart.preset. */
    static const char *const units[] = {
            RECORD_SERVICE,
            "headstart-record-late.service",
            "headstart-learn.path",
            "headstart-learn.timer",
            "headstart-plan.service",
            REPLAY_SERVICE,
            "headstart-replay-login.service",
    };
    bool systemd = c->system_fd == AT_FDCWD && systemctl_available();
    bool failed = systemd && check_failed(checks);
    size_t n = 0;

    for (size_t i = 0; i < ELEMENTSOF(units); i++)
        if (!is_enabled(c, units[i])) {
            checks_add(checks, "units", CHECK_PROBLEM, "headstart does not work by itself",
                       "headstart enable", "%s is not enabled", units[i]);
            n++;
        }
    if (n > 0)
        return;
    checks_add(checks, "units", CHECK_OK, NULL, NULL, "the units are enabled");
    if (!systemd || failed)
        return;
    if (systemctl_run((const char *const[]){"--quiet", "is-active", RECORD_SERVICE, NULL}, true) ==
        0)
        checks_add(checks, "recorder", CHECK_OK, NULL, NULL, RECORD_SERVICE " runs");
    else
        checks_add(checks, "recorder", CHECK_PROBLEM, "nothing is recorded until the next boot",
                   "reboot, or run 'systemctl start " RECORD_SERVICE "'",
                   RECORD_SERVICE " does not run");
}

static void check_clock(Checks *checks)
{
    if (clock_now(CLOCK_REALTIME) < MODEL_CLOCK_MIN)
        checks_add(checks, "clock", CHECK_PROBLEM, "what was learned does not decay",
                   "timedatectl set-ntp true", "the clock says that it is before 2020");
    else
        checks_add(checks, "clock", CHECK_OK, NULL, NULL, "the clock is credible");
}

/* Checks the hardware clock. If it is wrong, the machine has a wrong time from the start of the
 * boot until the network corrects the time. */
static void check_hardware_clock(Checks *checks, const Context *c)
{
    uint64_t seconds;

    if (rooted_read_u64(c->system_fd, "/sys/class/rtc/rtc0/since_epoch", &seconds) < 0)
        return;
    if (seconds < MODEL_CLOCK_MIN / USEC_PER_SEC)
        checks_add(checks, "hardware-clock", CHECK_NOTE,
                   "boots are dated wrongly until the clock is set, and count as very old",
                   "hwclock --systohc, or replace the battery",
                   "the hardware clock says that it is before 2020");
    else
        checks_add(checks, "hardware-clock", CHECK_OK, NULL, NULL,
                   "the hardware clock is credible");
}

static void check_memory(Checks *checks, const Context *c)
{
    char available[FORMAT_BYTES_MAX];
    MemoryFacts m;

    if (memory_facts_read(c->system_fd, &m) < 0 || m.available_bytes == 0)
        return;
    format_bytes(available, sizeof(available), m.available_bytes);
    if (m.available_bytes < MEMORY_LOW)
        checks_add(
                checks, "memory", CHECK_NOTE, "packs are cut, and what was read is evicted early",
                "close applications, or add memory", "only %s of memory are available", available);
    else
        checks_add(checks, "memory", CHECK_OK, NULL, NULL, "%s of memory are available", available);
}

void checks_add_machine(Checks *checks, const Context *c)
{
    check_kernel(checks, c);
    check_filesystems(checks, c);
    check_units(checks, c);
    check_clock(checks);
    check_hardware_clock(checks, c);
    checks_add_hooks(checks, c);
    check_memory(checks, c);
}
