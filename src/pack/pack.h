/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The pack: a plan compiled for replay. This comment is the specification of format version 2.
 *
 * All integers are little-endian. Every structure is 8-aligned, and its size is a multiple of 8.
 *
 *   PackHeader                      128 bytes
 *   PackVolume  [n_volumes]       one per filesystem (on btrfs, per subvolume)
 *   PackMetadata [n_metadata]       all volumes' metadata ranges, grouped by volume, each group
 *                                   in rising physical order, disjoint
 *   PackFile     [n_files]          grouped by volume, each group in rising inode order
 *   PackData     [n_data]           grouped by volume, each group in rising physical order;
 *                                   ranges of unknown place come last
 *   strings      [strings_size]     NUL-terminated bytes, usually UTF-8
 *
 * The tables follow one another without gaps in this order. The strings end the file and are padded
 * with zeros to a multiple of 8 bytes. `checksum` is XXH3-64 (seed 0) over the whole file with the
 * checksum field taken as zero. Volumes' index windows (first_*, n_*) must partition the tables in
 * order.
 *
 * Identity: a volume is the filesystem with that UUID (and, on btrfs, subvolume id), mounted where
 * /proc/self/mountinfo says. A file has a path relative to the volume's mount point, without a
 * leading slash and without "", "." or ".." components; the mount point itself is ".". It also has
 * inode, size, mtime and ctime: if any of them differs, the file was replaced and its ranges are
 * skipped. Of a directory only the inode counts, of a volatile file only the path. If the mtime of
 * a volatile file differs, replay also reads what was appended to its last range
 * (execute/operations.h). Metadata ranges are bytes of the block device and are skipped if the
 * device is not exactly device_size bytes. A range with an item (base/metadata-item.h) only says
 * where the block is: the filesystem is asked for the item, and reads the block.
 *
 * The header alone determines what early boot has to know: policy, deadline_usec, hold_usec, and
 * whether the boot is a control session. The boot is a control session if control_interval != 0 and
 * XXH3-64(boot id as 32 lower-case hex digits, seed = salt) mod control_interval == 0, unless
 * another boot was one since the pack was planned (boot/last-control.h).
 *
 * The state directory stores a pack as one gzip member around this format (state/packs.h).
 *
 * Reading is zero-copy: pack_open() validates the whole buffer once, and the accessors below
 * return pointers into it. */

#include "base/macros.h"
#include "base/metadata-item.h"
#include "base/time-util.h"
#include "base/vocabulary.h"

#include <endian.h>

#define PACK_MAGIC          "HEADSTRT"
#define PACK_FORMAT_VERSION 2U
#define PACK_SIZE_MAX       (64U * 1024 * 1024)
#define PACK_VOLUMES_MAX    1024U
#define PACK_PREDICTIONS    5U
#define PACK_PAGE_SIZE \
    4096U /* data ranges start on multiples of this, whatever the page size of the machine is */

/* Little-endian fields: read them with le*toh only. */
typedef uint16_t le16_t;
typedef uint32_t le32_t;
typedef uint64_t le64_t;

typedef struct PackHeader {
    uint8_t magic[8];
    le32_t version;
    le32_t header_size; /* sizeof(PackHeader): a longer header is another version */
    le64_t file_size;
    le64_t checksum;
    uint8_t stage;  /* Stage */
    uint8_t policy; /* Policy */
    uint8_t reason; /* PolicyReason */
    uint8_t reserved0;
    le32_t control_interval; /* N; 0: no control sessions */
    le64_t salt;
    le64_t deadline_usec; /* gate: maximum time from the begin of the wait to READY=1. The boot
                             waits from the start of headstart-init or headstart-replay */
    le64_t created_realtime_usec;
    le64_t total_metadata_bytes;
    le64_t total_data_bytes;
    le32_t n_volumes;
    le32_t n_metadata;
    le32_t n_files;
    le32_t n_data;
    le32_t strings_size;
    le32_t hold_usec; /* gate: planned time from the start of replay to READY=1; 0: READY=1 is sent
                         when the sweep is over, or at the deadline */
    le32_t bin_msec;  /* width of a bin of first use: the bins are read one after the other, each in
                         physical order. PACK_BIN_PHYSICAL: all data is one bin; 0: the policy
                         decides (concurrent: by first use, others: in physical order) */
    le32_t predicted_usec[PACK_PREDICTIONS]; /* index: Policy; predicted time of the stage; 0: not
                                                known, for example because the stage was never
                                                recorded without replay */
} PackHeader;

