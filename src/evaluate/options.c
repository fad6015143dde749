/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The options of headstart-evaluate. */

#include "base/parse.h"
#include "evaluate/evaluate.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

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

const Option evaluate_options[] = {
        {OPTION_PREDICTOR, 0, "predictor", "NAME,…", "Evaluate only these predictors [all]"},
        {OPTION_LEVEL, 0, "level", "LEVEL", "Predict applications or files [applications]"},
        {OPTION_STAGE, 0, "stage", "STAGE", "Use only traces of boot, login or session"},
        {OPTION_CACHE, 0, "cache", "SIZE", "Cache size: unlimited, bytes (64M) or files (70files)"},
        {OPTION_BUDGET, 0, "budget", "SIZE", "Size of a selection: bytes or 50% [the cache]"},
        {OPTION_WASTE, 0, "waste", "SHARE", "Bound the expected share of wasted bytes [none]"},
        {OPTION_ORDER, 0, "order", "ORDER", "Select by worth or probability [worth]"},
        {OPTION_TRAINING, 0, "training", "SHARE", "Share of events that only train [0.55]"},
        {OPTION_HORIZON, 0, "horizon", "TIME", "Horizon of log loss and reliability [20s]"},
        {OPTION_CYCLE, 0, "cycle", "TIME", "Also predict at this interval [after events only]"},
        {OPTION_GRACE, 0, "grace", "TIME", "Do not score the beginning of sessions [0]"},
        {OPTION_IO_LATENCY, 0, "io-latency", "TIME", "Latency of one read [0]"},
        {OPTION_IO_RATE, 0, "io-rate", "BYTES",
         "Transfer rate in bytes per second; 0: unlimited [0]"},
        {OPTION_SEED, 0, "seed", "N", "Seed of predictors that draw at random [1]"},
        {OPTION_HABITS, 0, "habits", "SEED",
         "Draw habits for recorded applications: seed or random"},
        {OPTION_USERS, 0, "users", "N", "With --habits: number of users [2]"},
        {OPTION_SESSIONS, 0, "sessions", "N", "With --habits: number of sessions [60]"},
        {OPTION_RELIABILITY, 0, "reliability", NULL, "Show predicted and observed frequencies"},
        {OPTION_NO_TIMING, 0, "no-timing", NULL, "Measure no CPU times, for reproducible output"},
        {0},
};

/* --- options ------------------------------------------------------------------------------------
 */

static int parse_predictors(Evaluation *e, const char *value)
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

/* Parses a share within 0..1, such as "0.55" or "55%". */
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

/* Draws a seed of 32 bits: short enough to type again, and exact in every JSON reader. */
static uint64_t draw_seed(void)
{
    uint32_t seed;
    struct timespec t = {0};

    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed))
        return seed;
    clock_gettime(CLOCK_REALTIME, &t);
    return timespec_nsec(&t) & UINT32_MAX;
}

static int parse_level(Evaluation *e, const char *value)
{
    if (strcmp(value, "files") != 0 && strcmp(value, "applications") != 0)
        return cli_usage_error(e->c, "no such level: '%s' (applications or files)", value);
    e->level = *value == 'f' ? TRACE_LEVEL_FILES : TRACE_LEVEL_APPLICATIONS;
    return 0;
}

static int parse_stage(Evaluation *e, const char *value)
{
    return cli_parse_stage(e->c, value, &e->stage);
}

static int parse_waste(Evaluation *e, const char *value)
{
    double share = 0;
    int r = parse_share(e, "waste", value, &share);

    if (r >= 0)
        simulate_bound_waste(&e->parameters, share);
    return r;
}

static int parse_order(Evaluation *e, const char *value)
{
    if (strcmp(value, "worth") != 0 && strcmp(value, "probability") != 0)
        return cli_usage_error(e->c, "no such order: '%s' (worth or probability)", value);
    e->parameters.seek_bytes = *value == 'p' ? 0 : SIMULATE_SEEK_BYTES;
    return 0;
}

