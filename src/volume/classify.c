/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/volume.h"

#include <string.h>

static bool has_prefix(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

void volume_set_class(Volume *v, DeviceClass c)
{
    v->device_class = c;
    v->profile = *device_profile_of_class(c);
}

bool volume_is_foreign(const Volume *v)
{
    return v->removable && !v->of_system;
}

bool volume_is_ext(const Volume *v)
{
    return has_prefix(v->fstype, "ext");
}

bool volume_has_items(const Volume *v)
{
    return strcmp(v->fstype, "btrfs") == 0 || strcmp(v->fstype, "xfs") == 0;
}

uint64_t volume_call_dev(const Volume *v)
{
    return v->with_root ? 0 : v->st_dev;
}

DeviceClass volume_classify(const char *disk, bool rotational, const char *mmc_type)
{
    static const char *const network[] = {"nbd", "rbd", "drbd"};

    for (size_t i = 0; i < ELEMENTSOF(network); i++)
        if (has_prefix(disk, network[i]))
            return DEVICE_CLASS_NETDISK;
    if (has_prefix(disk, "mmcblk"))
        return mmc_type && strcmp(mmc_type, "MMC") == 0 ? DEVICE_CLASS_EMMC : DEVICE_CLASS_SD;
    /* The storage behind these devices is unknown. Their rotational flag may be set although this
     * storage does not rotate. */
    if (rotational &&
        (has_prefix(disk, "vd") || has_prefix(disk, "xvd") || has_prefix(disk, "loop")))
        return DEVICE_CLASS_UNKNOWN;
    if (disk[0] == 0)
        return DEVICE_CLASS_UNKNOWN;
    return rotational ? DEVICE_CLASS_HDD : DEVICE_CLASS_SSD;
}
