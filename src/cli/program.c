/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/program.h"

#include "cli/cli.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "config-paths.h"

int cli_find_program(const char *name, const char *folder, char *buf, size_t size)
{
    char self[PATH_MAX];
    ssize_t n;

    n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n > 0) {
        self[n] = 0;
        *strrchr(self, '/') = 0;
        if (snprintf(buf, size, "%s/%s", self, name) < (int)size && access(buf, X_OK) == 0)
            return 0;
        if (snprintf(buf, size, "%s/../%s/%s", self, folder, name) < (int)size &&
            access(buf, X_OK) == 0)
            return 0;
    }
    snprintf(buf, size, "%s/%s", HEADSTART_LIBEXEC_DIR, name);
    if (access(buf, X_OK) < 0)
        return cli_error(errno, "%s: %m", buf);
    return 0;
}
