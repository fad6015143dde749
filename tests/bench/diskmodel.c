/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "diskmodel.h"

#include <math.h>
#include <string.h>

#define USEC UINT64_C(1000)
#define MSEC UINT64_C(1000000)
#define SEC  UINT64_C(1000000000)
#define MB   UINT64_C(1000000)
#define KIB  UINT64_C(1024)

/* SATA's native command queueing has 32 tags; network block devices commonly have 64. Cards have no
 * queue, but the kernel's block layer requires at least 4 tags. */
const DiskProfile disk_profiles[] = {
        {.name = "hdd7200",
         .rate = 100 * MB,
         .seek_min_nsec = 1 * MSEC,
         .seek_max_nsec = 12 * MSEC,
         .half_rotation_nsec = 4170 * USEC,
         .fixed_nsec = 100 * USEC,
         .gap_bytes = 256 * KIB,
         .age_limit_nsec = 250 * MSEC,
         .depth = 1,
         .tags = 32,
         .rotational = true},
        {.name = "hdd5400",
         .rate = 100 * MB,
         .seek_min_nsec = 1500 * USEC,
         .seek_max_nsec = 16 * MSEC,
         .half_rotation_nsec = 5560 * USEC,
         .fixed_nsec = 100 * USEC,
         .gap_bytes = 256 * KIB,
         .age_limit_nsec = 250 * MSEC,
         .depth = 1,
         .tags = 32,
         .rotational = true},
        {.name = "usb2", .rate = 30 * MB, .fixed_nsec = 1000 * USEC, .depth = 1, .tags = 4},
        {.name = "sd", .rate = 40 * MB, .fixed_nsec = 700 * USEC, .depth = 1, .tags = 4},
        {.name = "emmc", .rate = 150 * MB, .fixed_nsec = 250 * USEC, .depth = 1, .tags = 4},
        {.name = "ssd", .rate = 500 * MB, .fixed_nsec = 100 * USEC, .depth = 32, .tags = 32},
        /* The bench uses a loop device in memory for this profile, because FUSE takes longer than
         * this disk. */
        {.name = "nvme", .rate = 3000 * MB, .fixed_nsec = 80 * USEC, .depth = 64, .tags = 64},
        {.name = "netdisk", .rate = 100 * MB, .fixed_nsec = 3000 * USEC, .depth = 64, .tags = 64},
        {.name = "lazy",
         .rate = 125 * MB,
         .fixed_nsec = 800 * USEC,
         .granule_bytes = 512 * KIB,
         .fetch_nsec = 35 * MSEC,
         .fetch_interval_nsec = SEC / 300,
         .depth = 64,
         .tags = 64},
        {},
};

