/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Derives the cycle's objects from the model: byte ranges, directories and metadata ranges, and the
 * probability that each application needs them. */

#include "plan/cost-model.h"
#include "session/cycle-internal.h"
#include "session/own-maps.h"
#include "volume/mountinfo.h"

#include <string.h>

/* Bounds of metadata. A session of a desktop needs some hundred ranges, 1 to 8 MB in total. */
#define CYCLE_METADATA_MAX   10000U
#define CYCLE_METADATA_BYTES (UINT64_C(16) << 20)
/* A part of a file is left out if less than this share of the file's uses needed it, because the
 * part is not worth the memory. */
#define PART_MIN 0.25
/* The most objects of a file. Beyond this, the nearest ones are joined. */
#define FILE_OBJECTS_MAX 256U

void cycle_objects_done(CycleObjects *m)
{
    for (size_t i = 0; i < m->n_paths; i++)
        free(m->paths[i].text);
    free(m->paths);
    free(m->objects);
    free(m->worth);
    free(m->items);
    free(m->parts);
    free(m->chances);
    *m = (CycleObjects){0};
}

bool cycle_excludes(const char *list, const char *path)
{
    bool excluded = false;
    size_t longest = 0;

    for (const char *w = list ? list : ""; *w;) {
        size_t l = strcspn(w, " \t");
        bool except = l > 0 && *w == '!';
        char prefix[4096];

        if (l > except && l < sizeof(prefix)) {
            size_t n = l - except;

            memcpy(prefix, w + except, n);
            prefix[n] = 0;
            if (n >= longest && path_is_below(path, prefix)) {
                longest = n;
                excluded = !except;
            }
        }
        w += l;
        w += strspn(w, " \t");
    }
    return excluded;
}

/* The objects of a file are those from first[file] up to, but not including, first[file + 1]. */
typedef struct FileObjects {
    uint32_t *first;
    float *chances; /* by object: P(the object is needed | its file is used) */
    size_t allocated_chances;
} FileObjects;

static void file_objects_done(FileObjects *f)
{
    free(f->first);
    free(f->chances);
}

static int add_object(CycleObjects *m, const CycleObject *o)
{
    int r;

    if (m->n_objects >= CYCLE_OBJECTS_MAX)
        return 0;
    r = grow_array(&m->objects, &m->allocated_objects, m->n_objects + 1, sizeof(*m->objects));
    if (r >= 0)
        m->objects[m->n_objects++] = *o;
    return r;
}

static int add_file_object(CycleObjects *m, FileObjects *f, const CycleObject *o, double chance)
{
    int r = grow_array(&f->chances, &f->allocated_chances, m->n_objects + 1, sizeof(*f->chances));

    if (r < 0)
        return r;
    f->chances[m->n_objects] = (float)chance;
    return add_object(m, o);
}

