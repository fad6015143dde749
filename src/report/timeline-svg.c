/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Draws a timeline: panels below one another with one axis of time. Over 500 lines in one file: all
 * panels share the axis, the layout and the legend. */

#include "report/axis.h"
#include "report/style.h"
#include "report/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define TEXT_SIZE     12
#define PLACE_HEIGHT  260
#define SAMPLE_HEIGHT 72
#define ROW_HEIGHT    20
#define ROW_HEIGHT_2  34 /* of a row with its name above the bar */
#define ROWS_MAX      14U
#define PANEL_GAP     34
#define AXIS_HEIGHT   40
#define HEAD_HEIGHT   72 /* title, legend and the name of the first panel */
#define TITLE_HEIGHT  22 /* left out in a page, which has its own title */
#define LEGEND_RISE   34 /* height of the legend's last line above the first panel */
#define LEFT_WIDE     72
#define LEFT_NARROW   8
#define RIGHT         14
#define NAME_WIDE     22U /* longest name beside a bar, in characters */
#define TENTHS        10U

static const char *const series_class[_READ_SERIES_MAX] = {
        [READ_REPLAY] = "replay",
        [READ_PREPARED] = "prepared",
        [READ_DEMAND] = "demand",
};

/* The positions of the parts of a picture. */
typedef struct Layout {
    bool narrow;
    usec_t duration; /* of the timeline; the axis may be longer */
    double width, height;
    double left, names; /* left edge of the panels, and the edge that a panel with names needs */
    Axis time, time_names;
    Fold fold;   /* positions on the disk */
    bool places; /* at least one read has a position */
    double place_top, sample_top, application_top, unit_top, axis_top;
    const TimelineSpan *applications[ROWS_MAX], *units[ROWS_MAX];
    size_t n_applications, n_units;
} Layout;

static int by_start(const void *a, const void *b)
{
    const TimelineSpan *x = *(TimelineSpan *const *)a, *y = *(TimelineSpan *const *)b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool is_heavier(const TimelineSpan *a, const TimelineSpan *b)
{
    return a->weight != b->weight ? a->weight > b->weight : strcmp(a->name, b->name) < 0;
}

/* Chooses the heaviest spans and sorts them by their start. */
static size_t choose_rows(const TimelineSpan *spans, size_t n, const TimelineSpan **rows)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        size_t at = k;

        while (at > 0 && is_heavier(&spans[i], rows[at - 1]))
            at--;
        if (at == ROWS_MAX)
            continue;
        k = MIN(k + 1, (size_t)ROWS_MAX);
        memmove(rows + at + 1, rows + at, (k - at - 1) * sizeof(const TimelineSpan *));
        rows[at] = &spans[i];
    }
    if (k > 0)
        qsort(rows, k, sizeof(const TimelineSpan *), by_start);
    return k;
}

static bool has_place(const TimelineRead *r)
{
    return r->place != PHYSICAL_UNKNOWN;
}

/* Computes one axis for the positions of all timelines. Returns false if no position is known. */
static bool find_places(const Timeline *timelines, size_t n, Fold *ret)
{
    bool used[FOLD_BUCKETS] = {0};
    double first = INFINITY, last = 0;

    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < timelines[k].n_reads; i++) {
            const TimelineRead *r = &timelines[k].reads[i];

            if (has_place(r)) {
                first = fmin(first, (double)r->place);
                last = fmax(last, (double)r->place + (double)r->length);
            }
        }
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < timelines[k].n_reads; i++)
            if (has_place(&timelines[k].reads[i]))
                used[fold_bucket(first, last, (double)timelines[k].reads[i].place)] = true;
    fold_compute(ret, first, last, used);
    return first <= last;
}

static double row_height(const Layout *l)
{
    return l->narrow ? ROW_HEIGHT_2 : ROW_HEIGHT;
}

