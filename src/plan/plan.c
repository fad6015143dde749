/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/plan.h"

#include "plan/cost-model.h"
#include "plan/order.h"

#include <string.h>

static const char *const skip_names[_PLAN_SKIP_MAX] = {
        [PLAN_SKIP_GONE] = "gone",
        [PLAN_SKIP_TYPE] = "type",
        [PLAN_SKIP_FILESYSTEM] = "filesystem",
        [PLAN_SKIP_DENIED] = "denied",
        [PLAN_SKIP_DUPLICATE] = "duplicate",
        [PLAN_SKIP_UNLIKELY] = "unlikely",
        [PLAN_SKIP_BUDGET] = "budget",
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
    free(p->files);
    free(p->metadata);
    free(p);
    return NULL;
}

/* One map of one file, while the budget is cut. */
typedef struct Candidate {
    uint32_t file, map;
    double probability;
    uint64_t length;
} Candidate;

static int compare_candidates(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;

    if (x->probability != y->probability)
        return x->probability > y->probability ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return x->map < y->map ? -1 : x->map > y->map;
}

/* Marks the maps that are in: by falling probability until the budget is spent (thesis algorithm
 * 4.2, with the line it forgot: what is selected is taken off what is available). */
static int cut(const LocatedPlan *l, const PlanParameters *p, uint64_t budget, bool **keep,
               PlanSummary *s)
{
    _cleanup_free_ Candidate *c = NULL;
    size_t n = 0, allocated = 0;

    for (size_t i = 0; i < l->n_files; i++)
        for (size_t k = 0; k < l->files[i].n_maps; k++) {
            const PredictedMap *m = &l->files[i].maps[k];

            if (!(m->probability >= p->min_probability)) {
                s->n_skipped[PLAN_SKIP_UNLIKELY]++;
                continue;
            }
            if (grow_array(&c, &allocated, n + 1, sizeof(Candidate)) < 0)
                return -ENOMEM;
            c[n++] = (Candidate){(uint32_t)i, (uint32_t)k, m->probability, m->length};
        }
    if (n > 1)
        qsort(c, n, sizeof(Candidate), compare_candidates);
    for (size_t i = 0; i < n; i++) {
        if (c[i].length > budget) {
            s->n_skipped[PLAN_SKIP_BUDGET] += n - i;
            break;
        }
        budget -= c[i].length;
        keep[c[i].file][c[i].map] = true;
    }
    return 0;
}

static DeviceClass class_of(const Volume *v, const PlanParameters *p)
{
    return (int)p->device_class >= 0 ? p->device_class : v->device_class;
}

static uint32_t to_msec(usec_t t)
{
    return (uint32_t)MIN(t / USEC_PER_MSEC, (usec_t)PACK_NEED_UNKNOWN - 1);
}

/* The volume's metadata, likely enough and merged where reading through is cheaper. Metadata is
 * small and always pays: it is paid for before the data. */
