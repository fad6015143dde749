/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Over 500 lines in one file: forks, execs, exits and opens arrive in any order, and each handler
 * changes the same two tables. */

#include "observe/processes.h"

#include "base/macros.h"
#include "observe/subordinate-uids.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Runs, linked by their `next`. */
typedef struct RunList {
    uint32_t first, last; /* PROCESS_NONE: it is empty */
    uint32_t n;
} RunList;

/* PID -> the run that the process is part of */
typedef struct Process {
    UT_hash_handle hh;
    uint32_t pid;
    uint32_t run; /* into runs, or PROCESS_NONE */
    uint32_t uid;
    uint32_t before; /* the run it returns to if the execve fails */
    /* The unsettled runs of the process: those from exec events, and those from the connector.
     * match() decides which of them are the same run. */
    RunList named, reported;
    usec_t exit_at;
    bool in_group; /* the next exec events belong to the same execve as `run` */
    bool opened;   /* it has opened another file since its last exec event, so its execve is over */
    bool asked;    /* after the last exec event, /proc named a program on a watched filesystem */
    bool via_env;  /* `run` is a script that env(1) is about to interpret */
    bool exited;
    bool stale; /* the batch in which it exited or executed is over */
    bool oom;
} Process;

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

/* The number of runs in the table that began with the UID `uid`. */
typedef struct RunCount {
    uint32_t uid;
    uint32_t n;
} RunCount;

struct ProcessTable {
    Process *processes;
    RunCount counts[PROCESS_USERS_MAX]; /* the first counts root's runs, the last those of all
                                           further users */
    size_t n_counts;
    ProcessRun *runs;
    size_t n_runs, allocated_runs;
    uint64_t serial; /* of the next run */
    bool unsettled;  /* a process may have unsettled runs for process_table_settle() */
};

size_t process_find_serial(const ProcessRun *runs, size_t n, uint64_t serial)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (runs[mid].serial < serial)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

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
    p->run = p->before = PROCESS_NONE;
    p->uid = UID_INVALID;
    p->named.first = p->named.last = p->reported.first = p->reported.last = PROCESS_NONE;
    HASH_ADD(hh, t->processes, pid, sizeof(p->pid), p);
    if (p->oom) {
        free(p);
        return NULL;
    }
    return p;
}

/* Returns the run that this run turned out to be a part of, or the run itself. */
static ProcessRun *resolve(const ProcessTable *t, uint32_t run)
{
    while (t->runs[run].same_as != PROCESS_NONE)
        run = t->runs[run].same_as;
    return &t->runs[run];
}

static void leave_run(ProcessTable *t, Process *p, usec_t at)
{
    ProcessRun *r;

    if (p->run == PROCESS_NONE)
        return;
    r = resolve(t, p->run);
    if (r->n_processes > 0 && --r->n_processes == 0)
        r->end = MAX(at, r->start);
    p->run = PROCESS_NONE;
}

static void enter_run(ProcessTable *t, Process *p, uint32_t run)
{
    ProcessRun *r;

    p->run = run;
    if (run == PROCESS_NONE)
        return;
    r = resolve(t, run);
    r->n_processes++;
    r->end = USEC_INFINITY;
}

/* Makes `run`, with its processes, a part of `of`. */
static void make_same(ProcessTable *t, uint32_t run, uint32_t of)
{
    ProcessRun *r = &t->runs[run], *o = resolve(t, of);

    if (r == o)
        return;
    o->n_processes += r->n_processes;
    if (r->n_processes > 0)
        o->end = USEC_INFINITY;
    r->n_processes = 0;
    r->same_as = (uint32_t)(o - t->runs);
}

static RunCount *count_of(ProcessTable *t, uint32_t uid)
{
    if (t->n_counts == 0)
        t->counts[t->n_counts++] = (RunCount){.uid = 0};
    for (size_t i = 0; i < t->n_counts; i++)
        if (t->counts[i].uid == uid)
            return &t->counts[i];
    if (t->n_counts < PROCESS_USERS_MAX)
        t->counts[t->n_counts++] = (RunCount){.uid = uid};
    return &t->counts[t->n_counts - 1];
}

static bool has_room(const ProcessTable *t, const RunCount *c)
{
    size_t others = t->n_runs - t->counts[0].n, max = PROCESS_RUNS_OTHERS_MAX;

    if (t->n_runs >= PROCESS_RUNS_MAX)
        return false;
    if (c == t->counts)
        return true;
    if (c->n >= PROCESS_RUNS_FEW)
        max -= PROCESS_RUNS_KEPT_MAX;
    return others < max && c->n < PROCESS_RUNS_USER_MAX;
}

