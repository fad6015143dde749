/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/bins.h"

#include "plan/cost-model.h"
#include "plan/plan-cut.h"
#include "plan/plan-predict.h"

#include <stdlib.h>

/* The width of a bin, at least, and the number of bins, at most. */
#define BIN_USEC (250 * USEC_PER_MSEC)
#define BINS_MAX 8U

static bool seeks_slowly(const PackContentVolume *v)
{
    return v->device_class == DEVICE_CLASS_HDD || v->device_class == DEVICE_CLASS_UNKNOWN ||
           v->flags & PACK_VOLUME_SEEKS_SLOWLY;
}

/* Returns when the last range is needed whose first use is known. */
static usec_t last_need(const PackContent *c)
{
    usec_t last = 0;

    for (size_t v = 0; v < c->n_volumes; v++)
        for (size_t i = 0; i < c->volumes[v].n_data; i++)
            if (c->volumes[v].data[i].need != USEC_INFINITY)
                last = MAX(last, c->volumes[v].data[i].need);
    return last;
}

usec_t bins_choose_width(const PackContent *c)
{
    bool seeks = false;

    for (size_t v = 0; v < c->n_volumes; v++)
        seeks = seeks || seeks_slowly(&c->volumes[v]);
    return seeks ? MAX(BIN_USEC, last_need(c) / BINS_MAX + 1) : 0;
}

/* The data of one filesystem while they are gathered. */
typedef struct Gathering {
    const DeviceProfile *d;
    uint64_t size;      /* of the device */
    PlacedRange *data;  /* by place; what is probably in memory is left out */
    size_t *in_content; /* data -> its index in the content */
    size_t n;
    usec_t width;       /* of the bins */
    uint64_t *before;   /* data -> the gap to the range of the bin before it, or UINT64_MAX */
    uint64_t *after;    /* the same for the range after it */
    double budget_usec; /* what may still come along with the bin takes this long at most */
} Gathering;

static void gathering_done(Gathering *g)
{
    free(g->data);
    free(g->in_content);
    free(g->before);
    free(g->after);
}

/* Returns the bin in which replay reads the range. */
static usec_t bin_of(const Gathering *g, const PlacedRange *r)
{
    return MIN((r->need - r->advance) / g->width, (usec_t)BINS_MAX);
}

/* Returns the gap between two ranges, of which `low` has the lower place. */
static uint64_t gap_between(const PlacedRange *low, const PlacedRange *high)
{
    return high->physical - MIN(low->physical + low->length, high->physical);
}

/* Returns the time to move over a gap in a sweep. */
static double move_usec(const Gathering *g, uint64_t gap)
{
    return cost_move_usec(g->d, 0, gap, g->size);
}

/* Fills `before` and `after`. */
static void find_gaps(Gathering *g, usec_t bin)
{
    const PlacedRange *of = NULL;

    for (size_t i = 0; i < g->n; i++) {
        if (bin_of(g, &g->data[i]) == bin)
            of = &g->data[i];
        g->before[i] = of ? gap_between(of, &g->data[i]) : UINT64_MAX;
    }
    of = NULL;
    for (size_t i = g->n; i-- > 0;) {
        if (bin_of(g, &g->data[i]) == bin)
            of = &g->data[i];
        g->after[i] = of ? gap_between(&g->data[i], of) : UINT64_MAX;
    }
}

/* Returns the time that range i adds to the sweep of the bin. `gap`: to the range of its own bin
 * that comes along before it, or UINT64_MAX. Between two near ranges of the bin the head passes the
 * range anyway. */
static double added_usec(const Gathering *g, size_t i, uint64_t gap)
{
    uint64_t wait = g->d->wait_bytes, length = g->data[i].length;
    bool passed = g->before[i] <= wait && g->after[i] <= wait - g->before[i];

    return (double)length / g->d->rate_bytes_per_usec +
           (passed ? 0 : move_usec(g, MIN(gap, MIN(g->before[i], g->after[i]))));
}

