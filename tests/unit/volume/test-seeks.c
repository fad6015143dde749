/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the times of a disk tell. */

#include "volume/seeks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void slow_seeks(void **state)
{
    static const struct {
        const char *what;
        SeekTimes times;
        SeeksSlowly shown;
    } cases[] = {
            {"7,200 turns", {9500, 110, 16}, SEEKS_SLOWLY_YES},
            {"15,000 turns", {5200, 90, 16}, SEEKS_SLOWLY_YES},
            {"nothing for what is next", {4000, 0, 16}, SEEKS_SLOWLY_YES},
            {"flash", {95, 80, 16}, SEEKS_SLOWLY_NO},
            {"a card", {1200, 700, 16}, SEEKS_SLOWLY_NO},
            {"no time at all", {0, 0, 16}, SEEKS_SLOWLY_NO},
            {"across a network", {3100, 3050, 16}, SEEKS_SLOWLY_UNCLEAR},
            {"far away", {40000, 39000, 13}, SEEKS_SLOWLY_UNCLEAR},
            {"busy", {45000, 21000, 12}, SEEKS_SLOWLY_UNCLEAR},
            {"too few", {90000, 110, 7}, SEEKS_SLOWLY_UNCLEAR},
            {"nothing", {0, 0, 0}, SEEKS_SLOWLY_UNCLEAR},
    };

    for (size_t i = 0; i < ELEMENTSOF(cases); i++)
        if (seeks_decide(&cases[i].times) != cases[i].shown)
            fail_msg("%s", cases[i].what);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
            cmocka_unit_test(slow_seeks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
