/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/checks.h"

#include "base/directory.h"
#include "base/rooted.h"
#include "boot/early-delay.h"
#include "state/idle-boot.h"
#include "state/state.h"
#include "system/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "config-paths.h"

#define INIT_PROGRAM HEADSTART_LIBEXEC_DIR "/headstart-init"
#define COST         "what systemd itself reads, a third of a cold boot, is not replayed"
#define PRESETS      "/etc/mkinitcpio.d"

static bool get_status(const Context *c, const char *path, struct stat *ret)
{
    _cleanup_close_ int fd = rooted_open(c->system_fd, path, O_PATH);

    return fd >= 0 && fstat(fd, ret) == 0;
}

/* Reads a file of one line, without its end. Returns NULL if it cannot be read. */
static char *read_line(const Context *c, const char *path)
{
    char *line = NULL;

    if (rooted_read(c->system_fd, path, 4096, &line, NULL) < 0)
        return NULL;
    line[strcspn(line, "\n")] = 0;
    return line;
}

/* Returns true if mkinitcpio builds the images: it has a preset. */
static bool has_preset(const Context *c)
{
    int fd = rooted_open(c->system_fd, PRESETS, O_RDONLY | O_DIRECTORY);
    _cleanup_closedir_ DIR *dir = NULL;
    const struct dirent *e;

    if (directory_from_fd(fd, &dir) < 0)
        return false;
    while ((e = directory_next(dir))) {
        const char *end = strrchr(e->d_name, '.');

        if (end && strcmp(end, ".preset") == 0)
            return true;
    }
    return false;
}

/* Returns what makes the next boot's initrd start headstart. headstart's files for mkinitcpio have
 * no effect unless HOOKS names them. */
static const char *rebuild(const Context *c)
{
    if (has_preset(c))
        return "add headstart to HOOKS of the mkinitcpio configuration that the preset in " PRESETS
               " names, run mkinitcpio -P, and reboot";
    return HEADSTART_LIBEXEC_DIR "/rebuild-initrd $(uname -r), then reboot";
}

/* Finds the image of the running kernel's initrd, by the names that distributions use: with the
 * release of the kernel, or on Arch with the name of its package. */
static bool find_image(const Context *c, struct stat *ret)
{
    static const char *const formats[] = {"/boot/initrd.img-%s", "/boot/initramfs-%s.img",
                                          "/boot/initrd-%s"};
    _cleanup_free_ char *release = read_line(c, "/proc/sys/kernel/osrelease"), *package = NULL;
    char path[4200];

    if (!release)
        return false;
    for (size_t i = 0; i < ELEMENTSOF(formats); i++) {
        snprintf(path, sizeof(path), formats[i], release);
        if (get_status(c, path, ret))
            return true;
    }
    snprintf(path, sizeof(path), "/usr/lib/modules/%s/pkgbase", release);
    package = read_line(c, path);
    snprintf(path, sizeof(path), "/boot/initramfs-%s.img", package ? package : "linux");
    return get_status(c, path, ret);
}

/* Returns true if the boot loader has passed an initrd, or may have passed one that is part of an
 * image of the kernel (boot loader specification). */
static bool may_have_initrd(const Context *c)
{
    static const char *const paths[] = {
            "/etc/kernel/entry-token", "/boot/loader/entries", "/efi/loader",
            "/boot/efi/loader",        "/efi/EFI/Linux",       "/boot/efi/EFI/Linux",
            "/boot/EFI/Linux",
    };
    _cleanup_free_ char *line = read_line(c, "/proc/cmdline");
    struct stat st;

    for (size_t i = 0; i < ELEMENTSOF(paths); i++)
        if (get_status(c, paths[i], &st))
            return true;
    return line && strstr(line, "initrd=");
}

/* Returns the wall clock time at which the kernel started, in seconds; 0: unknown. */
static long long boot_seconds(const Context *c)
{
    _cleanup_free_ char *text = NULL;
    const char *line;

    if (rooted_read(c->system_fd, "/proc/stat", 1U << 20, &text, NULL) < 0)
        return 0;
    line = strstr(text, "\nbtime ");
    return line ? strtoll(line + strlen("\nbtime "), NULL, 10) : 0;
}

