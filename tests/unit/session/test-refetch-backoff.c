/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests when reclaimed ranges are read again: session/refetch-backoff.h. */

#include "session/refetch-backoff.h"
#include "util/range-util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* needs the four headers above */
#include <cmocka.h>

#define S    USEC_PER_SEC
#define WAIT REFETCH_WAIT_MIN_USEC

/* Returns how many bytes are due if the range start .. end is missing. */
static uint64_t due(const RefetchBackoff *b, const char *path, usec_t now, uint64_t start,
                    uint64_t end)
{
    _cleanup_range_set_ RangeSet missing = {0};

    assert_int_equal(range_set_insert_span(&missing, start, end), 0);
    assert_int_equal(refetch_backoff_filter(b, path, now, &missing), 0);
    return range_set_total(&missing);
}

/* Like due(), and notes that these bytes are read, one part after the other. */
static uint64_t fetched(RefetchBackoff **b, const char *path, usec_t now, uint64_t start,
                        uint64_t end)
{
    _cleanup_range_set_ RangeSet missing = {0};

    assert_int_equal(range_set_insert_span(&missing, start, end), 0);
    assert_int_equal(refetch_backoff_filter(*b, path, now, &missing), 0);
    for (size_t i = 0; i < missing.n; i++) {
        Range x = missing.ranges[i];
        uint64_t middle = x.offset + x.length / 2;

        assert_int_equal(
                refetch_backoff_note_read(b, path, now, (Range){x.offset, middle - x.offset}), 0);
        assert_int_equal(
                refetch_backoff_note_read(b, path, now, (Range){middle, range_end(&x) - middle}),
                0);
    }
    return range_set_total(&missing);
}

static void lost_again_waits_longer(void **state)
{
    RefetchBackoff *b = NULL;
    usec_t now = 1000 * S;

    assert_int_equal(fetched(&b, "/a", now, 0, 100), 100);
    assert_int_equal(fetched(&b, "/a", now + 20 * S, 0, 100), 0);
    assert_int_equal(fetched(&b, "/b", now + 20 * S, 0, 100), 100);
    assert_int_equal(fetched(&b, "/a", now + WAIT - 1, 0, 100), 0);
    now += WAIT;
    for (usec_t wait = 2 * WAIT; wait < 2 * REFETCH_WAIT_MAX_USEC; wait *= 2) {
        usec_t bounded = MIN(wait, REFETCH_WAIT_MAX_USEC);

        assert_int_equal(fetched(&b, "/a", now, 0, 100), 100);
        assert_int_equal(fetched(&b, "/a", now + bounded - 1, 0, 100), 0);
        now += bounded;
    }
    b = refetch_backoff_free(b);
}

static void what_stayed_for_long_is_fetched_at_once(void **state)
{
    RefetchBackoff *b = NULL;
    usec_t now = S;

    assert_int_equal(fetched(&b, "/a", now, 0, 100), 100);
    assert_int_equal(fetched(&b, "/a", now + WAIT, 0, 100), 100); /* waits 2 WAIT now */
    now += WAIT + 4 * 2 * WAIT;
    assert_int_equal(fetched(&b, "/a", now, 0, 100), 100);
    assert_int_equal(fetched(&b, "/a", now + WAIT, 0, 100), 100);
    b = refetch_backoff_free(b);
}

static void other_parts_do_not_wait(void **state)
{
    RefetchBackoff *b = NULL;

    assert_int_equal(fetched(&b, "/a", S, 0, 100), 100);
    assert_int_equal(fetched(&b, "/a", 2 * S, 50, 250), 150);
    assert_int_equal(fetched(&b, "/a", 3 * S, 0, 250), 0);
    assert_int_equal(fetched(&b, "/a", S + WAIT, 0, 300), 300);
    b = refetch_backoff_free(b);
}

/* A range that was requested but not read, because the job was cancelled, is due at once. */
static void what_was_not_read_is_not_brought(void **state)
{
    RefetchBackoff *b = NULL;

    assert_int_equal(due(b, "/a", S, 0, 100), 100);
    assert_int_equal(due(b, "/a", S, 0, 100), 100);
    assert_int_equal(refetch_backoff_note_read(&b, "/a", S, (Range){0, 40}), 0);
    assert_int_equal(due(b, "/a", 2 * S, 0, 100), 60);
    assert_int_equal(due(b, "/a", S + WAIT, 0, 100), 100);
    /* Reading the first part once more does not delay the rest either. */
    assert_int_equal(refetch_backoff_note_read(&b, "/a", S + WAIT, (Range){0, 40}), 0);
    assert_int_equal(due(b, "/a", S + WAIT + 1, 0, 100), 60);
    b = refetch_backoff_free(b);
}

static void directories_by_time(void **state)
{
    RefetchBackoff *b = NULL;

    assert_true(refetch_backoff_list_due(&b, "/d", S, 300 * S));
    assert_false(refetch_backoff_list_due(&b, "/d", 300 * S, 300 * S));
    assert_true(refetch_backoff_list_due(&b, "/d", 301 * S, 300 * S));
    assert_false(refetch_backoff_list_due(&b, "/d", 600 * S, 300 * S));
    b = refetch_backoff_free(b);
}

static void memory_is_bounded(void **state)
{
    static char path[4000];
    RefetchBackoff *b = NULL;
    char name[32];

    /* More directories than the prefetch thread looks up in a pass: each is listed once in an
     * interval. */
    for (unsigned i = 0; i < REFETCH_PATHS_MAX; i++) {
        snprintf(name, sizeof(name), "/%u", i);
        assert_true(refetch_backoff_list_due(&b, name, S, 300 * S));
    }
    assert_false(refetch_backoff_list_due(&b, "/0", 20 * S, 300 * S));
    assert_false(refetch_backoff_list_due(&b, "/9000", 20 * S, 300 * S));
    /* There is no room for another one, which forgets none of them. */
    assert_true(refetch_backoff_list_due(&b, "/one more", 20 * S, 300 * S));
    assert_true(refetch_backoff_list_due(&b, "/one more", 21 * S, 300 * S));
    assert_false(refetch_backoff_list_due(&b, "/0", 22 * S, 300 * S));
    /* When the delays have ended, the oldest is forgotten. "/0" is listed again, so it is not the
     * oldest. */
    assert_true(refetch_backoff_list_due(&b, "/0", 400 * S, 300 * S));
    assert_true(refetch_backoff_list_due(&b, "/one more", 400 * S, 300 * S));
    assert_false(refetch_backoff_list_due(&b, "/one more", 401 * S, 300 * S));
    assert_false(refetch_backoff_list_due(&b, "/0", 401 * S, 300 * S));
    b = refetch_backoff_free(b);
    assert_null(b);
    /* Long names leave room for fewer paths. */
    memset(path, 'x', sizeof(path) - 1);
    for (unsigned i = 0; i < REFETCH_BYTES_MAX / sizeof(path) + 1; i++) {
        snprintf(name, sizeof(name), "/%u", i);
        memcpy(path, name, strlen(name));
        path[sizeof(path) - 1] = 0;
        assert_true(refetch_backoff_list_due(&b, path, S, 300 * S));
    }
    assert_true(refetch_backoff_list_due(&b, path, 2 * S, 300 * S));
    b = refetch_backoff_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(lost_again_waits_longer),
            cmocka_unit_test(what_stayed_for_long_is_fetched_at_once),
            cmocka_unit_test(other_parts_do_not_wait),
            cmocka_unit_test(what_was_not_read_is_not_brought),
            cmocka_unit_test(directories_by_time),
            cmocka_unit_test(memory_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
