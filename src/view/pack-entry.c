/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/pack-entry.h"

#include "state/packs.h"

#include <string.h>

void pack_entry_done(PackEntry *e)
{
    free(e->buf);
}

static double probability_of(le16_t p)
{
    return (double)le16toh(p) / PACK_PROBABILITY_ONE;
}

static bool is_path(const char *mountpoint, const char *name, const char *path)
{
    size_t n = strcmp(mountpoint, "/") == 0 ? 0 : strlen(mountpoint);

    if (strncmp(path, mountpoint, n) != 0)
        return false;
    if (strcmp(name, ".") == 0)
        return path[n] == 0 || strcmp(path, mountpoint) == 0;
    return path[n] == '/' && strcmp(path + n + 1, name) == 0;
}

static void search_volume(PackEntry *e, uint32_t volume, const char *path)
{
    const Pack *p = &e->pack;
    const PackVolume *v = p->volumes + volume;

    for (uint32_t k = 0; k < le32toh(v->n_files); k++) {
        uint32_t i = le32toh(v->first_file) + k;
        double probability = probability_of(p->files[i].probability);

        e->least = probability < e->least ? probability : e->least;
        if (e->found ||
            !is_path(pack_string(p, v->mountpoint), pack_string(p, p->files[i].path), path))
            continue;
        e->found = true;
        e->volume = volume;
        e->file = i;
        e->probability = probability;
    }
    for (uint32_t k = 0; e->found && e->volume == volume && k < le32toh(v->n_data); k++) {
        const PackData *d = p->data + le32toh(v->first_data) + k;

        e->bytes += le32toh(d->file) == e->file ? le64toh(d->length) : 0;
    }
}

int pack_entry_read(int state_fd, const char *name, const char *path, PackEntry *ret)
{
    PackEntry e = {.least = 1};

    CHECK(packs_read(state_fd, name, &e.buf, &e.pack, NULL));
    e.has_pack = true;
    e.total =
            le64toh(e.pack.header->total_data_bytes) + le64toh(e.pack.header->total_metadata_bytes);
    for (uint32_t i = 0; i < le32toh(e.pack.header->n_volumes); i++)
        search_volume(&e, i, path);
    *ret = e;
    return 0;
}
