/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "early/read-ahead.h"

#include "base/macros.h"
#include "base/parse.h"
#include "base/rooted.h"
#include "boot/read-ahead.h"
#include "early/disk.h"

#include "config-paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Requests that are longer than this are not used. */
#define REQUEST_SIZE_MAX 1024U

void early_read_ahead_done(EarlyReadAhead *a)
{
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -EBADF;
}

/* Reads the request as rerecord_write() (state/rerecord.h) writes it. headstartd parses it as JSON
 * and sets a request aside that is malformed. `pack_dir` is that of early_read_ahead_lower().
 * Returns the read-ahead in KiB, or 0 if no exact recording is requested. */
static unsigned requested_kb(int root_fd, const char *pack_dir)
{
    static const char key[] = "\"read_ahead_kb\":";
    _cleanup_free_ char *text = NULL;
    char path[PATH_MAX];
    const char *value;
    uint64_t kb;

    if ((size_t)snprintf(path, sizeof(path), "%s/rerecord-boot",
                         pack_dir ? pack_dir : HEADSTART_STATE_DIR) >= sizeof(path) ||
        rooted_read(root_fd, path, REQUEST_SIZE_MAX, &text, NULL) < 0 ||
        !strstr(text, "\"exact\":true"))
        return 0;
    value = strstr(text, key);
    if (!value)
        return READ_AHEAD_EXACT_KB;
    value += sizeof(key) - 1;
    text[(size_t)(value - text) + strspn(value, "0123456789")] = 0;
    return parse_u64(value, &kb) < 0 || kb == 0 || kb > UINT_MAX ? 0 : (unsigned)kb;
}

static int write_kb(int fd, unsigned kb)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%u\n", kb);

    return pwrite(fd, text, (size_t)n, 0) < 0 ? -errno : 0;
}

static int read_kb(int fd, unsigned *ret)
{
    char text[24];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    uint64_t kb;

    if (n <= 0)
        return n < 0 ? -errno : -ENODATA;
    text[n] = 0;
    text[strcspn(text, "\n")] = 0;
    if (parse_u64(text, &kb) < 0 || kb > UINT_MAX)
        return -EBADMSG;
    *ret = (unsigned)kb;
    return 0;
}

/* Writes the record before the value changes, so that headstartd restores the value after a crash
 * of this process, too. */
static int write_record(const char *run, const char *path, unsigned old_kb, unsigned new_kb)
{
    _cleanup_close_ int dir_fd = open(run, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -EBADF;
    char text[PATH_MAX + 32];
    int n = snprintf(text, sizeof(text), "%s %u %u\n", path, old_kb, new_kb);

    if (dir_fd < 0)
        return -errno;
    fd = openat(dir_fd, READ_AHEAD_RECORD, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                0600);
    if (fd < 0)
        return -errno;
    if (write(fd, text, (size_t)n) != n) {
        (void)unlinkat(dir_fd, READ_AHEAD_RECORD, 0);
        return -EIO;
    }
    return 0;
}

int early_read_ahead_lower(int root_fd, const char *pack_dir, const char *run, EarlyReadAhead *ret)
{
    _cleanup_close_ int fd = -EBADF;
    unsigned new_kb = requested_kb(root_fd, pack_dir), old_kb = 0;
    char path[PATH_MAX];
    int r;

    if (new_kb == 0)
        return 0;
    r = early_disk_attribute(root_fd, "bdi", "read_ahead_kb", path);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    r = read_kb(fd, &old_kb);
    if (r < 0 || old_kb <= new_kb)
        return r;
    r = write_record(run, path, old_kb, new_kb);
    if (r >= 0)
        r = write_kb(fd, new_kb);
    if (r < 0)
        return r == -EEXIST ? 0 : r;
    *ret = (EarlyReadAhead){.fd = TAKE_FD(fd), .old_kb = old_kb, .new_kb = new_kb};
    return 1;
}

void early_read_ahead_restore(const EarlyReadAhead *a, int run_fd)
{
    unsigned now_kb = 0;

    if (a->fd < 0)
        return;
    if (read_kb(a->fd, &now_kb) >= 0 && now_kb == a->new_kb)
        (void)write_kb(a->fd, a->old_kb);
    (void)unlinkat(run_fd, READ_AHEAD_RECORD, 0);
}
