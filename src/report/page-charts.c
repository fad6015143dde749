/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The charts of the report: sessions over time, predicted and observed shares, and the chains. */

#include "report/page-charts.h"

#include "base/text.h"
#include "report/axis.h"
#include "report/page-elements.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define SESSIONS_DRAWN  400U
#define SESSIONS_LISTED 12U
#define CHART_HEIGHT    220
#define LEFT            46
#define RIGHT           10
#define TOP             10
#define BOTTOM          34
#define LEGEND_BELOW    14 /* of a chart of sessions: height of the legend below the dates */

static const char *const stage_words[] = {"boot", "login"};

/* --- sessions --------------------------------------------------------------------------------- */

/* The sessions that the chart shows: the newest sessions of a stage, without those that the
 * comparison leaves out. */
typedef struct Drawn {
    const SessionRecord *items[SESSIONS_DRAWN];
    size_t n;
    double top;      /* seconds at the upper edge of the chart */
    size_t n_beyond; /* sessions that took longer; their marks are at the upper edge */
} Drawn;

/* A session that took longer than this many times the median of its group does not set the scale:
 * for example a boot that waited for a passphrase. */
#define SCALE_MEDIANS 3.0

/* Returns the time that the comparison uses. */
static double seconds_of(const SessionRecord *s)
{
    return (double)session_compared_usec(s) / USEC_PER_SEC;
}