/* Lets the ranges of the cluster come along with the bin if some are near it, and if what they add
 * to its sweep takes no longer than the seek to the cluster and the moves within it. members[] are
 * indices of the data. */
static void take_cluster(Gathering *g, usec_t bin, const size_t *members, size_t n)
{
    double now = 0, own = move_usec(g, g->d->wait_bytes + 1);
    bool near = false;

    for (size_t i = 0; i < n; i++) {
        size_t k = members[i];
        uint64_t inner = i > 0 ? gap_between(&g->data[members[i - 1]], &g->data[k]) : UINT64_MAX;

        near = near || MIN(g->before[k], g->after[k]) <= g->d->wait_bytes;
        own += i > 0 ? move_usec(g, inner) : 0;
        now += added_usec(g, k, inner);
    }
    if (!near || now > own || now > g->budget_usec)
        return;
    g->budget_usec -= now;
    for (size_t i = 0; i < n; i++) {
        PlacedRange *r = &g->data[members[i]];

        r->advance = r->need - bin * g->width;
    }
}

/* Forms the clusters of a later bin, and lets them come along with the bin. */
static void gather_from(Gathering *g, usec_t bin, usec_t from, size_t *members)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n; i++) {
        if (bin_of(g, &g->data[i]) != from)
            continue;
        if (n > 0 && gap_between(&g->data[members[n - 1]], &g->data[i]) > g->d->wait_bytes) {
            take_cluster(g, bin, members, n);
            n = 0;
        }
        members[n++] = i;
    }
    if (n > 0)
        take_cluster(g, bin, members, n);
}

/* Collects what is probably not in memory. Returns 0 or -ENOMEM. */
static int collect(const PackContentVolume *v, const Prediction *in_memory, Gathering *g)
{
    g->data = calloc(v->n_data + 1, sizeof(*g->data));
    g->in_content = calloc(v->n_data + 1, sizeof(*g->in_content));
    g->before = calloc(v->n_data + 1, sizeof(*g->before));
    g->after = calloc(v->n_data + 1, sizeof(*g->after));
    if (!g->data || !g->in_content || !g->before || !g->after)
        return -ENOMEM;
    for (size_t i = 0; i < v->n_data; i++)
        if (v->data[i].physical != PHYSICAL_UNKNOWN && plan_missing_bytes(v, i, in_memory) > 0) {
            g->in_content[g->n] = i;
            g->data[g->n++] = v->data[i];
        }
    return 0;
}

static int gather(const PackContentVolume *v, const Prediction *in_memory, Gathering *g)
{
    _cleanup_free_ size_t *members = calloc(v->n_data + 1, sizeof(*members));

    if (!members)
        return -ENOMEM;
    CHECK(collect(v, in_memory, g));
    for (usec_t bin = 0; bin < BINS_MAX; bin++) {
        g->budget_usec = BINS_DELAY_USEC;
        for (usec_t from = bin + 1; from <= BINS_MAX; from++) {
            find_gaps(g, bin);
            gather_from(g, bin, from, members);
        }
    }
    for (size_t i = 0; i < g->n; i++)
        v->data[g->in_content[i]].advance = g->data[i].advance;
    return 0;
}

int bins_gather(const VolumeTable *t, const PlanParameters *p, const Prediction *in_memory,
                PackContent *c)
{
    int r = 0;

    for (size_t k = 0; r >= 0 && k < c->n_volumes; k++) {
        const PackContentVolume *content = &c->volumes[k];
        const Volume *v = plan_volume_of(t, content);
        Gathering g = {.width = c->bin_usec};

        if (!v || !seeks_slowly(content))
            continue;
        g.d = plan_device_profile(v, p);
        g.size = v->size_bytes;
        r = gather(content, in_memory, &g);
        gathering_done(&g);
    }
    return r;
}
