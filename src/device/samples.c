/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "device/samples.h"

#include "device/profile.h"

#include <string.h>

static const char *const kind_names[_DEVICE_SAMPLE_KIND_MAX] = {
        [DEVICE_SAMPLE_STREAM] = "stream",
        [DEVICE_SAMPLE_FAR] = "far",
        [DEVICE_SAMPLE_NEAR] = "near",
        [DEVICE_SAMPLE_PARALLEL] = "parallel",
};

const char *device_sample_kind_to_string(DeviceSampleKind k)
{
    return (int)k >= 0 && k < _DEVICE_SAMPLE_KIND_MAX ? kind_names[k] : NULL;
}

bool device_sample_is_valid(DeviceSampleKind k, const DeviceSample *s)
{
    bool single = k == DEVICE_SAMPLE_FAR || k == DEVICE_SAMPLE_NEAR;

    return s->length > 0 && s->length <= DEVICE_SAMPLE_LENGTH_MAX &&
           s->usec <= DEVICE_SAMPLE_USEC_MAX && s->depth >= 1 && s->depth <= DEVICE_DEPTH_MAX &&
           s->requests >= (single ? 1U : 2U) &&
           s->requests <= (single ? 1U : DEVICE_SAMPLE_REQUESTS_MAX) &&
           (single || s->distance == 0);
}

void device_samples_add(DeviceSamples *s, DeviceSampleKind k, const DeviceSample *sample)
{
    DeviceSample *items = s->items[k];

    if (s->n[k] == DEVICE_SAMPLES_MAX) {
        memmove(items, items + 1, (DEVICE_SAMPLES_MAX - 1) * sizeof(*items));
        s->n[k]--;
    }
    items[s->n[k]++] = *sample;
}

bool device_sweep_counts(const DeviceSweepReport *r, usec_t pack_created, uint64_t pack_data_bytes)
{
    double least_held = DEVICE_SWEEP_SHARE_MIN * (double)r->duration_usec;
    bool undisturbed = r->policy == POLICY_GATE   ? (double)r->held_usec >= least_held
                       : r->policy == POLICY_IDLE ? r->resident
                                                  : false;

    return r->done && undisturbed && r->start_realtime > pack_created && r->duration_usec > 0 &&
           r->duration_usec <= DEVICE_SAMPLE_USEC_MAX &&
           (double)r->data_bytes >= DEVICE_SWEEP_SHARE_MIN * (double)pack_data_bytes;
}
