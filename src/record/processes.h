/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which process is which application: a state machine over what fanotify and the proc connector
 * report. Pure: events in, attributions out.
 *
 * One execve(2) of a script opens the script, its interpreter and the dynamic loader for execution,
 * an ELF program itself and the loader: the first exec event of such a group names the application.
 * A group ends with the loader, or with any other open of that process. fork(2) inherits the
 * application. An application runs as long as one process of its family does. */

#include "base/time-util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_NONE UINT32_MAX

/* One run of an application. */
typedef struct ProcessRun {
    uint32_t object; /* what was executed: the caller's number; PROCESS_NONE: not known */
    uint32_t pid;    /* of the process that executed it */
    uint32_t uid;    /* PROCESS_NONE: not known */
    usec_t start;    /* the caller's clock */
    usec_t end;      /* USEC_INFINITY: still running */
    uint32_t n_processes; /* of its family that are alive */
    bool own;        /* headstart's */
} ProcessRun;

typedef struct ProcessTable ProcessTable;

/* NULL if out of memory. */
ProcessTable *process_table_new(void);
ProcessTable *process_table_free(ProcessTable *t);

/* A process that was there before: what it runs (PROCESS_NONE if not known) and whose it is. A pid
 * that is known already is left alone. 0 or -ENOMEM. */
int process_table_add(ProcessTable *t, uint32_t pid, uint32_t object, uint32_t uid, usec_t start,
                      bool own);

/* True if something is known of that process. */
bool process_table_knows(const ProcessTable *t, uint32_t pid);

/* As the proc connector reports them. Processes never seen before are no error. 0 or -ENOMEM. */
int process_table_fork(ProcessTable *t, uint32_t parent, uint32_t child);
void process_table_uid(ProcessTable *t, uint32_t pid, uint32_t uid);
/* It executed something. What, an exec event of the file tells, if that lies where we watch; a
 * process of headstart's is no longer taken for one in any case (`headstart record COMMAND`). */
void process_table_exec(ProcessTable *t, uint32_t pid, usec_t at);
/* The process stays attributable until process_table_settle(): its last opens may still be in the
 * other queue. */
void process_table_exit(ProcessTable *t, uint32_t pid, usec_t at);

/* An open event of that process: for execution or not; `loader` if the file is a dynamic loader.
 * `own` if the object is a program of headstart's. *ret is the run it belongs to, PROCESS_NONE if
 * nothing is known. 0 or -ENOMEM. */
int process_table_open(ProcessTable *t, uint32_t pid, uint32_t object, bool exec, bool loader,
                       bool own, usec_t at, uint32_t *ret);

/* Where nothing reports exits: takes every process that is not `alive` any more for exited. */
void process_table_reap(ProcessTable *t, bool (*alive)(uint32_t pid), usec_t at);

/* A batch is over: forgets the processes that have exited. */
void process_table_settle(ProcessTable *t);

/* A stage has ended: forgets the runs that are over, numbers the others anew from 0, and makes
 * `map(object)` of each object (PROCESS_NONE stays). 0 or -ENOMEM. */
int process_table_new_stage(ProcessTable *t, uint32_t (*map)(uint32_t object, void *arg), void *arg);

const ProcessRun *process_table_runs(const ProcessTable *t, size_t *ret_n);

/* True for the file name of a dynamic loader: ld.so, ld-linux*.so*, ld-musl-*, ld64.so*. */
bool is_loader_name(const char *name);

/* True for the file names of headstart's own programs. */
bool is_own_name(const char *name);
