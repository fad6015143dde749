/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/sweep.h"

#include "base/clock.h"
#include "base/log.h"
#include "execute/marker.h"
#include "replay/mount-watch.h"
#include "replay/notify.h"
#include "system/memory.h"
#include "system/thermal.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* How often the available memory is checked during a sweep, and the temperature. Firmware may take
 * milliseconds to read the temperature. */
#define MEMORY_USEC  (250 * USEC_PER_MSEC)
#define THERMAL_USEC (1 * USEC_PER_SEC)

typedef struct Sweep {
    const Pack *pack;
    ReplayOptions options;
    bool gate, hurry;
    bool stopped;     /* memory is short, or the machine is hot: nothing more is read */
    usec_t deadline;  /* when the hold ends at the latest: hold_until() */
    HoldEnd hold_end; /* the reason to report if the hold ends then */
    usec_t end;       /* the time limit of the whole replay */
    sigset_t signals;
    bool *done; /* per volume of the pack: it was replayed */
} Sweep;

/* Stops the replay if so little memory is available that it would evict what is in use. Returns
 * whether it did. */
static bool check_memory(Replay *replay)
{
    MemoryFacts m;

    if (memory_facts_read_own(AT_FDCWD, &m) < 0 || !memory_facts_are_short(&m))
        return false;
    log_notice("headstart-replay: %" PRIu64 " MiB of memory are available: the rest is not read",
               m.available_bytes >> 20);
    replay_stop(replay);
    return true;
}

/* Stops the replay if the machine is hot. Returns whether it did. */
static bool check_temperature(Replay *replay)
{
    if (!thermal_is_hot(AT_FDCWD))
        return false;
    log_notice("headstart-replay: the machine is hot: the rest is not read");
    replay_stop(replay);
    return true;
}

/* Checks what is due at `now`. Sets the times of the next checks. */
static void check_machine(Sweep *s, Replay *replay, usec_t now, usec_t *memory_due,
                          usec_t *thermal_due)
{
    if (now >= *memory_due) {
        s->stopped = s->stopped || check_memory(replay);
        *memory_due = s->stopped ? USEC_INFINITY : now + MEMORY_USEC;
    }
    if (now >= *thermal_due) {
        s->stopped = s->stopped || check_temperature(replay);
        *thermal_due = s->stopped ? USEC_INFINITY : now + THERMAL_USEC;
    }
}

/* The boot continues, so from here on the policy has the effect of `concurrent`. */
static void end_hold(Sweep *s, Replay *replay, Report *report)
{
    notify_manager("READY=1\nSTATUS=Replaying, the deadline has passed");
    s->gate = false;
    report_hold_ended(report, s->hold_end);
    (void)report_save(report);
    replay_hurry(replay, REPLAY_ORDER_NEED, IO_CLASS_BEST_EFFORT);
}

/* Waits until the executor is done, a signal arrives, or the time limit is reached. With `gate`,
 * the boot continues at `deadline`. Returns false if SIGTERM, SIGINT or the time limit came before
 * the replay was done. */
static bool await(Sweep *s, Replay *replay, Report *report, ReplayResult *result, int *ret_error)
{
    usec_t begun = clock_now(CLOCK_MONOTONIC), memory_due = begun + MEMORY_USEC,
           thermal_due = begun + THERMAL_USEC;

    while (!replay_result(replay, result, ret_error)) {
        usec_t now = clock_now(CLOCK_MONOTONIC),
               next = MIN(s->gate ? MIN(s->deadline, s->end) : s->end,
                          MIN(memory_due, thermal_due)),
               left = next > now ? next - now : 0;
        struct timespec ts = timespec_of(left);
        int sig = sigtimedwait(&s->signals, NULL, &ts);

        now = clock_now(CLOCK_MONOTONIC);
        if (sig == SIGTERM || sig == SIGINT || now >= s->end)
            /* An operation under way may hang, so the process does not wait for it. */
            return replay_result(replay, result, ret_error);
        if (sig == SIGUSR1) {
            s->hurry = true;
            replay_hurry(replay, REPLAY_ORDER_LIKELY, IO_CLASS_BEST_EFFORT);
        } else if (s->gate && now >= s->deadline)
            end_hold(s, replay, report);
        check_machine(s, replay, now, &memory_due, &thermal_due);
    }
    return true;
}

static void add_result(ReplayResult *sum, const ReplayResult *r)
{
    sum->n_metadata += r->n_metadata;
    sum->n_opened += r->n_opened;
    sum->n_data += r->n_data;
    sum->metadata_bytes += r->metadata_bytes;
    sum->data_bytes += r->data_bytes;
    sum->item_bytes += r->item_bytes;
    sum->resident = sum->resident && r->resident;
    /* A volume that was not mounted in an earlier sweep may be mounted in this one. */
    sum->n_skipped[REPLAY_SKIP_UNMOUNTED] = 0;
    for (int i = 0; i < _REPLAY_SKIP_MAX; i++)
        sum->n_skipped[i] += r->n_skipped[i];
}

/* Replays the volumes that are mounted and not done. Returns 1 if they were replayed, and more may
 * be mounted later; 0 if the replay was stopped; or a negative errno, reported. */
