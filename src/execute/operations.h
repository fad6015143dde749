/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The operations that replay a pack on this machine, as a list that one executor runs and a dry run
 * prints. Pure: the pack and the facts of its filesystems are arguments. */

#include "pack/pack.h"

typedef enum OperationKind {
    OPERATION_METADATA, /* read a range of the block device */
    OPERATION_ITEM,     /* ask the filesystem for an item of metadata, so that it reads the range */
    OPERATION_OPEN,     /* open a file or directory and check that it is the planned one */
    OPERATION_DATA,     /* read a range of a file that was opened */
    _OPERATION_KIND_MAX,
    _OPERATION_KIND_INVALID = -EINVAL,
} OperationKind;

typedef struct Operation {
    OperationKind kind;
    uint32_t volume;
    uint32_t index; /* into the pack's metadata, files or data */
} Operation;

/* Returns true if the operation reads a metadata range of the pack. */
static inline bool operation_is_metadata(const Operation *o)
{
    return o->kind == OPERATION_METADATA || o->kind == OPERATION_ITEM;
}

/* The facts of a volume's filesystem on which the list depends. */
typedef struct VolumeFacts {
    bool done;            /* it was replayed before, and is neither listed nor counted */
    bool mounted;         /* its files can be opened */
    bool device;          /* its block device can be read, and has the size that the pack states */
    bool items;           /* this process may ask its filesystem for items */
    uint64_t disk;        /* the physical disk: volumes with equal numbers share a head */
    uint64_t disk_offset; /* bytes: offset of the filesystem's device on the disk */
    bool mapped; /* where its device lies on the disk is not known (LVM, LUKS): the places of
                    other volumes cannot be compared with its own */
} VolumeFacts;

/* The operations on one disk. Streams run at the same time. The operations of a stream begin in
 * order: the data of an executable (operations_beside_application()), metadata, items, opens that
 * read from the disk, data after the end of these items and opens, other opens. Reading data opens
 * its file, so the last group opens only files and directories without data. */
typedef struct Stream {
    size_t first, n; /* its operations in the list: index of the first, and number */
    uint64_t disk;
    DeviceClass device_class;
    unsigned n_workers;    /* 1: one ordered stream */
    unsigned n_openers;    /* further workers, which only ask for items, and open files whose opens
                              read from the disk */
    uint64_t window_bytes; /* of all its workers together */
    uint32_t window_requests;
    uint64_t beside_bytes; /* the same limits while others read from the disk */
    uint32_t beside_requests;
    bool beside; /* operations_beside_application() has adapted it: a disk that seeks */
} Stream;

/* Why an operation is not executed; counted per reason. */
typedef enum ReplaySkip {
    REPLAY_SKIP_UNMOUNTED, /* its filesystem is not mounted */
    REPLAY_SKIP_DEVICE,    /* its block device cannot be read, or has another size */
    REPLAY_SKIP_GONE,      /* the path or the inode of an item is not there any more */
    REPLAY_SKIP_TYPE,      /* the path names another kind of object now, or leads elsewhere */
    REPLAY_SKIP_REPLACED,  /* another inode, size or time: the file was replaced */
    REPLAY_SKIP_DENIED,    /* opening it, or asking for it, is not permitted */
    REPLAY_SKIP_ERROR,     /* reading failed, or another error */
    REPLAY_SKIP_STOPPED,   /* not begun when the replay was stopped */
    _REPLAY_SKIP_MAX,
    _REPLAY_SKIP_INVALID = -EINVAL,
} ReplaySkip;

typedef struct OperationList {
    Operation *operations;
    size_t n;
    Stream *streams; /* one for each disk, in the order in which the pack first names them */
    size_t n_streams;
    uint64_t n_skipped[_REPLAY_SKIP_MAX]; /* files and metadata ranges that are not in the list; the
                                             data of a skipped file is not counted again */
} OperationList;

void operation_list_done(OperationList *l);
#define _cleanup_operation_list_ _cleanup_(operation_list_done)

/* The order of data. Metadata always comes first, in physical order, because it is small, and every
 * reader needs it first. Opens are in inode order. */
typedef enum ReplayOrder {
    REPLAY_ORDER_PHYSICAL, /* one sweep in the order of the device */
    REPLAY_ORDER_NEED,     /* by the time of first use, in bins of PackHeader.bin_msec */
    REPLAY_ORDER_LIKELY,   /* the likeliest first */
} ReplayOrder;

/* Returns the order in which the pack is replayed under the policy. */
ReplayOrder replay_order_of(const Pack *p, Policy policy);

/* Lists the operations on the pack's mounted volumes; `facts` has one entry per volume. POLICY_OFF
 * gives none. POLICY_METADATA gives metadata ranges and items, and opens only on filesystems that
 * cache their metadata elsewhere (PACK_VOLUME_TOUCH_ENTRIES) or whose metadata ranges are not
 * known. All other policies give metadata ranges, items, opens and data. Items that the process may
 * not ask for are left out, and are not counted as skipped: opens read the same blocks. The caller
 * passes *ret to operation_list_done(). Returns 0 or -ENOMEM; *ret is untouched on failure. */
int operations_from_pack(const Pack *p, const VolumeFacts *facts, Policy policy,
                         OperationList *ret);

/* The number of workers of a disk that seeks, next to an application that starts. */
#define OPERATION_WORKERS_BESIDE 8U

/* The number of further workers of an ordered stream that ask for items and open files. xfs and
 * btrfs keep metadata in caches that only they fill, so each of these operations waits for the
 * disk. A single worker has one request in flight, and the disk moves its head from one place to
 * the next. Of several requests the disk serves the nearest one. */
