/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The history of boots and logins, and the statistics over it. */

#include "fuzz.h"

#include "measure/benefit.h"
#include "measure/history.h"

#include <string.h>

#define NOW (UINT64_C(1790000000) * USEC_PER_SEC)

static void check_line(const SessionRecord *s)
{
    _cleanup_free_ char *first = NULL, *second = NULL;
    SessionRecord again;
    size_t first_size, second_size;

    FUZZ_CHECK(session_record_to_line(s, &first, &first_size) >= 0);
    FUZZ_CHECK(first_size > 0 && first[first_size - 1] == '\n');
    FUZZ_CHECK(session_record_from_line(first, first_size - 1, &again) >= 0);
    FUZZ_CHECK(session_record_to_line(&again, &second, &second_size) >= 0);
    FUZZ_CHECK(first_size == second_size && memcmp(first, second, first_size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_history_ History h = {0};
    _cleanup_free_ SessionExclusion *exclusions = NULL;

    fuzz_root_put(HISTORY_FILE, data, size);
    FUZZ_CHECK(history_read(fuzz_root(), HISTORY_WINDOW, &h) >= 0);
    fuzz_count(h.n > 0);
    for (size_t i = 0; i < h.n; i++)
        check_line(&h.sessions[i]);
    exclusions = calloc(h.n + 1, sizeof(*exclusions));
    FUZZ_CHECK(exclusions);
    sessions_exclude(h.sessions, h.n, exclusions);
    for (Stage stage = 0; stage < _STAGE_MAX; stage++) {
        Benefit b;

        FUZZ_CHECK(benefit_compute(h.sessions, h.n, stage, NOW, &b) >= 0);
        (void)benefit_control_interval(&b, 0, NOW);
    }
    return 0;
}

/* Changes bytes or the JSON of the lines. In some cases repeats the first line before it changes
 * the JSON. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    FuzzRandom random = {seed}, *r = &random;
    const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t line = end ? (size_t)(end - data) + 1 : 0;

    if (fuzz_below(r, 10) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    if (line > 0 && fuzz_below(r, 4) == 0 && size + line <= max_size) {
        memmove(data + line, data, size);
        size += line;
    }
    return fuzz_json_mutate(r, data, size, max_size);
}
