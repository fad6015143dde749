/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/plan.h"

#include "plan/cost-model.h"
#include "plan/order.h"
#include "plan/passing.h"
#include "plan/plan-cut.h"

#include <string.h>

static const char *const skip_names[_PLAN_SKIP_MAX] = {
        [PLAN_SKIP_GONE] = "gone",
        [PLAN_SKIP_TYPE] = "type",
        [PLAN_SKIP_FILESYSTEM] = "filesystem",
        [PLAN_SKIP_DENIED] = "denied",
        [PLAN_SKIP_DUPLICATE] = "duplicate",
        [PLAN_SKIP_OWNER] = "owner",
        [PLAN_SKIP_UNLIKELY] = "unlikely",
        [PLAN_SKIP_BUDGET] = "budget",
        [PLAN_SKIP_LIMIT] = "limit",
        [PLAN_SKIP_ERROR] = "error",
};

const char *plan_skip_to_string(PlanSkip s)
{
    return (int)s >= 0 && s < _PLAN_SKIP_MAX ? skip_names[s] : NULL;
}

LocatedPlan *located_plan_free(LocatedPlan *p)
{
    if (!p)
        return NULL;
    for (size_t i = 0; i < p->n_files; i++) {
        free(p->files[i].path);
        free(p->files[i].maps);
        free(p->files[i].extents);
    }
    for (size_t i = 0; p->passing && i < p->volumes->n; i++)
        range_set_done(&p->passing[i]);
    free(p->passing);
    free(p->files);
    free(p->metadata);
    free(p);
    return NULL;
}

/* State of the compilation. */
typedef struct Compiler {
    const LocatedPlan *l;
    const PlanParameters *p;
    PlanCut cut;
    uint32_t *where; /* file -> its index in its volume */
    PackContent *c;
    PlanSummary s;
} Compiler;

static void compiler_done(Compiler *x)
{
    plan_cut_done(&x->cut);
    free(x->where);
    pack_content_free(x->c);
}

/* The price of a byte of a gap in metadata, in addition to its transfer. Skipping a short gap takes
 * the head as long as reading it. Without a price, gaps of up to half a megabyte would therefore be
 * read: such gaps were two thirds of the metadata of a boot. */
#define METADATA_GAP_PRICE 0.125

/* Returns the length of the longest gap that is read to join two ranges. */
static uint64_t longest_gap(const Compiler *x, const Volume *v, double price)
{
    return x->p->no_gaps ? 0
                         : cost_break_even_gap(plan_device_profile(v, x->p), v->size_bytes, price);
}

/* Adds the volume's metadata, and merges ranges where reading the gap is cheaper. Each item is
 * asked for alone. */
static int add_metadata(Compiler *x, uint32_t volume, PackContentVolume *g)
{
    const Volume *v = &x->l->volumes->volumes[volume];
    uint64_t max_gap = longest_gap(x, v, METADATA_GAP_PRICE);

    for (size_t i = 0; i < x->l->n_metadata; i++) {
        const PredictedRange *m = &x->l->metadata[i].range;
        bool item = x->l->metadata[i].item.reader != METADATA_OF_DEVICE;
        PackContentMetadata *last =
                g->n_metadata > 0 && !item ? &g->metadata[g->n_metadata - 1] : NULL;
        uint64_t last_end = last ? last->offset + last->length : 0, end, gap;

        if (x->l->metadata[i].volume != volume || !x->cut.keep_metadata[i])
            continue;
        end = m->offset + MIN(m->length, v->size_bytes - m->offset);
        gap = m->offset > last_end ? m->offset - last_end : 0;
        if (last && gap <= max_gap && gap <= x->cut.budget_bytes) {
            x->cut.budget_bytes -= gap;
            x->s.gap_bytes += gap;
            last->length = MAX(last_end, end) - last->offset;
            last->probability = MAX(last->probability, m->probability);
            continue;
        }
        if (grow_array(&g->metadata, &g->allocated_metadata, g->n_metadata + 1,
                       sizeof(PackContentMetadata)) < 0)
            return -ENOMEM;
        g->metadata[g->n_metadata++] = (PackContentMetadata){
                m->offset, end - m->offset, m->probability, x->l->metadata[i].item};
    }
    if (x->l->passing && !x->p->no_gaps)
        x->s.gap_bytes += passing_join(&x->l->passing[volume], g->metadata, g->n_metadata, max_gap,
                                       &x->cut.budget_bytes);
    return 0;
}