#define PACK_BIN_PHYSICAL UINT32_MAX

typedef enum PackVolumeFlags {
    PACK_VOLUME_ROTATIONAL = 1 << 0,    /* the kernel's rotational flag when the pack was planned */
    PACK_VOLUME_PHYSICAL = 1 << 1,      /* `physical` fields are places on the device (not so on
                                           btrfs) */
    PACK_VOLUME_TOUCH_ENTRIES = 1 << 2, /* metadata has its own cache (xfs, btrfs): the opening
                                            pass also lists directories that sessions list */
    PACK_VOLUME_SEEKS_SLOWLY = 1 << 3,  /* its disk was measured to seek slowly
                                            (device/estimate.h) */
    PACK_VOLUME_SLOW_FIRST_READS = 1 << 4, /* likewise: first reads of its disk are slow */
    PACK_VOLUME_FLAGS_ALL = (1 << 5) - 1,
} PackVolumeFlags;

_Static_assert((unsigned)_POLICY_MAX == PACK_PREDICTIONS, "each policy has a prediction");

typedef struct PackVolume {
    uint8_t uuid[16];
    le64_t subvolume_id;  /* btrfs root id of the subvolume; 0 elsewhere */
    le64_t device_size;   /* bytes */
    le32_t fstype;        /* string offset */
    le32_t mountpoint;    /* string offset; where the volume was mounted, below the root. If several
                             mounts serve the volume, replay prefers the one at this place. */
    uint8_t device_class; /* DeviceClass */
    uint8_t reserved0;
    le16_t sweep_start; /* pack_sweep_start(): this 65536th part of the data ranges comes last */
    le32_t flags;       /* PackVolumeFlags */
    le32_t first_metadata, n_metadata;
    le32_t first_file, n_files;
    le32_t first_data, n_data;
} PackVolume;

typedef struct PackMetadata {
    le64_t offset; /* bytes on the block device */
    le64_t length;
    le32_t need_msec;   /* mean instant of first use since the stage's start; UINT32_MAX unknown */
    le16_t probability; /* times 65535 */
    uint8_t reader;     /* MetadataReader; this field and the next three: MetadataItem */
    uint8_t item_type;
    le64_t item_object;
    le64_t item_offset;
} PackMetadata;

typedef enum PackFileFlags {
    PACK_FILE_DIRECTORY = 1 << 0,
    PACK_FILE_VOLATILE = 1 << 1,  /* programs write it, in place (a journal, a database) or as a new
                                     file (saved state): its identity is the path alone */
    PACK_FILE_TOUCHED = 1 << 2,   /* the application itself touched the pages of its ranges */
    PACK_FILE_SYMLINK = 1 << 3,   /* a symbolic link: only its inode is read */
    PACK_FILE_LOOKED_UP = 1 << 4, /* a directory that few sessions list: only its inode is read */
    PACK_FILE_FLAGS_ALL = (1 << 5) - 1,
} PackFileFlags;

typedef struct PackFile {
    le64_t inode;
    le64_t size;
    le64_t mtime_nsec; /* two's complement */
    le64_t ctime_nsec;
    le32_t path; /* string offset, relative to the mount point */
    le32_t need_msec;
    le16_t probability;
    le16_t flags; /* PackFileFlags */
    uint8_t reserved0[4];
} PackFile;

