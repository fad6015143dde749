/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the report shows of the model. */

#include "model/model.h"
#include "report/page-data.h"

/* The applications and files with the most data that a stage is expected to read. 0 or -ENOMEM;
 * then the lists hold a part of them. */
int report_find_heavy(const Model *m, Stage stage, HeavyList *applications, HeavyList *files);

/* The applications of all users that start most often, and which of them follow which. Without
 * chains there are none. *ret is zeroed. 0 or -ENOMEM. */
int report_make_graph(const Chains *c, Graph *ret);
