/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The parts of the report that come from the model. */

#include "model/model.h"
#include "report/page-data.h"

/* Finds the applications and the files with the most data that a stage is expected to read. 0 or
 * -ENOMEM, after which the lists are incomplete. */
int report_find_heavy(const Model *m, Stage stage, HeavyList *applications, HeavyList *files);

/* Finds the applications of all users that start most often, and how often each starts after each
 * other. The caller zeroes *ret before; without chains *ret stays empty. 0 or -ENOMEM. */
int report_make_graph(const Chains *c, Graph *ret);
