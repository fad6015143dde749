/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cli/policy.h"

#include "base/log.h"
#include "volume/seeks.h"

#include <inttypes.h>
#include <string.h>

static Volume *root_volume(VolumeTable *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->volumes[i].mountpoint, "/") == 0)
            return t->volumes + i;
    return t->n > 0 ? t->volumes : NULL;
}

void policy_measure_seeks(VolumeTable *t, bool before, bool measure)
{
    Volume *v = root_volume(t);
    SeeksSlowly slowly = SEEKS_SLOWLY_UNCLEAR;
    SeekTimes times;
    int r;

    if (!v || !v->rotational)
        return;
    r = measure ? seeks_measure(v, &times) : 0;
    if (r < 0)
        log_debug_errno(r, "headstart: cannot measure how %s seeks: %m", v->device);
    else if (measure) {
        slowly = seeks_decide(&times);
        log_debug("headstart: %s reads elsewhere in %" PRIu64 " us, what is next in %" PRIu64 " us",
                  v->device, times.elsewhere, times.next);
    }
    v->seeks_slowly = slowly == SEEKS_SLOWLY_YES || (slowly == SEEKS_SLOWLY_UNCLEAR && before);
    if (v->seeks_slowly)
        volume_set_class(v, DEVICE_CLASS_HDD);
    else if (slowly == SEEKS_SLOWLY_NO && v->device_class == DEVICE_CLASS_HDD)
        volume_set_class(v, DEVICE_CLASS_UNKNOWN);
}

Policy policy_automatic(VolumeTable *t, Stage stage)
{
    const Volume *v = root_volume(t);

    if (stage != STAGE_BOOT)
        return POLICY_IDLE;
    if (v && v->seeks_slowly)
        return POLICY_GATE;
    if (v && (v->device_class == DEVICE_CLASS_SSD || v->device_class == DEVICE_CLASS_EMMC ||
              v->device_class == DEVICE_CLASS_NETDISK))
        return POLICY_METADATA;
    return POLICY_CONCURRENT;
}

Policy policy_within_deadline(Policy p, usec_t estimated, usec_t deadline)
{
    bool too_late = estimated != USEC_INFINITY && estimated > deadline;

    return p == POLICY_GATE && too_late ? POLICY_CONCURRENT : p;
}
