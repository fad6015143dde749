/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Over 500 lines in one file: the functions stand in the order of the page's sections. */

#include "report/page.h"

#include "report/axis.h"
#include "report/page-charts.h"
#include "report/page-elements.h"
#include "report/page-launches.h"
#include "report/style.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const stage_names[] = {"Boot", "Login"};
static const char *const stage_words[] = {"boot", "login"};

/* --- parts ------------------------------------------------------------------------------------ */

static void begin_section(Markup *m, const char *id, const char *title)
{
    markup_open(m, "section");
    markup_attributef(m, "aria-labelledby", "%s", id);
    markup_open(m, "h2");
    markup_attribute(m, "id", id);
    markup_text(m, title);
    markup_close(m);
}

/* --- the headline ----------------------------------------------------------------------------- */

static bool is_gain(const Benefit *b)
{
    return b->effect.known && b->effect.saved_low > 0 && !b->harmful;
}

/* Returns true if the stage is replayed, and replay was measured to gain time. */
static bool gains(const ReportPage *p, Stage s)
{
    return !p->off[s] && is_gain(&p->benefits[s]);
}

/* Returns what the times of the stage span. An automatic login is measured with its boot. */
static const char *measured_words(const ReportPage *p, Stage s)
{
    return s == STAGE_LOGIN && p->benefits[s].automatic ? "boot with login" : stage_words[s];
}

static void add_login(Markup *m, const ReportPage *p)
{
    const Effect *e = &p->benefits[STAGE_LOGIN].effect;

    markup_textf(m, " Your %s takes ", measured_words(p, STAGE_LOGIN));
    page_seconds(m, "headline", "login_with", e->replayed_seconds);
    markup_text(m, " instead of ");
    page_seconds(m, "headline", "login_without", e->control_seconds);
    markup_text(m, ".");
}

/* Writes the measured gain of a stage. */
static void add_gain(Markup *m, const ReportPage *p, Stage s)
{
    const Effect *e = &p->benefits[s].effect;

    markup_open(m, "h1");
    markup_textf(m, "Your %s takes ", measured_words(p, s));
    page_seconds(m, "headline", "with", e->replayed_seconds);
    markup_text(m, " instead of ");
    page_seconds(m, "headline", "without", e->control_seconds);
    markup_text(m, ".");
    markup_close(m);
    markup_open(m, "p");
    markup_attribute(m, "class", "lead");
    markup_text(m, "Measured on this machine: replay saves ");
    page_percent(m, "headline", "saved", e->saved);
    markup_text(m, " of the time, with 95\u00a0% confidence between ");
    page_percent(m, "headline", "saved_low", e->saved_low);
    markup_text(m, " and ");
    page_percent(m, "headline", "saved_high", e->saved_high);
    markup_text(m, ".");
    if (s == STAGE_BOOT && gains(p, STAGE_LOGIN))
        add_login(m, p);
    markup_close(m);
}

/* Returns true if no further sessions will show what replay saves in the stage: it is not replayed,
 * or there are no such sessions. */
static bool is_idle(const ReportPage *p, Stage stage)
{
    if (p->off[stage])
        return true;
    for (size_t i = 0; i < p->n_sessions; i++)
        if (p->sessions[i].stage == stage)
            return false;
    return true;
}

/* Returns true if the intervals are known, so that it is not too early to say what replay saves. */
static bool is_measured(const ReportPage *p)
{
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++)
        if (!is_idle(p, s) && !p->benefits[s].effect.known)
            return false;
    return true;
}

/* Writes a sentence on each stage that is not replayed. */
static void add_off(Markup *m, const ReportPage *p)
{
    char text[REPLAY_OFF_TEXT_MAX];

    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++)
        if (p->off[s])
            markup_textf(m, "%s is %s. ", s == STAGE_BOOT ? "The boot" : "The login",
                         replay_off_to_text(s, p->off[s], text));
}