static Layout compute_layout(const Timeline *t, const TimelineStyle *s)
{
    Layout l = {.narrow = s->width < 600, .duration = t->duration, .width = s->width};
    double seconds = (double)(s->duration > 0 ? s->duration : t->duration) / USEC_PER_SEC;
    double at = (s->part ? HEAD_HEIGHT : HEAD_HEIGHT - TITLE_HEIGHT) + (l.narrow ? 2 * 18 : 0);

    l.left = l.narrow ? LEFT_NARROW : LEFT_WIDE;
    l.names = l.narrow ? l.left : LEFT_WIDE + 100;
    l.places = find_places(t, 1, &l.fold);
    if (s->places)
        l.fold = *s->places;
    if (!s->no_names) {
        l.n_applications = choose_rows(t->applications, t->n_applications, l.applications);
        l.n_units = choose_rows(t->units, t->n_units, l.units);
    }
    /* All panels have one axis of time, so that an application is drawn below its reads. */
    if (l.n_applications > 0 || l.n_units > 0)
        l.left = l.names;
    l.time = (Axis){0, seconds > 0 ? seconds : 1, l.left, l.width - RIGHT - l.left};
    l.place_top = at;
    at += l.places ? PLACE_HEIGHT + PANEL_GAP : 0;
    l.sample_top = at;
    at += t->n_samples > 1 ? SAMPLE_HEIGHT + PANEL_GAP : 0;
    l.application_top = at;
    at += l.n_applications > 0 ? (double)l.n_applications * row_height(&l) + PANEL_GAP : 0;
    l.unit_top = at;
    at += l.n_units > 0 ? (double)l.n_units * row_height(&l) + PANEL_GAP : 0;
    l.axis_top = at - PANEL_GAP + 6;
    l.height = l.axis_top + AXIS_HEIGHT;
    return l;
}

/* --- text ------------------------------------------------------------------------------------- */

static void add_description(Markup *m, const Timeline *t, const TimelineStyle *s)
{
    char duration[AXIS_LABEL_MAX], size[AXIS_LABEL_MAX];

    markup_open(m, "title");
    markup_attributef(m, "id", "%s-title", s->id);
    markup_text(m, t->title);
    markup_close(m);
    markup_open(m, "desc");
    markup_attributef(m, "id", "%s-desc", s->id);
    markup_textf(m, "Reads over time and place on the disk, in %s.",
                 axis_duration(t->duration, duration));
    for (ReadSeries k = 0; k < _READ_SERIES_MAX; k++) {
        uint64_t bytes;
        size_t n = timeline_count(t, k, &bytes);

        if (t->series_names[k] && n > 0)
            markup_textf(m, " %s: %zu, %s.", t->series_names[k], n,
                         axis_bytes((double)bytes, size));
    }
    for (size_t i = 0; i < t->n_marks; i++)
        markup_textf(m, " %s at %s.", t->marks[i].name, axis_duration(t->marks[i].at, duration));
    for (size_t i = 0; i < t->n_notes; i++)
        markup_textf(m, " %s.", t->notes[i]);
    markup_close(m);
}

static void add_legend(Markup *m, const Timeline *t, const Layout *l)
{
    double x = l->left, y = l->place_top - LEGEND_RISE - (l->narrow ? 2 * 18 : 0);

    for (ReadSeries k = 0; k < _READ_SERIES_MAX; k++) {
        uint64_t bytes;

        if (!t->series_names[k] || timeline_count(t, k, &bytes) == 0)
            continue;
        markup_open(m, "path");
        markup_attribute(m, "class", series_class[k]);
        markup_attributef(m, "d", "M%.6g %.6gh10", x, y - 4);
        markup_close(m);
        markup_label(m, x + 16, y, "label", t->series_names[k]);
        if (l->narrow)
            y += 18;
        else
            x += 40 + 6.6 * (double)strlen(t->series_names[k]);
    }
}

/* --- panels ----------------------------------------------------------------------------------- */

static void add_panel(Markup *m, const Layout *l, double top, double height, const char *name)
{
    markup_open(m, "path");
    markup_attribute(m, "class", "frame");
    markup_attributef(m, "d", "M%.6g %.6gh%.6g", l->left, top + height, l->time.length);
    markup_close(m);
    markup_label(m, l->left, top - 7, "panel", name);
}

/* Each series has at most one mark for a short read in each cell of a grid, so that many small
 * reads do not make the picture large. mark_cell() notes that a cell has a mark; it returns false
 * if the cell had one already. */
#define GRID 2.0
static bool mark_cell(uint8_t *cells, size_t columns, size_t column, size_t row)
{
    uint8_t *c = &cells[row * columns + column];

    if (*c)
        return false;
    *c = 1;
    return true;
}

