/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The events of one boot, login or start of an application over time: reads and their position on
 * the disk, applications, units, CPU and pressure, and the marks of the stage. They are drawn as
 * SVG. Pure.
 *
 * All times are since the start of the stage, or of the part of it that is drawn. If a series was
 * not recorded, a note takes its place. */

#include "base/ranges.h"
#include "report/markup.h"

/* The kinds of reads. */
typedef enum ReadSeries {
    READ_REPLAY,   /* headstart-replay read it */
    READ_PREPARED, /* an application opened it, and it was in the pack of the replay, or in the
                      launch set of the application */
    READ_DEMAND,   /* an application opened it, and it was not */
    _READ_SERIES_MAX,
} ReadSeries;

typedef struct TimelineRead {
    usec_t at;
    uint64_t place;  /* bytes on the device, or PHYSICAL_UNKNOWN */
    uint64_t length; /* contiguous bytes from `place` on */
    uint64_t bytes;  /* bytes that were read; more than `length` if they lie in several places */
    ReadSeries series;
} TimelineRead;

typedef struct TimelineSpan {
    char *name;
    usec_t start, end; /* end is USEC_INFINITY if the span is longer than the stage */
    uint64_t weight;   /* the heaviest spans are drawn */
} TimelineSpan;

typedef struct TimelineMark {
    const char *name; /* static */
    usec_t at;
} TimelineMark;

/* Shares of the time since the previous sample; below 0: unknown. */
typedef struct TimelineSample {
    usec_t at;
    double cpu;     /* of all processors */
    double waiting; /* tasks waited for I/O */
} TimelineSample;

#define TIMELINE_MARKS_MAX 8U
#define TIMELINE_NOTES_MAX 8U

typedef struct Timeline {
    char *title;
    usec_t duration;
    const char *series_names[_READ_SERIES_MAX]; /* for the legend; static */
    TimelineRead *reads;                        /* in the order of time within a series */
    size_t n_reads, allocated_reads;
    TimelineSpan *applications;
    size_t n_applications, allocated_applications;
    TimelineSpan *units;
    size_t n_units, allocated_units;
    TimelineSample *samples; /* in the order of time */
    size_t n_samples, allocated_samples;
    TimelineMark marks[TIMELINE_MARKS_MAX];
    size_t n_marks;
    char *notes[TIMELINE_NOTES_MAX]; /* the missing parts, with the reason */
    size_t n_notes;
} Timeline;

void timeline_done(Timeline *t);
#define _cleanup_timeline_ _cleanup_(timeline_done)

/* Each of these functions copies its strings. Returns 0 or -ENOMEM. */
int timeline_set_title(Timeline *t, const char *format, ...) _printf_(2, 3);
int timeline_add_read(Timeline *t, const TimelineRead *r);
int timeline_add_application(Timeline *t, const TimelineSpan *s);
int timeline_add_unit(Timeline *t, const TimelineSpan *s);
int timeline_add_sample(Timeline *t, const TimelineSample *s);
/* Adds a note, unless there are TIMELINE_NOTES_MAX notes already. */
int timeline_add_note(Timeline *t, const char *format, ...) _printf_(2, 3);
/* Adds a mark if its time is within the duration and there are fewer than TIMELINE_MARKS_MAX marks.
 * Marks are kept in the order of time. */
void timeline_add_mark(Timeline *t, const char *name, usec_t at);

/* Returns the number of reads of a series, and their total size in *ret_bytes. */
size_t timeline_count(const Timeline *t, ReadSeries s, uint64_t *ret_bytes);

/* Returns true if the place on the disk of at least one read is known. */
bool timeline_has_places(const Timeline *t);

/* The widths for which a timeline is drawn: of a page, and of a telephone. */
#define TIMELINE_WIDE   960U
#define TIMELINE_NARROW 340U

typedef struct TimelineStyle {
    unsigned width; /* in units of the picture; text is 12 units high */
    const char *id; /* prefix of the ids of elements, so that a page can contain several pictures */
    bool no_names;  /* leave applications and units out, because they show what other users run */
    usec_t duration; /* length of the axis, so that pictures are comparable; 0: the timeline's own
                      */
    double top;      /* vertical position in the document */
    const struct Fold *places; /* axis of the positions (axis.h); NULL: the timeline's own */
    bool part; /* it is part of a document, in which it gets a position, a size and a heading */
} TimelineStyle;

/* Draws the timeline as one <svg> element. */
void timeline_draw(Markup *m, const Timeline *t, const TimelineStyle *s);

/* Draws timelines below one another, with the same axis of time, as one SVG document that is
 * `width` units wide. */
void timeline_document(Markup *m, const Timeline *timelines, size_t n, unsigned width);

/* Writes the content of the picture as tables, for readers who cannot see it: sums for each tenth
 * of the time, and the applications and units that are drawn. */
void timeline_tables(Markup *m, const Timeline *t, const TimelineStyle *s);
