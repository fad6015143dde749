/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "session/launch-use.h"
#include "util/range-util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void ranges(const char *text, RangeSet *ret)
{
    unsigned a, b;
    int n;

    for (; sscanf(text, "%u-%u%n", &a, &b, &n) == 2; text += n + (text[n] == ','))
        assert_int_equal(range_set_insert_span(ret, a, b), 0);
}

/* The words are ranges: resident and seen before, resident and seen after, planned, needed. */
static void check(const char *resident, const char *seen, const char *resident_after,
                  const char *seen_after, const char *planned, const char *needed)
{
    CachedPages before = {0}, after = {0};
    _cleanup_range_set_ RangeSet set = {0}, found = {0}, wanted = {0};

    ranges(resident, &before.resident);
    ranges(seen, &before.seen);
    ranges(resident_after, &after.resident);
    ranges(seen_after, &after.seen);
    ranges(planned, &set);
    ranges(needed, &wanted);
    assert_int_equal(launch_need_compute(&before, &after, &set, &found), 0);
    assert_true(range_set_equal(&found, &wanted));
    cached_pages_done(&before);
    cached_pages_done(&after);
}

static void what_a_start_needs(void **state)
{
    (void)state;
    check("", "", "", "", "0-9", "");                /* it has read nothing */
    check("", "", "2-4", "2-4", "0-9", "2-4");       /* it has read a part of the set, … */
    check("", "", "12-14", "12-14", "0-9", "12-14"); /* or what is not in the set */
    check("1-3", "1-3", "1-3", "1-3", "0-9", "1-3"); /* unknown, so it stays in the set */
    check("1-3", "1-3", "1-3", "1-3", "6-9", "");    /* unknown, and not in the set */
    check("", "5-6", "", "5-6", "0-9", "");          /* reclaimed before the start */
    check("", "", "", "5-6", "0-9", "5-6");          /* read, and reclaimed during the start */
    check("", "5-6", "5-6", "5-6", "0-9", "5-6");    /* reclaimed before, and read again */
    check("1-3", "1-3,5-6", "1-5", "1-6", "0-2", "1-2,3-5");
}

static void parts_are_collected(void **state)
{
    LaunchUses uses = {0};
    LaunchUse *u = &uses.items[uses.n++];
    _cleanup_range_set_ RangeSet set = {0};

    (void)state;
    u->key = (LaunchKey){1000, 7};
    assert_int_equal(launch_use_add(u, "a", 0, &set), 0);
    assert_int_equal(u->n, 0); /* nothing was needed */
    ranges("1-3", &set);
    assert_int_equal(launch_use_add(u, "0123456789012345678901234567890123456789", 5, &set),
                     -EINVAL);
    assert_int_equal(set.n, 1);
    assert_int_equal(launch_use_add(u, "a", 5, &set), 0);
    assert_int_equal(set.n, 0);
    for (unsigned i = 0; i < LAUNCH_NEED_RANGES_MAX; i++)
        assert_int_equal(range_set_insert(&set, 2 * i, 1), 0);
    assert_int_equal(u->n_ranges, 1);
    assert_int_equal(launch_use_add(u, "a", 6, &set), -E2BIG);
    assert_int_equal(u->n, 1);
    assert_int_equal(u->needs[0].inode, 5);
    assert_true(launch_uses_have(&uses, (LaunchKey){1000, 7}));
    assert_false(launch_uses_have(&uses, (LaunchKey){1001, 7}));
    assert_false(launch_uses_have(&uses, (LaunchKey){1000, 8}));
    launch_uses_done(&uses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(what_a_start_needs),
            cmocka_unit_test(parts_are_collected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