/* Returns true if the running initrd cannot contain headstart. */
static bool is_initrd_old(const Context *c)
{
    struct stat image, program;

    /* A package sets the time of the last modification (mtime) to the time of its build, so the
     * time of the last status change (ctime) counts. */
    return find_image(c, &image) && get_status(c, INIT_PROGRAM, &program) &&
           image.st_mtime < program.st_ctime;
}

/* Explains why headstart did not start before the system manager. */
static void explain_late(Checks *checks, const Context *c)
{
    struct stat image;

    if (!find_image(c, &image) && may_have_initrd(c))
        checks_add(checks, "early", CHECK_NOTE, COST, rebuild(c),
                   "recording and replay begin with systemd's units: this boot's initrd did not "
                   "start headstart, and its image was not found");
    else if (!find_image(c, &image))
        checks_add(checks, "early", CHECK_NOTE, COST,
                   "add init=" INIT_PROGRAM " to the kernel command line, see headstart-init(8)",
                   "recording and replay begin with systemd's units: no initrd was found");
    else if (is_initrd_old(c))
        checks_add(checks, "early", CHECK_NOTE, COST, rebuild(c),
                   "recording and replay begin with systemd's units: the initrd is older than "
                   "headstart");
    else if (image.st_mtime > boot_seconds(c))
        checks_add(checks, "early", CHECK_NOTE, COST, "reboot",
                   "recording and replay begin with systemd's units: the initrd was built after "
                   "this boot began");
    else
        checks_add(checks, "early", CHECK_NOTE, COST, rebuild(c),
                   "recording and replay begin with systemd's units: this boot's initrd did not "
                   "start headstart");
}

/* Says why nothing had to start early. Whether the initrd would have started headstart then shows
 * only in its age. */
static void explain_idle(Checks *checks, const Context *c, const char *why)
{
    bool old = is_initrd_old(c);

    checks_add(checks, "early", old ? CHECK_NOTE : CHECK_OK,
               old ? "nothing can start early once there is something to replay" : NULL,
               old ? rebuild(c) : NULL, "%s%s", why,
               old ? "; the initrd is older than headstart" : "");
}

/* Returns true if headstart-init has started something in this boot. It then writes
 * EARLY_DELAY_FILE. If the disk was so slow that it did not wait for its child process, only the
 * marker of the replay exists. A marker alone is no sufficient test: a replay removes it if a
 * filesystem of the pack is not mounted in the initrd, and the systemd of an initrd may end a
 * replay before it creates the marker. */
static bool has_started_early(const Context *c)
{
    struct stat st;

    return get_status(c, HEADSTART_RUN_DIR "/" EARLY_DELAY_FILE, &st) ||
           get_status(c, HEADSTART_RUN_DIR "/replay-boot.early", &st);
}

void checks_add_early(Checks *checks, const Context *c, int state_fd)
{
    struct stat st;

    if (get_status(c, HEADSTART_RUN_DIR "/record-boot.early", &st))
        checks_add(checks, "early", CHECK_OK, NULL, NULL,
                   "recording began before the system manager, and this boot was not replayed, "
                   "because it is recorded again");
    else if (has_started_early(c))
        checks_add(checks, "early", CHECK_OK, NULL, NULL,
                   "recording and replay begin before the system manager");
    else if (kernel_command_line_has(c->system_fd, "headstart=0") || checks_is_disabled(c))
        explain_idle(checks, c, "nothing starts early, because headstart is off");
    else if (state_fd >= 0 && fstatat(state_fd, STATE_IDLE_BOOT, &st, 0) == 0)
        explain_idle(checks, c,
                     "nothing starts early, because replay of the boot gains nothing here");
    else if (state_fd < 0 || fstatat(state_fd, state_pack_name(STAGE_BOOT), &st, 0) < 0)
        explain_idle(checks, c, "nothing starts early yet, because there is no boot pack");
    else
        explain_late(checks, c);
}