static double place_y(const Layout *l, double place)
{
    return PLACE_HEIGHT * (1 - fold_place(&l->fold, place));
}

/* Adds the mark of a read to the path. The mark of a read that is less than two cells high is left
 * out if its cell has a mark already. */
static void add_read(Markup *path, const TimelineRead *r, const Layout *l, uint8_t *cells,
                     size_t columns)
{
    double x = floor(axis_place(&l->time, (double)r->at / USEC_PER_SEC) / GRID);
    double y = floor(place_y(l, (double)r->place) / GRID);
    double end = floor(place_y(l, (double)r->place + (double)r->length) / GRID);
    bool tall = y - end >= 2;

    if (!tall && !mark_cell(cells, columns, (size_t)x, (size_t)y))
        return;
    markup_textf(path, tall ? "M%.6g %.6gh2V%.6gh-2z" : "M%.6g %.6gh3", x * GRID,
                 l->place_top + y * GRID, l->place_top + end * GRID);
}

static void add_series(Markup *m, const Timeline *t, const Layout *l, ReadSeries series)
{
    size_t columns = (size_t)(l->width / GRID) + 1, rows = (size_t)(PLACE_HEIGHT / GRID) + 2;
    _cleanup_free_ uint8_t *cells = calloc(columns, rows);
    _cleanup_markup_ Markup path = {0};

    for (size_t i = 0; cells && i < t->n_reads; i++)
        if (t->reads[i].series == series && has_place(&t->reads[i]))
            add_read(&path, &t->reads[i], l, cells, columns);
    if (!cells || path.error < 0)
        m->error = -ENOMEM;
    if (!path.text)
        return;
    markup_open(m, "path");
    markup_attribute(m, "class", series_class[series]);
    markup_attribute(m, "d", path.text);
    markup_close(m);
}

#define PLACE_TICKS 6

static double place_tick_y(const Layout *l, unsigned i)
{
    return l->place_top + PLACE_HEIGHT * i / (PLACE_TICKS - 1.0);
}

static void add_places(Markup *m, const Timeline *t, const Layout *l)
{
    char label[AXIS_LABEL_MAX];

    add_panel(m, l, l->place_top, PLACE_HEIGHT,
              l->narrow ? "Place on the disk"
                        : "Place on the disk (stretches without reads are shortened)");
    for (unsigned i = 0; i < PLACE_TICKS; i++) {
        markup_open(m, "path");
        markup_attribute(m, "class", "grid");
        markup_attributef(m, "d", "M%.6g %.6gh%.6g", l->left, place_tick_y(l, i), l->time.length);
        markup_close(m);
    }
    for (ReadSeries k = 0; k < _READ_SERIES_MAX; k++)
        add_series(m, t, l, k);
    /* In a narrow picture the labels are within the panel, and the uppermost label is left out,
     * because the names of marks are at the top. */
    for (unsigned i = l->narrow ? 1 : 0; i < PLACE_TICKS; i++) {
        double y = place_tick_y(l, i);

        axis_bytes(fold_value(&l->fold, 1 - i / (PLACE_TICKS - 1.0)), label);
        markup_label(m, l->narrow ? l->left + 2 : l->left - 8, l->narrow ? y - 3 : y + 4,
                     l->narrow ? "tick inside" : "tick end", label);
    }
}

static double sample_value(const TimelineSample *s, bool waiting)
{
    return waiting ? s->waiting : s->cpu;
}

/* Draws one value over time, as steps. */
static void add_curve(Markup *m, const Timeline *t, const Layout *l, const char *class,
                      bool waiting)
{
    Axis share = {0, 1, l->sample_top + SAMPLE_HEIGHT, -SAMPLE_HEIGHT};
    _cleanup_markup_ Markup path = {0};
    bool drawing = false;

    for (size_t i = 1; i < t->n_samples; i++) {
        double v = sample_value(&t->samples[i], waiting);

        if (v < 0) {
            drawing = false;
            continue;
        }
        if (!drawing)
            markup_textf(&path, "M%.6g %.6g",
                         axis_place(&l->time, (double)t->samples[i - 1].at / USEC_PER_SEC),
                         axis_place(&share, v));
        markup_textf(&path, "V%.5gH%.6g", axis_place(&share, v),
                     axis_place(&l->time, (double)t->samples[i].at / USEC_PER_SEC));
        drawing = true;
    }
    m->error = path.error < 0 ? path.error : m->error;
    markup_open(m, "path");
    markup_attribute(m, "class", class);
    markup_attribute(m, "d", path.text ? path.text : "M0 0");
    markup_close(m);
}

