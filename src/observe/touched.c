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

/* Charges the user for the result, and adds its files if the user's share has room for them. */
static int add_result(Touched *t, UserShares *shares, PageResult *p)
{
    uint16_t user = user_shares_row(shares, p->request.uid);
    uint64_t n_ranges = 0;

    for (size_t i = 0; i < p->n; i++)
        n_ranges += p->files[i].ranges.n;
    user_shares_charge(shares, user, SHARED_TOUCHED_USEC, p->took);
    if (p->n == 0 || !user_shares_try_charge(shares, user, SHARED_TOUCHED_RANGES, n_ranges))
        return 0;
    if (grow_array(&t->files, &t->allocated, t->n + p->n, sizeof(TouchedFile)) < 0)
        return -ENOMEM;
    memcpy(&t->files[t->n], p->files, p->n * sizeof(TouchedFile));
    t->n += p->n;
    p->n = 0; /* the ranges have a new owner */
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
    static const usec_t ages[] = {TOUCHED_EARLY_USEC, TOUCHED_LATE_USEC};

    for (size_t k = 0; k < ELEMENTSOF(ages); k++)
        for (size_t i = process_find_serial(runs, n_runs, t->next[k]);
             i < n_runs && runs[i].start + ages[k] <= now; i++) {
            const ProcessRun *run = &runs[i];

            if (is_wanted(run) && !request(reader, run, shares))
                break;
            t->next[k] = run->serial + 1;
        }
    return take_results(t, reader, shares);
}