/* Adds a run without processes. *ret is PROCESS_NONE if there is no room for it. Returns 0 or
 * -ENOMEM. */
static int add_run(ProcessTable *t, const Process *p, uint32_t object, usec_t at, uint32_t *ret)
{
    RunCount *count = count_of(t, p->uid);
    int r;

    if (!has_room(t, count)) {
        *ret = PROCESS_NONE;
        return 0;
    }
    r = grow_array(&t->runs, &t->allocated_runs, t->n_runs + 1, sizeof(ProcessRun));
    if (r < 0)
        return r;
    *ret = (uint32_t)t->n_runs;
    count->n++;
    t->runs[t->n_runs++] = (ProcessRun){
            .object = object,
            .pid = p->pid,
            .uid = p->uid,
            .start = at,
            .end = at,
            .same_as = PROCESS_NONE,
            .next = PROCESS_NONE,
            .serial = t->serial++,
    };
    return 0;
}

static void list_append(ProcessTable *t, RunList *l, uint32_t run)
{
    if (l->last == PROCESS_NONE)
        l->first = run;
    else
        t->runs[l->last].next = run;
    l->last = run;
    l->n++;
}

static uint32_t list_take_first(ProcessTable *t, RunList *l)
{
    uint32_t run = l->first;

    l->first = t->runs[run].next;
    if (l->first == PROCESS_NONE)
        l->last = PROCESS_NONE;
    t->runs[run].next = PROCESS_NONE;
    l->n--;
    return run;
}

static void list_take_last(ProcessTable *t, RunList *l)
{
    uint32_t run = l->first, last = l->last;

    if (run == last) {
        list_take_first(t, l);
        return;
    }
    while (t->runs[run].next != last)
        run = t->runs[run].next;
    t->runs[run].next = PROCESS_NONE;
    l->last = run;
    l->n--;
}

bool process_table_knows(const ProcessTable *t, uint32_t pid)
{
    const Process *p = find(t, pid);

    return p && (p->run != PROCESS_NONE || p->reported.n > 0);
}

uint32_t process_table_uid_of(const ProcessTable *t, uint32_t pid)
{
    const Process *p = find(t, pid);

    return p ? p->uid : UID_INVALID;
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
    enter_run(t, p, run);
    return 0;
}

/* Returns true if the last execve of the process is not reported yet and the process has opened no
 * other file since that execve. */
static bool is_under_way(const Process *p)
{
    return p->named.n > p->reported.n && !p->opened;
}

/* Matches reported runs with the first `n` named ones. `last_watched`: the program that the process
 * executed last is on a filesystem that reports exec events. If this is true, the last runs of both
 * lists are the same run. If it is false, the first runs of both lists are the same run. */
static void match(ProcessTable *t, Process *p, uint32_t n, bool last_watched)
{
    while (last_watched && p->reported.n > n)
        list_take_first(t, &p->reported); /* executed before, on a filesystem that is not watched */
    while (n > p->reported.n) {
        list_take_first(t, &p->named); /* its report was lost */
        n--;
    }
    for (; n > 0; n--) {
        uint32_t named = list_take_first(t, &p->named);
        uint32_t reported = list_take_first(t, &p->reported);

        /* The connector has the exact time and the UID. */
        if (t->runs[named].same_as == PROCESS_NONE) {
            t->runs[named].start = t->runs[reported].start;
            t->runs[named].end = MAX(t->runs[named].end, t->runs[named].start);
            t->runs[named].uid = t->runs[reported].uid;
        }
        make_same(t, reported, named);
    }
}

/* Returns true if the last named run of a process with as many names as reports may be an execve
 * that still reads its program. The last report then belongs to a program that no exec event names.
 */
static bool may_be_under_way(const Process *p)
{
    return p->named.n > 0 && p->named.n == p->reported.n && !p->opened && !p->exited;
}

/* Matches the two lists of a process, which must be complete, and names the last report that has no
 * match. Returns false if it has to wait, because the next batch may bring the report of the last
 * named run. Without `name` it does not wait. */
static bool settle_execs(ProcessTable *t, Process *p, process_name_t name, void *arg)
{
    uint32_t n = p->named.n - is_under_way(p), object = PROCESS_NONE, last;
    bool unsure = name && may_be_under_way(p) && !p->asked;
    bool own = false, watched = true;

    if (unsure || (name && p->reported.n > n && !p->exited))
        watched = name(arg, p->pid, &object, &own);
    if (unsure && !watched)
        n--;
    else if (p->reported.n >= p->named.n)
        p->in_group = false; /* all events that were queued before the report have been read */
    if (unsure && watched) {
        p->asked = true; /* if this program was executed just now, its report is still queued */
        return false;
    }
    match(t, p, n, watched && n > 0);
    if (p->reported.n == 0)
        return true;
    last = p->reported.last;
    while (p->reported.n > 0)
        list_take_first(t, &p->reported);
    t->runs[last].object = object;
    t->runs[last].own = own;
    if (!is_under_way(p)) {
        leave_run(t, p, t->runs[last].start);
        enter_run(t, p, last);
    }
    return true;
}

