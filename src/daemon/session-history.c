/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/session-history.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rooted.h"
#include "boot/early-delay.h"
#include "boot/last-control.h"
#include "measure/history.h"
#include "measure/pack-usage.h"
#include "state/early-pack.h"
#include "state/launch-packs.h"
#include "state/packs.h"
#include "state/replay-status.h"
#include "state/state.h"
#include "system/kernel.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

static uint64_t difference(uint64_t begin, uint64_t end)
{
    return begin == SESSION_UNKNOWN || end == SESSION_UNKNOWN || end < begin ? SESSION_UNKNOWN
                                                                             : end - begin;
}

static void copy_string(char *to, size_t size, const char *from)
{
    if (json_is_utf8(from))
        snprintf(to, size, "%.*s", (int)size - 1, from);
}

static unsigned flags_of(const EndedStage *e)
{
    static const struct {
        unsigned trace, session;
    } map[] = {
            {TRACE_CONTROL, SESSION_CONTROL},
            {TRACE_INCOMPLETE, SESSION_INCOMPLETE},
            {TRACE_EXACT, SESSION_EXACT},
            {TRACE_SECOND_LOGIN, SESSION_SECOND_LOGIN},
            {TRACE_SOFT_REBOOT, SESSION_SOFT_REBOOT},
            {TRACE_OFFLINE_UPDATE, SESSION_OFFLINE_UPDATE},
            {TRACE_FSCK, SESSION_FSCK},
            {TRACE_AUTOLOGIN, SESSION_AUTOLOGIN},
    };
    const Trace *t = e->trace;
    unsigned flags = 0;

    for (size_t i = 0; i < ELEMENTSOF(map); i++)
        flags |= t->flags & map[i].trace ? map[i].session : 0;
    if (e->settled_ago == USEC_INFINITY)
        flags |= SESSION_UNSETTLED;
    if (t->stage == STAGE_LOGIN && t->uid == UID_INVALID)
        flags |= SESSION_SHARED;
    /* The flag is also set if headstartd could not lower read-ahead, so that the planner does not
     * request the recording again. */
    if (e->exact)
        flags |= SESSION_EXACT;
    if (e->requested && !(t->flags & TRACE_REPLAYED))
        flags |= SESSION_CONTROL;
    return flags;
}

/* Returns how long the stage took until it had settled (SessionRecord.ready_usec). */
static uint64_t ready_usec(const EndedStage *e)
{
    const Trace *t = e->trace;
    usec_t at;

    if (e->settled_ago == USEC_INFINITY || e->end_boottime < e->settled_ago)
        return SESSION_UNKNOWN;
    at = e->end_boottime - e->settled_ago;
    return t->stage == STAGE_BOOT || t->flags & TRACE_AUTOLOGIN ? at
                                                                : difference(t->start_boottime, at);
}

static void add_boot_times(const BootTimes *b, SessionRecord *s)
{
    uint64_t kernel_end = b->initrd_usec > 0 ? b->initrd_usec : b->userspace_usec;

    if (b->loader_usec > 0) {
        s->loader_usec = b->loader_usec;
        if (b->firmware_usec >= b->loader_usec)
            s->firmware_usec = b->firmware_usec - b->loader_usec;
    }
    if (kernel_end > 0)
        s->kernel_usec = kernel_end;
    if (b->initrd_usec > 0)
        s->initrd_usec = difference(b->initrd_usec, b->userspace_usec);
    if (b->finish_usec > 0)
        s->finished_usec = b->finish_usec;
}

