/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests that the prefetch thread is replaced when a disk does not answer, that it can be held, and
 * that repeated requests do not begin again. */

#include "base/clock.h"
#include "session/mount-dirs.h"
#include "session/prefetch-hold.h"
#include "session/prefetch-thread.h"
#include "system/pressure.h"
#include "volume/volume.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define DISK       0x12345
#define ROOT_BTRFS 0x777 /* the number in mountinfo */
#define HOME       0x778 /* another partition of the disk of the root filesystem */

static struct {
    atomic_ulong ahead;     /* of the clock, in microseconds */
    atomic_uint n_hanging;  /* look-ups that wait */
    atomic_uint n_answered; /* other look-ups */
    atomic_uint seen[100];  /* look-ups of /slow/NUMBER */
    uint64_t dev;           /* of the disk that hangs */
    int gate[2];
} fake = {.dev = DISK};

int __wrap_volume_table_read(int root_fd, const char *prefix, VolumeTable *ret);
usec_t __wrap_clock_now(clockid_t clock);
int __wrap_mount_dirs_read(const char *root, const uint64_t *hung, size_t n_hung, MountDirs *ret);
uint64_t __wrap_mount_dirs_dev(const MountDirs *m, const char *path);
int __wrap_pressure_read(Pressure *p, uint64_t *ret);
int __wrap_mount_dirs_open_path(const MountDirs *m, const char *path, struct stat *ret);

int __wrap_volume_table_read(int root_fd, const char *prefix, VolumeTable *ret)
{
    static const Volume volumes[] = {
            {.st_dev = 0x776, .mount_dev = ROOT_BTRFS, .with_root = true},
            {.st_dev = HOME, .mount_dev = HOME, .with_root = true},
            {.st_dev = DISK, .mount_dev = DISK},
    };

    *ret = (VolumeTable){.volumes = calloc(ELEMENTSOF(volumes), sizeof(Volume))};
    assert_non_null(ret->volumes);
    memcpy(ret->volumes, volumes, sizeof(volumes));
    ret->n = ELEMENTSOF(volumes);
    return 0;
}

usec_t __wrap_clock_now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (usec_t)t.tv_sec * USEC_PER_SEC + (usec_t)t.tv_nsec / NSEC_PER_USEC +
           (clock == CLOCK_MONOTONIC ? fake.ahead : 0);
}

/* The mounts have one entry if the disk that hangs is mounted, and is not to be left out. */
int __wrap_mount_dirs_read(const char *root, const uint64_t *hung, size_t n_hung, MountDirs *ret)
{
    *ret = (MountDirs){.n = 0};
    ret->allocated = 1;
    for (size_t i = 0; i < n_hung; i++)
        if (hung[i] == fake.dev)
            ret->allocated = 0;
    return 0;
}

/* The thread then waits for no quiet machine. */
int __wrap_pressure_read(Pressure *p, uint64_t *ret)
{
    return -ENOENT;
}

static bool is_on_disk(const MountDirs *m, const char *path)
{
    return m->allocated > 0 && strncmp(path, "/disk/", 6) == 0;
}

uint64_t __wrap_mount_dirs_dev(const MountDirs *m, const char *path)
{
    return is_on_disk(m, path) ? fake.dev : 1;
}

int __wrap_mount_dirs_open_path(const MountDirs *m, const char *path, struct stat *ret)
{
    unsigned slow;
    char byte;

    if (sscanf(path, "/slow/%u", &slow) == 1) {
        assert_true(slow < ELEMENTSOF(fake.seen));
        usleep(10000);
        fake.seen[slow]++;
    } else if (is_on_disk(m, path)) {
        fake.n_hanging++;
        (void)!read(fake.gate[0], &byte, 1);
    } else
        fake.n_answered++;
    return -ENOENT;
}

static void wait_for(const atomic_uint *n, unsigned wanted)
{
    for (int i = 0; i < 2000 && *n < wanted; i++)
        usleep(10000);
    assert_int_equal(*n, wanted);
}

static const PrefetchRequest requests[] = {
        {.path = "/disk/file", .range = {0, 100}},
        {.path = "/file", .range = {0, 100}},
};

static void a_disk_that_hangs_is_left_out(void **state)
{
    PrefetchThread *t, *before;
    PrefetchReport report;

    assert_int_equal(prefetch_thread_new("/", 0, &t), 0);
    before = t;
    assert_int_equal(prefetch_thread_check(&t), 0);
    assert_int_equal(prefetch_thread_request(t, requests, 2), 0);
    wait_for(&fake.n_hanging, 1);
    /* It may still answer. */
    fake.ahead += PREFETCH_HANG_USEC / 2;
    assert_int_equal(prefetch_thread_check(&t), 0);
    fake.ahead += PREFETCH_HANG_USEC;
    assert_int_equal(prefetch_thread_check(&t), 1);
    assert_ptr_not_equal(t, before);
    assert_int_equal(prefetch_thread_request(t, requests, 2), 0);
    wait_for(&fake.n_answered, 2);
    assert_int_equal(fake.n_hanging, 1);
    /* The new thread waits for a request, and does not hang. */
    do {
        usleep(1000);
        prefetch_thread_report(t, &report);
    } while (report.working);
    fake.ahead += 2 * PREFETCH_HANG_USEC;
    assert_int_equal(prefetch_thread_check(&t), 0);
    /* The first thread ends when the disk answers. */
    assert_int_equal(write(fake.gate[1], "x", 1), 1);
    prefetch_thread_free(t);
}

