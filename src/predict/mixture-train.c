/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "predict/mixture-train.h"

#include "predict/mixture.h"

#include <string.h>

/* A directory's entries are read in blocks of at least this size. */
#define DIRECTORY_BYTES 4096U

/* An application uses a file. */
typedef struct Use {
    uint32_t application, file;
} Use;

/* An application starts or exits. */
typedef struct Change {
    usec_t at; /* since the session began */
    uint32_t application;
    bool starts;  /* false: it exits */
    size_t order; /* among the changes of one instant */
} Change;

static int compare_uses(const void *a, const void *b)
{
    const Use *x = a, *y = b;

    if (x->application != y->application)
        return x->application < y->application ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

static int compare_changes(const void *a, const void *b)
{
    const Change *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Returns how many bytes of the file the session needed: one block of a directory, the resident
 * part of a regular file, or all of a regular file if residency is not known. */
static uint64_t needed_bytes(const Trace *t, const TraceFile *f)
{
    uint64_t resident = range_set_total(&f->resident);

    if (f->directory)
        return DIRECTORY_BYTES;
    return resident > 0 || !(t->flags & TRACE_RESIDENCY_OFF) ? resident : f->size_bytes;
}

/* Adds up the bytes of the files that each application used. Returns 0, -EBADMSG, -ENOMEM. */
static int sum_bytes(const Trace *t, uint64_t *bytes)
{
    _cleanup_free_ Use *uses = calloc(t->n_accesses + 1, sizeof(*uses));
    size_t n = 0;

    if (!uses)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_accesses; i++) {
        const TraceAccess *a = &t->accesses[i];

        if (a->file >= t->n_files)
            return -EBADMSG;
        if (a->application == TRACE_NONE)
            continue;
        if (a->application >= t->n_applications)
            return -EBADMSG;
        uses[n++] = (Use){a->application, a->file};
    }
    qsort(uses, n, sizeof(*uses), compare_uses);
    for (size_t i = 0; i < n; i++) {
        uint64_t *sum = &bytes[uses[i].application];

        if (i > 0 && compare_uses(&uses[i - 1], &uses[i]) == 0)
            continue;
        *sum += MIN(needed_bytes(t, &t->files[uses[i].file]), UINT64_MAX - *sum);
    }
    return 0;
}

/* Finds or adds the chains' number of each application. It is CHAINS_NONE for an application that
 * is too small or beyond MIXTURE_TRAIN_APPLICATIONS_MAX. */
static int find_numbers(const Trace *t, uint64_t minsize_bytes, Chains *chains, uint32_t *numbers)
{
    _cleanup_free_ uint64_t *bytes = calloc(t->n_applications + 1, sizeof(*bytes));
    int r;

    if (!bytes)
        return -ENOMEM;
    r = sum_bytes(t, bytes);
    if (r < 0)
        return r;
    for (size_t i = 0, n = 0; i < t->n_applications; i++) {
        char path[TRACE_PATH_MAX];
        uint32_t file = t->applications[i].file;

        numbers[i] = CHAINS_NONE;
        if (file >= t->n_files || t->files[file].path >= t->n_paths)
            return -EBADMSG;
        if (bytes[i] < minsize_bytes || n++ >= MIXTURE_TRAIN_APPLICATIONS_MAX)
            continue;
        r = trace_format_path(t, t->files[file].path, path, sizeof(path));
        if (r >= 0)
            r = chains_add_name(chains, path, &numbers[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Lists the starts and exits of the trace's user and of processes whose user is not known, in the
 * order of time. If the trace's user is not known, lists those of everybody. Returns 0, -EBADMSG,
 * -ENOMEM. */
static int list_changes(const Trace *t, Change **ret, size_t *ret_n)
{
    _cleanup_free_ Change *changes = calloc(2 * t->n_lifetimes + 1, sizeof(*changes));
    size_t n = 0;

    if (!changes)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_lifetimes; i++) {
        const TraceLifetime *l = &t->lifetimes[i];
        usec_t start = MIN(l->start, t->duration);

        if (l->application >= t->n_applications)
            return -EBADMSG;
        if (t->uid != UID_INVALID && l->uid != UID_INVALID && l->uid != t->uid)
            continue;
        changes[n] = (Change){start, l->application, true, n};
        n++;
        if (l->end == USEC_INFINITY)
            continue;
        changes[n] = (Change){MIN(MAX(l->end, start), t->duration), l->application, false, n};
        n++;
    }
    qsort(changes, n, sizeof(*changes), compare_changes);
    *ret = TAKE_PTR(changes);
    *ret_n = n;
    return 0;
}

static int feed(Mixture *m, const Trace *t, const Change *changes, size_t n,
                const uint32_t *numbers)
{
    /* The time between sessions does not count, so the session begins one second after the previous
     * one ended. */
    EventTime begin = {mixture_chains(m)->seen + USEC_PER_SEC, t->start_realtime};
    int k, r = mixture_begin(m, begin, t->uid, true);

    for (size_t i = 0; r >= 0 && i < n; i++) {
        uint32_t id = numbers[changes[i].application];
        EventTime at = {begin.at + changes[i].at, begin.realtime + changes[i].at};

        if (id != CHAINS_NONE)
            r = changes[i].starts ? mixture_start(m, at, id) : mixture_exit(m, at, id);
    }
    k = mixture_end(m, (EventTime){begin.at + t->duration, begin.realtime + t->duration});
    return r < 0 ? r : k;
}

int mixture_train(Chains **chains, usec_t halflife_usec, uint64_t minsize_bytes, const Trace *t,
                  usec_t now_realtime, int64_t utc_offset_sec)
{
    _cleanup_free_ uint32_t *numbers = NULL;
    _cleanup_free_ Change *changes = NULL;
    Mixture *m;
    size_t n;
    int r;

    if (t->stage != STAGE_SESSION)
        return 0;
    if (t->duration > MIXTURE_TRAIN_USEC_MAX)
        return -E2BIG;
    numbers = calloc(t->n_applications + 1, sizeof(*numbers));
    if (!numbers)
        return -ENOMEM;
    r = list_changes(t, &changes, &n);
    if (r >= 0 && !*chains)
        r = chains_new(halflife_usec, MIXTURE_CHAIN_WINDOW, chains);
    if (r >= 0)
        r = mixture_new(*chains, &m);
    if (r < 0)
        return r;
    mixture_set_utc_offset(m, utc_offset_sec);
    if (t->start_realtime >= DECAY_CLOCK_MIN && now_realtime > t->start_realtime &&
        now_realtime - t->start_realtime > decay_clock_gap((*chains)->halflife_usec))
        decay_clock_jump(&(*chains)->clock, t->start_realtime);
    r = find_numbers(t, minsize_bytes, *chains, numbers);
    if (r >= 0)
        r = feed(m, t, changes, n, numbers);
    *chains = mixture_release_chains(m);
    return r < 0 ? r : 1;
}
