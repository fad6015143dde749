/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The validating reader. It checks everything in a pack once, before any part of it is used. */

#include "pack/pack.h"

#include "base/hash.h"
#include "pack/checksum.h"

#include <string.h>

typedef struct Reader {
    Pack p;
    uint64_t strings_size;
    const char *reason;
} Reader;

static int refuse(Reader *x, int error, const char *reason)
{
    x->reason = reason;
    return error;
}

static bool is_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

/* Checks everything in the header but the checksum. */
static int check_header(Reader *x, const PackHeader *h, uint64_t size)
{
    if (size < sizeof(PackHeader) || memcmp(h->magic, PACK_MAGIC, sizeof(h->magic)) != 0)
        return size >= sizeof(h->magic) && memcmp(h->magic, PACK_MAGIC, sizeof(h->magic)) == 0
                       ? refuse(x, -EBADMSG, "truncated header")
                       : refuse(x, -EMEDIUMTYPE, "not a headstart pack");
    if (le32toh(h->version) != PACK_FORMAT_VERSION)
        return refuse(x, -EPROTONOSUPPORT, "a pack of another format version");
    if (le32toh(h->header_size) != sizeof(PackHeader))
        return refuse(x, -EPROTONOSUPPORT, "a pack with another header size");
    if (size > PACK_SIZE_MAX)
        return refuse(x, -E2BIG, "larger than a pack may be");
    if (le64toh(h->file_size) != size)
        return refuse(x, -EBADMSG, "truncated, or with bytes after its end");
    if (h->stage >= _STAGE_MAX || h->policy >= _POLICY_MAX)
        return refuse(x, -EBADMSG, "unknown stage or policy");
    if (h->reason >= _POLICY_REASON_MAX)
        return refuse(x, -EBADMSG, "unknown reason of the policy");
    if (h->reserved0 != 0)
        return refuse(x, -EBADMSG, "reserved header bytes are not zero");
    return 0;
}

static int check_checksum(Reader *x, const PackHeader *h, size_t size)
{
    if (pack_checksum(h, size) != le64toh(h->checksum))
        return refuse(x, -EBADMSG, "checksum does not match");
    return 0;
}

/* Computes the positions of the tables and checks that they fill the file exactly. */
static int check_layout(Reader *x, const uint8_t *base, size_t size)
{
    const PackHeader *h = x->p.header;
    uint64_t at = sizeof(PackHeader);

    if (le32toh(h->n_volumes) > PACK_VOLUMES_MAX)
        return refuse(x, -E2BIG, "too many volumes");
    /* Counts have 32 bits and records are smaller than 128 bytes, so the sums cannot overflow 64
     * bits. */
    x->p.volumes = (const PackVolume *)(base + at);
    at += (uint64_t)le32toh(h->n_volumes) * sizeof(PackVolume);
    if (at > size)
        return refuse(x, -EBADMSG, "volumes beyond the end");
    x->p.metadata = (const PackMetadata *)(base + at);
    at += (uint64_t)le32toh(h->n_metadata) * sizeof(PackMetadata);
    if (at > size)
        return refuse(x, -EBADMSG, "metadata beyond the end");
    x->p.files = (const PackFile *)(base + at);
    at += (uint64_t)le32toh(h->n_files) * sizeof(PackFile);
    if (at > size)
        return refuse(x, -EBADMSG, "files beyond the end");
    x->p.data = (const PackData *)(base + at);
    at += (uint64_t)le32toh(h->n_data) * sizeof(PackData);
    if (at > size)
        return refuse(x, -EBADMSG, "data beyond the end");
    x->p.strings = (const char *)(base + at);
    x->strings_size = le32toh(h->strings_size);
    at += ALIGN_UP(x->strings_size, (uint64_t)8);
    if (at != size)
        return refuse(x, -EBADMSG, "tables do not fill the file");
    if (x->strings_size > 0 && x->p.strings[x->strings_size - 1] != 0)
        return refuse(x, -EBADMSG, "strings are not terminated");
    if (!is_zero((const uint8_t *)x->p.strings + x->strings_size,
                 ALIGN_UP(x->strings_size, (uint64_t)8) - x->strings_size))
        return refuse(x, -EBADMSG, "padding is not zero");
    return 0;
}

