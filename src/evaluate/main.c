/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart-evaluate: replays recorded traces through every predictor and reports how well each of
 * them predicted. `headstart evaluate` runs this program with its own options and arguments. */

#include "base/log.h"
#include "base/parse.h"
#include "cli/progress.h"
#include "evaluate/evaluate.h"
#include "state/state.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "config-paths.h"

/* Of the oracle: how many futures it draws for each prediction. */
#define ORACLE_FUTURES 200U
/* Smaller ones are tools, which nobody waits for (thesis 5.2.1, model.minsize). */
#define REAL_MINIMUM_BYTES 2000000U

enum {
    OPTION_PREDICTOR = 1,
    OPTION_LEVEL,
    OPTION_STAGE,
    OPTION_CACHE,
    OPTION_BUDGET,
    OPTION_WASTE,
    OPTION_ORDER,
    OPTION_TRAINING,
    OPTION_HORIZON,
    OPTION_CYCLE,
    OPTION_GRACE,
    OPTION_IO_LATENCY,
    OPTION_IO_RATE,
    OPTION_SEED,
    OPTION_HABITS,
    OPTION_USERS,
    OPTION_SESSIONS,
    OPTION_RELIABILITY,
    OPTION_NO_TIMING,
};

static const Option options[] = {
        {OPTION_PREDICTOR, 0, "predictor", "NAME,…", "Only these [all]"},
        {OPTION_LEVEL, 0, "level", "LEVEL", "What is foreseen: applications or files"},
        {OPTION_STAGE, 0, "stage", "STAGE", "Only traces of boot, login or session"},
        {OPTION_CACHE, 0, "cache", "SIZE", "unlimited, bytes (64M) or files (70files)"},
        {OPTION_BUDGET, 0, "budget", "SIZE", "Most to choose at a time: bytes or 50% [the cache]"},
        {OPTION_WASTE, 0, "waste", "SHARE", "Read only what keeps waste below this share"},
        {OPTION_ORDER, 0, "order", "ORDER",
         "What is chosen first: by worth or probability [worth]"},
        {OPTION_TRAINING, 0, "training", "SHARE", "Of the events, only learned from [0.55]"},
        {OPTION_HORIZON, 0, "horizon", "TIME", "\"Soon\" of log loss and reliability [20s]"},
        {OPTION_CYCLE, 0, "cycle", "TIME", "Predict this often [after events only]"},
        {OPTION_GRACE, 0, "grace", "TIME", "Judge nothing so long after a session began [0]"},
        {OPTION_IO_LATENCY, 0, "io-latency", "TIME", "What a read takes before its first byte [0]"},
        {OPTION_IO_RATE, 0, "io-rate", "BYTES", "Bytes a second; 0: without limit [0]"},
        {OPTION_SEED, 0, "seed", "N", "Of those that draw at random [1]"},
        {OPTION_HABITS, 0, "habits", "SEED",
         "Draw who starts what, of recorded files; random: any seed"},
        {OPTION_USERS, 0, "users", "N", "With --habits: so many people [2]"},
        {OPTION_SESSIONS, 0, "sessions", "N", "With --habits: so many sessions [60]"},
        {OPTION_RELIABILITY, 0, "reliability", NULL, "Show what was promised and what came"},
        {OPTION_NO_TIMING, 0, "no-timing", NULL, "Measure no times: the output is the same again"},
        {0},
};

/* --- options ------------------------------------------------------------------------------------
 */

static int choose_predictors(Evaluation *e, const char *value)
{
    _cleanup_free_ char *copy = strdup(value);
    char *rest = copy, *name;

    if (!copy)
        return cli_error(ENOMEM, "%m");
    memset(e->chosen, 0, sizeof(e->chosen));
    while ((name = strsep(&rest, ","))) {
        size_t i = 0;

        while (predictor_name(i) && strcmp(predictor_name(i), name) != 0)
            i++;
        if (!predictor_name(i)) {
            char all[256] = "";

            for (i = 0; predictor_name(i); i++)
                snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i > 0 ? ", " : "",
                         predictor_name(i));
            return cli_usage_error(e->c, "no such predictor: '%s' (%s)", name, all);
        }
        e->chosen[i] = true;
    }
    return 0;
}