static int replay_mounted(Sweep *s, Report *report)
{
    usec_t start = clock_now(CLOCK_MONOTONIC);
    ReplayResult result;
    Replay *replay;
    bool finished;
    int r, error = 0;

    r = replay_start(s->pack, &s->options, &replay);
    if (r < 0)
        return log_error_errno(r, "headstart-replay: cannot start: %m");
    if (s->hurry)
        replay_hurry(replay, REPLAY_ORDER_LIKELY, IO_CLASS_BEST_EFFORT);
    finished = await(s, replay, report, &result, &error);
    add_result(&report->result, &result);
    report->duration_usec += clock_now(CLOCK_MONOTONIC) - start;
    if (!finished) {
        report->outcome = REPLAY_OUTCOME_STOPPED;
        s->done = NULL; /* it is not freed, because threads that still run may read it */
        return 0;
    }
    replay_mark_mounted(replay, s->done);
    replay_free(replay);
    if (s->gate) {
        notify_manager("READY=1");
        report_hold_ended(report, HOLD_END_SWEPT);
    }
    s->gate = false;
    if (error < 0)
        return log_error_errno(error, "headstart-replay: %m");
    return 1;
}

static bool is_complete(const Sweep *s)
{
    for (uint32_t i = 0; i < le32toh(s->pack->header->n_volumes); i++)
        if (!s->done[i])
            return false;
    return true;
}

/* Sweeps, waits for mounts, and sweeps again. The caller has begun the watch before the first
 * sweep, so that no mount is missed. */
static int replay_all(Sweep *s, MountWatch *watch, usec_t until, Report *report)
{
    int r, sig;

    for (;;) {
        r = replay_mounted(s, report);
        if (r > 0)
            marker_set(s->options.marker, is_complete(s));
        if (r <= 0 || s->stopped || !watch->root || is_complete(s))
            return MIN(r, 0);
        (void)report_save(report);
        notify_manager("STATUS=Waiting for filesystems that are not mounted yet");
        do {
            r = mount_watch_wait(watch, until, &s->signals, &sig);
            s->hurry = s->hurry || sig == SIGUSR1;
            /* The signal of a finished sweep may arrive after its result was read. */
        } while (r == 0 && (sig == SIGUSR1 || sig == s->options.done_signal));
        if (r < 0)
            return log_error_errno(r, "headstart-replay: cannot watch for mounts: %m");
        if (r == 0)
            return 0;
        notify_manager("STATUS=Replaying what has been mounted");
    }
}

/* The service manager kills a service that exceeds the time which it has requested. */
#define MANAGER_MARGIN (5 * USEC_PER_SEC)

/* Informs the service manager or headstart-init how long the gate may hold the boot, or that
 * nothing holds it. headstart-init counts from hold->from, the service manager from now. */
static void notify_start(const Sweep *s, const Hold *hold, bool ready_sent)
{
    usec_t now = clock_now(CLOCK_MONOTONIC);
    char text[96];

    if (!s->gate) {
        notify_manager(ready_sent ? "STATUS=Replaying" : "READY=1\nSTATUS=Replaying");
        return;
    }
    snprintf(text, sizeof(text), "STATUS=Sweeping\nEXTEND_TIMEOUT_USEC=%" PRIu64,
             hold->from < hold->start ? s->deadline - hold->from
                                      : MAX(s->deadline, now) - now + MANAGER_MARGIN);
    notify_manager(text);
}

int sweep(const Pack *p, const SweepOptions *o, Report *report)
{
    _cleanup_mount_watch_ MountWatch watch = {0};
    Sweep s = {
            .pack = p,
            .options = {.root = o->root,
                        .policy = o->policy,
                        .io_class = o->io_class,
                        .wait = o->wait,
                        .marker = o->marker,
                        .done_signal = SIGUSR2},
            .gate = o->policy == POLICY_GATE && !o->ready && getenv("NOTIFY_SOCKET"),
            .hurry = o->hurry,
    };
    usec_t begun;
    int r;

    memcpy(s.options.earlier, o->earlier, sizeof(s.options.earlier));
    /* The signals are blocked before threads are created, so that these inherit the mask. */
    sigemptyset(&s.signals);
    sigaddset(&s.signals, SIGTERM);
    sigaddset(&s.signals, SIGINT);
    sigaddset(&s.signals, SIGUSR1);
    sigaddset(&s.signals, s.options.done_signal);
    sigprocmask(SIG_BLOCK, &s.signals, NULL);

    begun = report->hold.start;
    s.end = begun + o->timeout;
    s.deadline = hold_until(&report->hold, p->header, o->policy, &s.hold_end);
    s.done = calloc((size_t)le32toh(p->header->n_volumes) + 1, sizeof(bool));
    if (!s.done)
        return log_oom();
    s.options.done = s.done;
    if (o->mount_wait > 0)
        (void)mount_watch_start(&watch,
                                o->root); /* on failure only the present mounts are replayed */
    notify_start(&s, &report->hold, o->ready);
    /* The recorder needs the status file now, because the recording stage may end before the
     * replay. */
    report->outcome = REPLAY_OUTCOME_RUNNING;
    (void)report_save(report);
    report->result.resident = true; /* until a sweep clears it */
    r = replay_all(&s, &watch, begun + MIN(o->mount_wait, o->timeout), report);
    if (report->outcome == REPLAY_OUTCOME_RUNNING)
        report->outcome = r < 0 ? REPLAY_OUTCOME_STOPPED : REPLAY_OUTCOME_DONE;
    if (r < 0)
        (void)report_save(report); /* the file must not say "running" */
    free(s.done);
    return r;
}
