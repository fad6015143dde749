/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/touched.h"

#include "base/clock.h"
#include "base/rooted.h"
#include "record/mapping.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Entries of pagemap that are read at once. */
#define CHUNK 4096U

void touched_done(Touched *t)
{
    for (size_t i = 0; i < t->n; i++)
        range_set_done(&t->files[i].ranges);
    free(t->files);
    *t = (Touched){0};
}

/* One process that is examined. */
typedef struct Examined {
    const ProcessRun *run;
    int pagemap_fd;
    uint64_t page_bytes;
    uint64_t n_pages; /* examined so far */
    usec_t deadline;  /* on CLOCK_MONOTONIC */
} Examined;

/* Reads the touched pages of one mapping. Returns 1, 0 if a limit was reached or the process is
 * gone, or -ENOMEM. */
static int read_mapping(Examined *x, const Mapping *m, RangeSet *ret)
{
    uint64_t entries[CHUNK];

    for (uint64_t at = m->start; at < m->end;) {
        size_t n = (size_t)MIN((m->end - at) / x->page_bytes, (uint64_t)CHUNK);
        ssize_t got;
        int r;

        x->n_pages += n;
        if (n == 0 || x->n_pages > TOUCHED_PAGES || clock_now(CLOCK_MONOTONIC) > x->deadline)
            return 0;
        got = pread(x->pagemap_fd, entries, n * sizeof(uint64_t),
                    (off_t)(at / x->page_bytes * sizeof(uint64_t)));
        if (got < (ssize_t)sizeof(uint64_t))
            return 0;
        n = (size_t)got / sizeof(uint64_t);
        r = mapping_add_touched(m, at, entries, n, x->page_bytes, ret);
        if (r < 0)
            return r;
        at += n * x->page_bytes;
    }
    return 1;
}

/* Adds the pages of one mapping. The mappings of one file usually follow one another, so a mapping
 * of the file of the last row extends that row. Returns the result of read_mapping(). */
static int add_mapping(Touched *t, size_t first, Examined *x, const Mapping *m)
{
    TouchedFile *f = t->n > first ? &t->files[t->n - 1] : NULL;
    uint64_t dev = makedev(m->dev_major, m->dev_minor);

    if (!f || f->dev != dev || f->inode != m->inode) {
        if (f && f->ranges.n == 0)
            t->n--;
        if (grow_array(&t->files, &t->allocated, t->n + 1, sizeof(TouchedFile)) < 0)
            return -ENOMEM;
        f = &t->files[t->n++];
        *f = (TouchedFile){x->run->serial, dev, m->inode, {0}};
    }
    return read_mapping(x, m, &f->ranges);
}

/* Examines all mappings of the process. Returns 0 or -ENOMEM. */
static int examine(Touched *t, Examined *x)
{
    _cleanup_free_ char *text = NULL;
    size_t first = t->n;
    char path[64];
    int r = 1;

    snprintf(path, sizeof(path), "/proc/%u/maps", x->run->pid);
    if (rooted_read(AT_FDCWD, path, TOUCHED_MAPS_BYTES, &text, NULL) < 0)
        return 0;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); r > 0 && line;
         line = strtok_r(NULL, "\n", &save)) {
        Mapping m;

        if (mapping_parse(line, &m))
            r = add_mapping(t, first, x, &m);
    }
    if (t->n > first && t->files[t->n - 1].ranges.n == 0)
        t->n--;
    return r < 0 ? r : 0;
}

static uint64_t count_ranges(const Touched *t, size_t first)
{
    uint64_t n = 0;

    for (size_t i = first; i < t->n; i++)
        n += t->files[i].ranges.n;
    return n;
}

/* Examines the process of a run, within the share of its user. Returns 0 or -ENOMEM. */
static int examine_run(Touched *t, const ProcessRun *run, UserShares *shares)
{
    usec_t start = clock_now(CLOCK_MONOTONIC);
    uint16_t user = user_shares_row(shares, run->uid);
    _cleanup_close_ int fd = -EBADF;
    size_t first = t->n;
    char path[64];
    int r = 0;

    if (user_shares_left(shares, user, SHARED_TOUCHED_USEC) == 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/%u/pagemap", run->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        r = examine(t, &(Examined){
                               .run = run,
                               .pagemap_fd = fd,
                               .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
                               .deadline = start + TOUCHED_PROCESS_USEC,
                       });
    user_shares_charge(shares, user, SHARED_TOUCHED_USEC, clock_now(CLOCK_MONOTONIC) - start);
    if (r >= 0 &&
        user_shares_try_charge(shares, user, SHARED_TOUCHED_RANGES, count_ranges(t, first)))
        return 0;
    while (t->n > first)
        range_set_done(&t->files[--t->n].ranges);
    return r;
}

int touched_run(Touched *t, const ProcessRun *runs, size_t n_runs, UserShares *shares, usec_t now)
{
    static const usec_t ages[] = {TOUCHED_EARLY_USEC, TOUCHED_LATE_USEC};
    unsigned n_processes = 0;

    for (size_t k = 0; k < ELEMENTSOF(ages); k++)
        for (size_t i = process_find_serial(runs, n_runs, t->next[k]);
             i < n_runs && runs[i].start + ages[k] <= now; i++) {
            const ProcessRun *run = &runs[i];
            int r;

            /* A run that is part of another one has the same process. */
            if (run->start > 0 && run->n_processes > 0 && run->same_as == PROCESS_NONE &&
                !run->own && run->uid != UID_INVALID) {
                if (n_processes++ == TOUCHED_BATCH_PROCESSES)
                    return 0;
                r = examine_run(t, run, shares);
                if (r < 0)
                    return r;
            }
            t->next[k] = run->serial + 1;
        }
    return 0;
}