static int by_number(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Returns the median time of the sessions with or without replay; 0: there is none. */
static double median_of(const Drawn *d, bool replayed)
{
    double v[SESSIONS_DRAWN];
    size_t n = 0;

    for (size_t i = 0; i < d->n; i++)
        if (session_was_replayed(d->items[i]) == replayed)
            v[n++] = seconds_of(d->items[i]);
    if (n == 0)
        return 0;
    qsort(v, n, sizeof(*v), by_number);
    return v[n / 2];
}

static void choose_scale(Drawn *d)
{
    double limit = SCALE_MEDIANS * fmax(median_of(d, true), median_of(d, false));

    for (size_t i = 0; i < d->n; i++) {
        double seconds = seconds_of(d->items[i]);

        d->n_beyond += seconds > limit;
        d->top = fmax(d->top, fmin(seconds * 1.05, limit));
    }
}

static void choose(const ReportPage *p, Stage stage, Drawn *ret)
{
    size_t begin = p->n_sessions, n = 0;

    *ret = (Drawn){0};
    while (begin > 0 && n < SESSIONS_DRAWN) {
        const SessionRecord *s = &p->sessions[--begin];

        n += s->stage == stage && s->ready_usec != SESSION_UNKNOWN;
    }
    for (size_t i = begin; i < p->n_sessions; i++) {
        const SessionRecord *s = &p->sessions[i];

        if (s->stage != stage || s->ready_usec == SESSION_UNKNOWN ||
            p->exclusions[i] != EXCLUSION_NONE)
            continue;
        ret->items[ret->n++] = s;
    }
    choose_scale(ret);
}

static void begin_chart(Markup *m, const char *id, unsigned width, double height, const char *title,
                        const char *description)
{
    markup_open(m, "svg");
    markup_attribute(m, "xmlns", "http://www.w3.org/2000/svg");
    markup_attributef(m, "viewBox", "0 0 %u %.6g", width, height);
    markup_attribute(m, "class", "chart");
    markup_attribute(m, "role", "img");
    markup_attributef(m, "aria-labelledby", "%s-title %s-desc", id, id);
    markup_open(m, "title");
    markup_attributef(m, "id", "%s-title", id);
    markup_text(m, title);
    markup_close(m);
    markup_open(m, "desc");
    markup_attributef(m, "id", "%s-desc", id);
    markup_text(m, description);
    markup_close(m);
}

/* Draws horizontal lines with labels. */
static void add_levels(Markup *m, const Axis *a, unsigned width, bool percent)
{
    double step = axis_step(a->from, a->to, 5);
    char label[AXIS_LABEL_MAX];

    for (unsigned i = 0; i * step <= a->to * (1 + 1e-9); i++) {
        double v = i * step;

        markup_open(m, "path");
        markup_attribute(m, "class", v > 0 ? "grid" : "frame");
        markup_attributef(m, "d", "M%d %.6gH%u", LEFT, axis_place(a, v), width - RIGHT);
        markup_close(m);
        if (percent)
            snprintf(label, sizeof(label), "%.0f %%", 100 * v);
        else
            axis_seconds(v, step, label);
        markup_label(m, LEFT - 6, axis_place(a, v) + 4, "tick end", label);
    }
}

static void add_session(Markup *m, const SessionRecord *s, double x, double y)
{
    if (session_was_replayed(s)) {
        markup_open(m, "circle");
        markup_attribute(m, "class", "replayed");
        markup_number(m, "cx", x);
        markup_number(m, "cy", y);
        markup_attribute(m, "r", "3");
    } else {
        markup_open(m, "rect");
        markup_attribute(m, "class", "control");
        markup_number(m, "x", x - 3.5);
        markup_number(m, "y", y - 3.5);
        markup_attribute(m, "width", "7");
        markup_attribute(m, "height", "7");
    }
    markup_close(m);
}

static void add_session_legend(Markup *m, double y)
{
    SessionRecord with = {.policy = POLICY_GATE, .outcome = "done"}, without = {0};

    add_session(m, &with, LEFT + 4, y - 4);
    markup_label(m, LEFT + 14, y, "label", "with replay");
    add_session(m, &without, LEFT + 104, y - 4);
    markup_label(m, LEFT + 114, y, "label", "without");
}

/* Adds the date of the session below the axis. */
static void add_date(Markup *m, const ReportPage *p, const SessionRecord *s, double x,
                     const char *class)
{
    char when[PAGE_TIME_MAX];

    page_format_time(s->start_realtime_usec + (usec_t)((int64_t)p->utc_offset_seconds * 1000000),
                     when);
    when[strcspn(when, " ")] = 0;
    markup_label(m, x, CHART_HEIGHT - BOTTOM + 16, class, when);
}

static void draw_sessions(Markup *m, const ReportPage *p, const Drawn *d, Stage stage,
                          unsigned width)
{
    Axis seconds = {0, d->top, CHART_HEIGHT - BOTTOM, -(CHART_HEIGHT - BOTTOM - TOP)};
    Axis order = {0, (double)MAX(d->n, (size_t)2) - 1, LEFT + 8, width - LEFT - RIGHT - 16.0};
    char id[32], title[64], description[160];

    snprintf(id, sizeof(id), "sessions-%s-%u", stage_words[stage], width);
    snprintf(title, sizeof(title), "Time of each %s, oldest first", stage_words[stage]);
    snprintf(description, sizeof(description),
             "The newest %zu sessions of the comparison, from left to right. The table below lists "
             "the newest of them.",
             d->n);
    begin_chart(m, id, width, CHART_HEIGHT + LEGEND_BELOW, title, description);
    add_levels(m, &seconds, width, false);
    add_date(m, p, d->items[0], LEFT, "tick");
    add_date(m, p, d->items[d->n - 1], width - RIGHT, "tick end");
    for (size_t i = 0; i < d->n; i++)
        add_session(m, d->items[i], axis_place(&order, (double)i),
                    axis_place(&seconds, seconds_of(d->items[i])));
    add_session_legend(m, CHART_HEIGHT + LEGEND_BELOW - 8);
    markup_close(m);
}

static void add_value(Markup *m, const char *name, uint64_t value, bool bytes, const char *class)
{
    char text[AXIS_LABEL_MAX];

    markup_open(m, "td");
    if (class)
        markup_attribute(m, "class", class);
    if (value == SESSION_UNKNOWN)
        markup_text(m, "–");
    else if (bytes)
        page_figure(m, "session", name, (double)value, axis_bytes((double)value, text));
    else
        page_figure(m, "session", name, (double)value / USEC_PER_SEC, axis_duration(value, text));
    markup_close(m);
}

static const char *replay_word(const SessionRecord *s)
{
    if (session_was_replayed(s))
        return policy_to_string(s->policy);
    return s->flags & SESSION_CONTROL || strcmp(s->outcome, "control") == 0 ? "control" : "none";
}

static void add_session_row(Markup *m, const ReportPage *p, const SessionRecord *s)
{
    char when[PAGE_TIME_MAX];
    bool pack = s->usage.source != USAGE_NONE;

    markup_open(m, "tr");
    markup_open(m, "th");
    markup_attribute(m, "scope", "row");
    page_format_time(s->start_realtime_usec + (usec_t)((int64_t)p->utc_offset_seconds * 1000000),
                     when);
    markup_textf(m, "%s, %s", when, stage_words[s->stage]);
    markup_close(m);
    markup_element(m, "td", "text", "%s", replay_word(s));
    add_value(m, "predicted", s->predicted_usec, false, NULL);
    add_value(m, "took", s->ready_usec, false, NULL);
    add_value(m, "hit", pack ? s->usage.hit_bytes : SESSION_UNKNOWN, true, "optional");
    add_value(m, "waste", pack ? s->usage.waste_bytes : SESSION_UNKNOWN, true, "optional");
    add_value(m, "miss", pack ? s->usage.miss_bytes : SESSION_UNKNOWN, true, "optional");
    markup_open(m, "td");
    markup_attribute(m, "class", "text optional");
    markup_textf(m, "%s", pack ? usage_source_unit(s->usage.source) : "");
    markup_close(m);
    markup_close(m);
}

static void add_session_table(Markup *m, const ReportPage *p)
{
    static const char *const columns[] = {"Session", "-Replay",       "Predicted",
                                          "Took",    "?Used",         "?Planned in vain",
                                          "?Missed", "?-Observed per"};
    size_t begin = p->n_sessions - MIN(p->n_sessions, (size_t)SESSIONS_LISTED);

    page_table(m, "The newest sessions", columns, ELEMENTSOF(columns));
    for (size_t i = p->n_sessions; i-- > begin;)
        add_session_row(m, p, &p->sessions[i]);
    page_table_end(m);
}

void page_sessions(Markup *m, const ReportPage *p)
{
    Drawn d;

    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        choose(p, s, &d);
        if (d.n < 3)
            continue;
        markup_element(m, "h3", NULL, "%s", s == STAGE_BOOT ? "Boots" : "Logins");
        markup_open(m, "figure");
        markup_open(m, "div");
        markup_attribute(m, "class", "wide");
        draw_sessions(m, p, &d, s, TIMELINE_WIDE);
        markup_close(m);
        markup_open(m, "div");
        markup_attribute(m, "class", "narrow");
        draw_sessions(m, p, &d, s, TIMELINE_NARROW);
        markup_close(m);
        if (d.n_beyond > 0)
            markup_element(m, "figcaption", NULL,
                           "%zu session%s took longer than the scale shows; the mark%s at the "
                           "upper edge.",
                           d.n_beyond, text_plural_s(d.n_beyond),
                           d.n_beyond == 1 ? " is" : "s are");
        markup_close(m);
    }
    if (p->n_sessions > 0)
        add_session_table(m, p);
    else
        markup_element(m, "p", NULL, "No boot or login was recorded yet.");
}

