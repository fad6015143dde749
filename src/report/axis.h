/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Scales for charts: round ticks, and their labels. Pure. */

#include "base/time-util.h"

#include <stdbool.h>
#include <stdint.h>

/* An axis from `from` to `to` that is `length` units long on the screen and begins at `origin`. A
 * negative length points upwards. */
typedef struct Axis {
    double from, to;
    double origin, length;
} Axis;

/* Returns the position of a value on the screen. Values beyond an end get the position of that end.
 */
double axis_place(const Axis *a, double value);

/* An axis of positions on a disk that draws the stretches without reads shorter. It is divided into
 * buckets of equal size. Zeroed is valid: no bucket is used. */
#define FOLD_BUCKETS 256U
typedef struct Fold {
    double from, to;
    double at[FOLD_BUCKETS + 1]; /* where each bucket begins on the axis, from 0 to 1 */
} Fold;

/* Computes the axis from `from` to `to`. used[i]: a position in bucket i is read. */
void fold_compute(Fold *f, double from, double to, const bool used[static FOLD_BUCKETS]);

/* Returns the bucket of a position. */
unsigned fold_bucket(double from, double to, double value);

/* fold_place() returns where a position is drawn on the axis, from 0 to 1. fold_value() is its
 * inverse: it returns the position that is drawn at `place`. */
double fold_place(const Fold *f, double value);
double fold_value(const Fold *f, double place);

/* Returns the distance between ticks: the smallest number of the form 1, 2 or 5 times a power of
 * ten that fits at most `n` times (n >= 1) between `from` and `to`. */
double axis_step(double from, double to, unsigned n);

/* Formats a number of seconds with as many decimals as the step needs: "2.5 s", "350 ms". Returns
 * buf. */
#define AXIS_LABEL_MAX 32
const char *axis_seconds(double seconds, double step, char buf[static AXIS_LABEL_MAX]);

/* Formats a number of bytes with a decimal unit: "1.5 GB". Returns buf. */
const char *axis_bytes(double bytes, char buf[static AXIS_LABEL_MAX]);

/* Formats a duration for a sentence: "2.5 s", "83 ms", "1 min 12 s". Returns buf. */
const char *axis_duration(usec_t t, char buf[static AXIS_LABEL_MAX]);
