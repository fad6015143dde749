/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "pack/pack-writer.h"

#include "pack/checksum.h"

#include <string.h>

PackContent *pack_content_free(PackContent *c)
{
    if (!c)
        return NULL;
    for (size_t i = 0; i < c->n_volumes; i++) {
        PackContentVolume *s = &c->volumes[i];

        for (size_t k = 0; k < s->n_files; k++)
            free(s->files[k].path);
        free(s->fstype);
        free(s->mountpoint);
        free(s->metadata);
        free(s->files);
        free(s->data);
    }
    free(c->volumes);
    free(c);
    return NULL;
}

_Static_assert(PHYSICAL_UNKNOWN == PACK_PHYSICAL_UNKNOWN, "unknown places are written as they are");

static le16_t probability_field(double p)
{
    if (!(p > 0))
        return htole16(0);
    return htole16((uint16_t)(MIN(p, 1.0) * PACK_PROBABILITY_ONE + 0.5));
}

static le32_t need_field(usec_t need)
{
    if (need == USEC_INFINITY)
        return htole32(PACK_NEED_UNKNOWN);
    return htole32((uint32_t)MIN(need / USEC_PER_MSEC, (usec_t)PACK_NEED_UNKNOWN - 1));
}

/* The sums over all volumes. */
typedef struct Totals {
    uint64_t metadata, files, data, strings;
    uint64_t metadata_bytes, data_bytes;
} Totals;

static Totals sum_up(const PackContent *c)
{
    Totals t = {0};

    for (size_t i = 0; i < c->n_volumes; i++) {
        const PackContentVolume *v = &c->volumes[i];

        t.metadata += v->n_metadata;
        t.files += v->n_files;
        t.data += v->n_data;
        t.strings += strlen(v->fstype) + 1 + strlen(v->mountpoint) + 1;
        for (size_t k = 0; k < v->n_files; k++)
            t.strings += strlen(v->files[k].path) + 1;
        for (size_t k = 0; k < v->n_metadata; k++)
            t.metadata_bytes += v->metadata[k].length;
        for (size_t k = 0; k < v->n_data; k++)
            t.data_bytes += v->data[k].length;
    }
    return t;
}

/* The tables in the buffer, and how many entries of each table are written. */
typedef struct Writer {
    PackHeader *header;
    PackVolume *volumes;
    PackMetadata *metadata;
    PackFile *files;
    PackData *data;
    char *strings;
    uint32_t n_volumes, n_metadata, n_files, n_data, strings_size;
} Writer;

static void lay_out(Writer *w, void *buf, const PackContent *c, const Totals *t)
{
    *w = (Writer){.header = buf};
    w->volumes = (PackVolume *)(w->header + 1);
    w->metadata = (PackMetadata *)(w->volumes + c->n_volumes);
    w->files = (PackFile *)(w->metadata + t->metadata);
    w->data = (PackData *)(w->files + t->files);
    w->strings = (char *)(w->data + t->data);
}

static uint32_t bin_msec(usec_t bin_usec)
{
    if (bin_usec == 0)
        return 0;
    return (uint32_t)MIN(MAX(bin_usec / USEC_PER_MSEC, (usec_t)1), (usec_t)PACK_BIN_PHYSICAL);
}

static void write_header(Writer *w, const PackContent *c, const Totals *t, uint64_t size)
{
    PackHeader *h = w->header;

    memcpy(h->magic, PACK_MAGIC, sizeof(h->magic));
    h->version = htole32(PACK_FORMAT_VERSION);
    h->header_size = htole32(sizeof(PackHeader));
    h->file_size = htole64(size);
    h->stage = (uint8_t)c->stage;
    h->policy = (uint8_t)c->policy;
    h->control_interval = htole32(c->control_interval);
    h->salt = htole64(c->salt);
    h->reason = (uint8_t)c->reason;
    h->deadline_usec = htole64(c->deadline_usec);
    h->hold_usec = htole32((uint32_t)MIN(c->hold_usec, (usec_t)UINT32_MAX));
    h->bin_msec = htole32(bin_msec(c->bin_usec));
    for (Policy p = 0; p < _POLICY_MAX && !c->predicts_waits; p++)
        h->predicted_usec[p] = htole32((uint32_t)MIN(c->predicted_usec[p], (usec_t)UINT32_MAX));
    h->created_realtime_usec = htole64(c->created_realtime);
    h->total_metadata_bytes = htole64(t->metadata_bytes);
    h->total_data_bytes = htole64(t->data_bytes);
    h->n_volumes = htole32((uint32_t)c->n_volumes);
    h->n_metadata = htole32((uint32_t)t->metadata);
    h->n_files = htole32((uint32_t)t->files);
    h->n_data = htole32((uint32_t)t->data);
    h->strings_size = htole32((uint32_t)t->strings);
}

static le32_t write_string(Writer *w, const char *s)
{
    uint32_t offset = w->strings_size, n = (uint32_t)strlen(s) + 1;

    memcpy(w->strings + offset, s, n);
    w->strings_size += n;
    return htole32(offset);
}

