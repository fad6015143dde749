/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/packs.h"

#include "base/compressed-file.h"
#include "base/directory.h"
#include "base/time-util.h"
#include "base/uid.h"
#include "state/state.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "config-paths.h"

char *packs_name(char name[static PACK_NAME_MAX], Stage stage, uint32_t uid)
{
    if (uid == UID_INVALID)
        snprintf(name, PACK_NAME_MAX, "%s.pack", stage_to_string(stage));
    else
        snprintf(name, PACK_NAME_MAX, "%s@%" PRIu32 ".pack", stage_to_string(stage), uid);
    return name;
}

bool packs_parse_user_name(const char *name, uint32_t *ret_uid)
{
    char expected[PACK_NAME_MAX];
    uint32_t uid;

    if (sscanf(name, "login@%" SCNu32, &uid) != 1 ||
        strcmp(name, packs_name(expected, STAGE_LOGIN, uid)) != 0)
        return false;
    *ret_uid = uid;
    return true;
}

int packs_read(int state_fd, const char *name, char **ret_buf, Pack *ret, const char **ret_reason)
{
    _cleanup_free_ char *buf = NULL;
    size_t size;
    int r = compressed_file_read(state_fd, name, PACK_SIZE_MAX, &buf, &size, ret_reason);

    if (r >= 0)
        r = pack_open(buf, size, ret, ret_reason);
    if (r >= 0)
        *ret_buf = TAKE_PTR(buf);
    return r;
}

int packs_read_header(int state_fd, const char *name, PackHeader *ret, const char **ret_reason)
{
    /* The header is compressed together with what follows, so that it needs more compressed bytes
     * than its own. */
    union {
        char bytes[4096];
        PackHeader header;
    } head = {0};
    uint64_t size;
    int r = compressed_file_read_head(state_fd, name, head.bytes, sizeof(head.bytes), &size);

    if (r == -EBADMSG && ret_reason)
        *ret_reason = "the compressed data are damaged";
    return r < 0 ? r : pack_read_header(&head.header, size, ret, ret_reason);
}

int packs_write(int state_fd, const char *name, const void *bytes, size_t size)
{
    return compressed_file_write(state_fd, name, bytes, size, 0600);
}

int packs_read_salt(int state_fd, const char *name, uint64_t *ret_salt)
{
    _cleanup_free_ char *buf = NULL;
    Pack pack;
    int r = packs_read(state_fd, name, &buf, &pack, NULL);

    if (r >= 0)
        *ret_salt = le64toh(pack.header->salt);
    return r;
}

/* Reads the ranges of one volume. The ranges of a pack are in physical order, so each insertion
 * into the set takes constant time. */
static int read_places(const Pack *pack, const PackVolume *v, RangeSet *ret)
{
    const PackData *data = pack->data + le32toh(v->first_data);
    int r = 0;

    for (uint32_t i = 0; r >= 0 && i < le32toh(v->n_data); i++)
        if (le64toh(data[i].physical) < UINT64_MAX - le64toh(data[i].length))
            r = range_set_insert(ret, le64toh(data[i].physical), le64toh(data[i].length));
    return r;
}

int packs_read_places(int state_fd, const char *name, const uint8_t uuid[static 16], RangeSet *set)
{
    _cleanup_free_ char *buf = NULL;
    Pack pack;
    int r = packs_read(state_fd, name, &buf, &pack, NULL);

    for (uint32_t i = 0; r >= 0 && i < le32toh(pack.header->n_volumes); i++) {
        const PackVolume *v = &pack.volumes[i];
        _cleanup_range_set_ RangeSet places = {0};

        if (memcmp(v->uuid, uuid, sizeof(v->uuid)) != 0 ||
            !(le32toh(v->flags) & PACK_VOLUME_PHYSICAL))
            continue;
        r = read_places(&pack, v, &places);
        if (r >= 0)
            r = range_set_unite(set, &places);
    }
    return r;
}

/* Returns the time of the last change of a file or directory; 0 if it does not exist. */
static uint64_t changed_at(int dir_fd, const char *path)
{
    struct stat st;

    return fstatat(dir_fd, path, &st, 0) < 0 ? 0 : timespec_nsec(&st.st_mtim);
}

int packs_read_of(int state_fd, Stage stage, uint32_t uid, char **ret_buf, Pack *ret)
{
    char name[PACK_NAME_MAX];
    int r = -ENOENT;

    if (stage == STAGE_LOGIN && uid != UID_INVALID)
        r = packs_read(state_fd, packs_name(name, stage, uid), ret_buf, ret, NULL);
    if (r == -ENOENT && state_pack_name(stage))
        r = packs_read(state_fd, state_pack_name(stage), ret_buf, ret, NULL);
    return r;
}

