/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests headstart.conf and one drop-in: the parts of the input before and after a line `---`. */

#include "fuzz.h"

#include "config/config-internal.h"

#include <inttypes.h>
#include <string.h>

static void on_warning(void *userdata, const char *file, unsigned line, const char *message)
{
    unsigned *n = userdata;

    FUZZ_CHECK(file && message && !strchr(message, '\n'));
    (*n)++;
}

/* Loads the configuration. Returns the number of warnings. */
static unsigned load(const uint8_t *data, size_t size, Config *ret, ConfigSources *ret_sources)
{
    const uint8_t *rest;
    size_t rest_size, first = fuzz_split(data, size, &rest, &rest_size);
    unsigned n_warnings = 0;

    fuzz_root_put("etc/headstart/headstart.conf", data, first);
    fuzz_root_put("usr/lib/headstart/headstart.conf.d/50-fuzz.conf", rest, rest_size);
    FUZZ_CHECK(config_load(fuzz_root(), on_warning, &n_warnings, ret, ret_sources) >= 0);
    return n_warnings;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ConfigSources sources;
    Config c;

    fuzz_count(load(data, size, &c, &sources) == 0);
    FUZZ_CHECK(c.halflife_usec > 0);
    FUZZ_CHECK(c.deadline_usec <= CONFIG_DEADLINE_MAX);
    FUZZ_CHECK(c.cycle_usec >= CONFIG_CYCLE_MIN && c.cycle_usec <= CONFIG_CYCLE_MAX);
    FUZZ_CHECK(strnlen(c.exclude, sizeof(c.exclude)) < sizeof(c.exclude));
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        char *text = config_format(&c, i);

        FUZZ_CHECK(text);
        free(text);
    }
    config_sources_done(&sources);
    return 0;
}

/* --- mutation --------------------------------------------------------------------------------- */

/* Writes a random value: a word of the configuration, or a number with a unit. */
static void random_value(FuzzRandom *r, char *value, size_t size)
{
    static const char *const words[] = {
            "auto", "thesis", "yes",      "no",       "off",        "idle", "gate", "concurrent",
            "",     "beside", "metadata", "infinity", "/a !/a/b /", "/%s",  "1",    "1min 30s",
    };
    static const char *const units[] = {"", "us", "ms", "s", "min", "h", "K", "M", "G", "%"};

    if (fuzz_below(r, 2) == 0)
        snprintf(value, size, "%s", words[fuzz_below(r, ELEMENTSOF(words))]);
    else
        snprintf(value, size, "%s%" PRIu64 "%s", fuzz_below(r, 8) == 0 ? "-" : "",
                 fuzz_number(r) >> fuzz_below(r, 64), units[fuzz_below(r, ELEMENTSOF(units))]);
}

/* Writes a section with one key, and in most cases a value that the key accepts. */
static void random_assignment(FuzzRandom *r, char *text, size_t size)
{
    size_t key = fuzz_below(r, CONFIG_KEYS), index;
    char value[128];

    for (unsigned i = 0; i < 64; i++) {
        Config c = config_default();
        const char *reason;

        random_value(r, value, sizeof(value));
        if (fuzz_below(r, 64) == 0 ||
            config_set(&c, config_section(key), config_key(key), value, &index, &reason) >= 0)
            break;
    }
    snprintf(text, size, "[%s]\n%s=%s\n", config_section(key), config_key(key), value);
}

/* Returns a random place where a section can begin: before another section or at the end of a
 * file. */
static size_t random_boundary(FuzzRandom *r, const uint8_t *data, size_t size)
{
    size_t chosen = size, n = 1;

    for (size_t at = 0; at < size; at++)
        if ((at == 0 || data[at - 1] == '\n') && (data[at] == '[' || data[at] == '-') &&
            fuzz_below(r, ++n) == 0)
            chosen = at;
    return chosen;
}

/* Inserts a text at the position if it fits. Returns the new size. */
static size_t insert(uint8_t *data, size_t size, size_t max_size, size_t at, const char *text)
{
    size_t n = strlen(text);

    if (size + n > max_size)
        return size;
    memmove(data + at + n, data + at, size - at);
    memcpy(data + at, text, n);
    return size + n;
}

/* Removes a line that assigns a value. Returns the new size. */
static size_t remove_assignment(FuzzRandom *r, uint8_t *data, size_t size)
{
    size_t from = 0, length = 0, n = 0;

    for (size_t at = 0, l; at < size; at += l) {
        const uint8_t *end = memchr(data + at, '\n', size - at);

        l = end ? (size_t)(end - data) + 1 - at : size - at;
        if (memchr(data + at, '=', l) && fuzz_below(r, ++n) == 0)
            from = at, length = l;
    }
    memmove(data + from, data + from + length, size - from - length);
    return size - length;
}

/* Changes bytes, or adds and removes assignments. For the latter it begins with an empty text if
 * the input has errors, because most changes would not remove the errors. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    FuzzRandom random = {seed}, *r = &random;
    char text[256];
    Config c;

    if (fuzz_below(r, 4) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    if (load(data, size, &c, NULL) > 0)
        size = 0;
    if (size > 0 && data[size - 1] != '\n')
        size = insert(data, size, max_size, size, "\n");
    if (size > 0 && fuzz_below(r, 4) == 0)
        size = remove_assignment(r, data, size);
    for (uint64_t i = fuzz_below(r, 4) + 1; i > 0; i--) {
        random_assignment(r, text, sizeof(text));
        size = insert(data, size, max_size, random_boundary(r, data, size), text);
    }
    if (fuzz_below(r, 8) == 0)
        size = insert(data, size, max_size, random_boundary(r, data, size), "---\n");
    return size;
}
