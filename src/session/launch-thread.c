/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The thread that replays starts of applications: its events, its slots, and how it ends. Over 500
 * lines in one file: the functions share one LaunchThread and its lock. */

#include "session/launch-thread.h"

#include "base/clock.h"
#include "base/log.h"
#include "execute/executor.h"
#include "execute/sample.h"
#include "observe/proc-facts.h"
#include "observe/processes.h"
#include "observe/subordinate-uids.h"
#include "observe/watched-volumes.h"
#include "session/launch-control.h"
#include "session/launch-table.h"
#include "session/machine.h"
#include "state/launch-packs.h"
#include "system/cachestat.h"
#include "system/kernel.h"
#include "system/pressure.h"
#include "system/thermal.h"
#include "system/thread.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#define STACK_BYTES (512U * 1024)
#define STOP_USEC   USEC_PER_SEC
#define SIGNAL_DONE SIGRTMIN /* sent by the executor when a replay is done */
#define POLL_MOUNTS (POLLPRI | POLLERR)

typedef struct Launch {
    char *path; /* of the executable, below the root */
    char *buf;  /* the pack points into it */
    Pack pack;
    Replay *replay;
    LaunchKey key;
    usec_t begin; /* CLOCK_BOOTTIME */
} Launch;

struct LaunchThread {
    char *root, *state;
    double maximum_pressure;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the next four members; never held during I/O */
    LaunchReport report;
    LaunchLog log;
    bool left;              /* launch_thread_free() has given up: the thread frees *t */
    bool ended;             /* the thread does not use *t any more */
    atomic_bool off;        /* launch_thread_switch() */
    atomic_bool unrecorded; /* launch_thread_end_recording() */
    LaunchControls *controls;
    int stop_fd; /* eventfd */
    /* Used by the thread alone, once it runs */
    Fanotify *fanotify;
    WatchedVolumes volumes;
    SubordinateUids subordinate;
    int state_fd, signal_fd, mountinfo_fd;
    char boot_id[KERNEL_BOOT_ID_SIZE];
    LaunchTable table;
    Launch launches[LAUNCH_SLOTS];
};

/* --- the page cache --------------------------------------------------------------------------- */

static bool is_resident(const LaunchThread *t, const Pack *p)
{
    _cleanup_mounted_table_ MountedTable mounted = {0};

    return mounted_table_read(p, t->root, &mounted) >= 0 && pack_is_resident(p, &mounted);
}

/* --- replays ---------------------------------------------------------------------------------- */

/* Reads no battery and no temperature, because firmware may take milliseconds to report them. */
static bool fits(const LaunchThread *t, const Pack *p)
{
    uint64_t bytes =
            le64toh(p->header->total_metadata_bytes) + le64toh(p->header->total_data_bytes);
    MemoryFacts m;

    return memory_facts_read_own(AT_FDCWD, &m) < 0 ||
           launch_fits(bytes, m.available_bytes, machine_memory_pressure(AT_FDCWD),
                       t->maximum_pressure);
}

/* Returns true if reading must stop, because of memory pressure or heat. */
static bool must_stop(const LaunchThread *t)
{
    return machine_memory_pressure(AT_FDCWD) > t->maximum_pressure || thermal_is_hot(AT_FDCWD);
}

static void add_to(LaunchThread *t, uint64_t *count, uint64_t n)
{
    pthread_mutex_lock(&t->lock);
    *count += n;
    pthread_mutex_unlock(&t->lock);
}

static void end_launch(LaunchThread *t, int slot)
{
    Launch *l = &t->launches[slot];
    LaunchReplay done;
    ReplayResult result;

    (void)replay_result(l->replay, &result, NULL);
    done = (LaunchReplay){
            .key = l->key,
            .begin = l->begin,
            .end = clock_now(CLOCK_BOOTTIME),
            .read_bytes = result.metadata_bytes - result.item_bytes + result.data_bytes,
    };
    pthread_mutex_lock(&t->lock);
    t->report.read_bytes += done.read_bytes;
    launch_log_add(&t->log, &done);
    pthread_mutex_unlock(&t->lock);
    log_debug("headstartd: launch: %" PRIu64 " bytes read, %" PRIu64 " bytes were resident",
              done.read_bytes, result.resident_bytes);
    replay_free(l->replay);
    free(l->path);
    free(l->buf);
    *l = (Launch){0};
    if (t->table.slots[slot].state == LAUNCH_READING)
        launch_table_note_read(&t->table, done.key);
    launch_table_end(&t->table, slot);
}

/* Frees the slots whose replays are done. Returns how many replays are not done. */
static unsigned reap(LaunchThread *t)
{
    unsigned n = 0;

    for (int i = 0; i < (int)LAUNCH_SLOTS; i++) {
        ReplayResult result;

        if (!t->launches[i].replay)
            continue;
        if (replay_result(t->launches[i].replay, &result, NULL))
            end_launch(t, i);
        else
            n++;
    }
    return n;
}

