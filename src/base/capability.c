/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/capability.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

int capability_is_effective(int capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    return (data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}
