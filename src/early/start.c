/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "early/start.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "boot/early-delay.h"
#include "boot/hold.h"
#include "boot/own-files.h"
#include "early/conditions.h"
#include "early/disk.h"
#include "early/read-ahead.h"
#include "record/handover.h"
#include "system/capability.h"

#include "config-paths.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

/* A file in the runtime directory; while it exists, the unit need not replay the boot. */
#define REPLAY_MARKER "replay-boot.early"

/* A file in the runtime directory: this boot is recorded again, so nothing was replayed. */
#define RECORD_MARKER "record-boot.early"

/* headstart-replay needs a moment of CPU time to report that its deadline has passed. The boot
 * continues within 100 ms after the deadline, so this leaves headstart-init a moment, too. */
#define HOLD_MARGIN (50 * USEC_PER_MSEC)

/* The longest wait for the exit status of a replay that has closed its descriptors. */
#define EXIT_WAIT (40 * USEC_PER_MSEC)

/* Exit statuses: wrong usage of headstart-replay, and those of a shell or loader that cannot
 * execute or find what it needs. */
enum { EXIT_USAGE = 2, EXIT_NOT_LOADED = 126, EXIT_NOT_FOUND = 127 };

/* --- the recording ---------------------------------------------------------------------------- */

/* Keeps the descriptors until headstartd claims them, but at most for HANDOVER_OFFER_USEC. The
 * runtime directory stays reachable by its descriptor when an initrd switches the root. headstartd
 * restores read-ahead if it claims the descriptors. */
static void hold(Handover *h, const EarlyReadAhead *read_ahead, int listen_fd, int run_fd)
{
    (void)prctl(PR_SET_NAME, "headstart-hold");
    (void)setsid();
    if (handover_offer(listen_fd, h, HANDOVER_OFFER_USEC) < 0)
        early_read_ahead_restore(read_ahead, run_fd);
    (void)unlinkat(run_fd, HANDOVER_SOCKET, 0);
    _exit(EXIT_SUCCESS);
}

/* Leaves the descriptors to a process that offers them. The process that waits for the replay waits
 * until every copy of boot_fd is closed. It must not wait for the offering process, which therefore
 * closes its copy. */
static int offer_by_process(const EarlyOptions *o, Handover *h, const EarlyReadAhead *read_ahead,
                            int boot_fd)
{
    _cleanup_close_ int listen_fd = -EBADF, run_fd = -EBADF;
    char path[PATH_MAX];
    pid_t pid;

    if ((size_t)snprintf(path, sizeof(path), "%s/" HANDOVER_SOCKET, o->run) >= sizeof(path))
        return -ENAMETOOLONG;
    (void)unlink(path);
    run_fd = open(o->run, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (run_fd < 0)
        return -errno;
    listen_fd = handover_listen(path);
    if (listen_fd < 0)
        return listen_fd;
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        close(boot_fd);
        hold(h, read_ahead, listen_fd, run_fd);
    }
    return 0;
}

/* Starts the recording. For an exact recording, also lowers read-ahead if a process of headstart
 * remains that can restore it. In an initrd with systemd no such process remains, and headstartd
 * lowers read-ahead later. */
static int start_recording(const EarlyOptions *o, int root_fd, const char *pack_dir, int boot_fd)
{
    _cleanup_(early_read_ahead_done) EarlyReadAhead read_ahead = EARLY_READ_AHEAD_NULL;
    _cleanup_handover_ Handover h = HANDOVER_NULL;
    _cleanup_close_ int run_fd = -EBADF;
    /* If the unit of headstartd does not start, systemd keeps the descriptors, and nobody reads the
     * queue. */
    int r = handover_begin(o->root, !o->manager, &h);

    if (r < 0)
        return r == -ENODEV ? 0 : r;
    if (o->manager)
        return handover_store(o->manager, &h);
    r = early_read_ahead_lower(root_fd, pack_dir, o->run, &read_ahead);
    if (r < 0)
        log_warning_errno(r, "headstart-init: cannot lower read-ahead, ignoring: %m");
    r = offer_by_process(o, &h, &read_ahead, boot_fd);
    if (r < 0) {
        run_fd = open(o->run, O_PATH | O_DIRECTORY | O_CLOEXEC);
        early_read_ahead_restore(&read_ahead, run_fd);
    }
    return r;
}

/* --- the root filesystem as this process sees it ---------------------------------------------- */