CyclePath *cycle_objects_find(CycleObjects *m, const char *path)
{
    size_t low = 0, high = m->n_files;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = strcmp(m->paths[mid].text, path);

        if (c == 0)
            return &m->paths[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* Appends a copy of the text to the paths. */
static int add_path(CycleObjects *m, const char *text)
{
    int r = grow_array(&m->paths, &m->allocated_paths, m->n_paths + 1, sizeof(*m->paths));
    char *path;

    if (r < 0)
        return r;
    path = strdup(text);
    if (!path)
        return -ENOMEM;
    m->paths[m->n_paths++] = (CyclePath){.text = path, .shipped = model_path_is_portable(path)};
    return 0;
}

static int compare_gaps(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x < *y) - (*x > *y);
}

/* Joins an object with the next one of its file. The chance becomes the mean over the bytes. */
static void join_next(CycleObject *o, float *chance, const CycleObject *next, float chance_of_next)
{
    double bytes = (double)*chance * (double)o->range.length +
                   (double)chance_of_next * (double)next->range.length;

    o->range.length = range_end(&next->range) - o->range.offset;
    *chance = (float)(bytes / (double)o->range.length);
}

/* Joins the nearest of the file's objects, which begin with `first`, until FILE_OBJECTS_MAX are
 * left: those with the largest gaps between them stay apart. */
static int join_nearest(CycleObjects *m, FileObjects *f, size_t first)
{
    size_t n = m->n_objects - first, at = first;
    size_t n_equal = FILE_OBJECTS_MAX - 1; /* gaps of the least length that stay */
    _cleanup_free_ uint64_t *gaps = NULL;
    uint64_t least;

    if (n <= FILE_OBJECTS_MAX)
        return 0;
    gaps = calloc(n - 1, sizeof(*gaps));
    if (!gaps)
        return -ENOMEM;
    for (size_t i = 0; i < n - 1; i++)
        gaps[i] = m->objects[first + i + 1].range.offset - range_end(&m->objects[first + i].range);
    qsort(gaps, n - 1, sizeof(*gaps), compare_gaps);
    least = gaps[n_equal - 1];
    for (size_t i = 0; gaps[i] > least; i++)
        n_equal--;
    for (size_t i = first + 1; i < m->n_objects; i++) {
        const CycleObject next = m->objects[i];
        uint64_t gap = next.range.offset - range_end(&m->objects[at].range);
        bool stays = gap > least || (gap == least && n_equal > 0);

        if (stays) {
            n_equal -= gap == least;
            m->objects[++at] = next;
            f->chances[at] = f->chances[i];
        } else
            join_next(&m->objects[at], &f->chances[at], &next, f->chances[i]);
    }
    m->n_objects = at + 1;
    return 0;
}

/* Adds the ranges of a file. Adjacent ranges with a probability of at least PART_MIN become one
 * object, with their mean probability. */
static int add_ranges(CycleObjects *m, FileObjects *f, uint32_t path, const WeightedRanges *s,
                      DecayedSum whole)
{
    for (size_t i = 0; i < s->n;) {
        uint64_t start = s->ranges[i].offset, end = start;
        double sum = 0;
        int r;

        for (; i < s->n && (end == start || s->ranges[i].offset == end); i++) {
            double chance = decayed_sum_ratio(s->ranges[i].weight, whole);

            if (chance < PART_MIN)
                break;
            sum += chance * (double)(s->ranges[i].length);
            end = weighted_range_end(&s->ranges[i]);
        }
        if (end == start) {
            i++;
            continue;
        }
        r = add_file_object(m, f, &(CycleObject){.path = path, .range = {start, end - start}},
                            sum / (double)(end - start));
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_file(CycleObjects *m, FileObjects *f, const Model *model, const OwnMaps *own,
                    const ModelStageFile *x)
{
    const ModelFile *file = &model->files[x->file];
    const ModelResidency *best = own_maps_residency(own, x);
    size_t before = m->n_objects;
    int r = add_path(m, file->path);

    if (r < 0)
        return r;
    if (!file->directory) {
        r = add_ranges(m, f, (uint32_t)m->n_paths - 1, &best->ranges, best->sessions);
        if (r >= 0)
            r = join_nearest(m, f, before);
        if (r < 0)
            return r;
    }
    if (m->n_objects > before)
        return 0;
    /* The object is the entries of a directory, or the inode of a file that has no range with a
     * probability of at least PART_MIN. */
    return add_file_object(
            m, f,
            &(CycleObject){.path = (uint32_t)m->n_paths - 1,
                           .kind = file->directory ? PREFETCH_DIRECTORY : PREFETCH_FILE},
            1);
}

static int add_files(CycleObjects *m, FileObjects *f, const Model *sum, const OwnMaps *own,
                     const CycleParameters *p)
{
    const ModelStage *s = &sum->stages[0];
    size_t at = 0;

    f->first = calloc(sum->n_files + 1, sizeof(*f->first));
    if (!f->first)
        return -ENOMEM;
    for (uint32_t i = 0; i < sum->n_files; i++) {
        f->first[i] = (uint32_t)m->n_objects;
        if (at >= s->n_files || s->files[at].file != i)
            continue;
        if (!cycle_excludes(p->exclude, sum->files[i].path)) {
            int r = add_file(m, f, sum, own, &s->files[at]);

            if (r < 0)
                return r;
        }
        at++;
    }
    f->first[sum->n_files] = (uint32_t)m->n_objects;
    m->n_files = m->n_paths;
    return 0;
}

static int add_part(CycleObjects *m, uint32_t object, double chance)
{
    int r = grow_array(&m->parts, &m->allocated_parts, m->n_parts + 1, sizeof(*m->parts));

    if (r >= 0)
        r = grow_array(&m->chances, &m->allocated_chances, m->n_parts + 1, sizeof(*m->chances));
    if (r < 0)
        return r;
    m->chances[m->n_parts] = (float)chance;
    m->parts[m->n_parts++] = object;
    return 0;
}

static int set_item(CycleObjects *m, uint32_t item, ItemParts x)
{
    int r = grow_array_zeroed(&m->items, &m->allocated_items, (size_t)item + 1, sizeof(*m->items));

    if (r < 0)
        return r;
    m->items[item] = x;
    m->n_items = MAX(m->n_items, (size_t)item + 1);
    return 0;
}

/* Returns the number of parts that the uses of the application have. uses[*at] is its first use;
 * *at is advanced past its last use. */
static uint64_t count_parts(const ModelStage *s, const FileObjects *f, uint32_t application,
                            size_t *at)
{
    uint64_t n = 0;

    for (; *at < s->n_uses && s->uses[*at].application == application; ++*at)
        n += f->first[s->uses[*at].file + 1] - f->first[s->uses[*at].file];
    return n;
}

/* Computes how many parts each application may have, so that all together have at most
 * CYCLE_PARTS_MAX. Applications with fewer parts have all of theirs. Without this limit, one user
 * could make many programs use a file with many ranges, and so take the memory of headstartd. */
static int share_parts(const ModelStage *s, const FileObjects *f, size_t n_applications,
                       uint64_t *ret)
{
    _cleanup_free_ uint64_t *counts = calloc(n_applications + 1, sizeof(*counts));
    uint64_t low = 0, high = CYCLE_PARTS_MAX;
    size_t at = 0;

    if (!counts)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_applications; i++)
        counts[i] = count_parts(s, f, i, &at);
    while (low < high) {
        uint64_t most = high - (high - low) / 2, all = 0;

        for (size_t i = 0; i < n_applications; i++)
            all += MIN(counts[i], most);
        if (all <= CYCLE_PARTS_MAX)
            low = most;
        else
            high = most - 1;
    }
    *ret = low;
    return 0;
}

/* An application of the stage, and its uses, which begin with `first_use`. */
typedef struct Application {
    const ModelApplication *everybodys, *own;
    uint32_t number;
    size_t first_use;
} Application;

/* Adds the parts of the files that the application uses, `most` of them at most: of the files that
 * the distribution ships, or of the others. */
static int add_parts(CycleObjects *m, const FileObjects *f, const ModelStage *s, OwnMaps *own,
                     const Application *x, bool shipped, uint64_t *most, uint64_t *bytes)
{
    for (size_t at = x->first_use; at < s->n_uses && s->uses[at].application == x->number; at++) {
        const ModelUse *u = &s->uses[at];
        double used = own_maps_use_chance(own, x->own, x->everybodys, u);

        for (uint32_t o = f->first[u->file]; o < f->first[u->file + 1] && *most > 0; o++) {
            int r;

            if (m->paths[m->objects[o].path].shipped != shipped)
                break;
            r = add_part(m, o, used * (double)f->chances[o]);
            if (r < 0)
                return r;
            --*most;
            *bytes += MIN(m->objects[o].range.length, UINT64_MAX - *bytes);
        }
    }
    return 0;
}

/* Adds an application of the stage, with at most `most` parts: first those of files that the
 * distribution ships. uses[*at] is its first use; *at is advanced past its last use. */
static int add_application(CycleObjects *m, const FileObjects *f, const Model *sum, OwnMaps *own,
                           uint32_t application, size_t *at, uint64_t most,
                           const CycleParameters *p, Chains *chains)
{
    const ModelStage *s = &sum->stages[0];
    const ModelApplication *a = &s->applications[application];
    const Application of = {a, own_maps_application(own, a->file), application, *at};
    ItemParts x = {.first = (uint32_t)m->n_parts};
    size_t own_use = own->use;
    uint64_t bytes = 0;
    uint32_t item;
    int r;

    r = add_parts(m, f, s, own, &of, true, &most, &bytes);
    own->use = own_use;
    if (r >= 0)
        r = add_parts(m, f, s, own, &of, false, &most, &bytes);
    if (r < 0)
        return r;
    (void)count_parts(s, f, application, at);
    x.n = (uint32_t)m->n_parts - x.first;
    if (a->file == MODEL_NONE || x.n == 0 || bytes < p->minsize_bytes ||
        cycle_excludes(p->exclude, sum->files[a->file].path)) {
        m->n_parts = x.first;
        return 0;
    }
    r = chains_add_name(chains, sum->files[a->file].path, &item);
    if (r == -E2BIG) { /* the chains cannot follow further applications */
        m->n_parts = x.first;
        return 0;
    }
    return r < 0 ? r : set_item(m, item, x);
}

/* Computes the worth of each object for the seeks of a hard disk. On devices with cheap seeks the
 * order of the objects matters less. */
static int set_worth(CycleObjects *m)
{
    uint64_t seek_bytes = cost_seek_bytes(device_profile_of_class(DEVICE_CLASS_UNKNOWN));

    m->worth = calloc(m->n_objects + 1, sizeof(*m->worth));
    if (!m->worth)
        return -ENOMEM;
    for (size_t i = 0; i < m->n_objects; i++)
        m->worth[i] = object_worth(m->objects[i].range.length, seek_bytes);
    return 0;
}

/* Compares metadata ranges, so that the likeliest are sorted first. */
static int compare_metadata(const void *a, const void *b)
{
    const CycleObject *x = a, *y = b;

    if (x->chance != y->chance)
        return x->chance > y->chance ? -1 : 1;
    if (x->path != y->path)
        return x->path < y->path ? -1 : 1;
    return (x->range.offset > y->range.offset) - (x->range.offset < y->range.offset);
}

static int add_volume(CycleObjects *m, const ModelMetadata *d, double minimum_use)
{
    int r = add_path(m, d->uuid);

    for (size_t i = 0; r >= 0 && i < d->ranges.n; i++) {
        const WeightedRange *g = &d->ranges.ranges[i];
        double chance = decayed_sum_ratio(g->weight, d->observed);

        if (chance >= minimum_use)
            r = add_object(m, &(CycleObject){.path = (uint32_t)m->n_paths - 1,
                                             .kind = PREFETCH_METADATA,
                                             .range = {g->offset, g->length},
                                             .chance = (float)chance});
    }
    return r;
}

/* Adds the metadata of that user's sessions (UID_INVALID: of all sessions). CYCLE_METADATA_BYTES
 * and CYCLE_METADATA_MAX keep one session, in which an indexer or an upgrade looked up all files,
 * from filling the budget. */
static int add_metadata(CycleObjects *m, const Model *model, const CycleParameters *p, uint32_t uid)
{
    uint64_t left = CYCLE_METADATA_BYTES;
    size_t kept = m->n_objects;
    int r = 0;

    m->first_metadata = m->n_objects;
    for (size_t i = 0; r >= 0 && i < model->n_stages; i++) {
        const ModelStage *s = &model->stages[i];

        if (s->stage != STAGE_SESSION || (uid != UID_INVALID && s->uid != uid))
            continue;
        for (size_t k = 0; r >= 0 && k < s->n_metadata; k++)
            r = s->metadata[k].application
                        ? 0
                        : add_volume(m, &s->metadata[k], p->selection.minimum_use);
    }
    if (m->n_objects > m->first_metadata)
        qsort(m->objects + m->first_metadata, m->n_objects - m->first_metadata, sizeof(*m->objects),
              compare_metadata);
    for (size_t i = m->first_metadata; i < m->n_objects; i++)
        if (m->objects[i].range.length <= left && kept - m->first_metadata < CYCLE_METADATA_MAX) {
            left -= m->objects[i].range.length;
            m->objects[kept++] = m->objects[i];
        }
    m->n_objects = kept;
    return r;
}

int cycle_objects_fill(CycleObjects *m, const Model *model, const CycleParameters *p, uint32_t uid,
                       Chains *chains)
{
    _cleanup_(file_objects_done) FileObjects f = {0};
    _cleanup_(own_maps_done) OwnMaps own = {0};
    _cleanup_model_ Model *sum = NULL;
    const unsigned stages = 1U << STAGE_LOGIN | 1U << STAGE_SESSION;
    size_t at = 0, n_applications;
    uint64_t most = 0;
    int r;

    r = model_sum_stages(model, stages, UID_INVALID, &sum);
    if (r < 0 || sum->n_stages == 0)
        return r;
    r = own_maps_init(&own, model, sum, uid, stages);
    if (r >= 0)
        r = add_files(m, &f, sum, &own, p);
    n_applications = MIN(sum->stages[0].n_applications, (size_t)CYCLE_APPLICATIONS_MAX);
    if (r >= 0)
        r = share_parts(&sum->stages[0], &f, n_applications, &most);
    for (uint32_t i = 0; r >= 0 && i < n_applications; i++)
        r = add_application(m, &f, sum, &own, i, &at, most, p, chains);
    if (r >= 0)
        r = add_metadata(m, model, p, uid);
    return r < 0 ? r : set_worth(m);
}
