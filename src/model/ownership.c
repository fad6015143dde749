/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/ownership.h"

#include <sys/stat.h>

bool ownership_allows(uint32_t st_uid, uint32_t st_gid, uint32_t st_mode, uint32_t uid)
{
    bool owner_fits = st_uid == 0;

    if (uid == OWNERSHIP_SYSTEM)
        owner_fits = st_uid <= OWNERSHIP_SYSTEM_UID_MAX;
    else if (uid != OWNERSHIP_ANYBODY)
        owner_fits = owner_fits || st_uid == uid;
    return owner_fits && !(st_mode & S_IWOTH) && (!(st_mode & S_IWGRP) || st_gid == st_uid);
}
