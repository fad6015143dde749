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
    uint32_t run;       /* into runs, or PROCESS_NONE */
    uint32_t uid;
    bool in_exec_group; /* further exec events belong to the execve that named the application */
    bool exited;
    bool oom;
} Process;

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

struct ProcessTable {
    Process *processes;
    ProcessRun *runs;
    size_t n_runs, allocated_runs;
    bool any_exited;
};

bool is_loader_name(const char *name)
{
    return strcmp(name, "ld.so") == 0 || strncmp(name, "ld-linux", 8) == 0 ||
           strncmp(name, "ld-musl-", 8) == 0 || strncmp(name, "ld64.so", 7) == 0 ||
           (strncmp(name, "ld-", 3) == 0 && name[3] >= '0' && name[3] <= '9');
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
    p->run = PROCESS_NONE;
    p->uid = PROCESS_NONE;
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

static int enter_new_run(ProcessTable *t, Process *p, uint32_t object, bool own, usec_t at)
{
    int r = grow_array(&t->runs, &t->allocated_runs, t->n_runs + 1, sizeof(ProcessRun));

    if (r < 0)
        return r;
    leave_run(t, p, at);
    p->run = (uint32_t)t->n_runs;
    t->runs[t->n_runs++] = (ProcessRun){
            .object = object,
            .pid = p->pid,
            .uid = p->uid,
            .start = at,
            .end = USEC_INFINITY,
            .n_processes = 1,
            .own = own,
    };
    return 0;
}

bool process_table_knows(const ProcessTable *t, uint32_t pid)
{
    const Process *p = find(t, pid);

    return p && p->run != PROCESS_NONE;
}

int process_table_add(ProcessTable *t, uint32_t pid, uint32_t object, uint32_t uid, usec_t start,
                      bool own)
{
    Process *p;

    if (process_table_knows(t, pid))
        return 0;
    p = find_or_add(t, pid);
    if (!p)
        return -ENOMEM;
    p->uid = uid;
    return enter_new_run(t, p, object, own, start);
}

int process_table_fork(ProcessTable *t, uint32_t parent, uint32_t child)
{
    const Process *p = find(t, parent);
    Process *c = find_or_add(t, child);

    if (!c)
        return -ENOMEM;
    if (c->run != PROCESS_NONE) {
        if (!c->exited)
            return 0; /* said twice */
        leave_run(t, c, 0); /* the pid is in use again */
    }
    c->exited = false;
    c->in_exec_group = false;
    c->run = PROCESS_NONE;
    c->uid = p ? p->uid : PROCESS_NONE;
    if (p && p->run != PROCESS_NONE) {
        c->run = p->run;
        t->runs[c->run].n_processes++;
        t->runs[c->run].end = USEC_INFINITY;
    }
    return 0;
}

void process_table_uid(ProcessTable *t, uint32_t pid, uint32_t uid)
{
    Process *p = find(t, pid);

    if (p)
        p->uid = uid;
}

void process_table_exec(ProcessTable *t, uint32_t pid, usec_t at)
{
    Process *p = find(t, pid);

    if (p && p->run != PROCESS_NONE && t->runs[p->run].own)
        leave_run(t, p, at);
}

void process_table_exit(ProcessTable *t, uint32_t pid, usec_t at)
{
    Process *p = find(t, pid);

    if (!p || p->exited)
        return;
    p->exited = true;
    t->any_exited = true;
    if (p->run != PROCESS_NONE) {
        ProcessRun *r = &t->runs[p->run];

        /* It leaves when the batch settles; the end is now. */
        if (r->n_processes == 1)
            r->end = MAX(at, r->start);
    }
}

int process_table_open(ProcessTable *t, uint32_t pid, uint32_t object, bool exec, bool loader,
                       bool own, usec_t at, uint32_t *ret)
{
    Process *p = find(t, pid);
    usec_t ended = USEC_INFINITY;
    int r;

    if (!p && exec && !loader) {
        p = find_or_add(t, pid);
        if (!p)
            return -ENOMEM;
    }
    if (!p) {
        *ret = PROCESS_NONE;
        return 0;
    }
    if (exec && !loader && !p->in_exec_group) {
        /* Its exit may have been read before its execve: both lie in this batch. */
        if (p->exited && p->run != PROCESS_NONE)
            ended = MIN(t->runs[p->run].end, at);
        r = enter_new_run(t, p, object, own, at);
        if (r < 0)
            return r;
        if (p->exited)
            t->runs[p->run].end = ended == USEC_INFINITY ? at : MAX(ended, at);
    }
    p->in_exec_group = exec && !loader;
    *ret = p->run;
    return 0;
}

void process_table_reap(ProcessTable *t, bool (*alive)(uint32_t pid), usec_t at)
{
    Process *p, *tmp;

    HASH_ITER (hh, t->processes, p, tmp)
        if (!p->exited && !alive(p->pid))
            process_table_exit(t, p->pid, at);
}

void process_table_settle(ProcessTable *t)
{
    Process *p, *tmp;

    if (!t->any_exited)
        return;
    HASH_ITER (hh, t->processes, p, tmp)
        if (p->exited) {
            if (p->run != PROCESS_NONE) {
                ProcessRun *r = &t->runs[p->run];
                usec_t end = r->end == USEC_INFINITY ? r->start : r->end;

                leave_run(t, p, end);
            }
            HASH_DEL(t->processes, p);
            free(p);
        }
    t->any_exited = false;
}

int process_table_new_stage(ProcessTable *t, uint32_t (*map)(uint32_t object, void *arg), void *arg)
{
    _cleanup_free_ uint32_t *where = NULL;
    Process *p, *tmp;
    size_t n = 0;

    process_table_settle(t);
    where = calloc(t->n_runs + 1, sizeof(uint32_t));
    if (!where)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_runs; i++) {
        ProcessRun r = t->runs[i];

        if (r.n_processes == 0)
            continue;
        where[i] = (uint32_t)n;
        if (r.object != PROCESS_NONE)
            r.object = map(r.object, arg);
        r.start = 0;
        t->runs[n++] = r;
    }
    t->n_runs = n;
    HASH_ITER (hh, t->processes, p, tmp)
        if (p->run != PROCESS_NONE)
            p->run = where[p->run];
    return 0;
}

const ProcessRun *process_table_runs(const ProcessTable *t, size_t *ret_n)
{
    *ret_n = t->n_runs;
    return t->runs;
}