/* Writes why no gain is shown. */
static void add_no_gain(Markup *m, const ReportPage *p)
{
    bool boot_harmful = p->benefits[STAGE_BOOT].harmful && !p->kept_on[STAGE_BOOT];
    bool login_harmful = p->benefits[STAGE_LOGIN].harmful && !p->kept_on[STAGE_LOGIN];
    bool boot_off = p->off[STAGE_BOOT] != NULL, login_off = p->off[STAGE_LOGIN] != NULL;
    bool idle = is_idle(p, STAGE_BOOT) && is_idle(p, STAGE_LOGIN) && (boot_off || login_off);
    bool measured = is_measured(p) && p->n_sessions > 0;

    markup_open(m, "h1");
    markup_textf(m, "%s",
                 boot_harmful && login_harmful
                         ? "headstart saves nothing here and has switched replay off."
                 : boot_harmful ? "headstart saves nothing at boot and has switched its replay off."
                 : login_harmful
                         ? "headstart saves nothing at login and has switched its replay off."
                 : idle      ? "headstart replays nothing here."
                 : measured  ? "headstart was not shown to save time here."
                 : boot_off  ? "It is too early to say what headstart saves at login."
                 : login_off ? "It is too early to say what headstart saves at boot."
                             : "It is too early to say what headstart saves here.");
    markup_close(m);
    markup_open(m, "p");
    markup_attribute(m, "class", "lead");
    add_off(m, p);
    if (!idle && measured)
        markup_text(m,
                    "The 95\u00a0% interval of what replay saves does not lie above zero. Further "
                    "sessions make it narrower.");
    else if (!idle)
        markup_text(m,
                    "headstart compares sessions with replay and sessions without it. Two sessions "
                    "without replay and eight with it are enough for an interval. 'headstart "
                    "measure' makes the next boot and login a session without replay.");
    markup_close(m);
}

static void add_headline(Markup *m, const ReportPage *p)
{
    if (gains(p, STAGE_BOOT))
        add_gain(m, p, STAGE_BOOT);
    else if (gains(p, STAGE_LOGIN))
        add_gain(m, p, STAGE_LOGIN);
    else
        add_no_gain(m, p);
}

/* --- what headstart saves --------------------------------------------------------------------- */

static void add_bar(Markup *m, const char *what, const char *class, double seconds, double share,
                    double from, double to)
{
    char text[AXIS_LABEL_MAX];

    markup_element(m, "span", "what", "%s", what);
    markup_open(m, "span");
    markup_attribute(m, "class", "track");
    markup_open(m, "span");
    markup_attribute(m, "class", class);
    markup_attributef(m, "style", "width:%.1f%%", 100 * share);
    markup_close(m);
    if (to > from) {
        markup_open(m, "span");
        markup_attribute(m, "class", "span");
        markup_attributef(m, "style", "left:%.1f%%;width:%.1f%%", 100 * from, 100 * (to - from));
        markup_close(m);
    }
    markup_close(m);
    markup_element(m, "span", "amount", "%s", axis_duration((usec_t)llround(seconds * 1e6), text));
}

static double bounded(double share)
{
    return fmin(fmax(share, 0), 1);
}

/* Draws two bars with one scale. The line on the second bar is the 95 % interval. */
static void add_bars(Markup *m, const Effect *e)
{
    double scale = fmax(1, 1 - e->saved_low);

    markup_open(m, "div");
    markup_attribute(m, "class", "bars");
    markup_attribute(m, "aria-hidden", "true");
    add_bar(m, "without", "bar", e->control_seconds, 1 / scale, 0, 0);
    add_bar(m, "with", "bar with", e->replayed_seconds, bounded((1 - e->saved) / scale),
            bounded((1 - e->saved_high) / scale), bounded((1 - e->saved_low) / scale));
    markup_close(m);
}

