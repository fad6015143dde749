/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart learn: learns new traces into STATE/model.json. It saves the model after each trace, so
 * that a kill loses only the current trace. */

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/json-util.h"
#include "base/log.h"
#include "base/text.h"
#include "command/cli-state.h"
#include "command/progress.h"
#include "command/systemctl.h"
#include "model/model-limit.h"
#include "model/model-select.h"
#include "predict/mixture-train.h"
#include "state/attempt.h"
#include "state/trace-store.h"
#include "system/capability.h"
#include "trace/trace-json.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

/* A file is dropped if a smaller share of the sessions than this used it, because it is probably a
 * temporary file whose name will not occur again. */
#define PRUNE_PROBABILITY 0.01

_Static_assert(CONFIG_HALFLIFE_MAX <= MODEL_HALFLIFE_MAX, "the model's reader accepts it");

enum {
    OPTION_REBUILD = 1,
};

static const Option options[] = {
        {OPTION_REBUILD, 0, "rebuild", NULL, "Delete the model and learn from all traces again"},
        {0},
};

typedef struct Learning {
    const Context *c;
    int state_fd;
    usec_t now; /* CLOCK_REALTIME */
    Model *model;
    Table *table; /* the result of each trace */
    bool anew;    /* a new model replaces the old one: all traces are learned again */
    bool rebuild; /* the chains lack every session whose trace the model has not learned yet */
    bool marked;  /* STATE_REBUILD exists */
    bool unsaved; /* the model contains the last trace, but the file does not */
    char boot_id[ATTEMPT_BOOT_ID_MAX];
    uint64_t n_learned, n_failed;
    uint64_t n_dropped; /* files that the model had no room for */
} Learning;

static void learning_done(Learning *l)
{
    if (l->state_fd >= 0)
        close(l->state_fd);
    model_free(l->model);
    table_free(l->table);
}

static const Column trace_columns[] = {
        {"TRACE", "file", CELL_PATH},
        {"STAGE", "stage", CELL_STRING},
        {"TOOK", "duration_usec", CELL_TIMESPAN},
        {"FILES", "n_files", CELL_COUNT},
        {"RESULT", "result", CELL_STRING},
        {0},
};

/* Blocks signals that would end the program during a try. A program that ends during a try leaves
 * the try's marker, and the marker would count against the file. */
static void block_requests(sigset_t *ret_before)
{
    sigset_t requests;

    sigemptyset(&requests);
    sigaddset(&requests, SIGINT);
    sigaddset(&requests, SIGTERM);
    sigaddset(&requests, SIGHUP);
    sigprocmask(SIG_BLOCK, &requests, ret_before);
}

/* --- one trace -------------------------------------------------------------------------------- */

static void report_trace(Learning *l, const char *name, const Trace *t, const char *result)
{
    table_row(l->table, name, t ? stage_to_string(t->stage) : NULL, t ? t->duration : COUNT_UNKNOWN,
              t ? (uint64_t)t->n_files : COUNT_UNKNOWN, result);
}

static int save_model(Learning *l)
{
    const ModelLimits limits = MODEL_LIMITS_DEFAULT;
    size_t dropped = 0;
    int r = model_prune(&l->model, PRUNE_PROBABILITY);

    if (r >= 0)
        r = model_limit(l->model, &limits, &dropped);
    if (r < 0)
        return cli_error(r, "%s/" STATE_MODEL ": %m", l->c->state);
    l->n_dropped += dropped;
    /* The mark comes with the first version of the new model, and not earlier: the chains of the
     * old one lack nothing. */
    r = l->rebuild && !l->marked ? state_begin_rebuild(l->state_fd) : 0;
    if (r < 0)
        return cli_error(r, "%s/" STATE_REBUILD ": %m", l->c->state);
    l->marked = l->rebuild;
    return cli_state_write_model(l->c, l->state_fd, l->model);
}

/* Reports a trace that cannot be learned. With `own`, sets the trace aside. Returns 0, so that
 * learning continues with the next trace. */
static int refuse_trace(Learning *l, int dir_fd, const char *name, const char *shown, bool own,
                        const char *reason)
{
    bool aside = own && file_set_aside(dir_fd, name) >= 0;

    cli_error(0, "%s: %s%s", shown, reason, aside ? "; set aside" : "");
    l->n_failed += !aside;
    report_trace(l, shown, NULL, aside ? "bad, set aside" : "unreadable");
    return 0;
}

