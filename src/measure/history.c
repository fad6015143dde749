/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/history.h"

#include "base/atomic-file.h"
#include "base/macros.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* The largest size of a history file. The last line may reach beyond HISTORY_BYTES_MAX. */
#define FILE_SIZE_MAX (HISTORY_BYTES_MAX + SESSION_RECORD_SIZE_MAX)

/* A file of lines that is renamed to `old` when it has grown to `bytes_max`. */
typedef struct LineFile {
    const char *name, *old;
    off_t bytes_max;
} LineFile;

static const LineFile session_file = {HISTORY_FILE, HISTORY_OLD_FILE, HISTORY_BYTES_MAX};
static const LineFile launch_file = {LAUNCHES_FILE, LAUNCHES_OLD_FILE, LAUNCHES_BYTES_MAX};

void history_done(History *h)
{
    free(h->sessions);
    *h = (History){0};
}

/* Returns the start of the newest `max` lines. */
static const char *tail(const char *text, size_t size, size_t max)
{
    const char *at = text + size;

    if (max == 0)
        return text;
    while (at > text) {
        const char *newline = memrchr(text, '\n', (size_t)(at - text));

        if (!newline)
            return text;
        /* The newline at the end of the last line does not begin a further line. */
        if (newline + 1 < text + size && max-- == 1)
            return newline + 1;
        at = newline;
    }
    return text;
}

static int parse_lines(const char *at, const char *end, History *h)
{
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        int r;

        if (!newline) {
            h->torn = true;
            return 0;
        }
        r = grow_array(&h->sessions, &h->allocated, h->n + 1, sizeof(SessionRecord));
        if (r >= 0)
            r = session_record_from_line(at, (size_t)(newline - at), &h->sessions[h->n]);
        if (r == -ENOMEM)
            return r;
        h->n += r >= 0;
        h->n_bad += r < 0;
        at = newline + 1;
    }
    return 0;
}

static size_t count_lines(const char *text, size_t size)
{
    size_t n = 0;

    for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + size - at))); at++)
        n++;
    return n;
}

static int read_file(int state_fd, const char *name, char **ret, size_t *ret_size)
{
    int r = file_read_whole(state_fd, name, FILE_SIZE_MAX, ret, ret_size);

    if (r != -ENOENT)
        return r;
    *ret = NULL;
    *ret_size = 0;
    return 0;
}

int history_check_file(int state_fd, const char *name)
{
    _cleanup_free_ char *text = NULL;
    size_t size;

    return read_file(state_fd, name, &text, &size);
}

int history_read(int state_fd, size_t max, History *ret)
{
    _cleanup_free_ char *text = NULL, *old = NULL;
    _cleanup_history_ History h = {0};
    size_t size, old_size = 0, n;
    int r = read_file(state_fd, HISTORY_FILE, &text, &size);

    n = r < 0 ? 0 : count_lines(text ? text : "", size);
    if (r >= 0 && (max == 0 || n < max))
        r = read_file(state_fd, HISTORY_OLD_FILE, &old, &old_size);
    if (r >= 0 && old)
        r = parse_lines(tail(old, old_size, max == 0 ? 0 : max - n), old + old_size, &h);
    h.torn = false;
    if (r >= 0 && text)
        r = parse_lines(tail(text, size, max), text + size, &h);
    if (r < 0)
        return r;
    *ret = h;
    h = (History){0};
    return 0;
}

/* Finds the end of the last complete line. */
static int find_end(int fd, off_t size, off_t *ret)
{
    char buf[SESSION_RECORD_SIZE_MAX];
    off_t from = size - MIN(size, (off_t)sizeof(buf));
    ssize_t n = pread(fd, buf, (size_t)(size - from), from);
    const char *newline;

    if (n < 0)
        return -errno;
    newline = memrchr(buf, '\n', (size_t)n);
    *ret = newline ? from + (newline - buf) + 1 : from;
    return 0;
}

