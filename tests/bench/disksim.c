/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* disksim: simulates the timing of a disk.
 *
 *     disksim [OPTION…] IMAGE MOUNTPOINT
 *
 * A FUSE server in the foreground that shows two files below MOUNTPOINT:
 *
 *     disk      IMAGE, whose reads take as long as on the disk of the given profile. A loop device
 *               on it (losetup --direct-io=on) is a real block device.
 *     control   carries out one command for each write, see below. A read returns the state and the
 *               counters so far, one `key=value` on each line.
 *
 * The commands are:
 *
 *     delays on, delays off    switch the delays
 *     mark NAME                writes a line to the log
 *     save NAME                keeps the present contents of the disk under the name
 *     reset NAME               restores the contents that were saved under the name
 *     reset                    restores the contents of IMAGE
 *     pause, resume            begin and end a time in which the disk hangs: reads with delays wait
 *     touch OFFSET LENGTH      marks the granules of these bytes as read (profile lazy)
 *     touch                    marks all granules as read; a reset unmarks them
 *     fault NAME [EVERY]       gives one of EVERY (default: 1) reads with delays the fault NAME:
 *                              `hang` (the read is answered when the fault ends), `eio` (the read
 *                              fails), `late` (2 s more), `short` (half of the data is returned)
 *                              or `none`
 *
 * --writes=FILE records writes and flushes, in order, for tests/faults/powercut.
 *
 * SIGUSR1 and SIGUSR2 switch the delays on and off as well. SIGINT and SIGTERM end disksim and
 * unmount the filesystem.
 *
 * Writes are done at once and cost nothing. They change private memory and not IMAGE, so that many
 * runs can begin with the same contents. IMAGE should lie on a tmpfs, because a real disk beneath
 * it would add delays and a cache. disksim caches nothing (direct_io).
 *
 * Time is virtual where possible: diskmodel computes when a request is finished, from its arrival
 * and from the end of the previous request. If this process is woken late, one answer is late, but
 * the delays of queued answers do not add up.
 *
 * The log (--log) has one line per read, of blank-separated fields:
 *
 *     usec R|r offset bytes wait_usec service_usec depth
 *
 * usec: when the read arrived, since the start; R for a delayed read, r for one with delays off;
 * wait_usec and service_usec: how long the read was queued and how long it was served; depth: how
 * many requests were queued when it was chosen, itself included. The log also contains `# mark
 * NAME` lines and a first line `# disksim profile=… stroke=…`. diskcost computes from the log what
 * the same reads cost in other orders.
 */

#include "device.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INO_DISK    2
#define INO_CONTROL 3
#define MAX_IO      (1024U * 1024U)

static Device device; /* signal handlers need it */

/* --- FUSE ------------------------------------------------------------------------------------- */

static struct stat attributes(const Device *d, fuse_ino_t ino)
{
    struct stat st = {.st_ino = ino, .st_nlink = 1, .st_mode = S_IFREG | 0600};

    if (ino == FUSE_ROOT_ID) {
        st.st_nlink = 2;
        st.st_mode = S_IFDIR | 0700;
    } else if (ino == INO_DISK) {
        st.st_size = (off_t)d->size;
        st.st_blksize = 4096;
        st.st_blocks = (blkcnt_t)(d->size / 512);
    }
    return st;
}

static void on_init(void *userdata, struct fuse_conn_info *conn)
{
    /* Everything that the kernel's queue lets through must reach the model's queue at once. */
    conn->max_background = 1024;
    conn->congestion_threshold = 1024;
    conn->max_read = MAX_IO; /* libfuse requires the same value in the mount options */
    conn->max_write = MAX_IO;
    conn->max_readahead = MAX_IO;
    if (conn->capable & FUSE_CAP_ASYNC_DIO)
        conn->want |= FUSE_CAP_ASYNC_DIO;
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE);
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param e = {.attr_timeout = 3600, .entry_timeout = 3600};

    if (parent == FUSE_ROOT_ID && strcmp(name, "disk") == 0)
        e.ino = INO_DISK;
    else if (parent == FUSE_ROOT_ID && strcmp(name, "control") == 0)
        e.ino = INO_CONTROL;
    else {
        fuse_reply_err(req, ENOENT);
        return;
    }
    e.attr = attributes(fuse_req_userdata(req), e.ino);
    fuse_reply_entry(req, &e);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st = attributes(fuse_req_userdata(req), ino);

    fuse_reply_attr(req, &st, 3600);
}

