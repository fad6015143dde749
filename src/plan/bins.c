/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/bins.h"

#include "plan/cost-model.h"
#include "plan/plan-cut.h"

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

/* The bin that takes its neighbours along, and where the disk stops. */
typedef struct Gathering {
    const DeviceProfile *d;
    uint64_t size;         /* of the device */
    usec_t width;          /* of the bins */
    usec_t bin;            /* the number of the bin */
    double budget_usec;    /* how long the transfer of what still comes along may take */
    const PlacedRange *of; /* the last range of the bin that the scan has passed; NULL: none */
    struct {
        const PlacedRange *before; /* the last range of this bin that the scan has passed */
        double saved_usec;         /* by those that came along since the last one that stays */
    } others[BINS_MAX + 2];        /* the last one has the ranges whose use is unknown */
} Gathering;

/* Returns the bin in which replay reads the range. */
static usec_t bin_of(const Gathering *g, const PlacedRange *r)
{
    return MIN((r->need - r->advance) / g->width, (usec_t)ELEMENTSOF(g->others) - 1);
}

/* Returns the gap between two ranges. */
static uint64_t gap_between(const PlacedRange *a, const PlacedRange *b)
{
    const PlacedRange *low = a->physical < b->physical ? a : b, *high = low == a ? b : a;
    uint64_t end = low->physical + low->length;

    return high->physical - MIN(end, high->physical);
}

/* Returns the time to move over a gap in a sweep. */
static double move_usec(const Gathering *g, uint64_t gap)
{
    return cost_move_usec(g->d, 0, gap, g->size);
}

/* Lets the next range of the scan come along, if it is near the last range of the bin, and reading
 * it now, with its neighbours of its own bin, takes no longer than the moves to them in their own
 * bin. */
static void scan(Gathering *g, PlacedRange *r)
{
    const PlacedRange *before;
    usec_t bin = bin_of(g, r);
    double own, now;
    uint64_t gap;

    if (r->physical == PHYSICAL_UNKNOWN || bin < g->bin)
        return;
    if (bin == g->bin) {
        g->of = r;
        return;
    }
    before = g->others[bin].before;
    g->others[bin].before = r;
    gap = g->of ? gap_between(g->of, r) : UINT64_MAX;
    own = move_usec(g, before ? gap_between(before, r) : g->d->wait_bytes + 1);
    now = move_usec(g, gap) + (double)r->length / g->d->rate_bytes_per_usec;
    if (gap > g->d->wait_bytes || g->others[bin].saved_usec + own < now || now > g->budget_usec) {
        g->others[bin].saved_usec = 0;
        return;
    }
    g->others[bin].saved_usec += own - now;
    g->budget_usec -= now;
    r->advance = r->need - (g->of->need - g->of->advance);
    g->of = r;
}

static void gather(PlacedRange *data, size_t n, Gathering *g)
{
    Gathering up = *g, down = *g;

    for (size_t i = 0; i < n; i++)
        scan(&up, &data[i]);
    down.budget_usec = up.budget_usec;
    for (size_t i = n; i-- > 0;)
        scan(&down, &data[i]);
}

void bins_gather(const VolumeTable *t, const PlanParameters *p, PackContent *c)
{
    usec_t last = last_need(c);

    for (size_t k = 0; k < c->n_volumes; k++) {
        PackContentVolume *g = &c->volumes[k];
        const Volume *v = plan_volume_of(t, g);
        const DeviceProfile *d = v ? plan_device_profile(v, p) : NULL;

        for (usec_t bin = 0; d && seeks_slowly(g) && bin <= last / c->bin_usec; bin++)
            gather(g->data, g->n_data,
                   &(Gathering){
                           .d = d,
                           .size = v->size_bytes,
                           .width = c->bin_usec,
                           .bin = bin,
                           .budget_usec = BINS_DELAY_USEC,
                   });
    }
}
