/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/plan-cut.h"

#include <string.h>

/* The order in which objects are selected. */
typedef enum CandidateKind {
    CANDIDATE_METADATA,
    CANDIDATE_MAP,
    CANDIDATE_FILE, /* an open without a map */
} CandidateKind;

typedef struct Candidate {
    CandidateKind kind;
    bool of_root;
    uint32_t file;
    size_t index; /* into keep_metadata, keep_maps or keep_files */
    double probability;
    double saved;   /* usec per byte */
    uint64_t bytes; /* of memory */
    uint64_t n_ranges;
} Candidate;

typedef struct Cutter {
    const LocatedPlan *l;
    const PlanParameters *p;
    PlanCut cut;
    Candidate *candidates;
    size_t n, allocated;
    uint64_t metadata_bytes; /* this field and the next three: the rest of each limit */
    uint64_t n_files, path_bytes, n_ranges;
} Cutter;

DeviceClass plan_device_class(const Volume *v, const PlanParameters *p)
{
    const DeviceProfile *d = &v->profile;

    if ((int)p->device_class >= 0)
        return p->device_class;
    if (v->device_class == DEVICE_CLASS_HDD || v->seeks_slowly || d->seek_max_usec > 0)
        return v->device_class;
    return device_class_of_profile(d);
}

const Volume *plan_volume_of(const VolumeTable *t, const PackContentVolume *g)
{
    for (size_t i = 0; i < t->n; i++)
        if (memcmp(t->volumes[i].uuid_bytes, g->uuid, sizeof(g->uuid)) == 0 &&
            strcmp(t->volumes[i].mountpoint, g->mountpoint) == 0)
            return &t->volumes[i];
    return NULL;
}

const DeviceProfile *plan_device_profile(const Volume *v, const PlanParameters *p)
{
    return (int)p->device_class >= 0 ? device_profile_of_class(p->device_class) : &v->profile;
}

void plan_cut_done(PlanCut *c)
{
    free(c->keep_metadata);
    free(c->keep_files);
    free(c->keep_maps);
    free(c->first_map);
    *c = (PlanCut){0};
}

static void cutter_done(Cutter *x)
{
    plan_cut_done(&x->cut);
    free(x->candidates);
}

static int compare_candidates(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->probability != y->probability)
        return x->probability > y->probability ? -1 : 1;
    if (x->of_root != y->of_root)
        return x->of_root ? -1 : 1;
    if (x->saved != y->saved)
        return x->saved > y->saved ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static bool is_likely(const Cutter *x, double probability)
{
    return probability >= x->p->min_probability; /* false if it is not a number */
}

static int add_candidate(Cutter *x, const Candidate *c)
{
    int r = grow_array(&x->candidates, &x->allocated, x->n + 1, sizeof(Candidate));

    if (r >= 0)
        x->candidates[x->n++] = *c;
    return r;
}

/* Returns the number of bytes that the range takes in the page cache. */
static uint64_t bytes_of_pages(const Cutter *x, uint64_t offset, uint64_t length)
{
    return ALIGN_UP(offset + length, x->p->page_bytes) - ALIGN_DOWN(offset, x->p->page_bytes);
}

/* Returns the number of extents that hold a part of the map, but at least 1. The extents are sorted
 * by their offset in the file. */
static uint64_t count_extents(const LocatedFile *f, const PredictedRange *m)
{
    size_t lo = 0, hi = f->n_extents, n = 0;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (f->extents[mid].logical + f->extents[mid].length <= m->offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < f->n_extents && f->extents[lo].logical < m->offset + m->length; lo++)
        n++;
    return MAX(n, (size_t)1);
}