static void write_metadata(Writer *w, const PackContentMetadata *m)
{
    w->metadata[w->n_metadata++] = (PackMetadata){
            .offset = htole64(m->offset),
            .length = htole64(m->length),
            .need_msec = htole32(PACK_NEED_UNKNOWN), /* traces do not say when metadata was read */
            .probability = probability_field(m->probability),
            .reader = (uint8_t)m->item.reader,
            .item_type = m->item.type,
            .item_object = htole64(m->item.object),
            .item_offset = htole64(m->item.offset),
    };
}

static void write_file(Writer *w, const PackContentFile *f)
{
    uint16_t flags =
            (uint16_t)((f->directory ? PACK_FILE_DIRECTORY : 0) |
                       (f->written_in_place ? PACK_FILE_VOLATILE : 0) |
                       (f->touched ? PACK_FILE_TOUCHED : 0) | (f->symlink ? PACK_FILE_SYMLINK : 0) |
                       (f->looked_up ? PACK_FILE_LOOKED_UP : 0));

    w->files[w->n_files++] = (PackFile){
            .inode = htole64(f->inode),
            .size = htole64(f->size_bytes),
            .mtime_nsec = htole64((uint64_t)f->mtime_nsec),
            .ctime_nsec = htole64((uint64_t)f->ctime_nsec),
            .path = write_string(w, f->path),
            .need_msec = need_field(f->need),
            .probability = probability_field(f->probability),
            .flags = htole16(flags),
    };
}

static void write_data(Writer *w, const PlacedRange *d, uint32_t first_file)
{
    w->data[w->n_data++] = (PackData){
            .offset = htole64(d->offset),
            .length = htole64(d->length),
            .physical = htole64(d->physical),
            .file = htole32(first_file + d->file),
            .need_msec = need_field(d->need - d->advance),
            .probability = probability_field(d->probability),
    };
}

/* Returns the data ranges before the begin of the sweep as a part of all, in units of 1/65536. */
static uint16_t sweep_start(const PackContentVolume *v)
{
    uint64_t before = 0;

    while (before < v->n_data && v->data[before].physical < v->sweep_start)
        before++;
    return before == v->n_data
                   ? 0
                   : (uint16_t)MIN(DIV_ROUND_UP(before * 65536, v->n_data), UINT64_C(65535));
}

static void write_volume(Writer *w, const PackContentVolume *v)
{
    PackVolume *o = &w->volumes[w->n_volumes++];
    uint32_t first_file = w->n_files;

    memcpy(o->uuid, v->uuid, sizeof(o->uuid));
    o->subvolume_id = htole64(v->subvolume_id);
    o->device_size = htole64(v->device_size);
    o->fstype = write_string(w, v->fstype);
    o->mountpoint = write_string(w, v->mountpoint);
    o->device_class = (uint8_t)v->device_class;
    o->sweep_start = htole16(sweep_start(v));
    o->flags = htole32(v->flags);
    o->first_metadata = htole32(w->n_metadata);
    o->n_metadata = htole32((uint32_t)v->n_metadata);
    o->first_file = htole32(first_file);
    o->n_files = htole32((uint32_t)v->n_files);
    o->first_data = htole32(w->n_data);
    o->n_data = htole32((uint32_t)v->n_data);

    for (size_t k = 0; k < v->n_metadata; k++)
        write_metadata(w, &v->metadata[k]);
    for (size_t k = 0; k < v->n_files; k++)
        write_file(w, &v->files[k]);
    for (size_t k = 0; k < v->n_data; k++)
        write_data(w, &v->data[k], first_file);
}

static uint64_t size_of(const PackContent *c, const Totals *t)
{
    return sizeof(PackHeader) + c->n_volumes * sizeof(PackVolume) +
           t->metadata * sizeof(PackMetadata) + t->files * sizeof(PackFile) +
           t->data * sizeof(PackData) + ALIGN_UP(t->strings, (uint64_t)8);
}

uint64_t pack_content_size(const PackContent *c)
{
    const Totals t = sum_up(c);

    return size_of(c, &t);
}

int pack_write(const PackContent *c, void **ret, size_t *ret_size)
{
    const Totals t = sum_up(c);
    const uint64_t size = size_of(c, &t);
    _cleanup_free_ void *buf = NULL;
    Writer w;
    Pack check;
    int r;

    if (c->n_volumes > PACK_VOLUMES_MAX || size > PACK_SIZE_MAX)
        return -E2BIG;
    buf = calloc(1, size);
    if (!buf)
        return -ENOMEM;
    lay_out(&w, buf, c, &t);
    write_header(&w, c, &t, size);
    for (size_t i = 0; i < c->n_volumes; i++)
        write_volume(&w, &c->volumes[i]);
    w.header->checksum = htole64(pack_checksum(buf, size));

    r = pack_open(buf, size, &check, NULL);
    if (r < 0)
        return r == -E2BIG ? r : -EINVAL;
    *ret = TAKE_PTR(buf);
    *ret_size = size;
    return 0;
}
