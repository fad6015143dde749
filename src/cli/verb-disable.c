/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart disable. src/cli/switch.c contains the code. */

#include "cli/switch.h"

static const Option options[] = {
        {1, 0, "now", NULL, "Stop running units, too"},
        {0},
};

static int run(Context *c)
{
    return switch_headstart(c, false);
}

const Verb verb_disable = {
        .name = "disable",
        .arguments = "",
        .summary = "Turn headstart off",
        .description =
                "Disables the units of headstart, and the units that the hooks of display managers\n"
                "and package managers start. What was learned is kept.",
        .options = options,
        .run = run,
};
