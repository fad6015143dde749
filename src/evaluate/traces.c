/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads files and directories of traces, in the order of time, into the simulator's input. */

#include "base/compressed-file.h"
#include "base/directory.h"
#include "base/log.h"
#include "command/progress.h"
#include "evaluate/evaluate.h"
#include "trace/trace-json.h"

#include <fcntl.h>
#include <string.h>

typedef struct Source {
    char *path;
    Trace *trace;
} Source;

typedef struct Sources {
    const Evaluation *e;
    Source *items;
    size_t n, allocated;
    size_t n_bad, n_other_stage;
} Sources;

static void sources_done(Sources *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->items[i].path);
        trace_free(s->items[i].trace);
    }
    free(s->items);
}

static int add_path(Sources *s, const char *path)
{
    int r = grow_array(&s->items, &s->allocated, s->n + 1, sizeof(Source));
    char *copy = r < 0 ? NULL : strdup(path);

    if (!copy)
        return cli_error(ENOMEM, "%m");
    s->items[s->n++] = (Source){.path = copy};
    return 0;
}

/* Returns true for NAME.json, the name of a trace. A trace that was set aside has another name
 * (.bad, .skipped). */
static bool is_trace_name(const char *name)
{
    const char *dot = strrchr(name, '.');

    return name[0] != '.' && dot && strcmp(dot, ".json") == 0;
}

static int add_directory(Sources *s, const char *path, DIR *dir)
{
    size_t before = s->n;
    const struct dirent *d;
    int r = 0;

    while (r >= 0 && (errno = 0, d = directory_next(dir))) {
        _cleanup_free_ char *full = NULL;

        if (!is_trace_name(d->d_name))
            continue;
        if (asprintf(&full, "%s/%s", path, d->d_name) < 0)
            return cli_error(ENOMEM, "%m");
        r = add_path(s, full);
    }
    if (r >= 0 && errno != 0)
        return cli_error(errno, "%s: %m", path);
    if (r >= 0 && s->n == before) {
        cli_error(ENOENT, "%s: no traces (*.json) in this directory", path);
        s->n_bad++;
    }
    return r;
}

static int add_argument(Sources *s, const char *path)
{
    _cleanup_closedir_ DIR *dir = NULL;
    int r = directory_open(AT_FDCWD, path, 0, &dir);

    if (r == -ENOTDIR)
        return add_path(s, path);
    if (r < 0) {
        cli_error(r, "%s: %m", path);
        s->n_bad++;
        return 0;
    }
    return add_directory(s, path, dir);
}

/* Reads one file. A bad file is counted and reported; the result is then 0, too. */
static int read_source(Sources *s, Source *x)
{
    _cleanup_free_ char *text = NULL, *error = NULL;
    size_t size;
    int r = compressed_file_load(AT_FDCWD, x->path, TRACE_JSON_SIZE_MAX, &text, &size, &error);

    if (r < 0)
        cli_error(r, "%s: %s", x->path, error ? error : error_text(r));
    else if (size == 0) {
        r = -EBADMSG;
        cli_error(r, "%s: empty file", x->path);
    } else {
        r = trace_from_json(text, size, &x->trace, &error);
        if (r < 0)
            cli_error(r, "%s: %s", x->path, error ? error : error_text(r));
    }
    s->n_bad += r < 0;
    return r == -ENOMEM ? r : 0;
}

static int compare_recordings(const Trace *a, const Trace *b)
{
    if (a->start_realtime != b->start_realtime)
        return a->start_realtime < b->start_realtime ? -1 : 1;
    if (a->start_boottime != b->start_boottime)
        return a->start_boottime < b->start_boottime ? -1 : 1;
    if (a->stage != b->stage)
        return a->stage < b->stage ? -1 : 1;
    if (a->uid != b->uid)
        return a->uid < b->uid ? -1 : 1;
    return strcmp(a->boot_id, b->boot_id);
}

/* Sorts by time, then by name, so that the order of the arguments has no effect. */
static int compare_sources(const void *a, const void *b)
{
    const Source *x = a, *y = b;
    int k = compare_recordings(x->trace, y->trace);

    return k ? k : strcmp(x->path, y->path);
}