/* Adds the trace to the model in memory. The caller saves the model. */
static int learn_one(Learning *l, Trace *t, size_t *ret_dropped)
{
    int r = model_select(l->model, t, ret_dropped);

    if (r >= 0)
        r = model_learn(&l->model, t, l->now);
    l->unsaved = r >= 0;
    /* If a trace has TRACE_FOLLOWED, the session cycle has already added the session to the chains
     * of the model of that time. A model that was begun after that still lacks the session. */
    if (r >= 0 && (l->rebuild || !(t->flags & TRACE_FOLLOWED)))
        r = mixture_train(&l->model->chains, l->model->halflife_usec, l->c->config.min_size_bytes,
                          t, l->now, clock_utc_offset_sec(t->start_realtime));
    return r;
}

/* Reads the model again if the last trace was added to the model, but not to its chains. */
static int undo_partly_learned(Learning *l)
{
    int r;

    if (!l->unsaved)
        return 0;
    l->unsaved = false;
    l->model = model_free(l->model);
    /* The file is still the old model if the new one was not saved yet. */
    r = l->anew && l->n_learned == 0 ? -ENOENT : state_load_model(l->state_fd, &l->model, NULL);
    if (r != -ENOENT)
        return r;
    l->model = model_new(l->c->config.halflife_usec);
    return l->model ? 0 : -ENOMEM;
}

/* Reads a trace and adds it to the model. Returns 0; 1 if the trace shows no ordinary session, with
 * the reason in *ret_unfit; or a negative errno. */
static int read_and_learn(Learning *l, int dir_fd, const char *name, Trace **ret,
                          const char **ret_unfit, size_t *ret_dropped, char **ret_error)
{
    int r = state_read_trace(dir_fd, name, ret, ret_error);

    if (r < 0)
        return r;
    *ret_unfit = model_trace_unfit(l->model, *ret);
    return *ret_unfit ? 1 : learn_one(l, *ret, ret_dropped);
}

/* Reports a trace that is not of an ordinary session. If dir_fd is a directory (not -EBADF),
 * renames the trace in it, so that it is not read again. Returns 0, or -ENOMEM, which was
 * reported. */
static int skip_trace(Learning *l, int dir_fd, const char *name, const char *shown, const Trace *t,
                      const char *unfit)
{
    _cleanup_free_ char *aside = NULL, *result = NULL;

    if (dir_fd >= 0 && (asprintf(&aside, "%s" TRACE_SKIPPED_SUFFIX, name) < 0 ||
                        renameat(dir_fd, name, dir_fd, aside) < 0))
        cli_warning(errno, "%s: cannot set it aside: %m", shown);
    if (asprintf(&result, "skipped: %s", unfit) < 0)
        return cli_error(ENOMEM, "%m");
    report_trace(l, shown, t, result);
    return 0;
}

/* Learns a trace. `own` means that the trace is in the state directory; it is then set aside if it
 * cannot be used. Returns 0 also if the trace could not be used, and a negative errno if learning
 * itself failed. */
static int learn_trace(Learning *l, int dir_fd, const char *name, const char *shown, bool own)
{
    _cleanup_free_ char *error = NULL, *result = NULL;
    _cleanup_trace_ Trace *t = NULL;
    const char *unfit = NULL;
    size_t dropped = 0;
    int r = read_and_learn(l, dir_fd, name, &t, &unfit, &dropped, &error);

    /* json-c does not say whether a text is wrong or memory ran out. A file counts as bad only if
     * it fails twice while there is memory. */
    if (r == -ENOMEM || state_is_bad_content(r)) {
        if (memory_is_short())
            return cli_error(ENOMEM, "%s: %m", shown);
        t = trace_free(t);
        free(error);
        error = NULL;
        r = undo_partly_learned(l);
        if (r >= 0)
            r = read_and_learn(l, dir_fd, name, &t, &unfit, &dropped, &error);
    }
    if (r == -EALREADY) {
        report_trace(l, shown, t, "known already");
        return 0;
    }
    if (r < 0 && undo_partly_learned(l) < 0)
        return cli_error(r, "%s: %m", shown);
    /* If the trace was read but cannot be learned, the trace itself is at fault. */
    if (r < 0)
        return refuse_trace(l, dir_fd, name, shown,
                            own && (t || r == -ENOMEM || state_is_bad_content(r)),
                            error ? error : error_text(r));
    if (unfit)
        return skip_trace(l, own ? dir_fd : -EBADF, name, shown, t, unfit);
    l->n_learned++;
    l->unsaved = false;
    r = save_model(l);
    if (r < 0)
        return r;
    if (dropped > 0 &&
        asprintf(&result, "learned without %zu file%s", dropped, text_plural_s(dropped)) < 0)
        return cli_error(ENOMEM, "%m");
    report_trace(l, shown, t, dropped > 0 ? result : "learned");
    return 0;
}

