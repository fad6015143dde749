/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/volume.h"

#include <string.h>

/* Returns true if `a` keeps the UUID and `b` loses it. Both have the UUID, and `a` precedes `b` in
 * the table. */
static bool keeps_uuid(const Volume *a, const Volume *b)
{
    return !volume_is_foreign(a) || volume_is_foreign(b);
}

static void drop_uuid(Volume *v)
{
    v->uuid[0] = 0;
    memset(v->uuid_bytes, 0, sizeof(v->uuid_bytes));
}

void volume_table_drop_copies(VolumeTable *t)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = i + 1; k < t->n && t->volumes[i].uuid[0]; k++) {
            Volume *a = &t->volumes[i], *b = &t->volumes[k];

            /* Subvolumes of one btrfs have the same UUID and device number. */
            if (a->mount_dev != b->mount_dev && strcmp(a->uuid, b->uuid) == 0)
                drop_uuid(keeps_uuid(a, b) ? b : a);
        }
}
