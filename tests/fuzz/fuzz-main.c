/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs a fuzz target without libFuzzer, so that every build runs the corpora, and valgrind can run
 * them, too.
 *
 *     fuzz-NAME [--mutations=N] [--seed=N] FILE-OR-DIRECTORY…
 *
 * Runs each file, and N mutations of each (default 0), by the target's own mutator if it has one.
 */

#include "fuzz.h"

#include <dirent.h>
#include <err.h>
#include <getopt.h>
#include <string.h>
#include <sys/stat.h>

#define INPUT_MAX (1U << 20)

static FuzzRandom random_source;
static uint8_t input[INPUT_MAX];
static uint64_t n_files, n_runs;

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
        __attribute__((weak));

/* Flips, replaces, inserts, removes or copies bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    FuzzRandom *r = &random_source;
    size_t at = fuzz_below(r, size), n = 1 + fuzz_below(r, 8), from = fuzz_below(r, size);

    if (size == 0) {
        if (max_size == 0)
            return 0;
        data[0] = (uint8_t)fuzz_random(r);
        return 1;
    }
    switch (fuzz_below(r, 5)) {
    case 0:
        data[at] ^= (uint8_t)(1U << fuzz_below(r, 8));
        return size;
    case 1:
        data[at] = (uint8_t)fuzz_random(r);
        return size;
    case 2:
        n = MIN(n, max_size - size);
        memmove(data + at + n, data + at, size - at);
        for (size_t i = 0; i < n; i++)
            data[at + i] = (uint8_t)fuzz_random(r);
        return size + n;
    case 3:
        n = MIN(n, size - at);
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    default:
        memmove(data + at, data + from, MIN(n, size - MAX(at, from)));
        return size;
    }
}

static void run_file(const char *path, unsigned long n_mutations)
{
    static uint8_t original[INPUT_MAX];
    FILE *f = fopen(path, "re");
    size_t size;

    if (!f)
        err(EXIT_FAILURE, "%s", path);
    size = fread(original, 1, sizeof(original), f);
    fclose(f);
    n_files++;
    n_runs++;
    LLVMFuzzerTestOneInput(original, size);
    memcpy(input, original, size);
    for (size_t i = 0, n = size; i < n_mutations; i++, n_runs++) {
        if (i % 8 == 0) { /* an input is at most eight mutations away from its file */
            memcpy(input, original, size);
            n = size;
        }
        n = LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(input, n, sizeof(input),
                                                              (unsigned)fuzz_random(&random_source))
                                    : LLVMFuzzerMutate(input, n, sizeof(input));
        LLVMFuzzerTestOneInput(input, n);
    }
}

static void run_directory(const char *path, unsigned long n_mutations)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);

    if (n < 0)
        err(EXIT_FAILURE, "%s", path);
    for (int i = 0; i < n; i++) {
        char name[4096];

        snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            run_file(name, n_mutations);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char *argv[])
{
    static const struct option options[] = {{"mutations", required_argument, NULL, 'm'},
                                            {"seed", required_argument, NULL, 's'},
                                            {}};
    unsigned long n_mutations = 0;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
        switch (c) {
        case 'm':
            n_mutations = strtoul(optarg, NULL, 10);
            break;
        case 's':
            random_source.state = strtoul(optarg, NULL, 10);
            break;
        default:
            return EXIT_FAILURE;
        }
    for (int i = optind; i < argc; i++) {
        struct stat st;

        if (stat(argv[i], &st) < 0)
            err(EXIT_FAILURE, "%s", argv[i]);
        (S_ISDIR(st.st_mode) ? run_directory : run_file)(argv[i], n_mutations);
    }
    printf("%llu files, %llu inputs\n", (unsigned long long)n_files, (unsigned long long)n_runs);
    return n_files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