/* Writes the numbers of compared sessions if they are too few for an interval. */
static void add_too_few(Markup *m, const Benefit *b, const char *stage, const char *things,
                        const char *off)
{
    const Effect *e = &b->effect;

    markup_open(m, "p");
    if (off)
        markup_textf(m, "Now %s. Compared %s: ", off, things);
    else if (b->automatic && strcmp(stage, stage_words[STAGE_BOOT]) == 0)
        markup_text(m, "Each boot counts with its automatic login. Compared alone: ");
    else
        markup_textf(m, "Not enough %s yet: ", things);
    page_count(m, stage, "n_replayed", e->n_replayed);
    markup_text(m, " with replay, ");
    page_count(m, stage, "n_control", e->n_control);
    markup_text(m, " without.");
    markup_close(m);
}

/* Writes the result of a comparison. `things` names what was timed, for example "sessions". `off`
 * says why there is no replay now; NULL: there is. `kept_on`: there is, although it does harm. */
static void add_verdict(Markup *m, const Benefit *b, const char *stage, const char *things,
                        const char *off, bool kept_on)
{
    const Effect *e = &b->effect;
    char text[32];

    if (!e->known) {
        add_too_few(m, b, stage, things, off);
        return;
    }
    markup_open(m, "p");
    markup_attribute(m, "class", is_gain(b) ? "saved gain" : "saved");
    snprintf(text, sizeof(text), "%.0f %%", 100 * fabs(e->saved));
    page_figure(m, stage, "saved", e->saved, text);
    markup_text(m, e->saved >= 0 ? " saved" : " longer");
    if (e->saved_low <= 0 && e->saved_high >= 0)
        markup_text(m, ", not certain");
    markup_close(m);
    markup_open(m, "p");
    markup_text(m, kept_on             ? "Replay does harm, and is still on. "
                   : b->harmful        ? "Replay does harm and is off. "
                   : e->saved_high < 0 ? "Replay costs time. "
                                       : "");
    page_seconds(m, stage, "with", e->replayed_seconds);
    markup_text(m, " with replay, ");
    page_seconds(m, stage, "without", e->control_seconds);
    markup_text(m, " without. 95\u00a0% interval: ");
    page_percent(m, stage, "saved_low", e->saved_low);
    markup_text(m, " to ");
    page_percent(m, stage, "saved_high", e->saved_high);
    markup_text(m, ".");
    if (off && !b->harmful)
        markup_textf(m, " Now %s.", off);
    markup_close(m);
    markup_open(m, "p");
    markup_attribute(m, "class", "note");
    page_count(m, stage, "n_replayed", e->n_replayed);
    markup_textf(m, " %s with replay, ", things);
    page_count(m, stage, "n_control", e->n_control);
    markup_text(m, " without; ");
    page_count(m, stage, "n_left_out", b->n_left_out);
    markup_text(m, " left out of the comparison.");
    markup_close(m);
}

static void add_benefit(Markup *m, const Benefit *b, const char *title, const char *stage,
                        const char *things, const char *off, bool kept_on)
{
    markup_open(m, "div");
    markup_element(m, "h3", NULL, "%s", title);
    if (b->effect.known)
        add_bars(m, &b->effect);
    add_verdict(m, b, stage, things, off, kept_on);
    markup_close(m);
}

static bool has_launches(const ReportPage *p)
{
    return p->launches && p->launches->n > 0;
}

static void add_benefits(Markup *m, const ReportPage *p)
{
    char off[REPLAY_OFF_TEXT_MAX];

    begin_section(m, "benefit", "What headstart saves");
    markup_open(m, "div");
    markup_attribute(m, "class", "benefits");
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++)
        add_benefit(m, &p->benefits[s],
                    s == STAGE_LOGIN && p->benefits[s].automatic ? "Boot with automatic login"
                                                                 : stage_names[s],
                    stage_words[s], "sessions", replay_off_to_text(s, p->off[s], off),
                    p->kept_on[s]);
    if (has_launches(p))
        add_benefit(m, &p->launches->all, "Starts of applications", "launch", "starts",
                    replay_off_to_text(STAGE_SESSION, p->launches_off, off), false);
    markup_close(m);
    markup_element(
            m, "p", "note",
            "In some sessions headstart stays off on purpose. The others are compared with these "
            "control sessions. The estimate is the median of all differences, so that a single "
            "slow boot does not change it. The thin line on a bar is the 95 %% interval.");
    markup_close(m);
}

