/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a request costs on a given kind of disk. Pure: memory in, memory out, the clock is an
 * argument. All times are nanoseconds of one clock that starts anywhere, all positions bytes.
 *
 * A mechanical disk has one head and serves one request at a time:
 *
 *     fixed + seek + half a rotation + bytes / rate
 *
 * where seek = seek_min + (seek_max - seek_min) * sqrt(distance / stroke). Nothing but `fixed` and
 * the transfer is paid where the head already stands; a gap ahead of it, up to gap_bytes, costs the
 * time to read over it if that is less than a seek. What is queued is served nearest first, unless
 * something has waited for longer than age_limit.
 *
 * Other disks serve in the order of arrival: `depth` requests pass their fixed latency at the
 * same time, and all share one link of the given rate.
 *
 * A disk with granules (a volume that a cloud provider loads from a snapshot) fetches each granule
 * when it is first read. That takes fetch_nsec, and a fetch begins at the earliest
 * fetch_interval_nsec after the one before. Later reads of the granule cost `fixed`. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_DEPTH_MAX 64U

typedef struct DiskProfile {
    const char *name;
    uint64_t rate;          /* bytes a second */
    uint64_t seek_min_nsec; /* to the neighbouring track; 0 and 0: no mechanics */
    uint64_t seek_max_nsec; /* over the whole stroke */
    uint64_t half_rotation_nsec;
    uint64_t fixed_nsec;
    uint64_t gap_bytes;      /* reading on over a gap of this size is tried before seeking */
    uint64_t age_limit_nsec; /* nearest first only */
    uint64_t granule_bytes;  /* 0: none */
    uint64_t fetch_nsec;     /* of a granule that is read for the first time */
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
    uint64_t link_free_nsec;         /* until then the last transfer goes on */
    uint64_t finish[DISK_DEPTH_MAX]; /* ring: when the last `depth` requests finish */
    unsigned next;                   /* ring position of the oldest of them */
    bool *touched;                   /* granule -> was read; borrowed; NULL: all were */
    uint64_t fetch_free_nsec;        /* when the next fetch can begin */
} Disk;

/* The table's profiles, ended by one without a name. */
extern const DiskProfile disk_profiles[];

/* NULL if there is none of that name. */
const DiskProfile *disk_profile_by_name(const char *name);

/* The number of granules of a disk of that size; 0 if the profile has none. */
uint64_t disk_granules(const DiskProfile *p, uint64_t size_bytes);

/* Marks the granules of the range as read. */
void disk_touch(Disk *d, uint64_t offset, uint64_t length);

/* A disk at rest, its head at 0. */
Disk disk_init(const DiskProfile *profile, uint64_t stroke_bytes);

/* From `head` to `offset` without transfer: 0 where it stands, else what the head comment says. */
uint64_t disk_seek_nsec(const Disk *d, uint64_t offset);

/* bytes / rate */
uint64_t disk_transfer_nsec(const DiskProfile *p, uint64_t bytes);

/* What this one request costs with nothing else going on. */
uint64_t disk_cost_nsec(const Disk *d, uint64_t offset, uint64_t length);

/* When the disk can next begin to serve something: a request that is there by then takes part in
 * the choice, one that arrives later does not. */
uint64_t disk_free_nsec(const Disk *d);

/* Which of `n` > 0 requests is served next: those that have arrived when the disk becomes free
 * (or the earliest, if the disk waits for it), nearest first or the oldest first. Returns its
 * index. */
size_t disk_pick(const Disk *d, const DiskRequest *requests, size_t n);

typedef struct DiskService {
    uint64_t start_nsec;  /* when the disk began with it */
    uint64_t finish_nsec; /* when its last byte was there; never before that of an earlier one */
} DiskService;

/* Serves the request, and moves head and clocks. */
DiskService disk_serve(Disk *d, const DiskRequest *request);

/* The exact time of serving these in this order, all of them there from the beginning. */
uint64_t disk_sequence_nsec(const DiskProfile *p, uint64_t stroke_bytes,
                            const DiskRequest *requests, size_t n);
