/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides how many bytes a prefetcher keeps between its reader and its last request. Pure.
 *
 * The algorithm is that of Khot, Mathew and Shenoy, "Adaptive Filetype Aware Prefetching", sections
 * 4.1 to 4.3 and 5.1 to 5.3. Only the rate of the reader, the lifetime of cached pages and the
 * growth of the window are taken from there; the paper does not state the formula of the ideal
 * window.
 *
 * Its derivation: a page that is requested W bytes ahead of a reader is used W / rate later. It
 * must then still be in the cache, so W / rate must be less than the lifetime of a page that nobody
 * has used yet. The lifetime is an estimate from the past. If the pressure doubles, the lifetime
 * halves, so that the window uses half of it:
 *
 *     ideal = rate * lifetime / 2
 *
 * - rate: the larger of a short and a long average of what the reader used per second.
 * - lifetime: the smaller of a short and a long average of
 *   inactive bytes of the page cache / (evicted + refaulted bytes per second).
 *   That is Little's law, because a page that nobody has used leaves the inactive list at its end.
 *   A refaulted page counts twice: it was evicted, and its return evicts another page. The lifetime
 *   is at most READ_WINDOW_LIFETIME_USEC, which is also its value while nothing is evicted. It
 * falls with the share of time in which tasks wait for memory, and is 0 from READ_WINDOW_STALL_MAX
 * on.
 * - The ideal is at most 1/16 of the available memory and at most READ_WINDOW_LIMIT_BYTES.
 * - If the reads yield to all others (`idle`), a request of another process may wait at most
 *   READ_WINDOW_DELAY_USEC for the bytes in flight, so that ideal <= rate * delay. The result is at
 *   least READ_WINDOW_IDLE_BYTES: on a disk that seeks, a smaller request takes hardly less time,
 *   and the rate of a small window would make the window still smaller. The result is multiplied
 *   by the share of the requests in the device's queue that are ours. If the queue is not known,
 *   this share falls with the time in which others wait for I/O on any device. */

#include "base/macros.h"
#include "base/time-util.h"

#define READ_WINDOW_FIRST_BYTES (UINT64_C(16) << 10)
/* The paper's EXP_GROWTH_LIMIT and WINDOW_LIMIT: 64 and 512 pages of 4096 bytes. It has no value
 * for GROWTH_FACTOR. */
#define READ_WINDOW_EXP_GROWTH_LIMIT_BYTES (UINT64_C(256) << 10)
#define READ_WINDOW_GROWTH_FACTOR_BYTES    (UINT64_C(64) << 10)
#define READ_WINDOW_LIMIT_BYTES            (UINT64_C(2) << 20)
#define READ_WINDOW_LIFETIME_USEC          (60 * USEC_PER_SEC)
#define READ_WINDOW_STALL_MAX              10.0 /* percent of time in which tasks wait for memory */
#define READ_WINDOW_IO_STALL_MAX           20.0 /* percent of time in which others wait for I/O */
#define READ_WINDOW_DELAY_USEC             (5 * USEC_PER_MSEC)
#define READ_WINDOW_IDLE_BYTES             (UINT64_C(128) << 10)

typedef struct ReadSnapshot {
    usec_t now;              /* of any clock that never steps back */
    uint64_t position_bytes; /* what the reader has used since the first snapshot; if the reader
                                does not report it, what has arrived */
    /* The page cache of the machine or of the control group whose limit applies. The last two count
     * from any beginning. */
    uint64_t inactive_bytes, evicted_bytes, refaulted_bytes;
    uint64_t available_bytes; /* memory; 0: unknown */
    double memory_stall;      /* percent of time in which tasks wait for memory */
    bool memory_short, hot;   /* nothing may be read */
    /* Only with `idle` */
    bool idle;    /* the reads yield to all others */
    bool battery; /* on battery, where idle reads are not wanted */
    bool queue_known;
    uint32_t queue_requests, own_requests; /* in flight on the device, and ours of them */
    double io_stall;                       /* percent of time in which others wait for I/O */
} ReadSnapshot;

/* Decayed sums. */
typedef struct ReadAverage {
    double sec, used_bytes, inactive_byte_sec, lost_bytes;
} ReadAverage;

typedef struct ReadWindow {
    uint64_t window_bytes, ideal_bytes;
    double rate;     /* bytes per second; negative: not known yet */
    double lifetime; /* seconds */
    /* Internal */
    ReadAverage shorter, longer;
    ReadSnapshot last;
    bool begun;
} ReadWindow;

/* Updates the averages, the ideal and the window; called before each request. A zeroed ReadWindow
 * is a new one. The window begins with READ_WINDOW_FIRST_BYTES, doubles with each call until it has
 * READ_WINDOW_EXP_GROWTH_LIMIT_BYTES, and then grows by READ_WINDOW_GROWTH_FACTOR_BYTES. It never
 * exceeds the ideal, and falls to it at once. Returns the window in bytes; 0 if nothing may be read
 * now. */
uint64_t read_window_update(ReadWindow *w, const ReadSnapshot *s);