/* Accepts new attributes of the control file and ignores them, because opening it with O_TRUNC (a
 * shell's >control) sets its size. Refuses new attributes of other files. */
static void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                       struct fuse_file_info *fi)
{
    if (ino != INO_CONTROL)
        fuse_reply_err(req, EPERM);
    else
        on_getattr(req, ino, fi);
}

static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    fi->direct_io = 1;
    fuse_reply_open(req, fi);
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    Device *d = fuse_req_userdata(req);
    char text[512];

    if (ino == INO_DISK) {
        device_read(d, req, size, (uint64_t)off);
        return;
    }

    int n = device_describe(d, text, sizeof(text));
    size_t length = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    if ((uint64_t)off >= length)
        fuse_reply_buf(req, NULL, 0);
    else
        fuse_reply_buf(req, text + off, size < length - (size_t)off ? size : length - (size_t)off);
}

static void on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
    Device *d = fuse_req_userdata(req);
    char command[128] = "";
    int r;

    if (ino == INO_DISK)
        r = device_write(d, data, size, (uint64_t)off);
    else if (size >= sizeof(command))
        r = -E2BIG;
    else {
        memcpy(command, data, size);
        command[strcspn(command, "\n")] = '\0';
        r = device_control(d, command);
    }
    if (r < 0)
        fuse_reply_err(req, -r);
    else
        fuse_reply_write(req, size);
}

static void on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    if (ino == INO_DISK)
        device_flush(fuse_req_userdata(req));
    fuse_reply_err(req, 0); /* the writes are in memory only */
}

static void on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi)
{
    static const struct {
        const char *name;
        fuse_ino_t ino;
    } entries[] = {{".", FUSE_ROOT_ID},
                   {"..", FUSE_ROOT_ID},
                   {"disk", INO_DISK},
                   {"control", INO_CONTROL}};
    char buffer[512];
    size_t used = 0;

    if (size > sizeof(buffer))
        size = sizeof(buffer);
    for (size_t i = (size_t)off; i < sizeof(entries) / sizeof(entries[0]); i++) {
        struct stat st = attributes(fuse_req_userdata(req), entries[i].ino);
        size_t n = fuse_add_direntry(req, buffer + used, size - used, entries[i].name, &st,
                                     (off_t)i + 1);
        if (n > size - used)
            break;
        used += n;
    }
    fuse_reply_buf(req, buffer, used);
}

static const struct fuse_lowlevel_ops operations = {
        .init = on_init,
        .lookup = on_lookup,
        .getattr = on_getattr,
        .setattr = on_setattr,
        .open = on_open,
        .read = on_read,
        .write = on_write,
        .fsync = on_fsync,
        .readdir = on_readdir,
};

/* --- start and end ---------------------------------------------------------------------------- */

static void on_signal(int number)
{
    atomic_store(&device.delays, number == SIGUSR1);
}

static void help(void)
{
    printf("disksim [OPTION…] IMAGE MOUNTPOINT\n\n"
           "Shows IMAGE as MOUNTPOINT/disk, with reads as slow as on the disk of the profile.\n"
           "SIGUSR1 and SIGUSR2 switch the delays on and off; MOUNTPOINT/control does more.\n\n"
           "  --profile=NAME   hdd7200 (default), hdd5400, usb2, sd, emmc, ssd, netdisk,\n"
           "                   lazy\n"
           "  --log=FILE       write a line for every read to FILE\n"
           "  --writes=FILE    record writes and flushes in FILE\n"
           "  --delays=on|off  delays at the start (default: on)\n"
           "  --ready-fd=N     write a line to this descriptor when the disk is there\n"
           "  --list           print the profiles and exit\n"
           "  --help           print this and exit\n");
}

