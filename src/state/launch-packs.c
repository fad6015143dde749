/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/launch-packs.h"

#include "base/directory.h"
#include "base/hash.h"
#include "state/packs.h"

#include <inttypes.h>
#include <string.h>

uint64_t launch_pack_hash(const char *path)
{
    return hash64(path, strlen(path), 0);
}

char *launch_pack_name(char name[static LAUNCH_PACK_NAME_MAX], uint32_t uid, uint64_t hash)
{
    if (uid == UID_INVALID)
        snprintf(name, LAUNCH_PACK_NAME_MAX, "launch-%016" PRIx64 ".pack", hash);
    else
        snprintf(name, LAUNCH_PACK_NAME_MAX, "launch@%" PRIu32 "-%016" PRIx64 ".pack", uid, hash);
    return name;
}

bool launch_pack_parse_name(const char *name, uint32_t *ret_uid, uint64_t *ret_hash)
{
    char again[LAUNCH_PACK_NAME_MAX];
    uint32_t uid = UID_INVALID;
    uint64_t hash;

    if (sscanf(name, "launch-%16" SCNx64, &hash) != 1 &&
        sscanf(name, "launch@%" SCNu32 "-%16" SCNx64, &uid, &hash) != 2)
        return false;
    if (strcmp(launch_pack_name(again, uid, hash), name) != 0)
        return false;
    *ret_uid = uid;
    *ret_hash = hash;
    return true;
}

bool launch_pack_is_replayed(int state_fd, const char *name, PolicyReason *ret_reason)
{
    PackHeader h;
    uint64_t hash;
    uint32_t uid;

    if (!launch_pack_parse_name(name, &uid, &hash) ||
        packs_read_header(state_fd, name, &h, NULL) < 0)
        return false;
    if (ret_reason)
        *ret_reason = (PolicyReason)h.reason;
    return h.policy != POLICY_OFF;
}

bool launch_packs_are_replayed(int state_fd, PolicyReason *ret_off)
{
    _cleanup_closedir_ DIR *d = NULL;
    PolicyReason reason = _POLICY_REASON_INVALID;
    const struct dirent *e;
    bool replayed = false;

    if (directory_open(state_fd, ".", 0, &d) < 0)
        d = NULL;
    while (d && !replayed && (e = directory_next(d)))
        replayed = launch_pack_is_replayed(state_fd, e->d_name, &reason);
    if (ret_off)
        *ret_off = replayed ? _POLICY_REASON_INVALID : reason;
    return replayed;
}

int launch_pack_read_header(int state_fd, uint32_t uid, uint64_t hash, PackHeader *ret)
{
    const uint32_t uids[] = {uid, UID_INVALID};
    char name[LAUNCH_PACK_NAME_MAX];
    int r = -ENOENT;

    for (size_t i = 0; i < ELEMENTSOF(uids) && (r == -ENOENT || r == -EBADMSG); i++)
        r = packs_read_header(state_fd, launch_pack_name(name, uids[i], hash), ret, NULL);
    return r;
}

int launch_pack_read(int state_fd, uint32_t uid, uint64_t hash, char **ret_buf, Pack *ret)
{
    const uint32_t uids[] = {uid, UID_INVALID};
    char name[LAUNCH_PACK_NAME_MAX];
    int r = -ENOENT;

    for (size_t i = 0; i < ELEMENTSOF(uids) && (r == -ENOENT || r == -EBADMSG); i++)
        r = packs_read(state_fd, launch_pack_name(name, uids[i], hash), ret_buf, ret, NULL);
    return r;
}
