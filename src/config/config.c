/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The keys of headstart.conf in one table: section, key, type, field and bounds. */

#include "base/macros.h"
#include "base/parse.h"
#include "chains/decayed-sum.h"
#include "config/config-internal.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

Config config_default(void)
{
    return (Config){
            .halflife_usec = DECAYED_SUM_HALFLIFE_DEFAULT,
            .budget = BUDGET_PARAMETERS_DEFAULT,
            .boot_policy = _POLICY_INVALID,
            .login_policy = _POLICY_INVALID,
            .deadline_usec = 10 * USEC_PER_SEC,
            .control_interval = CONFIG_CONTROL_AUTO,
            .cycle_usec = 20 * USEC_PER_SEC,
            .predict = true,
            .scan = true,
            .battery = false,
            .launch_replay = LAUNCH_MODE_AUTO,
            .min_size_bytes = 2000000,
            .save_interval_usec = USEC_PER_HOUR,
            .session_budget = BUDGET_PARAMETERS_DEFAULT,
            .maximum_waste_percent = 100,
    };
}

int config_parse_budget(const char *s, BudgetParameters *b)
{
    BudgetFormula formula = BUDGET_FIXED;
    uint64_t bytes = 0;
    int r;

    if (strcmp(s, "auto") == 0)
        formula = BUDGET_AVAILABLE;
    else if (strcmp(s, "thesis") == 0)
        formula = BUDGET_THESIS;
    else {
        r = parse_bytes(s, &bytes);
        if (r < 0)
            return r;
        if (bytes == 0)
            return -EINVAL;
    }
    b->formula = formula;
    b->fixed_bytes = bytes;
    return 0;
}

int config_parse_policy(const char *s, Stage stage, Policy *ret)
{
    Policy p;

    if (strcmp(s, "auto") == 0) {
        *ret = _POLICY_INVALID;
        return 0;
    }
    p = policy_from_string(s);
    if (p < 0 || (p == POLICY_GATE && stage != STAGE_BOOT))
        return -EINVAL;
    *ret = p;
    return 0;
}

/* --- the table -------------------------------------------------------------------------------- */

typedef enum KeyType {
    KEY_TIMESPAN, /* usec_t */
    KEY_BYTES,    /* uint64_t */
    KEY_CONTROL,  /* uint32_t */
    KEY_BOOLEAN,  /* bool */
    KEY_LAUNCH,   /* LaunchMode */
    KEY_PERCENT,  /* int */
    KEY_SHARE,    /* int: a percentage that is not negative */
    KEY_BUDGET,   /* BudgetParameters */
    KEY_BOOT_POLICY,
    KEY_LOGIN_POLICY,
    KEY_PREFIXES, /* char[CONFIG_EXCLUDE_MAX] */
} KeyType;

#define FIELD(name) offsetof(Config, name)

static const struct {
    const char *section, *key;
    KeyType type;
    size_t offset;
    uint64_t min, max;  /* bounds of time spans */
    const char *reason; /* the reason why a value is refused; NULL: the text of the type */
} keys[] = {
        {"Model", "HalfLife", KEY_TIMESPAN, FIELD(halflife_usec), 1, CONFIG_HALFLIFE_MAX,
         "not a time span above zero and of at most 36500d (as in 168h)"},
        {"Memory", "Budget", KEY_BUDGET, FIELD(budget)},
        {"Memory", "MemTotal", KEY_PERCENT, FIELD(budget.total_percent)},
        {"Memory", "MemFree", KEY_PERCENT, FIELD(budget.free_percent)},
        {"Memory", "MemCached", KEY_PERCENT, FIELD(budget.cached_percent)},
        {"Replay", "BootPolicy", KEY_BOOT_POLICY, FIELD(boot_policy)},
        {"Replay", "LoginPolicy", KEY_LOGIN_POLICY, FIELD(login_policy)},
        {"Replay", "Deadline", KEY_TIMESPAN, FIELD(deadline_usec), 0, CONFIG_DEADLINE_MAX,
         "not a time span of at most 60s"},
        {"Replay", "ControlInterval", KEY_CONTROL, FIELD(control_interval)},
        {"Session", "Cycle", KEY_TIMESPAN, FIELD(cycle_usec), CONFIG_CYCLE_MIN, CONFIG_CYCLE_MAX,
         "not a time span from 1s to 1h"},
        {"Session", "Predict", KEY_BOOLEAN, FIELD(predict)},
        {"Session", "Scan", KEY_BOOLEAN, FIELD(scan)},
        {"Session", "MinSize", KEY_BYTES, FIELD(min_size_bytes)},
        {"Session", "Budget", KEY_BUDGET, FIELD(session_budget)},
        {"Session", "MaximumWaste", KEY_SHARE, FIELD(maximum_waste_percent)},
        {"Session", "Exclude", KEY_PREFIXES, FIELD(exclude)},
        {"Session", "Battery", KEY_BOOLEAN, FIELD(battery)},
        {"Session", "LaunchReplay", KEY_LAUNCH, FIELD(launch_replay)},
        {"Session", "SaveInterval", KEY_TIMESPAN, FIELD(save_interval_usec), 60 * USEC_PER_SEC,
         USEC_INFINITY, "neither a time span of at least 1min nor infinity"},
};
static_assert(ELEMENTSOF(keys) == CONFIG_KEYS, "config.h counts the keys");

