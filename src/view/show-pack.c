/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart show PACK: a summary as text, or all files and ranges of the pack as JSON. */

#include "view/show.h"

#include <assert.h>
#include <string.h>

static double probability_of(le16_t probability)
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

static uint64_t metadata_bytes(const Pack *p, const PackVolume *v)
{
    const PackMetadata *m = p->metadata + le32toh(v->first_metadata);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < le32toh(v->n_metadata); i++)
        sum += le64toh(m[i].length);
    return sum;
}

static uint64_t data_bytes(const Pack *p, const PackVolume *v)
{
    const PackData *d = p->data + le32toh(v->first_data);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < le32toh(v->n_data); i++)
        sum += le64toh(d[i].length);
    return sum;
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

/* Writes the path of the file below the root to `buf`. It consists of the volume's mount point and
 * the file's path below the mount point. */
static void full_path(const Pack *p, uint32_t volume, uint32_t file, char *buf, size_t size)
{
    const char *mountpoint = pack_string(p, p->volumes[volume].mountpoint);
    const char *path = pack_string(p, p->files[file].path);

    if (strcmp(path, ".") == 0)
        snprintf(buf, size, "%s", mountpoint);
    else
        snprintf(buf, size, "%s/%s", strcmp(mountpoint, "/") == 0 ? "" : mountpoint, path);
}

/* Makes the table of the files of all volumes, those with the most data first. */
static Table *largest_files(const Pack *p, uint64_t limit)
{
    static const Column columns[] = {
            {"FILE", "path", CELL_PATH},           {"NEEDED", "probability", CELL_PROBABILITY},
            {"AFTER", "need_usec", CELL_TIMESPAN}, {"DATA", "data_bytes", CELL_BYTES},
            {"OF", "size_bytes", CELL_BYTES},      {0},
    };
    uint32_t n = le32toh(p->header->n_files);
    _cleanup_free_ FileBytes *files = calloc(MAX(n, 1U), sizeof(FileBytes));
    Table *t = table_new(columns);
    char path[8192];

    if (!files)
        return table_free(t);
    for (uint32_t i = 0; i < le32toh(p->header->n_volumes); i++) {
        const PackVolume *v = p->volumes + i;

        for (uint32_t k = 0; k < le32toh(v->n_files); k++) {
            uint32_t f = le32toh(v->first_file) + k;

            files[f] = (FileBytes){.file = f, .volume = i};
        }
        for (uint32_t k = 0; k < le32toh(v->n_data); k++) {
            const PackData *d = p->data + le32toh(v->first_data) + k;

            files[le32toh(d->file)].bytes += le64toh(d->length);
        }
    }
    qsort(files, n, sizeof(FileBytes), by_bytes);
    for (uint32_t i = 0; i < n && (limit == 0 || i < limit); i++) {
        const PackFile *f = p->files + files[i].file;

        full_path(p, files[i].volume, files[i].file, path, sizeof(path));
        table_row(t, path, probability_of(f->probability), need_usec(f->need_msec), files[i].bytes,
                  le64toh(f->size));
    }
    table_set_total(t, n);
    return t;
}

/* --- all of it, in the order of the pack ------------------------------------------------------ */

#define ITEM_TEXT_MAX 64

/* Writes the item for which the filesystem is asked. Returns buf, or NULL if there is none. */
static const char *item_text(char buf[static ITEM_TEXT_MAX], const PackMetadata *m)
{
    const MetadataItem item = pack_item(m);

    if (item.reader == METADATA_OF_DEVICE)
        return NULL;
    if (item.reader == METADATA_XFS_INODE)
        snprintf(buf, ITEM_TEXT_MAX, "inode %" PRIu64, item.object);
    else if (item.reader == METADATA_XFS_DIRECTORY)
        snprintf(buf, ITEM_TEXT_MAX, "entries %" PRIu64, item.object);
    else /* as btrfs inspect-internal dump-tree prints a key of an unknown type */
        snprintf(buf, ITEM_TEXT_MAX, "(%" PRIu64 " %u %" PRIu64 ")", item.object, item.type,
                 item.offset);
    return buf;
}