/* "0.55" or "55%", within 0..1. */
static int parse_share(const Evaluation *e, const char *option, const char *value, double *ret)
{
    size_t n = strspn(value, "0123456789.");
    char *end = NULL;
    double v = n > 0 ? strtod(value, &end) : -1;
    bool percent = n > 0 && strcmp(value + n, "%") == 0;

    if (percent)
        v /= 100;
    if (n == 0 || end != value + n || (value[n] && !percent) || !(v >= 0 && v <= 1))
        return cli_usage_error(e->c, "--%s=%s: not a share (0 to 1, or a percentage)", option,
                               value);
    *ret = v;
    return 0;
}

static int parse_time(const Evaluation *e, const char *option, const char *value, bool infinity,
                      usec_t *ret)
{
    usec_t t;

    if (parse_timespan(value, &t) < 0 || (!infinity && t == USEC_INFINITY))
        return cli_usage_error(e->c, "--%s=%s: not a time (20s, 150ms, 5min%s)", option, value,
                               infinity ? ", infinity" : "");
    *ret = t;
    return 0;
}

static int parse_cache(Evaluation *e, const char *value)
{
    SimulateParameters *p = &e->parameters;
    const char *digits_end = value + strspn(value, "0123456789");
    int r;

    if (strcmp(value, "unlimited") == 0) {
        p->cache_unit = CACHE_UNLIMITED;
        return 0;
    }
    if (strcmp(digits_end + strspn(digits_end, " "), "files") == 0) {
        _cleanup_free_ char *digits = strndup(value, (size_t)(digits_end - value));

        p->cache_unit = CACHE_FILES;
        r = digits ? parse_u64(digits, &p->cache_size) : -ENOMEM;
    } else {
        p->cache_unit = CACHE_BYTES;
        r = parse_bytes(value, &p->cache_size);
    }
    if (r < 0 || p->cache_size == 0)
        return cli_usage_error(e->c, "--cache=%s: not a size (unlimited, 64M or 70files)", value);
    return 0;
}

static int parse_budget(Evaluation *e, const char *value)
{
    uint64_t bytes;
    int percent;

    if (strchr(value, '%') && parse_percent(value, &percent) >= 0 && percent > 0) {
        e->budget_percent = (unsigned)percent;
        return 0;
    }
    if (parse_bytes(value, &bytes) < 0 || bytes == 0 || bytes == UINT64_MAX)
        return cli_usage_error(e->c, "--budget=%s: not a size (64M, or 50%% of all bytes)", value);
    e->budget_percent = 0;
    e->parameters.budget_bytes = bytes;
    return 0;
}

/* A seed that nobody has chosen; short enough to be typed again, and exact in every JSON reader. */
static uint64_t draw_seed(void)
{
    uint32_t seed;
    struct timespec t = {0};

    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed))
        return seed;
    clock_gettime(CLOCK_REALTIME, &t);
    return timespec_nsec(&t) & UINT32_MAX;
}

