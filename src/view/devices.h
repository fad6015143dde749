/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The measured devices of the mounted filesystems. */

#include "command/cli.h"
#include "device/estimate.h"
#include "state/device-store.h"
#include "volume/volume.h"

typedef enum DevicesMode {
    DEVICES_KNOWN,   /* use what was measured before */
    DEVICES_MEASURE, /* measure if samples are missing, and store the new samples */
} DevicesMode;

/* Sets the profile of each volume whose device was measured; if the samples suffice, also its class
 * and seeks_slowly. Other volumes keep the typical values of their class. With DEVICES_MEASURE the
 * devices are read for at most DEVICE_PROBE_TIME_MAX in all (device/probe.h), the root filesystem's
 * first. A removable device is measured only if its filesystem belongs to the system, and no device
 * is measured while the machine runs on battery. If STATE/devices.json cannot be used, it is set
 * aside, with one line in the log. Errors are not fatal: a device that cannot be measured keeps its
 * values. */
void devices_load(const Context *c, int state_fd, DevicesMode mode, VolumeTable *t);

/* Sets the profile of the volume from the measurements; if they suffice, also its class and
 * seeks_slowly. */
void devices_apply(const DeviceRecord *d, Volume *v);

/* Returns the record of the volume's device, or NULL if there is none. */
const DeviceRecord *devices_find(DeviceStore *s, const Volume *v);
