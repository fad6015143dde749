/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/rerecord.h"

#include "base/atomic-file.h"
#include "base/json-util.h"
#include "base/log.h"

#include <fcntl.h>
#include <string.h>

#define FILE_NAME "rerecord"

static int parse(const char *text, size_t size, Rerecord *ret, const char **ret_reason)
{
    _cleanup_json_ json_object *o = NULL;
    json_object *stages;
    Rerecord r = {.asked = true, .uid = UINT32_MAX};
    uint64_t uid;
    int k = json_parse(text, size, 3, &o, ret_reason);

    if (k < 0)
        return k;
    *ret_reason = "not what headstart rerecord writes";
    if (json_get_bool(o, "exact", &r.exact) < 0 ||
        json_get_array(o, "stages", _STAGE_MAX, &stages) < 0)
        return -EBADMSG;
    if (json_object_object_get_ex(o, "uid", NULL)) {
        if (json_get_u64(o, "uid", UINT32_MAX - 1, &uid) < 0)
            return -EBADMSG;
        r.uid = (uint32_t)uid;
    }
    for (size_t i = 0; i < json_object_array_length(stages); i++) {
        const char *word;
        Stage s;

        if (json_at_string(stages, i, &word) < 0 || (s = stage_from_string(word), (int)s < 0))
            return -EBADMSG;
        r.stages |= 1U << s;
    }
    *ret = r;
    return 0;
}

static int open_state(const char *state_dir)
{
    int fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int rerecord_read(const char *state_dir, Rerecord *ret)
{
    _cleanup_close_ int fd = open_state(state_dir);
    _cleanup_free_ char *text = NULL;
    const char *reason = NULL;
    Rerecord none = {0};
    size_t size;
    int r = fd;

    if (r >= 0)
        r = file_read_whole(fd, FILE_NAME, 4096, &text, &size);
    if (r == -ENOENT) {
        *ret = none;
        return 0;
    }
    if (r >= 0)
        r = parse(text, size, ret, &reason);
    else if (r != -EBADMSG && r != -E2BIG)
        return r;
    if (r == -EBADMSG || r == -E2BIG) {
        log_warning("headstartd: %s/" FILE_NAME ": %s, setting it aside", state_dir,
                    reason ? reason : strerror(-r));
        *ret = none;
        r = file_set_aside(fd, FILE_NAME);
    }
    return r;
}

bool rerecord_wants(const Rerecord *r, Stage stage, uint32_t uid)
{
    return r->asked && r->stages & 1U << stage &&
           (stage == STAGE_BOOT || r->uid == UINT32_MAX || r->uid == uid);
}

int rerecord_done(const char *state_dir, Rerecord *r, Stage stage, uint32_t uid)
{
    _cleanup_close_ int fd = -EBADF;
    _cleanup_json_writer_ JsonWriter w = {0};
    _cleanup_free_ char *text = NULL;
    size_t size;
    int k;

    if (!rerecord_wants(r, stage, uid))
        return 0;
    r->stages &= ~(1U << stage);
    r->asked = r->stages != 0;
    fd = open_state(state_dir);
    if (fd < 0)
        return fd;
    if (!r->asked)
        return unlinkat(fd, FILE_NAME, 0) < 0 && errno != ENOENT ? -errno : 0;
    json_writer_open(&w, "stages", '[');
    for (Stage s = 0; s < _STAGE_MAX; s++)
        if (r->stages & 1U << s)
            json_writer_add_string(&w, NULL, stage_to_string(s));
    json_writer_close(&w, ']');
    json_writer_add(&w, "exact", json_object_new_boolean(r->exact));
    if (r->uid != UINT32_MAX)
        json_writer_add(&w, "uid", json_object_new_int64(r->uid));
    k = json_writer_finish(&w, &text, &size);
    return k < 0 ? k : atomic_file_write(fd, FILE_NAME, text, size, 0600);
}
