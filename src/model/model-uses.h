/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Learns from one trace which applications use which files. Pure. Shared by the files of src/model
 * only.
 *
 * An access counts for the application that makes it, and for the starts to which it belongs
 * (model/model-launch.h). What another program opens shortly after a start counts only if at least
 * half of that program's openings of the file in the session are shortly after starts of the
 * application. Otherwise the program would have opened the file anyway. For example, Debian's
 * preload opens the libraries of all likely applications every few seconds, so that some openings
 * follow each start. All processes of a program count together, and so do all processes whose
 * program is unknown. What a service reads once after a start of each of three applications
 * therefore belongs to none of them: it is in memory after the first one. */

#include "model/model.h"

/* Returns the sum of one observed time. */
DecayedSum model_sum_of_msec(uint64_t msec, DecayedSum one);

/* Fills s->uses from the accesses of the trace, and notes which applications were started.
 * where[i] is the model's file for file i of the trace; s->applications is complete; `one` is the
 * sum of one session. Returns 0 or -ENOMEM. */
int model_learn_uses(const Trace *t, const uint32_t *where, ModelStage *s, DecayedSum one);