static void add_samples(Markup *m, const Timeline *t, const Layout *l)
{
    add_panel(m, l, l->sample_top, SAMPLE_HEIGHT,
              l->narrow ? "CPU (line), waiting for I/O (dashes)"
                        : "CPU busy (line), tasks waiting for I/O (dashes)");
    if (!l->narrow) {
        markup_label(m, l->left - 8, l->sample_top + 6, "tick end", "100 %");
        markup_label(m, l->left - 8, l->sample_top + SAMPLE_HEIGHT + 2, "tick end", "0 %");
    }
    add_curve(m, t, l, "cpu", false);
    add_curve(m, t, l, "waiting", true);
}

#define SERVICE_SUFFIX ".service"

/* Writes a name of at most `max` characters. A longer name of a unit first loses the suffix
 * ".service", which systemctl adds by itself. */
static void add_name(Markup *m, const char *name, size_t max)
{
    size_t n = strlen(name), suffix = strlen(SERVICE_SUFFIX);
    char copy[256];

    if (n > max && n > suffix && n < sizeof(copy) &&
        strcmp(name + n - suffix, SERVICE_SUFFIX) == 0) {
        memcpy(copy, name, n - suffix);
        copy[n - suffix] = 0;
        name = copy;
    }
    markup_name(m, name, max);
}

static void add_row(Markup *m, const Layout *l, const TimelineSpan *s, double y, const char *class)
{
    double from = axis_place(&l->time, (double)s->start / USEC_PER_SEC);
    double to = axis_place(&l->time, (double)MIN(s->end, l->duration) / USEC_PER_SEC);

    markup_open(m, "rect");
    markup_attribute(m, "class", class);
    markup_number(m, "x", from);
    markup_number(m, "y", l->narrow ? y + 18 : y + 5);
    markup_number(m, "width", fmax(to - from, 2));
    markup_number(m, "height", 10);
    markup_attribute(m, "rx", "2");
    markup_close(m);
    markup_open(m, "text");
    markup_number(m, "x", l->narrow ? l->left + 3 : l->left - 8);
    markup_number(m, "y", y + 14);
    markup_attribute(m, "class", l->narrow ? "label inside" : "label end");
    add_name(m, s->name, l->narrow ? 2 * NAME_WIDE : NAME_WIDE);
    markup_close(m);
}

static void add_rows(Markup *m, const Layout *l, const TimelineSpan *const *rows, size_t n,
                     double top, const char *name, const char *class)
{
    if (n == 0)
        return;
    add_panel(m, l, top, (double)n * row_height(l), name);
    for (size_t i = 0; i < n; i++)
        add_row(m, l, rows[i], top + (double)i * row_height(l), class);
}

static void add_time_axis(Markup *m, const Layout *l)
{
    double step = axis_step(0, l->time.to, l->narrow ? 5 : 10);
    char label[AXIS_LABEL_MAX];

    for (unsigned i = 0; i * step <= l->time.to * (1 + 1e-9); i++) {
        double v = i * step, x = axis_place(&l->time, v);
        bool last = x > l->width - 24;

        markup_open(m, "path");
        markup_attribute(m, "class", "grid");
        markup_attributef(m, "d", "M%.6g %.6gV%.6g", x, l->place_top, l->axis_top);
        markup_close(m);
        markup_label(m, last ? l->width - 2 : x, l->axis_top + 16,
                     last                  ? "tick end"
                     : v > 0 || !l->narrow ? "tick middle"
                                           : "tick",
                     axis_seconds(v, step, label));
    }
}

/* The number of rows in which the names of marks are written, so that they do not cover one
 * another. */
#define MARK_ROWS 4U

