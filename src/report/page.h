/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The report: one HTML page that needs nothing else. Every figure is a <data> element with its
 * exact value and a name (data-figure), from which tests compute it again. Pure. */

#include "report/page-data.h"

/* Writes the page. */
void report_page(Markup *m, const ReportPage *p);
