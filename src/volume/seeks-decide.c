/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/seeks.h"

/* A seek and half a rotation take 8 ms on a slow disk at 15,000 rpm and 4 ms on a good one at
 * 7,200 rpm. The block that follows is already in the disk's buffer. Flash reads any place in less
 * than 1 ms, SD cards sometimes take longer. Across a network both reads take equally long. */
#define PLACES_MIN    8U
#define ELSEWHERE_MIN (3 * USEC_PER_MSEC)
#define RATIO_MIN     4U

SeeksSlowly seeks_decide(const SeekTimes *t)
{
    if (t->n < PLACES_MIN)
        return SEEKS_SLOWLY_UNCLEAR;
    if (t->elsewhere < ELSEWHERE_MIN)
        return SEEKS_SLOWLY_NO;
    return t->elsewhere >= RATIO_MIN * t->next ? SEEKS_SLOWLY_YES : SEEKS_SLOWLY_UNCLEAR;
}
