/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "command/systemctl.h"

#include "command/progress.h"

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config-paths.h"

#define ARGUMENTS_MAX 31U

bool systemctl_available(void)
{
    return access("/run/systemd/system", F_OK) >= 0;
}

int systemctl_run(const char *const *arguments, bool silent)
{
    const char *argv[ARGUMENTS_MAX + 2] = {"systemctl"};
    posix_spawn_file_actions_t actions;
    int r, status;
    pid_t pid;

    for (size_t i = 0; arguments[i]; i++) {
        if (i >= ARGUMENTS_MAX)
            return -E2BIG;
        argv[i + 1] = arguments[i];
    }
    r = posix_spawn_file_actions_init(&actions);
    if (r != 0)
        return -r;
    if (silent)
        r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (r == 0)
        r = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        return -r;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

void systemctl_reload_headstartd(const Context *c)
{
    Progress progress;

    if (strcmp(c->state, HEADSTART_STATE_DIR) != 0 || !systemctl_available())
        return;
    progress = progress_start("Waiting for systemd", c->quiet);
    (void)systemctl_run((const char *const[]){"kill", "--kill-who=main", "--signal=HUP",
                                              "headstart-record.service", NULL},
                        true);
    progress_done(&progress);
}
