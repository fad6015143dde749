/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cli/devices.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/log.h"
#include "session/machine.h"
#include "state/packs.h"
#include "state/state.h"
#include "volume/block-device.h"
#include "volume/device-measure.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

typedef struct Devices {
    const Context *c;
    int state_fd;
    DeviceStore store;
    DeviceProbeBudget budget;
    usec_t now_realtime;
    bool changed;
} Devices;

/* NULL: nothing names the disk, or out of memory. */
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

/* Where the packs that will be replaced have their data: these places hold data, and the next packs
 * will read most of them. */
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

static void apply(const DeviceRecord *d, Volume *v)
{
    DeviceEstimate e;

    device_estimate(&d->samples, v->size_bytes, &v->profile, &e);
    if (e.seeks_clear) {
        v->seeks_slowly = e.seeks_slowly;
        if (e.seeks_slowly)
            v->device_class = DEVICE_CLASS_HDD;
        else if (v->device_class == DEVICE_CLASS_HDD)
            v->device_class = DEVICE_CLASS_UNKNOWN;
    }
    v->profile = e.profile;
    log_debug("headstart: %s: %.1f MB/s, latency %.0f us, depth %u, seeks %.0f to %.0f us and half "
              "a rotation of %.0f us%s",
              v->device, e.profile.rate_bytes_per_usec, e.profile.fixed_usec, e.profile.depth,
              e.profile.seek_min_usec, e.profile.seek_max_usec, e.profile.half_rotation_usec,
              e.seeks_clear ? "" : "; too few measurements");
}

/* Measures the device if that is still allowed, and applies what is known of it. */
static void load_volume(Devices *x, DevicesMode mode, Volume *v)
{
    _cleanup_free_ char *identity = identity_of(v);
    DeviceRecord *d;

    if (!identity)
        return;
    d = device_store_find(&x->store, v->uuid, identity);
    if (mode == DEVICES_MEASURE && x->budget.usec > 0 &&
        (!v->removable || strcmp(v->mountpoint, "/") == 0) &&
        (!d || (d->measured_realtime != x->now_realtime && /* another subvolume */
                device_probe_wanted(&d->samples)))) {
        d = device_store_add(&x->store, v->uuid, identity);
        if (d)
            measure(x, v, d);
    }
    if (d)
        apply(d, v);
}

/* 0, or an error that was reported. */
static int load_store(Devices *x)
{
    _cleanup_free_ char *error = NULL;
    int r = x->state_fd >= 0 ? state_load_devices(x->state_fd, &x->store, &error) : 0;

    if (r >= 0)
        return 0;
    cli_warning(r, "%s/" STATE_DEVICES ": %s", x->c->state, error ? error : strerror(-r));
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
        /* On a full or read-only filesystem the packs cannot be written either, which is an error.
         */
        if (r < 0 && r != -ENOSPC && r != -EDQUOT && r != -EROFS)
            cli_warning(r, "%s/" STATE_DEVICES ": %m", c->state);
    }
    device_store_done(&x.store);
}