static Table *metadata_table(const Pack *p, const PackVolume *v)
{
    static const Column columns[] = {
            {NULL, "offset", CELL_COUNT},
            {NULL, "length", CELL_COUNT},
            {NULL, "probability", CELL_PROBABILITY},
            {NULL, "need_usec", CELL_TIMESPAN},
            {NULL, "item", CELL_STRING},
            {0},
    };
    const PackMetadata *m = p->metadata + le32toh(v->first_metadata);
    Table *t = table_new(columns);

    for (uint32_t i = 0; i < le32toh(v->n_metadata); i++) {
        char item[ITEM_TEXT_MAX];

        table_row(t, le64toh(m[i].offset), le64toh(m[i].length), probability_of(m[i].probability),
                  need_usec(m[i].need_msec), item_text(item, &m[i]));
    }
    return t;
}

static Table *file_table(const Pack *p, uint32_t volume)
{
    static const Column columns[] = {
            {NULL, "path", CELL_PATH},          {NULL, "directory", CELL_BOOLEAN},
            {NULL, "listed", CELL_BOOLEAN},     {NULL, "inode", CELL_COUNT},
            {NULL, "size_bytes", CELL_BYTES},   {NULL, "probability", CELL_PROBABILITY},
            {NULL, "need_usec", CELL_TIMESPAN}, {0},
    };
    const PackVolume *v = p->volumes + volume;
    Table *t = table_new(columns);
    char path[8192];

    for (uint32_t i = 0; i < le32toh(v->n_files); i++) {
        uint32_t index = le32toh(v->first_file) + i;
        const PackFile *f = p->files + index;

        full_path(p, volume, index, path, sizeof(path));
        table_row(t, path, (le16toh(f->flags) & PACK_FILE_DIRECTORY) != 0, pack_file_is_listed(f),
                  le64toh(f->inode), le64toh(f->size), probability_of(f->probability),
                  need_usec(f->need_msec));
    }
    return t;
}

static Table *data_table(const Pack *p, const PackVolume *v)
{
    static const Column columns[] = {
            {NULL, "file", CELL_COUNT}, /* index in the volume's files */
            {NULL, "offset", CELL_COUNT},       {NULL, "length", CELL_COUNT},
            {NULL, "physical", CELL_COUNT},     {NULL, "probability", CELL_PROBABILITY},
            {NULL, "need_usec", CELL_TIMESPAN}, {0},
    };
    const PackData *d = p->data + le32toh(v->first_data);
    Table *t = table_new(columns);

    static_assert(PACK_PHYSICAL_UNKNOWN == COUNT_UNKNOWN, "unknown places are printed as null");
    for (uint32_t i = 0; i < le32toh(v->n_data); i++)
        table_row(t, (uint64_t)(le32toh(d[i].file) - le32toh(v->first_file)), le64toh(d[i].offset),
                  le64toh(d[i].length), le64toh(d[i].physical), probability_of(d[i].probability),
                  need_usec(d[i].need_msec));
    return t;
}

static Table *volume_table(const Pack *p, bool whole)
{
    static const Column columns[] = {
            {"MOUNTED AT", "mountpoint", CELL_PATH},
            {"TYPE", "fstype", CELL_STRING},
            {"CLASS", "device_class", CELL_STRING},
            {"METADATA", "metadata_bytes", CELL_BYTES},
            {"RANGES", "n_metadata", CELL_COUNT},
            {"FILES", "n_files", CELL_COUNT},
            {"DATA", "data_bytes", CELL_BYTES},
            {"RANGES", "n_data", CELL_COUNT},
            {NULL, "uuid", CELL_STRING},
            {NULL, "subvolume_id", CELL_COUNT},
            {NULL, "device_size", CELL_BYTES},
            {NULL, "sweep_start", CELL_COUNT},
            {NULL, "seeks_slowly", CELL_BOOLEAN},
            {NULL, "slow_first_reads", CELL_BOOLEAN},
            {NULL, "rotational", CELL_BOOLEAN},
            {NULL, "physical", CELL_BOOLEAN},
            {NULL, "touch_entries", CELL_BOOLEAN},
            {NULL, "metadata", CELL_TABLE},
            {NULL, "files", CELL_TABLE},
            {NULL, "data", CELL_TABLE},
            {0},
    };
    Table *t = table_new(columns);
    char uuid[37];

    for (uint32_t i = 0; i < le32toh(p->header->n_volumes); i++) {
        const PackVolume *v = p->volumes + i;
        uint32_t flags = le32toh(v->flags);

        uuid_text(v->uuid, uuid, sizeof(uuid));
        table_row(t, pack_string(p, v->mountpoint), pack_string(p, v->fstype),
                  device_class_to_string(v->device_class), metadata_bytes(p, v),
                  (uint64_t)le32toh(v->n_metadata), (uint64_t)le32toh(v->n_files), data_bytes(p, v),
                  (uint64_t)le32toh(v->n_data), uuid, le64toh(v->subvolume_id),
                  le64toh(v->device_size), pack_sweep_start(p, v),
                  (flags & PACK_VOLUME_SEEKS_SLOWLY) != 0,
                  (flags & PACK_VOLUME_SLOW_FIRST_READS) != 0,
                  (flags & PACK_VOLUME_ROTATIONAL) != 0, (flags & PACK_VOLUME_PHYSICAL) != 0,
                  (flags & PACK_VOLUME_TOUCH_ENTRIES) != 0, whole ? metadata_table(p, v) : NULL,
                  whole ? file_table(p, i) : NULL, whole ? data_table(p, v) : NULL);
    }
    return t;
}

