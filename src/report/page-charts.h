/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The sections of the report that contain charts. Pure. */

#include "report/page-data.h"

void page_sessions(Markup *m, const ReportPage *p);
void page_calibration(Markup *m, const ReportPage *p);
void page_graph(Markup *m, const Graph *g);
