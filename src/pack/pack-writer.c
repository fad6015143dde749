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

static le16_t probability_field(double p)
{
    if (!(p > 0))
        return htole16(0);
    return htole16((uint16_t)(MIN(p, 1.0) * PACK_PROBABILITY_ONE + 0.5));
}

typedef struct Totals {
    uint64_t metadata, files, data, strings;
    uint64_t metadata_bytes, data_bytes;
} Totals;

static void count(const PackContent *c, Totals *t)
{
    *t = (Totals){0};
    for (size_t i = 0; i < c->n_volumes; i++) {
        const PackContentVolume *s = &c->volumes[i];

        t->metadata += s->n_metadata;
        t->files += s->n_files;
        t->data += s->n_data;
        t->strings += strlen(s->fstype) + 1 + strlen(s->mountpoint) + 1;
        for (size_t k = 0; k < s->n_files; k++)
            t->strings += strlen(s->files[k].path) + 1;
        for (size_t k = 0; k < s->n_metadata; k++)
            t->metadata_bytes += s->metadata[k].length;
        for (size_t k = 0; k < s->n_data; k++)
            t->data_bytes += s->data[k].length;
    }
}

static le32_t add_string(char *strings, uint64_t *at, const char *s)
{
    size_t n = strlen(s) + 1;
    uint64_t offset = *at;

    memcpy(strings + offset, s, n);
    *at += n;
    return htole32((uint32_t)offset);
}

int pack_write(const PackContent *c, void **ret, size_t *ret_size)
{
    _cleanup_free_ uint8_t *buf = NULL;
    uint64_t size, string_at = 0;
    uint32_t metadata_at = 0, file_at = 0, data_at = 0;
    PackVolume *volumes;
    PackMetadata *metadata;
    PackFile *files;
    PackData *data;
    PackHeader *h;
    char *strings;
    Totals t;
    Pack check;
    int r;

    count(c, &t);
    size = sizeof(PackHeader) + c->n_volumes * sizeof(PackVolume) +
           t.metadata * sizeof(PackMetadata) + t.files * sizeof(PackFile) +
           t.data * sizeof(PackData) + ALIGN_UP(t.strings, (uint64_t)8);
    if (c->n_volumes > PACK_VOLUMES_MAX || size > PACK_SIZE_MAX)
        return -E2BIG;
    buf = calloc(1, size);
    if (!buf)
        return -ENOMEM;

    h = (PackHeader *)buf;
    volumes = (PackVolume *)(h + 1);
    metadata = (PackMetadata *)(volumes + c->n_volumes);
    files = (PackFile *)(metadata + t.metadata);
    data = (PackData *)(files + t.files);
    strings = (char *)(data + t.data);

    memcpy(h->magic, PACK_MAGIC, sizeof(h->magic));
    h->version = htole32(PACK_FORMAT_VERSION);
    h->header_size = htole32(sizeof(PackHeader));
    h->file_size = htole64(size);
    h->stage = (uint8_t)c->stage;
    h->policy = (uint8_t)c->policy;
    h->control_interval = htole32(c->control_interval);
    h->salt = htole64(c->salt);
    h->deadline_usec = htole64(c->deadline_usec);
    h->created_realtime_usec = htole64(c->created_realtime);
    h->total_metadata_bytes = htole64(t.metadata_bytes);
    h->total_data_bytes = htole64(t.data_bytes);
    h->n_volumes = htole32((uint32_t)c->n_volumes);
    h->n_metadata = htole32((uint32_t)t.metadata);
    h->n_files = htole32((uint32_t)t.files);
    h->n_data = htole32((uint32_t)t.data);
    h->strings_size = htole32((uint32_t)t.strings);

    for (size_t i = 0; i < c->n_volumes; i++) {
        const PackContentVolume *s = &c->volumes[i];
        PackVolume *o = &volumes[i];

        memcpy(o->uuid, s->uuid, sizeof(o->uuid));
        o->subvolume_id = htole64(s->subvolume_id);
        o->device_size = htole64(s->device_size);
        o->fstype = add_string(strings, &string_at, s->fstype);
        o->mountpoint = add_string(strings, &string_at, s->mountpoint);
        o->device_class = (uint8_t)s->device_class;
        o->flags = htole32(s->flags);
        o->first_metadata = htole32(metadata_at);
        o->n_metadata = htole32((uint32_t)s->n_metadata);
        o->first_file = htole32(file_at);
        o->n_files = htole32((uint32_t)s->n_files);
        o->first_data = htole32(data_at);
        o->n_data = htole32((uint32_t)s->n_data);

        for (size_t k = 0; k < s->n_metadata; k++)
            metadata[metadata_at + k] = (PackMetadata){
                    .offset = htole64(s->metadata[k].offset),
                    .length = htole64(s->metadata[k].length),
                    .need_msec = htole32(s->metadata[k].need_msec),
                    .probability = probability_field(s->metadata[k].probability),
            };
        for (size_t k = 0; k < s->n_files; k++)
            files[file_at + k] = (PackFile){
                    .inode = htole64(s->files[k].inode),
                    .size = htole64(s->files[k].size_bytes),
                    .mtime_nsec = htole64((uint64_t)s->files[k].mtime_nsec),
                    .ctime_nsec = htole64((uint64_t)s->files[k].ctime_nsec),
                    .path = add_string(strings, &string_at, s->files[k].path),
                    .need_msec = htole32(s->files[k].need_msec),
                    .probability = probability_field(s->files[k].probability),
                    .flags = htole16(
                            (uint16_t)((s->files[k].directory ? PACK_FILE_DIRECTORY : 0) |
                                       (s->files[k].written_in_place ? PACK_FILE_VOLATILE : 0))),
            };
        for (size_t k = 0; k < s->n_data; k++)
            data[data_at + k] = (PackData){
                    .offset = htole64(s->data[k].offset),
                    .length = htole64(s->data[k].length),
                    .physical = htole64(s->data[k].physical),
                    .file = htole32(file_at + s->data[k].file),
                    .need_msec = htole32(s->data[k].need_msec),
                    .probability = probability_field(s->data[k].probability),
            };
        metadata_at += (uint32_t)s->n_metadata;
        file_at += (uint32_t)s->n_files;
        data_at += (uint32_t)s->n_data;
    }
    h->checksum = htole64(pack_checksum(buf, size));

    r = pack_open(buf, size, &check, NULL);
    if (r < 0)
        return r == -E2BIG ? r : -EINVAL;
    *ret = TAKE_PTR(buf);
    *ret_size = size;
    return 0;
}
