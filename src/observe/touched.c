/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/touched.h"

#include <stdlib.h>

void touched_done(Touched *t)
{
    for (size_t i = 0; i < t->n; i++)
        range_set_done(&t->files[i].ranges);
    free(t->files);
    *t = (Touched){0};
}

static int compare_files(const void *a, const void *b)
{
    const TouchedFile *x = a, *y = b;

    if (x->serial != y->serial)
        return x->serial < y->serial ? -1 : 1;
    if (x->dev != y->dev)
        return x->dev < y->dev ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* Returns the row of the same run and file, or NULL. */
static TouchedFile *find_row(const Touched *t, const TouchedFile *f)
{
    return t->n == 0 ? NULL : bsearch(f, t->files, t->n, sizeof(*f), compare_files);
}

/* Returns how many ranges the result would add. */
static uint64_t count_new(const Touched *t, const PageResult *p)
{
    uint64_t n = 0;

    for (size_t i = 0; i < p->n; i++) {
        const TouchedFile *x = find_row(t, &p->files[i]);
        size_t known = x ? x->ranges.n : 0;

        n += p->files[i].ranges.n - MIN(p->files[i].ranges.n, known);
    }
    return n;
}

/* Unites the rows of a result that are of one file. Its rows are sorted afterwards. Returns 0 or
 * -ENOMEM. */
static int unite_rows(PageResult *p)
{
    size_t n = 0;

    qsort(p->files, p->n, sizeof(TouchedFile), compare_files);
    for (size_t i = 0; i < p->n; i++) {
        TouchedFile *last = n > 0 ? &p->files[n - 1] : NULL;

        if (last && compare_files(last, &p->files[i]) == 0) {
            CHECK(range_set_unite(&last->ranges, &p->files[i].ranges));
            range_set_done(&p->files[i].ranges);
            continue;
        }
        if (n < i) {
            p->files[n] = p->files[i];
            p->files[i].ranges = (RangeSet){0};
        }
        n++;
    }
    p->n = n;
    return 0;
}

/* Adds the ranges of known rows to them, and leaves the new rows in the result. Returns 0 or
 * -ENOMEM. */
static int add_to_rows(const Touched *t, PageResult *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++) {
        TouchedFile *x = find_row(t, &p->files[i]);

        if (x)
            CHECK(range_set_unite(&x->ranges, &p->files[i].ranges));
        else if (n++ < i) {
            range_set_done(&p->files[n - 1].ranges);
            p->files[n - 1] = p->files[i];
            p->files[i].ranges = (RangeSet){0};
        }
    }
    for (size_t i = n; i < p->n; i++)
        range_set_done(&p->files[i].ranges);
    p->n = n;
    return 0;
}

/* Moves the rows of the result, all of one run and none of them known, to their places. Returns 0
 * or -ENOMEM. */
static int insert_rows(Touched *t, PageResult *p)
{
    size_t from = t->n, k = p->n;

    CHECK(grow_array(&t->files, &t->allocated, t->n + k, sizeof(TouchedFile)));
    /* From the end, so that each known row moves once. */
    for (size_t to = t->n + k; k > 0; to--)
        t->files[to - 1] = from > 0 && compare_files(&t->files[from - 1], &p->files[k - 1]) > 0
                                   ? t->files[--from]
                                   : p->files[--k];
    t->n += p->n;
    p->n = 0;
    return 0;
}

/* Charges the user for the result, and adds its files if the user's share has room for them. */
static int add_result(Touched *t, UserShares *shares, PageResult *p)
{
    uint16_t user = user_shares_row(shares, p->request.uid);

    user_shares_charge(shares, user, SHARED_TOUCHED_USEC, p->took);
    if (p->n == 0 || user_shares_left(shares, user, SHARED_TOUCHED_RANGES) == 0)
        return 0;
    CHECK(unite_rows(p));
    if (!user_shares_try_charge(shares, user, SHARED_TOUCHED_RANGES, count_new(t, p)))
        return 0;
    CHECK(add_to_rows(t, p));
    return insert_rows(t, p);
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
static bool is_wanted(const Touched *t, const ProcessRun *run)
{
    return run->start > t->from && run->n_processes > 0 && run->same_as == PROCESS_NONE &&
           !run->own && run->uid != UID_INVALID;
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

            if (is_wanted(t, run) && !request(reader, run, shares))
                break;
            t->next[k] = run->serial + 1;
        }
    }
    return take_results(t, reader, shares);
}
