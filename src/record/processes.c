/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/processes.h"

#include "base/macros.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* pid -> what it is part of */
typedef struct Process {
    UT_hash_handle hh;
    uint32_t pid;
    uint32_t run; /* into runs, or PROCESS_NONE */
    uint32_t uid;
    uint32_t first_unnamed; /* executed after `run`, in this order; PROCESS_NONE: nothing */
    uint32_t last_unnamed;
    uint32_t before; /* the run it returns to if the execve fails */
    usec_t exit_at;
    bool in_group;  /* further exec events belong to the execve that named `run` */
    bool confirmed; /* the connector has reported that execve */
    bool ahead;     /* it has not yet: then its event is not another execve */
    bool via_env;   /* `run` is a script that env(1) is about to interpret */
    bool exited;
    bool stale; /* the batch in which it exited, executed, or was confirmed, is over */
    bool oom;
} Process;

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

struct ProcessTable {
    Process *processes;
    ProcessRun *runs;
    size_t n_runs, allocated_runs;
    bool unsettled; /* some process may have something for process_table_settle() */
};

bool is_loader_name(const char *name)
{
    return strcmp(name, "ld.so") == 0 || strncmp(name, "ld-linux", 8) == 0 ||
           strncmp(name, "ld-musl-", 8) == 0 || strncmp(name, "ld64.so", 7) == 0 ||
           (strncmp(name, "ld-", 3) == 0 && name[3] >= '0' && name[3] <= '9');
}

bool is_env_name(const char *name)
{
    return strcmp(name, "env") == 0;
}

bool is_own_name(const char *name)
{
    return strcmp(name, "headstart") == 0 || strcmp(name, "headstartd") == 0 ||
           strcmp(name, "headstart-replay") == 0;
}

ProcessTable *process_table_new(void)
{
    return calloc(1, sizeof(ProcessTable));
}

ProcessTable *process_table_free(ProcessTable *t)
{
    Process *p, *tmp;

    if (!t)
        return NULL;
    HASH_ITER (hh, t->processes, p, tmp) {
        HASH_DEL(t->processes, p);
        free(p);
    }
    free(t->runs);
    free(t);
    return NULL;
}

static Process *find(const ProcessTable *t, uint32_t pid)
{
    Process *p;

    HASH_FIND(hh, t->processes, &pid, sizeof(pid), p);
    return p;
}

static Process *find_or_add(ProcessTable *t, uint32_t pid)
{
    Process *p = find(t, pid);

    if (p)
        return p;
    p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->pid = pid;
    p->run = p->before = p->uid = p->first_unnamed = p->last_unnamed = PROCESS_NONE;
    HASH_ADD(hh, t->processes, pid, sizeof(p->pid), p);
    if (p->oom) {
        free(p);
        return NULL;
    }
    return p;
}

static void leave_run(ProcessTable *t, Process *p, usec_t at)
{
    ProcessRun *r;

    if (p->run == PROCESS_NONE)
        return;
    r = &t->runs[p->run];
    if (r->n_processes > 0 && --r->n_processes == 0)
        r->end = MAX(at, r->start);
    p->run = PROCESS_NONE;
}

/* A new run that the process is counted in. *ret is PROCESS_NONE if there are too many. */
static int add_run(ProcessTable *t, const Process *p, uint32_t object, usec_t at, uint32_t *ret)
{
    int r;

    if (t->n_runs >= PROCESS_RUNS_MAX) {
        *ret = PROCESS_NONE;
        return 0;
    }
    r = grow_array(&t->runs, &t->allocated_runs, t->n_runs + 1, sizeof(ProcessRun));
    if (r < 0)
        return r;
    *ret = (uint32_t)t->n_runs;
    t->runs[t->n_runs++] = (ProcessRun){
            .object = object,
            .pid = p->pid,
            .uid = p->uid,
            .start = at,
            .end = USEC_INFINITY,
            .n_processes = 1,
            .same_as = PROCESS_NONE,
            .next_unnamed = PROCESS_NONE,
    };
    return 0;
}

/* Goes on to the next run without a name; false if there is none. */
static bool take_unnamed(ProcessTable *t, Process *p)
{
    uint32_t run = p->first_unnamed;

    if (run == PROCESS_NONE)
        return false;
    p->first_unnamed = t->runs[run].next_unnamed;
    if (p->first_unnamed == PROCESS_NONE)
        p->last_unnamed = PROCESS_NONE;
    t->runs[run].next_unnamed = PROCESS_NONE;
    leave_run(t, p, t->runs[run].start);
    p->run = run;
    p->via_env = false;
    return true;
}

