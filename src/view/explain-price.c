/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/explain-price.h"

#include "base/open.h"
#include "plan/budget.h"
#include "plan/plan.h"
#include "state/device-store.h"
#include "system/memory.h"
#include "view/devices.h"
#include "volume/extents.h"

#include <fcntl.h>
#include <string.h>

void price_facts_done(PriceFacts *m)
{
    volume_table_done(&m->volumes);
    free(m->measured);
    *m = (PriceFacts){0};
}

/* Applies the measurements of devices.json. A file that cannot be used is left alone: `headstart
 * plan` sets it aside. */
static void read_devices(int state_fd, PriceFacts *m)
{
    _cleanup_device_store_ DeviceStore store = {0};
    _cleanup_free_ char *error = NULL;

    m->measured = calloc(MAX(m->volumes.n, (size_t)1), sizeof(bool));
    if (!m->measured || state_load_devices(state_fd, &store, &error) < 0)
        return;
    for (size_t i = 0; i < m->volumes.n; i++) {
        const DeviceRecord *d = devices_find(&store, &m->volumes.volumes[i]);

        if (!d)
            continue;
        devices_apply(d, &m->volumes.volumes[i]);
        m->measured[i] = true;
    }
}

void price_facts_read(const Context *c, int state_fd, PriceFacts *ret)
{
    PriceFacts m = {.budget_bytes = COUNT_UNKNOWN};
    char root[PATH_MAX];
    MemoryFacts memory;

    if (memory_facts_read(AT_FDCWD, &memory) >= 0)
        m.budget_bytes = budget_bytes(&memory, &c->config.budget);
    if (realpath(c->root, root) && volume_table_read(AT_FDCWD, root, &m.volumes) >= 0)
        read_devices(state_fd, &m);
    *ret = m;
}

static void set_price(const PriceFacts *m, size_t volume, uint64_t bytes, Price price,
                      FilePrice *ret)
{
    *ret = (FilePrice){
            .volume = &m->volumes.volumes[volume],
            .measured = m->measured && m->measured[volume],
            .bytes = bytes,
            .price = price,
    };
}

/* --- the sweep of a pack ---------------------------------------------------------------------- */

/* Lists the places of the volume's data in the pack, without the data of the file `file`
 * (UINT32_MAX: none). Ranges without a place are left out. The caller frees *ret. Returns 0 or
 * -ENOMEM. */
static int sweep_without(const Pack *p, const PackVolume *v, uint32_t file, Range **ret,
                         size_t *ret_n)
{
    const PackData *d = p->data + le32toh(v->first_data);
    Range *sweep = reallocarray(NULL, (size_t)le32toh(v->n_data) + 1, sizeof(Range));
    size_t n = 0;

    if (!sweep)
        return -ENOMEM;
    for (uint32_t i = 0; i < le32toh(v->n_data); i++)
        if (le32toh(d[i].file) != file && le64toh(d[i].physical) != PACK_PHYSICAL_UNKNOWN)
            sweep[n++] = (Range){le64toh(d[i].physical), le64toh(d[i].length)};
    *ret = sweep;
    *ret_n = n;
    return 0;
}

/* Returns the index of the volume with this UUID and subvolume, or SIZE_MAX. */
static size_t find_volume(const PriceFacts *m, const PackVolume *v)
{
    for (size_t i = 0; i < m->volumes.n; i++)
        if (memcmp(m->volumes.volumes[i].uuid_bytes, v->uuid, sizeof(v->uuid)) == 0 &&
            m->volumes.volumes[i].subvolume_id == le64toh(v->subvolume_id))
            return i;
    return SIZE_MAX;
}

void price_in_pack(const PriceFacts *m, const Pack *p, uint32_t volume, uint32_t file,
                   FilePrice *ret)
{
    const PackVolume *v = p->volumes + volume;
    const PackData *d = p->data + le32toh(v->first_data);
    uint32_t n_data = le32toh(v->n_data);
    _cleanup_free_ Range *own = reallocarray(NULL, (size_t)n_data + 1, sizeof(Range));
    _cleanup_free_ Range *sweep = NULL;
    size_t index = find_volume(m, v), n = 0, n_sweep, n_placed = 0;
    const DeviceProfile *profile;
    uint64_t bytes = 0;
    Price price;

    *ret = (FilePrice){0};
    if (!own || index == SIZE_MAX)
        return;
    for (uint32_t i = 0; i < n_data; i++) {
        if (le32toh(d[i].file) != file)
            continue;
        bytes += le64toh(d[i].length);
        n_placed += le64toh(d[i].physical) != PACK_PHYSICAL_UNKNOWN;
        own[n++] = (Range){le64toh(d[i].physical), le64toh(d[i].length)};
    }
    profile = &m->volumes.volumes[index].profile;
    if (n == 0 || sweep_without(p, v, file, &sweep, &n_sweep) < 0)
        return;
    if (n_placed < n)
        price = price_of_unplaced_ranges(profile, bytes, n);
    else if (price_of_placed_ranges(profile, le64toh(v->device_size), sweep, n_sweep, own, n,
                                    &price) < 0)
        return;
    set_price(m, index, bytes, price, ret);
}

