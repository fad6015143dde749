/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/checks.h"

#include "base/macros.h"
#include "base/text.h"

#include <stdarg.h>
#include <string.h>

void checks_done(Checks *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->items[i].found);
        free(c->items[i].cost);
        free(c->items[i].remedy);
    }
    free(c->items);
    *c = (Checks){0};
}

const char *check_result_to_string(CheckResult r)
{
    static const char *const names[_CHECK_RESULT_MAX] = {
            [CHECK_OK] = "ok",
            [CHECK_NOTE] = "note",
            [CHECK_PROBLEM] = "problem",
    };

    return names[r];
}

void checks_add(Checks *c, const char *name, CheckResult result, const char *cost,
                const char *remedy, const char *format, ...)
{
    Check x = {.name = name, .result = result};
    va_list ap;
    int n;

    va_start(ap, format);
    n = vasprintf(&x.found, format, ap);
    va_end(ap);
    if (n < 0) {
        c->failed = true;
        return;
    }
    x.cost = cost ? strdup(cost) : NULL;
    x.remedy = remedy ? strdup(remedy) : NULL;
    /* Both may contain names of files, mount points and devices. */
    text_neutralize(x.found);
    if (x.remedy)
        text_neutralize(x.remedy);
    if ((cost && !x.cost) || (remedy && !x.remedy) ||
        grow_array(&c->items, &c->allocated, c->n + 1, sizeof(Check)) < 0) {
        free(x.found);
        free(x.cost);
        free(x.remedy);
        c->failed = true;
        return;
    }
    c->items[c->n++] = x;
}