const DiskProfile *disk_profile_by_name(const char *name)
{
    for (const DiskProfile *p = disk_profiles; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

Disk disk_init(const DiskProfile *profile, uint64_t stroke_bytes)
{
    return (Disk){.profile = profile, .stroke_bytes = stroke_bytes > 0 ? stroke_bytes : 1};
}

uint64_t disk_transfer_nsec(const DiskProfile *p, uint64_t bytes)
{
    return bytes / p->rate * SEC + bytes % p->rate * SEC / p->rate;
}

uint64_t disk_granules(const DiskProfile *p, uint64_t size_bytes)
{
    return p->granule_bytes > 0 ? (size_bytes + p->granule_bytes - 1) / p->granule_bytes : 0;
}

/* Fetches those granules of the range that were not read before. Returns when the last one has
 * arrived, or `now` if all were read before. */
static uint64_t fetch(Disk *d, uint64_t offset, uint64_t length, uint64_t now)
{
    const DiskProfile *p = d->profile;
    uint64_t done = now;

    if (!d->touched || length == 0)
        return now;
    for (uint64_t g = offset / p->granule_bytes; g <= (offset + length - 1) / p->granule_bytes;
         g++) {
        if (d->touched[g])
            continue;
        d->touched[g] = true;
        if (d->fetch_free_nsec < now)
            d->fetch_free_nsec = now;
        done = d->fetch_free_nsec + p->fetch_nsec;
        d->fetch_free_nsec += p->fetch_interval_nsec;
    }
    return done;
}

void disk_touch(Disk *d, uint64_t offset, uint64_t length)
{
    Disk untimed = *d;

    (void)fetch(&untimed, offset, length, 0);
}

uint64_t disk_seek_nsec(const Disk *d, uint64_t offset)
{
    const DiskProfile *p = d->profile;

    if (!p->rotational || offset == d->head)
        return 0;

    uint64_t distance = offset > d->head ? offset - d->head : d->head - offset;
    double part = sqrt((double)distance / (double)d->stroke_bytes);
    if (part > 1)
        part = 1;
    uint64_t seek = p->seek_min_nsec +
                    (uint64_t)((double)(p->seek_max_nsec - p->seek_min_nsec) * part) +
                    p->half_rotation_nsec;

    if (offset > d->head && distance <= p->gap_bytes) {
        uint64_t over = disk_transfer_nsec(p, distance);
        if (over < seek)
            return over;
    }
    return seek;
}

uint64_t disk_cost_nsec(const Disk *d, uint64_t offset, uint64_t length)
{
    return d->profile->fixed_nsec + disk_seek_nsec(d, offset) +
           disk_transfer_nsec(d->profile, length);
}

uint64_t disk_free_nsec(const Disk *d)
{
    return d->finish[d->next];
}

size_t disk_pick(const Disk *d, const DiskRequest *requests, size_t n)
{
    size_t oldest = 0;

    for (size_t i = 1; i < n; i++)
        if (requests[i].arrival_nsec < requests[oldest].arrival_nsec)
            oldest = i;
    if (!d->profile->rotational)
        return oldest;

    uint64_t now = disk_free_nsec(d);
    if (now < requests[oldest].arrival_nsec)
        now = requests[oldest].arrival_nsec;
    if (now - requests[oldest].arrival_nsec > d->profile->age_limit_nsec)
        return oldest;

    /* Compares times, not distances: a gap ahead that is read over takes less time than a seek to
     * the track behind. */
    size_t best = oldest;
    uint64_t best_nsec = disk_seek_nsec(d, requests[oldest].offset);
    for (size_t i = 0; i < n; i++) {
        if (requests[i].arrival_nsec > now)
            continue;
        uint64_t nsec = disk_seek_nsec(d, requests[i].offset);
        if (nsec < best_nsec) {
            best = i;
            best_nsec = nsec;
        }
    }
    return best;
}

DiskService disk_serve(Disk *d, const DiskRequest *request)
{
    const DiskProfile *p = d->profile;
    DiskService s = {.start_nsec = request->arrival_nsec};

    if (s.start_nsec < disk_free_nsec(d))
        s.start_nsec = disk_free_nsec(d);

    /* The latencies of requests overlap; their transfers follow one after another. With depth 1 the
     * link is always free at that time, and the result is the plain sum. */
    uint64_t transfer = s.start_nsec + p->fixed_nsec + disk_seek_nsec(d, request->offset);
    uint64_t fetched = fetch(d, request->offset, request->length, s.start_nsec);
    if (transfer < fetched)
        transfer = fetched;
    if (transfer < d->link_free_nsec)
        transfer = d->link_free_nsec;
    s.finish_nsec = transfer + disk_transfer_nsec(p, request->length);

    d->link_free_nsec = s.finish_nsec;
    d->finish[d->next] = s.finish_nsec;
    d->next = (d->next + 1) % p->depth;
    d->head = request->offset + request->length;
    return s;
}

uint64_t disk_sequence_nsec(const DiskProfile *p, uint64_t stroke_bytes,
                            const DiskRequest *requests, size_t n)
{
    Disk d = disk_init(p, stroke_bytes);
    uint64_t finish = 0;

    for (size_t i = 0; i < n; i++) {
        DiskRequest r = requests[i];
        r.arrival_nsec = 0;
        finish = disk_serve(&d, &r).finish_nsec;
    }
    return finish;
}