static int take_option(Evaluation *e, int option, const char *value)
{
    SimulateParameters *p = &e->parameters;
    uint64_t number;

    switch (option) {
    case OPTION_PREDICTOR:
        return choose_predictors(e, value);
    case OPTION_LEVEL:
        if (strcmp(value, "files") != 0 && strcmp(value, "applications") != 0)
            return cli_usage_error(e->c, "no such level: '%s' (applications or files)", value);
        e->level = *value == 'f' ? TRACE_LEVEL_FILES : TRACE_LEVEL_APPLICATIONS;
        return 0;
    case OPTION_STAGE:
        return cli_parse_stage(e->c, value, &e->stage);
    case OPTION_CACHE:
        return parse_cache(e, value);
    case OPTION_BUDGET:
        return parse_budget(e, value);
    case OPTION_WASTE:
        return parse_share(e, "waste", value, &p->maximum_waste);
    case OPTION_ORDER:
        if (strcmp(value, "worth") != 0 && strcmp(value, "probability") != 0)
            return cli_usage_error(e->c, "no such order: '%s' (worth or probability)", value);
        p->seek_bytes = *value == 'p' ? 0 : SIMULATE_SEEK_BYTES;
        return 0;
    case OPTION_TRAINING:
        return parse_share(e, "training", value, &p->training);
    case OPTION_HORIZON:
        return parse_time(e, "horizon", value, true, &p->horizon);
    case OPTION_CYCLE:
        return parse_time(e, "cycle", value, false, &p->cycle);
    case OPTION_GRACE:
        return parse_time(e, "grace", value, false, &p->grace);
    case OPTION_IO_LATENCY:
        return parse_time(e, "io-latency", value, false, &p->io_fixed_usec);
    case OPTION_IO_RATE:
        if (parse_bytes(value, &p->io_bytes_per_sec) < 0)
            return cli_usage_error(e->c, "--io-rate=%s: not a number of bytes (100M)", value);
        return 0;
    case OPTION_SEED:
        if (parse_u64(value, &e->seed) < 0)
            return cli_usage_error(e->c, "--seed=%s: not a number", value);
        return 0;
    case OPTION_HABITS:
        if (strcmp(value, "random") == 0)
            e->habits_seed = draw_seed();
        else if (parse_u64(value, &e->habits_seed) < 0)
            return cli_usage_error(e->c, "--habits=%s: neither a number nor random", value);
        e->draw = true;
        return 0;
    case OPTION_USERS:
    case OPTION_SESSIONS:
        if (parse_u64(value, &number) < 0 || number < 1 ||
            number > (option == OPTION_USERS ? 16U : 10000U))
            return cli_usage_error(e->c, "--%s=%s: not a number from 1 to %d",
                                   option == OPTION_USERS ? "users" : "sessions", value,
                                   option == OPTION_USERS ? 16 : 10000);
        if (option == OPTION_USERS)
            e->habits_users = (unsigned)number;
        else
            e->habits_sessions = (size_t)number;
        return 0;
    case OPTION_RELIABILITY:
        e->reliability = true;
        return 0;
    default:
        p->clock_nsec = NULL;
        return 0;
    }
}

/* --- judging ------------------------------------------------------------------------------------
 */

/* CPU time of ours: what else the machine does is not the predictor's cost. */
static uint64_t cpu_nsec(void *userdata)
{
    struct timespec t = {0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return timespec_nsec(&t);
}

typedef struct Judging {
    Progress progress;
    size_t n_done, n_all; /* predictors */
} Judging;

static void tell_progress(size_t n_done, size_t n_events, void *userdata)
{
    Judging *j = userdata;

    progress_update(&j->progress, j->n_done * n_events + n_done, j->n_all * n_events);
}

static int new_predictor(const Evaluation *e, const Habits *h, size_t i, Predictor **ret)
{
    return predictor_name(i) ? predictor_new(predictor_name(i), NULL, e->seed, ret)
                             : habits_oracle_new(h, ORACLE_FUTURES, e->seed, ret);
}

/* Sessions of people who do not exist, with applications that do, in the place of what was
 * recorded. */
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
    /* A desktop's own processes are no choice of anybody's; and people use mostly what the others
     * do not (thesis 6.1.1), however little was recorded. */
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

static int judge(Evaluation *e, const Habits *h)
{
    SimulateParameters p = e->parameters;
    Judging j = {0};
    int r = 0;

    for (size_t i = 0; evaluate_name(e, i); i++)
        j.n_all += e->chosen[i];
    j.progress = progress_start("Judging", e->c->quiet);
    p.progress = tell_progress;
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
            return cli_error(r, "cannot judge %s: %m", evaluate_name(e, i));
        }
        j.n_done++;
        /* The same for all of them. */
        if (e->reports[i].n_scored == 0) {
            progress_done(&j.progress);
            return cli_error(ENODATA, "nothing is left to judge by after training and grace");
        }
    }
    progress_done(&j.progress);
    return 0;
}

