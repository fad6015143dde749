/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/versions.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the position after the number that begins at `s`. */
static const char *skip_number(const char *s)
{
    while (is_digit(*s) || (*s == '.' && is_digit(s[1])))
        s++;
    return s;
}

bool versions_alike(const char *a, const char *b)
{
    bool differ = false;

    while (*a || *b) {
        if (is_digit(*a) && is_digit(*b)) {
            const char *x = skip_number(a), *y = skip_number(b);

            differ = differ || x - a != y - b || memcmp(a, b, (size_t)(x - a)) != 0;
            a = x;
            b = y;
        } else if (*a == *b) {
            a++;
            b++;
        } else
            return false;
    }
    return differ;
}

const char *versions_successor(const char *gone, char *const *names, size_t n)
{
    const char *best = NULL;

    for (size_t i = 0; i < n; i++)
        if (versions_alike(gone, names[i]) && (!best || strverscmp(names[i], best) > 0))
            best = names[i];
    return best;
}
