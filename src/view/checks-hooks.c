/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/checks.h"

#include "base/rooted.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "config-paths.h"

#define MANAGER "/etc/systemd/system/display-manager.service"
#define HOOKS   HEADSTART_DATA_DIR "/hooks/"
#define PROGRAM HEADSTART_LIBEXEC_DIR "/hook"
#define COST    "replay of a user's login begins later, when systemd-logind reports the login"

/* No display manager has a larger configuration file or script. */
#define HOOK_SIZE_MAX (1U << 20)

/* The hook of a display manager (hooks/install-hooks.in). */
typedef struct Hook {
    const char *service; /* to which display-manager.service points */
    const char *path, *target;
    const char *call; /* what a file of the administrator at this path needs */
} Hook;

/* GDM refuses the login if its script fails, also after headstart was removed. */
#define GDM_CALL "[ ! -x " PROGRAM " ] || " PROGRAM " user \"$USERNAME\""
#define LIGHTDM  HOOKS "lightdm/headstart.conf"
#define SDDM     HOOKS "sddm/headstart.conf"

static const Hook hooks[] = {
        {"gdm3.service", "/etc/gdm3/PostLogin/Default", HOOKS "gdm/PostLogin", GDM_CALL},
        {"gdm.service", "/etc/gdm3/PostLogin/Default", HOOKS "gdm/PostLogin", GDM_CALL},
        {"gdm.service", "/etc/gdm/PostLogin/Default", HOOKS "gdm/PostLogin", GDM_CALL},
        {"lightdm.service", "/usr/share/lightdm/lightdm.conf.d/00-headstart.conf", LIGHTDM,
         "the lines of " LIGHTDM},
        {"sddm.service", "/usr/lib/sddm/sddm.conf.d/00-headstart.conf", SDDM, "the lines of " SDDM},
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

static bool exists(const Context *c, const char *path)
{
    _cleanup_close_ int fd = rooted_open(c->system_fd, path, O_PATH | O_NOFOLLOW);

    return fd >= 0;
}

/* Returns true if a line of the file that is no comment calls a program of the hooks. */
static bool calls_program(const Context *c, const Hook *h)
{
    _cleanup_free_ char *text = NULL;

    if (rooted_read(c->system_fd, h->path, HOOK_SIZE_MAX, &text, NULL) < 0)
        return false;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        line[strcspn(line, "#")] = 0;
        if (strstr(line, PROGRAM) || strstr(line, h->target))
            return true;
    }
    return false;
}

static bool is_installed(const Context *c, const Hook *h)
{
    char target[PATH_MAX];

    return (read_link(c, h->path, target) && strcmp(target, h->target) == 0) || calls_program(c, h);
}

/* Explains what to do about a file that has the path of the hook. */
static void explain_other_file(Checks *checks, const Hook *h)
{
    char remedy[512];

    snprintf(remedy, sizeof(remedy),
             "add this to %s, because install-hooks never replaces a file: %s", h->path, h->call);
    checks_add(checks, "display-manager", CHECK_NOTE, COST, remedy,
               "%s does not call headstart's hook", h->path);
}

void checks_add_hooks(Checks *checks, const Context *c)
{
    char manager[PATH_MAX];
    const char *slash, *service;
    const Hook *other = NULL; /* a file of the administrator has the path of this hook */
    bool known = false;

    if (!read_link(c, MANAGER, manager))
        return;
    slash = strrchr(manager, '/');
    service = slash ? slash + 1 : manager;
    for (size_t i = 0; i < ELEMENTSOF(hooks); i++) {
        if (strcmp(hooks[i].service, service) != 0)
            continue;
        known = true;
        if (is_installed(c, hooks + i)) {
            checks_add(checks, "display-manager", CHECK_OK, NULL, NULL,
                       "the hook of %s is installed", service);
            return;
        }
        if (!other && exists(c, hooks[i].path))
            other = hooks + i;
    }
    if (other)
        explain_other_file(checks, other);
    else if (known)
        checks_add(checks, "display-manager", CHECK_NOTE, COST,
                   HEADSTART_LIBEXEC_DIR "/install-hooks install",
                   "%s does not have headstart's hook", service);
    else
        checks_add(checks, "display-manager", CHECK_OK, NULL, NULL,
                   "%s needs no hook: systemd-logind reports its logins", service);
}