/* --- predictions ------------------------------------------------------------------------------ */

static void draw_calibration(Markup *m, const Calibration *c, Stage stage)
{
    Axis share = {0, 1, CHART_HEIGHT - BOTTOM, -(CHART_HEIGHT - BOTTOM - TOP)};
    Axis predicted = {0, 1, LEFT, TIMELINE_NARROW - LEFT - RIGHT};
    char id[48], label[32];

    snprintf(id, sizeof(id), "calibration-%s", stage_words[stage]);
    begin_chart(m, id, TIMELINE_NARROW, CHART_HEIGHT + 14,
                "Share of planned files that were opened",
                "One column for each tenth of predicted probability; the dashed line is a perfect "
                "prediction. The table has the same numbers.");
    add_levels(m, &share, TIMELINE_NARROW, true);
    for (unsigned i = 0; i <= USAGE_CLASSES; i += 2) {
        snprintf(label, sizeof(label), "%u %%", 10 * i);
        markup_label(m,
                     i < USAGE_CLASSES ? axis_place(&predicted, i / 10.0)
                                       : TIMELINE_NARROW - RIGHT / 2.0,
                     CHART_HEIGHT - BOTTOM + 16, i < USAGE_CLASSES ? "tick middle" : "tick end",
                     label);
    }
    for (unsigned i = 0; i < USAGE_CLASSES; i++) {
        double x = axis_place(&predicted, i / 10.0), y;

        if (c->planned[i] == 0)
            continue;
        y = axis_place(&share, (double)c->opened[i] / (double)c->planned[i]);
        markup_open(m, "rect");
        markup_attribute(m, "class", "column");
        markup_number(m, "x", x + 3);
        markup_number(m, "y", y);
        markup_number(m, "width", predicted.length / 10 - 6);
        markup_number(m, "height", fmax(CHART_HEIGHT - BOTTOM - y, 1));
        markup_close(m);
    }
    markup_open(m, "path");
    markup_attribute(m, "class", "ideal");
    markup_attributef(m, "d", "M%.6g %.6gL%.6g %.6g", axis_place(&predicted, 0),
                      axis_place(&share, 0), axis_place(&predicted, 1), axis_place(&share, 1));
    markup_close(m);
    markup_label(m, (LEFT + TIMELINE_NARROW - RIGHT) / 2.0, CHART_HEIGHT + 4, "label middle",
                 "predicted probability");
    markup_close(m);
}

