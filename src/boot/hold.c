/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "boot/hold.h"

#include "base/macros.h"
#include "base/parse.h"
#include "system/kernel.h"

usec_t hold_limit(int root_fd)
{
    _cleanup_free_ char *value = kernel_command_line_value(root_fd, "headstart.deadline");
    usec_t limit;

    return value && parse_timespan(value, &limit) >= 0 ? MIN(limit, HOLD_MAX) : HOLD_MAX;
}