/* Directories of the initrd that a program needs below the root filesystem. */
static const char *const api[] = {"/proc", "/sys", "/dev", "/run"};

/* Makes `root` the root directory of this process, in a mount namespace of its own with the API
 * filesystems in place. An initrd later moves those filesystems and empties its own root. A process
 * that still runs would lose both. */
static int enter_root(const char *root)
{
    char target[PATH_MAX];

    if (strcmp(root, "/") == 0)
        return 0;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -errno;
    for (size_t i = 0; i < ELEMENTSOF(api); i++) {
        if ((size_t)snprintf(target, sizeof(target), "%s%s", root, api[i]) >= sizeof(target))
            return -ENAMETOOLONG;
        if (mount(api[i], target, NULL, MS_BIND | MS_REC, NULL) < 0)
            return -errno;
    }
    return chdir(root) < 0 || chroot(".") < 0 ? -errno : 0;
}

/* --- the process that headstart-replay will be ------------------------------------------------ */

/* Leaves the programs that this process executes three capabilities: the two that the unit keeps,
 * and the one by which replay asks btrfs for metadata (system/item-read.h). A container
 * manager may have given this process inheritable capabilities, which the bounding set does not
 * limit. */
static int drop_capabilities(void)
{
    int r = capability_end_inheritance();

    if (r < 0)
        return r;
    for (int c = 0; prctl(PR_CAPBSET_READ, c) >= 0; c++)
        if (c != CAP_DAC_READ_SEARCH && c != CAP_FOWNER && c != CAP_SYS_ADMIN &&
            prctl(PR_CAPBSET_DROP, c) < 0)
            return -errno;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* Lets the kernel kill this process first when memory is short, as in the unit. A failure is
 * ignored. */
static void raise_oom_score(void)
{
    _cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0 && write(fd, "900", 3) < 0)
        log_debug_errno(errno, "Cannot set oom_score_adj, ignoring: %m");
}

/* Creates the marker. 0 or a negative errno. */
static int mark(const char *path)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

    return fd < 0 ? -errno : 0;
}

/* Executes headstart-replay with the boot pack of `pack_dir` (early_find_pack_dir()); returns on
 * failure only. */
static int execute_replay(const EarlyOptions *o, const char *pack_dir, int boot_fd)
{
    static const char state[] = HEADSTART_STATE_DIR "/boot.pack",
                      copy[] = HEADSTART_SYSCONF_DIR "/boot.pack";
    bool is_copy = pack_dir && strcmp(pack_dir, HEADSTART_SYSCONF_DIR) == 0;
    const char *pack = is_copy ? copy : state, *other = is_copy ? state : copy;
    bool is_initrd = strcmp(o->root, "/") != 0;
    char status[PATH_MAX], option[PATH_MAX], *marker = option + strlen("--marker=");
    /* If PID 1 starts headstart-init, headstart-replay also replays filesystems that are mounted
     * later. In an initrd, headstart-replay cannot see such filesystems. */
    char *const arguments[] = {(char *)"headstart-replay",
                               is_initrd ? option : (char *)"--mount-wait=60s",
                               (char *)"--timeout=90s",
                               status,
                               (char *)pack,
                               (char *)other,
                               NULL};
    int r;

    if (!pack_dir)
        _exit(EXIT_SUCCESS); /* no pack was planned yet */
    if ((size_t)snprintf(status, sizeof(status), "--status=%s/replay-boot.json", o->run) >=
                sizeof(status) ||
        (size_t)snprintf(option, sizeof(option), "--marker=%s/" REPLAY_MARKER, o->run) >=
                sizeof(option))
        return -ENAMETOOLONG;
    r = enter_root(o->root);
    if (r < 0)
        return r;
    /* The disk reads the pack while the program starts. */
    own_file_read_ahead(pack);
    if (o->survives) {
        r = mark(marker);
        if (r < 0)
            return r;
    }
    raise_oom_score();
    r = drop_capabilities();
    /* An open boot_fd shows that headstart-replay runs. */
    if (r >= 0 && fcntl(boot_fd, F_SETFD, 0) < 0)
        r = -errno;
    if (r >= 0) {
        execv(o->replay, arguments);
        r = -errno;
    }
    /* headstart-replay-boot.service may still replay the pack. */
    if (o->survives)
        (void)unlink(marker);
    return r;
}

