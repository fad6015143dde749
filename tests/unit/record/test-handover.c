/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/handover.h"

#include "base/clock.h"
#include "base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* Makes a handover of the two ends of a pipe, in place of the fanotify group and the connector. */
static Handover fake(void)
{
    Handover h = HANDOVER_NULL;
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    h.fanotify_fd = fds[0];
    h.connector_fd = fds[1];
    h.by_descriptor = true;
    moment_read(&h.start);
    return h;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static bool is_same(int a, int b)
{
    struct stat s, t;

    return fstat(a, &s) >= 0 && fstat(b, &t) >= 0 && s.st_ino == t.st_ino;
}

static char directory[] = "/tmp/test-handover.XXXXXX";
static char path[sizeof(directory) + 16];

static int make_directory(void **state)
{
    if (!mkdtemp(directory))
        return -1;
    snprintf(path, sizeof(path), "%s/socket", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)unlink(path);
    return rmdir(directory);
}

/* --- the process that offers ------------------------------------------------------------------ */

static void *claim(void *arg)
{
    return (void *)(intptr_t)handover_claim(path, arg);
}

static void a_claim_gets_what_is_offered(void **state)
{
    _cleanup_handover_ Handover h = fake(), claimed = HANDOVER_NULL;
    _cleanup_close_ int fd = handover_listen(path);
    pthread_t thread;
    void *result;

    if (geteuid() != 0)
        skip(); /* both sides accept only root */
    assert_true(fd >= 0);
    assert_int_equal(pthread_create(&thread, NULL, claim, &claimed), 0);
    assert_int_equal(handover_offer(fd, &h, 10 * USEC_PER_SEC), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal((intptr_t)result, 0);
    assert_true(is_same(claimed.fanotify_fd, h.fanotify_fd));
    assert_true(is_same(claimed.connector_fd, h.connector_fd));
    assert_true(claimed.by_descriptor);
    assert_memory_equal(&claimed.start, &h.start, sizeof(h.start));
    assert_int_equal(access(path, F_OK), -1);
}

static void an_offer_ends_without_a_claim(void **state)
{
    _cleanup_handover_ Handover h = fake();
    _cleanup_close_ int fd = handover_listen(path);
    usec_t from = clock_now(CLOCK_MONOTONIC);

    assert_int_equal(handover_offer(fd, &h, 20 * USEC_PER_MSEC), -ETIMEDOUT);
    assert_true(clock_now(CLOCK_MONOTONIC) - from >= 20 * USEC_PER_MSEC);
    (void)unlink(path);
    assert_int_equal(handover_claim(path, &h), -ENOENT);
}

/* --- the store of systemd --------------------------------------------------------------------- */

/* Acts as systemd: receives the stored descriptors in the order of storing. Returns how many. */
static int receive(int fd, int *fds, char **names)
{
    int n = 0;

    for (;;) {
        char text[128] = "";
        union {
            char buf[CMSG_SPACE(sizeof(int))];
            struct cmsghdr align;
        } ancillary;
        struct iovec iov = {.iov_base = text, .iov_len = sizeof(text) - 1};
        struct msghdr header = {.msg_iov = &iov,
                                .msg_iovlen = 1,
                                .msg_control = &ancillary,
                                .msg_controllen = sizeof(ancillary)};
        const char *name;

        if (recvmsg(fd, &header, MSG_DONTWAIT) < 0)
            return n;
        name = strstr(text, "FDNAME=");
        assert_non_null(name);
        assert_int_equal(strncmp(text, "FDSTORE=1\n", 10), 0);
        memcpy(&fds[n], CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof(int));
        names[n++] = strdup(name + strlen("FDNAME="));
    }
}

/* Stores the handover and receives it. Returns the number of descriptors. */
static int store(const Handover *h, int *fds, char **names)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};

    strcpy(sa.sun_path, path);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(handover_store(path, h), 0);
    assert_int_equal(unlink(path), 0);
    return receive(fd, fds, names);
}

static void free_names(char **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
}

static void what_is_stored_becomes_the_handover_again(void **state)
{
    _cleanup_handover_ Handover h = fake(), again = HANDOVER_NULL;
    int fds[4], n;
    char *names[4];

    n = store(&h, fds, names);
    assert_int_equal(n, 3);
    /* A descriptor with another name stays open. */
    names[n] = strdup("other");
    fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(handover_from_descriptors(fds, names, n + 1, &again), 0);
    assert_true(is_same(again.fanotify_fd, h.fanotify_fd));
    assert_true(is_same(again.connector_fd, h.connector_fd));
    assert_memory_equal(&again.start, &h.start, sizeof(h.start));
    assert_true(is_open(fds[n]));
    close(fds[n]);
    free_names(names, n + 1);
}

