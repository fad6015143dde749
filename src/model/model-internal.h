/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the files of src/model only. */

#include "model/model.h"

void model_stage_done(ModelStage *s);

/* Identifies a trace: boot id, stage and start. */
uint64_t model_trace_id(const Trace *t);
