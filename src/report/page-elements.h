/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Elements of the report's page: times, figures and tables. Pure. */

#include "base/time-util.h"
#include "report/markup.h"

/* Formats a time as "2026-11-22 13:05". The caller has added the offset of local time. Returns buf.
 */
#define PAGE_TIME_MAX 64
const char *page_format_time(usec_t t, char buf[static PAGE_TIME_MAX]);

/* Adds a figure: the text, and the exact value as data. `stage` may be NULL. */
void page_figure(Markup *m, const char *stage, const char *name, double value, const char *text);

/* Add a figure whose text is a whole number, a duration or a percentage. */
void page_count(Markup *m, const char *stage, const char *name, uint64_t n);
void page_seconds(Markup *m, const char *stage, const char *name, double seconds);
void page_percent(Markup *m, const char *stage, const char *name, double share);

/* Begin and end a table. A narrow screen leaves out a column whose title begins with "?". A column
 * whose title begins with "-" or "?-" holds text. */
void page_table(Markup *m, const char *caption, const char *const *columns, size_t n);
void page_table_end(Markup *m);
