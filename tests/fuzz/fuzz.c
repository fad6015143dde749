/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKENS_MAX 4096U

/* --- counting --------------------------------------------------------------------------------- */

static uint64_t n_inputs, n_accepted;

static void print_share(void)
{
    fprintf(stderr, "accepted: %.1f %% of %llu inputs\n",
            100.0 * (double)n_accepted / (double)n_inputs, (unsigned long long)n_inputs);
}

void fuzz_count(bool accepted)
{
    if (n_inputs++ == 0)
        (void)atexit(print_share);
    n_accepted += accepted;
}

/* --- random numbers --------------------------------------------------------------------------- */

uint64_t fuzz_random(FuzzRandom *r)
{
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t fuzz_below(FuzzRandom *r, uint64_t n)
{
    return n == 0 ? 0 : fuzz_random(r) % n;
}

uint64_t fuzz_number(FuzzRandom *r)
{
    switch (fuzz_below(r, 4)) {
    case 0:
        return fuzz_below(r, 16);
    case 1:
        return (UINT64_C(1) << fuzz_below(r, 64)) + fuzz_below(r, 3) - 1;
    case 2:
        return fuzz_below(r, 1U << 20) * 4096;
    default:
        return fuzz_random(r) >> fuzz_below(r, 64);
    }
}

/* --- JSON ------------------------------------------------------------------------------------- */

typedef struct Token {
    size_t at, length;
} Token;

/* Lists numbers and the contents of strings. Names of members are strings too: changing one tests
 * what happens if a member is missing. *ret_numbers and *ret_strings become their counts. */
static void list_tokens(const uint8_t *data, size_t size, Token *numbers, size_t *ret_numbers,
                        Token *strings, size_t *ret_strings)
{
    *ret_numbers = *ret_strings = 0;
    for (size_t i = 0; i < size;) {
        size_t from = i;

        if (data[i] == '"') {
            for (i++; i < size && data[i] != '"'; i++)
                if (data[i] == '\\')
                    i++;
            if (i < size && *ret_strings < TOKENS_MAX)
                strings[(*ret_strings)++] = (Token){from + 1, i - from - 1};
            i++;
        } else if (data[i] == '-' || (data[i] >= '0' && data[i] <= '9')) {
            for (i++; i < size && data[i] >= '0' && data[i] <= '9';)
                i++;
            if (*ret_numbers < TOKENS_MAX)
                numbers[(*ret_numbers)++] = (Token){from, i - from};
        } else
            i++;
    }
}

/* Replaces the token by the new bytes, if they fit. Returns the new size. */
static size_t replace(uint8_t *data, size_t size, size_t max_size, Token t, const void *new_bytes,
                      size_t n)
{
    if (size - t.length + n > max_size)
        return size;
    memmove(data + t.at + n, data + t.at + t.length, size - t.at - t.length);
    memcpy(data + t.at, new_bytes, n);
    return size - t.length + n;
}

static size_t change_number(FuzzRandom *r, uint8_t *data, size_t size, size_t max_size,
                            const Token *numbers, size_t n)
{
    Token t = numbers[fuzz_below(r, n)], other = numbers[fuzz_below(r, n)];
    char text[32] = "";
    long long value;

    memcpy(text, data + t.at, MIN(t.length, sizeof(text) - 1));
    value = strtoll(text, NULL, 10);
    switch (fuzz_below(r, 4)) {
    case 0: /* a near number */
        value = (long long)((uint64_t)value + fuzz_below(r, 9) - 4);
        break;
    case 1: /* another number of the text */
        memset(text, 0, sizeof(text));
        memcpy(text, data + other.at, MIN(other.length, sizeof(text) - 1));
        value = strtoll(text, NULL, 10);
        break;
    case 2:
        value = (long long)fuzz_number(r);
        break;
    default:
        value = value / 2;
    }
    snprintf(text, sizeof(text), "%lld", value);
    return replace(data, size, max_size, t, text, strlen(text));
}

static size_t change_string(FuzzRandom *r, uint8_t *data, size_t size, size_t max_size,
                            const Token *strings, size_t n)
{
    static const char *const words[] = {
            "boot", "login", "session",  "off",  "metadata",  "concurrent", "beside", "gate",
            "idle", "/",     "..",       "%00",  "%2F",       "%FF",        "%",      "",
            "ext4", "btrfs", "exact",    "hdd",  "cachestat", "derived",    "none",   "connector",
            "usr",  "bin",   "replayed", "proc", "control",   "incomplete", "ssd",    "xfs",
    };
    Token t = strings[fuzz_below(r, n)], other = strings[fuzz_below(r, n)];
    char copy[256];

    if (fuzz_below(r, 2) == 0) {
        const char *w = words[fuzz_below(r, ELEMENTSOF(words))];

        return replace(data, size, max_size, t, w, strlen(w));
    }
    memcpy(copy, data + other.at, MIN(other.length, sizeof(copy)));
    return replace(data, size, max_size, t, copy, MIN(other.length, sizeof(copy)));
}

size_t fuzz_json_mutate(FuzzRandom *r, uint8_t *data, size_t size, size_t max_size)
{
    static Token numbers[TOKENS_MAX], strings[TOKENS_MAX];
    size_t n_numbers, n_strings;

    list_tokens(data, size, numbers, &n_numbers, strings, &n_strings);
    if (n_numbers > 0 && fuzz_below(r, 8) != 0)
        return change_number(r, data, size, max_size, numbers, n_numbers);
    if (n_strings > 0)
        return change_string(r, data, size, max_size, strings, n_strings);
    return size;
}

size_t fuzz_take_text(uint8_t *data, size_t max_size, char *text, size_t size)
{
    bool fits = size <= max_size;

    if (fits)
        memcpy(data, text, size);
    free(text);
    return fits ? size : 0;
}

/* --- files ------------------------------------------------------------------------------------ */

static char root_path[64];

static void remove_root(void)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -rf '%s'", root_path);
    if (system(command) != 0)
        fprintf(stderr, "%s is left behind\n", root_path);
}

int fuzz_root(void)
{
    static int fd = -1;

    if (fd >= 0)
        return fd;
    strcpy(root_path, access("/dev/shm", W_OK) == 0 ? "/dev/shm/headstart-fuzz-XXXXXX"
                                                    : "/tmp/headstart-fuzz-XXXXXX");
    FUZZ_CHECK(mkdtemp(root_path));
    (void)atexit(remove_root);
    fd = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_CHECK(fd >= 0);
    return fd;
}

void fuzz_root_put(const char *path, const void *data, size_t size)
{
    int root = fuzz_root(), fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char above[512];

    if (fd < 0) {
        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
            snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
            FUZZ_CHECK(mkdirat(root, above, 0700) == 0 || errno == EEXIST);
        }
        fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    }
    FUZZ_CHECK(fd >= 0);
    FUZZ_CHECK(write(fd, data, size) == (ssize_t)size);
    close(fd);
}

size_t fuzz_split(const uint8_t *data, size_t size, const uint8_t **ret_rest, size_t *ret_rest_size)
{
    static const char line[] = "\n---\n";
    const uint8_t *at = size > 0 ? memmem(data, size, line, strlen(line)) : NULL;

    *ret_rest = at ? at + strlen(line) : data + size;
    *ret_rest_size = size - (size_t)(*ret_rest - data);
    return at ? (size_t)(at - data) + 1 : size;
}

int fuzz_memory_file(const void *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    FUZZ_CHECK(fd >= 0);
    FUZZ_CHECK(write(fd, data, size) == (ssize_t)size);
    FUZZ_CHECK(lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}