int show_pack(const Context *c, const char *path, const Pack *p, uint64_t limit)
{
    static const Column columns[] = {
            {"Pack", "file", CELL_PATH},
            {"Stage", "stage", CELL_STRING},
            {"Policy", "policy", CELL_STRING},
            {"Made", "created_realtime_usec", CELL_REALTIME},
            {"Chosen because", "reason", CELL_STRING},
            {"Predicted without replay", "predicted_off_usec", CELL_TIMESPAN},
            {"Predicted with metadata", "predicted_metadata_usec", CELL_TIMESPAN},
            {"Predicted with concurrent", "predicted_concurrent_usec", CELL_TIMESPAN},
            {"Predicted with gate", "predicted_gate_usec", CELL_TIMESPAN},
            {"Predicted with idle", "predicted_idle_usec", CELL_TIMESPAN},
            {"Deadline", "deadline_usec", CELL_TIMESPAN},
            {"Held for", "hold_usec", CELL_TIMESPAN},
            {"Order by first use", "bin_usec", CELL_TIMESPAN},
            {"Control interval", "control_interval", CELL_COUNT},
            {"Size", "size_bytes", CELL_BYTES},
            {"Filesystems", "n_volumes", CELL_COUNT},
            {"Metadata", "metadata_bytes", CELL_BYTES},
            {"Metadata ranges", "n_metadata", CELL_COUNT},
            {"Files opened", "n_files", CELL_COUNT},
            {"Data", "data_bytes", CELL_BYTES},
            {"Data ranges", "n_data", CELL_COUNT},
            {NULL, "kind", CELL_STRING},
            {NULL, "salt", CELL_COUNT},
            {"Filesystems", "volumes", CELL_TABLE},
            {"Files, the most data first", NULL, CELL_TABLE},
            {0},
    };
    const PackHeader *h = p->header;
    uint32_t hold = le32toh(h->hold_usec), bin = le32toh(h->bin_msec);
    _cleanup_table_ Table *t = table_new(columns);
    bool whole = c->json != JSON_OFF;

    table_row(t, path, stage_to_string(h->stage), policy_to_string(h->policy),
              le64toh(h->created_realtime_usec),
              h->reason != POLICY_REASON_UNKNOWN ? policy_reason_to_string(h->reason) : NULL,
              pack_predicted_usec(p, POLICY_OFF), pack_predicted_usec(p, POLICY_METADATA),
              pack_predicted_usec(p, POLICY_CONCURRENT), pack_predicted_usec(p, POLICY_GATE),
              pack_predicted_usec(p, POLICY_IDLE), le64toh(h->deadline_usec),
              hold > 0 ? hold : USEC_INFINITY,
              bin == 0 || bin == PACK_BIN_PHYSICAL ? USEC_INFINITY : bin * USEC_PER_MSEC,
              (uint64_t)le32toh(h->control_interval), le64toh(h->file_size),
              (uint64_t)le32toh(h->n_volumes), le64toh(h->total_metadata_bytes),
              (uint64_t)le32toh(h->n_metadata), (uint64_t)le32toh(h->n_files),
              le64toh(h->total_data_bytes), (uint64_t)le32toh(h->n_data), "pack", le64toh(h->salt),
              volume_table(p, whole), whole ? NULL : largest_files(p, limit));
    return cli_print_fields(c, t);
}
