/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

static int max_level = LOG_INFO;

void log_parse_environment(void)
{
    static const char *const names[] = {"emerg",   "alert",  "crit", "err",
                                        "warning", "notice", "info", "debug"};
    const char *e = getenv("SYSTEMD_LOG_LEVEL");

    if (!e)
        return;
    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        if (strcasecmp(e, names[i]) == 0 || (e[0] == (char)('0' + i) && e[1] == 0))
            max_level = (int)i;
}

int log_full(int level, int error, const char *format, ...)
{
    char line[2048];
    va_list ap;
    int saved = errno, n = 0;

    if (error < 0)
        error = -error;
    if (level <= max_level) {
        if (getenv("JOURNAL_STREAM"))
            n = snprintf(line, sizeof(line), "<%d>", level);
        errno = error; /* for %m */
        va_start(ap, format);
        vsnprintf(line + n, sizeof(line) - (size_t)n, format, ap);
        va_end(ap);
        /* One write, so that lines of several processes do not mix. */
        size_t l = strlen(line);
        if (l > sizeof(line) - 2)
            l = sizeof(line) - 2;
        line[l] = '\n';
        if (write(STDERR_FILENO, line, l + 1) < 0) {
            /* Nowhere left to complain. */
        }
    }
    errno = saved;
    return -error;
}
