/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart enable. src/cli/switch.c contains the code. */

#include "cli/switch.h"

static const Option options[] = {
        {1, 0, "now", NULL, "Start recording now, too"},
        {0},
};

static int run(Context *c)
{
    return switch_headstart(c, true);
}

const Verb verb_enable = {
        .name = "enable",
        .arguments = "",
        .summary = "Turn headstart on",
        .description =
                "Enables the units of headstart, and the units that the hooks of display managers\n"
                "and package managers start.",
        .options = options,
        .run = run,
};