static void stop_launch(LaunchThread *t, int slot)
{
    replay_stop(t->launches[slot].replay);
    add_to(t, &t->report.n_stopped, 1);
}

static void stop_all(LaunchThread *t)
{
    for (int i = 0; i < (int)LAUNCH_SLOTS; i++)
        if (t->launches[i].replay && t->table.slots[i].state == LAUNCH_READING) {
            t->table.slots[i].state = LAUNCH_STOPPING;
            stop_launch(t, i);
        }
}

/* Begins to read the set of the executable `path`. Takes over *buf on success. Returns 0, -EBUSY
 * (no slot), or an error of replay_start(). */
static int begin_launch(LaunchThread *t, LaunchKey key, const char *path, char **buf, const Pack *p,
                        usec_t event)
{
    _cleanup_free_ char *executable = strdup(path);
    const ReplayOptions options = {
            .root = t->root,
            .policy = (Policy)p->header->policy,
            .io_class = IO_CLASS_BEST_EFFORT,
            .skip_resident = true,
            .executable = executable,
            .of_replays = LAUNCH_SLOTS,
            .done_signal = SIGNAL_DONE,
    };
    int stop, slot, r;

    if (!executable)
        return -ENOMEM;
    slot = launch_table_begin(&t->table, key.uid, event, &stop);
    if (slot < 0)
        return -EBUSY;
    if (stop >= 0)
        stop_launch(t, stop);
    t->launches[slot] = (Launch){.pack = *p, .key = key, .begin = clock_now(CLOCK_BOOTTIME)};
    r = replay_start(&t->launches[slot].pack, &options, &t->launches[slot].replay);
    if (r < 0) {
        launch_table_end(&t->table, slot);
        return r;
    }
    t->launches[slot].path = TAKE_PTR(executable);
    t->launches[slot].buf = TAKE_PTR(*buf);
    launch_controls_spoil(t->controls);
    pthread_mutex_lock(&t->lock);
    t->report.n_replayed++;
    t->report.latency_usec = clock_now(CLOCK_MONOTONIC) - event;
    pthread_mutex_unlock(&t->lock);
    return 0;
}

static bool is_reading(const LaunchThread *t)
{
    for (size_t i = 0; i < LAUNCH_SLOTS; i++)
        if (t->launches[i].replay)
            return true;
    return false;
}

bool launch_report_has_control(const LaunchReport *r, uint32_t uid)
{
    for (size_t i = 0; i < r->n_control_uids; i++)
        if (r->control_uids[i] == uid)
            return true;
    return uid == UID_INVALID && r->n_control > 0;
}

static void note_control_user(LaunchThread *t, uint32_t uid)
{
    LaunchReport *r = &t->report;

    pthread_mutex_lock(&t->lock);
    if (r->n_control_uids < LAUNCH_CONTROL_USERS_MAX && !launch_report_has_control(r, uid))
        r->control_uids[r->n_control_uids++] = uid;
    pthread_mutex_unlock(&t->lock);
}

static void launch(LaunchThread *t, uint32_t uid, uint32_t pid, const char *path, usec_t event)
{
    uint32_t pids[1 + LAUNCH_ANCESTORS_MAX];
    const LaunchKey key = {uid, launch_pack_hash(path)};
    _cleanup_free_ char *buf = NULL;
    PackHeader header;
    uint64_t *count;
    Pack pack;
    int r;

    if (atomic_load_explicit(&t->off, memory_order_relaxed) ||
        launch_table_repeats(&t->table, key, event))
        return;
    r = launch_pack_read_header(t->state_fd, uid, key.application, &header);
    if (r == -ENOENT)
        return;
    if (r >= 0 && header.policy != POLICY_OFF)
        r = launch_pack_read(t->state_fd, uid, key.application, &buf, &pack);
    if (r < 0)
        log_debug_errno(r, "headstartd: launch: %s: cannot use the pack, ignoring: %m", path);
    if (r < 0 || header.policy == POLICY_OFF ||
        !launch_table_note(&t->table, key, pids, proc_lineage(pid, pids, ELEMENTSOF(pids)),
                           event)) {
        launch_table_pass(&t->table, key, event);
        return;
    }
    add_to(t, &t->report.n_starts, 1);
    if (pack_is_control(&pack, t->boot_id) &&
        !atomic_load_explicit(&t->unrecorded, memory_order_relaxed)) {
        count = &t->report.n_control;
        note_control_user(t, uid);
        if (!is_reading(t))
            launch_controls_begin(t->controls, key, &t->volumes.table, &buf, &pack, event);
    } else if (launch_table_was_read(&t->table, key) && is_resident(t, &pack))
        count = &t->report.n_resident;
    else if (fits(t, &pack) && begin_launch(t, key, path, &buf, &pack, event) >= 0)
        return;
    else
        count = &t->report.n_dropped;
    add_to(t, count, 1);
}