static const char *const reasons[] = {
        [KEY_BYTES] = "not a number of bytes (as in 2M)",
        [KEY_BOOLEAN] = "neither yes nor no",
        [KEY_LAUNCH] = "none of auto, yes, no",
        [KEY_PERCENT] = "not a percentage from -100% to 100%",
        [KEY_SHARE] = "not a percentage from 0% to 100%",
        [KEY_CONTROL] = "neither auto nor a number of sessions",
        [KEY_BUDGET] = "neither auto, thesis nor a number of bytes (as in 256M)",
        [KEY_BOOT_POLICY] = "none of auto, off, metadata, concurrent, gate, idle",
        [KEY_LOGIN_POLICY] = "none of auto, off, metadata, concurrent, idle",
        [KEY_PREFIXES] = "not a list of absolute paths, each with or without a ! before it",
};

const char *config_section(size_t index)
{
    return keys[index].section;
}

const char *config_key(size_t index)
{
    return keys[index].key;
}

/* --- values from text ------------------------------------------------------------------------- */

/* Adds the prefixes in `value` to the list. As in systemd, an empty assignment clears the list. */
static int add_prefixes(char *list, const char *value)
{
    size_t l = strlen(list), n;

    if (!*value) {
        list[0] = 0;
        return 0;
    }
    for (const char *w = value; *w; w += n, w += strspn(w, " \t")) {
        n = strcspn(w, " \t");
        if (w[*w == '!'] != '/')
            return -EINVAL;
    }
    n = strlen(value);
    if (l + n + 2 > CONFIG_EXCLUDE_MAX)
        return -E2BIG;
    list[l] = ' ';
    memcpy(list + l + 1, value, n + 1);
    return 0;
}

static int parse_control_interval(const char *value, uint32_t *ret)
{
    uint64_t number;
    int r;

    if (strcmp(value, "auto") == 0) {
        *ret = CONFIG_CONTROL_AUTO;
        return 0;
    }
    r = parse_u64(value, &number);
    if (r < 0)
        return r;
    if (number >= CONFIG_CONTROL_AUTO)
        return -ERANGE;
    *ret = (uint32_t)number;
    return 0;
}

static int parse_share(const char *value, int *ret)
{
    int percent, r = parse_percent(value, &percent);

    if (r < 0)
        return r;
    if (percent < 0)
        return -ERANGE;
    *ret = percent;
    return 0;
}

static int parse_launch_mode(const char *value, LaunchMode *ret)
{
    bool yes;
    int r;

    if (strcmp(value, "auto") == 0) {
        *ret = LAUNCH_MODE_AUTO;
        return 0;
    }
    r = parse_boolean(value, &yes);
    if (r >= 0)
        *ret = yes ? LAUNCH_MODE_YES : LAUNCH_MODE_NO;
    return r;
}