bool pack_path_is_safe(const char *path)
{
    const char *p = path;

    if (strcmp(path, ".") == 0)
        return true;
    for (;;) {
        size_t l = strcspn(p, "/");

        if (l == 0 || (l == 1 && p[0] == '.') || (l == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        if (!p[l])
            return true;
        p += l + 1;
    }
}

static int check_metadata(Reader *x, const PackVolume *s)
{
    uint64_t device_size = le64toh(s->device_size), at = 0;
    uint32_t first = le32toh(s->first_metadata), n = le32toh(s->n_metadata);

    for (uint32_t i = first; i < first + n; i++) {
        const PackMetadata *m = &x->p.metadata[i];
        uint64_t offset = le64toh(m->offset), length = le64toh(m->length);

        if (length == 0 || offset < at || offset > device_size || length > device_size - offset)
            return refuse(x, -EBADMSG, "a metadata range out of order or beyond the device");
        if (m->reader >= _METADATA_READER_MAX ||
            (m->reader == METADATA_OF_DEVICE &&
             (m->item_type != 0 || m->item_object != 0 || m->item_offset != 0)))
            return refuse(x, -EBADMSG, "an unknown item of metadata");
        at = offset + length;
    }
    return 0;
}

static int check_files(Reader *x, const PackVolume *s)
{
    uint32_t first = le32toh(s->first_file), n = le32toh(s->n_files);
    uint64_t last = 0;

    for (uint32_t i = first; i < first + n; i++) {
        const PackFile *f = &x->p.files[i];

        if (le32toh(f->path) >= x->strings_size)
            return refuse(x, -EBADMSG, "a path beyond the strings");
        if (!pack_path_is_safe(pack_string(&x->p, f->path)))
            return refuse(x, -EBADMSG, "a path that leaves its filesystem");
        if (le64toh(f->inode) < last)
            return refuse(x, -EBADMSG, "files out of inode order");
        if (le16toh(f->flags) & ~PACK_FILE_FLAGS_ALL)
            return refuse(x, -EBADMSG, "unknown file flags");
        if (le64toh(f->size) > INT64_MAX)
            return refuse(x, -EBADMSG, "an impossible file size");
        if (!is_zero(f->reserved0, sizeof(f->reserved0)))
            return refuse(x, -EBADMSG, "reserved bytes are not zero");
        last = le64toh(f->inode);
    }
    return 0;
}

static int check_data(Reader *x, const PackVolume *s)
{
    uint32_t first = le32toh(s->first_data), n = le32toh(s->n_data);
    uint32_t first_file = le32toh(s->first_file), n_files = le32toh(s->n_files);
    uint64_t last = 0;

    for (uint32_t i = first; i < first + n; i++) {
        const PackData *d = &x->p.data[i];
        uint64_t offset = le64toh(d->offset), length = le64toh(d->length), size;
        uint32_t file = le32toh(d->file);

        if (file < first_file || file - first_file >= n_files)
            return refuse(x, -EBADMSG, "data of a file of another filesystem");
        if (le16toh(x->p.files[file].flags) & (PACK_FILE_DIRECTORY | PACK_FILE_SYMLINK))
            return refuse(x, -EBADMSG, "data of a directory");
        /* The size is at most INT64_MAX, so rounding up cannot overflow. */
        size = ALIGN_UP(le64toh(x->p.files[file].size), (uint64_t)PACK_PAGE_SIZE);
        if (length == 0 || offset % PACK_PAGE_SIZE != 0 || offset > size || length > size - offset)
            return refuse(x, -EBADMSG, "a data range beyond its file");
        if (le64toh(d->physical) < last)
            return refuse(x, -EBADMSG, "data out of physical order");
        if (!is_zero(d->reserved0, sizeof(d->reserved0)))
            return refuse(x, -EBADMSG, "reserved bytes are not zero");
        last = le64toh(d->physical);
    }
    return 0;
}

static int check_volumes(Reader *x)
{
    const PackHeader *h = x->p.header;
    uint64_t metadata = 0, files = 0, data = 0;
    int r;

    for (uint32_t i = 0; i < le32toh(h->n_volumes); i++) {
        const PackVolume *s = &x->p.volumes[i];

        if (le32toh(s->fstype) >= x->strings_size || le32toh(s->mountpoint) >= x->strings_size)
            return refuse(x, -EBADMSG, "a volume's string beyond the strings");
        if (s->device_class >= _DEVICE_CLASS_MAX || s->reserved0 != 0 ||
            (le32toh(s->flags) & ~(uint32_t)PACK_VOLUME_FLAGS_ALL))
            return refuse(x, -EBADMSG, "unknown volume flags");
        if (le32toh(s->first_metadata) != metadata || le32toh(s->first_file) != files ||
            le32toh(s->first_data) != data)
            return refuse(x, -EBADMSG, "volumes do not partition the tables");
        metadata += le32toh(s->n_metadata);
        files += le32toh(s->n_files);
        data += le32toh(s->n_data);
        if (metadata > le32toh(h->n_metadata) || files > le32toh(h->n_files) ||
            data > le32toh(h->n_data))
            return refuse(x, -EBADMSG, "a volume beyond its table");
        r = check_metadata(x, s);
        if (r >= 0)
            r = check_files(x, s);
        if (r >= 0)
            r = check_data(x, s);
        if (r < 0)
            return r;
    }
    if (metadata != le32toh(h->n_metadata) || files != le32toh(h->n_files) ||
        data != le32toh(h->n_data))
        return refuse(x, -EBADMSG, "records that belong to no volume");
    return 0;
}

int pack_open(const void *buf, size_t size, Pack *ret, const char **ret_reason)
{
    Reader x = {.p.header = buf};
    int r;

    r = check_header(&x, buf, size);
    if (r >= 0)
        r = check_checksum(&x, buf, size);
    if (r >= 0)
        r = check_layout(&x, buf, size);
    if (r >= 0)
        r = check_volumes(&x);
    if (r < 0) {
        if (ret_reason)
            *ret_reason = x.reason;
        return r;
    }
    *ret = x.p;
    return 0;
}

int pack_read_header(const void *buf, uint64_t size, PackHeader *ret, const char **ret_reason)
{
    Reader x = {0};
    int r = check_header(&x, buf, size);

    if (r < 0) {
        if (ret_reason)
            *ret_reason = x.reason;
        return r;
    }
    memcpy(ret, buf, sizeof(*ret));
    return 0;
}

bool pack_is_control(const Pack *p, const char *boot_id)
{
    uint32_t n = le32toh(p->header->control_interval);

    return n != 0 && hash64(boot_id, strlen(boot_id), le64toh(p->header->salt)) % n == 0;
}
