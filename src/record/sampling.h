/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Samples which pages of the opened files are resident while a stage runs. Pages that were read
 * early in a long stage may have left the cache before it ends, because memory was short or a
 * reclaimer evicts cold pages. Therefore each file is sampled shortly after it was opened, and once
 * more later. Pages that are resident at either time count as read by the stage. Sampling reads no
 * file data from the disk. */

#include "base/ranges.h"
#include "observe/event-log.h"
#include "observe/fanotify.h"
#include "observe/user-shares.h"

/* The times between the opening of a file and its two samples. At the first one the first reads are
 * done; at the second one a slow disk has finished reading. */
#define SAMPLING_EARLY_USEC (500 * USEC_PER_MSEC)
#define SAMPLING_LATE_USEC  (3 * USEC_PER_SEC)
/* The time before the first round, and between two rounds. A boot that ends before the first round
 * is never sampled, so that sampling costs it nothing. */
#define SAMPLING_ROUND_USEC USEC_PER_SEC
/* The limits of one batch (number of files, and time), after which the event queue is read again,
 * and the limit of the time for one file. Pages that are not found in that time are found by the
 * second sample of the file or at the end of the stage. */
#define SAMPLING_BATCH_FILES 200U
#define SAMPLING_BATCH_USEC  (20 * USEC_PER_MSEC)
#define SAMPLING_FILE_USEC   (5 * USEC_PER_MSEC)

/* Zeroed is valid: a stage that begins. */
typedef struct Sampling {
    RangeSet *files;  /* object -> bytes seen resident */
    uint32_t *rounds; /* object -> the round that last sampled it */
    size_t n, allocated, allocated_rounds;
    size_t next[2]; /* for each of the two samples: the first event that it has not reached */
    uint32_t round;
    bool unfinished; /* the round continues after the next batch */
    usec_t last;     /* when the last batch ran */
} Sampling;

void sampling_done(Sampling *s);

/* Makes a round if one is due, or continues one; `now` is on the clock of the log's events. The
 * time that a file takes is charged to the user who opened it. Returns 1 if a round was completed,
 * 0 if none is due or the round is unfinished, or -ENOMEM. */
int sampling_run(Sampling *s, const EventLog *log, UserShares *shares, Fanotify *f, usec_t now);
