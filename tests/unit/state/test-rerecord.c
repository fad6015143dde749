/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests when requests to record again expire. */

#include "state/rerecord.h"
#include "util/root-util.h"

#define WRITTEN 1767322800 /* seconds since 1970 */
#define NOW     ((usec_t)WRITTEN * USEC_PER_SEC)

static TestRoot root;

static int set_up(void **state)
{
    (void)state;
    return test_root_make(&root);
}

static int tear_down(void **state)
{
    (void)state;
    return test_root_remove(&root);
}

/* Writes a request for a login of user 1001 with that date. */
static void request(time_t written)
{
    const struct timespec times[2] = {{.tv_sec = written}, {.tv_sec = written}};

    assert_int_equal(rerecord_write(root.fd, STAGE_LOGIN, 1001, 4), 0);
    assert_int_equal(utimensat(root.fd, "rerecord-login", times, 0), 0);
}

static bool file_exists(void)
{
    return faccessat(root.fd, "rerecord-login", F_OK, 0) == 0;
}

/* A request expires after a week, also if it was read before. */
static void expires_after_it_was_read(void **state)
{
    Rerecord x;

    (void)state;
    request(WRITTEN);
    assert_int_equal(rerecord_read(root.path, NOW, &x), 0);
    assert_int_equal(rerecord_expire(root.path, NOW + RERECORD_MAX, &x), 0);
    assert_true(rerecord_matches(&x, STAGE_LOGIN, 1001));
    assert_true(x.stages[STAGE_LOGIN].exact);
    assert_true(file_exists());
    assert_int_equal(rerecord_expire(root.path, NOW + RERECORD_MAX + 1, &x), 0);
    assert_false(rerecord_is_requested(&x));
    assert_false(x.stages[STAGE_LOGIN].exact);
    assert_false(file_exists());
}

static void has_expired_when_it_is_read(void **state)
{
    Rerecord x;

    (void)state;
    request(WRITTEN);
    assert_int_equal(rerecord_read(root.path, NOW + RERECORD_MAX + 1, &x), 0);
    assert_false(rerecord_is_requested(&x));
    assert_false(file_exists());
}

/* The request expires that was read. A newer one is read in the next boot. */
static void a_newer_request_stays(void **state)
{
    Rerecord x;

    (void)state;
    request(WRITTEN);
    assert_int_equal(rerecord_read(root.path, NOW, &x), 0);
    request(WRITTEN + 3600);
    assert_int_equal(rerecord_expire(root.path, NOW + RERECORD_MAX + 1, &x), 0);
    assert_false(rerecord_is_requested(&x));
    assert_true(file_exists());
}

/* A request whose file cannot be removed is dropped, too. */
static void without_the_directory(void **state)
{
    Rerecord x;

    (void)state;
    request(WRITTEN);
    assert_int_equal(rerecord_read(root.path, NOW, &x), 0);
    assert_int_equal(rerecord_expire("/nonexistent/state", NOW + RERECORD_MAX, &x), 0);
    assert_int_equal(rerecord_expire("/nonexistent/state", NOW + RERECORD_MAX + 1, &x), -ENOENT);
    assert_false(rerecord_is_requested(&x));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
            TEST(expires_after_it_was_read),
            TEST(has_expired_when_it_is_read),
            TEST(a_newer_request_stays),
            TEST(without_the_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
