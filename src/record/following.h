/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reports applications as they start and exit, while a stage is recorded and between stages. A run
 * is assigned to an application when the batches that report it are settled (processes.h). A start
 * is therefore reported when following_update() has seen the run in FOLLOWING_BATCHES batches. A
 * run that has ended by then is reported as a start and an exit. A run that had ended before the
 * first update is not reported. Pure. */

#include "observe/processes.h"

#define FOLLOWING_BATCHES 3

typedef struct Following Following;

/* Returns the name of an executed object, or NULL if the object is not to be reported. following.c
 * frees the name. */
typedef char *(*following_name_t)(void *arg, uint32_t object);
/* `run` is borrowed; its start and end are on the table's clock. */
typedef void (*following_report_t)(void *arg, const char *name, const ProcessRun *run,
                                   bool started);

/* Returns NULL if memory runs out. */
Following *following_new(void);
Following *following_free(Following *f);

/* Call it when a batch is over and settled. A reported run that the table no longer holds counts as
 * exited at `now`. headstart's own runs and those without a name are not reported. Returns 0 or
 * -ENOMEM (then the next call adds the runs that began in this batch). */
int following_update(Following *f, const ProcessRun *runs, size_t n_runs, usec_t now,
                     following_name_t name, following_report_t report, void *arg);

/* Returns true while a start waits for its batches. */
bool following_waits(const Following *f);

/* Returns the serial of the first run that waits, or of the next run to come. The caller may forget
 * ended runs with lower serials. */
uint64_t following_first_waiting(const Following *f);