#define OPERATION_OPENERS 32U

/* Adapts the list to an application that reads next to the replay.
 *
 * - A stream with one worker gets OPERATION_WORKERS_BESIDE of them. Replay opens a file before it
 *   requests its data, and the open waits for the disk if the metadata of the file are not in
 *   memory. A single worker requests nothing meanwhile, and leaves the disk to the application,
 *   which reads one place after the other. If all data is on one disk, the executor reads it with
 *   one of the workers, after the others have opened the files.
 * - The data of the executable comes before all else, if its stream seeks. `executable` is the path
 *   below the root. The kernel has just read the head of the executable, so that the head of the
 *   disk is there, and the application waits for the rest before it needs anything else. */
void operations_beside_application(OperationList *l, const Pack *p, const char *executable);

/* Returns how many of the n operations, from the first on, read data of the file. `path` is its
 * path below the root. */
size_t operations_of_file(const Pack *p, const Operation *operations, size_t n, const char *path);

/* Returns how many of the n operations, from the first on, read data of the same bin of first use.
 * A pack without bins has one. */
size_t operations_of_bin(const Pack *p, const Operation *operations, size_t n);

/* Sorts n operations of one stream in place; operations that are equal in `order` are sorted by
 * physical position. Returns 0, or -ENOMEM with the operations unchanged. */
int operations_sort(const Pack *p, const VolumeFacts *facts, ReplayOrder order,
                    Operation *operations, size_t n);

/* Returns where the range of the operation begins on the disk of its volume. Returns
 * PACK_PHYSICAL_UNKNOWN for an open, and for data without a known place. */
uint64_t operation_place(const Pack *p, const VolumeFacts *facts, const Operation *o);

/* The number of ranges in the order of place that count as a sweep. */
#define OPERATION_SWEEP_MIN 8U

/* Returns true if the first of the n operations begins a sweep: the places of the first
 * OPERATION_SWEEP_MIN operations are known, and ascend. An order by likelihood has such sweeps
 * where many ranges are equally likely. */
bool operations_sweep(const Pack *p, const VolumeFacts *facts, const Operation *operations,
                      size_t n);

/* The maximum number of operations that one request serves. */
#define OPERATION_RUN_MAX 32U

/* The longest gap between two ranges of a file that one request reads next to an application that
 * starts. In a sweep upwards a disk passes the gap anyway, so that reading it costs no time. After
 * a read of the application the disk may serve the requests in flight downwards. Each request then
 * takes a rotation. */
#define OPERATION_GAP_BESIDE (UINT64_C(128) * 1024)

/* Returns how many bytes lie between two ranges of data, on the device and in their file. Returns 0
 * for neighbours on the device, also if they are in different files. Returns UINT64_MAX if the
 * second range does not follow, or if the bytes between the ranges are not those of the file. Both
 * places are known. */
uint64_t operation_gap(const PackData *before, const PackData *d);

/* Returns how many of the n operations (at least one), from the first on, one request can read:
 * ranges of data that follow one another on the device with gaps of at most max_gap bytes
 * (operation_gap()), and have at most max_bytes bytes together with the gaps, in files that are not
 * written in place. Returns 1 for any other first operation. */
size_t operations_run(const Pack *p, const Operation *operations, size_t n, uint64_t max_bytes,
                      uint64_t max_gap);

/* The longest part of a file that is read because it was appended after the plan, and the longest
 * hole in it. On a disk that seeks the part may be longer. journald looks entries up all over its
 * journals, and there each such read takes as long as the transfer of half a megabyte. */
#define OPERATION_APPENDED_MAX       (UINT64_C(1024) * 1024)
#define OPERATION_APPENDED_SEEKS_MAX (UINT64_C(4096) * 1024)
#define OPERATION_HOLE_MAX           (UINT64_C(64) * 1024)

/* The most appended data of all files that one replay reads. */
#define OPERATION_APPENDED_ALL_MAX (UINT64_C(16384) * 1024)

/* Returns the longest part that is read from files of the volume. */
uint64_t operation_appended_max(const PackVolume *v);

/* Returns how many bytes after the last range of a volatile file (PACK_FILE_VOLATILE) are read as
 * well. Journals and logs grow between the plan and the boot, and a process that appends reads the
 * last page. `end` is the end of the last range. `data_end` is the end of the data that touches it,
 * across holes of at most OPERATION_HOLE_MAX (lseek(2)), or at most `end` if there is none. `most`
 * is the value of operation_appended_max(). */
uint64_t operation_appended_bytes(uint64_t end, uint64_t data_end, uint64_t most);

/* With ReplayOptions.skip_resident, a range of at most this size may be left out. */
#define OPERATION_UNNEEDED_MAX (UINT64_C(128) * 1024)

/* Returns true if an application that starts probably does not need a range of `length` bytes that
 * is not in memory. `resident` bytes of its file are in memory, `planned` bytes are in the pack.
 * Of a file without PACK_FILE_TOUCHED the model knows which ranges a session uses, not which of
 * them one application uses. If at least half of the planned bytes are in memory, running programs
 * use the file, and a small range that they do not keep in memory is used rarely. On a hard disk,
 * the seek to such a range takes longer than its transfer. */
bool operation_is_unneeded(const PackFile *f, uint64_t resident, uint64_t planned, uint64_t length);

/* Returns the byte range that an operation reads; 0 and 0 for an open. */
void operation_range(const Pack *p, const Operation *o, uint64_t *ret_offset, uint64_t *ret_length);

const char *operation_kind_to_string(OperationKind k);
const char *replay_skip_to_string(ReplaySkip s);