/* Sends errors of this process and of headstart-replay to the kernel log. */
static void log_to_kernel(void)
{
    int log_fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null_fd >= 0) {
        (void)dup2(null_fd, STDIN_FILENO);
        (void)dup2(null_fd, STDOUT_FILENO);
    }
    if (log_fd >= 0)
        (void)dup2(log_fd, STDERR_FILENO);
}

/* Requests the pack in a process of its own, while this process looks up whether headstart is
 * disabled. A disk without a head serves both lookups at the same time. One with a head would go
 * back and forth between the directories. */
static void request_pack_beside(const EarlyOptions *o, int root_fd, int boot_fd)
{
    const char *pack_dir;
    char path[PATH_MAX];

    if (early_forbidden_by_kernel(o->words) || early_disk_rotates(root_fd) || fork() != 0)
        return;     /* without the process, the pack is requested later */
    close(boot_fd); /* the boot does not wait for this process */
    pack_dir = early_find_pack_dir(root_fd);
    if (pack_dir && !early_is_idle(root_fd, pack_dir) && early_may_replay(root_fd, pack_dir) &&
        (size_t)snprintf(path, sizeof(path), "%s%s/boot.pack", o->root, pack_dir) < sizeof(path))
        own_file_read_ahead(path);
    _exit(EXIT_SUCCESS);
}

static void run_child(const EarlyOptions *o, int boot_fd)
{
    _cleanup_close_ int root_fd = -EBADF, run_fd = -EBADF;
    char replay[PATH_MAX], marker[PATH_MAX];
    const char *pack_dir;
    int r;

    log_to_kernel();
    (void)setsid();
    /* The disk has just read headstart-init. headstart-replay usually lies next to it. */
    if (strcmp(o->root, "/") == 0)
        own_file_read_ahead(o->replay);
    root_fd = open(o->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    run_fd = open("/run", O_PATH | O_DIRECTORY | O_CLOEXEC);
    request_pack_beside(o, root_fd, boot_fd);
    if (early_forbidden(root_fd, run_fd, o->words))
        _exit(EXIT_SUCCESS);
    pack_dir = early_find_pack_dir(root_fd);
    if (early_is_idle(root_fd, pack_dir)) {
        close(boot_fd); /* the boot continues */
        own_units_read_ahead(o->root);
        _exit(EXIT_SUCCESS);
    }
    if ((size_t)snprintf(replay, sizeof(replay), "%s%s", o->root, o->replay) < sizeof(replay))
        own_file_read_ahead(replay);
    if (mkdir(o->run, 0755) < 0 && errno != EEXIST) {
        log_error_errno(errno, "headstart-init: %s: %m", o->run);
        _exit(EXIT_FAILURE);
    }
    r = start_recording(o, root_fd, pack_dir, boot_fd);
    if (r < 0)
        log_warning_errno(r, "headstart-init: the recording begins later: %m");
    if (!early_may_replay(root_fd, pack_dir)) {
        if (r >= 0 &&
            (size_t)snprintf(marker, sizeof(marker), "%s/" RECORD_MARKER, o->run) < sizeof(marker))
            (void)mark(marker); /* `headstart doctor` then reports no fault */
        _exit(EXIT_SUCCESS);
    }
    r = execute_replay(o, pack_dir, boot_fd);
    log_error_errno(r, "headstart-init: cannot start headstart-replay: %m");
    _exit(EXIT_FAILURE);
}

/* --- the process that waits ------------------------------------------------------------------- */

/* Opens a datagram socket with an abstract address of the kernel's choice, for $NOTIFY_SOCKET. */
static int open_notify_socket(char *ret_name, size_t size)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    socklen_t length = sizeof(sa);

    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa_family_t)) < 0 ||
        getsockname(fd, (struct sockaddr *)&sa, &length) < 0)
        return -errno;
    snprintf(ret_name, size, "@%.*s", (int)(length - sizeof(sa_family_t) - 1), sa.sun_path + 1);
    return TAKE_FD(fd);
}

/* Reads one message. Returns true if the boot may continue. If the message requests time
 * (EXTEND_TIMEOUT_USEC=), *hold becomes this time, which counts from the begin of the wait. */
static bool may_continue(int notify_fd, usec_t *hold)
{
    static const char extend[] = "EXTEND_TIMEOUT_USEC=";
    char text[1024];
    ssize_t n = recv(notify_fd, text, sizeof(text) - 1, 0);

    if (n < 0)
        return false;
    text[n] = 0;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        uint64_t usec;

        if (strcmp(line, "READY=1") == 0)
            return true;
        if (strncmp(line, extend, sizeof(extend) - 1) == 0 &&
            parse_u64(line + sizeof(extend) - 1, &usec) >= 0)
            *hold = usec;
    }
    return false;
}

