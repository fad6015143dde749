/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests files that are stored compressed: base/compressed-file.h. */

#include "base/atomic-file.h"
#include "base/compressed-file.h"
#include "util/root-util.h"

#include <string.h>
#include <sys/stat.h>

#define EVERY_SIZE_MAX 300U
#define BOMB_SIZE      ((size_t)32 << 20)

static TestRoot root;

static int set_up(void **state)
{
    return test_root_make(&root);
}

static int tear_down(void **state)
{
    return test_root_remove(&root);
}

/* Fills `buf` with a text that compresses to about half its size. */
static void fill(char *buf, size_t size)
{
    unsigned x = 1;

    for (size_t i = 0; i < size; i++)
        buf[i] = (char)('a' + ((x = x * 1103515245 + 12345) >> 20) % 16);
}

static void every_size_comes_back(void **state)
{
    char text[EVERY_SIZE_MAX];

    fill(text, sizeof(text));
    for (size_t size = 0; size <= sizeof(text); size++) {
        _cleanup_free_ char *packed = NULL, *got = NULL;
        size_t n, got_size;

        assert_int_equal(gzip_compress(text, size, &packed, &n), 0);
        assert_true(gzip_is_compressed(packed, n));
        assert_int_equal(gzip_expand(packed, n, size, &got, &got_size), 0);
        assert_int_equal(got_size, size);
        assert_memory_equal(got, text, size);
        assert_int_equal(got[size], 0);
    }
}

static void output_depends_on_input_alone(void **state)
{
    _cleanup_free_ char *a = NULL, *b = NULL;
    char text[5000];
    size_t n_a, n_b;

    fill(text, sizeof(text));
    assert_int_equal(gzip_compress(text, sizeof(text), &a, &n_a), 0);
    assert_int_equal(gzip_compress(text, sizeof(text), &b, &n_b), 0);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    assert_true(n_a < sizeof(text) * 2 / 3);
}

static void a_bomb_is_refused(void **state)
{
    _cleanup_free_ char *zeros = calloc(1, BOMB_SIZE), *packed = NULL, *got = NULL;
    size_t n, got_size = 7;

    assert_non_null(zeros);
    assert_int_equal(gzip_compress(zeros, BOMB_SIZE, &packed, &n), 0);
    assert_true(n < BOMB_SIZE / 900);
    assert_int_equal(gzip_expand(packed, n, BOMB_SIZE - 1, &got, &got_size), -E2BIG);
    assert_int_equal(gzip_expand(packed, n, 1000, &got, &got_size), -E2BIG);
    assert_null(got);
    assert_int_equal(got_size, 7);
    assert_int_equal(gzip_expand(packed, n, BOMB_SIZE, &got, &got_size), 0);
    assert_int_equal(got_size, BOMB_SIZE);
}

static void damage_is_noticed(void **state)
{
    _cleanup_free_ char *packed = NULL, *longer = NULL;
    char text[2000], *got = NULL;
    size_t n, size, n_accepted = 0;

    fill(text, sizeof(text));
    assert_int_equal(gzip_compress(text, sizeof(text), &packed, &n), 0);
    for (size_t i = 0; i < n; i++)
        assert_true(gzip_expand(packed, i, sizeof(text), &got, &size) < 0);
    /* The header contains a time and an operating system, which are ignored. */
    for (size_t i = 10; i < n; i++) {
        packed[i] ^= 0x10;
        /* The bits that fill up the last byte of the data have no meaning. */
        if (gzip_expand(packed, n, sizeof(text), &got, &size) >= 0) {
            assert_int_equal(size, sizeof(text));
            assert_memory_equal(got, text, size);
            free(got);
            n_accepted++;
        }
        packed[i] ^= 0x10;
    }
    assert_true(n_accepted <= 1);
    longer = calloc(1, n + 1);
    assert_non_null(longer);
    memcpy(longer, packed, n);
    assert_true(gzip_expand(longer, n + 1, sizeof(text), &got, &size) < 0);
    assert_int_equal(gzip_expand("plain", 5, 5, &got, &size), -EBADMSG);
}

