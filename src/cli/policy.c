/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cli/policy.h"

#include <string.h>

static Volume *root_volume(VolumeTable *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->volumes[i].mountpoint, "/") == 0)
            return t->volumes + i;
    return t->n > 0 ? t->volumes : NULL;
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