/* The order of the opening pass. */
typedef struct ByInode {
    uint64_t inode;
    uint32_t file;
} ByInode;

static int compare_by_inode(const void *a, const void *b)
{
    const ByInode *x = a, *y = b;

    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

/* Adds the files of the volume in inode order. */
static int add_files(Compiler *x, uint32_t volume, PackContentVolume *g)
{
    const LocatedPlan *l = x->l;
    _cleanup_free_ ByInode *order = reallocarray(NULL, l->n_files + 1, sizeof(ByInode));
    size_t n = 0;

    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < l->n_files; i++) {
        const LocatedFile *f = &l->files[i];

        if (f->volume == volume && x->cut.keep_files[i])
            order[n++] = (ByInode){f->inode, (uint32_t)i};
    }
    qsort(order, n, sizeof(ByInode), compare_by_inode);
    if (grow_array(&g->files, &g->allocated_files, n, sizeof(PackContentFile)) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const LocatedFile *f = &l->files[order[i].file];
        char *path = strdup(f->path);

        if (!path)
            return -ENOMEM;
        x->where[order[i].file] = (uint32_t)g->n_files;
        g->files[g->n_files++] = (PackContentFile){
                .path = path,
                .directory = f->directory,
                .looked_up = f->directory && !f->listed,
                .symlink = f->symlink,
                .written_in_place = !f->directory && f->mtime_nsec > 0 &&
                                    (uint64_t)f->mtime_nsec / NSEC_PER_USEC >= x->p->volatile_since,
                .touched = f->touched,
                .inode = f->inode,
                .size_bytes = f->size_bytes,
                .mtime_nsec = f->mtime_nsec,
                .ctime_nsec = f->ctime_nsec,
                .need = f->first_use,
                .probability = f->probability,
        };
        if (f->directory)
            x->s.n_directories++;
        else
            x->s.n_files++;
    }
    return 0;
}

static int add_placed_ranges(Compiler *x, uint32_t volume, PlacedRangeList *list)
{
    const LocatedPlan *l = x->l;

    for (size_t i = 0; i < l->n_files; i++) {
        const LocatedFile *f = &l->files[i];

        if (f->volume != volume || f->directory)
            continue;
        for (size_t k = 0; k < f->n_maps; k++) {
            const PlacedRange range = {
                    .file = x->where[i],
                    .offset = f->maps[k].offset,
                    .length = f->maps[k].length,
                    .probability = f->maps[k].probability,
                    .need = f->first_use,
            };
            int r = x->cut.keep_maps[x->cut.first_map[i] + k]
                            ? placed_ranges_add(list, &range, PACK_PAGE_SIZE, f->extents,
                                                f->n_extents, PLACED_HOLES_DROP)
                            : 0;

            if (r < 0)
                return r;
        }
    }
    return 0;
}

static int add_data(Compiler *x, uint32_t volume, PackContentVolume *g)
{
    const Volume *v = &x->l->volumes->volumes[volume];
    _cleanup_placed_range_list_ PlacedRangeList list = {0};
    int r = add_placed_ranges(x, volume, &list);

    if (r < 0)
        return r;
    placed_ranges_sort(&list);
    placed_ranges_drop_isolated(&list,
                                cost_break_even_gap(plan_device_profile(v, x->p), v->size_bytes, 1),
                                x->p->isolated_probability);
    x->s.gap_bytes += placed_ranges_merge(&list, longest_gap(x, v, 1), &x->cut.budget_bytes);
    g->n_data = list.n;
    g->allocated_data = list.allocated;
    g->data = TAKE_PTR(list.ranges);
    return 0;
}

/* Computes the time that the cost model predicts for replaying this volume alone: metadata, then
 * data. */
static int estimate(const PackContentVolume *g, const DeviceProfile *d, usec_t *ret)
{
    _cleanup_free_ Range *requests =
            reallocarray(NULL, g->n_metadata + g->n_data + 1, sizeof(Range));
    size_t n = 0;

    if (!requests)
        return -ENOMEM;
    for (size_t i = 0; i < g->n_metadata; i++)
        requests[n++] = (Range){g->metadata[i].offset, g->metadata[i].length};
    for (size_t i = 0; i < g->n_data; i++)
        if (g->data[i].physical != PHYSICAL_UNKNOWN)
            requests[n++] = (Range){g->data[i].physical, g->data[i].length};
    *ret = (usec_t)cost_sequence_usec(d, requests, n, g->device_size);
    return 0;
}