static void list_profiles(void)
{
    printf("%-8s %10s %12s %14s %9s %9s %6s %5s\n", "profile", "rate MB/s", "seek ms",
           "half turn ms", "fixed us", "fetch ms", "depth", "tags");
    for (const DiskProfile *p = disk_profiles; p->name; p++)
        printf("%-8s %10.0f %5.1f..%5.1f %14.2f %9.0f %9.0f %6u %5u\n", p->name,
               (double)p->rate / 1e6, (double)p->seek_min_nsec / 1e6,
               (double)p->seek_max_nsec / 1e6, (double)p->half_rotation_nsec / 1e6,
               (double)p->fixed_nsec / 1e3, (double)p->fetch_nsec / 1e6, p->depth, p->tags);
}

int main(int argc, char *argv[])
{
    enum { OPT_PROFILE = 256, OPT_LOG, OPT_WRITES, OPT_DELAYS, OPT_READY, OPT_LIST, OPT_HELP };
    static const struct option options[] = {{"profile", required_argument, NULL, OPT_PROFILE},
                                            {"log", required_argument, NULL, OPT_LOG},
                                            {"writes", required_argument, NULL, OPT_WRITES},
                                            {"delays", required_argument, NULL, OPT_DELAYS},
                                            {"ready-fd", required_argument, NULL, OPT_READY},
                                            {"list", no_argument, NULL, OPT_LIST},
                                            {"help", no_argument, NULL, OPT_HELP},
                                            {}};
    const DiskProfile *profile = disk_profile_by_name("hdd7200");
    const char *log = NULL, *writes = NULL;
    bool delays = true;
    int ready_fd = -1, c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
        switch (c) {
        case OPT_PROFILE:
            profile = disk_profile_by_name(optarg);
            if (!profile)
                errx(EXIT_FAILURE, "no profile is called %s; --list names them", optarg);
            break;
        case OPT_LOG:
            log = optarg;
            break;
        case OPT_WRITES:
            writes = optarg;
            break;
        case OPT_DELAYS:
            if (strcmp(optarg, "on") != 0 && strcmp(optarg, "off") != 0)
                errx(EXIT_FAILURE, "--delays= must be on or off");
            delays = strcmp(optarg, "on") == 0;
            break;
        case OPT_READY: {
            char *end;
            long n = strtol(optarg, &end, 10);
            if (end == optarg || *end || n < 0 || n > 65535)
                errx(EXIT_FAILURE, "--ready-fd= must be a descriptor");
            ready_fd = (int)n;
            break;
        }
        case OPT_LIST:
            list_profiles();
            return EXIT_SUCCESS;
        case OPT_HELP:
            help();
            return EXIT_SUCCESS;
        default:
            return EXIT_FAILURE;
        }
    if (argc - optind != 2)
        errx(EXIT_FAILURE, "an image and a mount point are required; see --help");

    Device *d = &device;
    int r = device_open(d, profile, argv[optind], log);
    if (r < 0)
        errx(EXIT_FAILURE, "%s: %s", argv[optind], r == -EINVAL ? "no image" : strerror(-r));
    r = writes ? device_record_writes(d, writes) : 0;
    if (r < 0)
        errx(EXIT_FAILURE, "%s: %s", writes, strerror(-r));
    atomic_store(&d->delays, delays);

    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &sa, NULL);
    sigaction(SIGUSR2, &sa, NULL);

    char name[] = "disksim", dash_o[] = "-o",
         mount_options[] = "fsname=disksim,subtype=disksim,max_read=1048576";
    char *arguments[] = {name, dash_o, mount_options, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, arguments);
    struct fuse_session *session = fuse_session_new(&args, &operations, sizeof(operations), d);
    if (!session || fuse_set_signal_handlers(session) < 0)
        errx(EXIT_FAILURE, "cannot begin a FUSE session");
    if (fuse_session_mount(session, argv[optind + 1]) < 0)
        errx(EXIT_FAILURE, "cannot mount on %s", argv[optind + 1]);

    r = device_start(d);
    if (r == 0) {
        if (ready_fd >= 0 && (write(ready_fd, "ready\n", 6) < 0 || close(ready_fd) < 0))
            warn("--ready-fd");
        /* A positive result is the number of the signal that ended the session: the normal end. */
        r = fuse_session_loop(session);
        device_stop(d);
    }
    fuse_session_unmount(session);
    fuse_remove_signal_handlers(session);
    fuse_session_destroy(session);
    fuse_opt_free_args(&args);
    if (device_close(d) < 0)
        errx(EXIT_FAILURE, "%s: cannot be written", log);
    return r >= 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