/* Renames a full file and opens a new one. */
static int rotate(int state_fd, const LineFile *f, int *fd)
{
    int new;

    if (renameat(state_fd, f->name, state_fd, f->old) < 0)
        return -errno;
    new = openat(state_fd, f->name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (new < 0)
        return -errno;
    close(*fd);
    *fd = new;
    return 0;
}

static int append_open(int state_fd, const LineFile *f, int *fd, const char *text, size_t n,
                       bool *ret_torn)
{
    struct stat st;
    ssize_t written;
    off_t end = 0;
    int r;

    if (fstat(*fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EBADMSG;
    r = find_end(*fd, st.st_size, &end);
    if (r < 0)
        return r;
    *ret_torn = end < st.st_size;
    if (*ret_torn && ftruncate(*fd, end) < 0)
        return -errno;
    if (end >= f->bytes_max) {
        r = rotate(state_fd, f, fd);
        if (r < 0)
            return r;
        end = 0;
    }
    written = pwrite(*fd, text, n, end);
    if (written != (ssize_t)n) {
        r = written < 0 ? -errno : -ENOSPC;
        /* If this fails as well, the next writer and every reader drop the torn line. */
        return ftruncate(*fd, end) < 0 ? -errno : r;
    }
    return fsync(*fd) < 0 ? -errno : 0;
}

/* Appends whole lines. */
static int append_lines(int state_fd, const LineFile *f, const char *text, size_t n, bool *ret_torn)
{
    _cleanup_close_ int fd =
            openat(state_fd, f->name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

    return fd < 0 ? -errno : append_open(state_fd, f, &fd, text, n, ret_torn);
}

int history_append(int state_fd, const SessionRecord *s, bool *ret_torn)
{
    _cleanup_free_ char *line = NULL;
    size_t n;
    int r = session_record_to_line(s, &line, &n);

    if (r < 0)
        return r;
    return n > SESSION_RECORD_SIZE_MAX ? -E2BIG
                                       : append_lines(state_fd, &session_file, line, n, ret_torn);
}

/* --- starts of applications ------------------------------------------------------------------- */

/* Formats the starts as lines. The caller frees *ret, which is NULL if there are no starts. */
static int launches_to_text(const LaunchRecords *l, char **ret, size_t *ret_size)
{
    _cleanup_free_ char *text = NULL;
    size_t size = 0, allocated = 0;

    for (size_t i = 0; i < l->n; i++) {
        _cleanup_free_ char *line = NULL;
        size_t n;

        CHECK(launch_record_to_line(&l->items[i], &line, &n));
        CHECK(grow_array(&text, &allocated, size + n, 1));
        memcpy(text + size, line, n);
        size += n;
    }
    *ret = TAKE_PTR(text);
    *ret_size = size;
    return 0;
}

int launches_append(int state_fd, const LaunchRecords *l)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    bool torn;

    CHECK(launches_to_text(l, &text, &size));
    return size == 0 ? 0 : append_lines(state_fd, &launch_file, text, size, &torn);
}

static int remove_file(int state_fd, const char *name)
{
    return unlinkat(state_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int launches_replace(int state_fd, const LaunchRecords *l)
{
    _cleanup_free_ char *text = NULL;
    size_t size;

    CHECK(launches_to_text(l, &text, &size));
    CHECK(size == 0 ? remove_file(state_fd, LAUNCHES_FILE)
                    : atomic_file_write(state_fd, LAUNCHES_FILE, text, size, 0600));
    return remove_file(state_fd, LAUNCHES_OLD_FILE);
}

static int add_launches(int state_fd, const char *name, LaunchRecords *l)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = read_file(state_fd, name, &text, &size);

    for (const char *at = text, *end; r >= 0 && text && at < text + size; at = end + 1) {
        end = memchr(at, '\n', (size_t)(text + size - at));
        if (!end)
            break;
        CHECK(grow_array(&l->items, &l->allocated, l->n + 1, sizeof(*l->items)));
        r = launch_record_from_line(at, (size_t)(end - at), &l->items[l->n]);
        l->n += r >= 0;
        l->n_bad += r < 0;
        r = r == -ENOMEM ? r : 0;
    }
    return r;
}

int launches_read(int state_fd, LaunchRecords *ret)
{
    _cleanup_launch_records_ LaunchRecords l = {0};

    CHECK(add_launches(state_fd, LAUNCHES_OLD_FILE, &l));
    CHECK(add_launches(state_fd, LAUNCHES_FILE, &l));
    *ret = l;
    l = (LaunchRecords){0};
    return 0;
}

/* --- replacing -------------------------------------------------------------------------------- */

/* Writes n sessions to a file, or removes it if there are none. */
static int write_file(int state_fd, const char *name, const SessionRecord *sessions, size_t n)
{
    _cleanup_free_ char *text = NULL;
    size_t size = 0, allocated = 0;
    int r = 0;

    if (n == 0)
        return remove_file(state_fd, name);
    for (size_t i = 0; r >= 0 && i < n; i++) {
        _cleanup_free_ char *line = NULL;
        size_t length;

        r = session_record_to_line(&sessions[i], &line, &length);
        if (r >= 0)
            r = grow_array(&text, &allocated, size + length, 1);
        if (r < 0)
            break;
        memcpy(text + size, line, length);
        size += length;
    }
    return r < 0 ? r : atomic_file_write(state_fd, name, text, size, 0600);
}

int history_replace(int state_fd, const SessionRecord *sessions, size_t n)
{
    /* The sessions are divided among both files, because together they may exceed the size of one
     * file. */
    int r = write_file(state_fd, HISTORY_OLD_FILE, sessions, n / 2);

    return r < 0 ? r : write_file(state_fd, HISTORY_FILE, sessions + n / 2, n - n / 2);
}
