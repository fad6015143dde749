/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/touched.h"

#include <string.h>

void touched_done(Touched *t)
{
    for (size_t i = 0; i < t->n; i++)
        range_set_done(&t->files[i].ranges);
    free(t->files);
    *t = (Touched){0};
}

/* Returns the first row of the run, or t->n. */
static size_t first_row(const Touched *t, uint64_t serial)
{
    size_t i = 0;

    while (i < t->n && t->files[i].serial != serial)
        i++;
    return i;
}

/* Returns the row of the same run and file from `first` on, or NULL. */
static TouchedFile *find_row(Touched *t, size_t first, const TouchedFile *f)
{
    for (size_t i = first; i < t->n; i++) {
        TouchedFile *x = &t->files[i];

        if (x->serial == f->serial && x->inode == f->inode && x->dev == f->dev)
            return x;
    }
    return NULL;
}

/* Moves *f into a row of its own, or adds its ranges to the row of an earlier look. Returns 0 or
 * -ENOMEM. */
static int add_file(Touched *t, size_t first, TouchedFile *f)
{
    TouchedFile *x = find_row(t, first, f);

    if (x)
        return range_set_unite(&x->ranges, &f->ranges);
    CHECK(grow_array(&t->files, &t->allocated, t->n + 1, sizeof(TouchedFile)));
    t->files[t->n++] = *f;
    f->ranges = (RangeSet){0};
    return 0;
}

/* Returns how many ranges the result would add. */
static uint64_t count_new(Touched *t, size_t first, const PageResult *p)
{
    uint64_t n = 0;

    for (size_t i = 0; i < p->n; i++) {
        const TouchedFile *x = find_row(t, first, &p->files[i]);
        size_t known = x ? x->ranges.n : 0;

        n += p->files[i].ranges.n - MIN(p->files[i].ranges.n, known);
    }
    return n;
}

/* Charges the user for the result, and adds its files if the user's share has room for them. */
static int add_result(Touched *t, UserShares *shares, PageResult *p)
{
    uint16_t user = user_shares_row(shares, p->request.uid);
    size_t first = first_row(t, p->request.serial);

    user_shares_charge(shares, user, SHARED_TOUCHED_USEC, p->took);
    if (p->n == 0 ||
        !user_shares_try_charge(shares, user, SHARED_TOUCHED_RANGES, count_new(t, first, p)))
        return 0;
    for (size_t i = 0; i < p->n; i++)
        CHECK(add_file(t, first, &p->files[i]));
    return 0;
}

static int take_results(Touched *t, PageReader *reader, UserShares *shares)
{
    PageResult p;
    int r = 0;

    while (r >= 0 && page_reader_take(reader, &p)) {
        r = add_result(t, shares, &p);
        page_result_done(&p);
    }
    return r;
}

/* Returns true if the pages of the run's process are of interest. A run that is part of another one
 * has the same process. */
static bool is_wanted(const ProcessRun *run)
{
    return run->start > 0 && run->n_processes > 0 && run->same_as == PROCESS_NONE && !run->own &&
           run->uid != UID_INVALID;
}

/* Requests the pages of the run's process, in the name of the user who is charged for it. Returns
 * false if the queue is full. */
static bool request(PageReader *reader, const ProcessRun *run, UserShares *shares)
{
    uint16_t user = user_shares_row(shares, run->uid);
    const PageRequest q = {run->serial, run->pid, shares->users[user].uid};

    return user_shares_left(shares, user, SHARED_TOUCHED_USEC) == 0 ||
           page_reader_request(reader, q) != PAGE_FULL;
}

int touched_run(Touched *t, PageReader *reader, const ProcessRun *runs, size_t n_runs,
                UserShares *shares, usec_t now)
{
    for (size_t k = 0; k < TOUCHED_LOOKS; k++) {
        usec_t age = TOUCHED_FIRST_USEC + k * TOUCHED_INTERVAL_USEC;

        for (size_t i = process_find_serial(runs, n_runs, t->next[k]);
             i < n_runs && runs[i].start + age <= now; i++) {
            const ProcessRun *run = &runs[i];

            if (is_wanted(run) && !request(reader, run, shares))
                break;
            t->next[k] = run->serial + 1;
        }
    }
    return take_results(t, reader, shares);
}
