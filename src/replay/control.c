/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "replay/control.h"

#include "boot/own-files.h"
#include "execute/mounted.h"
#include "execute/opening.h"

#include "config-paths.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

static bool is_own_library(const char *path)
{
    static const char *const libraries[] = {HEADSTART_OWN_LIBRARIES};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    for (size_t i = 0; i < ELEMENTSOF(libraries); i++)
        if (strncmp(name, libraries[i], strlen(libraries[i])) == 0)
            return true;
    return false;
}

static void read_libraries_ahead(const Pack *p, const char *root)
{
    _cleanup_mounted_table_ MountedTable mounted = {0};

    if (mounted_table_read(p, root, &mounted) < 0)
        return;
    for (uint32_t i = 0; i < mounted.n; i++) {
        uint32_t first = le32toh(p->volumes[i].first_file), n = le32toh(p->volumes[i].n_files);

        for (uint32_t k = first; mounted.volumes[i].root_fd >= 0 && k < first + n; k++) {
            const char *path = pack_string(p, p->files[k].path);
            _cleanup_close_ int fd = -EBADF;
            ReplaySkip why;

            if (!is_own_library(path))
                continue;
            fd = open_planned(mounted.volumes[i].root_fd, path, &p->files[k], true, &why);
            if (fd >= 0)
                (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
        }
    }
}

void control_read_ahead(const Pack *p, const char *root)
{
    char path[PATH_MAX];

    own_units_read_ahead(root);
    if ((size_t)snprintf(path, sizeof(path), "%s" HEADSTART_LIBEXEC_DIR "/headstartd", root) <
        sizeof(path))
        own_file_read_ahead(path);
    read_libraries_ahead(p, root);
}