bool process_table_knows(const ProcessTable *t, uint32_t pid)
{
    const Process *p = find(t, pid);

    return p && (p->run != PROCESS_NONE || p->first_unnamed != PROCESS_NONE);
}

int process_table_add(ProcessTable *t, uint32_t pid, uint32_t object, uint32_t uid, usec_t start,
                      bool own)
{
    Process *p;
    uint32_t run;
    int r;

    if (process_table_knows(t, pid))
        return 0;
    p = find_or_add(t, pid);
    if (!p)
        return -ENOMEM;
    p->uid = uid;
    r = add_run(t, p, object, start, &run);
    if (r < 0 || run == PROCESS_NONE)
        return r;
    t->runs[run].own = own;
    p->run = run;
    return 0;
}

static void forget(ProcessTable *t, Process *p)
{
    while (take_unnamed(t, p))
        ;
    leave_run(t, p, p->exit_at);
    HASH_DEL(t->processes, p);
    free(p);
}

int process_table_fork(ProcessTable *t, uint32_t parent, uint32_t child)
{
    const Process *p;
    Process *c = find(t, child);
    uint32_t run;

    if (c && !c->exited && process_table_knows(t, child))
        return 0; /* said twice */
    if (c)
        forget(t, c); /* the pid is in use again */
    c = find_or_add(t, child);
    if (!c)
        return -ENOMEM;
    p = find(t, parent);
    if (!p)
        return 0;
    c->uid = p->uid;
    /* The connector's events come in the order they happened: what its parent executed before this
     * fork, named or not yet, is what the child runs. */
    run = p->last_unnamed != PROCESS_NONE ? p->last_unnamed : p->run;
    if (run != PROCESS_NONE) {
        c->run = run;
        t->runs[run].n_processes++;
        t->runs[run].end = USEC_INFINITY;
    }
    return 0;
}

int process_table_uid(ProcessTable *t, uint32_t pid, uint32_t uid)
{
    Process *p = find_or_add(t, pid);

    if (!p)
        return -ENOMEM;
    p->uid = uid;
    return 0;
}

int process_table_exec(ProcessTable *t, uint32_t pid, usec_t at)
{
    Process *p = find_or_add(t, pid);
    uint32_t run;
    int r;

    if (!p)
        return -ENOMEM;
    t->unsettled = true;
    p->stale = false;
    if (p->ahead) {
        p->ahead = false; /* the exec event was read before */
        p->confirmed = true;
        return 0;
    }
    r = add_run(t, p, PROCESS_NONE, at, &run);
    if (r < 0 || run == PROCESS_NONE)
        return r;
    if (p->last_unnamed != PROCESS_NONE)
        t->runs[p->last_unnamed].next_unnamed = run;
    else
        p->first_unnamed = run;
    p->last_unnamed = run;
    return 0;
}

void process_table_exit(ProcessTable *t, uint32_t pid, usec_t at)
{
    Process *p = find(t, pid);

    if (!p || p->exited)
        return;
    p->exited = true;
    p->stale = false;
    p->exit_at = at;
    t->unsettled = true;
}

/* The first exec event of an execve: it names the application. */
static int begin_group(ProcessTable *t, Process *p, uint32_t object, unsigned flags, usec_t at)
{
    uint32_t before = p->run, run;
    bool via_env = p->via_env && before != PROCESS_NONE;
    int r;

    p->via_env = false;
    if (take_unnamed(t, p)) {
        p->confirmed = true;
        if (via_env) {
            /* What env executes for a script is the script's interpreter. */
            object = t->runs[before].object;
            t->runs[before].same_as = p->run;
            t->runs[p->run].start = t->runs[before].start;
        }
    } else {
        p->ahead = flags & OPEN_CONFIRMED;
        p->confirmed = false;
        p->before = before;
        if (via_env)
            return 0;
        r = add_run(t, p, object, at, &run);
        if (r < 0)
            return r;
        leave_run(t, p, at);
        p->run = run;
        if (run == PROCESS_NONE)
            return 0;
    }
    t->runs[p->run].object = object;
    t->runs[p->run].own = !via_env ? !!(flags & OPEN_OWN) : t->runs[before].own;
    return 0;
}

