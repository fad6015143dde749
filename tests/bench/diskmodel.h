/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Computes what a request costs on a given kind of disk. Pure: memory in, memory out, the clock is
 * an argument. All times are in nanoseconds of one clock with any start, and all positions are in
 * bytes.
 *
 * A mechanical disk has one head and serves one request at a time:
 *
 *     fixed + seek + half a rotation + bytes / rate
 *
 * where seek = seek_min + (seek_max - seek_min) * sqrt(distance / stroke). If the head is already
 * there, only `fixed` and the transfer are paid. A gap of up to gap_bytes ahead of the head costs
 * the time to read over it, if that is less than a seek. The nearest queued request is served
 * first, unless another one has waited for longer than age_limit.
 *
 * Other disks serve in the order of arrival. The fixed latencies of `depth` requests overlap, and
 * all requests share one link of the given rate.
 *
 * A disk with granules simulates a volume that a cloud provider loads from a snapshot: it fetches
 * each granule when it is first read. A fetch takes fetch_nsec, and fetches begin at least
 * fetch_interval_nsec apart. Later reads of the granule cost what a read from a disk
 * without granules costs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_DEPTH_MAX 64U

typedef struct DiskProfile {
    const char *name;
    uint64_t rate;          /* bytes a second */
    uint64_t seek_min_nsec; /* to the neighbouring track; the seek times are 0 if the disk is not
                               rotational */
    uint64_t seek_max_nsec; /* over the whole stroke */
    uint64_t half_rotation_nsec;
    uint64_t fixed_nsec;
    uint64_t gap_bytes; /* a gap of this size or less is read over if that is faster than a seek */
    uint64_t age_limit_nsec; /* of a disk with seeks: a request that has waited for longer is served
                                next */
    uint64_t granule_bytes;  /* 0: none */
    uint64_t fetch_nsec;     /* how long the fetch of a granule takes */
    uint64_t fetch_interval_nsec;
    unsigned depth; /* requests in service at a time */
    unsigned tags;  /* requests the disk accepts at a time (the kernel's queue depth) */
    bool rotational;
} DiskProfile;

typedef struct DiskRequest {
    uint64_t offset;
    uint64_t length;
    uint64_t arrival_nsec;
} DiskRequest;

typedef struct Disk {
    const DiskProfile *profile;
    uint64_t stroke_bytes;           /* the distance that costs seek_max */
    uint64_t head;                   /* where the last request ended */
    uint64_t link_free_nsec;         /* when the last transfer ends */
    uint64_t finish[DISK_DEPTH_MAX]; /* ring: when the last `depth` requests finish */
    unsigned next;                   /* ring position of the oldest of them */
    bool *touched;                   /* granule -> it was read; borrowed; NULL: all were read */
    uint64_t fetch_free_nsec;        /* when the next fetch can begin */
} Disk;

/* The profiles, ended by an entry without a name. */
extern const DiskProfile disk_profiles[];

/* Returns the profile with that name, or NULL if there is none. */
const DiskProfile *disk_profile_by_name(const char *name);

/* Returns the number of granules of a disk of that size; 0 if the profile has none. */
uint64_t disk_granules(const DiskProfile *p, uint64_t size_bytes);

/* Marks the granules of the range as read. */
void disk_touch(Disk *d, uint64_t offset, uint64_t length);

/* Returns a disk at rest, with its head at position 0. */
Disk disk_init(const DiskProfile *profile, uint64_t stroke_bytes);

/* Returns the time to move from `head` to `offset`, without transfer. The comment at the beginning
 * of this file has the formula. */
uint64_t disk_seek_nsec(const Disk *d, uint64_t offset);

/* Returns bytes / rate, in nanoseconds. */
uint64_t disk_transfer_nsec(const DiskProfile *p, uint64_t bytes);

/* Returns the cost of this request if the disk serves no other one, without the time to fetch
 * granules. */
uint64_t disk_cost_nsec(const Disk *d, uint64_t offset, uint64_t length);

/* Returns when the disk can next begin to serve a request. Only requests that have arrived by then
 * take part in the choice. */
uint64_t disk_free_nsec(const Disk *d);

/* Chooses which of `n` > 0 requests is served next. The candidates are the requests that have
 * arrived when the disk becomes free, or the earliest request if none has. A disk with seeks
 * chooses the candidate with the shortest seek, unless the oldest has waited for longer than
 * age_limit; any other disk chooses the oldest. Returns the index of the choice. */
size_t disk_pick(const Disk *d, const DiskRequest *requests, size_t n);

typedef struct DiskService {
    uint64_t start_nsec; /* when the disk began to serve it */
    uint64_t
            finish_nsec; /* when its last byte was there; never before that of an earlier request */
} DiskService;

/* Serves the request, and advances head and clocks. */
DiskService disk_serve(Disk *d, const DiskRequest *request);

/* Returns the exact time of serving these requests in this order, if all have arrived at the
 * beginning. */
uint64_t disk_sequence_nsec(const DiskProfile *p, uint64_t stroke_bytes,
                            const DiskRequest *requests, size_t n);
