/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/prefetch-pace.h"

#include "base/clock.h"
#include "base/rooted.h"
#include "device/block-device.h"
#include "session/machine.h"
#include "system/memory.h"
#include "system/thermal.h"

#include <inttypes.h>

/* The device's queue is read at each update, the other facts after this time. */
#define FACTS_USEC (100 * USEC_PER_MSEC)

/* Firmware may take milliseconds to report a temperature. */
#define HEAT_USEC USEC_PER_SEC

void prefetch_pace_done(PrefetchPace *p)
{
    free(p->inflight);
    p->inflight = NULL;
}

void prefetch_pace_begin(PrefetchPace *p)
{
    p->window = (ReadWindow){0};
    p->facts = (ReadSnapshot){.idle = true};
    p->facts_due = p->heat_due = 0;
}

/* Updates the time in which others waited for I/O since the last facts. */
static void read_io_stall(PrefetchPace *p, usec_t now)
{
    uint64_t stalled;

    p->facts.io_stall = 0;
    if (pressure_read(&p->pressure, &stalled) < 0)
        return;
    if (p->facts_due > 0)
        p->facts.io_stall = 100.0 * (double)(stalled - p->stalled_usec) /
                            (double)(now + FACTS_USEC - p->facts_due);
    p->stalled_usec = stalled;
}

static void read_facts(PrefetchPace *p, usec_t now)
{
    ReadSnapshot *s = &p->facts;
    CacheFacts cache = {0};
    MemoryFacts memory = {0};

    if (cache_facts_read_own(p->root_fd, &cache) >= 0) {
        s->inactive_bytes = cache.inactive_bytes;
        s->evicted_bytes = cache.evicted_bytes;
        s->refaulted_bytes = cache.refaulted_bytes;
    }
    if (memory_facts_read_own(p->root_fd, &memory) >= 0) {
        s->available_bytes = memory.available_bytes;
        s->memory_short = memory_facts_are_short(&memory);
    }
    s->memory_stall = machine_memory_pressure(p->root_fd);
    if (now >= p->heat_due) {
        s->hot = thermal_is_hot(p->root_fd);
        p->heat_due = now + HEAT_USEC;
    }
    read_io_stall(p, now);
    p->facts_due = now + FACTS_USEC;
}

/* Finds the counters of the queue of the disk below the device. Several disks have no common queue,
 * so that the queue then counts as unknown. */
static void find_queue(PrefetchPace *p, uint64_t device)
{
    _cleanup_block_disk_ BlockDisk disk = {0};

    if (device == p->device)
        return;
    p->device = device;
    free(p->inflight);
    p->inflight = NULL;
    if (block_device_find_disk(p->root_fd, device, &disk) >= 0 && disk.name && !disk.several &&
        asprintf(&p->inflight, "/sys/block/%s/inflight", disk.name) < 0)
        p->inflight = NULL;
}

/* Reads the number of requests in flight on the disk. Returns whether it is known. */
static bool read_queue(const PrefetchPace *p, uint32_t *ret)
{
    _cleanup_free_ char *text = NULL;
    uint32_t reads, writes;

    if (!p->inflight || rooted_read(p->root_fd, p->inflight, 4096, &text, NULL) < 0 ||
        sscanf(text, "%" SCNu32 " %" SCNu32, &reads, &writes) != 2)
        return false;
    *ret = MIN(reads, UINT32_MAX / 2) + MIN(writes, UINT32_MAX / 2);
    return true;
}

uint64_t prefetch_pace_update(PrefetchPace *p, uint64_t device, uint64_t arrived,
                              uint32_t own_requests)
{
    usec_t now = clock_now(CLOCK_MONOTONIC);

    find_queue(p, device);
    if (now >= p->facts_due)
        read_facts(p, now);
    p->facts.now = now;
    p->facts.position_bytes = arrived;
    p->facts.own_requests = own_requests;
    p->facts.queue_known = read_queue(p, &p->facts.queue_requests);
    return read_window_update(&p->window, &p->facts);
}

bool prefetch_pace_must_stop(const PrefetchPace *p)
{
    return p->facts.hot || p->facts.memory_short;
}