static void add_calibration_row(Markup *m, const Calibration *c, unsigned i, Stage stage)
{
    char text[32];
    const uint64_t n[] = {c->planned[i], c->opened[i]};
    static const char *const names[] = {"planned", "opened"};

    markup_open(m, "tr");
    markup_open(m, "th");
    markup_attribute(m, "scope", "row");
    markup_textf(m, "%u to %u %%", 10 * i, 10 * (i + 1));
    markup_close(m);
    for (size_t k = 0; k < ELEMENTSOF(n); k++) {
        markup_open(m, "td");
        snprintf(text, sizeof(text), "%" PRIu64, n[k]);
        page_figure(m, stage_words[stage], names[k], (double)n[k], text);
        markup_close(m);
    }
    markup_open(m, "td");
    page_percent(m, stage_words[stage], "share", (double)n[1] / (double)n[0]);
    markup_close(m);
    markup_close(m);
}

static void add_calibration(Markup *m, const Calibration *c, Stage stage)
{
    static const char *const columns[] = {"Predicted", "Files planned", "Opened", "Share"};

    markup_open(m, "div");
    markup_element(m, "h3", NULL, "%s", stage == STAGE_BOOT ? "Boots" : "Logins");
    markup_open(m, "figure");
    draw_calibration(m, c, stage);
    markup_close(m);
    page_table(m, "Files of the packs by predicted probability", columns, ELEMENTSOF(columns));
    for (unsigned i = 0; i < USAGE_CLASSES; i++)
        if (c->planned[i] > 0)
            add_calibration_row(m, c, i, stage);
    page_table_end(m);
    markup_open(m, "p");
    markup_attribute(m, "class", "note");
    page_count(m, stage_words[stage], "n_with_pack", c->n_sessions);
    markup_textf(m, " session%s, each compared with its pack.", text_plural_s(c->n_sessions));
    markup_close(m);
    markup_close(m);
}

