/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Assigns processes to applications: a state machine over the events of fanotify and the proc
 * connector. Pure: events in, attributions out.
 *
 * A run is one execution of an application by one process. The processes that this process forks
 * belong to the run. The first exec event of an execve names the application. execve(2) of a script
 * opens the script, its interpreter and the dynamic loader for execution; execve(2) of an ELF
 * program opens the program and the loader. These events are a group. A group ends when the process
 * opens the loader, or a file that it does not execute. It also ends when all events that were
 * queued before the connector's report of the execve have been read. A script that runs through env
 * stays that script when env executes its interpreter. A run ends when its last process exits or
 * executes something else.
 *
 * fanotify and the connector are two queues without a common clock. A batch reads the opens first
 * and the connector second, but hands in the connector's events first (observer.c). Therefore the
 * process of each open is known in time, and the connector's events are younger than the opens by
 * at most one batch. An execve thus makes two runs: the exec event names one, and the connector
 * reports the other, which later forks inherit. When the next batch is over, both have arrived, and
 * they are matched. A report that has no name by then belongs to a program on a filesystem that is
 * not watched.
 *
 * If that program then executes a watched one from a cold disk, the exec event comes long before
 * the report of its execve, and could be matched with the earlier report. As long as the process
 * has opened no other file, /proc therefore tells which program it runs. If the program is not
 * watched, the execve is still under way. If it is watched, the match waits for one more batch,
 * because a report that preceded the look into /proc may still be queued.
 *
 * The life cycle of a process record:
 *
 *     unknown    -> known     process_table_add() (found in /proc), process_table_fork(), or the
 *                             first exec event. The record belongs to a run.
 *     known      -> executing an exec event adds a named run, process_table_exec() a reported run.
 *                             The process moves to the named run at once.
 *     executing  -> known     process_table_settle(), one batch after the last report: it matches
 *                             named and reported runs and gets missing names from /proc. If the
 *                             process opens another file before the report, the execve has failed,
 *                             and the process returns to its previous run.
 *     any        -> exited    process_table_exit() or process_table_reap(). The record stays, since
 *                             opens of the process may still be queued.
 *     exited     -> executing process_table_exec(): only the first thread had exited, because
 *                             another thread of the process called execve(2).
 *     exited     -> forgotten process_table_settle(), one batch later, or process_table_fork() if
 *                             the PID is used again. The process leaves its run. */

#include "base/time-util.h"
#include "base/uid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_NONE UINT32_MAX

/* The maximum numbers of runs that the table holds: in total, of all users but root, and of one
 * user other than root. Opens of further runs count as opens of unknown processes.
 * process_table_compact() makes room. */
#define PROCESS_RUNS_MAX        250000U
#define PROCESS_RUNS_OTHERS_MAX 190000U
#define PROCESS_RUNS_USER_MAX   125000U
/* PROCESS_RUNS_KEPT_MAX runs are kept free for users with fewer than PROCESS_RUNS_FEW runs. Several
 * users together therefore cannot fill the table either. */
#define PROCESS_RUNS_KEPT_MAX 40000U
#define PROCESS_RUNS_FEW      4000U
/* Users beyond this number are counted as one user. */
#define PROCESS_USERS_MAX 512U

/* One run of an application. */
typedef struct ProcessRun {
    uint32_t object;      /* the executed file: a number of the caller; PROCESS_NONE: not known */
    uint32_t pid;         /* of the process that executed it */
    uint32_t uid;         /* the user to whom that process belonged then; UID_INVALID: not known */
    uint32_t n_processes; /* live processes that are part of the run */
    usec_t start;         /* on the caller's clock */
    usec_t end;           /* USEC_INFINITY: still running */
    uint32_t same_as;     /* the run that this one is part of; PROCESS_NONE: it is a separate run */
    uint32_t next;        /* internal */
    uint64_t serial;      /* rises with each run, also over stages, and never changes */
    bool own;             /* a program of headstart */
} ProcessRun;

typedef struct ProcessTable ProcessTable;

/* Returns NULL if memory runs out. */
ProcessTable *process_table_new(void);
ProcessTable *process_table_free(ProcessTable *t);

/* Adds a process whose start was not reported, with the object that it runs (PROCESS_NONE: not
 * known) and its user. The entry of a known PID stays as it is. Returns 0 or -ENOMEM. */
