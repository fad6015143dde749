/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which process is which application: a state machine over what fanotify and the proc connector
 * report. Pure: events in, attributions out.
 *
 * One execve(2) of a script opens the script, its interpreter and the dynamic loader for execution,
 * an ELF program itself and the loader: the first exec event of such a group names the application.
 * A group ends with the loader, with any other open of that process, or when the connector has
 * reported the execve and everything queued before it was read. A script that is run through env
 * stays that script when env executes its interpreter. fork(2) inherits the application. An
 * application runs as long as one process of its family does.
 *
 * The two sources are two queues without a common clock; what orders them is this. A batch reads
 * opens first and the connector second, but hands the connector's events in first (recorder.c): so
 * whoever opens something is known by then, and what the connector says may be younger than the
 * opens at hand, by one batch at most. An execve thus makes two runs: one that the exec event
 * names, and one that the connector reports and that forks after it inherit. When the next batch is
 * over both are complete, and matched; so it is with exits. What then has a report but no name was
 * executed where nobody watches. */

#include "base/time-util.h"
#include "base/uid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_NONE UINT32_MAX

/* How many runs the table holds, those of all users but root, and those of one such user. The opens
 * of further runs count as unknown. process_table_compact() makes room. */
#define PROCESS_RUNS_MAX        250000U
#define PROCESS_RUNS_OTHERS_MAX 190000U
#define PROCESS_RUNS_USER_MAX   125000U
/* Users beyond these count as one. */
#define PROCESS_USERS_MAX 512U

/* One run of an application. */
typedef struct ProcessRun {
    uint32_t object;      /* what was executed: the caller's number; UID_INVALID: not known */
    uint32_t pid;         /* of the process that executed it */
    uint32_t uid;         /* UID_INVALID: not known */
    uint32_t n_processes; /* of its family that are alive */
    usec_t start;         /* the caller's clock */
    usec_t end;           /* USEC_INFINITY: still running */
    uint32_t same_as;     /* the run that this one turned out to be a part of, and not one of its
                           * own; PROCESS_NONE: it is */
    uint32_t next;        /* internal */
    uint64_t serial;      /* its own for good: rising, also over stages */
    bool own;             /* headstart's */
} ProcessRun;

typedef struct ProcessTable ProcessTable;

/* NULL if out of memory. */
ProcessTable *process_table_new(void);
ProcessTable *process_table_free(ProcessTable *t);

/* A process that was there before: what it runs (PROCESS_NONE if not known) and whose it is. A pid
 * that is known already is left alone. 0 or -ENOMEM. */
int process_table_add(ProcessTable *t, uint32_t pid, uint32_t object, uint32_t uid, usec_t start,
                      bool own);

/* True if it is known what that process is part of. */
bool process_table_knows(const ProcessTable *t, uint32_t pid);

/* The UID of that process, UID_INVALID if it is not known. */
uint32_t process_table_uid_of(const ProcessTable *t, uint32_t pid);

/* As the proc connector reports them. Processes never seen before are no error. 0 or -ENOMEM. */
int process_table_fork(ProcessTable *t, uint32_t parent, uint32_t child);
int process_table_uid(ProcessTable *t, uint32_t pid, uint32_t uid);
int process_table_exec(ProcessTable *t, uint32_t pid, usec_t at);
void process_table_exit(ProcessTable *t, uint32_t pid, usec_t at);

/* What an open is, and of what. */
typedef enum OpenFlags {
    OPEN_EXEC = 1 << 0,     /* for execution */
    OPEN_LOADER = 1 << 1,   /* the file is a dynamic loader */
    OPEN_ENV = 1 << 2,      /* the file is env(1) */
    OPEN_OWN = 1 << 3,      /* the file is a program of headstart's */
    OPEN_REPORTED = 1 << 4, /* the connector reports every execve that succeeds */
} OpenFlags;

/* An open event of that process. *ret is the run it belongs to, PROCESS_NONE if nothing is known.
 * 0 or -ENOMEM. */
int process_table_open(ProcessTable *t, uint32_t pid, uint32_t object, unsigned flags, usec_t at,
                       uint32_t *ret);

/* Where nothing reports exits: takes every process that is not `alive` any more for exited. */
void process_table_reap(ProcessTable *t, bool (*alive)(uint32_t pid), usec_t at);

/* The connector has lost events: what it did not report may have happened all the same. */
void process_table_lost(ProcessTable *t);

/* A batch is over. Forgets the processes that had exited by the end of the batch before, and gives
 * names to what was executed by then. For what no exec event named, `name` is asked: it returns
 * whether that process's program lies where exec events come from (then they named it, and
 * something before it lay elsewhere) and, if not, may set *ret_object (PROCESS_NONE by default) and
 * *ret_own. */
typedef bool (*process_name_t)(void *arg, uint32_t pid, uint32_t *ret_object, bool *ret_own);
void process_table_settle(ProcessTable *t, process_name_t name, void *arg);

/* Forgets the runs that are over, but for those whose serial is `keep_from` or higher. Numbers the
 * others anew from 0, in their order, and replaces each object by `map(object)` (PROCESS_NONE
 * stays). Instants stay. 0 or -ENOMEM. */
int process_table_compact(ProcessTable *t, uint64_t keep_from,
                          uint32_t (*map)(uint32_t object, void *arg), void *arg);

/* A stage begins, and with it the caller's clock: forgets all runs that are over, and what goes on
 * ran before the stage (start 0). Otherwise as process_table_compact(). */
int process_table_new_stage(ProcessTable *t, uint32_t (*map)(uint32_t object, void *arg),
                            void *arg);

/* Borrowed until the next call. */
const ProcessRun *process_table_runs(const ProcessTable *t, size_t *ret_n);

/* True for the file name of a dynamic loader: ld.so, ld-linux*.so*, ld-musl-*, ld64.so*. */
bool is_loader_name(const char *name);

/* True for the file name of env(1). */
bool is_env_name(const char *name);

/* True for the file names of headstart's own programs. */
bool is_own_name(const char *name);