/* Without arguments: what the state directory holds. */
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

static int run(Context *c)
{
    _cleanup_(evaluation_done) Evaluation e = {
            .c = c,
            .level = TRACE_LEVEL_APPLICATIONS,
            .stage = _STAGE_INVALID,
            .seed = 1,
            .habits_users = 2,
            .habits_sessions = 60,
    };
    _cleanup_habits_ Habits *habits = NULL;
    const char *value;
    char **args;
    int k, n, r;

    simulate_parameters_init(&e.parameters);
    e.parameters.clock_nsec = cpu_nsec;
    for (size_t i = 0; predictor_name(i); i++) {
        assert(i + 1 < EVALUATE_PREDICTORS_MAX);
        e.chosen[i] = true;
        e.n_predictors = i + 1;
    }
    while ((k = cli_next_option(c, &value)) > 0) {
        r = take_option(&e, k, value);
        if (r < 0)
            return r;
    }
    if (k < 0)
        return k;
    args = cli_arguments(c, &n);

    r = read_traces(&e, args, n);
    if (r < 0)
        return r;
    if (e.draw) {
        r = draw_habits(&e, &habits);
        if (r < 0)
            return r;
    }
    if (e.budget_percent > 0)
        e.parameters.budget_bytes =
                MAX((uint64_t)((double)e.object_bytes * e.budget_percent / 100), (uint64_t)1);
    if (e.parameters.cache_unit == CACHE_BYTES && e.parameters.budget_bytes != UINT64_MAX &&
        e.parameters.budget_bytes > e.parameters.cache_size)
        return cli_usage_error(c, "--budget: %llu bytes are more than --cache holds (%llu)",
                               (unsigned long long)e.parameters.budget_bytes,
                               (unsigned long long)e.parameters.cache_size);
    r = judge(&e, habits);
    return r < 0 ? r : evaluate_print(&e);
}

static const Verb verb = {
        .name = "evaluate",
        .arguments = "[TRACE|DIR…]",
        .max_arguments = VERB_ANY,
        .summary = "Judge the predictors by recorded traces",
        .description =
                "Each trace is a session; they are replayed in the order of their times through "
                "every\npredictor and a cache. Without arguments: the traces of the state "
                "directory.\n\n"
                "HIT        of the files a use needed, those selected beforehand\n"
                "CACHE HIT  those in the cache and read in time; of lru, without any prediction\n"
                "ACCURACY   of the files read ahead, those used before they left the cache\n"
                "COVERAGE   uses all of whose files had been selected\n"
                "FIRST      uses that were the likeliest guess\n"
                "LOG LOSS   mean over predictions of -ln P(what came and what did not)\n"
                "NEXT       mean over uses of -ln P(this one next)\n"
                "READ       bytes read ahead; WASTED and WASTE: never used\n"
                "LEAD       from a read to its use; I/O: what a read takes; IN TIME: done by then\n"
                "STATE      memory of what was learned\n"
                "OBSERVE    CPU time to learn an event, in microseconds; PREDICT: to predict",
        .options = options,
        .run = run,
};

int main(int argc, char **argv)
{
    Context c = {
            .state = HEADSTART_STATE_DIR,
            .root = "/",
            .system_fd = AT_FDCWD,
            .config = config_default(),
    };
    int r;

    cli_set_locale();
    log_parse_environment();
    cli_set_verb(&c, &verb, argc, argv);
    r = run(&c);
    return cli_exit_status(r);
}