/* --- a file that is in no pack ---------------------------------------------------------------- */

static int by_offset(const void *a, const void *b)
{
    const Range *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Lists the ranges of the file that are likely enough, at most `size` bytes of the file, in whole
 * pages. `needed` is the probability of the file. Returns 0 or -ENOMEM. */
static int likely_ranges(const ModelStageFile *f, double needed, uint64_t size, RangeSet *ret)
{
    const ModelResidency *best = model_best_residency(f);
    double opened = needed * model_opened_share(f);
    int r = 0;

    for (size_t i = 0; r >= 0 && i < best->ranges.n; i++) {
        const WeightedRange *g = &best->ranges.ranges[i];

        if (g->offset < size &&
            opened * decayed_sum_ratio(g->weight, best->sessions) >= PLAN_MIN_PROBABILITY_DEFAULT)
            r = range_set_insert(ret, g->offset, MIN(g->length, size - g->offset));
    }
    return r;
}

/* Finds the places of the ranges. The caller frees *ret, which is in physical order. Returns 0, or
 * -ENODATA if the filesystem does not report all of them, or -ENOMEM. */
static int place_ranges(const ExtentList *extents, const RangeSet *ranges, Range **ret,
                        size_t *ret_n)
{
    _cleanup_free_ Range *places = NULL;
    size_t n = 0, allocated = 0, k = 0;
    uint64_t found = 0, all = 0;

    for (size_t i = 0; i < ranges->n; i++) {
        const Range *x = &ranges->ranges[i];

        all += x->length;
        while (k < extents->n &&
               extents->extents[k].logical + extents->extents[k].length <= x->offset)
            k++;
        for (size_t e = k; e < extents->n && extents->extents[e].logical < range_end(x); e++) {
            const Extent *extent = &extents->extents[e];
            uint64_t begin = MAX(extent->logical, x->offset);
            uint64_t end = MIN(extent->logical + extent->length, range_end(x));

            if (grow_array(&places, &allocated, n + 1, sizeof(Range)) < 0)
                return -ENOMEM;
            places[n++] = (Range){extent->physical + (begin - extent->logical), end - begin};
            found += end - begin;
        }
    }
    if (n == 0 || found < all)
        return -ENODATA;
    qsort(places, n, sizeof(Range), by_offset);
    *ret = TAKE_PTR(places);
    *ret_n = n;
    return 0;
}

/* Opens a regular file below the root. Returns a descriptor and the file's status, or a negative
 * errno. */
static int open_file(const Context *c, const PriceFacts *m, const char *path, struct stat *ret)
{
    _cleanup_close_ int fd = volume_open_path(&m->volumes, c->root, path);

    if (fd < 0)
        return fd;
    if (fstat(fd, ret) < 0)
        return -errno;
    return S_ISREG(ret->st_mode) ? fd_reopen_noatime(fd, O_RDONLY) : -EINVAL;
}

static size_t volume_of_device(const PriceFacts *m, uint64_t st_dev)
{
    for (size_t i = 0; i < m->volumes.n; i++)
        if (m->volumes.volumes[i].st_dev == st_dev)
            return i;
    return SIZE_MAX;
}

void price_outside_pack(const Context *c, const PriceFacts *m, const Pack *p, const char *path,
                        const ModelStageFile *f, double needed, FilePrice *ret)
{
    _cleanup_close_ int fd = -EBADF;
    _cleanup_extent_list_ ExtentList extents = {0};
    _cleanup_range_set_ RangeSet ranges = {0};
    _cleanup_free_ Range *sweep = NULL, *places = NULL;
    size_t index, n_sweep = 0, n;
    const Volume *v;
    uint64_t bytes = 0;
    struct stat st;
    Price price;

    *ret = (FilePrice){0};
    fd = open_file(c, m, path, &st);
    index = fd >= 0 ? volume_of_device(m, st.st_dev) : SIZE_MAX;
    if (index == SIZE_MAX || likely_ranges(f, needed, (uint64_t)st.st_size, &ranges) < 0 ||
        ranges.n == 0)
        return;
    v = &m->volumes.volumes[index];
    for (size_t i = 0; i < ranges.n; i++)
        bytes += ranges.ranges[i].length;
    for (uint32_t i = 0; p && i < le32toh(p->header->n_volumes); i++)
        if (find_volume(m, p->volumes + i) == index && !sweep)
            (void)sweep_without(p, p->volumes + i, UINT32_MAX, &sweep, &n_sweep);
    if (extents_read(fd, EXTENTS_PER_FILE_MAX, &extents) < 0 ||
        place_ranges(&extents, &ranges, &places, &n) < 0)
        price = price_of_unplaced_ranges(&v->profile, bytes, ranges.n);
    else if (price_of_placed_ranges(&v->profile, v->size_bytes, sweep, sweep ? n_sweep : 0, places,
                                    n, &price) < 0)
        return;
    set_price(m, index, bytes, price, ret);
}