static int add_metadata(const LocatedPlan *l, uint32_t volume, const PlanParameters *p,
                        uint64_t max_gap, PackContentSegment *g, PlanSummary *s)
{
    const Volume *v = &l->volumes->volumes[volume];

    for (size_t i = 0; i < l->n_metadata; i++) {
        const LocatedMetadata *m = &l->metadata[i];
        PackContentMetadata *last = g->n_metadata > 0 ? &g->metadata[g->n_metadata - 1] : NULL;
        uint64_t end;

        if (m->volume != volume || m->offset >= v->size_bytes)
            continue;
        if (!(m->probability >= p->min_probability)) {
            s->n_skipped[PLAN_SKIP_UNLIKELY]++;
            continue;
        }
        end = m->offset + MIN(m->length, v->size_bytes - m->offset);
        if (last && m->offset <= last->offset + last->length + max_gap) {
            uint64_t old_end = last->offset + last->length;

            s->gap_bytes += m->offset > old_end ? m->offset - old_end : 0;
            last->length = MAX(old_end, end) - last->offset;
            last->probability = MAX(last->probability, m->probability);
            continue;
        }
        if (grow_array(&g->metadata, &g->allocated_metadata, g->n_metadata + 1,
                       sizeof(PackContentMetadata)) < 0)
            return -ENOMEM;
        g->metadata[g->n_metadata++] = (PackContentMetadata){
                .offset = m->offset,
                .length = end - m->offset,
                .need_msec = PACK_NEED_UNKNOWN,
                .probability = m->probability,
        };
    }
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

/* Files of the volume in inode order; *ret_where tells where each located file went. */
static int add_files(const LocatedPlan *l, uint32_t volume, const PlanParameters *p, bool **keep,
                     uint32_t *where, PackContentSegment *g, PlanSummary *s)
{
    _cleanup_free_ ByInode *order = reallocarray(NULL, l->n_files + 1, sizeof(ByInode));
    size_t n = 0;

    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < l->n_files; i++) {
        const LocatedFile *f = &l->files[i];
        bool wanted = f->probability >= p->min_probability;

        for (size_t k = 0; k < f->n_maps; k++)
            wanted = wanted || keep[i][k];
        if (f->volume == volume && wanted)
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
        where[order[i].file] = (uint32_t)g->n_files;
        g->files[g->n_files++] = (PackContentFile){
                .path = path,
                .directory = f->directory,
                .written_in_place = !f->directory && f->mtime_nsec > 0 &&
                                    (uint64_t)f->mtime_nsec / NSEC_PER_USEC >= p->volatile_since,
                .inode = f->inode,
                .size_bytes = f->size_bytes,
                .mtime_nsec = f->mtime_nsec,
                .ctime_nsec = f->ctime_nsec,
                .need_msec = to_msec(f->first_use),
                .probability = f->probability,
        };
        if (f->directory)
            s->n_directories++;
        else
            s->n_files++;
    }
    return 0;
}

static int add_data(const LocatedPlan *l, uint32_t volume, bool **keep, const uint32_t *where,
                    uint64_t max_gap, PackContentSegment *g, PlanSummary *s)
{
    PieceList list = {0};
    int r = 0;

    for (size_t i = 0; r >= 0 && i < l->n_files; i++) {
        const LocatedFile *f = &l->files[i];

        if (f->volume != volume || f->directory)
            continue;
        for (size_t k = 0; r >= 0 && k < f->n_maps; k++)
            if (keep[i][k])
                r = pieces_add_map(&list, where[i], &f->maps[k], f->first_use, f->extents,
                                   f->n_extents);
    }
    if (r >= 0) {
        pieces_sort(&list);
        s->gap_bytes += pieces_merge(&list, max_gap);
        r = grow_array(&g->data, &g->allocated_data, list.n, sizeof(PackContentData));
    }
    for (size_t i = 0; r >= 0 && i < list.n; i++)
        g->data[g->n_data++] = (PackContentData){
                .file = list.pieces[i].file,
                .offset = list.pieces[i].offset,
                .length = list.pieces[i].length,
                .physical = list.pieces[i].physical,
                .need_msec = to_msec(list.pieces[i].need),
                .probability = list.pieces[i].probability,
        };
    piece_list_done(&list);
    return r;
}

/* The time replaying this segment alone takes by the cost model: metadata, then data. */
static double estimate_segment(const PackContentSegment *g, const CostModel *m)
{
    uint64_t head = 0;
    double t = 0;

    for (size_t i = 0; i < g->n_metadata; i++) {
        t += cost_request_usec(m, head, g->metadata[i].offset, g->metadata[i].length,
                               g->device_size);
        head = g->metadata[i].offset + g->metadata[i].length;
    }
    for (size_t i = 0; i < g->n_data; i++) {
        if (g->data[i].physical == PACK_PHYSICAL_UNKNOWN)
            continue;
        t += cost_request_usec(m, head, g->data[i].physical, g->data[i].length, g->device_size);
        head = g->data[i].physical + g->data[i].length;
    }
    return t;
}

static void summarize(const PackContentSegment *g, const CostModel *m, PlanSummary *s)
{
    s->n_metadata += g->n_metadata;
    s->n_pieces += g->n_data;
    for (size_t i = 0; i < g->n_metadata; i++)
        s->metadata_bytes += g->metadata[i].length;
    for (size_t i = 0; i < g->n_data; i++)
        s->data_bytes += g->data[i].length;
    if (!(g->flags & PACK_SEGMENT_PHYSICAL) && g->n_data > 0)
        s->estimated_usec = USEC_INFINITY;
    else if (s->estimated_usec != USEC_INFINITY)
        s->estimated_usec += (usec_t)estimate_segment(g, m);
}

