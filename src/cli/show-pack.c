/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A pack in words, or whole as JSON. */

#include "cli/show.h"

#include <inttypes.h>
#include <string.h>

static double share(le16_t probability)
{
    return (double)le16toh(probability) / PACK_PROBABILITY_ONE;
}

static uint64_t need_usec(le32_t need_msec)
{
    uint32_t n = le32toh(need_msec);

    return n == PACK_NEED_UNKNOWN ? COUNT_UNKNOWN : n * USEC_PER_MSEC;
}

static void uuid_text(const uint8_t *u, char *buf, size_t size)
{
    snprintf(buf, size, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
}

static Table *summary_table(const Pack *p, const char *path)
{
    const PackHeader *h = p->header;
    Table *s = table_new();

    table_column(s, "Pack", "file", CELL_PATH);
    table_column(s, "Stage", "stage", CELL_STRING);
    table_column(s, "Policy", "policy", CELL_STRING);
    table_column(s, "Made", "created_realtime_usec", CELL_REALTIME);
    table_column(s, "Deadline", "deadline_usec", CELL_TIMESPAN);
    table_column(s, "Control interval", "control_interval", CELL_COUNT);
    table_column(s, "Size", "size_bytes", CELL_BYTES);
    table_column(s, "Filesystems", "n_volumes", CELL_COUNT);
    table_column(s, "Metadata", "metadata_bytes", CELL_BYTES);
    table_column(s, "Metadata ranges", "n_metadata", CELL_COUNT);
    table_column(s, "Files opened", "n_files", CELL_COUNT);
    table_column(s, "Data", "data_bytes", CELL_BYTES);
    table_column(s, "Data ranges", "n_data", CELL_COUNT);
    table_row(s, path, stage_to_string(h->stage), policy_to_string(h->policy),
              le64toh(h->created_realtime_usec), le64toh(h->deadline_usec),
              (uint64_t)le32toh(h->control_interval), le64toh(h->file_size),
              (uint64_t)le32toh(h->n_volumes), le64toh(h->total_metadata_bytes),
              (uint64_t)le32toh(h->n_metadata), (uint64_t)le32toh(h->n_files),
              le64toh(h->total_data_bytes), (uint64_t)le32toh(h->n_data));
    return s;
}

static uint64_t metadata_bytes(const Pack *p, const PackVolume *g)
{
    const PackMetadata *m = p->metadata + le32toh(g->first_metadata);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < le32toh(g->n_metadata); i++)
        sum += le64toh(m[i].length);
    return sum;
}

static uint64_t data_bytes(const Pack *p, const PackVolume *g)
{
    const PackData *d = p->data + le32toh(g->first_data);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < le32toh(g->n_data); i++)
        sum += le64toh(d[i].length);
    return sum;
}

static Table *volume_table(const Pack *p)
{
    Table *s = table_new();

    table_column(s, "MOUNTED AT", "mountpoint", CELL_PATH);
    table_column(s, "TYPE", "fstype", CELL_STRING);
    table_column(s, "CLASS", "device_class", CELL_STRING);
    table_column(s, "METADATA", "metadata_bytes", CELL_BYTES);
    table_column(s, "RANGES", "n_metadata", CELL_COUNT);
    table_column(s, "FILES", "n_files", CELL_COUNT);
    table_column(s, "DATA", "data_bytes", CELL_BYTES);
    table_column(s, "RANGES", "n_data", CELL_COUNT);
    for (uint32_t i = 0; i < le32toh(p->header->n_volumes); i++) {
        const PackVolume *g = p->volumes + i;

        table_row(s, pack_string(p, g->mountpoint), pack_string(p, g->fstype),
                  device_class_to_string(g->device_class), metadata_bytes(p, g),
                  (uint64_t)le32toh(g->n_metadata), (uint64_t)le32toh(g->n_files), data_bytes(p, g),
                  (uint64_t)le32toh(g->n_data));
    }
    return s;
}

