/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests that writes to a disk that does not answer are left behind. */

#include "base/clock.h"
#include "daemon/state-write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
    usec_t ahead; /* of the clock */
    usec_t step;  /* how much further it is ahead after each look at the event queue */
    unsigned n_drains;
    int gate; /* >= 0: the disk answers at the third look */
    atomic_uint n_freed;
} fake;

usec_t __wrap_clock_now(clockid_t clock);
int __wrap_recorder_drain(Recorder *recorder);

usec_t __wrap_clock_now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (usec_t)t.tv_sec * USEC_PER_SEC + (usec_t)t.tv_nsec / NSEC_PER_USEC + fake.ahead;
}

int __wrap_recorder_drain(Recorder *recorder)
{
    assert_non_null(recorder);
    fake.ahead += fake.step;
    if (++fake.n_drains == 3 && fake.gate >= 0) {
        assert_int_equal(write(fake.gate, "", 1), 1);
        fake.step = 0; /* however late the thread runs now */
    }
    return 0;
}

static Recorder *const recorder = (Recorder *)&fake; /* nothing looks into it */

typedef struct Write {
    StateWrite write;
    int gate[2]; /* the disk answers when this is written to */
} Write;

static void run(StateWrite *w)
{
    char byte;

    (void)!read(((Write *)w)->gate[0], &byte, 1);
}

static void release(StateWrite *w)
{
    Write *x = (Write *)w;

    close(x->gate[0]);
    close(x->gate[1]);
    free(x);
    fake.n_freed++;
}

static Write *make_write(void)
{
    Write *x = calloc(1, sizeof(*x));

    assert_non_null(x);
    x->write = (StateWrite){.run = run, .free = release};
    assert_int_equal(pipe(x->gate), 0);
    return x;
}

static void answer(const Write *x)
{
    assert_int_equal(write(x->gate[1], "", 1), 1);
}

static void started(Write *x)
{
    assert_int_equal(state_write_start(&x->write), 0);
}

static void reset(void)
{
    fake.ahead = fake.step = 0;
    fake.n_drains = 0;
    fake.gate = -1;
    fake.n_freed = 0;
}

static void a_write_that_ends_stays_with_its_owner(void **state)
{
    Write *x = make_write();

    reset();
    started(x);
    assert_false(state_write_has_ended(&x->write));
    answer(x);
    for (int i = 0; i < 2000 && !state_write_has_ended(&x->write); i++)
        usleep(10000);
    assert_true(state_write_has_ended(&x->write));
    assert_int_equal(state_write_finish(&x->write, NULL), 0);
    assert_int_equal(fake.n_freed, 0);
    release(&x->write);
}

/* The event queue is read meanwhile. */
static void a_slow_write_is_awaited(void **state)
{
    Write *x = make_write();

    reset();
    started(x);
    fake.step = STATE_WRITE_USEC / 10;
    fake.gate = x->gate[1];
    assert_int_equal(state_write_finish(&x->write, recorder), 0);
    assert_true(fake.n_drains >= 3);
    release(&x->write);
}

static void a_write_that_hangs_is_left_behind(void **state)
{
    Write *x = make_write(), *before = make_write(), *later = make_write();

    reset();
    started(before);
    started(x);
    fake.step = STATE_WRITE_USEC / 4;
    assert_int_equal(state_write_finish(&x->write, recorder), -ETIMEDOUT);
    assert_true(fake.n_drains >= 4);
    /* While it hangs, other writes are not awaited, and none begins. */
    fake.n_drains = 0;
    assert_int_equal(state_write_finish(&before->write, recorder), -ETIMEDOUT);
    assert_int_equal(fake.n_drains, 1);
    assert_int_equal(state_write_start(&later->write), -ETIMEDOUT);
    assert_int_equal(fake.n_freed, 0);
    /* The disk answers. The threads free what they were given. */
    answer(x);
    answer(before);
    for (int i = 0; i < 2000 && fake.n_freed < 2; i++)
        usleep(10000);
    assert_int_equal(fake.n_freed, 2);
    started(later);
    answer(later);
    assert_int_equal(state_write_finish(&later->write, recorder), 0);
    release(&later->write);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_write_that_ends_stays_with_its_owner),
            cmocka_unit_test(a_slow_write_is_awaited),
            cmocka_unit_test(a_write_that_hangs_is_left_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