/* --- timelines -------------------------------------------------------------------------------- */

static void add_timeline(Markup *m, const Timeline *t, Stage s, bool names)
{
    TimelineStyle wide = {.width = TIMELINE_WIDE, .no_names = !names};
    TimelineStyle narrow = {.width = TIMELINE_NARROW, .no_names = !names};
    char wide_id[32], narrow_id[32];

    snprintf(wide_id, sizeof(wide_id), "%s-wide", stage_words[s]);
    snprintf(narrow_id, sizeof(narrow_id), "%s-narrow", stage_words[s]);
    wide.id = wide_id;
    narrow.id = narrow_id;
    begin_section(m, s == STAGE_BOOT ? "newest-boot" : "newest-login",
                  s == STAGE_BOOT ? "The newest boot" : "The newest login");
    markup_open(m, "figure");
    markup_open(m, "div");
    markup_attribute(m, "class", "wide");
    timeline_draw(m, t, &wide);
    markup_close(m);
    markup_open(m, "div");
    markup_attribute(m, "class", "narrow");
    timeline_draw(m, t, &narrow);
    markup_close(m);
    markup_open(m, "figcaption");
    if (timeline_has_places(t))
        markup_text(m, "Each mark is the first opening of a file, at its place on the disk. ");
    for (size_t i = 0; i < t->n_notes; i++)
        markup_textf(m, "%s%s.", i > 0 ? " " : "", t->notes[i]);
    markup_close(m);
    markup_close(m);
    markup_open(m, "details");
    markup_element(m, "summary", NULL, "The same as tables (%s)", stage_words[s]);
    timeline_tables(m, t, &wide);
    markup_close(m);
    markup_close(m);
}

/* --- applications and files with the most data ------------------------------------------------ */

static void add_heavy(Markup *m, const HeavyList *l, Stage s, const char *what, const char *figure)
{
    const char *columns[] = {what, "Data", "Probability"};
    char caption[80], text[AXIS_LABEL_MAX];

    if (l->n == 0)
        return;
    snprintf(caption, sizeof(caption), "%s: %ss with the most data", stage_names[s], figure);
    page_table(m, caption, columns, ELEMENTSOF(columns));
    for (size_t i = 0; i < l->n; i++) {
        markup_open(m, "tr");
        markup_open(m, "th");
        markup_attribute(m, "scope", "row");
        markup_attribute(m, "class", "name");
        markup_name(m, l->items[i].path, 160);
        markup_close(m);
        markup_open(m, "td");
        page_figure(m, stage_words[s], figure, l->items[i].bytes,
                    axis_bytes(l->items[i].bytes, text));
        markup_close(m);
        markup_open(m, "td");
        page_percent(m, stage_words[s], "probability", l->items[i].probability);
        markup_close(m);
        markup_close(m);
    }
    page_table_end(m);
}

static void add_heaviest(Markup *m, const ReportPage *p)
{
    begin_section(m, "heaviest", "Applications and files with the most data");
    markup_element(
            m, "p", "note",
            "Expected data in one session, learned from all sessions. An application counts with "
            "all files that it opens, and several applications can open the same file.");
    markup_open(m, "div");
    markup_attribute(m, "class", "sizes");
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        add_heavy(m, &p->applications[s], s, "Application", "application");
        add_heavy(m, &p->files[s], s, "File", "file");
    }
    markup_close(m);
    markup_close(m);
}

/* --- the page --------------------------------------------------------------------------------- */

static bool has_heavy(const ReportPage *p)
{
    return p->names && p->applications && p->files &&
           p->files[STAGE_BOOT].n + p->files[STAGE_LOGIN].n > 0;
}