static int add_segment(const LocatedPlan *l, uint32_t volume, const PlanParameters *p, bool **keep,
                       uint32_t *where, PackContent *c, PlanSummary *s)
{
    const Volume *v = &l->volumes->volumes[volume];
    bool btrfs = strcmp(v->fstype, "btrfs") == 0, ext = strncmp(v->fstype, "ext", 3) == 0;
    DeviceClass class = class_of(v, p);
    const CostModel *m = cost_model_of(class);
    PackContentSegment *g;
    int r;

    r = grow_array(&c->segments, &c->allocated_segments, c->n_segments + 1,
                   sizeof(PackContentSegment));
    if (r < 0)
        return r;
    g = &c->segments[c->n_segments++];
    *g = (PackContentSegment){
            .subvolume_id = v->subvolume_id,
            .device_size = v->size_bytes,
            .fstype = strdup(v->fstype),
            .mountpoint = strdup(v->mountpoint),
            .device_class = class,
            .flags = (v->rotational ? PACK_SEGMENT_ROTATIONAL : 0U) |
                     (btrfs ? 0U : PACK_SEGMENT_PHYSICAL) | (ext ? 0U : PACK_SEGMENT_TOUCH_ENTRIES),
    };
    if (!g->fstype || !g->mountpoint)
        return -ENOMEM;
    memcpy(g->uuid, v->uuid_bytes, sizeof(g->uuid));

    r = add_metadata(l, volume, p, cost_break_even_gap(m, v->size_bytes, 0), g, s);
    if (r >= 0)
        r = add_files(l, volume, p, keep, where, g, s);
    if (r >= 0)
        r = add_data(l, volume, keep, where, cost_break_even_gap(m, v->size_bytes, 1), g, s);
    if (r < 0)
        return r;
    summarize(g, m, s);
    return 0;
}

static uint64_t metadata_bytes(const LocatedPlan *l, const PlanParameters *p)
{
    uint64_t n = 0;

    for (size_t i = 0; i < l->n_metadata; i++)
        if (l->metadata[i].probability >= p->min_probability)
            n += l->metadata[i].length;
    return n;
}

static bool has_anything(const LocatedPlan *l, uint32_t volume)
{
    for (size_t i = 0; i < l->n_files; i++)
        if (l->files[i].volume == volume)
            return true;
    for (size_t i = 0; i < l->n_metadata; i++)
        if (l->metadata[i].volume == volume)
            return true;
    return false;
}

int plan_compile(const LocatedPlan *l, const PlanParameters *p, PackContent **ret,
                 PlanSummary *summary)
{
    _cleanup_pack_content_ PackContent *c = calloc(1, sizeof(PackContent));
    _cleanup_free_ uint32_t *where = calloc(l->n_files + 1, sizeof(uint32_t));
    _cleanup_free_ bool **keep = calloc(l->n_files + 1, sizeof(bool *));
    _cleanup_free_ bool *flags = NULL;
    uint64_t metadata = metadata_bytes(l, p);
    PlanSummary s = {0};
    size_t n = 0;
    int r = 0;

    for (size_t i = 0; i < l->n_files; i++)
        n += l->files[i].n_maps;
    flags = calloc(n + 1, sizeof(bool));
    if (!c || !where || !keep || !flags)
        return -ENOMEM;
    n = 0;
    for (size_t i = 0; i < l->n_files; i++) {
        keep[i] = flags + n;
        n += l->files[i].n_maps;
    }
    memcpy(s.n_skipped, l->n_skipped, sizeof(s.n_skipped));
    c->stage = l->stage;
    c->policy = p->policy;
    c->control_interval = p->control_interval;
    c->salt = p->salt;
    c->deadline_usec = p->deadline_usec;
    c->created_realtime = p->now_realtime;

    r = cut(l, p, p->budget_bytes - MIN(p->budget_bytes, metadata), keep, &s);
    for (uint32_t v = 0; r >= 0 && v < l->volumes->n; v++)
        if (has_anything(l, v))
            r = add_segment(l, v, p, keep, where, c, &s);
    if (r < 0)
        return r;
    if (summary)
        *summary = s;
    *ret = TAKE_PTR(c);
    return 0;
}