static void add_marks(Markup *m, const Timeline *t, const Layout *l)
{
    double ends[MARK_ROWS] = {0};

    for (size_t i = 0; i < t->n_marks; i++) {
        double x = axis_place(&l->time, (double)t->marks[i].at / USEC_PER_SEC);
        double width = 6.8 * (double)strlen(t->marks[i].name) + 8;
        bool left = x + width > l->width - RIGHT;
        double from = left ? x - width : x;
        unsigned row = 0;

        while (row + 1 < MARK_ROWS && from < ends[row])
            row++;
        ends[row] = fmax(ends[row], from + width);
        markup_open(m, "path");
        markup_attribute(m, "class", "mark");
        markup_attributef(m, "d", "M%.6g %.6gV%.6g", x, l->place_top, l->axis_top);
        markup_close(m);
        markup_label(m, left ? x - 4 : x + 4, l->place_top + 14 + 15 * row,
                     left ? "mark-name end" : "mark-name", t->marks[i].name);
    }
}

void timeline_draw(Markup *m, const Timeline *t, const TimelineStyle *s)
{
    Layout l = compute_layout(t, s);

    markup_open(m, "svg");
    markup_attribute(m, "xmlns", "http://www.w3.org/2000/svg");
    markup_attributef(m, "viewBox", "0 0 %u %.6g", s->width, l.height);
    if (s->part) {
        markup_number(m, "y", s->top);
        markup_attributef(m, "width", "%u", s->width);
        markup_number(m, "height", l.height);
    }
    markup_attribute(m, "class", "chart");
    markup_attribute(m, "role", "img");
    markup_attributef(m, "aria-labelledby", "%s-title %s-desc", s->id, s->id);
    add_description(m, t, s);
    if (s->part)
        markup_label(m, LEFT_NARROW, 18, "heading", t->title);
    if (l.places)
        add_legend(m, t, &l);
    add_time_axis(m, &l);
    if (l.places)
        add_places(m, t, &l);
    if (t->n_samples > 1)
        add_samples(m, t, &l);
    add_rows(m, &l, l.applications, l.n_applications, l.application_top, "Applications",
             "application");
    add_rows(m, &l, l.units, l.n_units, l.unit_top, "Units", "unit");
    add_marks(m, t, &l);
    markup_close(m);
}

#define DOCUMENT_MARGIN 12
#define NOTE_HEIGHT     18
#define NOTE_CHARACTER  6.2 /* width of a character */

/* Returns the length of the next line of a note: at most `max` characters, cut at a space if there
 * is one.
 */
static size_t line_length(const char *note, size_t max)
{
    size_t n = strlen(note);

    if (n <= max)
        return n;
    for (n = max; n > 0 && note[n] != ' ';)
        n--;
    return n > 0 ? n : max;
}

/* Lists below the timeline what is missing (if `m` is NULL, it only measures the list). Returns the
 * vertical position below the list. */
static double add_notes(Markup *m, const Timeline *t, unsigned width, double y)
{
    size_t max = (size_t)((width - 2 * LEFT_NARROW) / NOTE_CHARACTER);

    for (size_t i = 0; i < t->n_notes; i++)
        for (const char *at = t->notes[i]; *at;) {
            size_t n = line_length(at, max);

            y += NOTE_HEIGHT;
            if (m) {
                markup_open(m, "text");
                markup_number(m, "x", LEFT_NARROW);
                markup_number(m, "y", y);
                markup_attribute(m, "class", "tick");
                markup_textf(m, "%.*s%s", (int)n, at, at[n] ? "" : ".");
                markup_close(m);
            }
            at += n + (at[n] == ' ');
        }
    return y;
}