/* Parses all files; drops traces of other stages. */
static int read_all(Sources *s)
{
    _cleanup_(progress_done) Progress progress = progress_start("Reading traces", s->e->c->quiet);
    size_t n = 0;
    int r;

    for (size_t i = 0; i < s->n; i++) {
        progress_update(&progress, i, s->n);
        r = read_source(s, &s->items[i]);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < s->n; i++) {
        Source x = s->items[i];

        if (x.trace && (s->e->stage < 0 || x.trace->stage == s->e->stage)) {
            s->items[i] = s->items[n];
            s->items[n++] = x;
        } else
            s->n_other_stage += x.trace != NULL;
    }
    for (size_t i = n; i < s->n; i++) {
        free(s->items[i].path);
        trace_free(s->items[i].trace);
    }
    s->n = n;
    if (n > 0)
        qsort(s->items, n, sizeof(Source), compare_sources);
    return 0;
}

/* Reports which limit was exceeded, because trace_input_add() returns only an error. */
static int too_much(const char *path, const Trace *trace, usec_t before)
{
    if (trace->duration > TRACE_INPUT_TIME_MAX - MIN(before, TRACE_INPUT_TIME_MAX))
        return cli_error(E2BIG, "%s: lasts %llu days: too long to simulate%s", path,
                         (unsigned long long)(trace->duration / (24 * USEC_PER_HOUR)),
                         before > 0 ? " after the others" : "");
    return cli_error(E2BIG,
                     "%s: has more than %u files or applications, together with the other traces",
                     path, PREDICTOR_ITEMS_MAX);
}

static int feed(Evaluation *e, Sources *s)
{
    _cleanup_trace_input_ TraceInput *t = NULL;
    const char *last = NULL;
    usec_t duration = 0; /* of the earlier traces */
    int r;

    r = trace_input_new(e->level, &t);
    if (r < 0)
        return cli_error(r, "%m");
    for (size_t i = 0; i < s->n; i++) {
        Trace *trace = s->items[i].trace;

        /* If the same recording were used twice, predictions would seem too good. */
        if (last && compare_recordings(s->items[i - 1].trace, trace) == 0) {
            cli_warning(0, "%s: the same recording as %s, ignoring", s->items[i].path, last);
            continue;
        }
        last = s->items[i].path;
        r = trace_input_add(t, trace);
        if (r == -E2BIG)
            return too_much(last, trace, duration);
        if (r < 0)
            return cli_error(r, "%s: %m", last);
        duration += trace->duration + USEC_PER_SEC;
        if (e->n_traces++ == 0)
            e->first_realtime = trace->start_realtime;
        e->last_realtime = trace->start_realtime;
    }
    r = trace_input_finish(t, &e->input);
    if (r == -E2BIG)
        return cli_error(
                r,
                "%zu traces have more files, uses of files or events than can be simulated "
                "at a time",
                e->n_traces);
    return r < 0 ? cli_error(r, "cannot simulate these traces: %m") : 0;
}

/* Checks that there are uses to learn from and uses to score. */
static int count_uses(Evaluation *e)
{
    const char *what = e->level == TRACE_LEVEL_FILES ? "opened file" : "application start";

    for (size_t i = 0; i < e->input.n_events; i++)
        e->n_uses += e->input.events[i].kind == SIMULATE_START ||
                     e->input.events[i].kind == SIMULATE_ACCESS;
    for (size_t i = 0; i < e->input.n_objects; i++)
        e->object_bytes = MIN(e->object_bytes, UINT64_MAX - e->input.object_bytes[i]) +
                          e->input.object_bytes[i];
    if (e->n_uses >= 2)
        return 0;
    if (e->n_uses == 1)
        return cli_error(ENODATA,
                         "a single %s in %zu trace%s: too little to learn from and to score", what,
                         e->n_traces, e->n_traces == 1 ? "" : "s");
    return cli_error(ENODATA, "not one %s in %zu trace%s%s", what, e->n_traces,
                     e->n_traces == 1 ? "" : "s",
                     e->level == TRACE_LEVEL_FILES ? "" : ": --level=files predicts opened files");
}

int evaluate_read(Evaluation *e, char **args, int n)
{
    _cleanup_(sources_done) Sources s = {.e = e};
    int r = 0;

    for (int i = 0; r >= 0 && i < n; i++)
        r = add_argument(&s, args[i]);
    if (r >= 0)
        r = read_all(&s);
    if (r < 0)
        return r;
    if (s.n_bad > 0)
        return -EBADMSG;
    if (s.n == 0)
        return cli_error(ENODATA, "no traces of stage %s among %zu", stage_to_string(e->stage),
                         s.n_other_stage);
    r = feed(e, &s);
    return r < 0 ? r : count_uses(e);
}
