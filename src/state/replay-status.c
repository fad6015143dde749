/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/replay-status.h"

#include "base/atomic-file.h"
#include "base/directory.h"
#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define STATUS_SIZE_MAX 65536
#define STATUS_N_MAX    1024 /* limit of the number of users */

void replay_status_list_done(ReplayStatusList *l)
{
    for (size_t i = 0; i < l->n; i++)
        json_object_put(l->items[i].object);
    free(l->items);
    *l = (ReplayStatusList){0};
}

/* Parses the name replay-STAGE.json or replay-STAGE@UID.json. */
static bool parse_name(const char *name, Stage stage, uint32_t *ret_uid)
{
    char prefix[64], digits[16];
    size_t l = (size_t)snprintf(prefix, sizeof(prefix), "replay-%s", stage_to_string(stage));
    uint64_t uid;
    size_t n;

    if (strncmp(name, prefix, l) != 0)
        return false;
    name += l;
    *ret_uid = UID_INVALID;
    if (strcmp(name, ".json") == 0)
        return true;
    n = strcspn(name, ".");
    if (name[0] != '@' || n < 2 || n > sizeof(digits) || strcmp(name + n, ".json") != 0)
        return false;
    memcpy(digits, name + 1, n - 1);
    digits[n - 1] = 0;
    if (parse_u64(digits, &uid) < 0 || uid >= UID_INVALID)
        return false;
    *ret_uid = (uint32_t)uid;
    return true;
}

static int by_user(const void *a, const void *b)
{
    const ReplayStatus *x = a, *y = b;
    uint32_t m = x->uid + 1, n = y->uid + 1; /* the UID of the status for everyone becomes 0 */

    return (m > n) - (m < n);
}

static int add(ReplayStatusList *l, int dir_fd, const char *name, uint32_t uid)
{
    _cleanup_json_ struct json_object *o = NULL;
    _cleanup_free_ char *text = NULL;
    const char *reason;
    size_t size;
    int r;

    r = file_read_whole(dir_fd, name, STATUS_SIZE_MAX, &text, &size);
    if (r >= 0)
        r = json_parse(text, size, 4, &o, &reason);
    if (r < 0 || !json_object_is_type(o, json_type_object))
        return r == -ENOMEM ? r : 0;
    r = grow_array(&l->items, &l->allocated, l->n + 1, sizeof(ReplayStatus));
    if (r >= 0)
        l->items[l->n++] = (ReplayStatus){.object = TAKE_PTR(o), .uid = uid};
    return r;
}

int replay_status_read(int dir_fd, Stage stage, ReplayStatusList *ret)
{
    _cleanup_replay_status_ ReplayStatusList l = {0};
    _cleanup_closedir_ DIR *dir = NULL;
    const struct dirent *d;
    uint32_t uid;
    int r = directory_open(dir_fd, ".", 0, &dir);

    while (r >= 0 && l.n < STATUS_N_MAX && (d = directory_next(dir)))
        if (parse_name(d->d_name, stage, &uid))
            r = add(&l, dir_fd, d->d_name, uid);
    if (r < 0)
        return r;
    if (l.n > 0)
        qsort(l.items, l.n, sizeof(ReplayStatus), by_user);
    *ret = l;
    l = (ReplayStatusList){0};
    return 0;
}
