/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/devices.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rooted.h"
#include "device/block-device.h"
#include "device/measure.h"
#include "pack/pack.h"
#include "plan/cost-model.h"
#include "session/machine.h"
#include "state/packs.h"
#include "state/replay-status.h"
#include "state/state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "config-paths.h"

/* A sweep that device_sweep_counts() accepts counts if nearly all of the pack was on one volume and
 * the sweep was predicted to take at least SWEEP_USEC_MIN. */
#define SWEEP_USEC_MIN (20 * USEC_PER_MSEC)

typedef struct Devices {
    const Context *c;
    int state_fd;
    DeviceStore store;
    DeviceProbeBudget budget;
    usec_t now_realtime;
    bool changed;
} Devices;

/* Returns the identity of the volume's disk; the caller frees it. Returns NULL if the volume has no
 * disk or no UUID, if nothing identifies the disk, or if out of memory. */
static char *identity_of(const Volume *v)
{
    char *identity = NULL;

    if (v->block_dev == 0 || !v->uuid[0] ||
        block_device_identity(AT_FDCWD, v->block_dev, &identity) < 0)
        return NULL;
    return identity;
}

const DeviceRecord *devices_find(DeviceStore *s, const Volume *v)
{
    _cleanup_free_ char *identity = identity_of(v);

    return identity ? device_store_find(s, v->uuid, identity) : NULL;
}

/* Reads where the packs that will be replaced have their data. The device is measured at these
 * places, because they hold data and the next packs will contain most of them. */
static void read_places(int state_fd, const Volume *v, RangeSet *ret)
{
    for (Stage stage = 0; stage < _STAGE_MAX; stage++)
        if (state_pack_name(stage))
            (void)packs_read_places(state_fd, state_pack_name(stage), v->uuid_bytes, ret);
}

static void measure(Devices *x, const Volume *v, DeviceRecord *d)
{
    _cleanup_range_set_ RangeSet places = {0};
    DeviceProbeRun run = {
            .samples = &d->samples,
            .plan = d->n_plans + 1,
            .size_bytes = v->size_bytes,
            .budget = x->budget,
    };
    int n;

    if (getrandom(&run.random, sizeof(run.random), GRND_NONBLOCK) != sizeof(run.random))
        run.random = clock_now(CLOCK_MONOTONIC);
    run.random |= 1;
    read_places(x->state_fd, v, &places);
    run.places = places.ranges;
    run.n_places = places.n;
    n = device_measure(v->block_dev, &run);
    x->budget = run.budget;
    if (n <= 0) {
        if (n < 0)
            log_debug_errno(n, "headstart: cannot measure %s: %m", v->device);
        return;
    }
    log_debug("headstart: %d measurements of %s", n, v->device);
    d->n_plans++;
    d->measured_realtime = x->now_realtime;
    x->changed = true;
}

/* --- sweeps of replay ------------------------------------------------------------------------- */

/* Predicts the time of a sweep over one volume of the pack with the profile. If `resident` is
 * false, the sweep ends when replay has requested everything. *ret_share is the share of this
 * volume's reads in all bytes of the pack. Returns 0 or -ENOMEM. */
static int predict_sweep(const Pack *pack, const PackVolume *g, const DeviceProfile *profile,
                         bool resident, usec_t *ret, double *ret_share)
{
    const PackMetadata *metadata = pack->metadata + le32toh(g->first_metadata);
    const PackData *data = pack->data + le32toh(g->first_data);
    uint32_t n_metadata = le32toh(g->n_metadata), n_data = le32toh(g->n_data), first = 0;
    _cleanup_free_ Range *requests =
            reallocarray(NULL, (size_t)n_metadata + n_data + 1, sizeof(Range));
    double bytes = 0, all = (double)le64toh(pack->header->total_metadata_bytes) +
                            (double)le64toh(pack->header->total_data_bytes);
    size_t n = 0;

    if (!requests)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_metadata; i++)
        requests[n++] = (Range){le64toh(metadata[i].offset), le64toh(metadata[i].length)};
    while (first < n_data && le64toh(data[first].physical) < pack_sweep_start(pack, g))
        first++;
    for (uint32_t i = 0; i < n_data; i++) {
        const PackData *next = &data[(first + i) % n_data];

        if (le64toh(next->physical) != PACK_PHYSICAL_UNKNOWN)
            requests[n++] = (Range){le64toh(next->physical), le64toh(next->length)};
    }
    for (size_t i = 0; i < n; i++)
        bytes += (double)requests[i].length;
    if (!resident)
        n = cost_sequence_cut(requests, n,
                              device_engine_of_class((DeviceClass)g->device_class)->window_bytes);
    *ret = (usec_t)cost_sequence_usec(profile, requests, n, le64toh(g->device_size));
    *ret_share = all > 0 ? bytes / all : 0;
    return 0;
}

