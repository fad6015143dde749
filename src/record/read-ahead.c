/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/read-ahead.h"

#include "base/atomic-file.h"
#include "base/parse.h"
#include "base/rooted.h"

#include <fcntl.h>
#include <string.h>

#define RECORD_SIZE_MAX (256U * 1024)

static int write_kb(const char *path, uint64_t kb)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    char text[32];
    int n = snprintf(text, sizeof(text), "%llu\n", (unsigned long long)kb);

    if (fd < 0)
        return -errno;
    return write(fd, text, (size_t)n) < 0 ? -errno : 0;
}

/* Returns true if the path is a read_ahead_kb file below /sys. If a record names any other path,
 * nothing is written to that path. */
static bool is_read_ahead_path(const char *path)
{
    size_t l = strlen(path);

    return strncmp(path, "/sys/", 5) == 0 && !strstr(path, "..") && l > 14 &&
           strcmp(path + l - 14, "/read_ahead_kb") == 0;
}

/* Restores one line of the record: "PATH OLD NEW". */
static int restore_line(char *line)
{
    char *save = NULL, *path = strtok_r(line, " ", &save), *old = strtok_r(NULL, " ", &save);
    char *new = strtok_r(NULL, " ", &save);
    uint64_t old_kb, new_kb, now_kb;

    if (!path || !old || !new || !is_read_ahead_path(path) || parse_u64(old, &old_kb) < 0 ||
        parse_u64(new, &new_kb) < 0)
        return -EBADMSG;
    if (rooted_read_u64(AT_FDCWD, path, &now_kb) < 0 || now_kb != new_kb)
        return 0; /* the device is gone, or another program has changed the value since */
    return write_kb(path, old_kb);
}

int read_ahead_restore(const char *record)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r, result = 0;

    r = file_read_whole(AT_FDCWD, record, RECORD_SIZE_MAX, &text, &size);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        r = restore_line(line);
        if (r < 0)
            result = r;
    }
    if (result == -EBADMSG)
        file_set_aside(AT_FDCWD, record);
    else if (unlink(record) < 0 && errno != ENOENT)
        return -errno;
    return result;
}

int read_ahead_lower(const VolumeTable *t, unsigned kb, const char *record)
{
    _cleanup_free_ char *text = strdup("");
    int r = read_ahead_restore(record);

    if (r < 0 && r != -EBADMSG)
        return r;
    for (size_t i = 0; text && i < t->n; i++) {
        const Volume *v = &t->volumes[i];
        uint64_t old_kb;
        char *more;

        if (!v->read_ahead_path || strstr(text, v->read_ahead_path) ||
            rooted_read_u64(AT_FDCWD, v->read_ahead_path, &old_kb) < 0 || old_kb <= kb)
            continue;
        if (asprintf(&more, "%s%s %llu %u\n", text, v->read_ahead_path, (unsigned long long)old_kb,
                     kb) < 0)
            more = NULL;
        free(text);
        text = more;
    }
    if (!text)
        return -ENOMEM;
    if (!*text)
        return 0;
    r = atomic_file_write(AT_FDCWD, record, text, strlen(text), 0600);
    if (r < 0)
        return r;
    for (size_t i = 0; r >= 0 && i < t->n; i++) {
        const Volume *v = &t->volumes[i];

        if (v->read_ahead_path && strstr(text, v->read_ahead_path))
            r = write_kb(v->read_ahead_path, kb);
    }
    if (r < 0)
        (void)read_ahead_restore(record);
    return r;
}
