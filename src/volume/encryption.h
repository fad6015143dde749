/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Determines how the name and the content of a file are encrypted, and whether the name may be
 * stored in another place. The state directory holds paths of all users. Without this check the
 * state directory would reveal the names in an encrypted home to anyone who obtains the disk. */

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum EncryptionLevel {
    ENCRYPTION_NONE,
    ENCRYPTION_DISK, /* dm-crypt: the key is in memory while the machine runs */
    ENCRYPTION_USER, /* fscrypt, or a LUKS home of systemd-homed: the key is in memory while the
                        user is logged in */
    _ENCRYPTION_LEVEL_MAX,
} EncryptionLevel;

#define ENCRYPTION_DEVICE_MAX 132U /* DM_UUID_LEN, with a NUL, rounded up */

typedef struct Encryption {
    EncryptionLevel level;
    bool by_file;                       /* fscrypt */
    char device[ENCRYPTION_DEVICE_MAX]; /* UUID of the dm-crypt device; "" if there is none */
} Encryption;

/* Pure. Returns the level of a device-mapper device by its UUID ("CRYPT-LUKS2-…") and its name.
 * Devices for integrity and verity are not encrypted. systemd-homed names its devices
 * "home-USER". */
EncryptionLevel encryption_of_mapped(const char *dm_uuid, const char *dm_name);

/* Pure. Returns true if the name of a file may be stored: the store has at least the level of the
 * file, or it lies on the same dm-crypt device and the file has no key of its own. */
bool encryption_allows(const Encryption *store, const Encryption *file);

/* Reads the encryption of a block device from sysfs below sys_fd (AT_FDCWD: this machine), down
 * through partitions and stacked devices. If a device lies on several others (a RAID), the one
 * whose name sorts first is followed. Unknown devices count as not encrypted. Returns 0 or
 * -ENOMEM. */
int encryption_read_device(int sys_fd, uint64_t dev, Encryption *ret);

/* Returns the encryption of the opened file (O_PATH suffices). `volume` is the encryption of its
 * filesystem. The result differs from `volume` only if the file has a key of its own
 * (STATX_ATTR_ENCRYPTED). If the attributes cannot be read, the result is `volume`. */
Encryption encryption_read_file(int fd, const Encryption *volume);
