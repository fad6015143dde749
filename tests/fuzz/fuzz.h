/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the fuzz targets. Each target is one file fuzz-NAME.c with LLVMFuzzerTestOneInput()
 * and, where the input has a grammar, LLVMFuzzerCustomMutator(). With clang and -Dfuzz=true the
 * targets are linked with libFuzzer, otherwise with fuzz-main.c, which runs files.
 * tests/fuzz/README.md describes how to run them. */

#include "base/macros.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
/* Provided by libFuzzer or fuzz-main.c. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Ends the program if the condition is false: a finding. */
#define FUZZ_CHECK(condition)                                                             \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

/* Counts one input. The share of accepted inputs is printed at exit. */
void fuzz_count(bool accepted);

/* A pseudo-random generator (splitmix64). */
typedef struct FuzzRandom {
    uint64_t state;
} FuzzRandom;

uint64_t fuzz_random(FuzzRandom *r);
/* Returns a number below n; 0 if n is 0. */
uint64_t fuzz_below(FuzzRandom *r, uint64_t n);
/* Returns a number that is likely to reach a limit: a small one, a power of two or one of its
 * neighbours, a multiple of 4096, or any. */
uint64_t fuzz_number(FuzzRandom *r);

/* Changes one number or one string of a JSON text. In most cases the syntax stays valid. Returns
 * the new size; `size` if the text has nothing to change or would exceed max_size. */
size_t fuzz_json_mutate(FuzzRandom *r, uint8_t *data, size_t size, size_t max_size);

/* Copies `text` into the input if it fits. Returns its size, or 0 if it does not fit. Frees `text`.
 */
size_t fuzz_take_text(uint8_t *data, size_t max_size, char *text, size_t size);

/* Returns the descriptor of the directory that the tested code uses in place of "/". The directory
 * is in /dev/shm, or in /tmp if /dev/shm cannot be written. It is created at the first call and
 * removed at exit. */
int fuzz_root(void);
/* Writes the file below fuzz_root(). Makes the directories above the file if they are missing. */
void fuzz_root_put(const char *path, const void *data, size_t size);

/* Splits the input at the first line `---` that follows another line. Returns the size of the first
 * part; *ret_rest and *ret_rest_size are the second part. Without such a line the second part is
 * empty. */
size_t fuzz_split(const uint8_t *data, size_t size, const uint8_t **ret_rest,
                  size_t *ret_rest_size);

/* Returns a descriptor of an unnamed file in memory with this content. */
int fuzz_memory_file(const void *data, size_t size);
