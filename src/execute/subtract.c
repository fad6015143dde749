/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "execute/subtract.h"

#include <string.h>

#define NONE UINT32_MAX

/* What of the earlier pack corresponds to the volumes and files of the pack, by their indices. */
typedef struct Counterparts {
    uint32_t *volumes, *files; /* index in the earlier pack, or NONE */
    uint32_t *data;            /* indices of the data of the earlier pack, by file and offset */
    const Pack *earlier;
} Counterparts;

static void counterparts_done(Counterparts *c)
{
    free(c->volumes);
    free(c->files);
    free(c->data);
}

static uint32_t find_volume(const Pack *earlier, const PackVolume *v)
{
    for (uint32_t i = 0; i < le32toh(earlier->header->n_volumes); i++)
        if (memcmp(earlier->volumes[i].uuid, v->uuid, sizeof(v->uuid)) == 0 &&
            earlier->volumes[i].subvolume_id == v->subvolume_id &&
            earlier->volumes[i].device_size == v->device_size)
            return i;
    return NONE;
}

static bool is_same_file(const Pack *p, const PackFile *f, const Pack *earlier, const PackFile *g)
{
    return f->inode == g->inode && f->size == g->size && f->mtime_nsec == g->mtime_nsec &&
           f->ctime_nsec == g->ctime_nsec &&
           !((f->flags ^ g->flags) & htole16(PACK_FILE_FLAGS_ALL & ~PACK_FILE_TOUCHED)) &&
           strcmp(pack_string(p, f->path), pack_string(earlier, g->path)) == 0;
}

/* Searches the files of the volume, which are in rising inode order. Several names of one inode
 * follow one another. */
static uint32_t find_file(const Pack *p, const PackFile *f, const Pack *earlier,
                          const PackVolume *v)
{
    uint64_t inode = le64toh(f->inode);
    uint32_t first = le32toh(v->first_file), end = first + le32toh(v->n_files), low = first,
             high = end;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (le64toh(earlier->files[middle].inode) < inode)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < end && earlier->files[low].inode == f->inode; low++)
        if (is_same_file(p, f, earlier, &earlier->files[low]))
            return low;
    return NONE;
}

static int compare_data(const void *a, const void *b, void *pack)
{
    const PackData *data = ((const Pack *)pack)->data, *x = &data[*(const uint32_t *)a],
                   *y = &data[*(const uint32_t *)b];

    if (x->file != y->file)
        return le32toh(x->file) < le32toh(y->file) ? -1 : 1;
    if (x->offset != y->offset)
        return le64toh(x->offset) < le64toh(y->offset) ? -1 : 1;
    return 0;
}

static int find_counterparts(const Pack *p, const Pack *earlier, Counterparts *ret)
{
    uint32_t n_volumes = le32toh(p->header->n_volumes), n_data = le32toh(earlier->header->n_data);
    _cleanup_(counterparts_done) Counterparts c = {
            .volumes = calloc((size_t)n_volumes + 1, sizeof(uint32_t)),
            .files = calloc((size_t)le32toh(p->header->n_files) + 1, sizeof(uint32_t)),
            .data = calloc((size_t)n_data + 1, sizeof(uint32_t)),
            .earlier = earlier,
    };

    if (!c.volumes || !c.files || !c.data)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_volumes; i++) {
        const PackVolume *v = &p->volumes[i];
        uint32_t first = le32toh(v->first_file), end = first + le32toh(v->n_files),
                 k = find_volume(earlier, v);

        c.volumes[i] = k;
        for (uint32_t f = first; f < end; f++)
            c.files[f] =
                    k == NONE ? NONE : find_file(p, &p->files[f], earlier, &earlier->volumes[k]);
    }
    for (uint32_t i = 0; i < n_data; i++)
        c.data[i] = i;
    qsort_r(c.data, n_data, sizeof(uint32_t), compare_data, (void *)(uintptr_t)earlier);
    *ret = c;
    c = (Counterparts){0};
    return 0;
}

static bool lies_in(uint64_t offset, uint64_t length, uint64_t from, uint64_t from_length)
{
    return offset >= from && offset - from <= from_length &&
           length <= from_length - (offset - from);
}

static bool metadata_was_read(const Counterparts *c, uint32_t volume, const PackMetadata *m)
{
    const PackVolume *v;
    uint32_t low, high;

    if (c->volumes[volume] == NONE)
        return false;
    v = &c->earlier->volumes[c->volumes[volume]];
    low = le32toh(v->first_metadata);
    high = low + le32toh(v->n_metadata);
    /* The last range that does not begin after m; the ranges are disjoint and in rising order. */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (le64toh(c->earlier->metadata[middle].offset) <= le64toh(m->offset))
            low = middle;
        else
            high = middle;
    }
    return low < high && lies_in(le64toh(m->offset), le64toh(m->length),
                                 le64toh(c->earlier->metadata[low].offset),
                                 le64toh(c->earlier->metadata[low].length));
}

static bool data_was_read(const Counterparts *c, const PackData *d)
{
    uint32_t file = c->files[le32toh(d->file)], low = 0, high = le32toh(c->earlier->header->n_data);

    /* The first range of the file, then all of its ranges: files have few. */
    while (file != NONE && low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (le32toh(c->earlier->data[c->data[middle]].file) < file)
            low = middle + 1;
        else
            high = middle;
    }
    for (; file != NONE && low < le32toh(c->earlier->header->n_data); low++) {
        const PackData *e = &c->earlier->data[c->data[low]];

        if (le32toh(e->file) != file)
            break;
        if (lies_in(le64toh(d->offset), le64toh(d->length), le64toh(e->offset), le64toh(e->length)))
            return true;
    }
    return false;
}

static bool was_read(const Pack *p, const Counterparts *c, const Operation *o)
{
    switch (o->kind) {
    case OPERATION_METADATA:
    case OPERATION_ITEM:
        return metadata_was_read(c, o->volume, &p->metadata[o->index]);
    case OPERATION_OPEN:
        return c->files[o->index] != NONE;
    default:
        return data_was_read(c, &p->data[o->index]);
    }
}

int operations_subtract(const Pack *p, const Pack *earlier, OperationList *l)
{
    _cleanup_(counterparts_done) Counterparts c = {0};
    size_t n = 0;
    int r = find_counterparts(p, earlier, &c);

    if (r < 0)
        return r;
    for (size_t i = 0; i < l->n_streams; i++) {
        Stream *s = &l->streams[i];
        size_t first = n;

        for (size_t k = s->first; k < s->first + s->n; k++)
            if (!was_read(p, &c, &l->operations[k]))
                l->operations[n++] = l->operations[k];
        s->first = first;
        s->n = n - first;
        if (s->n == 0)
            s->n_openers = 0;
    }
    l->n = n;
    return 0;
}
