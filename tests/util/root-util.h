/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A temporary directory that replaces "/" in a test. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* needs the five headers above */
#include <cmocka.h>

typedef struct TestRoot {
    char path[40];
    int fd;
} TestRoot;

/* Creates and opens the directory. Returns 0, or -1 for cmocka. */
static inline int test_root_make(TestRoot *root)
{
    strcpy(root->path, "/tmp/headstart-test-XXXXXX");
    root->fd = mkdtemp(root->path) ? open(root->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return root->fd < 0 ? -1 : 0;
}

/* Removes the directory and everything below it. Returns 0, or another value for cmocka. */
static inline int test_root_remove(TestRoot *root)
{
    char command[64];

    close(root->fd);
    snprintf(command, sizeof(command), "rm -rf '%s'", root->path);
    return system(command);
}

/* Replaces the file `path`, which is relative to the root, and creates the directories above it. */
static inline void test_root_put(const TestRoot *root, const char *path, const char *text)
{
    char above[512];
    int fd;

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
        assert_true(mkdirat(root->fd, above, 0755) == 0 || errno == EEXIST);
    }
    fd = openat(root->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}
