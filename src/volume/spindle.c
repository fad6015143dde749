/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/seeks.h"

/* A seek and half a turn: 8 ms at 15,000 turns a minute would be slow, 4 ms at 7,200 good. What
 * follows is in the disk's own buffer. Flash takes less than 1 ms to anywhere, SD cards now and
 * then more; across a network both take the same. */
#define PLACES_MIN    8U
#define ELSEWHERE_MIN (3 * USEC_PER_MSEC)
#define RATIO_MIN     4U

Spindle seeks_tell_spindle(const SeekTimes *t)
{
    if (t->n < PLACES_MIN)
        return SPINDLE_UNCLEAR;
    if (t->elsewhere < ELSEWHERE_MIN)
        return SPINDLE_NO;
    return t->elsewhere >= RATIO_MIN * t->next ? SPINDLE_YES : SPINDLE_UNCLEAR;
}