/* It opens something else, and the execve that began before is not reported: it has failed. */
static void return_from_exec(ProcessTable *t, Process *p)
{
    uint32_t failed = p->run;

    p->ahead = false;
    p->via_env = false;
    if (failed == p->before || failed == PROCESS_NONE)
        return;
    leave_run(t, p, t->runs[failed].start);
    t->runs[failed].same_as = p->before; /* never a run of its own */
    if (p->before == PROCESS_NONE)
        t->runs[failed].object = PROCESS_NONE;
    p->run = p->before;
    if (p->run != PROCESS_NONE) {
        t->runs[p->run].n_processes++;
        t->runs[p->run].end = USEC_INFINITY;
    }
}

int process_table_open(ProcessTable *t, uint32_t pid, uint32_t object, unsigned flags, usec_t at,
                       uint32_t *ret)
{
    bool program = (flags & OPEN_EXEC) && !(flags & OPEN_LOADER);
    Process *p = program ? find_or_add(t, pid) : find(t, pid);
    int r;

    if (!p) {
        *ret = PROCESS_NONE;
        return program ? -ENOMEM : 0;
    }
    if (program && !p->in_group) {
        r = begin_group(t, p, object, flags, at);
        if (r < 0)
            return r;
    } else if (program && (flags & OPEN_ENV))
        p->via_env = true;
    /* The connector was read after this open was queued: a successful execve before it is known. */
    if (!(flags & OPEN_EXEC) && p->ahead)
        return_from_exec(t, p);
    p->in_group = program;
    /* What it has executed meanwhile lies where no exec events come from, or it would be named: its
     * opens are not those of what it ran before. */
    *ret = !(flags & OPEN_EXEC) && p->last_unnamed != PROCESS_NONE ? p->last_unnamed : p->run;
    return 0;
}

void process_table_reap(ProcessTable *t, bool (*alive)(uint32_t pid), usec_t at)
{
    Process *p, *tmp;

    HASH_ITER (hh, t->processes, p, tmp)
        if (!p->exited && !alive(p->pid))
            process_table_exit(t, p->pid, at);
}

void process_table_lost(ProcessTable *t)
{
    Process *p, *tmp;

    HASH_ITER (hh, t->processes, p, tmp)
        p->ahead = false;
}

void process_table_settle(ProcessTable *t, process_name_t name, void *arg)
{
    Process *p, *tmp;
    bool unsettled = false;

    if (!t->unsettled)
        return;
    HASH_ITER (hh, t->processes, p, tmp) {
        if (!p->exited && p->first_unnamed == PROCESS_NONE && !(p->in_group && p->confirmed))
            continue;
        if (!p->stale) {
            p->stale = true;
            unsettled = true;
            continue;
        }
        if (p->first_unnamed != PROCESS_NONE) {
            uint32_t object = PROCESS_NONE;
            bool own = false;

            while (take_unnamed(t, p))
                ;
            if (!p->exited)
                name(arg, p->pid, &object, &own);
            t->runs[p->run].object = object;
            t->runs[p->run].own = own;
        }
        p->in_group = false;
        if (p->exited)
            forget(t, p);
    }
    t->unsettled = unsettled;
}

int process_table_new_stage(ProcessTable *t, uint32_t (*map)(uint32_t object, void *arg), void *arg)
{
    _cleanup_free_ uint32_t *where = calloc(t->n_runs + 1, sizeof(uint32_t));
    Process *p, *tmp;
    size_t n = 0;

    if (!where)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_runs; i++)
        where[i] = t->runs[i].n_processes > 0 ? (uint32_t)n++ : PROCESS_NONE;
    for (size_t i = 0; i < t->n_runs; i++) {
        ProcessRun r = t->runs[i];

        if (where[i] == PROCESS_NONE)
            continue;
        if (r.object != PROCESS_NONE)
            r.object = map(r.object, arg);
        r.start = 0;
        r.same_as = PROCESS_NONE;
        if (r.next_unnamed != PROCESS_NONE)
            r.next_unnamed = where[r.next_unnamed];
        t->runs[where[i]] = r;
    }
    t->n_runs = n;
    HASH_ITER (hh, t->processes, p, tmp) {
        if (p->run != PROCESS_NONE)
            p->run = where[p->run];
        if (p->before != PROCESS_NONE)
            p->before = where[p->before];
        if (p->first_unnamed != PROCESS_NONE)
            p->first_unnamed = where[p->first_unnamed];
        if (p->last_unnamed != PROCESS_NONE)
            p->last_unnamed = where[p->last_unnamed];
    }
    return 0;
}

const ProcessRun *process_table_runs(const ProcessTable *t, size_t *ret_n)
{
    *ret_n = t->n_runs;
    return t->runs;
}