static void add_early_delay(const EndedStage *e, SessionRecord *s)
{
    _cleanup_close_ int fd =
            e->run_dir ? open(e->run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -EBADF;
    uint64_t usec;

    if (fd >= 0 && rooted_read_u64(fd, EARLY_DELAY_FILE, &usec) >= 0)
        s->early_usec = usec;
}

static void add_machine(const EndedStage *e, SessionRecord *s)
{
    const Trace *t = e->trace;

    copy_string(s->boot_id, sizeof(s->boot_id), t->boot_id);
    copy_string(s->kernel, sizeof(s->kernel), t->kernel);
    copy_string(s->distribution, sizeof(s->distribution), t->distribution);
    for (size_t i = 0; i < t->n_volumes; i++)
        if (strcmp(t->volumes[i].mountpoint, "/") == 0) {
            copy_string(s->device, sizeof(s->device), t->volumes[i].device);
            copy_string(s->scheduler, sizeof(s->scheduler), t->volumes[i].scheduler);
        }
    machine_disk(e->root_fd, s->disk);
    s->memory_bytes = machine_memory_bytes(e->root_fd);
    s->packages_usec = machine_packages_changed(e->root_fd);
}

static uint64_t number_of(json_object *o, const char *key)
{
    uint64_t n;

    return json_get_u64(o, key, SESSION_UNKNOWN - 1, &n) < 0 ? SESSION_UNKNOWN : n;
}

/* Adds the number to the sum, if it is known. */
static void add_number(uint64_t *sum, json_object *o, const char *key)
{
    uint64_t n = number_of(o, key);

    if (n != SESSION_UNKNOWN)
        *sum = *sum == SESSION_UNKNOWN ? n : *sum + MIN(n, SESSION_UNKNOWN - 1 - *sum);
}

/* Adds two reports of headstart-replay for one stage to the session: the report for everyone, and
 * that for the session's user, which does not repeat what the first has read. Policy, reason and
 * outcome are the user's, if there is such a report. With `keep` those of the session stay. */
static void add_reports(int run_fd, Stage stage, bool keep, SessionRecord *s)
{
    _cleanup_replay_status_ ReplayStatusList l = {0};

    if (replay_status_read(run_fd, stage, &l) < 0)
        return;
    for (size_t i = 0; i < l.n; i++) {
        json_object *o = l.items[i].object;
        const char *policy, *outcome, *reason;

        if ((l.items[i].uid != UID_INVALID && l.items[i].uid != s->uid) ||
            json_get_string(o, "policy", &policy) < 0 ||
            json_get_string(o, "outcome", &outcome) < 0 || (int)policy_from_string(policy) < 0)
            continue;
        if (!keep) {
            s->policy = policy_from_string(policy);
            copy_string(s->outcome, sizeof(s->outcome), outcome);
            if (json_get_string(o, "reason", &reason) >= 0)
                copy_string(s->reason, sizeof(s->reason), reason);
        }
        add_number(&s->replay_usec, o, "duration_usec");
        add_number(&s->replay_files, o, "files");
        add_number(&s->replay_data_bytes, o, "data_bytes");
        add_number(&s->replay_metadata_bytes, o, "metadata_bytes");
    }
}

/* Adds what headstart-replay reported of the session. An automatic login also gets the reports of
 * its boot. If the boot was replayed, the login gets the boot's policy. */
static void add_replay(const EndedStage *e, SessionRecord *s)
{
    _cleanup_close_ int fd =
            e->run_dir ? open(e->run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -EBADF;

    if (fd < 0)
        return;
    if (s->flags & SESSION_AUTOLOGIN)
        add_reports(fd, STAGE_BOOT, false, s);
    add_reports(fd, s->stage, session_was_replayed(s), s);
}

/* Adds the planner's prediction of ready_usec. An automatic login gets that of the boot pack. */
static void add_prediction(int state_fd, SessionRecord *s)
{
    bool automatic = s->flags & SESSION_AUTOLOGIN;
    Policy used = session_was_replayed(s) ? s->policy : POLICY_OFF;
    _cleanup_free_ char *buf = NULL;
    Pack p;
    int r = packs_read_of(state_fd, automatic ? STAGE_BOOT : s->stage,
                          automatic ? UID_INVALID : s->uid, &buf, &p);

    if (r >= 0 && pack_predicted_usec(&p, used) < USEC_INFINITY)
        s->predicted_usec = pack_predicted_usec(&p, used);
}

/* Compares the pack that was replayed, or that would have been replayed, with the trace. */
static void add_usage(const EndedStage *e, int state_fd, SessionRecord *s)
{
    _cleanup_free_ char *buf = NULL;
    Pack p;
    int r = packs_read_of(state_fd, s->stage, s->uid, &buf, &p);

    if (r >= 0)
        r = pack_usage_compare(&p, e->trace, NULL, NULL, &s->usage);
    if (r < 0 && r != -ENOENT)
        log_debug_errno(r, "Cannot compare the pack of this %s with what was read, ignoring: %m",
                        stage_to_string(s->stage));
}

/* Returns the replay of the start's launch set, or NULL. The recorder may note the start of an
 * application somewhat later than the launch thread. Executions within LAUNCH_AGAIN_USEC belong to
 * the same start, so an earlier start is not found. */
static const LaunchReplay *find_replay(const EndedStage *e, const LaunchRecord *l, usec_t start)
{
    const LaunchKey key = {l->uid, launch_pack_hash(l->application)};

    return launch_log_find(&e->launch_log, key, start - MIN(start, LAUNCH_AGAIN_USEC),
                           start + l->took_usec);
}

static usec_t start_boottime(const Trace *t, const LaunchRecord *l)
{
    return t->start_boottime + (l->start_realtime_usec - t->start_realtime);
}

/* Returns whether the start was replayed. `p` is the present pack: `headstart plan` may have
 * written it after the start. A set that was already in memory counts as replayed, and is in no
 * log. */
static LaunchReplayed was_replayed(const EndedStage *e, const LaunchRecord *l, const Pack *p)
{
    if (find_replay(e, l, start_boottime(e->trace, l)))
        return LAUNCH_REPLAYED;
    if (p->header->policy == POLICY_OFF || l->start_realtime_usec < e->launches_since ||
        l->start_realtime_usec < le64toh(p->header->created_realtime_usec))
        return LAUNCH_NOT_REPLAYED;
    return pack_is_control(p, e->trace->boot_id) ? LAUNCH_CONTROL : LAUNCH_REPLAYED;
}

/* Adds what is known of the application's launch set: its policy, how the start used it, and
 * whether it was replayed. LAUNCH_CONTROL means that it was not replayed because this is a control
 * session. LAUNCH_NOT_REPLAYED means that there was no such set, that its policy is `off`, or that
 * executions were not watched. */
static void add_launch_set(const EndedStage *e, int state_fd, LaunchRecord *l)
{
    const Trace *t = e->trace;
    _cleanup_free_ char *buf = NULL;
    Pack p;

    if (launch_pack_read(state_fd, l->uid, launch_pack_hash(l->application), &buf, &p) < 0)
        return;
    l->policy = (Policy)p.header->policy;
    l->replayed = was_replayed(e, l, &p);
    if (pack_usage_compare_start(&p, t, l->trace_application,
                                 l->start_realtime_usec - t->start_realtime, l->took_usec, NULL,
                                 NULL, &l->usage) < 0)
        l->usage = pack_usage_empty();
}

/* Adds begin and end of the replay of the application's launch set. */
static void add_launch_replay(const EndedStage *e, LaunchRecord *l)
{
    usec_t start = start_boottime(e->trace, l);
    const LaunchReplay *r = find_replay(e, l, start);

    if (!r || l->replayed != LAUNCH_REPLAYED || r->end <= start)
        return;
    l->replay_begin_usec = r->begin - MIN(r->begin, start);
    l->replay_end_usec = r->end - start;
    l->replay_bytes = r->read_bytes;
}

static void append_launches(const EndedStage *e)
{
    _cleanup_launch_records_ LaunchRecords l = {0};
    _cleanup_close_ int fd = -EBADF;
    int r = launch_records_from_trace(e->trace, &l);

    if (r >= 0)
        r = state_directory_open(e->state, true, &fd);
    for (size_t i = 0; r >= 0 && i < l.n; i++) {
        add_launch_set(e, fd, &l.items[i]);
        add_launch_replay(e, &l.items[i]);
        l.items[i].packages_usec = machine_packages_changed(e->root_fd);
    }
    if (r >= 0)
        r = launches_append(fd, &l);
    if (r < 0)
        log_warning_errno(r,
                          "headstartd: %s/" LAUNCHES_FILE ": cannot add the starts, ignoring: %m",
                          e->state);
}

static void report_failure(const EndedStage *e, Stage stage, int r)
{
    if (r < 0)
        log_warning_errno(r, "headstartd: %s/" HISTORY_FILE ": cannot add this %s, ignoring: %m",
                          e->state, stage_to_string(stage));
}

static void append(const EndedStage *e, int state_fd, const SessionRecord *s)
{
    bool torn = false;
    int r = history_append(state_fd, s, &torn);

    if (torn)
        log_warning("headstartd: %s/" HISTORY_FILE ": dropped a last line that is not complete",
                    e->state);
    report_failure(e, s->stage, r);
}

/* Prevents further control sessions until the planner has seen this one. */
static void note_control(const EndedStage *e, int state_fd, const SessionRecord *s)
{
    int r;

    if (!(s->flags & (SESSION_CONTROL | SESSION_EXACT)) ||
        strlen(s->boot_id) != KERNEL_BOOT_ID_SIZE - 1)
        return;
    r = last_control_write(state_fd, s->boot_id);
    if (r < 0)
        log_warning_errno(r, "headstartd: %s/" LAST_CONTROL_FILE ": %m, ignoring", e->state);
    r = early_pack_update_last_control(e->system_fd, e->state, state_fd);
    if (r < 0)
        log_warning_errno(r, "headstartd: cannot copy " LAST_CONTROL_FILE " for early boot: %m");
}

void session_history_append_light(const EndedStage *e)
{
    SessionRecord s = session_record_empty(STAGE_BOOT);
    usec_t now = clock_now(CLOCK_REALTIME);
    _cleanup_close_ int fd = -EBADF;
    struct utsname u;
    int r;

    s.flags = SESSION_LIGHT;
    s.start_realtime_usec = now - MIN(now, e->end_boottime);
    s.io_some_usec = e->end.io_some_usec;
    s.io_full_usec = e->end.io_full_usec;
    s.disk_reads = e->end.disk_reads;
    s.disk_read_bytes = e->end.disk_read_bytes;
    add_boot_times(&e->boot, &s);
    (void)kernel_boot_id(AT_FDCWD, s.boot_id); /* on failure "": unknown */
    if (uname(&u) == 0)
        copy_string(s.kernel, sizeof(s.kernel), u.release);
    s.memory_bytes = machine_memory_bytes(e->root_fd);
    s.packages_usec = machine_packages_changed(e->root_fd);
    r = state_directory_open(e->state, true, &fd);
    if (r >= 0)
        append(e, fd, &s);
    else
        report_failure(e, s.stage, r);
}

void session_history_append(const EndedStage *e)
{
    SessionRecord s = session_record_empty(e->trace->stage);
    _cleanup_close_ int fd = -EBADF;
    int r;

    if (s.stage == STAGE_SESSION) {
        append_launches(e);
        return;
    }
    s.uid = e->trace->uid;
    s.flags = flags_of(e);
    s.start_realtime_usec = e->trace->start_realtime;
    s.ready_usec = ready_usec(e);
    s.io_some_usec = difference(e->begin.io_some_usec, e->end.io_some_usec);
    s.io_full_usec = difference(e->begin.io_full_usec, e->end.io_full_usec);
    s.disk_reads = difference(e->begin.disk_reads, e->end.disk_reads);
    s.disk_read_bytes = difference(e->begin.disk_read_bytes, e->end.disk_read_bytes);
    if (s.stage == STAGE_BOOT)
        add_boot_times(&e->boot, &s);
    if (s.flags & SESSION_AUTOLOGIN)
        s.began_usec = e->trace->start_boottime;
    if (s.stage == STAGE_BOOT || s.flags & SESSION_AUTOLOGIN)
        add_early_delay(e, &s);
    add_machine(e, &s);
    add_replay(e, &s);
    r = state_directory_open(e->state, true, &fd);
    if (r < 0) {
        report_failure(e, s.stage, r);
        return;
    }
    add_prediction(fd, &s);
    add_usage(e, fd, &s);
    append(e, fd, &s);
    note_control(e, fd, &s);
}
