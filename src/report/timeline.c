/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/timeline.h"

#include <string.h>

static void free_spans(TimelineSpan *spans, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(spans[i].name);
    free(spans);
}

void timeline_done(Timeline *t)
{
    free(t->title);
    free(t->reads);
    free_spans(t->applications, t->n_applications);
    free_spans(t->units, t->n_units);
    free(t->samples);
    for (size_t i = 0; i < t->n_notes; i++)
        free(t->notes[i]);
    *t = (Timeline){0};
}

int timeline_set_title(Timeline *t, const char *format, ...)
{
    char *title;
    va_list ap;
    int n;

    va_start(ap, format);
    n = vasprintf(&title, format, ap);
    va_end(ap);
    if (n < 0)
        return -ENOMEM;
    free(t->title);
    t->title = title;
    return 0;
}

int timeline_add_note(Timeline *t, const char *format, ...)
{
    va_list ap;
    int n;

    if (t->n_notes == TIMELINE_NOTES_MAX)
        return 0;
    va_start(ap, format);
    n = vasprintf(&t->notes[t->n_notes], format, ap);
    va_end(ap);
    t->n_notes += n >= 0;
    return n < 0 ? -ENOMEM : 0;
}

int timeline_add_read(Timeline *t, const TimelineRead *r)
{
    if (grow_array(&t->reads, &t->allocated_reads, t->n_reads + 1, sizeof(*r)) < 0)
        return -ENOMEM;
    t->reads[t->n_reads++] = *r;
    return 0;
}

static int add_span(TimelineSpan **spans, size_t *n, size_t *allocated, const TimelineSpan *s)
{
    char *name;

    if (grow_array(spans, allocated, *n + 1, sizeof(*s)) < 0)
        return -ENOMEM;
    name = strdup(s->name);
    if (!name)
        return -ENOMEM;
    (*spans)[*n] = *s;
    (*spans)[(*n)++].name = name;
    return 0;
}

int timeline_add_application(Timeline *t, const TimelineSpan *s)
{
    return add_span(&t->applications, &t->n_applications, &t->allocated_applications, s);
}

int timeline_add_unit(Timeline *t, const TimelineSpan *s)
{
    return add_span(&t->units, &t->n_units, &t->allocated_units, s);
}

int timeline_add_sample(Timeline *t, const TimelineSample *s)
{
    if (grow_array(&t->samples, &t->allocated_samples, t->n_samples + 1, sizeof(*s)) < 0)
        return -ENOMEM;
    t->samples[t->n_samples++] = *s;
    return 0;
}

void timeline_add_mark(Timeline *t, const char *name, usec_t at)
{
    size_t i = t->n_marks;

    if (at > t->duration || t->n_marks == TIMELINE_MARKS_MAX)
        return;
    for (; i > 0 && t->marks[i - 1].at > at; i--)
        t->marks[i] = t->marks[i - 1];
    t->marks[i] = (TimelineMark){name, at};
    t->n_marks++;
}

size_t timeline_count(const Timeline *t, ReadSeries s, uint64_t *ret_bytes)
{
    size_t n = 0;

    *ret_bytes = 0;
    for (size_t i = 0; i < t->n_reads; i++)
        if (t->reads[i].series == s) {
            *ret_bytes += t->reads[i].bytes;
            n++;
        }
    return n;
}

bool timeline_has_places(const Timeline *t)
{
    for (size_t i = 0; i < t->n_reads; i++)
        if (t->reads[i].place != PHYSICAL_UNKNOWN)
            return true;
    return false;
}
