/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "trace/trace-store.h"

#include "base/atomic-file.h"
#include "trace/trace-json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int trace_store(const char *state_dir, const Trace *t, char **ret_path)
{
    time_t seconds = (time_t)(t->start_realtime / USEC_PER_SEC);
    _cleanup_free_ char *dir = NULL, *json = NULL, *path = NULL;
    char stamp[32];
    struct tm tm;
    size_t size;
    int r;

    if (asprintf(&dir, "%s/traces", state_dir) < 0)
        return -ENOMEM;
    r = make_directories(state_dir, 0700);
    if (r >= 0)
        r = make_directories(dir, 0700);
    if (r >= 0)
        r = trace_to_json(t, &json, &size);
    if (r < 0)
        return r;
    if (!gmtime_r(&seconds, &tm) || strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &tm) == 0)
        return -ERANGE;
    for (int i = 1; i < 1000; i++) {
        char number[16] = "";

        free(path);
        if (i > 1)
            snprintf(number, sizeof(number), "-%d", i);
        if (asprintf(&path, "%s/%s-%s%s.json", dir, stamp, stage_to_string(t->stage), number) < 0) {
            path = NULL;
            return -ENOMEM;
        }
        if (access(path, F_OK) < 0 && errno == ENOENT)
            break;
    }
    r = atomic_file_write(AT_FDCWD, path, json, size, 0600);
    if (r < 0)
        return r;
    *ret_path = TAKE_PTR(path);
    return 0;
}

int trace_load(const char *path, Trace **ret, char **ret_error)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r;

    *ret_error = NULL;
    r = file_read_whole(AT_FDCWD, path, TRACE_JSON_SIZE_MAX, &text, &size);
    return r < 0 ? r : trace_from_json(text, size, ret, ret_error);
}

int trace_peek(int dir_fd, const char *name, TraceIdentity *ret)
{
    _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    TraceIdentity id = {.stage = _STAGE_INVALID};
    char head[2048], stage[16];
    bool started = false, booted = false;
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = pread(fd, head, sizeof(head) - 1, 0);
    if (n < 0)
        return -errno;
    head[n] = 0;
    for (char *save = NULL, *l = strtok_r(head, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        if (sscanf(l, "\"stage\":\"%15[a-z]\"", stage) == 1)
            id.stage = stage_from_string(stage);
        else if (sscanf(l, "\"start_realtime_usec\":%" SCNu64, &id.start_realtime) == 1)
            started = true;
        else if (strncmp(l, "\"boot_id\":\"", 11) == 0)
            booted = strcmp(l + 11, "\",") == 0 || sscanf(l + 11, "%63[^\"\\]\"", id.boot_id) == 1;
    }
    if (id.stage < 0 || !started || !booted)
        return -ENODATA;
    *ret = id;
    return 0;
}