void user_packs_done(UserPacks *p)
{
    free(p->items);
    *p = (UserPacks){0};
}

static int compare_user_packs(const void *a, const void *b)
{
    const UserPack *x = a, *y = b;

    if (x->changed_nsec != y->changed_nsec)
        return x->changed_nsec > y->changed_nsec ? -1 : 1;
    return x->uid < y->uid ? -1 : x->uid > y->uid;
}

int packs_list_users(int state_fd, UserPacks *ret)
{
    _cleanup_user_packs_ UserPacks p = {0};
    _cleanup_closedir_ DIR *dir = NULL;
    const struct dirent *e;
    uint32_t uid;

    CHECK(directory_open(state_fd, ".", O_NOFOLLOW, &dir));
    while ((e = directory_next(dir))) {
        if (!packs_parse_user_name(e->d_name, &uid))
            continue;
        CHECK(grow_array(&p.items, &p.allocated, p.n + 1, sizeof(UserPack)));
        p.items[p.n++] = (UserPack){uid, changed_at(state_fd, e->d_name)};
    }
    if (p.n > 0)
        qsort(p.items, p.n, sizeof(UserPack), compare_user_packs);
    *ret = p;
    p = (UserPacks){0};
    return 0;
}

/* Returns what one pack adds to the answer: -ENOENT if there is no usable pack, 0 if it is
 * replayed, or 1 if it is off; then *ret is the reason. */
static int read_off_reason(int state_fd, const char *name, PolicyReason *ret)
{
    PackHeader h;

    if (!name || packs_read_header(state_fd, name, &h, NULL) < 0)
        return -ENOENT;
    if (h.policy == POLICY_OFF)
        *ret = (PolicyReason)h.reason;
    return h.policy == POLICY_OFF;
}

PolicyReason packs_off_reason(int state_fd, Stage stage, uint32_t uid)
{
    _cleanup_user_packs_ UserPacks users = {0};
    PolicyReason reason = _POLICY_REASON_INVALID;
    char name[PACK_NAME_MAX];
    int r = -ENOENT;

    if (stage == STAGE_LOGIN && uid != UID_INVALID)
        r = read_off_reason(state_fd, packs_name(name, stage, uid), &reason);
    if (r == -ENOENT)
        r = read_off_reason(state_fd, state_pack_name(stage), &reason);
    if (r == 0 || stage != STAGE_LOGIN || uid != UID_INVALID ||
        packs_list_users(state_fd, &users) < 0)
        return reason;
    for (size_t i = 0; i < users.n; i++)
        if (read_off_reason(state_fd, packs_name(name, stage, users.items[i].uid), &reason) == 0)
            return _POLICY_REASON_INVALID;
    return reason;
}

int packs_read_control_interval(int state_fd, Stage stage, uint32_t *ret)
{
    _cleanup_user_packs_ UserPacks users = {0};
    const char *common = state_pack_name(stage);
    char name[PACK_NAME_MAX];
    PackHeader h;
    int r = common ? packs_read_header(state_fd, common, &h, NULL) : -ENOENT;

    if (r < 0 && stage == STAGE_LOGIN && packs_list_users(state_fd, &users) >= 0)
        for (size_t i = 0; i < users.n && r < 0; i++)
            r = packs_read_header(state_fd, packs_name(name, stage, users.items[i].uid), &h, NULL);
    if (r >= 0)
        *ret = le32toh(h.control_interval);
    return r;
}

bool packs_exist(int state_fd)
{
    for (Stage stage = 0; stage < _STAGE_MAX; stage++)
        if (state_pack_name(stage) && faccessat(state_fd, state_pack_name(stage), F_OK, 0) == 0)
            return true;
    return false;
}

bool packs_are_current(int state_fd, uint64_t config_nsec, uint64_t now_nsec, const char *root)
{
    uint64_t planned = UINT64_MAX, newest;
    _cleanup_free_ char *shipped = NULL;

    if (asprintf(&shipped, "%s" HEADSTART_DATA_DIR "/default.model",
                 strcmp(root, "/") == 0 ? "" : root) < 0)
        return false;
    newest = MAX(config_nsec, changed_at(state_fd, STATE_MODEL));
    newest = MAX(newest, changed_at(AT_FDCWD, shipped));
    for (Stage stage = 0; stage < _STAGE_MAX; stage++) {
        uint64_t at = state_pack_name(stage) ? changed_at(state_fd, state_pack_name(stage)) : 0;

        /* A clock that was ahead dated the pack. What was learned since may be dated earlier. */
        if (at > now_nsec)
            return false;
        if (at > 0)
            planned = MIN(planned, at);
    }
    return planned != UINT64_MAX && planned >= newest;
}
