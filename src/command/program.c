/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "command/program.h"

#include "command/cli.h"
#include "command/progress.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config-paths.h"

/* What a program prints beyond this is dropped. */
#define OUTPUT_MAX 65536U

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

/* Starts argv[0] with standard output to the descriptor. Signals of the terminal end it, although
 * this process ignores them. Returns 0 or a negative errno. */
static int start(char *const *argv, int output_fd, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    int r;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGQUIT);
    r = posix_spawn_file_actions_init(&actions);
    if (r != 0)
        return -r;
    r = posix_spawnattr_init(&attributes);
    if (r == 0) {
        r = posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
        posix_spawnattr_setsigdefault(&attributes, &signals);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        if (r == 0)
            r = posix_spawn(ret, argv[0], &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

/* Reads the descriptor to its end. Returns the text, which the caller frees; NULL: not enough
 * memory. The size of the text is bounded, and the rest is dropped. */
static char *read_output(int fd, size_t *ret_size)
{
    char *text = malloc(OUTPUT_MAX), rest[4096];
    size_t size = 0;

    for (ssize_t n = 1; n > 0 || (n < 0 && errno == EINTR);) {
        bool room = text && size < OUTPUT_MAX;

        n = read(fd, room ? text + size : rest, room ? OUTPUT_MAX - size : sizeof(rest));
        size += room && n > 0 ? (size_t)n : 0;
    }
    *ret_size = size;
    return text;
}

/* Returns the exit status as a shell does. */
static int wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int cli_run_program(char *const *argv, const char *what, bool quiet)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    Progress progress;
    int fds[2], r;
    pid_t pid = -1;

    if (quiet || !isatty(STDERR_FILENO)) {
        execv(argv[0], argv);
        return cli_error(errno, "%s: %m", argv[0]);
    }
    if (pipe2(fds, O_CLOEXEC) < 0)
        return cli_error(errno, "%s: %m", argv[0]);
    progress = progress_start(what, false);
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGQUIT, &ignore, NULL);
    r = start(argv, fds[1], &pid);
    close(fds[1]);
    if (r >= 0) {
        text = read_output(fds[0], &size);
        r = wait_for(pid);
    }
    close(fds[0]);
    progress_done(&progress);
    if (text)
        (void)fwrite(text, 1, size, stdout); /* main() reports errors */
    return r < 0 ? cli_error(r, "%s: %m", argv[0]) : r;
}