/* Reads the report of headstart-replay. Returns false if it lacks a field or is not valid. */
static bool read_report(struct json_object *status, DeviceSweepReport *ret)
{
    const char *policy, *outcome, *hold_end;

    if (json_get_string(status, "policy", &policy) < 0 ||
        json_get_string(status, "outcome", &outcome) < 0 ||
        json_get_bool(status, "resident", &ret->resident) < 0 ||
        json_get_u64(status, "data_bytes", INT64_MAX, &ret->data_bytes) < 0 ||
        json_get_u64(status, "start_realtime_usec", INT64_MAX, &ret->start_realtime) < 0 ||
        json_get_u64(status, "duration_usec", INT64_MAX, &ret->duration_usec) < 0)
        return false;
    /* A replay that did not hold the boot has no such field. If the pack was late, the boot was not
     * held during the sweep. */
    if (json_get_u64(status, "held_usec", INT64_MAX, &ret->held_usec) < 0 ||
        (json_get_string(status, "hold_end", &hold_end) >= 0 && strcmp(hold_end, "pack-late") == 0))
        ret->held_usec = 0;
    ret->policy = policy_from_string(policy);
    ret->done = strcmp(outcome, "done") == 0;
    return true;
}

/* Adds the sweep of this boot over the pack, if the sweep is new and nearly all of the pack is on
 * this volume. */
static void add_sweep(Devices *x, const Volume *v, DeviceRecord *d, const Pack *pack,
                      struct json_object *status)
{
    DeviceSweepReport report;
    DeviceSweep sweep;
    DeviceEstimate e;
    double share;

    if (!read_report(status, &report) || report.start_realtime <= d->sweep_realtime ||
        !device_sweep_counts(&report, le64toh(pack->header->created_realtime_usec),
                             le64toh(pack->header->total_data_bytes)))
        return;
    sweep.measured_usec = report.duration_usec;
    device_estimate(&d->samples, v->size_bytes, &v->profile, &e);
    for (uint32_t i = 0; i < le32toh(pack->header->n_volumes); i++) {
        const PackVolume *g = &pack->volumes[i];

        if (memcmp(g->uuid, v->uuid_bytes, sizeof(g->uuid)) != 0 ||
            !(le32toh(g->flags) & PACK_VOLUME_PHYSICAL) ||
            predict_sweep(pack, g, &e.profile, report.resident, &sweep.predicted_usec, &share) <
                    0 ||
            share < DEVICE_SWEEP_SHARE_MIN || sweep.predicted_usec < SWEEP_USEC_MIN)
            continue;
        log_debug("headstart: a sweep of %s took %" PRIu64 " us, %" PRIu64 " us were predicted",
                  v->device, sweep.measured_usec, sweep.predicted_usec);
        device_record_add_sweep(d, report.start_realtime, &sweep);
        x->changed = true;
        return;
    }
}

static void add_sweeps(Devices *x, const Volume *v, DeviceRecord *d)
{
    _cleanup_close_ int run_fd =
            rooted_open(x->c->system_fd, HEADSTART_RUN_DIR, O_RDONLY | O_DIRECTORY);

    for (Stage stage = 0; run_fd >= 0 && x->state_fd >= 0 && stage < _STAGE_MAX; stage++) {
        _cleanup_replay_status_ ReplayStatusList l = {0};
        _cleanup_free_ char *buf = NULL;
        Pack pack;

        if (!state_pack_name(stage) || replay_status_read(run_fd, stage, &l) < 0 || l.n == 0 ||
            l.items[0].uid != UID_INVALID ||
            packs_read(x->state_fd, state_pack_name(stage), &buf, &pack, NULL) < 0)
            continue;
        add_sweep(x, v, d, &pack, l.items[0].object);
    }
}

