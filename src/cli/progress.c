/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cli/progress.h"

#include "base/clock.h"
#include "base/macros.h"

#include <inttypes.h>
#include <string.h>

#define FIRST_AFTER (500 * USEC_PER_MSEC)
#define EVERY       (100 * USEC_PER_MSEC)
/* The remaining time is shown after this time, because earlier estimates vary too much. */
#define LEFT_AFTER USEC_PER_SEC
#define BAR_WIDTH  30

Progress progress_start(const char *what, bool quiet)
{
    const char *term = getenv("TERM");
    usec_t now = clock_now(CLOCK_MONOTONIC);

    return (Progress){
            .what = what,
            .terminal = !quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0,
            .start = now,
            .last = now,
    };
}

void progress_update(Progress *p, uint64_t done, uint64_t total)
{
    static const char full[] = "##############################";
    usec_t now;

    if (!p->terminal)
        return;
    now = clock_now(CLOCK_MONOTONIC);
    if (now - p->start < FIRST_AFTER || (p->shown && now - p->last < EVERY))
        return;
    if (total > 0) {
        double share = done >= total ? 1.0 : (double)done / (double)total;
        int bar = (int)(share * BAR_WIDTH);

        char left[FORMAT_TIMESPAN_MAX] = "";

        if (done > 0 && done < total && now - p->start >= LEFT_AFTER)
            format_timespan(left, sizeof(left),
                            (usec_t)((double)(now - p->start) * (1 - share) / share) /
                                    USEC_PER_SEC * USEC_PER_SEC);
        fprintf(stderr, "\r\033[K%s [%.*s%*s] %3d%%%s%s%s", p->what, bar, full, BAR_WIDTH - bar, "",
                (int)(share * 100), *left ? ", " : "", left, *left ? " left" : "");
    } else
        fprintf(stderr, "\r\033[K%s: %" PRIu64, p->what, done);
    fflush(stderr);
    p->last = now;
    p->shown = true;
}

void progress_done(Progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}
