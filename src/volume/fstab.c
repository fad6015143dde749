/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/fstab.h"

#include "base/rooted.h"

#include <limits.h>
#include <mntent.h>
#include <string.h>

#define FSTAB_SIZE_MAX (1U << 20)

int fstab_read(int sys_fd, const char *prefix, char **ret)
{
    size_t l = strlen(prefix);
    char path[PATH_MAX];
    int r;

    while (l > 0 && prefix[l - 1] == '/')
        l--;
    r = snprintf(path, sizeof(path), "%.*s/etc/fstab", (int)l, prefix) < (int)sizeof(path)
                ? rooted_read(sys_fd, path, FSTAB_SIZE_MAX, ret, NULL)
                : -ENAMETOOLONG;
    if (r >= 0 || r == -ENOMEM)
        return r;
    *ret = strdup("");
    return *ret ? 0 : -ENOMEM;
}

bool fstab_mounts(const char *text, const char *mountpoint)
{
    static const char *const others[] = {"noauto", "user", "users", "owner", "group"};
    FILE *f = *text ? fmemopen((char *)text, strlen(text), "r") : NULL;
    bool found = false;
    char line[2 * PATH_MAX];
    struct mntent m;

    while (f && !found && getmntent_r(f, &m, line, sizeof(line))) {
        for (size_t l = strlen(m.mnt_dir); l > 1 && m.mnt_dir[l - 1] == '/'; l--)
            m.mnt_dir[l - 1] = 0;
        found = strcmp(m.mnt_dir, mountpoint) == 0;
        for (size_t i = 0; found && i < ELEMENTSOF(others); i++)
            found = !hasmntopt(&m, others[i]);
    }
    if (f)
        fclose(f);
    return found;
}
