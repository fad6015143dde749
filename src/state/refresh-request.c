/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "state/refresh-request.h"

#include "base/time-util.h"
#include "state/state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

RefreshRequest refresh_request_read(int state_fd)
{
    struct stat st;

    if (fstatat(state_fd, STATE_REFRESH, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return (RefreshRequest){0};
    return (RefreshRequest){st.st_ino, timespec_nsec(&st.st_mtim)};
}

int refresh_request_remove(int state_fd, const RefreshRequest *done)
{
    RefreshRequest now = refresh_request_read(state_fd);

    if (done->inode == 0 || now.inode != done->inode || now.mtime_nsec != done->mtime_nsec)
        return 0;
    return unlinkat(state_fd, STATE_REFRESH, 0) < 0 && errno != ENOENT ? -errno : 0;
}
