/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/checks.h"

#include "base/directory.h"
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

#define SDDM_PROGRAM PROGRAM "-sddm-display"

/* Which file sets DisplayCommand= last. */
typedef struct DisplayCommand {
    char path[PATH_MAX];
    bool ours; /* it runs headstart's hook */
} DisplayCommand;

/* Reads a file as SDDM does (ConfigBase::loadInternal() in its src/common/ConfigReader.cpp).
 * Returns true and sets *ret if the file sets DisplayCommand=. */
static bool read_display_command(const Context *c, const char *path, DisplayCommand *ret)
{
    _cleanup_free_ char *text = NULL;
    bool x11 = false, found = false;

    if (rooted_read(c->system_fd, path, HOOK_SIZE_MAX, &text, NULL) < 0)
        return false;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char section[16], sign;

        line[strcspn(line, "#")] = 0;
        if (!strchr(line, '=') && sscanf(line, " [%15[^]]", section) == 1)
            x11 = strcmp(section, "X11") == 0 || strcmp(section, "XDisplay") == 0;
        if (!x11 || sscanf(line, " DisplayCommand %c", &sign) != 1 || sign != '=')
            continue;
        ret->ours = strstr(line, SDDM_PROGRAM);
        found = true;
    }
    if (found)
        snprintf(ret->path, sizeof(ret->path), "%s", path);
    return found;
}

/* Reads the files of a directory whose names come after a name. */
static void read_display_commands(const Context *c, const char *path, const char *after,
                                  DisplayCommand *ret)
{
    int fd = rooted_open(c->system_fd, path, O_RDONLY | O_DIRECTORY);
    _cleanup_closedir_ DIR *dir = NULL;
    char last[NAME_MAX + 1], file[PATH_MAX];
    const struct dirent *e;

    if (directory_from_fd(fd, &dir) < 0)
        return;
    snprintf(last, sizeof(last), "%s", after);
    while ((e = directory_next(dir))) {
        snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.' && strcmp(e->d_name, last) > 0 &&
            read_display_command(c, file, ret))
            snprintf(last, sizeof(last), "%s", e->d_name);
    }
}

/* Returns true if a file that SDDM reads after the hook's file overrides it, for example
 * default.conf on Arch Linux. SDDM reads the files in the order of this function. */
static bool is_overridden(const Context *c, const Hook *h, DisplayCommand *ret)
{
    *ret = (DisplayCommand){.ours = true};
    if (strcmp(h->service, "sddm.service") != 0)
        return false;
    read_display_commands(c, "/usr/lib/sddm/sddm.conf.d", strrchr(h->path, '/') + 1, ret);
    read_display_commands(c, "/etc/sddm.conf.d", "", ret);
    (void)read_display_command(c, "/etc/sddm.conf", ret);
    return !ret->ours;
}

/* Says whether the display manager runs the hook, which is installed. */
static void explain_installed(Checks *checks, const Context *c, const Hook *h)
{
    DisplayCommand command;

    if (is_overridden(c, h, &command))
        checks_add(checks, "display-manager", CHECK_NOTE,
                   "the login pack is replayed later, by headstart-replay-login.service",
                   "set DisplayCommand=" SDDM_PROGRAM " in the section [X11] of /etc/sddm.conf",
                   "%s sets DisplayCommand= after headstart's file, so SDDM does not run the hook",
                   command.path);
    else
        checks_add(checks, "display-manager", CHECK_OK, NULL, NULL, "the hook of %s is installed",
                   h->service);
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
            explain_installed(checks, c, hooks + i);
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