static void forget(ProcessTable *t, Process *p, process_name_t name, void *arg)
{
    (void)settle_execs(t, p, name, arg);
    while (p->named.n > 0)
        list_take_first(t, &p->named);
    leave_run(t, p, p->exit_at);
    HASH_DEL(t->processes, p);
    free(p);
}

int process_table_fork(ProcessTable *t, uint32_t parent, uint32_t child)
{
    const Process *p;
    Process *c = find(t, child);

    if (c && !c->exited && process_table_knows(t, child))
        return 0; /* reported twice */
    if (c)
        forget(t, c, NULL, NULL); /* the PID is used again */
    c = find_or_add(t, child);
    if (!c)
        return -ENOMEM;
    p = find(t, parent);
    if (!p)
        return 0;
    c->uid = p->uid;
    /* The connector reports in the order of events: the child runs the program that its parent
     * executed before this fork, whether or not that program has a name yet. */
    enter_run(t, c, p->reported.n > 0 ? p->reported.last : p->run);
    return 0;
}

/* A process that belongs to a person and becomes root, or gets a UID that may be a subordinate one,
 * still belongs to that person. */
static uint32_t owner_after(uint32_t before, uint32_t uid)
{
    return uid_is_person(before) && (uid == 0 || subordinate_uid_is_possible(uid)) ? before : uid;
}

