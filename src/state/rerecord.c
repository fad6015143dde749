/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/rerecord.h"

#include "base/atomic-file.h"
#include "base/json-util.h"
#include "base/log.h"
#include "boot/read-ahead.h"
#include "state/state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

const char *rerecord_name(char buf[static RERECORD_NAME_MAX], Stage stage)
{
    snprintf(buf, RERECORD_NAME_MAX, STATE_RERECORD "%s", stage_to_string(stage));
    return buf;
}

int rerecord_write(int state_fd, Stage stage, uint32_t uid, unsigned exact_kb)
{
    char name[RERECORD_NAME_MAX], text[96], user[32] = "", read_ahead[32] = "";

    if (uid != UID_INVALID)
        snprintf(user, sizeof(user), ",\"uid\":%" PRIu32, uid);
    if (exact_kb > 0 && exact_kb != READ_AHEAD_EXACT_KB)
        snprintf(read_ahead, sizeof(read_ahead), ",\"read_ahead_kb\":%u", exact_kb);
    snprintf(text, sizeof(text), "{\"exact\":%s%s%s}", exact_kb > 0 ? "true" : "false", read_ahead,
             user);
    return atomic_file_write(state_fd, rerecord_name(name, stage), text, strlen(text), 0600);
}

static int parse(const char *text, size_t size, Rerecord *ret, Stage stage, const char **ret_reason)
{
    _cleanup_json_ json_object *o = NULL;
    uint64_t uid = UID_INVALID, kb = READ_AHEAD_EXACT_KB;
    bool exact;
    int r = json_parse(text, size, 2, &o, ret_reason);

    if (r < 0)
        return r;
    *ret_reason = "not what headstart rerecord writes";
    if (json_get_bool(o, "exact", &exact) < 0)
        return -EBADMSG;
    if (json_object_object_get_ex(o, "uid", NULL) &&
        json_get_u64(o, "uid", UID_INVALID - 1, &uid) < 0)
        return -EBADMSG;
    if (json_object_object_get_ex(o, "read_ahead_kb", NULL) &&
        (json_get_u64(o, "read_ahead_kb", RERECORD_READ_AHEAD_MAX_KB, &kb) < 0 || kb == 0))
        return -EBADMSG;
    ret->stages[stage].requested = true;
    ret->stages[stage].exact = exact;
    ret->stages[stage].read_ahead_kb = (unsigned)kb;
    ret->stages[stage].uid = (uint32_t)uid;
    return 0;
}

/* Returns when the request in that file expires (CLOCK_REALTIME); USEC_INFINITY: unknown. */
static usec_t expires_at(int fd, const char *name)
{
    struct stat st;

    return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0
                   ? USEC_INFINITY
                   : (usec_t)st.st_mtim.tv_sec * USEC_PER_SEC + RERECORD_MAX;
}

/* Drops a request that has expired. */
static void drop_request(Rerecord *x, Stage stage)
{
    log_notice("headstartd: the request to record a %s again has expired after a week",
               stage_to_string(stage));
    x->stages[stage].requested = x->stages[stage].exact = false;
}

/* Removes the file. Returns 0, also if there is none, or a negative errno. */
static int remove_file(int fd, const char *name)
{
    return unlinkat(fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int read_stage(int fd, const char *state_dir, usec_t now, Rerecord *ret, Stage stage)
{
    _cleanup_free_ char *text = NULL;
    const char *reason = NULL;
    char name[RERECORD_NAME_MAX];
    size_t size;
    int r;

    r = file_read_whole(fd, rerecord_name(name, stage), 4096, &text, &size);
    if (r == -ENOENT)
        return 0;
    if (r >= 0)
        r = parse(text, size, ret, stage, &reason);
    else if (r != -EBADMSG && r != -E2BIG)
        return r;
    if (r == -EBADMSG || r == -E2BIG) {
        log_warning("headstartd: %s/%s: %s, setting it aside", state_dir, name,
                    reason ? reason : error_text(r));
        return file_set_aside(fd, name);
    }
    if (r < 0)
        return r;
    ret->stages[stage].expires = expires_at(fd, name);
    if (now <= ret->stages[stage].expires)
        return 0;
    drop_request(ret, stage);
    return remove_file(fd, name);
}

int rerecord_read(const char *state_dir, usec_t now, Rerecord *ret)
{
    _cleanup_close_ int fd = -EBADF;
    int r = state_directory_open(state_dir, false, &fd);

    *ret = (Rerecord){0};
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    for (Stage i = 0; i < _STAGE_MAX; i++) {
        int k = read_stage(fd, state_dir, now, ret, i);

        r = r < 0 ? r : k;
    }
    return r;
}

int rerecord_expire(const char *state_dir, usec_t now, Rerecord *x)
{
    int r = 0;

    for (Stage i = 0; i < _STAGE_MAX; i++) {
        _cleanup_close_ int fd = -EBADF;
        char name[RERECORD_NAME_MAX];
        int k;

        if (!x->stages[i].requested || now <= x->stages[i].expires)
            continue;
        drop_request(x, i);
        k = state_directory_open(state_dir, false, &fd);
        if (k >= 0 && expires_at(fd, rerecord_name(name, i)) < now)
            k = remove_file(fd, name);
        r = r < 0 ? r : k;
    }
    return r;
}

bool rerecord_is_requested(const Rerecord *x)
{
    for (Stage i = 0; i < _STAGE_MAX; i++)
        if (x->stages[i].requested)
            return true;
    return false;
}

bool rerecord_matches(const Rerecord *x, Stage stage, uint32_t uid)
{
    return x->stages[stage].requested &&
           (stage == STAGE_BOOT || x->stages[stage].uid == UID_INVALID ||
            x->stages[stage].uid == uid);
}

int rerecord_done(const char *state_dir, Rerecord *x, Stage stage, uint32_t uid)
{
    _cleanup_close_ int fd = -EBADF;
    char name[RERECORD_NAME_MAX];
    int r;

    if (!rerecord_matches(x, stage, uid))
        return 0;
    x->stages[stage].requested = false;
    r = state_directory_open(state_dir, false, &fd);
    if (r < 0)
        return r;
    return remove_file(fd, rerecord_name(name, stage));
}