/* --- events ----------------------------------------------------------------------------------- */

/* Returns the user of that process: the owner of its directory in /proc, or, if that is root or may
 * be a subordinate UID, the user to whom the process belongs. UID_INVALID: the process is gone, or
 * no user is known. */
static uint32_t user_of(LaunchThread *t, uint32_t pid)
{
    char path[32];
    struct stat st;
    uint32_t uid;

    snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
    if (stat(path, &st) < 0)
        return UID_INVALID;
    uid = st.st_uid == 0 || subordinate_uid_is_possible(st.st_uid) ? proc_user(pid) : st.st_uid;
    /* The process may have ended since stat(2). subuid(5) may still name the user. */
    if (uid == UID_INVALID && st.st_uid != 0)
        uid = st.st_uid;
    return subordinate_uid_is_possible(uid) ? subordinate_uids_owner(&t->subordinate, uid) : uid;
}

static int before_events(void *arg _unused_)
{
    return 0;
}

static int on_exec(void *arg, const LoggedObject *o, uint32_t pid, bool exec _unused_)
{
    LaunchThread *t = arg;
    size_t prefix = strcmp(t->root, "/") == 0 ? 0 : strlen(t->root);
    usec_t event = clock_now(CLOCK_MONOTONIC);
    _cleanup_close_ int fd = -EBADF;
    char path[4096];
    uint32_t uid;

    if (is_loader_name(o->name) || is_own_name(o->name))
        return 0;
    uid = user_of(t, pid);
    fd = uid == UID_INVALID ? -ESRCH : fanotify_resolve(t->fanotify, o, path, sizeof(path));
    if (fd >= 0 && strncmp(path, t->root, prefix) == 0)
        launch(t, uid, pid, path + prefix, event);
    return 0;
}

/* Updates the watched filesystems if any was mounted or unmounted. */
static void update_volumes(LaunchThread *t)
{
    if (watched_volumes_changed(&t->volumes, t->fanotify, t->root) == 0)
        return;
    (void)watched_volumes_update(&t->volumes, t->fanotify, t->root);
}

static void drain_events(LaunchThread *t, uint64_t *overflows)
{
    (void)fanotify_drain(t->fanotify, before_events, on_exec, t, overflows);
    /* An open descriptor on a mount would prevent its unmounting. */
    fanotify_resolve_done(t->fanotify);
}

static void drain_signals(const LaunchThread *t)
{
    struct signalfd_siginfo si;

    while (read(t->signal_fd, &si, sizeof(si)) > 0)
        continue;
}

/* Returns the timeout of poll(2) with `n` replays under way. */
static int poll_timeout(unsigned n, usec_t observation_due)
{
    usec_t now;

    if (n > 0)
        return (int)(LAUNCH_PRESSURE_USEC / USEC_PER_MSEC);
    if (observation_due == USEC_INFINITY)
        return -1;
    now = clock_now(CLOCK_MONOTONIC);
    return now < observation_due ? (int)((observation_due - now) / USEC_PER_MSEC) + 1 : 0;
}

/* Ends the observations of starts that are over. Returns the time of the next call. */
static usec_t end_observations(LaunchThread *t, usec_t now)
{
    usec_t stalled = USEC_INFINITY;

    if (!launch_controls_observe(t->controls))
        return USEC_INFINITY;
    if (pressure_read_total(AT_FDCWD, &stalled) < 0)
        stalled = USEC_INFINITY;
    return launch_controls_end(t->controls, &t->volumes.table, now, stalled);
}

static void serve(LaunchThread *t)
{
    uint64_t overflows = 0;
    usec_t check_due = 0, observation_due = USEC_INFINITY;
    bool stopping = false;
    unsigned n = 0;

    while (!stopping || n > 0) {
        usec_t now;
        int groups[2];
        struct pollfd p[5] = {
                {.fd = t->signal_fd, .events = POLLIN},
                {.fd = stopping ? -1 : t->stop_fd, .events = POLLIN},
                {.fd = t->mountinfo_fd, .events = POLLPRI},
        };

        fanotify_get_groups(t->fanotify, groups);
        p[3] = (struct pollfd){.fd = stopping ? -1 : groups[0], .events = POLLIN};
        p[4] = (struct pollfd){.fd = stopping ? -1 : groups[1], .events = POLLIN};
        if (poll(p, ELEMENTSOF(p), poll_timeout(n, observation_due)) < 0 && errno != EINTR)
            break;
        if (p[1].revents)
            stopping = true;
        else if (p[3].revents || p[4].revents)
            drain_events(t, &overflows);
        if (p[2].revents & POLL_MOUNTS)
            update_volumes(t);
        drain_signals(t);
        /* Every execution wakes the thread, and firmware may take milliseconds to report a
         * temperature. */
        now = clock_now(CLOCK_MONOTONIC);
        if (stopping || (n > 0 && now >= check_due && must_stop(t)))
            stop_all(t);
        if (now >= check_due)
            check_due = now + LAUNCH_PRESSURE_USEC;
        n = reap(t);
        if (!stopping)
            observation_due = end_observations(t, now);
    }
}

