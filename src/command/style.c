/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "command/style.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_coloured(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

const char *style_on(Style s)
{
    static const char *const codes[] = {
            [STYLE_GOOD] = "\033[32m",
            [STYLE_NOTE] = "\033[33m",
            [STYLE_BAD] = "\033[31m",
            [STYLE_TITLE] = "\033[1m",
    };

    return is_coloured() ? codes[s] : "";
}

const char *style_off(void)
{
    return is_coloured() ? "\033[0m" : "";
}