int process_table_add(ProcessTable *t, uint32_t pid, uint32_t object, uint32_t uid, usec_t start,
                      bool own);

/* Returns true if the run of that process is known. */
bool process_table_knows(const ProcessTable *t, uint32_t pid);

/* Returns the user to whom the process belongs: its UID, with one exception. If a process of a
 * person (UID 1000 or higher) becomes root or gets a UID from SUBORDINATE_UID_MIN on, it and the
 * processes that it forks still belong to this person. A user can therefore start no process that
 * counts as root's. Returns UID_INVALID if the user is not known. */
uint32_t process_table_uid_of(const ProcessTable *t, uint32_t pid);

/* Handle the reports of the proc connector; `uid` is the new real UID. An unknown process is no
 * error. Return 0 or -ENOMEM. */
int process_table_fork(ProcessTable *t, uint32_t parent, uint32_t child);
int process_table_uid(ProcessTable *t, uint32_t pid, uint32_t uid);
int process_table_exec(ProcessTable *t, uint32_t pid, usec_t at);
void process_table_exit(ProcessTable *t, uint32_t pid, usec_t at);

/* The way in which a file was opened, and its kind. */
typedef enum OpenFlags {
    OPEN_EXEC = 1 << 0,     /* for execution */
    OPEN_LOADER = 1 << 1,   /* the file is a dynamic loader */
    OPEN_ENV = 1 << 2,      /* the file is env(1) */
    OPEN_OWN = 1 << 3,      /* the file is a program of headstart's */
    OPEN_REPORTED = 1 << 4, /* the connector reports every execve that succeeds */
} OpenFlags;

/* Adds an open by that process. *ret is the run to which the open belongs, or PROCESS_NONE if no
 * such run is known. Returns 0 or -ENOMEM. */
int process_table_open(ProcessTable *t, uint32_t pid, uint32_t object, unsigned flags, usec_t at,
                       uint32_t *ret);

/* Marks every process as exited for which `alive` returns false: without the connector nothing
 * reports exits. */
void process_table_reap(ProcessTable *t, bool (*alive)(uint32_t pid), usec_t at);

/* Call it when the connector has lost events: exec events that wait for a report will not get
 * one. */
void process_table_lost(ProcessTable *t);

/* Call it when a batch is over. Forgets the processes that had exited by the end of the previous
 * batch, and matches the runs executed by then. `name` is called for a process whose last report
 * has no name. It returns true if the process's program lies on a watched filesystem. Then exec
 * events have named the program, and the report without a name belongs to an earlier execution. If
 * it returns false, it may set *ret_object (PROCESS_NONE by default) and *ret_own. */
typedef bool (*process_name_t)(void *arg, uint32_t pid, uint32_t *ret_object, bool *ret_own);
void process_table_settle(ProcessTable *t, process_name_t name, void *arg);

/* Forgets the runs that are over, except runs that still wait to be matched and runs whose serial
 * is `keep_from` or higher. Renumbers the others from 0, in their order, and replaces each object
 * by `map(object)` (PROCESS_NONE stays). Times of start and end stay. Returns 0 or -ENOMEM. */
int process_table_compact(ProcessTable *t, uint64_t keep_from,
                          uint32_t (*map)(uint32_t object, void *arg), void *arg);

/* Begins a stage, at which the caller's clock restarts. Forgets all ended runs that do not wait to
 * be matched. Runs that continue get start 0, because they ran before the stage. In all other
 * respects it is like process_table_compact(). */
int process_table_new_stage(ProcessTable *t, uint32_t (*map)(uint32_t object, void *arg),
                            void *arg);

/* Returns the runs. The array is valid until the next call that changes the table. */
const ProcessRun *process_table_runs(const ProcessTable *t, size_t *ret_n);

/* Returns the index of the first of the runs whose serial is `serial` or higher; n if there is
 * none. */
size_t process_find_serial(const ProcessRun *runs, size_t n, uint64_t serial);

/* Returns true for the file name of a dynamic loader: ld.so, ld-linux*, ld-musl-*, ld64.so*, and
 * ld- with a digit after it (ld-2.31.so). */
bool is_loader_name(const char *name);

/* Returns true for the file name of env(1). */
bool is_env_name(const char *name);

/* Returns true for the file names of headstart's own programs. */
bool is_own_name(const char *name);