static int set_field(Config *c, size_t index, const char *value)
{
    void *field = (char *)c + keys[index].offset;
    uint64_t number;
    int r;

    switch (keys[index].type) {
    case KEY_TIMESPAN:
        r = parse_timespan(value, &number);
        if (r < 0)
            return r;
        if (number < keys[index].min || number > keys[index].max)
            return -ERANGE;
        *(usec_t *)field = number;
        return 0;
    case KEY_CONTROL:
        return parse_control_interval(value, field);
    case KEY_BYTES:
        return parse_bytes(value, field);
    case KEY_BOOLEAN:
        return parse_boolean(value, field);
    case KEY_LAUNCH:
        return parse_launch_mode(value, field);
    case KEY_PERCENT:
        return parse_percent(value, field);
    case KEY_SHARE:
        return parse_share(value, field);
    case KEY_BUDGET:
        return config_parse_budget(value, field);
    case KEY_BOOT_POLICY:
        return config_parse_policy(value, STAGE_BOOT, field);
    case KEY_LOGIN_POLICY:
        return config_parse_policy(value, STAGE_LOGIN, field);
    case KEY_PREFIXES:
        return add_prefixes(field, value);
    }
    return -EINVAL;
}

int config_set(Config *c, const char *section, const char *key, const char *value,
               size_t *ret_index, const char **ret_reason)
{
    for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
        int r;

        if (strcmp(keys[i].section, section) != 0 || strcmp(keys[i].key, key) != 0)
            continue;
        r = set_field(c, i, value);
        if (r < 0) {
            *ret_reason = r == -E2BIG      ? "too many prefixes"
                          : keys[i].reason ? keys[i].reason
                                           : reasons[keys[i].type];
            return -EINVAL;
        }
        *ret_index = i;
        return 0;
    }
    return -ENOENT;
}

/* --- text from values ------------------------------------------------------------------------- */

typedef struct Unit {
    uint64_t size;
    const char *name;
} Unit;

/* Formats the value in the largest unit that gives a whole number. */
static int format_units(char **ret, uint64_t value, const Unit *units)
{
    while (units->size > 1 && (value == 0 || value % units->size != 0))
        units++;
    return asprintf(ret, "%" PRIu64 "%s", value / units->size, units->name);
}

static int format_budget(char **ret, const BudgetParameters *b, const Unit *units)
{
    if (b->formula == BUDGET_FIXED)
        return format_units(ret, b->fixed_bytes, units);
    return asprintf(ret, "%s", b->formula == BUDGET_THESIS ? "thesis" : "auto");
}

char *config_format(const Config *c, size_t index)
{
    static const Unit times[] = {{USEC_PER_HOUR, "h"},
                                 {60 * USEC_PER_SEC, "min"},
                                 {USEC_PER_SEC, "s"},
                                 {USEC_PER_MSEC, "ms"},
                                 {1, "us"}};
    static const Unit sizes[] = {{1U << 30, "G"}, {1U << 20, "M"}, {1U << 10, "K"}, {1, ""}};
    const void *field = (const char *)c + keys[index].offset;
    char *text = NULL;
    int n = -1;

    switch (keys[index].type) {
    case KEY_TIMESPAN:
        n = *(const usec_t *)field == USEC_INFINITY
                    ? asprintf(&text, "infinity")
                    : format_units(&text, *(const usec_t *)field, times);
        break;
    case KEY_BYTES:
        n = format_units(&text, *(const uint64_t *)field, sizes);
        break;
    case KEY_CONTROL:
        n = *(const uint32_t *)field == CONFIG_CONTROL_AUTO
                    ? asprintf(&text, "auto")
                    : asprintf(&text, "%" PRIu32, *(const uint32_t *)field);
        break;
    case KEY_BOOLEAN:
        n = asprintf(&text, "%s", *(const bool *)field ? "yes" : "no");
        break;
    case KEY_LAUNCH: {
        LaunchMode m = *(const LaunchMode *)field;

        n = asprintf(&text, "%s",
                     m == LAUNCH_MODE_AUTO ? "auto"
                     : m == LAUNCH_MODE_NO ? "no"
                                           : "yes");
        break;
    }
    case KEY_PERCENT:
    case KEY_SHARE:
        n = asprintf(&text, "%d%%", *(const int *)field);
        break;
    case KEY_BUDGET:
        n = format_budget(&text, field, sizes);
        break;
    case KEY_BOOT_POLICY:
    case KEY_LOGIN_POLICY: {
        Policy p = *(const Policy *)field;

        n = asprintf(&text, "%s", (int)p < 0 ? "auto" : policy_to_string(p));
        break;
    }
    case KEY_PREFIXES: /* each prefix follows a blank */
        n = asprintf(&text, "%s", (const char *)field + (*(const char *)field == ' '));
        break;
    }
    return n < 0 ? NULL : text;
}
