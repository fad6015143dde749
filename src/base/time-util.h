/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The time type. Durations and instants are in microseconds. The name of an instant (`_boottime`,
 * `_realtime`) or its comment states its clock. */

#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef uint64_t usec_t;

#define USEC_INFINITY ((usec_t)UINT64_MAX)
#define USEC_PER_MSEC ((usec_t)1000)
#define USEC_PER_SEC  ((usec_t)1000000)
#define USEC_PER_HOUR (3600 * USEC_PER_SEC)
#define NSEC_PER_USEC UINT64_C(1000)
#define NSEC_PER_SEC  UINT64_C(1000000000)

/* Converts a duration or an instant for system calls. */
static inline struct timespec timespec_of(usec_t t)
{
    return (struct timespec){.tv_sec = (time_t)(t / USEC_PER_SEC),
                             .tv_nsec = (long)(t % USEC_PER_SEC * NSEC_PER_USEC)};
}

/* Returns the nanoseconds since 1970, to compare the times of files. The fields of the pack are
 * signed: they wrap after 2262. */
static inline uint64_t timespec_nsec(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * NSEC_PER_SEC + (uint64_t)t->tv_nsec;
}

/* Writes e.g. "812us", "3.2ms", "4.81s", "2min 3s", "7d 0h" into buf and returns buf. Pure. */
#define FORMAT_TIMESPAN_MAX 32
char *format_timespan(char *buf, size_t size, usec_t t);

/* Writes a byte count as "512B", "4.0K", "138.7M" (binary prefixes, as systemd) and returns buf. */
#define FORMAT_BYTES_MAX 16
char *format_bytes(char *buf, size_t size, uint64_t bytes);