/* Waits for a disk with that number. It is not replaced. */
static void is_awaited(uint64_t dev)
{
    PrefetchThread *t;

    fake.dev = dev;
    fake.n_hanging = 0;
    assert_int_equal(prefetch_thread_new("/", 0, &t), 0);
    assert_int_equal(prefetch_thread_request(t, requests, 2), 0);
    wait_for(&fake.n_hanging, 1);
    fake.ahead += 2 * PREFETCH_HANG_USEC;
    assert_int_equal(prefetch_thread_check(&t), 0);
    assert_int_equal(write(fake.gate[1], "x", 1), 1);
    prefetch_thread_free(t);
}

static void the_disk_of_the_root_is_awaited(void **state)
{
    struct stat st;

    assert_int_equal(stat("/", &st), 0);
    is_awaited(st.st_dev);
    is_awaited(ROOT_BTRFS);
    is_awaited(HOME);
}

/* Waits until the thread has nothing to do. */
static void wait_until_idle(PrefetchThread *t)
{
    PrefetchReport report;

    do {
        usleep(1000);
        prefetch_thread_report(t, &report);
    } while (report.working);
}

static void a_held_thread_accesses_nothing(void **state)
{
    PrefetchThread *t;
    usec_t now = clock_now(CLOCK_MONOTONIC);
    uint64_t accesses = prefetch_accesses();

    fake.n_answered = 0;
    prefetch_hold(now + 60 * USEC_PER_SEC);
    prefetch_hold(now + USEC_PER_SEC); /* does not shorten the hold */
    assert_int_equal(prefetch_thread_new("/", 0, &t), 0);
    assert_int_equal(prefetch_thread_request(t, requests + 1, 1), 0);
    wait_until_idle(t);
    assert_int_equal(fake.n_answered, 0);
    assert_int_equal(prefetch_accesses(), accesses);

    fake.ahead += 61 * USEC_PER_SEC;
    assert_false(prefetch_is_held());
    assert_int_equal(prefetch_thread_request(t, requests + 1, 1), 0);
    wait_for(&fake.n_answered, 1);
    wait_until_idle(t);
    assert_true(prefetch_accesses() > accesses);
    prefetch_thread_free(t);
}

static size_t count_seen(void)
{
    size_t n = 0;

    for (size_t i = 0; i < ELEMENTSOF(fake.seen); i++)
        n += fake.seen[i] > 0;
    return n;
}

/* A program in a loop leads to the same requests every 250 ms, and looking all of them up takes a
 * second. */
static void the_same_requests_do_not_begin_again(void **state)
{
    PrefetchRequest slow[ELEMENTSOF(fake.seen)];
    char paths[ELEMENTSOF(slow)][16];
    PrefetchThread *t;

    for (size_t i = 0; i < ELEMENTSOF(slow); i++) {
        snprintf(paths[i], sizeof(paths[i]), "/slow/%zu", i);
        slow[i] = (PrefetchRequest){.path = paths[i], .range = {0, 100}};
    }
    assert_int_equal(prefetch_thread_new("/", 0, &t), 0);
    for (unsigned i = 0; i < 20 && count_seen() < ELEMENTSOF(slow); i++) {
        assert_int_equal(prefetch_thread_request(t, slow, ELEMENTSOF(slow)), 0);
        usleep(250000);
    }
    assert_int_equal(count_seen(), ELEMENTSOF(slow));

    /* A job that was executed to its end is executed again. */
    wait_until_idle(t);
    fake.seen[0] = 0;
    assert_int_equal(prefetch_thread_request(t, slow, 1), 0);
    wait_for(&fake.seen[0], 1);
    wait_until_idle(t);
    assert_int_equal(prefetch_thread_request(t, slow, 1), 0);
    wait_for(&fake.seen[0], 2);

    /* Other requests replace those that are being executed, and a cancelled job can be repeated. */
    wait_until_idle(t);
    fake.seen[0] = fake.seen[99] = 0;
    assert_int_equal(prefetch_thread_request(t, slow, ELEMENTSOF(slow)), 0);
    wait_for(&fake.seen[0], 1);
    assert_int_equal(prefetch_thread_request(t, NULL, 0), 0);
    assert_int_equal(prefetch_thread_request(t, slow, ELEMENTSOF(slow)), 0);
    wait_for(&fake.seen[0], 2);
    slow[0].range.length = 200;
    assert_int_equal(prefetch_thread_request(t, slow, 1), 0);
    wait_for(&fake.seen[0], 3);
    wait_until_idle(t);
    assert_int_equal(fake.seen[99], 0);
    prefetch_thread_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_disk_that_hangs_is_left_out),
            cmocka_unit_test(the_disk_of_the_root_is_awaited),
            cmocka_unit_test(a_held_thread_accesses_nothing),
            cmocka_unit_test(the_same_requests_do_not_begin_again),
    };

    if (pipe(fake.gate) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
