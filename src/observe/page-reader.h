/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the page tables of processes in a thread of its own. A read of /proc/PID/maps waits for the
 * lock of the process's address space, and a process can hold that lock for as long as it likes,
 * for example by a page fault on a FUSE filesystem that does not answer. A thread that waits longer
 * than PAGE_READER_HANG_USEC is left behind, and another one continues. The first ends when the
 * lock is released, or with this process, because the wait is killable. Until then no process of
 * the same user is read, so that each user can make one thread hang at a time. The user's queued
 * requests are dropped.
 *
 * A process that has had no page fault since its last result has no further pages. The reader does
 * not read it again, and its result is empty. */

#include "base/ranges.h"
#include "base/time-util.h"

#define PAGE_READER_HANG_USEC USEC_PER_SEC
#define PAGE_READER_QUEUE     64U
/* While this many threads are left behind, no page tables are read. */
#define PAGE_READER_HUNG_MAX 8U

/* Of this many processes the reader remembers how many page faults they had when they were read. */
#define PAGE_READER_REMEMBERED 256U

/* The limits of one process. At a limit, the pages found so far count. The shortest mappings are
 * read first (observe/mapping.h). A file counts again for each group of its mappings that follow
 * one another in this order. */
#define PAGE_READER_MAPS_BYTES   (1U << 20) /* of the text of /proc/PID/maps */
#define PAGE_READER_PAGES        262144U
#define PAGE_READER_FILES        4096U
#define PAGE_READER_PROCESS_USEC (20 * USEC_PER_MSEC)

typedef struct PageRequest {
    uint64_t serial; /* of the run: ProcessRun.serial */
    uint32_t pid;
    uint32_t uid; /* who is charged; UID_INVALID: the users who are not known */
} PageRequest;

/* The pages of one file that one process had touched. */
typedef struct TouchedFile {
    uint64_t serial; /* of the run: ProcessRun.serial */
    uint64_t dev;    /* as in mountinfo */
    uint64_t inode;
    RangeSet ranges; /* not empty */
} TouchedFile;

/* Pure: returns how many page faults the threads of a process have had, from the text of
 * /proc/PID/stat; 0 if the text is not valid. */
uint64_t page_reader_count_faults(const char *text);

typedef struct PageReader PageReader;

/* Makes a reader. The first request starts its thread, which has the caller's signal mask. Returns
 * NULL if memory runs out. */
PageReader *page_reader_new(void);

/* Ends the thread, or leaves it behind if it hangs. */
PageReader *page_reader_free(PageReader *r);

typedef enum PageVerdict {
    PAGE_QUEUED,
    PAGE_FULL,    /* the queue is full: try again later */
    PAGE_REFUSED, /* a process of this user hangs, or no thread can be started */
} PageVerdict;

/* Queues a request. */
PageVerdict page_reader_request(PageReader *r, PageRequest q);

/* What was found in one process. */
typedef struct PageResult {
    PageRequest request;
    usec_t took;
    TouchedFile *files;
    size_t n, allocated;
} PageResult;

/* Frees the files of the result. */
void page_result_done(PageResult *x);

/* Takes the next result, in the order of the requests. The caller calls page_result_done(). Returns
 * false if there is none. Leaves a thread behind that hangs; the result of the process at which it
 * hangs is empty, and took PAGE_READER_HANG_USEC. */
bool page_reader_take(PageReader *r, PageResult *ret);

/* Forgets all requests and results, and which processes were read. */
void page_reader_drop(PageReader *r);
