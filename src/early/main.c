/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart-init: starts recording and replay before the system manager reads its first unit.
 *
 * As PID 1 (init= on the kernel command line) it mounts the filesystems that the kernel does not
 * mount, starts recording and replay, waits as long as the boot pack allows, and executes the real
 * init with the arguments that it has received itself. It stays single-threaded and reads nothing
 * but the real init, so a hanging disk delays the boot no more than without headstart.
 *
 * With --initrd it starts recording and replay for a root filesystem that an initrd has mounted,
 * waits, and exits. */

#include "base/log.h"
#include "base/options.h"
#include "boot/own-files.h"
#include "early/start.h"

#include "config-paths.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define EXIT_USAGE 2

/* Paths where the kernel looks for init, and the paths of systemd. */
static const char *const inits[] = {"/sbin/init", "/usr/lib/systemd/systemd",
                                    "/lib/systemd/systemd", "/bin/init"};

enum {
    OPTION_INITRD = 1,
    OPTION_ROOT,
    OPTION_RUN,
    OPTION_REPLAY,
    OPTION_HELP,
    OPTION_VERSION,
};

static const Option options[] = {
        {OPTION_HELP, 'h', "help", NULL, "Show this help"},
        {OPTION_VERSION, 0, "version", NULL, "Show the version"},
        {OPTION_INITRD, 0, "initrd", NULL, "Start recording and replay, and return"},
        {OPTION_ROOT, 0, "root", "DIR", "Where the root filesystem is mounted [/]"},
        {OPTION_RUN, 0, "run", "DIR", "Runtime directory [" HEADSTART_RUN_DIR "]"},
        {OPTION_REPLAY, 0, "replay", "FILE",
         "Replay program below the root filesystem\n[" HEADSTART_LIBEXEC_DIR "/headstart-replay]"},
        {0},
};

static void help(void)
{
    puts("headstart-init --initrd [OPTIONS…]\n\n"
         "Start recording and replay before the system manager runs. As PID 1, execute\n"
         "the real init afterwards.\n\n"
         "Options:");
    options_print(options);
    puts("\nSee the headstart-init(8) man page for details.");
}

/* Makes descriptors 0 to 2 valid. A kernel without a console opens none of them for PID 1, and the
 * child that redirects them would then close its own descriptors. The programs that this process
 * executes get them as they were. */
static void occupy_standard_fds(void)
{
    int fd;

    do
        fd = open("/", O_PATH | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* --- PID 1 ------------------------------------------------------------------------------------ */

/* Mounts the filesystem as systemd would, with its options, unless something is mounted there. */
static void mount_api(const char *type, const char *target, unsigned long flags, const char *data)
{
    struct stat root, st;

    if (stat("/", &root) < 0 || stat(target, &st) < 0 || st.st_dev != root.st_dev)
        return;
    if (mount(type, target, type, flags, data) < 0)
        log_error_errno(errno, "headstart-init: cannot mount %s: %m", target);
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat s, t;

    return stat(a, &s) >= 0 && stat(b, &t) >= 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

/* Returns only if there is no init to execute. */
static int execute_init(char **argv)
{
    for (size_t i = 0; i < ELEMENTSOF(inits); i++) {
        /* This program must not execute itself as init: that would never end. */
        if (is_same_file(inits[i], "/proc/self/exe"))
            continue;
        argv[0] = (char *)inits[i];
        execv(inits[i], argv);
    }
    log_error("headstart-init: found no init to execute");
    return EXIT_FAILURE;
}

static int run_as_init(char **argv)
{
    EarlyOptions o = {
            .root = "/",
            .run = HEADSTART_RUN_DIR,
            .replay = HEADSTART_LIBEXEC_DIR "/headstart-replay",
            .survives = true,
            .words = argv + 1,
    };
    const char *switched = getenv("headstart");

    /* This program has to be read from the disk in any case. Reading it ahead therefore adds no
     * dependency on the disk. */
    own_file_read_ahead(HEADSTART_LIBEXEC_DIR "/headstart-init");
    mount_api("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    mount_api("sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    mount_api("tmpfs", "/run", MS_NOSUID | MS_NODEV | MS_STRICTATIME, "mode=0755,size=20%");
    /* If the kernel does not know a word with `=` on its command line, such as headstart=0, it
     * passes the word to init in the environment. The runtime directory exists if the initrd has
     * started recording and replay. */
    if ((!switched || strcmp(switched, "0") != 0) && access(HEADSTART_RUN_DIR, F_OK) < 0)
        early_start(&o);
    return execute_init(argv);
}

/* --- initrd ----------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    EarlyOptions early = {
            .root = "/",
            .run = HEADSTART_RUN_DIR,
            .replay = HEADSTART_LIBEXEC_DIR "/headstart-replay",
    };
    Options o = {.own = options, .argc = argc, .argv = argv};
    bool initrd = false;
    const char *value;
    int k, n;

    /* systemd in an initrd starts this program as a service. That systemd keeps descriptors for
     * services, but it kills all processes of the initrd when it switches to the root
     * filesystem. */
    occupy_standard_fds();
    early.manager = getenv("NOTIFY_SOCKET");
    early.survives = !early.manager;
    if (getpid() == 1)
        return run_as_init(argv);
    while ((k = options_next(&o, &value)) > 0)
        switch (k) {
        case OPTION_HELP:
            help();
            return EXIT_SUCCESS;
        case OPTION_VERSION:
            puts("headstart-init " HEADSTART_VERSION);
            return EXIT_SUCCESS;
        case OPTION_INITRD:
            initrd = true;
            break;
        case OPTION_ROOT:
            early.root = value;
            break;
        case OPTION_RUN:
            early.run = value;
            break;
        case OPTION_REPLAY:
            early.replay = value;
            break;
        }
    if (k < 0)
        return options_refuse("headstart-init", "%s", o.message), EXIT_USAGE;
    (void)options_arguments(&o, &n);
    if (n > 0 || !initrd)
        return options_refuse("headstart-init", "%s",
                              n > 0 ? "too many arguments" : "--initrd is missing"),
               EXIT_USAGE;
    early_start(&early);
    return EXIT_SUCCESS;
}