typedef struct PackData {
    le64_t offset;    /* bytes in the file, page aligned (4096) */
    le64_t length;    /* bytes, > 0; offset + length <= file size rounded up to a page */
    le64_t physical;  /* bytes on the device; UINT64_MAX unknown */
    le32_t file;      /* index into the table of files; the file is in this volume and is not a
                         directory */
    le32_t need_msec; /* as in PackMetadata, or the beginning of the earlier bin in which replay
                         reads the data (plan/bins.h) */
    le16_t probability;
    uint8_t reserved0[6];
} PackData;

_Static_assert(sizeof(PackHeader) == 128, "the format is what the comment says");
_Static_assert(sizeof(PackVolume) == 72, "the format is what the comment says");
_Static_assert(sizeof(PackMetadata) == 40, "the format is what the comment says");
_Static_assert(sizeof(PackFile) == 48, "the format is what the comment says");
_Static_assert(sizeof(PackData) == 40, "the format is what the comment says");

#define PACK_PROBABILITY_ONE  65535U
#define PACK_NEED_UNKNOWN     UINT32_MAX
#define PACK_PHYSICAL_UNKNOWN UINT64_MAX

/* A validated pack in memory. Pointers lead into the buffer given to pack_open(). */
typedef struct Pack {
    const PackHeader *header;
    const PackVolume *volumes;
    const PackMetadata *metadata;
    const PackFile *files;
    const PackData *data;
    const char *strings;
} Pack;

/* Validates everything that the comment above requires (counts, offsets, windows, order, checksum,
 * strings, enums, reserved bytes zero) and fills *ret. It allocates and copies nothing. `buf` must
 * be 8-aligned and outlive *ret. Returns 0, -EBADMSG (truncated, corrupt), -EMEDIUMTYPE (not a
 * pack), -EPROTONOSUPPORT (another version), -E2BIG (over a limit). *ret_reason, if not NULL,
 * becomes a static string with the reason. *ret is untouched on failure. */
int pack_open(const void *buf, size_t size, Pack *ret, const char **ret_reason);

/* Checks the header alone, without the checksum, which covers the whole pack. `buf` has the first
 * bytes of a pack of `size` bytes: at least sizeof(PackHeader), or all of a shorter one. Copies the
 * header to *ret. Returns as pack_open() does; *ret is untouched on failure. */
int pack_read_header(const void *buf, uint64_t size, PackHeader *ret, const char **ret_reason);

/* Returns true if this boot is a control session (see the specification). boot_id: 32 hex
 * digits. */
bool pack_is_control(const Pack *p, const char *boot_id);

/* Returns the place on the device where a sweep over the data of the volume begins, in bytes. The
 * sweep reads the data from there on in physical order, and then the data before it. */
static inline uint64_t pack_sweep_start(const Pack *p, const PackVolume *v)
{
    uint64_t before = (uint64_t)le32toh(v->n_data) * le16toh(v->sweep_start) / 65536;

    return before == 0 ? 0 : le64toh(p->data[le32toh(v->first_data) + before].physical);
}

/* Returns the item of a metadata range. */
static inline MetadataItem pack_item(const PackMetadata *m)
{
    return (MetadataItem){(MetadataReader)m->reader, m->item_type, le64toh(m->item_object),
                          le64toh(m->item_offset)};
}

/* Returns true if the path cannot lead out of its filesystem: "." or non-empty components that are
 * neither "." nor "..". */
bool pack_path_is_safe(const char *path);

/* Returns the predicted time of the stage under the policy, or USEC_INFINITY if it is not known. */
static inline usec_t pack_predicted_usec(const Pack *p, Policy policy)
{
    uint32_t t = le32toh(p->header->predicted_usec[policy]);

    return t > 0 ? t : USEC_INFINITY;
}

/* Returns true if replay reads the entries of this directory. */
static inline bool pack_file_is_listed(const PackFile *f)
{
    return (le16toh(f->flags) & (PACK_FILE_DIRECTORY | PACK_FILE_LOOKED_UP)) == PACK_FILE_DIRECTORY;
}

static inline const char *pack_string(const Pack *p, le32_t offset)
{
    return p->strings + le32toh(offset);
}
