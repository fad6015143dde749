/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "evaluate/trace-input.h"

#include "base/names.h"

#include <string.h>

#define DIRECTORY_BYTES 4096U

/* An application uses a file. */
typedef struct Use {
    uint32_t item, object;
} Use;

struct TraceInput {
    TraceLevel level;
    Names items, objects;
    uint64_t *bytes; /* by object: the largest size seen */
    size_t allocated_bytes;
    Use *uses; /* sorted, without duplicates */
    size_t n_uses, allocated_uses;
    SimulateEvent *events;
    size_t n_events, allocated_events;
    usec_t now;
};

int trace_input_new(TraceLevel level, TraceInput **ret)
{
    TraceInput *t;

    if ((int)level < 0 || level >= _TRACE_LEVEL_MAX)
        return -EINVAL;
    t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->level = level;
    *ret = t;
    return 0;
}

TraceInput *trace_input_free(TraceInput *t)
{
    if (!t)
        return NULL;
    names_done(&t->items);
    names_done(&t->objects);
    free(t->bytes);
    free(t->uses);
    free(t->events);
    free(t);
    return NULL;
}

static int add_event(TraceInput *t, usec_t at, uint32_t user, uint32_t item, SimulateEventKind kind)
{
    int r = grow_array(&t->events, &t->allocated_events, t->n_events + 1, sizeof(*t->events));

    if (r < 0)
        return r;
    t->events[t->n_events++] = (SimulateEvent){.at = at, .user = user, .item = item, .kind = kind};
    return 0;
}

static uint64_t bytes_of(const Trace *trace, const TraceFile *f)
{
    uint64_t resident = range_set_total(&f->resident);

    if (f->directory)
        return DIRECTORY_BYTES;
    return resident > 0 || !(trace->flags & TRACE_RESIDENCY_OFF) ? resident : f->size_bytes;
}

/* Finds the objects of all files of a trace: objects[file]. */
static int add_objects(TraceInput *t, const Trace *trace, uint32_t *objects)
{
    for (size_t i = 0; i < trace->n_files; i++) {
        const TraceFile *f = &trace->files[i];
        char path[TRACE_PATH_MAX];
        int r;

        if (f->path >= trace->n_paths)
            return -EBADMSG;
        r = trace_format_path(trace, f->path, path, sizeof(path));
        if (r >= 0)
            r = names_add(&t->objects, path, PREDICTOR_ITEMS_MAX, &objects[i]);
        if (r >= 0)
            r = grow_array_zeroed(&t->bytes, &t->allocated_bytes, t->objects.n, sizeof(*t->bytes));
        if (r < 0)
            return r;
        t->bytes[objects[i]] = MAX(t->bytes[objects[i]], bytes_of(trace, f));
    }
    return 0;
}