int process_table_uid(ProcessTable *t, uint32_t pid, uint32_t uid)
{
    Process *p = find_or_add(t, pid);

    if (!p)
        return -ENOMEM;
    p->uid = owner_after(p->uid, uid);
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
    /* If a thread other than the leader executes a program, the leader exits first. The process
     * lives on with the thread as its leader. */
    p->exited = false;
    p->stale = false;
    p->asked = false;
    r = add_run(t, p, PROCESS_NONE, at, &run);
    if (r >= 0 && run != PROCESS_NONE)
        list_append(t, &p->reported, run);
    return r;
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

/* Handles the first exec event of an execve, which names the application. */
static int begin_group(ProcessTable *t, Process *p, uint32_t object, unsigned flags, usec_t at)
{
    uint32_t before = p->run, run;
    bool via_env = p->via_env && before != PROCESS_NONE;
    int r = add_run(t, p, object, at, &run);

    if (r < 0)
        return r;
    p->via_env = false;
    p->opened = false;
    p->asked = false;
    p->before = before;
    if (run != PROCESS_NONE) {
        t->runs[run].own = flags & OPEN_OWN;
        if (flags & OPEN_REPORTED)
            list_append(t, &p->named, run);
    }
    if (via_env && run != PROCESS_NONE) {
        /* A program that env executes for a script is the script's interpreter. */
        t->runs[run].same_as = (uint32_t)(resolve(t, before) - t->runs);
        t->runs[run].own = t->runs[before].own;
        p->run = run;
        return 0;
    }
    leave_run(t, p, at);
    enter_run(t, p, run);
    return 0;
}

/* Returns a process to its previous run, because it has opened another file before its execve was
 * reported: the execve has failed. */
static void return_from_exec(ProcessTable *t, Process *p)
{
    uint32_t failed = p->run;

    list_take_last(t, &p->named);
    p->via_env = false;
    if (failed == PROCESS_NONE)
        return;
    leave_run(t, p, t->runs[failed].start);
    enter_run(t, p, p->before);
    if (t->runs[failed].same_as != PROCESS_NONE)
        return;
    /* The failed execve made no run. */
    if (p->before == PROCESS_NONE)
        t->runs[failed].object = PROCESS_NONE;
    else
        make_same(t, failed, p->before);
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
    if (!(flags & OPEN_EXEC)) {
        /* The connector was read after this open was queued, so it has reported each earlier
         * execve. */
        if (is_under_way(p))
            return_from_exec(t, p);
        p->opened = true;
    }
    p->in_group = program;
    *ret = p->run;
    /* A program on a filesystem that is not watched is not headstart's, even if a program of
     * headstart executes it. */
    if (!(flags & OPEN_EXEC) && p->run != PROCESS_NONE && t->runs[p->run].own &&
        p->reported.n > p->named.n)
        *ret = p->reported.last;
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
        while (p->named.n > p->reported.n)
            list_take_first(t, &p->named);
}

void process_table_settle(ProcessTable *t, process_name_t name, void *arg)
{
    Process *p, *tmp;
    bool unsettled = false;

    if (!t->unsettled)
        return;
    HASH_ITER (hh, t->processes, p, tmp) {
        if (!p->exited && p->reported.n == 0)
            continue;
        if (!p->stale) {
            p->stale = true;
            unsettled = true;
            continue;
        }
        if (p->exited)
            forget(t, p, name, arg);
        else
            unsettled |= !settle_execs(t, p, name, arg);
    }
    t->unsettled = unsettled;
}

/* Marks the runs to keep: runs that continue, runs with a serial of `keep_from` or higher, and
 * unsettled runs of the processes in the table. If such a run is a part of another run, that run is
 * kept, too. */
static void mark_kept(const ProcessTable *t, uint64_t keep_from, bool *kept)
{
    Process *p, *tmp;

    for (size_t i = 0; i < t->n_runs; i++)
        kept[i] = t->runs[i].n_processes > 0 || t->runs[i].serial >= keep_from;
    HASH_ITER (hh, t->processes, p, tmp) {
        for (uint32_t i = p->reported.first; i != PROCESS_NONE; i = t->runs[i].next)
            kept[i] = true;
        for (uint32_t i = p->named.first; i != PROCESS_NONE; i = t->runs[i].next)
            kept[i] = true;
    }
    for (size_t i = 0; i < t->n_runs; i++)
        if (kept[i])
            kept[resolve(t, (uint32_t)i) - t->runs] = true;
}

/* Renumbers the runs that stay. References to a forgotten run that was part of another run get the
 * number of that other run. Returns how many runs stay. */
static uint32_t number_kept(const ProcessTable *t, const bool *kept, uint32_t *where)
{
    uint32_t n = 0;

    for (size_t i = 0; i < t->n_runs; i++)
        where[i] = kept[i] ? n++ : PROCESS_NONE;
    for (size_t i = 0; i < t->n_runs; i++)
        if (!kept[i] && t->runs[i].same_as != PROCESS_NONE)
            where[i] = where[resolve(t, (uint32_t)i) - t->runs];
    return n;
}

static void renumber_processes(ProcessTable *t, const uint32_t *where)
{
    Process *p, *tmp;

    HASH_ITER (hh, t->processes, p, tmp) {
        uint32_t *const refs[] = {&p->run,        &p->before,         &p->named.first,
                                  &p->named.last, &p->reported.first, &p->reported.last};

        for (size_t i = 0; i < ELEMENTSOF(refs); i++)
            if (*refs[i] != PROCESS_NONE)
                *refs[i] = where[*refs[i]];
    }
}

int process_table_compact(ProcessTable *t, uint64_t keep_from,
                          uint32_t (*map)(uint32_t object, void *arg), void *arg)
{
    _cleanup_free_ uint32_t *where = calloc(t->n_runs + 1, sizeof(uint32_t));
    _cleanup_free_ bool *kept = calloc(t->n_runs + 1, sizeof(bool));
    uint32_t n;

    if (!where || !kept)
        return -ENOMEM;
    mark_kept(t, keep_from, kept);
    n = number_kept(t, kept, where);
    renumber_processes(t, where);
    for (size_t i = 0; i < t->n_runs; i++) {
        ProcessRun r = t->runs[i];

        if (!kept[i])
            continue;
        if (r.object != PROCESS_NONE)
            r.object = map(r.object, arg);
        if (r.same_as != PROCESS_NONE)
            r.same_as = where[r.same_as];
        if (r.next != PROCESS_NONE)
            r.next = where[r.next];
        t->runs[where[i]] = r;
    }
    t->n_runs = n;
    t->n_counts = 0;
    for (size_t i = 0; i < n; i++)
        count_of(t, t->runs[i].uid)->n++;
    return 0;
}

int process_table_new_stage(ProcessTable *t, uint32_t (*map)(uint32_t object, void *arg), void *arg)
{
    int r = process_table_compact(t, UINT64_MAX, map, arg);

    for (size_t i = 0; r >= 0 && i < t->n_runs; i++) {
        t->runs[i].start = 0;
        t->runs[i].end = t->runs[i].n_processes > 0 ? USEC_INFINITY : 0;
    }
    return r;
}

const ProcessRun *process_table_runs(const ProcessTable *t, size_t *ret_n)
{
    *ret_n = t->n_runs;
    return t->runs;
}