/* --- the devices of the volumes --------------------------------------------------------------- */

void devices_apply(const DeviceRecord *d, Volume *v)
{
    DeviceEstimate e;

    device_estimate(&d->samples, v->size_bytes, &v->profile, &e);
    device_refine(&e.profile, d->sweeps, d->n_sweeps);
    if (e.seeks_clear) {
        v->seeks_slowly = e.seeks_slowly;
        if (e.depth_measured)
            v->device_class = device_class_of_profile(&e.profile);
        else if (v->device_class == DEVICE_CLASS_HDD)
            v->device_class = DEVICE_CLASS_UNKNOWN;
    }
    v->slow_first_reads = e.slow_first_reads;
    v->profile = e.profile;
    v->measured = !device_probe_wanted(&d->samples);
    log_debug("headstart: %s: %.1f MB/s, latency %.0f us, depth %u, seeks %.0f to %.0f us and half "
              "a rotation of %.0f us%s",
              v->device, e.profile.rate_bytes_per_usec, e.profile.fixed_usec, e.profile.depth,
              e.profile.seek_min_usec, e.profile.seek_max_usec, e.profile.half_rotation_usec,
              e.seeks_clear ? "" : "; too few measurements");
}

/* Measures the device if the mode and the rest of the budget allow it, and applies its record. */
static void load_volume(Devices *x, DevicesMode mode, Volume *v)
{
    _cleanup_free_ char *identity = identity_of(v);
    DeviceRecord *d;

    if (!identity)
        return;
    d = device_store_find(&x->store, v->uuid, identity);
    if (d && mode == DEVICES_MEASURE)
        add_sweeps(x, v, d);
    if (mode == DEVICES_MEASURE && x->budget.usec > 0 && !volume_is_foreign(v) &&
        (!d || (d->measured_realtime != x->now_realtime && /* not yet, by another subvolume */
                device_probe_wanted(&d->samples)))) {
        d = device_store_add(&x->store, v->uuid, identity);
        if (d)
            measure(x, v, d);
    }
    if (d)
        devices_apply(d, v);
}

/* Loads the stored measurements. Returns 0, or an error that was reported. */
static int load_store(Devices *x)
{
    _cleanup_free_ char *error = NULL;
    int r = x->state_fd >= 0 ? state_load_devices(x->state_fd, &x->store, &error) : 0;

    if (r >= 0)
        return 0;
    cli_warning(r, "%s/" STATE_DEVICES ": %s", x->c->state, error ? error : error_text(r));
    if (!state_is_bad_content(r))
        return r;
    r = file_set_aside(x->state_fd, STATE_DEVICES);
    if (r < 0)
        cli_warning(r, "%s/" STATE_DEVICES ": cannot set it aside: %m", x->c->state);
    return r;
}

void devices_load(const Context *c, int state_fd, DevicesMode mode, VolumeTable *t)
{
    Devices x = {
            .c = c,
            .state_fd = state_fd,
            .budget = {DEVICE_PROBE_TIME_MAX, DEVICE_PROBE_BYTES_MAX},
            .now_realtime = clock_now(CLOCK_REALTIME),
    };
    int r = load_store(&x);

    if (r < 0 || state_fd < 0 || machine_on_battery(c->system_fd))
        mode = DEVICES_KNOWN;
    for (int root = 1; root >= 0; root--)
        for (size_t i = 0; i < t->n; i++)
            if ((strcmp(t->volumes[i].mountpoint, "/") == 0) == root)
                load_volume(&x, mode, &t->volumes[i]);
    if (x.changed) {
        r = state_write_devices(state_fd, &x.store);
        /* A full or read-only filesystem is not reported here, because the packs cannot be written
         * either and that is reported. */
        if (r < 0 && r != -ENOSPC && r != -EDQUOT && r != -EROFS)
            cli_warning(r, "%s/" STATE_DEVICES ": %m", c->state);
    }
    device_store_done(&x.store);
}
