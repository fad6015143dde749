/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests files that are stored compressed: the expanded content stays within its limit, and can be
 * compressed and expanded again. */

#include "fuzz.h"

#include "base/compressed-file.h"

#include <string.h>

#define TEXT_MAX ((size_t)1 << 20)

static void check_round_trip(const char *text, size_t size)
{
    _cleanup_free_ char *packed = NULL, *again = NULL;
    size_t packed_size, again_size;

    FUZZ_CHECK(gzip_compress(text, size, &packed, &packed_size) >= 0);
    FUZZ_CHECK(gzip_is_compressed(packed, packed_size));
    FUZZ_CHECK(gzip_expand(packed, packed_size, size, &again, &again_size) >= 0);
    FUZZ_CHECK(again_size == size && memcmp(again, text, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = NULL;
    char head[256];
    size_t n;
    int r;

    r = gzip_expand(data, size, TEXT_MAX, &text, &n);
    FUZZ_CHECK(r >= 0 || r == -EBADMSG || r == -E2BIG);
    fuzz_count(r >= 0);
    if (r >= 0) {
        FUZZ_CHECK(n <= TEXT_MAX && text[n] == 0);
        check_round_trip(text, n);
    }
    check_round_trip((const char *)data, size);
    fuzz_root_put("file", data, size);
    r = compressed_file_read_head(fuzz_root(), "file", head, sizeof(head), NULL);
    FUZZ_CHECK(r >= 0 || r == -EBADMSG);
    return 0;
}

/* --- mutation --------------------------------------------------------------------------------- */

/* In half of the cases changes the expanded content and compresses it again, because few changes of
 * the compressed bytes leave a valid member. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    FuzzRandom random = {seed}, *r = &random;
    _cleanup_free_ char *text = NULL;
    char *packed;
    size_t n, packed_size;

    if (fuzz_below(r, 2) == 0 || gzip_expand(data, size, max_size, &text, &n) < 0)
        return LLVMFuzzerMutate(data, size, max_size);
    text = realloc(text, max_size + 1);
    FUZZ_CHECK(text);
    n = LLVMFuzzerMutate((uint8_t *)text, n, max_size);
    if (gzip_compress(text, n, &packed, &packed_size) < 0)
        return size;
    n = fuzz_take_text(data, max_size, packed, packed_size);
    return n > 0 ? n : size;
}
