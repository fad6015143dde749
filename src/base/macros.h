/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Cleanup attributes, transfer of ownership, arithmetic. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(f)   __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _unused_       __attribute__((unused))

#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))

/* These may evaluate an argument twice. */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Unlike fmin(3) and fmax(3), these need no call of a function. If `a` is not a number, they return
 * `b`. */
static inline double min_double(double a, double b)
{
    return a < b ? a : b;
}

static inline double max_double(double a, double b)
{
    return a > b ? a : b;
}

/* clang-format would take (a) for a cast, so it is switched off here. */
/* clang-format off */
#define ALIGN_DOWN(x, a)   ((x) / (a) * (a))
#define ALIGN_UP(x, a)     (((x) + (a) - 1) / (a) * (a))
#define DIV_ROUND_UP(x, y) (((x) + (y) - 1) / (y))
/* clang-format on */

/* Returns the pointer (or descriptor) and resets the variable, so that its cleanup does nothing. */
#define TAKE_PTR(p)                \
    __extension__({                \
        __typeof__(p) *_pp = &(p); \
        __typeof__(p) _p = *_pp;   \
        *_pp = NULL;               \
        _p;                        \
    })
#define TAKE_FD(fd)        \
    __extension__({        \
        int *_fdp = &(fd); \
        int _fd = *_fdp;   \
        *_fdp = -EBADF;    \
        _fd;               \
    })

/* Defines `static inline void FREE_FUNCp(type *p)`, where FREE_FUNC is `free_func`, for use with
 * _cleanup_. `type` is a pointer type. */
#define DEFINE_CLEANUP(type, free_func)      \
    static inline void free_func##p(type *p) \
    {                                        \
        if (*p)                              \
            free_func(*p);                   \
    }                                        \
    struct swallow_semicolon

static inline void freep(void *p)
{
    free(*(void **)p);
}

static inline void closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

#define _cleanup_free_  _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)

/* Returns from the calling function if `call` fails: for sequences of calls that need no
 * cleanup. */
#define CHECK(call)      \
    do {                 \
        int _r = (call); \
        if (_r < 0)      \
            return _r;   \
    } while (0)

/* Makes room for `need` elements of `elem_size` bytes in *array. If the array grows, its size at
 * least doubles. Returns 0, or -ENOMEM (then *array and *allocated are untouched). */
static inline int grow_array(void *array, size_t *allocated, size_t need, size_t elem_size)
{
    void **a = array;
    size_t n = *allocated;

    if (need <= n)
        return 0;
    n = MAX(MAX(n * 2, need), (size_t)8);

    void *p = reallocarray(*a, n, elem_size);
    if (!p)
        return -ENOMEM;
    *a = p;
    *allocated = n;
    return 0;
}

/* Like grow_array(), and zeroes the new elements. */
static inline int grow_array_zeroed(void *array, size_t *allocated, size_t need, size_t elem_size)
{
    size_t old = *allocated;
    int r = grow_array(array, allocated, need, elem_size);

    if (r >= 0 && *allocated > old)
        memset(*(char **)array + old * elem_size, 0, (*allocated - old) * elem_size);
    return r;
}
