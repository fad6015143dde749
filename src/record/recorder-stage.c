/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How a stage begins and ends. What is made of it: stage-end.c. */

#include "record/recorder-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "record/read-ahead.h"
#include "volume/block-device.h"

#include <limits.h>
#include <string.h>

#define READ_AHEAD_RECORD "read-ahead"

void recorder_give_back_read_ahead(Recorder *r)
{
    char path[PATH_MAX + sizeof(READ_AHEAD_RECORD) + 1];
    int k;

    if (!r->read_ahead_lowered)
        return;
    snprintf(path, sizeof(path), "%s/" READ_AHEAD_RECORD, r->run_dir);
    k = read_ahead_restore(path);
    if (k < 0)
        log_warning_errno(k, "Cannot give back read-ahead, ignoring: %m");
    else
        r->read_ahead_lowered = false;
}

int recorder_snapshot(Recorder *r, const Volume *v, CachestatWhat what, RangeSet *ret)
{
    usec_t deadline = clock_now(CLOCK_MONOTONIC) + RECORDER_SNAPSHOT_USEC;
    _cleanup_range_set_ RangeSet ranges = {0};
    _cleanup_close_ int fd = -EBADF;
    int k;

    if (strncmp(v->fstype, "ext", 3) != 0)
        return -EOPNOTSUPP;
    if (r->options.no_cachestat)
        return -ENOSYS;
    fd = block_device_open(v->block_dev);
    if (fd < 0)
        return fd;
    k = cachestat_ranges(fd, what, v->size_bytes, deadline, &ranges);
    if (k != 0)
        return k < 0 ? k : -ETIME;
    *ret = ranges;
    ranges = (RangeSet){0};
    return 0;
}

static void take_start_snapshots(Recorder *r)
{
    for (size_t i = 0; i < r->n_watched; i++) {
        WatchedVolume *w = &r->watched[i];
        const Volume *v = volume_by_dev(&r->volumes, w->st_dev);

        range_set_done(&w->resident_before);
        range_set_done(&w->seen_before);
        range_set_done(&w->resident_since);
        w->has_snapshot = v &&
                          recorder_snapshot(r, v, CACHESTAT_RESIDENT, &w->resident_before) >= 0 &&
                          recorder_snapshot(r, v, CACHESTAT_SEEN, &w->seen_before) >= 0;
    }
}

/* --exact only. Elsewhere it would cost what recording must not: a page a request is three times
 * slower even on an ssd. What a recorder left that was killed is given back in any case. */
static void lower_read_ahead(Recorder *r)
{
    char path[PATH_MAX + sizeof(READ_AHEAD_RECORD) + 1];
    int k;

    if (!r->run_dir || r->read_ahead_lowered)
        return;
    snprintf(path, sizeof(path), "%s/" READ_AHEAD_RECORD, r->run_dir);
    if (!r->options.exact) {
        k = read_ahead_restore(path);
        if (k < 0)
            log_warning_errno(k, "Cannot give back read-ahead, ignoring: %m");
        return;
    }
    k = read_ahead_lower(&r->volumes, true, path);
    if (k < 0)
        log_warning_errno(k, "Cannot lower read-ahead, recording less exactly: %m");
    else
        r->read_ahead_lowered = true;
}

int recorder_begin_stage(Recorder *r, Stage stage, uint32_t uid)
{
    int k;

    if (r->recording)
        return -EBUSY;
    lower_read_ahead(r);
    take_start_snapshots(r);
    k = recorder_drain(r); /* what was queued before is not this stage's */
    if (k >= 0)
        k = recorder_begin_log(r);
    if (k < 0)
        return k;
    sampling_done(&r->sampling);
    r->recording = true;
    r->complained = false;
    r->stage = stage;
    r->uid = uid;
    r->n_logins += stage == STAGE_LOGIN;
    r->n_overflows = r->n_lost = r->n_own = 0;
    r->last_reap = 0;
    r->start_boottime = clock_now(CLOCK_BOOTTIME);
    r->start_realtime = clock_now(CLOCK_REALTIME);
    return 0;
}

static int stop_recording(Recorder *r)
{
    r->recording = false;
    recorder_give_back_read_ahead(r);
    sampling_done(&r->sampling);
    return recorder_begin_log(r);
}

int recorder_end_stage(Recorder *r, Trace **ret)
{
    int k, begun;

    if (!r->recording)
        return -ESRCH;
    k = recorder_make_trace(r, ret);
    begun = stop_recording(r);
    return k < 0 ? k : begun;
}

int recorder_take_trace(Recorder *r, Trace **ret)
{
    int k;

    if (!r->recording)
        return -ESRCH;
    k = recorder_make_trace(r, ret);
    r->recording = false;
    recorder_give_back_read_ahead(r);
    sampling_done(&r->sampling);
    return k;
}

int recorder_drop_stage(Recorder *r)
{
    if (!r->recording)
        return -ESRCH;
    r->n_logins -= r->stage == STAGE_LOGIN;
    return stop_recording(r);
}

void recorder_set_uid(Recorder *r, uint32_t uid)
{
    r->uid = uid;
}

void recorder_set_exact(Recorder *r, bool exact)
{
    r->options.exact = exact;
}

uint64_t recorder_n_starts(const Recorder *r)
{
    return r->n_starts;
}
