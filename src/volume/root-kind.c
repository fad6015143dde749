/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "volume/root-kind.h"

#include <string.h>

const char *root_kind_to_string(RootKind k)
{
    static const char *const table[] = {
            [ROOT_KIND_PLAIN] = "plain",
            [ROOT_KIND_SNAPSHOT] = "snapshot",
            [ROOT_KIND_OVERLAY] = "overlay",
            [ROOT_KIND_IMAGE] = "image",
    };

    return (int)k >= 0 && k < _ROOT_KIND_MAX ? table[k] : NULL;
}

/* Returns true if a component of the path is equal to `word`. */
static bool has_component(const char *path, const char *word)
{
    size_t l = strlen(word);

    for (const char *p = path; (p = strstr(p, word)); p += l)
        if ((p == path || p[-1] == '/') && (p[l] == 0 || p[l] == '/'))
            return true;
    return false;
}

RootKind root_kind(const MountTable *t, const char **ret_subvolume)
{
    const Mount *root = mount_table_root(t);

    *ret_subvolume = NULL;
    if (!root)
        return _ROOT_KIND_INVALID;
    if (strcmp(root->fstype, "overlay") == 0)
        return ROOT_KIND_OVERLAY;
    if (strcmp(root->fstype, "squashfs") == 0 || strcmp(root->fstype, "erofs") == 0)
        return ROOT_KIND_IMAGE;
    if (strcmp(root->fstype, "btrfs") == 0 &&
        (has_component(root->root, ".snapshots") || has_component(root->root, "timeshift-btrfs") ||
         has_component(root->root, "@snapshots"))) {
        *ret_subvolume = root->root;
        return ROOT_KIND_SNAPSHOT;
    }
    return ROOT_KIND_PLAIN;
}
