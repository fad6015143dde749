/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "volume/encryption.h"

#include <string.h>

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

EncryptionLevel encryption_of_mapped(const char *dm_uuid, const char *dm_name)
{
    /* cryptsetup uses the prefix "CRYPT-" for these devices as well. They protect data against
     * changes and not against readers. */
    static const char *const plain[] = {"CRYPT-VERITY-", "CRYPT-INTEGRITY-", "CRYPT-SUBDEV-"};

    if (!starts_with(dm_uuid, "CRYPT-"))
        return ENCRYPTION_NONE;
    for (size_t i = 0; i < ELEMENTSOF(plain); i++)
        if (starts_with(dm_uuid, plain[i]))
            return ENCRYPTION_NONE;
    return starts_with(dm_name, "home-") ? ENCRYPTION_USER : ENCRYPTION_DISK;
}

bool encryption_allows(const Encryption *store, const Encryption *file)
{
    if (store->level >= file->level)
        return true;
    return !file->by_file && file->device[0] && strcmp(store->device, file->device) == 0;
}