/* Learns a trace of the state directory. Sets the trace aside if an earlier try was killed. */
static int try_trace(Learning *l, int dir_fd, const char *name, const char *shown)
{
    sigset_t before;
    int r;

    block_requests(&before);
    r = attempt_begin(dir_fd, name, l->boot_id, ATTEMPT_TRACE);
    if (r > 0)
        r = refuse_trace(l, dir_fd, name, shown, true,
                         "learning was killed while it read this file");
    else if (r < 0)
        r = cli_error(r, "%s" ATTEMPT_SUFFIX ": %m", shown);
    else {
        r = learn_trace(l, dir_fd, name, shown, true);
        attempt_end(dir_fd, name);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

/* --- the traces of the state directory -------------------------------------------------------- */

/* Returns true if the head of the trace shows that the model has already learned the trace. The
 * rest of the trace need not be read then. Parsing a trace of 20,000 accesses takes longer than
 * learning it. A name alone does not identify a trace: if the clock starts again with each boot,
 * names repeat. */
static bool known_by_head(const Model *m, int dir_fd, const char *name)
{
    TraceIdentity id;

    return trace_peek(dir_fd, name, &id) >= 0 &&
           model_knows_trace(m, &(Trace){
                                        .stage = id.stage,
                                        .boot_id = id.boot_id,
                                        .start_realtime = id.start_realtime,
                                });
}

static int learn_state(Learning *l)
{
    _cleanup_trace_names_ TraceNames names = {0};
    _cleanup_close_ int fd = -EBADF;
    _cleanup_(progress_done) Progress progress = progress_start("Learning", l->c->quiet);
    int r;

    r = state_list_traces(l->state_fd, &names);
    if (r < 0)
        return cli_error(r, "%s/" STATE_TRACES ": %m", l->c->state);
    if (names.n == 0)
        return 0;
    fd = openat(l->state_fd, STATE_TRACES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return cli_error(errno, "%s/" STATE_TRACES ": %m", l->c->state);
    for (size_t i = 0; i < names.n; i++) {
        _cleanup_free_ char *shown = NULL;

        progress_update(&progress, i, names.n);
        if (known_by_head(l->model, fd, names.items[i].name))
            continue;
        if (asprintf(&shown, "%s/" STATE_TRACES "/%s", l->c->state, names.items[i].name) < 0)
            return cli_error(ENOMEM, "%m");
        r = try_trace(l, fd, names.items[i].name, shown);
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- the model -------------------------------------------------------------------------------- */

/* Like state_load_model(). Returns -E2BIG also if earlier runs were killed while they read the
 * model (ATTEMPT_MODEL). *ret_at_fault becomes true if the content of the model is the cause of the
 * failure. */
static int try_model(Learning *l, bool *ret_at_fault, char **ret_error)
{
    sigset_t before;
    int r;

    block_requests(&before);
    r = attempt_begin(l->state_fd, STATE_MODEL, l->boot_id, ATTEMPT_MODEL);
    if (r > 0) {
        *ret_error = strdup("learning was killed while it read this file");
        *ret_at_fault = true;
        r = -E2BIG;
    } else if (r == 0) {
        r = state_load_model(l->state_fd, &l->model, ret_error);
        /* state_load_model() has read the model twice. */
        *ret_at_fault = (r == -ENOMEM || state_is_bad_content(r)) && !memory_is_short();
        attempt_end(l->state_fd, STATE_MODEL);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

/* Loads the model from the disk, or makes a new one. */
static int load_model(Learning *l, bool rebuild)
{
    _cleanup_free_ char *error = NULL;
    usec_t halflife_usec = l->c->config.halflife_usec;
    bool at_fault = false;
    int r;

    l->anew = rebuild;
    r = rebuild ? -ENOENT : try_model(l, &at_fault, &error);
    if (r < 0 && !at_fault && r != -ENOENT)
        return cli_error(r, "%s/" STATE_MODEL ": %m", l->c->state);
    if (at_fault) {
        cli_warning(0, "%s/" STATE_MODEL ": %s; set aside, learning again", l->c->state,
                    error ? error : error_text(r));
        r = file_set_aside(l->state_fd, STATE_MODEL);
        if (r < 0)
            return cli_error(r, "%s/" STATE_MODEL ": cannot set it aside: %m", l->c->state);
        l->anew = true;
    }
    if (l->model && l->model->halflife_usec != halflife_usec) {
        /* Sums that decayed with another half-life cannot be continued. */
        if (!l->c->quiet)
            cli_warning(0, "HalfLife= was changed: learning again from the traces that are kept");
        l->model = model_free(l->model);
        l->anew = true;
    }
    l->marked = l->model && state_is_rebuilding(l->state_fd);
    l->rebuild = !l->model || l->marked;
    if (!l->model)
        l->model = model_new(halflife_usec);
    return l->model ? 0 : cli_error(ENOMEM, "%m");
}

/* Learns the traces of the state directory, and ends a rebuild. */
static int learn_all(Learning *l)
{
    int r = learn_state(l);

    if (r < 0 || !l->rebuild)
        return r;
    /* No trace took part in the new model. The old one is out of date all the same. */
    if (l->anew && l->n_learned == 0 && unlinkat(l->state_fd, STATE_MODEL, 0) < 0 &&
        errno != ENOENT)
        return cli_error(errno, "%s/" STATE_MODEL ": cannot remove it: %m", l->c->state);
    r = state_end_rebuild(l->state_fd);
    return r < 0 ? cli_error(r, "%s/" STATE_REBUILD ": %m", l->c->state) : 0;
}

static int print(Learning *l)
{
    static const Column columns[] = {
            {NULL, "n_learned", CELL_COUNT},
            {NULL, "traces", CELL_TABLE},
            {0},
    };

    if (l->c->json != JSON_OFF)
        return cli_print_json(l->c, columns, l->n_learned, TAKE_PTR(l->table));
    if (l->c->quiet)
        return 0;
    if (table_n_rows(l->table) > 0)
        return cli_print(l->c, l->table);
    puts(l->anew ? "There is no trace to learn: removed the model." : "Nothing new to learn.");
    return 0;
}

static void apply_quotas(const Learning *l)
{
    int r = state_apply_quotas(l->state_fd, l->now, NULL);

    if (r < 0)
        cli_warning(r, "%s/" STATE_TRACES ": cannot keep the quotas, ignoring: %m", l->c->state);
}

static int run(Context *c)
{
    _cleanup_(learning_done) Learning l = {.c = c, .state_fd = -EBADF};
    bool rebuild = false;
    const char *value;
    char **args;
    int k, n, r;

    /* Learning reads only files of root, but the unit also plans, which needs this capability. */
    (void)capability_drop(CAP_DAC_READ_SEARCH);
    while ((k = cli_next_option(c, &value)) > 0)
        rebuild = true;
    if (k < 0)
        return k;
    args = cli_arguments(c, &n);

    l.now = clock_now(CLOCK_REALTIME);
    attempt_read_boot_id(l.boot_id);
    l.table = table_new(trace_columns);

    r = cli_state_open(c, true, &l.state_fd);
    if (r >= 0)
        r = cli_state_lock(c, l.state_fd);
    if (r >= 0)
        r = load_model(&l, rebuild);
    if (r < 0)
        return r;

    /* A model that replaces an old one learns every trace in the state directory, even if the
     * arguments name other traces. */
    if (n == 0 || l.anew)
        r = learn_all(&l);
    for (int i = 0; r >= 0 && i < n; i++)
        r = learn_trace(&l, AT_FDCWD, args[i], args[i], false);
    if (r >= 0 && rebuild)
        systemctl_reload_headstartd(c);
    /* The quotas are applied only after the model that contains these traces is on the disk. */
    if (r >= 0)
        apply_quotas(&l);
    if (l.n_dropped > 0)
        cli_warning(0, "%s/" STATE_MODEL ": too large: dropped the %" PRIu64 " least used files",
                    c->state, l.n_dropped);
    if (r >= 0)
        r = print(&l);
    if (r < 0)
        return r;
    return l.n_failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

const Verb verb_learn = {
        .name = "learn",
        .arguments = "[TRACE…]",
        .max_arguments = VERB_ANY,
        .summary = "Learn from traces",
        .description =
                "Adds traces to the model: the given ones, or those in the state directory that\n"
                "were not learned yet. A model or a trace in the state directory that cannot\n"
                "be read is renamed to NAME.bad. A given trace is not renamed.",
        .options = options,
        .run = run,
};