/* --- beginning and end ------------------------------------------------------------------------ */

static void release(LaunchThread *t)
{
    const int fds[] = {t->stop_fd, t->state_fd, t->signal_fd, t->mountinfo_fd};

    for (size_t i = 0; i < ELEMENTSOF(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    launch_controls_free(t->controls);
    fanotify_free(t->fanotify);
    watched_volumes_done(&t->volumes);
    subordinate_uids_done(&t->subordinate);
    pthread_mutex_destroy(&t->lock);
    free(t->root);
    free(t->state);
    free(t);
}
DEFINE_CLEANUP(LaunchThread *, release);

static void *run_thread(void *arg)
{
    LaunchThread *t = arg;
    bool left;

    serve(t);
    pthread_mutex_lock(&t->lock);
    t->ended = true;
    left = t->left;
    pthread_mutex_unlock(&t->lock);
    if (left)
        release(t);
    return NULL;
}

static int open_descriptors(LaunchThread *t)
{
    sigset_t done;

    sigemptyset(&done);
    sigaddset(&done, SIGNAL_DONE);
    /* The thread inherits the mask. The executor sends the signal only to this thread. */
    pthread_sigmask(SIG_BLOCK, &done, NULL);
    t->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    t->signal_fd = signalfd(-1, &done, SFD_CLOEXEC | SFD_NONBLOCK);
    t->mountinfo_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    t->state_fd = open(t->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return t->stop_fd < 0 || t->signal_fd < 0 || t->mountinfo_fd < 0 || t->state_fd < 0 ? -errno
                                                                                        : 0;
}

int launch_thread_new(const LaunchOptions *o, LaunchThread **ret)
{
    _cleanup_(releasep) LaunchThread *t = calloc(1, sizeof(*t));
    int r;

    if (!t)
        return -ENOMEM;
    t->stop_fd = t->state_fd = t->signal_fd = t->mountinfo_fd = -EBADF;
    t->maximum_pressure = o->maximum_pressure;
    t->root = strdup(o->root);
    t->state = strdup(o->state);
    pthread_mutex_init(&t->lock, NULL);
    r = t->root && t->state ? launch_controls_new(t->root, o->uid, &t->controls) : -ENOMEM;
    if (r >= 0)
        r = open_descriptors(t);
    if (r >= 0)
        r = kernel_boot_id(AT_FDCWD, t->boot_id);
    if (r >= 0)
        r = fanotify_new_exec(&t->fanotify);
    if (r >= 0)
        r = watched_volumes_update(&t->volumes, t->fanotify, t->root);
    if (r >= 0)
        subordinate_uids_read(t->root, &t->subordinate);
    if (r >= 0)
        r = thread_start(&t->thread, STACK_BYTES, run_thread, t);
    if (r >= 0)
        *ret = TAKE_PTR(t);
    return r;
}

LaunchThread *launch_thread_free(LaunchThread *t)
{
    if (!t)
        return NULL;
    (void)eventfd_write(t->stop_fd, 1);
    if (!thread_join(t->thread, STOP_USEC)) { /* a thread that has not ended still uses *t */
        bool ended;

        pthread_mutex_lock(&t->lock);
        ended = t->ended;
        t->left = true;
        pthread_mutex_unlock(&t->lock);
        if (!ended)
            return NULL;
    }
    release(t);
    return NULL;
}

void launch_thread_switch(LaunchThread *t, bool on)
{
    atomic_store_explicit(&t->off, !on, memory_order_relaxed);
}

void launch_thread_end_recording(LaunchThread *t)
{
    if (t)
        atomic_store_explicit(&t->unrecorded, true, memory_order_relaxed);
}

void launch_thread_report(LaunchThread *t, LaunchReport *ret)
{
    *ret = (LaunchReport){0};
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    *ret = t->report;
    pthread_mutex_unlock(&t->lock);
    ret->n_observed = launch_controls_n(t->controls);
}

void launch_thread_log(LaunchThread *t, LaunchLog *ret)
{
    *ret = (LaunchLog){0};
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    *ret = t->log;
    pthread_mutex_unlock(&t->lock);
}

void launch_thread_take_uses(LaunchThread *t, LaunchUses *ret)
{
    *ret = (LaunchUses){0};
    if (t)
        launch_controls_take(t->controls, ret);
}
