/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the times of a disk tell. */

#include "volume/seeks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void spindle(void **state)
{
    static const struct {
        const char *what;
        SeekTimes times;
        Spindle shown;
    } cases[] = {
            {"7,200 turns", {9500, 110, 16}, SPINDLE_YES},
            {"15,000 turns", {5200, 90, 16}, SPINDLE_YES},
            {"nothing for what is next", {4000, 0, 16}, SPINDLE_YES},
            {"flash", {95, 80, 16}, SPINDLE_NO},
            {"a card", {1200, 700, 16}, SPINDLE_NO},
            {"no time at all", {0, 0, 16}, SPINDLE_NO},
            {"across a network", {3100, 3050, 16}, SPINDLE_UNCLEAR},
            {"far away", {40000, 39000, 13}, SPINDLE_UNCLEAR},
            {"busy", {45000, 21000, 12}, SPINDLE_UNCLEAR},
            {"too few", {90000, 110, 7}, SPINDLE_UNCLEAR},
            {"nothing", {0, 0, 0}, SPINDLE_UNCLEAR},
    };

    for (size_t i = 0; i < ELEMENTSOF(cases); i++)
        if (seeks_tell_spindle(&cases[i].times) != cases[i].shown)
            fail_msg("%s", cases[i].what);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
            cmocka_unit_test(spindle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