static void without_a_connector_two_descriptors_are_stored(void **state)
{
    _cleanup_handover_ Handover h = fake(), again = HANDOVER_NULL;
    int fds[3], n;
    char *names[3];

    close(h.connector_fd);
    h.connector_fd = -EBADF;
    n = store(&h, fds, names);
    assert_int_equal(n, 2);
    assert_int_equal(handover_from_descriptors(fds, names, n, &again), 0);
    assert_true(again.connector_fd < 0);
    free_names(names, n);
}

/* Stores a handover, applies `change`, and expects the error. Only descriptors named "other" stay
 * open. */
static void refuse(void (*change)(int *fds, char **names), int error)
{
    _cleanup_handover_ Handover h = fake();
    Handover again = HANDOVER_NULL;
    int fds[3], n;
    char *names[3];

    n = store(&h, fds, names);
    change(fds, names);
    assert_int_equal(handover_from_descriptors(fds, names, n, &again), error);
    assert_int_equal(again.fanotify_fd, -EBADF);
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], "other") == 0)
            close(fds[i]);
        else
            assert_false(is_open(fds[i]));
    free_names(names, n);
}

static void rename_one(char **names, const char *from)
{
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], from) == 0) {
            free(names[i]);
            names[i] = strdup("other");
        }
}

static void lose_group(int *fds, char **names)
{
    rename_one(names, HANDOVER_NAME_GROUP);
}

static void lose_facts(int *fds, char **names)
{
    rename_one(names, HANDOVER_NAME_FACTS);
}

static void lose_both(int *fds, char **names)
{
    lose_group(fds, names);
    lose_facts(fds, names);
    rename_one(names, HANDOVER_NAME_CONNECTOR);
}

/* The facts are stored last; the version is their second number. */
static void set_version(int *fds, char **names)
{
    const uint32_t version = 1;

    assert_int_equal(pwrite(fds[2], &version, sizeof(version), 4), sizeof(version));
}

static void set_magic(int *fds, char **names)
{
    assert_int_equal(pwrite(fds[2], "else", 4, 0), 4);
}

static void cut(int *fds, char **names)
{
    assert_int_equal(ftruncate(fds[2], 12), 0);
}

static void empty(int *fds, char **names)
{
    assert_int_equal(ftruncate(fds[2], 0), 0);
}

static void a_part_of_a_handover_is_refused(void **state)
{
    refuse(lose_group, -EBADMSG);
    refuse(lose_facts, -EBADMSG);
    refuse(lose_both, -ENOENT);
}

static void another_version_and_other_bytes_are_refused(void **state)
{
    refuse(set_version, -EPROTO);
    refuse(set_magic, -EBADMSG);
    refuse(cut, -EBADMSG);
    refuse(empty, -EBADMSG);
}

static void a_start_in_the_future_is_refused(void **state)
{
    _cleanup_handover_ Handover h = fake();
    Handover again = HANDOVER_NULL;
    int fds[3], n;
    char *names[3];

    h.start.boottime += USEC_PER_HOUR;
    n = store(&h, fds, names);
    assert_int_equal(handover_from_descriptors(fds, names, n, &again), -EBADMSG);
    free_names(names, n);
}

static void an_address_that_is_none_is_refused(void **state)
{
    _cleanup_handover_ Handover h = fake();
    char long_path[200];

    memset(long_path, 'x', sizeof(long_path));
    long_path[0] = '/';
    long_path[sizeof(long_path) - 1] = 0;
    assert_int_equal(handover_store("", &h), -EINVAL);
    assert_int_equal(handover_store("relative", &h), -EINVAL);
    assert_int_equal(handover_store(long_path, &h), -ENAMETOOLONG);
    assert_int_equal(handover_store("/none/socket", &h), -ENOENT);
    assert_int_equal(handover_store("@headstart-none", &h), -ECONNREFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_claim_gets_what_is_offered),
            cmocka_unit_test(an_offer_ends_without_a_claim),
            cmocka_unit_test(what_is_stored_becomes_the_handover_again),
            cmocka_unit_test(without_a_connector_two_descriptors_are_stored),
            cmocka_unit_test(a_part_of_a_handover_is_refused),
            cmocka_unit_test(another_version_and_other_bytes_are_refused),
            cmocka_unit_test(a_start_in_the_future_is_refused),
            cmocka_unit_test(an_address_that_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