static void files_are_read_compressed_and_plain(void **state)
{
    _cleanup_free_ char *a = NULL, *b = NULL;
    const char *reason = NULL;
    char text[5000];
    struct stat st;
    size_t n;

    fill(text, sizeof(text));
    assert_int_equal(compressed_file_write(root.fd, "a", text, sizeof(text), 0600), 0);
    assert_int_equal(fstatat(root.fd, "a", &st, 0), 0);
    assert_true(st.st_size < (off_t)sizeof(text) * 2 / 3);
    assert_int_equal(compressed_file_read(root.fd, "a", sizeof(text), &a, &n, &reason), 0);
    assert_int_equal(n, sizeof(text));
    assert_memory_equal(a, text, n);
    assert_int_equal(atomic_file_write(root.fd, "b", text, sizeof(text), 0600), 0);
    assert_int_equal(compressed_file_read(root.fd, "b", sizeof(text), &b, &n, NULL), 0);
    assert_memory_equal(b, text, sizeof(text));
    assert_null(reason);
}

static void a_bad_file_has_a_reason(void **state)
{
    _cleanup_free_ char *got = NULL;
    const char *reason = NULL;
    char text[5000];
    size_t n;

    fill(text, sizeof(text));
    assert_int_equal(compressed_file_write(root.fd, "a", text, sizeof(text), 0600), 0);
    assert_int_equal(compressed_file_read(root.fd, "a", sizeof(text) - 1, &got, &n, &reason),
                     -E2BIG);
    assert_null(reason);
    test_root_put(&root, "c", "\x1f\x8b and more");
    assert_int_equal(compressed_file_read(root.fd, "c", 1000, &got, &n, &reason), -EBADMSG);
    assert_string_equal(reason, "the compressed data are damaged");
    assert_int_equal(mkfifoat(root.fd, "p", 0600), 0);
    assert_int_equal(compressed_file_read(root.fd, "p", 1000, &got, &n, &reason), -EBADMSG);
    assert_string_equal(reason, "not a regular file");
    assert_int_equal(compressed_file_read(root.fd, "none", 1000, &got, &n, &reason), -ENOENT);
}

static void heads_are_read(void **state)
{
    char text[50000], head[1000];
    uint64_t size = 0;

    fill(text, sizeof(text));
    for (int plain = 0; plain < 2; plain++) {
        if (plain)
            assert_int_equal(atomic_file_write(root.fd, "a", text, sizeof(text), 0600), 0);
        else
            assert_int_equal(compressed_file_write(root.fd, "a", text, sizeof(text), 0600), 0);
        memset(head, 'x', sizeof(head));
        assert_int_equal(compressed_file_read_head(root.fd, "a", head, sizeof(head), &size), 0);
        assert_int_equal(size, sizeof(text));
        assert_int_equal(strlen(head), sizeof(head) - 1);
        assert_memory_equal(head, text, sizeof(head) - 1);
    }
    assert_int_equal(compressed_file_write(root.fd, "a", "short", 5, 0600), 0);
    assert_int_equal(compressed_file_read_head(root.fd, "a", head, sizeof(head), &size), 0);
    assert_int_equal(size, 5);
    assert_string_equal(head, "short");
    test_root_put(&root, "c", "\x1f\x8b and more");
    assert_int_equal(compressed_file_read_head(root.fd, "c", head, sizeof(head), NULL), -EBADMSG);
    assert_int_equal(compressed_file_read_head(root.fd, "none", head, sizeof(head), NULL), -ENOENT);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_size_comes_back),
            cmocka_unit_test(output_depends_on_input_alone),
            cmocka_unit_test(a_bomb_is_refused),
            cmocka_unit_test(damage_is_noticed),
            cmocka_unit_test_setup_teardown(files_are_read_compressed_and_plain, set_up, tear_down),
            cmocka_unit_test_setup_teardown(a_bad_file_has_a_reason, set_up, tear_down),
            cmocka_unit_test_setup_teardown(heads_are_read, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("compressed-file", tests, NULL, NULL);
}
