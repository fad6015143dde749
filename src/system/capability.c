/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/capability.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct __user_cap_header_struct CapabilityHeader;
typedef struct __user_cap_data_struct CapabilityData;

int capability_is_effective(int capability)
{
    CapabilityHeader header = {.version = _LINUX_CAPABILITY_VERSION_3};
    CapabilityData data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    return (data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

int capability_drop(int capability)
{
    CapabilityHeader header = {.version = _LINUX_CAPABILITY_VERSION_3};
    CapabilityData data[_LINUX_CAPABILITY_U32S_3] = {0};
    CapabilityData *d = &data[CAP_TO_INDEX(capability)];
    uint32_t kept = ~CAP_TO_MASK(capability);

    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    d->effective &= kept;
    d->permitted &= kept;
    d->inheritable &= kept;
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int capability_end_inheritance(void)
{
    CapabilityHeader header = {.version = _LINUX_CAPABILITY_VERSION_3};
    CapabilityData data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        data[i].inheritable = 0;
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}
