/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Elements of the report's page. Pure. */

#include "base/time-util.h"
#include "report/markup.h"

/* "2026-11-22 13:05" of a wall clock that was moved to local time. Returns buf. */
#define PAGE_TIME_MAX 64
const char *page_format_time(usec_t t, char buf[static PAGE_TIME_MAX]);

/* A figure with its exact value. `stage` may be NULL. */
void page_figure(Markup *m, const char *stage, const char *name, double value, const char *text);

/* Begin and end a table with its columns; a title that begins with "-" is of text, one that begins
 * with "?" is left out on a narrow screen. */
void page_table(Markup *m, const char *caption, const char *const *columns, size_t n);
void page_table_end(Markup *m);
