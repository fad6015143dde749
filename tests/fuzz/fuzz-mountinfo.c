/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* /proc/self/mountinfo. A user who may mount (FUSE, a user namespace) chooses paths and sources in
 * /proc/self/mountinfo. */

#include "fuzz.h"

#include "volume/mountinfo.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = malloc(size + 1);
    _cleanup_mount_table_ MountTable t = {0};
    _cleanup_free_ size_t *selected = NULL;
    size_t bad, n;

    FUZZ_CHECK(text);
    memcpy(text, data, size);
    text[size] = 0;
    FUZZ_CHECK(mount_table_parse(text, &t, &bad) >= 0);
    fuzz_count(t.n > 0 && bad == 0);
    for (size_t i = 0; i < t.n; i++) {
        (void)fstype_is_local_block(t.mounts[i].fstype);
        (void)mount_subvolume_id(&t.mounts[i]);
        (void)mount_table_path_is_local(&t, t.mounts[i].target);
        (void)mount_is_better(&t.mounts[i], &t.mounts[0]);
        FUZZ_CHECK(path_is_below(t.mounts[i].target, t.mounts[i].target));
    }
    FUZZ_CHECK(mount_table_select(&t, "/", &selected, &n) >= 0);
    for (size_t i = 0; i < n; i++)
        FUZZ_CHECK(selected[i] < t.n && fstype_is_local_block(t.mounts[selected[i]].fstype));
    return 0;
}