void page_calibration(Markup *m, const ReportPage *p)
{
    bool any = false;

    markup_element(
            m, "p", NULL,
            "headstart predicts for each file the probability that a session opens it. Of the "
            "files predicted with 90 %%, nine of ten should be opened.");
    markup_open(m, "div");
    markup_attribute(m, "class", "benefits");
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        Calibration c = calibration_of(p->sessions, p->n_sessions, s);

        if (c.n_sessions == 0)
            continue;
        add_calibration(m, &c, s);
        any = true;
    }
    markup_close(m);
    if (!any)
        markup_element(m, "p", NULL, "No session with a pack was recorded yet.");
}

/* --- chains ----------------------------------------------------------------------------------- */

#define ROW        26
#define NODE_X     186
#define NAME_CHARS 24

/* Draws an arc to the right of the nodes. Arcs that lead upwards are dashed. */
static void add_arc(Markup *m, const GraphEdge *e)
{
    bool back = e->to < e->from;
    double a = TOP + ROW * (e->from + 0.5), b = TOP + ROW * (e->to + 0.5);
    double height = fabs(b - a) / 2, width = fmin(height * 0.9 + 8, TIMELINE_NARROW - NODE_X - 24);

    markup_open(m, "path");
    markup_attribute(m, "class", back ? "arc back" : "arc");
    markup_attributef(m, "stroke-width", "%.1f", 1 + 4 * e->probability);
    markup_attributef(m, "d", "M%d %.1fC%.1f %.1f %.1f %.1f %d %.1f", NODE_X + 6, a,
                      NODE_X + 6 + 1.33 * width, a, NODE_X + 6 + 1.33 * width, b, NODE_X + 6, b);
    markup_close(m);
}

static void draw_graph(Markup *m, const Graph *g)
{
    begin_chart(m, "chains-graph", TIMELINE_NARROW, 2 * TOP + ROW * (double)g->n_nodes,
                "Which applications start after which",
                "An arc leads from an application to one that often starts next. A thicker arc is "
                "more likely. The table has the same numbers.");
    for (size_t i = 0; i < g->n_edges; i++)
        add_arc(m, &g->edges[i]);
    for (size_t i = 0; i < g->n_nodes; i++) {
        double y = TOP + ROW * ((double)i + 0.5);

        markup_open(m, "circle");
        markup_attribute(m, "class", "node");
        markup_attributef(m, "cx", "%d", NODE_X);
        markup_number(m, "cy", y);
        markup_attribute(m, "r", "4");
        markup_close(m);
        markup_open(m, "text");
        markup_attributef(m, "x", "%d", NODE_X - 10);
        markup_number(m, "y", y + 4);
        markup_attribute(m, "class", "label end");
        markup_name(m, g->names[i], NAME_CHARS);
        markup_close(m);
    }
    markup_close(m);
}

void page_graph(Markup *m, const Graph *g)
{
    static const char *const columns[] = {"After", "-Starts next", "Probability"};
    char text[32];

    markup_open(m, "div");
    markup_attribute(m, "class", "benefits");
    markup_open(m, "figure");
    markup_attribute(m, "class", "arcs");
    draw_graph(m, g);
    markup_element(m, "figcaption", NULL,
                   "Solid arcs lead down, dashed arcs lead up. A thicker arc is more likely.");
    markup_close(m);
    markup_open(m, "div");
    page_table(m, "What starts next", columns, ELEMENTSOF(columns));
    for (size_t i = 0; i < g->n_edges; i++) {
        const GraphEdge *e = &g->edges[i];

        markup_open(m, "tr");
        markup_open(m, "th");
        markup_attribute(m, "scope", "row");
        markup_attribute(m, "class", "name");
        markup_name(m, g->names[e->from], 80);
        markup_close(m);
        markup_open(m, "td");
        markup_attribute(m, "class", "text name");
        markup_name(m, g->names[e->to], 80);
        markup_close(m);
        markup_open(m, "td");
        snprintf(text, sizeof(text), "%.0f %%", 100 * e->probability);
        page_figure(m, "chain", "probability", e->probability, text);
        markup_close(m);
        markup_close(m);
    }
    page_table_end(m);
    markup_close(m);
    markup_close(m);
}
