/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/atomic-file.h"
#include "state/device-store.h"

#include <string.h>

int state_load_devices(int state_fd, DeviceStore *ret, char **ret_error)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r;

    r = file_read_whole(state_fd, STATE_DEVICES, DEVICE_STORE_SIZE_MAX, &text, &size);
    if (r == -ENOENT) {
        *ret = (DeviceStore){0};
        return 0;
    }
    if (r == -EBADMSG)
        *ret_error = strdup("not a regular file");
    return r < 0 ? r : device_store_from_json(text, size, ret, ret_error);
}

int state_write_devices(int state_fd, const DeviceStore *s)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = device_store_to_json(s, &text, &size);

    return r < 0 ? r : atomic_file_write(state_fd, STATE_DEVICES, text, size, 0600);
}
