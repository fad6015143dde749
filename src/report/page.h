/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The report: an HTML page that needs no other file. A figure outside the charts and the timelines
 * is a <data> element with its exact value and its name (data-figure). Tests compute these values
 * again and compare. Pure. */

#include "report/page-data.h"

/* Writes the page. */
void report_page(Markup *m, const ReportPage *p);
