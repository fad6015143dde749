/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* STATE/devices.json: the measurements of each device, from several runs of the planner. The UUID
 * of the filesystem and the identity of the disk below it identify a device. A cloned image on
 * other hardware therefore starts without measurements. docs/formats.md describes the file.
 * Everything except loading and writing is pure. */

#include "device/samples.h"

#define STATE_DEVICES "devices.json"

/* At most this many devices are kept. One more replaces the device whose last measurement is the
 * oldest. */
#define DEVICE_STORE_MAX 16U

/* Limits of the stored names. */
#define DEVICE_UUID_MAX     64U
#define DEVICE_IDENTITY_MAX 512U

#define DEVICE_STORE_SIZE_MAX (1U << 20)

typedef struct DeviceRecord {
    char *uuid;               /* of the filesystem, as blkid prints it */
    char *identity;           /* of the disk: block_device_identity() */
    usec_t measured_realtime; /* when it was measured last */
    uint32_t n_plans;         /* number of runs of the planner that measured it */
    DeviceSamples samples;
    DeviceSweep sweeps[DEVICE_SWEEPS_MAX]; /* the oldest first */
    unsigned n_sweeps;
    usec_t sweep_realtime; /* start of the last sweep */
} DeviceRecord;

typedef struct DeviceStore {
    DeviceRecord *records[DEVICE_STORE_MAX];
    size_t n;
} DeviceStore;

void device_store_done(DeviceStore *s);
#define _cleanup_device_store_ _cleanup_(device_store_done)

/* Returns the record, or NULL if there is none. */
DeviceRecord *device_store_find(DeviceStore *s, const char *uuid, const char *identity);

/* Finds the record or adds one without samples; a full store drops the record whose last
 * measurement is the oldest. Names that are longer than allowed are cut. NULL: out of memory. */
DeviceRecord *device_store_add(DeviceStore *s, const char *uuid, const char *identity);

/* Adds a sweep that began at that time; the oldest is dropped if there are DEVICE_SWEEPS_MAX. */
void device_record_add_sweep(DeviceRecord *d, usec_t start_realtime, const DeviceSweep *sweep);

/* Formats the store as JSON. The caller frees *ret. Returns 0 or -ENOMEM. */
int device_store_to_json(const DeviceStore *s, char **ret, size_t *ret_size);

/* Parses and checks a store. Returns 0, -EBADMSG, -EMEDIUMTYPE (not a file of devices),
 * -EPROTONOSUPPORT (another version), -E2BIG, or -ENOMEM. After an error *ret_error is one line
 * that the caller frees, or NULL. */
int device_store_from_json(const char *text, size_t size, DeviceStore *ret, char **ret_error);

/* Reads STATE/devices.json. An absent file is an empty store. Returns 0, what
 * device_store_from_json() returns, or the error of reading. */
int state_load_devices(int state_fd, DeviceStore *ret, char **ret_error);

/* Replaces STATE/devices.json, as atomic_file_write() does. Returns 0 or a negative errno. */
int state_write_devices(int state_fd, const DeviceStore *s);
