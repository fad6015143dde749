/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "command/program.h"

#include "command/cli.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "config-paths.h"

/* Formats a path. Returns true if the path fits into the buffer and names a program that may be
 * executed. */
static bool _printf_(3, 4) is_program(char *buf, size_t size, const char *format, ...)
{
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(buf, size, format, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n >= size)
        errno = ENAMETOOLONG;
    return n >= 0 && (size_t)n < size && access(buf, X_OK) == 0;
}

int cli_find_program(const char *name, const char *folder, char *buf, size_t size)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    self[MAX(n, 0)] = 0;
    slash = strrchr(self, '/');
    if (slash) {
        *slash = 0;
        if (is_program(buf, size, "%s/%s", self, name) ||
            is_program(buf, size, "%s/../%s/%s", self, folder, name))
            return 0;
    }
    if (!is_program(buf, size, "%s/%s", HEADSTART_LIBEXEC_DIR, name))
        return cli_error(errno, "%s: %m", buf);
    return 0;
}