void timeline_document(Markup *m, const Timeline *timelines, size_t n, unsigned width)
{
    TimelineStyle s = {.width = width, .part = true};
    double height = DOCUMENT_MARGIN;
    char id[32];
    Fold places;

    if (find_places(timelines, n, &places))
        s.places = &places;
    for (size_t i = 0; i < n; i++)
        s.duration = MAX(s.duration, timelines[i].duration);
    for (size_t i = 0; i < n; i++)
        height = add_notes(NULL, &timelines[i], width,
                           height + compute_layout(&timelines[i], &s).height) +
                 DOCUMENT_MARGIN;
    markup_open(m, "svg");
    markup_attribute(m, "xmlns", "http://www.w3.org/2000/svg");
    markup_attributef(m, "viewBox", "0 0 %u %.6g", width, height);
    markup_attributef(m, "width", "%u", width);
    markup_number(m, "height", height);
    markup_attribute(m, "class", "chart");
    markup_open(m, "style");
    markup_literal(m, STYLE_CHART);
    markup_close(m);
    markup_open(m, "rect");
    markup_attribute(m, "class", "paper");
    markup_attribute(m, "width", "100%");
    markup_attribute(m, "height", "100%");
    markup_close(m);
    s.top = DOCUMENT_MARGIN;
    for (size_t i = 0; i < n; i++) {
        snprintf(id, sizeof(id), "timeline-%zu", i + 1);
        s.id = id;
        timeline_draw(m, &timelines[i], &s);
        s.top = add_notes(m, &timelines[i], width,
                          s.top + compute_layout(&timelines[i], &s).height) +
                DOCUMENT_MARGIN;
    }
    markup_close(m);
}

/* --- tables ----------------------------------------------------------------------------------- */

static void add_header(Markup *m, const char *scope, const char *text)
{
    markup_open(m, "th");
    markup_attribute(m, "scope", scope);
    markup_text(m, text);
    markup_close(m);
}

static void add_tenth(Markup *m, const Timeline *t, unsigned i)
{
    usec_t from = t->duration * i / TENTHS, to = t->duration * (i + 1) / TENTHS;
    char a[AXIS_LABEL_MAX], b[AXIS_LABEL_MAX];

    markup_open(m, "tr");
    markup_open(m, "th");
    markup_attribute(m, "scope", "row");
    markup_textf(m, "%s to %s", axis_duration(from, a), axis_duration(to, b));
    markup_close(m);
    for (ReadSeries k = 0; k < _READ_SERIES_MAX; k++) {
        uint64_t n = 0, bytes = 0;

        if (!t->series_names[k])
            continue;
        for (size_t r = 0; r < t->n_reads; r++)
            if (t->reads[r].series == k && t->reads[r].at >= from &&
                (t->reads[r].at < to || i == TENTHS - 1)) {
                bytes += t->reads[r].bytes;
                n++;
            }
        markup_element(m, "td", NULL, "%" PRIu64, n);
        markup_element(m, "td", NULL, "%s", axis_bytes((double)bytes, a));
    }
    markup_close(m);
}

static void add_span_table(Markup *m, const char *caption, const TimelineSpan *const *rows,
                           size_t n)
{
    char label[AXIS_LABEL_MAX];

    if (n == 0)
        return;
    markup_open(m, "table");
    markup_element(m, "caption", NULL, "%s", caption);
    markup_open(m, "thead");
    markup_open(m, "tr");
    add_header(m, "col", "Name");
    add_header(m, "col", "Started after");
    markup_close(m);
    markup_close(m);
    markup_open(m, "tbody");
    for (size_t i = 0; i < n; i++) {
        markup_open(m, "tr");
        markup_open(m, "th");
        markup_attribute(m, "scope", "row");
        markup_name(m, rows[i]->name, 120);
        markup_close(m);
        markup_element(m, "td", NULL, "%s", axis_duration(rows[i]->start, label));
        markup_close(m);
    }
    markup_close(m);
    markup_close(m);
}

void timeline_tables(Markup *m, const Timeline *t, const TimelineStyle *s)
{
    Layout l = compute_layout(t, s);

    markup_open(m, "table");
    markup_element(m, "caption", NULL, "%s: reads in each tenth of the time", t->title);
    markup_open(m, "thead");
    markup_open(m, "tr");
    add_header(m, "col", "Time");
    for (ReadSeries k = 0; k < _READ_SERIES_MAX; k++)
        if (t->series_names[k]) {
            add_header(m, "col", t->series_names[k]);
            add_header(m, "col", "Bytes");
        }
    markup_close(m);
    markup_close(m);
    markup_open(m, "tbody");
    for (unsigned i = 0; i < TENTHS; i++)
        add_tenth(m, t, i);
    markup_close(m);
    markup_close(m);
    add_span_table(m, "Applications in the picture", l.applications, l.n_applications);
    add_span_table(m, "Units in the picture", l.units, l.n_units);
}
