/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The parts of the report that come from the model. */

#include "model/model.h"
#include "report/page-data.h"

/* Finds the applications and the files with the most data that a stage is expected to read. Returns
 * 0, -ENOMEM, or an error of model_sum_stages(). After an error the lists may be incomplete. */
int report_find_heavy(const Model *m, Stage stage, HeavyList *applications, HeavyList *files);

/* Finds the applications that all users together start most often, and for each pair of them the
 * probability that the second is the next to start after the first. Pairs with a low probability
 * are left out. The caller zeroes *ret before; without chains *ret stays empty. Returns 0 or
 * -ENOMEM. */
int report_make_graph(const Chains *c, Graph *ret);
