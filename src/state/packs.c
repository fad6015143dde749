/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/packs.h"

#include "base/atomic-file.h"
#include "base/time-util.h"
#include "base/uid.h"
#include "state/state.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "config-paths.h"

/* `pack` points into *ret_buf, which the caller frees. */
static int read_pack(int state_fd, const char *name, char **ret_buf, Pack *ret_pack)
{
    _cleanup_free_ char *buf = NULL;
    size_t size;
    int r = file_read_whole(state_fd, name, PACK_SIZE_MAX, &buf, &size);

    if (r >= 0)
        r = pack_open(buf, size, ret_pack, NULL);
    if (r >= 0)
        *ret_buf = TAKE_PTR(buf);
    return r;
}

int packs_read_salt(int state_fd, const char *name, uint64_t *ret_salt)
{
    _cleanup_free_ char *buf = NULL;
    Pack pack;
    int r = read_pack(state_fd, name, &buf, &pack);

    if (r >= 0)
        *ret_salt = le64toh(pack.header->salt);
    return r;
}

/* Reads the ranges of one volume. The ranges of a pack are in physical order. */
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
    int r = read_pack(state_fd, name, &buf, &pack);

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

/* The time of the last change of a file or directory; 0 if it does not exist. */
static uint64_t changed_at(int dir_fd, const char *path)
{
    struct stat st;

    return fstatat(dir_fd, path, &st, 0) < 0 ? 0 : timespec_nsec(&st.st_mtim);
}

int packs_read_of(int state_fd, Stage stage, uint32_t uid, char **ret_buf, Pack *ret)
{
    _cleanup_free_ char *buf = NULL;
    char name[64];
    size_t size;
    int r = -ENOENT;

    snprintf(name, sizeof(name), "login@%" PRIu32 ".pack", uid);
    if (stage == STAGE_LOGIN && uid != UID_INVALID)
        r = file_read_whole(state_fd, name, PACK_SIZE_MAX, &buf, &size);
    if (r == -ENOENT)
        r = file_read_whole(state_fd, state_pack_name(stage), PACK_SIZE_MAX, &buf, &size);
    if (r >= 0)
        r = pack_open(buf, size, ret, NULL);
    if (r < 0)
        return r;
    *ret_buf = TAKE_PTR(buf);
    return 0;
}

bool packs_exist(int state_fd)
{
    for (Stage stage = 0; stage < _STAGE_MAX; stage++)
        if (state_pack_name(stage) && faccessat(state_fd, state_pack_name(stage), F_OK, 0) == 0)
            return true;
    return false;
}

bool packs_are_current(int state_fd, int system_fd, const char *root)
{
    static const char *const config[] = {HEADSTART_SYSCONF_DIR "/headstart.conf",
                                         HEADSTART_SYSCONF_DIR "/headstart.conf.d"};
    uint64_t planned = UINT64_MAX, newest;
    _cleanup_free_ char *shipped = NULL;

    if (asprintf(&shipped, "%s" HEADSTART_DATA_DIR "/default.model",
                 strcmp(root, "/") == 0 ? "" : root) < 0)
        return false;
    newest = MAX(changed_at(state_fd, STATE_MODEL), changed_at(AT_FDCWD, shipped));
    for (size_t i = 0; i < ELEMENTSOF(config); i++)
        /* Without the leading slash below another root. */
        newest = MAX(newest, changed_at(system_fd, config[i] + (system_fd != AT_FDCWD)));
    for (Stage stage = 0; stage < _STAGE_MAX; stage++) {
        uint64_t at = state_pack_name(stage) ? changed_at(state_fd, state_pack_name(stage)) : 0;

        if (at > 0)
            planned = MIN(planned, at);
    }
    return planned != UINT64_MAX && planned >= newest;
}
