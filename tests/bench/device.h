/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The running disk behind disksim: requests come in, a thread answers each when its time has come.
 * Start with device_open(), then device_start(); everything else is for FUSE's callbacks. */

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

/* How reads go wrong, with delays on. */
typedef enum DeviceFault {
    DEVICE_FAULT_NONE,
    DEVICE_FAULT_HANG,  /* they are answered when the fault ends */
    DEVICE_FAULT_EIO,   /* they fail */
    DEVICE_FAULT_LATE,  /* they take DEVICE_LATE_NSEC more */
    DEVICE_FAULT_SHORT, /* half of the data comes back */
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
    unsigned fault_every; /* one delayed read of so many has the fault */
    uint64_t fault_count; /* delayed reads since the fault was set */
    uint64_t n_faults;    /* reads that had it */
    Pending held;         /* reads that hang */
    FILE *writes;         /* writes and flushes, in order; NULL: they are not recorded */
    Disk disk;
    Pending pending;
    unsigned char *written; /* a bit a block: differs from the image */
    Saved *saved;           /* list: earlier contents of the disk, by name */
    FILE *log;
    uint64_t reads, read_bytes, busy_nsec, n_writes, written_bytes;
} Device;

/* Maps the image and opens the log (NULL: none). 0, or -EINVAL for what is no image, or the errno
 * of what failed. device_close() undoes it, also after a failure. */
int device_open(Device *d, const DiskProfile *profile, const char *image, const char *log);

/* 0 or a negative errno of log writing: a full disk must not go unseen. */
int device_close(Device *d);

/* Starts the thread. 0 or a negative errno. */
int device_start(Device *d);

/* Ends the thread; what is still queued is answered with EIO. */
void device_stop(Device *d);

/* Queues a read; it is answered when it is done, at once with delays off. */
void device_read(Device *d, fuse_req_t req, size_t size, uint64_t offset);

/* Records writes and flushes in the file from now on: tests/faults/powercut reads it. Each entry is
 * offset and length as two 64-bit integers, and the data; a flush has offset and length UINT64_MAX.
 * 0 or a negative errno. Call it before device_start(). */
int device_record_writes(Device *d, const char *path);

/* Notes a flush. */
void device_flush(Device *d);

/* Writes at once. 0 or -ENOSPC. */
int device_write(Device *d, const char *data, size_t size, uint64_t offset);

/* Carries out a command of the control file. Returns 0, -EINVAL for an unknown command, -ENOENT if
 * nothing was saved under that name, or the errno of what failed. */
int device_control(Device *d, const char *command);

/* Prints state and counters, one `key=value` a line. Returns what snprintf(3) does. */
int device_describe(Device *d, char *buf, size_t size);
