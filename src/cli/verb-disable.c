/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart disable: src/cli/switch.c. */

#include "cli/switch.h"

static const Option options[] = {
        {1, 0, "now", NULL, "Stop what runs, too"},
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
                "Disables its units, and what hooks of display managers and package managers "
                "start.\nWhat was learned is kept.",
        .options = options,
        .run = run,
};
