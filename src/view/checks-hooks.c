/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/checks.h"

#include "base/rooted.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "config-paths.h"

#define MANAGER "/etc/systemd/system/display-manager.service"
#define HOOKS   HEADSTART_DATA_DIR "/hooks/"

/* The hook of a display manager (hooks/install-hooks.in). */
static const struct {
    const char *service; /* to which display-manager.service points */
    const char *hook, *target;
} hooks[] = {
        {"gdm3.service", "/etc/gdm3/PostLogin/Default", HOOKS "gdm/PostLogin"},
        {"gdm.service", "/etc/gdm3/PostLogin/Default", HOOKS "gdm/PostLogin"},
        {"gdm.service", "/etc/gdm/PostLogin/Default", HOOKS "gdm/PostLogin"},
        {"lightdm.service", "/usr/share/lightdm/lightdm.conf.d/00-headstart.conf",
         HOOKS "lightdm/headstart.conf"},
        {"sddm.service", "/usr/lib/sddm/sddm.conf.d/00-headstart.conf",
         HOOKS "sddm/headstart.conf"},
};

/* Reads the target of a symbolic link. Returns false if there is no symbolic link with that
 * path. */
static bool read_link(const Context *c, const char *path, char target[static PATH_MAX])
{
    _cleanup_close_ int fd = rooted_open(c->system_fd, path, O_PATH | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", target, PATH_MAX - 1);

    if (n < 0)
        return false;
    target[n] = 0;
    return true;
}

void checks_add_hooks(Checks *checks, const Context *c)
{
    char target[PATH_MAX], manager[PATH_MAX];
    const char *slash, *service;
    bool known = false;

    if (!read_link(c, MANAGER, manager))
        return;
    slash = strrchr(manager, '/');
    service = slash ? slash + 1 : manager;
    for (size_t i = 0; i < ELEMENTSOF(hooks); i++) {
        if (strcmp(hooks[i].service, service) != 0)
            continue;
        known = true;
        if (read_link(c, hooks[i].hook, target) && strcmp(target, hooks[i].target) == 0) {
            checks_add(checks, "display-manager", CHECK_OK, NULL, NULL,
                       "the hook of %s is installed", service);
            return;
        }
    }
    if (known)
        checks_add(checks, "display-manager", CHECK_NOTE,
                   "replay of a user's login begins later, when systemd-logind reports the login",
                   HEADSTART_LIBEXEC_DIR "/install-hooks install",
                   "%s does not have headstart's hook", service);
    else
        checks_add(checks, "display-manager", CHECK_OK, NULL, NULL,
                   "%s needs no hook: systemd-logind reports its logins", service);
}
