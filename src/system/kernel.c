/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "system/kernel.h"

#include "base/rooted.h"

#include <string.h>

#define BOOT_ID_SIZE_MAX      256U
#define COMMAND_LINE_SIZE_MAX 65536U

int kernel_boot_id(int root_fd, char ret[static KERNEL_BOOT_ID_SIZE])
{
    _cleanup_free_ char *text = NULL;
    char id[KERNEL_BOOT_ID_SIZE];
    size_t n = 0;
    int r = rooted_read(root_fd, "/proc/sys/kernel/random/boot_id", BOOT_ID_SIZE_MAX, &text, NULL);

    if (r < 0)
        return r;
    for (const char *c = text; *c && *c != '\n' && n < sizeof(id) - 1; c++)
        if (*c != '-')
            id[n++] = *c;
    id[n] = 0;
    if (n != sizeof(id) - 1)
        return -EBADMSG;
    memcpy(ret, id, sizeof(id));
    return 0;
}

bool kernel_command_line_has(int root_fd, const char *word)
{
    _cleanup_free_ char *text = NULL;

    if (rooted_read(root_fd, "/proc/cmdline", COMMAND_LINE_SIZE_MAX, &text, NULL) < 0)
        return false;
    for (char *save = NULL, *w = strtok_r(text, " \t\n", &save); w;
         w = strtok_r(NULL, " \t\n", &save))
        if (strcmp(w, word) == 0)
            return true;
    return false;
}

char *kernel_command_line_value(int root_fd, const char *key)
{
    _cleanup_free_ char *text = NULL;
    const char *value = NULL;
    size_t n = strlen(key);

    if (rooted_read(root_fd, "/proc/cmdline", COMMAND_LINE_SIZE_MAX, &text, NULL) < 0)
        return NULL;
    for (char *save = NULL, *w = strtok_r(text, " \t\n", &save); w;
         w = strtok_r(NULL, " \t\n", &save))
        if (strncmp(w, key, n) == 0 && w[n] == '=')
            value = w + n + 1;
    return value ? strdup(value) : NULL;
}