static int summarize(const PackContentVolume *g, const DeviceProfile *d, PlanSummary *s)
{
    usec_t t;
    int r = estimate(g, d, &t);

    if (r < 0)
        return r;
    s->n_metadata += g->n_metadata;
    s->n_data_ranges += g->n_data;
    for (size_t i = 0; i < g->n_metadata; i++)
        s->metadata_bytes += g->metadata[i].length;
    for (size_t i = 0; i < g->n_data; i++)
        s->data_bytes += g->data[i].length;
    if (!(g->flags & PACK_VOLUME_PHYSICAL) && g->n_data > 0)
        s->estimated_usec = USEC_INFINITY;
    else if (s->estimated_usec != USEC_INFINITY)
        s->estimated_usec += t;
    return 0;
}

static int add_volume(Compiler *x, uint32_t volume)
{
    const Volume *v = &x->l->volumes->volumes[volume];
    bool btrfs = strcmp(v->fstype, "btrfs") == 0, ext = volume_is_ext(v);
    PackContentVolume *g;
    int r;

    r = grow_array(&x->c->volumes, &x->c->allocated_volumes, x->c->n_volumes + 1,
                   sizeof(PackContentVolume));
    if (r < 0)
        return r;
    g = &x->c->volumes[x->c->n_volumes++];
    *g = (PackContentVolume){
            .subvolume_id = v->subvolume_id,
            .device_size = v->size_bytes,
            .fstype = strdup(v->fstype),
            .mountpoint = strdup(v->mountpoint),
            .device_class = plan_device_class(v, x->p),
            .flags = (v->rotational ? PACK_VOLUME_ROTATIONAL : 0U) |
                     (v->seeks_slowly ? PACK_VOLUME_SEEKS_SLOWLY : 0U) |
                     (v->slow_first_reads ? PACK_VOLUME_SLOW_FIRST_READS : 0U) |
                     (btrfs ? 0U : PACK_VOLUME_PHYSICAL) | (ext ? 0U : PACK_VOLUME_TOUCH_ENTRIES),
    };
    if (!g->fstype || !g->mountpoint)
        return -ENOMEM;
    memcpy(g->uuid, v->uuid_bytes, sizeof(g->uuid));

    r = add_metadata(x, volume, g);
    if (r >= 0)
        r = add_files(x, volume, g);
    if (r >= 0)
        r = add_data(x, volume, g);
    return r < 0 ? r : summarize(g, plan_device_profile(v, x->p), &x->s);
}

bool located_plan_has_files(const LocatedPlan *l, uint32_t volume)
{
    for (size_t i = 0; i < l->n_files; i++)
        if (l->files[i].volume == volume)
            return true;
    return false;
}

static bool has_metadata(const LocatedPlan *l, uint32_t volume)
{
    for (size_t i = 0; i < l->n_metadata; i++)
        if (l->metadata[i].volume == volume)
            return true;
    return false;
}

int plan_compile(const LocatedPlan *l, const PlanParameters *p, PackContent **ret,
                 PlanSummary *summary)
{
    _cleanup_(compiler_done) Compiler x = {.l = l, .p = p};
    int r = plan_cut(l, p, &x.cut);

    if (r < 0)
        return r;
    x.where = calloc(l->n_files + 1, sizeof(uint32_t));
    x.c = calloc(1, sizeof(PackContent));
    if (!x.where || !x.c)
        return -ENOMEM;
    for (PlanSkip k = 0; k < _PLAN_SKIP_MAX; k++)
        x.s.n_skipped[k] = l->n_skipped[k] + x.cut.n_skipped[k];
    x.c->stage = l->stage;
    x.c->policy = p->policy;
    x.c->control_interval = p->control_interval;
    x.c->salt = p->salt;
    x.c->deadline_usec = p->deadline_usec;
    x.c->created_realtime = p->now_realtime;

    for (uint32_t v = 0; r >= 0 && v < l->volumes->n; v++)
        if (located_plan_has_files(l, v) || has_metadata(l, v))
            r = add_volume(&x, v);
    if (r < 0)
        return r;
    if (summary)
        *summary = x.s;
    *ret = TAKE_PTR(x.c);
    return 0;
}
