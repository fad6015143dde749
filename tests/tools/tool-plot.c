/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* tool-plot <COMMANDS >SVG: draws timelines as headstart plot does. Each line is a command; times
 * are microseconds since the start of the timeline, places and lengths are bytes:
 *
 *     timeline USEC TITLE               begins a timeline of that length
 *     series 0|1|2 NAME                 names a series: grey, blue or orange
 *     read 0|1|2 USEC PLACE LENGTH
 *     mark USEC NAME
 *     note TEXT */

#include "report/timeline.h"

#include <err.h>
#include <inttypes.h>
#include <string.h>

#define TIMELINES_MAX 16
#define NAMES_MAX     64

static Timeline timelines[TIMELINES_MAX];
static size_t n_timelines;
/* Names of series and marks are borrowed by the timelines. */
static char *names[NAMES_MAX];
static size_t n_names;

static const char *keep(const char *name)
{
    if (n_names == NAMES_MAX || !(names[n_names] = strdup(name)))
        errx(EXIT_FAILURE, "too many names");
    return names[n_names++];
}

static void execute(const char *line)
{
    Timeline *t = n_timelines > 0 ? &timelines[n_timelines - 1] : NULL;
    TimelineRead r = {0};
    unsigned series;
    uint64_t at;
    int n = 0, failed = 0;

    if (sscanf(line, "timeline %" SCNu64 " %n", &at, &n) == 1 && n_timelines < TIMELINES_MAX) {
        timelines[n_timelines].duration = at;
        failed = timeline_set_title(&timelines[n_timelines++], "%s", line + n);
    } else if (!t)
        errx(EXIT_FAILURE, "%s: before the first timeline, or too many", line);
    else if (sscanf(line, "series %u %n", &series, &n) == 1 && series < _READ_SERIES_MAX)
        t->series_names[series] = keep(line + n);
    else if (sscanf(line, "read %u %" SCNu64 " %" SCNu64 " %" SCNu64, &series, &r.at, &r.place,
                    &r.length) == 4 &&
             series < _READ_SERIES_MAX) {
        r.series = (ReadSeries)series;
        r.bytes = r.length;
        failed = timeline_add_read(t, &r);
    } else if (sscanf(line, "mark %" SCNu64 " %n", &at, &n) == 1)
        timeline_add_mark(t, keep(line + n), at);
    else if (strncmp(line, "note ", 5) == 0)
        failed = timeline_add_note(t, "%s", line + 5);
    else
        errx(EXIT_FAILURE, "%s: no such command", line);
    if (failed < 0)
        errx(EXIT_FAILURE, "out of memory");
}

int main(void)
{
    _cleanup_markup_ Markup m = {0};
    _cleanup_free_ char *line = NULL, *text = NULL;
    size_t allocated = 0, size;

    while (getline(&line, &allocated, stdin) > 0) {
        line[strcspn(line, "\n")] = 0;
        execute(line);
    }
    timeline_document(&m, timelines, n_timelines, TIMELINE_WIDE);
    if (markup_finish(&m, &text, &size) < 0 || fwrite(text, 1, size, stdout) != size ||
        fflush(stdout) != 0)
        errx(EXIT_FAILURE, "cannot write");
    for (size_t i = 0; i < n_timelines; i++)
        timeline_done(&timelines[i]);
    for (size_t i = 0; i < n_names; i++)
        free(names[i]);
    return EXIT_SUCCESS;
}