static void add_head(Markup *m, const ReportPage *p)
{
    markup_open(m, "head");
    markup_open(m, "meta");
    markup_attribute(m, "charset", "utf-8");
    markup_close(m);
    markup_open(m, "meta");
    markup_attribute(m, "name", "viewport");
    markup_attribute(m, "content", "width=device-width, initial-scale=1");
    markup_close(m);
    markup_open(m, "meta");
    markup_attribute(m, "name", "generator");
    markup_attributef(m, "content", "headstart %s", p->version);
    markup_close(m);
    markup_element(m, "title", NULL, "What headstart does on this machine");
    markup_open(m, "style");
    markup_literal(m, STYLE_CHART STYLE_PAGE);
    markup_close(m);
    markup_close(m);
}

static void add_link(Markup *m, const char *target, const char *text)
{
    markup_open(m, "li");
    markup_open(m, "a");
    markup_attributef(m, "href", "#%s", target);
    markup_text(m, text);
    markup_close(m);
    markup_close(m);
}

static void add_header(Markup *m, const ReportPage *p)
{
    markup_open(m, "header");
    markup_element(m, "p", "kicker", "%s%s", p->machine ? "headstart on " : "headstart",
                   p->machine ? p->machine : "");
    add_headline(m, p);
    markup_open(m, "nav");
    markup_attribute(m, "aria-label", "Contents");
    markup_open(m, "ul");
    add_link(m, "benefit", "Benefit");
    if (p->timelines[STAGE_BOOT])
        add_link(m, "newest-boot", "Newest boot");
    if (p->timelines[STAGE_LOGIN])
        add_link(m, "newest-login", "Newest login");
    if (has_launches(p))
        add_link(m, "launches", "Applications");
    add_link(m, "sessions", "Sessions");
    add_link(m, "predictions", "Predictions");
    if (has_heavy(p))
        add_link(m, "heaviest", "Most data");
    if (p->graph)
        add_link(m, "chains", "Order of starts");
    markup_close(m);
    markup_close(m);
    markup_close(m);
}

static void add_footer(Markup *m, const ReportPage *p)
{
    char when[64];

    markup_open(m, "footer");
    markup_open(m, "p");
    markup_textf(m, "Written by headstart %s on ", p->version);
    markup_open(m, "time");
    page_format_time(p->now + (usec_t)((int64_t)p->utc_offset_seconds * 1000000), when);
    markup_attribute(m, "datetime", when);
    markup_text(m, when);
    markup_close(m);
    markup_text(m, p->names ? ". The page names files and applications: it is for administrators."
                            : ". The page names no files, and no applications of other users.");
    markup_text(m, " headstart(8) describes where each figure comes from.");
    markup_close(m);
    markup_close(m);
}

void report_page(Markup *m, const ReportPage *p)
{
    markup_literal(m, "<!DOCTYPE html>\n");
    markup_open(m, "html");
    markup_attribute(m, "lang", "en");
    add_head(m, p);
    markup_open(m, "body");
    markup_open(m, "a");
    markup_attribute(m, "class", "skip");
    markup_attribute(m, "href", "#main");
    markup_text(m, "Skip to the content");
    markup_close(m);
    add_header(m, p);
    markup_open(m, "main");
    markup_attribute(m, "id", "main");
    add_benefits(m, p);
    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++)
        if (p->timelines[s])
            add_timeline(m, p->timelines[s], s, p->names);
    if (has_launches(p)) {
        begin_section(m, "launches", "Application by application");
        page_launches(m, p->launches);
        markup_close(m);
    }
    begin_section(m, "sessions", "Session by session");
    page_sessions(m, p);
    markup_close(m);
    begin_section(m, "predictions", "Predicted and opened files");
    page_calibration(m, p);
    markup_close(m);
    if (has_heavy(p))
        add_heaviest(m, p);
    if (p->graph && p->names) {
        begin_section(m, "chains", "Which application starts after which");
        page_graph(m, p->graph);
        markup_close(m);
    }
    markup_close(m);
    add_footer(m, p);
}
