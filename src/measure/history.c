/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/history.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/macros.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A writer waits for other writers for at most this time in all. It polls, because a lock of an
 * open file description has no timeout. */
#define LOCK_WAIT (5 * USEC_PER_SEC)
#define LOCK_STEP (1 * USEC_PER_MSEC)

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

/* Nothing is learned from such sessions. */
#define NOT_LEARNED                                                                \
    (SESSION_LIGHT | SESSION_OFFLINE_UPDATE | SESSION_FSCK | SESSION_SOFT_REBOOT | \
     SESSION_SECOND_LOGIN | SESSION_INCOMPLETE)

usec_t history_observed_until(const History *h, Stage stage, uint32_t uid, usec_t now)
{
    usec_t newest = 0;

    for (size_t i = 0; i < h->n; i++) {
        const SessionRecord *s = &h->sessions[i];

        if (s->stage == stage && (uid == UID_INVALID || s->uid == uid) &&
            !(s->flags & NOT_LEARNED) && !session_was_replayed(s) &&
            s->usage.source != USAGE_PER_FILE && /* another pack was replayed */
            s->start_realtime_usec <= now)
            newest = MAX(newest, s->start_realtime_usec);
    }
    return h->n > 0 ? newest : USEC_INFINITY;
}

HistoryBoots history_count_boots(const History *h, usec_t now)
{
    HistoryBoots b = {0};

    for (size_t i = 0; i < h->n; i++) {
        const SessionRecord *s = &h->sessions[i];
        usec_t start = s->start_realtime_usec;

        if (s->stage != STAGE_BOOT || s->flags & SESSION_LIGHT)
            continue;
        if (start > now && start - now > HISTORY_AHEAD_USEC)
            start = 0;
        b.recorded = MAX(b.recorded, start);
        b.n_replayed += session_was_replayed(s);
        b.n_replayed_since += session_was_replayed(s);
        if (s->flags & SESSION_EXACT) {
            b.exact = MAX(b.exact, start);
            b.n_replayed_since = 0;
        }
    }
    return b;
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

/* Waits for the lock of a writer until `end` (CLOCK_MONOTONIC). The kernel releases the lock when
 * its holder dies. Returns 0, -EBUSY after `end`, or another negative errno. */
static int lock(int fd, usec_t end)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    while (fcntl(fd, F_OFD_SETLK, &l) < 0) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return -errno;
        if (clock_now(CLOCK_MONOTONIC) > end)
            return -EBUSY;
        usleep(LOCK_STEP);
    }
    return 0;
}

/* Opens the newer file, which is created if it does not exist, and locks it. The lock covers both
 * files. Returns a descriptor, -EBUSY after LOCK_WAIT, or another negative errno. */
static int open_locked(int state_fd, const LineFile *f)
{
    const usec_t end = clock_now(CLOCK_MONOTONIC) + LOCK_WAIT;

    do {
        _cleanup_close_ int fd = openat(
                state_fd, f->name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        struct stat st, now;

        if (fd < 0 || fstat(fd, &st) < 0)
            return -errno;
        if (!S_ISREG(st.st_mode))
            return -EBADMSG;
        CHECK(lock(fd, end));
        /* Before the lock was taken, another writer may have renamed or replaced the file. Only the
         * time limits the attempts, because a busy writer replaces the file hundreds of times in a
         * second. */
        if (fstatat(state_fd, f->name, &now, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == now.st_dev &&
            st.st_ino == now.st_ino)
            return TAKE_FD(fd);
    } while (clock_now(CLOCK_MONOTONIC) <= end);
    return -EBUSY;
}

/* Cuts off a last line without an end. *ret_end becomes the end of the last complete line. */
static int cut_torn(int fd, off_t *ret_end, bool *ret_torn)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    CHECK(find_end(fd, st.st_size, ret_end));
    *ret_torn = *ret_end < st.st_size;
    return *ret_torn && ftruncate(fd, *ret_end) < 0 ? -errno : 0;
}

/* Appends whole lines. */
static int append_lines(int state_fd, const LineFile *f, const char *text, size_t n, bool *ret_torn)
{
    bool torn = false, full = false;

    do {
        _cleanup_close_ int fd = open_locked(state_fd, f);
        ssize_t written;
        bool cut = false;
        off_t end = 0;
        int r;

        if (fd < 0)
            return fd;
        CHECK(cut_torn(fd, &end, &cut));
        torn = torn || cut;
        full = end >= f->bytes_max;
        if (full) {
            if (renameat(state_fd, f->name, state_fd, f->old) < 0)
                return -errno;
            continue;
        }
        written = pwrite(fd, text, n, end);
        if (written != (ssize_t)n) {
            r = written < 0 ? -errno : -ENOSPC;
            /* If this fails as well, the next writer and every reader drop the torn line. */
            return ftruncate(fd, end) < 0 ? -errno : r;
        }
        if (fsync(fd) < 0)
            return -errno;
    } while (full);
    *ret_torn = torn;
    return 0;
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

/* --- deleting --------------------------------------------------------------------------------- */

static int remove_file(int state_fd, const char *name)
{
    return unlinkat(state_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Decides about a line without its newline. Returns 1 (delete), 0 (keep), or a negative errno. */
typedef int (*line_test_t)(const char *line, size_t size, const void *test);

/* Deletes lines of one file. The other lines keep their bytes. */
static int delete_in_file(int state_fd, const char *name, line_test_t is_deleted, const void *test)
{
    _cleanup_free_ char *text = NULL;
    size_t size, kept = 0;
    char *end;
    int r = read_file(state_fd, name, &text, &size);

    /* A last line without an end is not kept: its writer was killed. */
    for (char *at = text; r >= 0 && at && (end = memchr(at, '\n', (size_t)(text + size - at)));
         at = end + 1) {
        size_t n = (size_t)(end + 1 - at);

        r = is_deleted(at, n - 1, test);
        /* If an allocation fails, json-c may lose a member, so a line is deleted only if two
         * readings select it. */
        if (r > 0)
            r = is_deleted(at, n - 1, test);
        if (r == 0) {
            memmove(text + kept, at, n);
            kept += n;
        }
    }
    if (r < 0)
        return r;
    if (kept == 0)
        return remove_file(state_fd, name);
    return kept == size ? 0 : atomic_file_write(state_fd, name, text, kept, 0600);
}

/* Deletes lines of both files. No line moves from one file to the other, so a kill at any moment
 * loses no line that is to be kept. */
static int delete_lines(int state_fd, const LineFile *f, line_test_t is_deleted, const void *test)
{
    _cleanup_close_ int fd = open_locked(state_fd, f);

    if (fd < 0)
        return fd;
    CHECK(delete_in_file(state_fd, f->old, is_deleted, test));
    return delete_in_file(state_fd, f->name, is_deleted, test);
}

static int is_deleted_session(const char *line, size_t size, const void *test)
{
    const HistoryTest *t = test;
    SessionRecord s;
    int r = session_record_from_line(line, size, &s);

    return r == -ENOMEM ? r : r < 0 || t->is_deleted(&s, t->argument);
}

int history_delete(int state_fd, const HistoryTest *test)
{
    return delete_lines(state_fd, &session_file, is_deleted_session, test);
}

static int is_deleted_launch(const char *line, size_t size, const void *test)
{
    const LaunchTest *t = test;
    LaunchRecord l;
    int r = launch_record_from_line(line, size, &l);

    return r == -ENOMEM ? r : r < 0 || t->is_deleted(&l, t->argument);
}

int launches_delete(int state_fd, const LaunchTest *test)
{
    return delete_lines(state_fd, &launch_file, is_deleted_launch, test);
}
