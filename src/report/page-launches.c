/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/page-launches.h"

#include "report/page-elements.h"

/* How many applications are shown: those with the most comparable starts. */
#define SHOWN_MAX 12U

static void add_name(Markup *m, const char *application)
{
    markup_open(m, "th");
    markup_attribute(m, "scope", "row");
    markup_attribute(m, "class", "name");
    markup_name(m, application, 160);
    markup_close(m);
}

static void begin_cell(Markup *m, const char *class)
{
    markup_open(m, "td");
    if (class)
        markup_attribute(m, "class", class);
}

static void add_saved(Markup *m, const Benefit *b)
{
    const Effect *e = &b->effect;

    begin_cell(m, NULL);
    if (!e->known) {
        markup_text(m, "too few starts");
        markup_close(m);
        return;
    }
    page_percent(m, "application", "saved", e->saved);
    markup_text(m, " (");
    page_percent(m, "application", "saved_low", e->saved_low);
    markup_text(m, " to ");
    page_percent(m, "application", "saved_high", e->saved_high);
    markup_text(m, b->harmful ? "), switched off" : ")");
    markup_close(m);
}

static void add_seconds(Markup *m, const Effect *e, const char *name, double seconds)
{
    begin_cell(m, "optional");
    if (e->known)
        page_seconds(m, "application", name, seconds);
    markup_close(m);
}

static void add_row(Markup *m, const LaunchBenefit *b)
{
    const Effect *e = &b->benefit.effect;

    markup_open(m, "tr");
    add_name(m, b->application);
    add_saved(m, &b->benefit);
    add_seconds(m, e, "with", e->replayed_seconds);
    add_seconds(m, e, "without", e->control_seconds);
    begin_cell(m, NULL);
    page_count(m, "application", "n_replayed", e->n_replayed);
    markup_text(m, " / ");
    page_count(m, "application", "n_control", e->n_control);
    markup_close(m);
    markup_close(m);
}

void page_launches(Markup *m, const LaunchBenefits *b)
{
    static const char *const columns[] = {"Application", "Saved (95 % interval)", "?With replay",
                                          "?Without", "Starts with / without"};

    markup_element(m, "p", "note",
                   "A start lasts until the application has opened its last file. The first start "
                   "of each application in a boot is compared.");
    page_table(m, "The applications that start most often", columns, ELEMENTSOF(columns));
    for (size_t i = 0; i < b->n && i < SHOWN_MAX; i++)
        add_row(m, &b->items[i]);
    page_table_end(m);
}
