/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests how long sampling may take: of one file, in one batch, and for one user. Clock, fanotify
 * and page cache are fakes: the linker wraps the functions. */

#include "record/sampling.h"

#include "base/clock.h"
#include "observe/residency.h"
#include "util/record-util.h"

#include <fcntl.h>
#include <stdio.h>

#define FILES 100
#define AT    (10 * USEC_PER_SEC) /* since the stage's start: all samples are due */

static TestRoot root;
static struct {
    usec_t now, takes, latest;
    unsigned n_read;
} fake;

usec_t __wrap_clock_now(clockid_t clock);
int __wrap_fanotify_resolve(Fanotify *f, const LoggedObject *o, char *path, size_t size);
void __wrap_fanotify_resolve_done(Fanotify *f);
uint64_t __wrap_fanotify_call_dev(const Fanotify *f, const LoggedObject *o);
int __wrap_residency_read(int fd, uint64_t size, usec_t deadline, RangeSet *ret);

usec_t __wrap_clock_now(clockid_t clock)
{
    return fake.now;
}

int __wrap_fanotify_resolve(Fanotify *f, const LoggedObject *o, char *path, size_t size)
{
    return openat(root.fd, "file", O_PATH | O_CLOEXEC);
}

void __wrap_fanotify_resolve_done(Fanotify *f)
{
}

uint64_t __wrap_fanotify_call_dev(const Fanotify *f, const LoggedObject *o)
{
    return 0;
}

int __wrap_residency_read(int fd, uint64_t size, usec_t deadline, RangeSet *ret)
{
    assert_true(deadline <= fake.now + SAMPLING_FILE_USEC);
    assert_true(deadline <= fake.latest);
    fake.n_read++;
    fake.now += fake.takes;
    return 0;
}

static int set_up(void **state)
{
    if (test_root_make(&root) < 0)
        return -1;
    test_root_put(&root, "file", "x");
    return 0;
}

static int tear_down(void **state)
{
    return test_root_remove(&root);
}

/* Runs batches until the round has ended. Returns their number. */
static unsigned run_round(Sampling *s, const EventLog *log, UserShares *shares)
{
    unsigned n = 0;
    int r = 0;

    while (r == 0) {
        unsigned before = fake.n_read;
        usec_t begun = fake.now;

        assert_true(n++ < 10 * FILES);
        fake.latest = begun + SAMPLING_BATCH_USEC;
        r = sampling_run(s, log, shares, NULL, AT);
        assert_true(r >= 0);
        assert_true(fake.n_read - before <= SAMPLING_BATCH_FILES);
        /* The last file of a batch may end after the batch's time, but no file begins after it. */
        assert_true(fake.now < begun + SAMPLING_BATCH_USEC + MAX(fake.takes, (usec_t)1));
    }
    return n;
}

static void a_batch_ends_and_the_next_one_continues(void **state)
{
    static UserShares shares;
    EventLog *log = event_log_new();
    Sampling s = {0};

    memset(&fake, 0, sizeof(fake));
    fake.takes = SAMPLING_FILE_USEC / 5 * 3; /* the batch ends while a file is read */
    log_opens(log, &shares, 0, 0, FILES);
    assert_true(run_round(&s, log, &shares) >= FILES * fake.takes / SAMPLING_BATCH_USEC);
    assert_int_equal(fake.n_read, FILES);
    sampling_done(&s);
    event_log_free(log);
}

static void many_files_take_several_batches(void **state)
{
    static UserShares shares;
    EventLog *log = event_log_new();
    Sampling s = {0};

    memset(&fake, 0, sizeof(fake));
    for (unsigned i = 0; i < 5; i++)
        log_opens(log, &shares, 0, i * FILES, FILES);
    assert_true(run_round(&s, log, &shares) > 5 * FILES / SAMPLING_BATCH_FILES);
    assert_int_equal(fake.n_read, 5 * FILES);
    sampling_done(&s);
    event_log_free(log);
}

/* A user whose files take long uses up the share of this user only; the files of others are sampled
 * nevertheless. */
static void each_user_has_a_share_of_the_time(void **state)
{
    static UserShares shares;
    EventLog *log = event_log_new();
    uint16_t user = user_shares_row(&shares, 1000);
    Sampling s = {0};
    uint64_t share;

    memset(&fake, 0, sizeof(fake));
    share = user_shares_left(&shares, user, SHARED_SAMPLE_USEC);
    fake.takes = share / 5;
    log_opens(log, &shares, 1000, 0, FILES);
    (void)run_round(&s, log, &shares);
    assert_int_equal(fake.n_read, 5);
    assert_int_equal(user_shares_left(&shares, user, SHARED_SAMPLE_USEC), 0);
    fake.takes = 0;
    fake.n_read = 0;
    log_opens(log, &shares, 0, FILES, FILES);
    s.last = 0;
    s.unfinished = true;
    (void)run_round(&s, log, &shares);
    assert_int_equal(fake.n_read, FILES);
    sampling_done(&s);
    event_log_free(log);
}

/* A user without time left takes no place in a batch, and a file that this user opened is sampled
 * for another user who opened it. */
static void a_user_without_time_keeps_no_file_out(void **state)
{
    static UserShares shares;
    EventLog *log = event_log_new();
    uint16_t user = user_shares_row(&shares, 1000);
    Sampling s = {0};

    memset(&fake, 0, sizeof(fake));
    user_shares_charge(&shares, user, SHARED_SAMPLE_USEC,
                       user_shares_left(&shares, user, SHARED_SAMPLE_USEC));
    for (unsigned i = 0; i < 5; i++)
        log_opens(log, &shares, 1000, i * FILES, FILES);
    log_opens(log, &shares, 1001, 0, FILES);
    assert_int_equal(run_round(&s, log, &shares), 1);
    assert_int_equal(fake.n_read, FILES);
    sampling_done(&s);
    event_log_free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_batch_ends_and_the_next_one_continues),
            cmocka_unit_test(many_files_take_several_batches),
            cmocka_unit_test(each_user_has_a_share_of_the_time),
            cmocka_unit_test(a_user_without_time_keeps_no_file_out),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