/* Returns true if the replay has ended, or never begins: every copy of boot_fd is closed. */
static bool await_replay(usec_t begun, int notify_fd, int end_fd)
{
    const usec_t limit = hold_limit(AT_FDCWD);
    usec_t hold = USEC_INFINITY; /* not known before headstart-replay requests time */

    for (;;) {
        struct pollfd p[] = {{.fd = notify_fd, .events = POLLIN}, {.fd = end_fd}};
        usec_t now = clock_now(CLOCK_MONOTONIC),
               end = begun + (hold == USEC_INFINITY ? MIN(HOLD_UNREAD_MAX, limit)
                                                    : MIN(hold, limit) + HOLD_MARGIN);
        int n = poll(p, ELEMENTSOF(p), now < end ? (int)((end - now) / USEC_PER_MSEC) + 1 : 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        if ((p[0].revents & POLLIN) && may_continue(notify_fd, &hold))
            return false;
        if (p[1].revents && !(p[0].revents & POLLIN))
            return true;
    }
}

/* Returns true if another replay may succeed: a signal or wrong usage ended this one, or it could
 * not be loaded. After another error, such as an unusable pack, no replay succeeds. */
static bool may_retry(int status)
{
    return WIFSIGNALED(status) || (WIFEXITED(status) && (WEXITSTATUS(status) == EXIT_USAGE ||
                                                         WEXITSTATUS(status) == EXIT_NOT_LOADED ||
                                                         WEXITSTATUS(status) == EXIT_NOT_FOUND));
}

/* Waits until the process can be reaped, for EXIT_WAIT at most. A process closes its descriptors
 * shortly before that. */
static void await_exit(pid_t pid)
{
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

    if (p.fd < 0)
        return;
    (void)poll(&p, 1, EXIT_WAIT / USEC_PER_MSEC);
    close(p.fd);
}

/* Reaps the process if it has ended. If it ended without a replay and another replay may succeed,
 * removes the marker, so that headstart-replay-boot.service replays the boot. The system manager
 * reaps a process that continues to run. */
static void reap(const EarlyOptions *o, pid_t pid, bool closed)
{
    char marker[PATH_MAX];
    bool marked = o->survives &&
                  (size_t)snprintf(marker, sizeof(marker), "%s/" REPLAY_MARKER, o->run) <
                          sizeof(marker) &&
                  access(marker, F_OK) >= 0;
    int status;

    /* Without a marker, a process that has closed the descriptor may continue to run. */
    if (closed && marked)
        await_exit(pid);
    if (waitpid(pid, &status, WNOHANG) == pid && marked && may_retry(status))
        (void)unlink(marker);
}

/* Writes how long the boot has waited. The runtime directory is missing if nothing was started. */
static void report_delay(const EarlyOptions *o, usec_t begun)
{
    _cleanup_close_ int dir_fd = open(o->run, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -EBADF;

    if (dir_fd >= 0)
        fd = openat(dir_fd, EARLY_DELAY_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    0644);
    if (fd >= 0)
        (void)dprintf(fd, "%" PRIu64 "\n", clock_now(CLOCK_MONOTONIC) - begun);
}

void early_start(const EarlyOptions *o)
{
    usec_t begun = clock_now(CLOCK_MONOTONIC);
    _cleanup_close_ int notify_fd = -EBADF, end_fd = -EBADF, boot_fd = -EBADF;
    char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1], begin[24];
    int fds[2];
    pid_t pid;

    notify_fd = open_notify_socket(name, sizeof(name));
    if (notify_fd < 0 || pipe2(fds, O_CLOEXEC) < 0)
        return;
    end_fd = fds[0];
    boot_fd = fds[1];
    pid = fork();
    if (pid < 0)
        return;
    if (pid == 0) {
        close(TAKE_FD(notify_fd));
        close(TAKE_FD(end_fd));
        snprintf(begin, sizeof(begin), "%" PRIu64, begun);
        if (setenv("NOTIFY_SOCKET", name, 1) < 0 || setenv(HOLD_BEGIN_VARIABLE, begin, 1) < 0)
            _exit(EXIT_FAILURE);
        run_child(o, boot_fd);
    }
    close(TAKE_FD(boot_fd));
    reap(o, pid, await_replay(begun, notify_fd, end_fd));
    report_delay(o, begun);
}
