/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/state.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/compressed-file.h"
#include "base/json-util.h"
#include "base/open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a directory. Returns -EACCES if the path goes through a symlink, or ends at a directory,
 * that another user may have prepared in a sticky directory. */
static int open_trusted(const char *path, int *ret)
{
    _cleanup_free_ char *plain = strdup(path), *name = NULL;
    _cleanup_close_ int dir = -EBADF, fd = -EBADF;
    struct stat dir_st, st;
    int r;

    if (!plain)
        return -ENOMEM;
    for (size_t n = strlen(plain); n > 1 && plain[n - 1] == '/'; n--)
        plain[n - 1] = 0;
    r = open_output_place(plain, &dir, &name);
    if (r < 0 && r != -EISDIR)
        return r;
    /* After -EISDIR the path ends in "/", "." or "..", and what is above was checked. */
    fd = r < 0 ? open(plain, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
               : openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (r >= 0) {
        if (fstat(dir, &dir_st) < 0 || fstat(fd, &st) < 0)
            return -errno;
        if (!output_is_trusted(&dir_st, &st))
            return -EACCES;
    }
    *ret = TAKE_FD(fd);
    return 0;
}

int state_directory_open(const char *path, bool create, int *ret_fd)
{
    int r = open_trusted(path, ret_fd);

    if (r != -ENOENT || !create)
        return r;
    r = make_directories(path, 0700);
    return r < 0 ? r : open_trusted(path, ret_fd);
}

int state_directory_lock(int state_fd, usec_t timeout)
{
    usec_t end = clock_now(CLOCK_MONOTONIC) + timeout;

    /* flock(2) has no time limit, so the call is repeated. */
    while (flock(state_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (clock_now(CLOCK_MONOTONIC) > end)
            return -EBUSY;
        usleep(50 * USEC_PER_MSEC);
    }
    return 0;
}

bool state_is_bad_content(int error)
{
    return error == -EBADMSG || error == -EMEDIUMTYPE || error == -EPROTONOSUPPORT ||
           error == -E2BIG;
}

/* The signature of model_from_json(). */
typedef int (*model_reader_t)(const char *text, size_t size, Model **ret, char **ret_error);

static int load_model_once(int state_fd, model_reader_t read, Model **ret, char **ret_error)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ char *error = NULL;
    size_t size;
    int r;

    r = compressed_file_load(state_fd, STATE_MODEL, MODEL_JSON_SIZE_MAX, &text, &size, &error);
    if (error && ret_error)
        *ret_error = TAKE_PTR(error);
    return r < 0 ? r : read(text, size, ret, ret_error);
}

static int load_model(int state_fd, model_reader_t read, Model **ret, char **ret_error)
{
    int r = load_model_once(state_fd, read, ret, ret_error);

    if (!state_is_bad_content(r) && (r != -ENOMEM || memory_is_short()))
        return r;
    /* If an allocation fails, json-c 0.16 may lose a member and report no error. Callers set aside
     * a bad model, so it counts as bad only if reading fails twice and memory is not short. */
    if (ret_error) {
        free(*ret_error);
        *ret_error = NULL;
    }
    r = load_model_once(state_fd, read, ret, ret_error);
    return state_is_bad_content(r) && memory_is_short() ? -ENOMEM : r;
}

int state_load_model(int state_fd, Model **ret, char **ret_error)
{
    return load_model(state_fd, model_from_json, ret, ret_error);
}

int state_load_model_stages(int state_fd, Model **ret, char **ret_error)
{
    return load_model(state_fd, model_stages_from_json, ret, ret_error);
}

bool state_is_rebuilding(int state_fd)
{
    return faccessat(state_fd, STATE_REBUILD, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int state_begin_rebuild(int state_fd)
{
    return atomic_file_write(state_fd, STATE_REBUILD, "", 0, 0600);
}

int state_end_rebuild(int state_fd)
{
    return unlinkat(state_fd, STATE_REBUILD, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int state_peek_model(int state_fd, uint64_t *ret_n_learned)
{
    static const char key[] = "\n\"learned\":[";
    char head[64 * 1024];
    const char *at;
    uint64_t count = 0;
    int depth = 1;
    int r = compressed_file_read_head(state_fd, STATE_MODEL, head, sizeof(head), NULL);

    if (r == -EBADMSG)
        return -ENODATA;
    if (r < 0)
        return r;
    at = strstr(head, key);
    if (!at)
        return -ENODATA;
    for (at += strlen(key); *at && depth > 0; at++) {
        count += *at == '[' && depth == 1;
        depth += *at == '[' ? 1 : *at == ']' ? -1 : 0;
    }
    if (depth > 0)
        return -ENODATA;
    *ret_n_learned = count;
    return 0;
}

int state_write_model(int state_fd, const Model *m)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = model_to_json(m, &text, &size);

    return r < 0 ? r : compressed_file_write(state_fd, STATE_MODEL, text, size, 0600);
}

const char *state_pack_name(Stage stage)
{
    switch (stage) {
    case STAGE_BOOT:
        return "boot.pack";
    case STAGE_LOGIN:
        return "login.pack";
    default:
        return NULL;
    }
}