static int add_metadata(Cutter *x)
{
    for (size_t i = 0; i < x->l->n_metadata; i++) {
        const PredictedRange *m = &x->l->metadata[i].range;
        const Volume *v = &x->l->volumes->volumes[x->l->metadata[i].volume];
        Candidate c = {
                .kind = CANDIDATE_METADATA,
                .index = i,
                .probability = m->probability,
                .n_ranges = 1,
        };
        int r;

        if (m->offset >= v->size_bytes || m->length == 0)
            continue;
        if (!is_likely(x, m->probability)) {
            x->cut.n_skipped[PLAN_SKIP_UNLIKELY]++;
            continue;
        }
        c.bytes = bytes_of_pages(x, m->offset, MIN(m->length, v->size_bytes - m->offset));
        c.saved = cost_saved_usec_per_byte(plan_device_profile(v, x->p), c.bytes, 1);
        r = add_candidate(x, &c);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_maps(Cutter *x, uint32_t file)
{
    const LocatedFile *f = &x->l->files[file];
    const Volume *v = &x->l->volumes->volumes[f->volume];

    for (size_t k = 0; k < f->n_maps; k++) {
        const PredictedRange *m = &f->maps[k];
        Candidate c = {
                .kind = CANDIDATE_MAP,
                .of_root = f->of_root,
                .file = file,
                .index = x->cut.first_map[file] + k,
                .probability = m->probability,
                .bytes = bytes_of_pages(x, m->offset, m->length),
                .n_ranges = count_extents(f, m),
        };
        int r;

        if (!is_likely(x, m->probability)) {
            x->cut.n_skipped[PLAN_SKIP_UNLIKELY]++;
            continue;
        }
        c.saved = cost_saved_usec_per_byte(plan_device_profile(v, x->p), c.bytes, c.n_ranges);
        r = add_candidate(x, &c);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_file(Cutter *x, uint32_t file)
{
    const LocatedFile *f = &x->l->files[file];

    if (!is_likely(x, f->probability))
        return 0;
    return add_candidate(x, &(Candidate){
                                    .kind = CANDIDATE_FILE,
                                    .of_root = f->of_root,
                                    .file = file,
                                    .index = file,
                                    .probability = f->probability,
                            });
}

/* Returns true if the file is kept already, or if there is room to keep it. */
static bool keep_file(Cutter *x, uint32_t file)
{
    uint64_t length = strlen(x->l->files[file].path) + 1;

    if (x->cut.keep_files[file])
        return true;
    if (x->n_files == 0 || length > x->path_bytes)
        return false;
    x->n_files--;
    x->path_bytes -= length;
    return x->cut.keep_files[file] = true;
}

static bool fits_budget(const Cutter *x, const Candidate *c)
{
    return c->bytes <= x->cut.budget_bytes &&
           (c->kind != CANDIDATE_METADATA || c->bytes <= x->metadata_bytes);
}

static void select_candidate(Cutter *x, const Candidate *c)
{
    if (!fits_budget(x, c)) {
        x->cut.n_skipped[PLAN_SKIP_BUDGET]++;
        return;
    }
    if (c->n_ranges > x->n_ranges || (c->kind != CANDIDATE_METADATA && !keep_file(x, c->file))) {
        x->cut.n_skipped[PLAN_SKIP_LIMIT]++;
        return;
    }
    x->cut.budget_bytes -= c->bytes;
    x->n_ranges -= c->n_ranges;
    if (c->kind == CANDIDATE_METADATA) {
        x->metadata_bytes -= c->bytes;
        x->cut.keep_metadata[c->index] = true;
    } else if (c->kind == CANDIDATE_MAP)
        x->cut.keep_maps[c->index] = true;
}

static int allocate(Cutter *x)
{
    const LocatedPlan *l = x->l;
    size_t n = 0;

    x->cut.first_map = reallocarray(NULL, l->n_files + 1, sizeof(size_t));
    x->cut.keep_metadata = calloc(l->n_metadata + 1, sizeof(bool));
    x->cut.keep_files = calloc(l->n_files + 1, sizeof(bool));
    if (!x->cut.first_map || !x->cut.keep_metadata || !x->cut.keep_files)
        return -ENOMEM;
    for (size_t i = 0; i < l->n_files; i++) {
        x->cut.first_map[i] = n;
        n += l->files[i].n_maps;
    }
    x->cut.keep_maps = calloc(n + 1, sizeof(bool));
    return x->cut.keep_maps ? 0 : -ENOMEM;
}

int plan_cut(const LocatedPlan *l, const PlanParameters *p, PlanCut *ret)
{
    _cleanup_(cutter_done) Cutter x = {
            .l = l,
            .p = p,
            .cut.budget_bytes = p->budget_bytes,
            .metadata_bytes = MAX(p->budget_bytes / 4, PLAN_METADATA_BYTES_MIN),
            .n_files = PLAN_FILES_MAX,
            .path_bytes = PLAN_PATH_BYTES_MAX,
            .n_ranges = PLAN_RANGES_MAX,
    };
    int r = allocate(&x);

    if (r >= 0)
        r = add_metadata(&x);
    for (uint32_t i = 0; r >= 0 && i < l->n_files; i++) {
        r = add_maps(&x, i);
        if (r >= 0)
            r = add_file(&x, i);
    }
    if (r < 0)
        return r;
    if (x.n > 1)
        qsort(x.candidates, x.n, sizeof(Candidate), compare_candidates);
    for (size_t i = 0; i < x.n; i++)
        select_candidate(&x, &x.candidates[i]);
    *ret = x.cut;
    x.cut = (PlanCut){0};
    return 0;
}
