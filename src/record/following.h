/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Applications as they start and exit, told while a stage goes on: which run is which is known once
 * the batches that report it are settled (processes.h), so a start is told FOLLOWING_BATCHES
 * batches late, and one that has exited by then is told as both. Pure. */

#include "record/processes.h"

#define FOLLOWING_BATCHES 3

typedef struct Following Following;

/* What an executed object is called (allocated), or NULL: it is not to be followed. */
typedef char *(*following_name_t)(void *arg, uint32_t object);
/* `run` is borrowed; its start and end are on the table's clock. */
typedef void (*following_tell_t)(void *arg, const char *name, const ProcessRun *run, bool started);

/* NULL if out of memory. */
Following *following_new(void);
Following *following_free(Following *f);

/* A batch is over and settled. What was told to have started and is in the table no more has exited
 * `now`. headstart's own runs and those nobody could name are left out. 0 or -ENOMEM (then what
 * began in this batch may be missing). */
int following_update(Following *f, const ProcessRun *runs, size_t n_runs, usec_t now,
                     following_name_t name, following_tell_t tell, void *arg);

/* True while a start waits for its batches. */
bool following_waits(const Following *f);

/* The serial of the first run that waits, or of the next one: runs before it may be forgotten when
 * they are over. */
uint64_t following_first_waiting(const Following *f);
