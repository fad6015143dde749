/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart enable and headstart disable switch the units of the preset on and off with systemctl.
 * In addition, disable creates a mark file, and enable removes it. While the file exists, the units
 * that hooks and timers start do nothing. */

#include "cli/switch.h"
#include "base/atomic-file.h"
#include "command/progress.h"
#include "command/systemctl.h"

#include <fcntl.h>
#include <string.h>

/* The file that disables headstart, below the root. Every unit in units/ except
 * headstart-bus.service has ConditionPathExists=! on it. */
#define MARK_DIRECTORY "etc/headstart"
#define MARK           "disabled"

#define ROOT_ARGUMENT "--root="

/* The units in data/90-headstart.preset. */
#define ENABLED                                                                                   \
    "headstart-record.service", "headstart-record-late.service", "headstart-replay-boot.service", \
            "headstart-replay-login.service", "headstart-learn.path", "headstart-learn.timer",    \
            "headstart-plan.service"

static int open_mark_directory(const Context *c, bool create, int *ret)
{
    _cleanup_free_ char *path = NULL;
    int fd, r;

    if (asprintf(&path, "%s/" MARK_DIRECTORY, strcmp(c->root, "/") == 0 ? "" : c->root) < 0)
        return cli_error(ENOMEM, "%m");
    if (create) {
        r = make_directories(path, 0755);
        if (r < 0)
            return cli_error(r, "%s: %m", path);
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT && !create ? -ENOENT : cli_error(errno, "%s: %m", path);
    *ret = fd;
    return 0;
}

static int set_mark(const Context *c, bool disabled)
{
    static const char text[] =
            "'headstart disable' has created this file; 'headstart enable' removes it.\n";
    _cleanup_close_ int fd = -EBADF;
    int r = open_mark_directory(c, disabled, &fd);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (disabled)
        r = atomic_file_write(fd, MARK, text, strlen(text), 0644);
    else
        r = unlinkat(fd, MARK, 0) < 0 && errno != ENOENT ? -errno : 0;
    return r < 0 ? cli_error(r, "/" MARK_DIRECTORY "/" MARK ": %m") : 0;
}

/* Runs systemctl. Returns 0, or an error that systemctl or this function has reported. */
static int systemctl(const Context *c, const char *const *arguments)
{
    Progress progress = progress_start("Waiting for systemd", c->quiet);
    int r = systemctl_run(arguments, false);

    progress_done(&progress);
    if (r < 0)
        return cli_error(r, "cannot run systemctl: %m");
    return r > 0 ? cli_error(EIO, "systemctl %s failed", arguments[0]) : 0;
}

static int switch_units(const Context *c, bool enable, bool now)
{
    static const char *const start[] = {"start", "headstart-record.service", "headstart-learn.path",
                                        "headstart-learn.timer", NULL};
    static const char *const stop[] = {"stop",
                                       ENABLED,
                                       "headstart-learn.service",
                                       "headstart-refresh.timer",
                                       "headstart-refresh.service",
                                       "headstart-replay-user@*.service",
                                       NULL};
    _cleanup_free_ char *root = NULL;
    int r;

    if (asprintf(&root, ROOT_ARGUMENT "%s", c->root) < 0)
        return cli_error(ENOMEM, "%m");
    r = systemctl(c, (const char *const[]){enable ? "enable" : "disable", "--quiet", root, ENABLED,
                                           NULL});
    return r < 0 || !now ? r : systemctl(c, enable ? start : stop);
}

int switch_headstart(Context *c, bool enable)
{
    static const Column columns[] = {
            {NULL, "enabled", CELL_BOOLEAN},
            {NULL, "now", CELL_BOOLEAN},
            {0},
    };
    const char *value;
    bool now = false;
    int k, r;

    while ((k = cli_next_option(c, &value)) > 0)
        now = true;
    if (k < 0)
        return k;
    if (now && strcmp(c->root, "/") != 0)
        return cli_usage_error(c, "either --now or --root=");
    if (now && !systemctl_available())
        return cli_error(EOPNOTSUPP, "--now: this system was not booted with systemd");
    if (access(c->root, F_OK) < 0)
        return cli_error(errno, "--root=%s: %m", c->root);
    /* If the process is killed between the two steps, headstart is off. */
    r = enable ? switch_units(c, true, false) : set_mark(c, true);
    if (r >= 0)
        r = enable ? set_mark(c, false) : switch_units(c, false, now);
    if (r >= 0 && enable && now)
        r = switch_units(c, true, true);
    if (r < 0)
        return r;
    if (c->json != JSON_OFF)
        return cli_print_json(c, columns, (int)enable, (int)now);
    if (!c->quiet)
        puts(enable ? now ? "Enabled, and recording." : "Enabled, from the next boot on."
             : now  ? "Disabled, and stopped. What was learned is kept; 'headstart forget' "
                      "deletes it."
                    : "Disabled, from the next boot on. What was learned is kept; 'headstart "
                      "forget' deletes it.");
    return 0;
}