static int add_applications(TraceInput *t, const Trace *trace, uint32_t *items)
{
    for (size_t i = 0; i < trace->n_applications; i++) {
        char path[TRACE_PATH_MAX];
        uint32_t file = trace->applications[i].file;
        int r;

        if (file >= trace->n_files || trace->files[file].path >= trace->n_paths)
            return -EBADMSG;
        r = trace_format_path(trace, trace->files[file].path, path, sizeof(path));
        if (r >= 0)
            r = names_add(&t->items, path, PREDICTOR_ITEMS_MAX, &items[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static int compare_uses(const void *a, const void *b)
{
    const Use *x = a, *y = b;

    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static void sort_uses(TraceInput *t)
{
    size_t n = 0;

    if (t->n_uses == 0)
        return;
    qsort(t->uses, t->n_uses, sizeof(*t->uses), compare_uses);
    for (size_t i = 0; i < t->n_uses; i++)
        if (n == 0 || compare_uses(&t->uses[n - 1], &t->uses[i]) != 0)
            t->uses[n++] = t->uses[i];
    t->n_uses = n;
}

static int add_uses(TraceInput *t, const Trace *trace, const uint32_t *items,
                    const uint32_t *objects)
{
    for (size_t i = 0; i < trace->n_accesses; i++) {
        const TraceAccess *a = &trace->accesses[i];
        int r;

        if (a->file >= trace->n_files)
            return -EBADMSG;
        if (a->application == TRACE_NONE)
            continue;
        if (a->application >= trace->n_applications)
            return -EBADMSG;
        r = grow_array(&t->uses, &t->allocated_uses, t->n_uses + 1, sizeof(*t->uses));
        if (r < 0)
            return r;
        t->uses[t->n_uses++] = (Use){items[a->application], objects[a->file]};
    }
    sort_uses(t);
    return 0;
}

static int add_lifetimes(TraceInput *t, const Trace *trace, const uint32_t *items)
{
    for (size_t i = 0; i < trace->n_lifetimes; i++) {
        const TraceLifetime *l = &trace->lifetimes[i];
        usec_t start = MIN(l->start, trace->duration);
        uint32_t user = l->uid == UID_INVALID ? trace->uid : l->uid;
        int r;

        if (l->application >= trace->n_applications)
            return -EBADMSG;
        r = add_event(t, t->now + start, user, items[l->application], SIMULATE_START);
        if (r >= 0 && l->end != USEC_INFINITY)
            r = add_event(t, t->now + MIN(MAX(l->end, start), trace->duration), user,
                          items[l->application], SIMULATE_EXIT);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_accesses(TraceInput *t, const Trace *trace, const uint32_t *objects)
{
    for (size_t i = 0; i < trace->n_accesses; i++) {
        const TraceAccess *a = &trace->accesses[i];
        int r;

        if (a->file >= trace->n_files)
            return -EBADMSG;
        if (a->kind == ACCESS_READ || a->kind == ACCESS_READDIR)
            continue;
        r = add_event(t, t->now + MIN(a->at, trace->duration), trace->uid, objects[a->file],
                      SIMULATE_ACCESS);
        if (r < 0)
            return r;
    }
    return 0;
}

typedef struct Sorted {
    SimulateEvent event;
    size_t order;
} Sorted;

static int compare_sorted(const void *a, const void *b)
{
    const Sorted *x = a, *y = b;

    if (x->event.at != y->event.at)
        return x->event.at < y->event.at ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Sorts the events from `first` on by time; simultaneous events keep their order. */
static int sort_events(TraceInput *t, size_t first)
{
    size_t n = t->n_events - first;
    _cleanup_free_ Sorted *sorted = calloc(n + 1, sizeof(*sorted));

    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        sorted[i] = (Sorted){t->events[first + i], i};
    qsort(sorted, n, sizeof(*sorted), compare_sorted);
    for (size_t i = 0; i < n; i++)
        t->events[first + i] = sorted[i].event;
    return 0;
}

int trace_input_add(TraceInput *t, const Trace *trace)
{
    _cleanup_free_ uint32_t *objects = calloc(trace->n_files + 1, sizeof(*objects));
    _cleanup_free_ uint32_t *items = calloc(trace->n_applications + 1, sizeof(*items));
    size_t first;
    int r;

    if (!objects || !items)
        return -ENOMEM;
    if (t->now > TRACE_INPUT_TIME_MAX || trace->duration > TRACE_INPUT_TIME_MAX - t->now)
        return -E2BIG;
    r = add_objects(t, trace, objects);
    if (r >= 0)
        r = add_applications(t, trace, items);
    if (r >= 0)
        r = add_event(t, t->now, trace->uid, 0, SIMULATE_BEGIN);
    if (r < 0)
        return r;
    t->events[t->n_events - 1].realtime = trace->start_realtime;
    first = t->n_events;
    if (t->level == TRACE_LEVEL_FILES)
        r = add_accesses(t, trace, objects);
    else {
        r = add_uses(t, trace, items, objects);
        if (r >= 0)
            r = add_lifetimes(t, trace, items);
    }
    if (r >= 0)
        r = sort_events(t, first);
    if (r >= 0)
        r = add_event(t, t->now + trace->duration, trace->uid, 0, SIMULATE_END);
    if (r < 0)
        return r;
    t->now += trace->duration + USEC_PER_SEC;
    return 0;
}

static int finish_items(const TraceInput *t, SimulateInput *in)
{
    _cleanup_free_ uint32_t *objects = calloc(t->n_uses + 1, sizeof(*objects));
    size_t at = 0;
    uint32_t item;

    if (!objects)
        return -ENOMEM;
    if (t->level == TRACE_LEVEL_FILES) {
        for (uint32_t o = 0; o < t->objects.n; o++) {
            int r = simulate_add_item(in, &o, 1, &item);
            if (r < 0)
                return r;
        }
        return 0;
    }
    for (size_t i = 0; i < t->items.n; i++) {
        size_t n = 0;
        int r;

        for (; at < t->n_uses && t->uses[at].item == i; at++)
            objects[n++] = t->uses[at].object;
        r = simulate_add_item(in, objects, n, &item);
        if (r < 0)
            return r;
    }
    return 0;
}

int trace_input_finish(const TraceInput *t, SimulateInput *ret)
{
    _cleanup_simulate_input_ SimulateInput in = {0};
    uint32_t object;
    int r = 0;

    for (size_t i = 0; r >= 0 && i < t->objects.n; i++)
        r = simulate_add_object(&in, t->bytes[i], &object);
    if (r >= 0)
        r = finish_items(t, &in);
    for (size_t i = 0; r >= 0 && i < t->n_events; i++)
        r = simulate_add_event(&in, &t->events[i]);
    if (r < 0)
        return r;
    *ret = in;
    in = (SimulateInput){0};
    return 0;
}