static int parse_training(Evaluation *e, const char *value)
{
    return parse_share(e, "training", value, &e->parameters.training);
}

static int parse_horizon(Evaluation *e, const char *value)
{
    return parse_time(e, "horizon", value, true, &e->parameters.horizon);
}

static int parse_cycle(Evaluation *e, const char *value)
{
    return parse_time(e, "cycle", value, false, &e->parameters.cycle);
}

static int parse_grace(Evaluation *e, const char *value)
{
    return parse_time(e, "grace", value, false, &e->parameters.grace);
}

static int parse_io_latency(Evaluation *e, const char *value)
{
    return parse_time(e, "io-latency", value, false, &e->parameters.io_fixed_usec);
}

static int parse_io_rate(Evaluation *e, const char *value)
{
    if (parse_bytes(value, &e->parameters.io_bytes_per_sec) < 0)
        return cli_usage_error(e->c, "--io-rate=%s: not a number of bytes (100M)", value);
    return 0;
}

static int parse_seed(Evaluation *e, const char *value)
{
    if (parse_u64(value, &e->seed) < 0)
        return cli_usage_error(e->c, "--seed=%s: not a number", value);
    return 0;
}

static int parse_habits(Evaluation *e, const char *value)
{
    if (strcmp(value, "random") == 0)
        e->habits_seed = draw_seed();
    else if (parse_u64(value, &e->habits_seed) < 0)
        return cli_usage_error(e->c, "--habits=%s: neither a number nor random", value);
    e->draw = true;
    return 0;
}

static int parse_count(const Evaluation *e, const char *option, const char *value, uint64_t max,
                       uint64_t *ret)
{
    if (parse_u64(value, ret) < 0 || *ret < 1 || *ret > max)
        return cli_usage_error(e->c, "--%s=%s: not a number from 1 to %llu", option, value,
                               (unsigned long long)max);
    return 0;
}

static int parse_users(Evaluation *e, const char *value)
{
    uint64_t n;
    int r = parse_count(e, "users", value, 16, &n);

    if (r >= 0)
        e->habits_users = (unsigned)n;
    return r;
}

static int parse_sessions(Evaluation *e, const char *value)
{
    uint64_t n;
    int r = parse_count(e, "sessions", value, 10000, &n);

    if (r >= 0)
        e->habits_sessions = (size_t)n;
    return r;
}

static int parse_reliability(Evaluation *e, const char *value)
{
    e->reliability = true;
    return 0;
}

static int parse_no_timing(Evaluation *e, const char *value)
{
    e->parameters.clock_nsec = NULL;
    return 0;
}

int evaluate_parse_options(Evaluation *e, Context *c)
{
    static int (*const parse[])(Evaluation * e, const char *value) = {
            [OPTION_PREDICTOR] = parse_predictors, [OPTION_LEVEL] = parse_level,
            [OPTION_STAGE] = parse_stage,          [OPTION_CACHE] = parse_cache,
            [OPTION_BUDGET] = parse_budget,        [OPTION_WASTE] = parse_waste,
            [OPTION_ORDER] = parse_order,          [OPTION_TRAINING] = parse_training,
            [OPTION_HORIZON] = parse_horizon,      [OPTION_CYCLE] = parse_cycle,
            [OPTION_GRACE] = parse_grace,          [OPTION_IO_LATENCY] = parse_io_latency,
            [OPTION_IO_RATE] = parse_io_rate,      [OPTION_SEED] = parse_seed,
            [OPTION_HABITS] = parse_habits,        [OPTION_USERS] = parse_users,
            [OPTION_SESSIONS] = parse_sessions,    [OPTION_RELIABILITY] = parse_reliability,
            [OPTION_NO_TIMING] = parse_no_timing,
    };
    const char *value;
    int k, r;

    while ((k = cli_next_option(c, &value)) > 0) {
        r = parse[k](e, value);
        if (r < 0)
            return r;
    }
    return k;
}
