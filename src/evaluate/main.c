/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart-evaluate: replays recorded traces through every predictor and reports how well each of
 * them predicted. `headstart evaluate` runs this program with its own options and arguments. */

#include "base/log.h"
#include "command/progress.h"
#include "evaluate/evaluate.h"
#include "state/state.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "config-paths.h"

/* The number of futures that the oracle draws for each prediction. */
#define ORACLE_FUTURES 200U
/* Habits are drawn for applications of at least this size: smaller ones are short-lived tools
 * (thesis 5.2.1, model.minsize). */
#define REAL_MINIMUM_BYTES 2000000U

/* --- evaluating ------------------------------------------------------------------------------- */

/* Returns the CPU time of this process, so that other load on the machine does not count. */
static uint64_t cpu_nsec(void *userdata)
{
    struct timespec t = {0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return timespec_nsec(&t);
}

typedef struct Run {
    Progress progress;
    size_t n_done, n_all; /* predictors */
} Run;

static void update_progress(size_t n_done, size_t n_events, void *userdata)
{
    Run *j = userdata;

    progress_update(&j->progress, j->n_done * n_events + n_done, j->n_all * n_events);
}

static int new_predictor(const Evaluation *e, const Habits *h, size_t i, Predictor **ret)
{
    return predictor_name(i) ? predictor_new(predictor_name(i), NULL, e->seed, ret)
                             : habits_oracle_new(h, ORACLE_FUTURES, e->seed, ret);
}

/* Replaces the recorded sessions by drawn ones, in which simulated users start recorded
 * applications. */
static int draw_habits(Evaluation *e, Habits **ret)
{
    _cleanup_simulate_input_ SimulateInput drawn = {0};
    _cleanup_habits_ Habits *h = NULL;
    _cleanup_free_ uint32_t *found = NULL;
    HabitsParameters p;
    size_t n;
    int r;

    habits_parameters_init(&p);
    p.n_users = e->habits_users;
    r = habits_find_real(&e->input, REAL_MINIMUM_BYTES, &found, &n);
    if (r < 0)
        return cli_error(r, "cannot draw habits: %m");
    p.real = &e->input;
    p.real_items = found;
    p.n_real_items = n;
    /* Only applications that people start were found, so there are no desktop processes. Users
     * share few applications (thesis 6.1.1): at most a sixth of those that were found. */
    p.n_desktop = 0;
    p.n_shared = (unsigned)MIN(p.n_shared, n / 6);
    if (n < p.n_shared + p.n_users * 2U)
        return cli_error(ENODATA,
                         "only %zu applications of %u MB and more were recorded that "
                         "people start: too few to draw habits of %u",
                         n, REAL_MINIMUM_BYTES / 1000000U, p.n_users);
    p.n_own = (unsigned)MIN(p.n_own, (n - p.n_shared) / p.n_users);
    r = habits_new(&p, e->habits_seed, &h);
    if (r >= 0)
        r = habits_sessions(h, UID_INVALID, e->habits_sessions, ~e->habits_seed, &drawn);
    if (r < 0)
        return cli_error(r, "cannot draw habits from seed %llu: %m",
                         (unsigned long long)e->habits_seed);
    e->best_guess = habits_best_guess(h);
    e->object_bytes = habits_union_bytes(h);
    e->n_uses = 0;
    for (size_t i = 0; i < drawn.n_events; i++)
        e->n_uses += drawn.events[i].kind == SIMULATE_START;
    simulate_input_done(&e->input);
    e->input = drawn;
    drawn = (SimulateInput){0};
    e->chosen[e->n_predictors] = true;
    *ret = TAKE_PTR(h);
    return 0;
}

static int evaluate_predictors(Evaluation *e, const Habits *h)
{
    SimulateParameters p = e->parameters;
    Run j = {0};
    int r = 0;

    for (size_t i = 0; evaluate_name(e, i); i++)
        j.n_all += e->chosen[i];
    j.progress = progress_start("Evaluating", e->c->quiet);
    p.progress = update_progress;
    p.progress_userdata = &j;
    for (size_t i = 0; r >= 0 && evaluate_name(e, i); i++) {
        _cleanup_predictor_ Predictor *predictor = NULL;

        if (!e->chosen[i])
            continue;
        r = new_predictor(e, h, i, &predictor);
        if (r >= 0)
            r = simulate(&e->input, &p, predictor, &e->reports[i]);
        if (r < 0) {
            progress_done(&j.progress);
            return cli_error(r, "cannot evaluate %s: %m", evaluate_name(e, i));
        }
        j.n_done++;
        /* n_scored is the same for all predictors. */
        if (e->reports[i].n_scored == 0) {
            progress_done(&j.progress);
            return cli_error(ENODATA, "nothing is left to score after training and grace");
        }
    }
    progress_done(&j.progress);
    return 0;
}

/* Reads the traces that the arguments name; without arguments, the traces of the state
 * directory. */
static int read_traces(Evaluation *e, char **args, int n)
{
    _cleanup_free_ char *own = NULL;
    char *list[] = {NULL, NULL};

    if (n > 0)
        return evaluate_read(e, args, n);
    if (asprintf(&own, "%s/" STATE_TRACES, e->c->state) < 0) {
        own = NULL;
        return cli_error(ENOMEM, "%m");
    }
    list[0] = own;
    return evaluate_read(e, list, 1);
}

static void evaluation_done(Evaluation *e)
{
    simulate_input_done(&e->input);
}

static void evaluation_init(Evaluation *e, const Context *c)
{
    *e = (Evaluation){
            .c = c,
            .level = TRACE_LEVEL_APPLICATIONS,
            .stage = _STAGE_INVALID,
            .seed = 1,
            .habits_users = 2,
            .habits_sessions = 60,
    };
    simulate_parameters_init(&e->parameters);
    e->parameters.clock_nsec = cpu_nsec;
    for (size_t i = 0; predictor_name(i); i++) {
        assert(i + 1 < EVALUATE_PREDICTORS_MAX);
        e->chosen[i] = true;
        e->n_predictors = i + 1;
    }
}

/* Converts a budget in percent to bytes, now that the bytes of all objects are known. */
static int set_budget(Evaluation *e)
{
    SimulateParameters *p = &e->parameters;

    if (e->budget_percent > 0)
        p->budget_bytes =
                MAX((uint64_t)((double)e->object_bytes * e->budget_percent / 100), (uint64_t)1);
    if (p->cache_unit == CACHE_BYTES && p->budget_bytes != UINT64_MAX &&
        p->budget_bytes > p->cache_size)
        return cli_usage_error(e->c, "--budget: %llu bytes are more than --cache holds (%llu)",
                               (unsigned long long)p->budget_bytes,
                               (unsigned long long)p->cache_size);
    return 0;
}

static int run(Context *c)
{
    _cleanup_(evaluation_done) Evaluation e;
    _cleanup_habits_ Habits *habits = NULL;
    char **args;
    int n, r;

    evaluation_init(&e, c);
    r = evaluate_parse_options(&e, c);
    if (r < 0)
        return r;
    args = cli_arguments(c, &n);
    r = read_traces(&e, args, n);
    if (r >= 0 && e.draw)
        r = draw_habits(&e, &habits);
    if (r >= 0)
        r = set_budget(&e);
    if (r >= 0)
        r = evaluate_predictors(&e, habits);
    return r < 0 ? r : evaluate_print(&e);
}

static const Verb verb = {
        .name = "evaluate",
        .arguments = "[TRACE|DIR…]",
        .max_arguments = VERB_ANY,
        .summary = "Compare predictors on recorded traces",
        .description =
                "Each trace is a session. The sessions are replayed in the order of their times "
                "through\nevery predictor and a cache. Without arguments, the traces of the state "
                "directory are\nused.\n\n"
                "HIT        share of the files that uses needed and the last selection contained\n"
                "CACHE HIT  share of them that were in the cache and read in time; lru predicts nothing\n"
                "ACCURACY   share of the files read ahead that were used before they left the cache\n"
                "COVERAGE   share of the uses of which all files had been selected\n"
                "FIRST      share of the uses that were the likeliest guess\n"
                "LOG LOSS   mean over predictions of -ln P(what was and what was not used)\n"
                "NEXT       mean over uses of -ln P(this one is next)\n"
                "READ       bytes read ahead; WASTED and WASTE: bytes and share that were not used\n"
                "LEAD       time from a read to its use; I/O: time of a read; IN TIME: read before use\n"
                "STALL      mean time for which a use waited for its files\n"
                "STATE      memory of what was learned\n"
                "OBSERVE    CPU time to learn from an event, in microseconds; PREDICT: to predict",
        .options = evaluate_options,
        .run = run,
};

int main(int argc, char **argv)
{
    Context c = cli_context_default();
    int r;

    cli_set_locale();
    log_parse_environment();
    cli_set_verb(&c, &verb, argc, argv);
    r = run(&c);
    return cli_exit_status(r);
}
