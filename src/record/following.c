/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/following.h"

#include "base/macros.h"

#include <string.h>

typedef struct Followed {
    uint64_t serial;
    char *name;     /* NULL: not reported yet */
    ProcessRun run; /* the last state in the process table */
    unsigned batches;
    bool over; /* it had no process in the first update, and got none since */
} Followed;

struct Following {
    uint64_t next;     /* runs with lower serials were already added to the list */
    Followed *entries; /* rising serials */
    size_t n, allocated;
    size_t n_waiting;
    bool begun; /* the first update has added its runs */
};

Following *following_new(void)
{
    return calloc(1, sizeof(Following));
}

Following *following_free(Following *f)
{
    if (!f)
        return NULL;
    for (size_t i = 0; i < f->n; i++)
        free(f->entries[i].name);
    free(f->entries);
    free(f);
    return NULL;
}

bool following_waits(const Following *f)
{
    return f->n_waiting > 0;
}

uint64_t following_first_waiting(const Following *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (!f->entries[i].name)
            return f->entries[i].serial;
    return f->next;
}

static int add_new(Following *f, const ProcessRun *runs, size_t n)
{
    size_t first = process_find_serial(runs, n, f->next);
    int r = grow_array(&f->entries, &f->allocated, f->n + n - first, sizeof(*f->entries));

    if (r < 0)
        return r;
    for (size_t i = first; i < n; i++) {
        f->entries[f->n++] = (Followed){
                .serial = runs[i].serial,
                .run = runs[i],
                .over = !f->begun && runs[i].n_processes == 0,
        };
        f->next = runs[i].serial + 1;
    }
    f->begun = true;
    return 0;
}

/* Reports what happened to a run. Returns false if the run needs no more reports. */
static bool follow(Followed *e, const ProcessRun *run, usec_t now, following_name_t name,
                   following_report_t report, void *arg)
{
    if (run) {
        e->run = *run;
        e->over = e->over && run->n_processes == 0;
    }
    if (!e->name) {
        if (!run)
            return false;
        if (++e->batches < FOLLOWING_BATCHES)
            return true;
        if (e->over || run->same_as != PROCESS_NONE || run->own || run->object == PROCESS_NONE)
            return false;
        e->name = name(arg, run->object);
        if (!e->name)
            return false;
        report(arg, e->name, run, true);
    }
    if (run && run->same_as == PROCESS_NONE && run->n_processes > 0)
        return true;
    if (!run)
        e->run.end = MAX(now, e->run.start);
    report(arg, e->name, &e->run, false);
    return false;
}

int following_update(Following *f, const ProcessRun *runs, size_t n_runs, usec_t now,
                     following_name_t name, following_report_t report, void *arg)
{
    int r = add_new(f, runs, n_runs);
    size_t n = 0;

    f->n_waiting = 0;
    for (size_t i = 0; i < f->n; i++) {
        Followed e = f->entries[i];
        size_t at = process_find_serial(runs, n_runs, e.serial);
        bool there = at < n_runs && runs[at].serial == e.serial;

        if (!follow(&e, there ? &runs[at] : NULL, now, name, report, arg)) {
            free(e.name);
            continue;
        }
        f->n_waiting += !e.name;
        f->entries[n++] = e;
    }
    f->n = n;
    return r;
}
