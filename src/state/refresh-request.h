/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* STATE/refresh-wanted: the hooks of package managers create it when packages have changed
 * (hooks/hook.in, docs/formats.md). A refresh removes it. */

#include <stdint.h>

/* Identifies one request. All zero: no request. */
typedef struct RefreshRequest {
    uint64_t inode, mtime_nsec;
} RefreshRequest;

/* Returns the present request. */
RefreshRequest refresh_request_read(int state_fd);

/* Removes the request after it was carried out. It stays if packages were changed again meanwhile.
 * Returns 0 or a negative errno. */
int refresh_request_remove(int state_fd, const RefreshRequest *done);
