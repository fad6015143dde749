/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/idle-boot.h"

#include "base/atomic-file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

bool idle_boot_is_due(Policy policy, usec_t recorded, usec_t now)
{
    /* A recording with a time in the future is ignored, because its clock was wrong. */
    return policy == POLICY_OFF && recorded > 0 && recorded <= now &&
           now - recorded <= IDLE_BOOT_MAX_USEC;
}

bool idle_boot_has_expired(int state_fd, usec_t now)
{
    struct stat st;

    return fstatat(state_fd, STATE_IDLE_BOOT, &st, AT_SYMLINK_NOFOLLOW) >= 0 &&
           !idle_boot_is_due(POLICY_OFF, timespec_nsec(&st.st_mtim) / NSEC_PER_USEC, now);
}

int idle_boot_set(int state_fd, bool idle)
{
    if (idle)
        return atomic_file_write(state_fd, STATE_IDLE_BOOT, "", 0, 0600);
    return unlinkat(state_fd, STATE_IDLE_BOOT, 0) < 0 && errno != ENOENT ? -errno : 0;
}
