/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The messages and the exit status of `headstart` and `headstart-evaluate`. */

#include "base/log.h"
#include "command/cli.h"
#include "command/progress.h"

#include <stdarg.h>
#include <string.h>

int cli_usage_error(const Context *c, const char *format, ...)
{
    char message[1024], command[64];
    va_list ap;

    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    snprintf(command, sizeof(command), "headstart%s%s", c->verb ? " " : "",
             c->verb ? c->verb->name : "");
    options_refuse(command, "%s", message);
    return CLI_WRONG_USAGE;
}

int cli_error(int error, const char *format, ...)
{
    char message[2048];
    va_list ap;

    error = error < 0 ? -error : error;
    va_start(ap, format);
    format_message(message, sizeof(message), error, format, ap);
    va_end(ap);
    progress_make_room();
    fprintf(stderr, "headstart: %s\n", message);
    return error ? -error : -EIO;
}

void cli_warning(int error, const char *format, ...)
{
    char message[2048];
    va_list ap;

    va_start(ap, format);
    format_message(message, sizeof(message), error, format, ap);
    va_end(ap);
    progress_make_room();
    fprintf(stderr, "headstart: %s\n", message);
}

int cli_exit_status(int r)
{
    if (r == CLI_WRONG_USAGE)
        return EXIT_USAGE;
    if (r == CLI_HELP_SHOWN)
        r = EXIT_SUCCESS;
    if (fflush(stdout) < 0 || ferror(stdout)) {
        cli_error(errno, "cannot write the output: %m");
        r = r > 0 ? r : EXIT_FAILURE;
    }
    return r < 0 ? EXIT_FAILURE : r;
}
