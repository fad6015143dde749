/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/parse.h"

#include "base/macros.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* Parses the digits at s. *end becomes the first character after them. */
static int parse_digits(const char *s, const char **end, uint64_t *ret)
{
    uint64_t v = 0;
    const char *p = s;

    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return -ERANGE;
    if (p == s)
        return -EINVAL;
    *end = p;
    *ret = v;
    return 0;
}

int parse_u64(const char *s, uint64_t *ret)
{
    const char *end;
    uint64_t v;
    int r = parse_digits(s, &end, &v);

    if (r < 0)
        return r;
    if (*end)
        return -EINVAL;
    *ret = v;
    return 0;
}

int parse_boolean(const char *s, bool *ret)
{
    static const char *const yes[] = {"1", "yes", "y", "true", "t", "on"};
    static const char *const no[] = {"0", "no", "n", "false", "f", "off"};

    for (size_t i = 0; i < ELEMENTSOF(yes); i++) {
        if (strcasecmp(s, yes[i]) == 0) {
            *ret = true;
            return 0;
        }
        if (strcasecmp(s, no[i]) == 0) {
            *ret = false;
            return 0;
        }
    }
    return -EINVAL;
}

typedef struct Unit {
    const char *suffix;
    uint64_t factor;
} Unit;

static int parse_with_unit(const char *s, const Unit *units, size_t n_units, uint64_t *ret)
{
    const char *end;
    uint64_t v;
    int r = parse_digits(s, &end, &v);

    if (r < 0)
        return r;
    while (*end == ' ')
        end++;
    for (size_t i = 0; i < n_units; i++)
        if (strcasecmp(end, units[i].suffix) == 0) {
            if (__builtin_mul_overflow(v, units[i].factor, &v))
                return -ERANGE;
            *ret = v;
            return 0;
        }
    return -EINVAL;
}

int parse_bytes(const char *s, uint64_t *ret)
{
    static const Unit units[] = {
            {"", 1},           {"B", 1},          {"K", 1ULL << 10},
            {"M", 1ULL << 20}, {"G", 1ULL << 30}, {"T", 1ULL << 40},
    };

    return parse_with_unit(s, units, ELEMENTSOF(units), ret);
}

int parse_timespan(const char *s, usec_t *ret)
{
    static const Unit units[] = {
            {"", USEC_PER_SEC},         {"s", USEC_PER_SEC},
            {"sec", USEC_PER_SEC},      {"us", 1},
            {"ms", USEC_PER_MSEC},      {"m", 60 * USEC_PER_SEC},
            {"min", 60 * USEC_PER_SEC}, {"h", USEC_PER_HOUR},
            {"d", 24 * USEC_PER_HOUR},  {"w", 7 * 24 * USEC_PER_HOUR},
    };

    if (strcmp(s, "infinity") == 0) {
        *ret = USEC_INFINITY;
        return 0;
    }
    return parse_with_unit(s, units, ELEMENTSOF(units), ret);
}

int parse_percent(const char *s, int *ret)
{
    bool negative = *s == '-';
    const char *end;
    uint64_t v;
    int r = parse_digits(s + negative, &end, &v);

    if (r < 0)
        return r;
    if (*end == '%')
        end++;
    if (*end)
        return -EINVAL;
    if (v > 100)
        return -ERANGE;
    *ret = negative ? -(int)v : (int)v;
    return 0;
}
