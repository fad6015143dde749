/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The running disk behind disksim: it queues requests, and a thread answers each request when its
 * time has come. main() calls device_open(), device_record_writes(), device_start(), device_stop()
 * and device_close() in this order. FUSE's callbacks call the other functions. */

#define FUSE_USE_VERSION 35

#include "diskmodel.h"

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

typedef struct Pending {
    DiskRequest *requests; /* parallel arrays, in no order */
    fuse_req_t *reqs;
    size_t n, allocated;
} Pending;

typedef struct Saved Saved;

/* The ways in which reads fail or are late while delays are on. */
typedef enum DeviceFault {
    DEVICE_FAULT_NONE,
    DEVICE_FAULT_HANG,  /* they are answered when the fault ends */
    DEVICE_FAULT_EIO,   /* they fail */
    DEVICE_FAULT_LATE,  /* they take DEVICE_LATE_NSEC more */
    DEVICE_FAULT_SHORT, /* half of the data is returned */
} DeviceFault;

#define DEVICE_LATE_NSEC UINT64_C(2000000000)

typedef struct Device {
    char *data; /* private mapping of the image: reads see it, writes stay here */
    uint64_t size;
    uint64_t start_nsec;
    pthread_t thread;
    atomic_bool delays; /* signal handlers set it, too */

    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t arrived;
    bool stopping, paused;
    DeviceFault fault;
    unsigned fault_every; /* one of this many delayed reads has the fault */
    uint64_t fault_count; /* delayed reads since the fault was set */
    uint64_t n_faults;    /* delayed reads that had a fault, since the start */
    Pending held;         /* reads that the fault `hang` holds back */
    FILE *writes;         /* writes and flushes, in order; NULL: not recorded */
    Disk disk;
    Pending pending;
    unsigned char *written; /* one bit for each block: it differs from the image */
    Saved *saved;           /* list: earlier contents of the disk, by name */
    FILE *log;
    uint64_t reads, read_bytes, busy_nsec, n_writes, written_bytes;
} Device;

/* Maps the image and opens the log (NULL: none). Returns 0, -EINVAL if the file is not an image, or
 * the negative errno of the step that failed. device_close() releases everything, also after a
 * failure. */
int device_open(Device *d, const DiskProfile *profile, const char *image, const char *log);

/* Releases everything. Returns 0, or -EIO if the log or the recorded writes could not be written,
 * for example because the disk is full. */
int device_close(Device *d);

/* Starts the thread. Returns 0 or a negative errno. */
int device_start(Device *d);

/* Ends the thread. Queued reads are answered with EIO. */
void device_stop(Device *d);

/* Queues a read; the thread answers it when its time has come. With delays off, answers it at
 * once. */
void device_read(Device *d, fuse_req_t req, size_t size, uint64_t offset);

/* Starts to record writes and flushes in the file `path`, which tests/faults/powercut reads. Each
 * entry is offset and length as two 64-bit integers, followed by the data. A flush has offset and
 * length UINT64_MAX, and no data. Returns 0 or a negative errno. Call it before device_start(). */
int device_record_writes(Device *d, const char *path);

/* Records a flush. */
void device_flush(Device *d);

/* Writes at once. Returns 0 or -ENOSPC. */
int device_write(Device *d, const char *data, size_t size, uint64_t offset);

/* Carries out a command of the control file. Returns 0, -EINVAL for an unknown command or a wrong
 * argument, -ENOENT if nothing was saved under that name, or the negative errno of the step that
 * failed. */
int device_control(Device *d, const char *command);

/* Prints state and counters, one `key=value` per line. Returns the same as snprintf(3). */
int device_describe(Device *d, char *buf, size_t size);
