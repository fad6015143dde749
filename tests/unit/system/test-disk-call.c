/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests calls for disks that do not answer: system/disk-call.h. */

#include "system/disk-call.h"

#include "base/clock.h"
#include "base/macros.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* A job hangs until a byte can be read from `gate`. */
static int gate[2];
static int n_run, n_freed;

/* The threads of this process before the first call: an emulator has some of its own. */
static unsigned n_threads_before;

typedef struct Work {
    DiskJob job;
    bool hangs;
    pthread_t thread; /* in which it ran */
} Work;

static void run(DiskJob *job)
{
    Work *w = (Work *)job;
    char byte;

    if (w->hangs)
        (void)!read(gate[0], &byte, 1);
    w->thread = pthread_self();
    __atomic_add_fetch(&n_run, 1, __ATOMIC_SEQ_CST);
}

static void release(DiskJob *job)
{
    free(job);
    __atomic_add_fetch(&n_freed, 1, __ATOMIC_SEQ_CST);
}

static Work *new_work(bool hangs)
{
    Work *w = calloc(1, sizeof(*w));

    /* What does not hang may have to wait for a busy processor. */
    w->job = (DiskJob){run, release, hangs ? 50 * USEC_PER_MSEC : 10 * USEC_PER_SEC};
    w->hangs = hangs;
    return w;
}

/* Returns what disk_call() returned, and its time. */
static int call(uint64_t dev, bool hangs, usec_t *ret_took)
{
    usec_t start = clock_now(CLOCK_MONOTONIC);
    Work *w = new_work(hangs);
    int r = disk_call(dev, &w->job);

    *ret_took = clock_now(CLOCK_MONOTONIC) - start;
    if (r >= 0)
        release(&w->job);
    return r;
}

static void let_go(uint64_t dev)
{
    assert_int_equal(write(gate[1], "x", 1), 1);
    for (int i = 0; i < 1000 && disk_call_hangs(dev); i++)
        usleep(10000);
    assert_false(disk_call_hangs(dev));
}

static void another_thread_makes_the_access(void **state)
{
    Work *w = new_work(false);

    assert_int_equal(disk_call(7, &w->job), 0);
    assert_false(pthread_equal(w->thread, pthread_self()));
    release(&w->job);
    w = new_work(false);
    assert_int_equal(disk_call(0, &w->job), 0);
    assert_true(pthread_equal(w->thread, pthread_self()));
    release(&w->job);
}

static void a_disk_that_hangs_is_left_alone_until_it_answers(void **state)
{
    usec_t took;
    int run_before, freed_before;

    assert_int_equal(call(8, true, &took), -ETIMEDOUT);
    assert_true(took >= 50 * USEC_PER_MSEC && took < 5 * USEC_PER_SEC);
    assert_true(disk_call_hangs(8));
    run_before = n_run;
    freed_before = n_freed;
    /* The next calls fail at once, whatever their limit. */
    for (int i = 0; i < 100; i++)
        assert_int_equal(call(8, false, &took), -ETIMEDOUT);
    assert_int_equal(n_run, run_before);
    assert_int_equal(n_freed, freed_before + 100);
    /* Another disk answers. */
    assert_int_equal(call(9, false, &took), 0);
    let_go(8);
    assert_int_equal(n_freed, freed_before + 102); /* the job that hung, too */
    assert_int_equal(call(8, false, &took), 0);
}

static void a_disk_that_often_hangs_is_given_up(void **state)
{
    usec_t took;

    for (unsigned i = 0; i < DISK_CALL_HANGS_MAX; i++) {
        assert_int_equal(call(10, true, &took), -ETIMEDOUT);
        let_go(10);
    }
    assert_int_equal(call(10, false, &took), -ETIMEDOUT);
}

static void *call_often(void *arg)
{
    usec_t took;

    for (int i = 0; i < 1000; i++)
        *(int *)arg += call(11, false, &took) == 0;
    return NULL;
}

static void two_threads_call_for_one_disk(void **state)
{
    pthread_t threads[2];
    int n[2] = {0};

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &n[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(n[0] + n[1], 2000);
}

static unsigned n_threads(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/task");

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2; /* . and .. */
}

static void the_number_of_threads_is_bounded(void **state)
{
    usec_t took;
    unsigned n_hung = 0;

    /* More filesystems than threads. */
    for (int round = 0; round < 2; round++)
        for (uint64_t dev = 100; dev < 100 + 4 * DISK_CALL_MAX; dev++)
            assert_int_equal(call(dev, false, &took), 0);
    assert_true(n_threads() <= n_threads_before + DISK_CALL_MAX);
    /* As many hang as there are threads. */
    for (uint64_t dev = 100; dev < 100 + DISK_CALL_MAX; dev++)
        n_hung += call(dev, true, &took) == -ETIMEDOUT;
    assert_int_equal(n_hung, DISK_CALL_MAX);
    assert_int_equal(call(99, false, &took), -EAGAIN);
    assert_true(n_threads() <= n_threads_before + DISK_CALL_MAX);
    /* One answers. */
    assert_int_equal(write(gate[1], "x", 1), 1);
    for (int i = 0; i < 1000 && call(99, false, &took) == -EAGAIN; i++)
        usleep(10000);
    assert_int_equal(call(99, false, &took), 0);
    assert_int_equal(write(gate[1], "xxxxxxxxxxxxxxxx", DISK_CALL_MAX - 1), DISK_CALL_MAX - 1);
    for (uint64_t dev = 100; dev < 100 + DISK_CALL_MAX; dev++)
        for (int i = 0; i < 1000 && disk_call_hangs(dev); i++)
            usleep(10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(another_thread_makes_the_access),
            cmocka_unit_test(a_disk_that_hangs_is_left_alone_until_it_answers),
            cmocka_unit_test(a_disk_that_often_hangs_is_given_up),
            cmocka_unit_test(two_threads_call_for_one_disk),
            cmocka_unit_test(the_number_of_threads_is_bounded),
    };

    n_threads_before = n_threads();
    if (pipe(gate) < 0)
        return EXIT_FAILURE;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
