/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/time-util.h"

#include <inttypes.h>
#include <stdio.h>

char *format_timespan(char *buf, size_t size, usec_t t)
{
    if (t == USEC_INFINITY)
        snprintf(buf, size, "infinity");
    else if (t < USEC_PER_MSEC)
        snprintf(buf, size, "%" PRIu64 "us", t);
    else if (t < USEC_PER_SEC)
        snprintf(buf, size, "%.1fms", (double)t / 1e3);
    else if (t < 60 * USEC_PER_SEC)
        snprintf(buf, size, "%.2fs", (double)t / 1e6);
    else if (t < USEC_PER_HOUR)
        snprintf(buf, size, "%" PRIu64 "min %" PRIu64 "s", t / (60 * USEC_PER_SEC),
                 t / USEC_PER_SEC % 60);
    else if (t < 24 * USEC_PER_HOUR)
        snprintf(buf, size, "%" PRIu64 "h %" PRIu64 "min", t / USEC_PER_HOUR,
                 t / (60 * USEC_PER_SEC) % 60);
    else
        snprintf(buf, size, "%" PRIu64 "d %" PRIu64 "h", t / (24 * USEC_PER_HOUR),
                 t / USEC_PER_HOUR % 24);
    return buf;
}

char *format_bytes(char *buf, size_t size, uint64_t bytes)
{
    static const char units[] = "KMGTPE";
    double v = (double)bytes;
    int i = -1;

    if (bytes < 1024) {
        snprintf(buf, size, "%" PRIu64 "B", bytes);
        return buf;
    }
    while (v >= 1023.95 && i < (int)sizeof(units) - 2) {
        v /= 1024;
        i++;
    }
    snprintf(buf, size, "%.1f%c", v, units[i]);
    return buf;
}
