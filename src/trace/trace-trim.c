/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "trace/trace-trim.h"

static void keep_files(Trace *t, const bool *keep, uint32_t *where)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_files; i++) {
        where[i] = keep[i] ? (uint32_t)n : TRACE_NONE;
        if (keep[i])
            t->files[n++] = t->files[i];
        else
            range_set_done(&t->files[i].resident);
    }
    t->n_files = n;
}

static void keep_applications(Trace *t, const uint32_t *file_where, uint32_t *where)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_applications; i++) {
        uint32_t file = file_where[t->applications[i].file];

        where[i] = file == TRACE_NONE ? TRACE_NONE : (uint32_t)n;
        if (file != TRACE_NONE)
            t->applications[n++].file = file;
    }
    t->n_applications = n;
}

static void keep_lifetimes(Trace *t, const uint32_t *application_where)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_lifetimes; i++) {
        TraceLifetime l = t->lifetimes[i];

        l.application = application_where[l.application];
        if (l.application != TRACE_NONE)
            t->lifetimes[n++] = l;
    }
    t->n_lifetimes = n;
}

static void keep_accesses(Trace *t, const uint32_t *file_where, const uint32_t *application_where)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_accesses; i++) {
        TraceAccess a = t->accesses[i];

        a.file = file_where[a.file];
        if (a.application != TRACE_NONE)
            a.application = application_where[a.application];
        if (a.file != TRACE_NONE)
            t->accesses[n++] = a;
    }
    t->n_accesses = n;
}

static void keep_touched(Trace *t, const uint32_t *file_where, const uint32_t *application_where)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_touched; i++) {
        TraceTouched x = t->touched[i];

        x.application = application_where[x.application];
        x.file = file_where[x.file];
        if (x.application != TRACE_NONE && x.file != TRACE_NONE)
            t->touched[n++] = x;
        else
            range_set_done(&x.ranges);
    }
    t->n_touched = n;
}

static void keep_needed(Trace *t, const uint32_t *application_where)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_needed; i++) {
        TraceNeeded x = t->needed[i];

        x.application = application_where[x.application];
        if (x.application != TRACE_NONE)
            t->needed[n++] = x;
        else
            range_set_done(&x.ranges);
    }
    t->n_needed = n;
}

int trace_keep_files(Trace *t, const bool *keep)
{
    _cleanup_free_ uint32_t *files = calloc(t->n_files + 1, sizeof(uint32_t));
    _cleanup_free_ uint32_t *applications = calloc(t->n_applications + 1, sizeof(uint32_t));

    if (t->index)
        return -EINVAL;
    if (!files || !applications)
        return -ENOMEM;
    keep_files(t, keep, files);
    keep_applications(t, files, applications);
    keep_lifetimes(t, applications);
    keep_accesses(t, files, applications);
    keep_touched(t, files, applications);
    keep_needed(t, applications);
    return 0;
}