/* --- the largest files ------------------------------------------------------------------------ */

typedef struct FileBytes {
    uint32_t file, volume;
    uint64_t bytes;
} FileBytes;

static int by_bytes(const void *a, const void *b)
{
    const FileBytes *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->file > y->file) - (x->file < y->file);
}

/* The path below the root: the volume's mount point and the file's own. */
static void full_path(const Pack *p, const FileBytes *f, char *buf, size_t size)
{
    const char *mountpoint = pack_string(p, p->volumes[f->volume].mountpoint);
    const char *path = pack_string(p, p->files[f->file].path);

    if (strcmp(path, ".") == 0)
        snprintf(buf, size, "%s", mountpoint);
    else
        snprintf(buf, size, "%s/%s", strcmp(mountpoint, "/") == 0 ? "" : mountpoint, path);
}

static Table *file_table(const Pack *p, uint64_t limit)
{
    uint32_t n = le32toh(p->header->n_files);
    _cleanup_free_ FileBytes *files = calloc(MAX(n, 1U), sizeof(FileBytes));
    Table *s = table_new();
    char path[8192];

    if (!files)
        return table_free(s);
    for (uint32_t i = 0; i < le32toh(p->header->n_volumes); i++) {
        const PackVolume *g = p->volumes + i;

        for (uint32_t k = 0; k < le32toh(g->n_files); k++) {
            uint32_t f = le32toh(g->first_file) + k;

            files[f] = (FileBytes){.file = f, .volume = i};
        }
        for (uint32_t k = 0; k < le32toh(g->n_data); k++) {
            const PackData *d = p->data + le32toh(g->first_data) + k;

            files[le32toh(d->file)].bytes += le64toh(d->length);
        }
    }
    qsort(files, n, sizeof(FileBytes), by_bytes);

    table_column(s, "FILE", "path", CELL_PATH);
    table_column(s, "NEEDED", "probability", CELL_PROBABILITY);
    table_column(s, "AFTER", "need_usec", CELL_TIMESPAN);
    table_column(s, "DATA", "data_bytes", CELL_BYTES);
    table_column(s, "OF", "size_bytes", CELL_BYTES);
    for (uint32_t i = 0; i < n && (limit == 0 || i < limit); i++) {
        const PackFile *f = p->files + files[i].file;

        full_path(p, files + i, path, sizeof(path));
        table_row(s, path, share(f->probability), need_usec(f->need_msec), files[i].bytes,
                  le64toh(f->size));
    }
    return s;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void add_use(json_object *o, le16_t probability, le32_t need_msec)
{
    uint64_t need = need_usec(need_msec);

    json_object_object_add(o, "probability", json_object_new_double(share(probability)));
    json_object_object_add(o, "need_usec",
                           need == COUNT_UNKNOWN ? NULL : json_object_new_uint64(need));
}

static json_object *volume_to_json(const Pack *p, uint32_t index, json_object *o)
{
    const PackVolume *g = p->volumes + index;
    json_object *metadata = json_object_new_array(), *files = json_object_new_array(),
                *data = json_object_new_array();
    char text[8192];

    uuid_text(g->uuid, text, sizeof(text));
    json_object_object_add(o, "uuid", output_json_string(text));
    json_object_object_add(o, "subvolume_id", json_object_new_uint64(le64toh(g->subvolume_id)));
    json_object_object_add(o, "device_size", json_object_new_uint64(le64toh(g->device_size)));
    json_object_object_add(
            o, "seeks_slowly",
            json_object_new_boolean(!!(le32toh(g->flags) & PACK_VOLUME_SEEKS_SLOWLY)));
    json_object_object_add(o, "rotational",
                           json_object_new_boolean(!!(le32toh(g->flags) & PACK_VOLUME_ROTATIONAL)));
    json_object_object_add(o, "physical",
                           json_object_new_boolean(!!(le32toh(g->flags) & PACK_VOLUME_PHYSICAL)));
    json_object_object_add(
            o, "touch_entries",
            json_object_new_boolean(!!(le32toh(g->flags) & PACK_VOLUME_TOUCH_ENTRIES)));

    for (uint32_t i = 0; i < le32toh(g->n_metadata); i++) {
        const PackMetadata *m = p->metadata + le32toh(g->first_metadata) + i;
        json_object *k = json_object_new_object();

        json_object_object_add(k, "offset", json_object_new_uint64(le64toh(m->offset)));
        json_object_object_add(k, "length", json_object_new_uint64(le64toh(m->length)));
        add_use(k, m->probability, m->need_msec);
        json_object_array_add(metadata, k);
    }
    for (uint32_t i = 0; i < le32toh(g->n_files); i++) {
        FileBytes f = {.file = le32toh(g->first_file) + i, .volume = index};
        const PackFile *k = p->files + f.file;
        json_object *v = json_object_new_object();

        full_path(p, &f, text, sizeof(text));
        json_object_object_add(v, "path", output_json_string(text));
        json_object_object_add(
                v, "directory",
                json_object_new_boolean(!!(le16toh(k->flags) & PACK_FILE_DIRECTORY)));
        json_object_object_add(v, "inode", json_object_new_uint64(le64toh(k->inode)));
        json_object_object_add(v, "size_bytes", json_object_new_uint64(le64toh(k->size)));
        add_use(v, k->probability, k->need_msec);
        json_object_array_add(files, v);
    }
    for (uint32_t i = 0; i < le32toh(g->n_data); i++) {
        const PackData *d = p->data + le32toh(g->first_data) + i;
        uint64_t physical = le64toh(d->physical);
        json_object *v = json_object_new_object();

        json_object_object_add(v, "file",
                               json_object_new_uint64(le32toh(d->file) - le32toh(g->first_file)));
        json_object_object_add(v, "offset", json_object_new_uint64(le64toh(d->offset)));
        json_object_object_add(v, "length", json_object_new_uint64(le64toh(d->length)));
        json_object_object_add(
                v, "physical",
                physical == PACK_PHYSICAL_UNKNOWN ? NULL : json_object_new_uint64(physical));
        add_use(v, d->probability, d->need_msec);
        json_object_array_add(data, v);
    }
    json_object_object_add(o, "metadata", metadata);
    json_object_object_add(o, "files", files);
    json_object_object_add(o, "data", data);
    return o;
}

static int pack_json(const Context *c, const Pack *p, const Table *summary, const Table *volumes)
{
    json_object *o = table_fields_to_json(summary), *s = table_to_json(volumes);

    if (!o || !s) {
        json_object_put(o);
        json_object_put(s);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < le32toh(p->header->n_volumes); i++)
        volume_to_json(p, i, json_object_array_get_idx(s, i));
    json_object_object_add(o, "kind", json_object_new_string("pack"));
    json_object_object_add(o, "salt", json_object_new_uint64(le64toh(p->header->salt)));
    json_object_object_add(o, "volumes", s);
    return output_json(c->json, o);
}

int show_pack(const Context *c, const char *path, const Pack *p, uint64_t limit)
{
    _cleanup_table_ Table *summary = summary_table(p, path), *volumes = volume_table(p),
                          *files = NULL;
    int r;

    if (c->json != JSON_OFF) {
        r = pack_json(c, p, summary, volumes);
        return r < 0 ? cli_error(r, "cannot print: %m") : 0;
    }
    files = file_table(p, limit);
    r = table_print_fields(summary);
    if (r == 0)
        r = table_print_section("Filesystems", volumes, le32toh(p->header->n_volumes));
    if (r == 0)
        r = table_print_section("Files, the most data first", files, le32toh(p->header->n_files));
    return r < 0 ? cli_error(r, "cannot print: %m") : 0;
}
