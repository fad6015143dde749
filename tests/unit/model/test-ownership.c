/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/ownership.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#define ALICE  1000U
#define BOB    1001U
#define DAEMON 110U
#define USERS  100U /* a group with all users */

static void test_owner(void **state)
{
    (void)state;
    assert_true(ownership_allows(ALICE, ALICE, S_IFREG | 0644, ALICE));
    assert_true(ownership_allows(0, 0, S_IFREG | 0644, ALICE));
    assert_false(ownership_allows(BOB, BOB, S_IFREG | 0644, ALICE));
    assert_false(ownership_allows(DAEMON, DAEMON, S_IFREG | 0644, ALICE));
    /* Permission to read the file is not enough: a second account of the same person is another
     * user. */
    assert_false(ownership_allows(BOB, ALICE, S_IFREG | 0640, ALICE));
    assert_false(ownership_allows(ALICE, ALICE, S_IFREG | 0644, 0));
}

static void test_without_user(void **state)
{
    (void)state;
    assert_true(ownership_allows(0, 0, S_IFREG | 0600, OWNERSHIP_ANYBODY));
    assert_false(ownership_allows(ALICE, ALICE, S_IFREG | 0600, OWNERSHIP_ANYBODY));
    assert_false(ownership_allows(DAEMON, DAEMON, S_IFREG | 0600, OWNERSHIP_ANYBODY));
    /* The owner has the UID that stands for anybody, or for the system. */
    assert_false(ownership_allows(UINT32_MAX, 0, S_IFREG | 0600, OWNERSHIP_ANYBODY));
    assert_false(ownership_allows(UINT32_MAX - 1, 0, S_IFREG | 0600, OWNERSHIP_SYSTEM));

    assert_true(ownership_allows(0, 0, S_IFREG | 0600, OWNERSHIP_SYSTEM));
    assert_true(ownership_allows(DAEMON, DAEMON, S_IFREG | 0600, OWNERSHIP_SYSTEM));
    assert_true(ownership_allows(999, 999, S_IFREG | 0600, OWNERSHIP_SYSTEM));
    assert_false(ownership_allows(ALICE, ALICE, S_IFREG | 0600, OWNERSHIP_SYSTEM));
    assert_false(ownership_allows(65534, 65534, S_IFREG | 0600, OWNERSHIP_SYSTEM));
}

static void test_writable(void **state)
{
    static const uint32_t types[] = {S_IFREG, S_IFDIR, S_IFDIR | S_ISVTX};

    (void)state;
    for (size_t i = 0; i < ELEMENTSOF(types); i++) {
        assert_false(ownership_allows(ALICE, ALICE, types[i] | 0646, ALICE));
        assert_false(ownership_allows(0, 0, types[i] | 0777, ALICE));
        assert_false(ownership_allows(0, 0, types[i] | 0777, OWNERSHIP_ANYBODY));
        assert_false(ownership_allows(0, 0, types[i] | 0777, OWNERSHIP_SYSTEM));
        /* Groups that may have members, compared with root's group and a user's private one. */
        assert_false(ownership_allows(0, USERS, types[i] | 0775, ALICE));
        assert_false(ownership_allows(0, ALICE, types[i] | 0775, ALICE));
        assert_false(ownership_allows(ALICE, USERS, types[i] | 0775, ALICE));
        assert_true(ownership_allows(0, 0, types[i] | 0775, ALICE));
        assert_true(ownership_allows(ALICE, ALICE, types[i] | 0775, ALICE));
        /* A group that may only read makes no difference. */
        assert_true(ownership_allows(ALICE, USERS, types[i] | 0755, ALICE));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_owner),
            cmocka_unit_test(test_without_user),
            cmocka_unit_test(test_writable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
