/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "early/conditions.h"

#include "base/macros.h"
#include "base/rooted.h"
#include "base/time-util.h"
#include "system/kernel.h"

#include "config-paths.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A crash kernel has this file. It has little memory, and saves the dump and nothing else. */
static const char crash_dump[] = "/proc/vmcore";
static const char *const forbidden_words[] = {"headstart=0", "rd.live.image", "boot=live",
                                              "boot=casper"};
static const char *const forbidden_below_root[] = {HEADSTART_SYSCONF_DIR "/disabled",
                                                   "/cdrom/casper"};
static const char *const forbidden_below_run[] = {"/archiso", "/initramfs/live"};

static bool exists(int root_fd, const char *path)
{
    _cleanup_close_ int fd = root_fd < 0 ? -EBADF : rooted_open(root_fd, path, O_PATH);

    return fd >= 0;
}

static bool has_word(char *const *words, const char *word)
{
    for (; words && *words; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

const char *early_forbidden_by_kernel(char *const *words)
{
    if (access(crash_dump, F_OK) == 0)
        return crash_dump;
    for (size_t i = 0; i < ELEMENTSOF(forbidden_words); i++)
        if (has_word(words, forbidden_words[i]) ||
            kernel_command_line_has(AT_FDCWD, forbidden_words[i]))
            return forbidden_words[i];
    return NULL;
}

const char *early_forbidden(int root_fd, int run_fd, char *const *words)
{
    const char *reason = early_forbidden_by_kernel(words);

    if (reason)
        return reason;
    for (size_t i = 0; i < ELEMENTSOF(forbidden_below_root); i++)
        if (exists(root_fd, forbidden_below_root[i]))
            return forbidden_below_root[i];
    for (size_t i = 0; i < ELEMENTSOF(forbidden_below_run); i++)
        if (exists(run_fd, forbidden_below_run[i]))
            return forbidden_below_run[i];
    return NULL;
}

static bool get_status(int root_fd, const char *path, struct stat *ret)
{
    _cleanup_close_ int fd = root_fd < 0 ? -EBADF : rooted_open(root_fd, path, O_PATH);

    return fd >= 0 && fstat(fd, ret) >= 0;
}

const char *early_find_pack_dir(int root_fd)
{
    struct stat state, copy;
    bool has_state = get_status(root_fd, HEADSTART_STATE_DIR "/boot.pack", &state);

    if (!get_status(root_fd, HEADSTART_SYSCONF_DIR "/boot.pack", &copy))
        return has_state ? HEADSTART_STATE_DIR : NULL;
    return has_state && timespec_nsec(&copy.st_mtim) <= timespec_nsec(&state.st_mtim)
                   ? HEADSTART_STATE_DIR
                   : HEADSTART_SYSCONF_DIR;
}

static bool exists_in(int root_fd, const char *dir, const char *name)
{
    char path[PATH_MAX];

    return (size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) < sizeof(path) &&
           exists(root_fd, path);
}

bool early_is_idle(int root_fd, const char *pack_dir)
{
    return (exists_in(root_fd, pack_dir ? pack_dir : HEADSTART_STATE_DIR, "boot-idle") ||
            (!pack_dir && exists_in(root_fd, HEADSTART_SYSCONF_DIR, "boot-idle"))) &&
           early_may_replay(root_fd, pack_dir);
}

bool early_may_replay(int root_fd, const char *pack_dir)
{
    return !exists_in(root_fd, pack_dir ? pack_dir : HEADSTART_STATE_DIR, "rerecord-boot");
}
