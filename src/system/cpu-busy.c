/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/cpu-busy.h"

#include "base/rooted.h"
#include "base/time-util.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#define TEXT_MAX (1U << 20)

int cpu_busy_read(int root_fd, uint64_t *ret_busy_usec)
{
    _cleanup_free_ char *text = NULL;
    uint64_t user, nice, kernel;
    long ticks = sysconf(_SC_CLK_TCK);
    int r = rooted_read(root_fd, "/proc/stat", TEXT_MAX, &text, NULL);

    if (r < 0)
        return r;
    if (ticks <= 0 ||
        sscanf(text, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64, &user, &nice, &kernel) != 3)
        return -EBADMSG;
    *ret_busy_usec = (user + kernel) * (USEC_PER_SEC / (uint64_t)ticks);
    return 0;
}
