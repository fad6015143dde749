/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Turns a prediction into the content of a pack:
 *
 *     Prediction --plan_locate()--> LocatedPlan --plan_compile()--> PackContent
 *                --pack_write()--> pack
 *
 * plan_locate() makes all the system calls (open, fstat, FIEMAP, libext2fs, reads of the device);
 * plan_compile() cuts at the budget, sorts by physical block and merges ranges if the gap is
 * cheaper to read than to skip.
 *
 *     volume_table_read(AT_FDCWD, root, &volumes);
 *     plan_locate(prediction, root, &volumes, uid, known_until, &located);
 *     plan_compile(located, &parameters, &content, &summary);
 *     pack_write(content, &bytes, &size);
 *
 * The caller frees every result. */

#include "base/ranges.h"
#include "model/prediction.h"
#include "pack/pack-writer.h"
#include "plan/budget.h"
#include "plan/cost-model.h"
#include "volume/extents.h"
#include "volume/volume.h"

/* The reason why a predicted object is not in the plan; counted per reason. */
typedef enum PlanSkip {
    PLAN_SKIP_GONE,       /* no longer there */
    PLAN_SKIP_TYPE,       /* neither a regular file nor a directory now, or reached only through a
                             symlink */
    PLAN_SKIP_FILESYSTEM, /* not on a local block-backed filesystem below the root */
    PLAN_SKIP_DENIED,     /* opening it was not permitted */
    PLAN_SKIP_DUPLICATE,  /* another name of a file that the plan contains; its maps were added to
                             that file */
    PLAN_SKIP_OWNER,      /* ownership_allows() refuses it: another user owns it or can write to
                             it */
    PLAN_SKIP_UNLIKELY,   /* below the minimum probability (maps and metadata ranges) */
    PLAN_SKIP_BUDGET,     /* did not fit the budget (maps and metadata ranges) */
    PLAN_SKIP_LIMIT,      /* more files, names or ranges than a pack may hold */
    PLAN_SKIP_ERROR,      /* anything else */
    _PLAN_SKIP_MAX,
    _PLAN_SKIP_INVALID = -EINVAL,
} PlanSkip;

const char *plan_skip_to_string(PlanSkip s);

typedef struct LocatedFile {
    char *path; /* relative to the mount point of its volume; "." for the mount point itself */
    uint32_t volume;
    bool directory;
    bool listed;  /* a directory of which the entries are read, under one of its names */
    bool symlink; /* without maps: only its inode is read */
    bool nested;  /* in a subvolume inside the volume, which has inode numbers of its own */
    bool of_root; /* root owns it */
    bool touched; /* PredictedFile.touched, of all its names */
    uint64_t inode;
    uint64_t size_bytes;
    int64_t mtime_nsec;
    int64_t ctime_nsec;
    double probability;
    usec_t first_use;
    PredictedRange *maps; /* clipped to the file */
    size_t n_maps;
    Extent *extents; /* all extents; none if there are no maps or too many extents, or FIEMAP is not
                        supported */
    size_t n_extents;
} LocatedFile;

typedef struct LocatedMetadata {
    uint32_t volume;
    PredictedRange range; /* of the volume's block device */
    MetadataItem item;
} LocatedMetadata;

typedef struct LocatedPlan {
    Stage stage;
    const VolumeTable *volumes; /* borrowed */
    LocatedFile *files;
    size_t n_files, allocated_files;
    LocatedMetadata *metadata; /* sorted by volume, then offset; disjoint */
    size_t n_metadata, allocated_metadata;
    RangeSet *passing; /* per volume: metadata that is read where the sweep passes it
                          (plan/passing.h) */
    uint64_t n_skipped[_PLAN_SKIP_MAX];
    bool metadata_derived; /* at least one volume's metadata was derived, and is not from the model
                            */
} LocatedPlan;

LocatedPlan *located_plan_free(LocatedPlan *p);
DEFINE_CLEANUP(LocatedPlan *, located_plan_free);
#define _cleanup_located_plan_ _cleanup_(located_plan_freep)

/* Returns true if the plan has a file of the volume. */
bool located_plan_has_files(const LocatedPlan *l, uint32_t volume);

typedef struct PlanParameters {
    Policy policy;
    uint64_t budget_bytes;
    uint64_t page_bytes;    /* of the machine that replays; a multiple of PACK_PAGE_SIZE. A range
                               takes whole pages of the budget. */
    double min_probability; /* ranges below this are left out */
    double isolated_probability; /* data ranges below this are left out, too, if reading them takes
                                    a seek: placed_ranges_drop_isolated(); 0: none */
    usec_t deadline_usec;        /* of `gate` */
    uint32_t control_interval;   /* 0: no control sessions */
    uint64_t salt;
    usec_t now_realtime;
    usec_t volatile_since;    /* wall clock: a file modified at this time or later counts as written
                                 in place (PACK_FILE_VOLATILE); USEC_INFINITY: no file does */
    bool no_gaps;             /* gaps between ranges are not read: most of the set is expected to be
                                 resident, and a gap then costs more than it saves */
    DeviceClass device_class; /* class of all volumes, with its typical profile;
                                 _DEVICE_CLASS_INVALID: each volume has its own class and profile */
} PlanParameters;

/* A file that was modified less than this time before the last learned session, or after that
 * session, is expected to be modified again before the next session. Examples are journals,
 * databases and rewritten caches. */
#define PLAN_VOLATILE_USEC (24 * USEC_PER_HOUR)

/* Limits of one plan. A pack within these limits is also within the limits of pack.h. Compiling it
 * takes less than 100 MB of memory. A login of a desktop has some 5,000 files, 400 kB of names and
 * 10,000 ranges. */
#define PLAN_FILES_MAX      100000U
#define PLAN_PATH_BYTES_MAX (UINT64_C(16) << 20)
#define PLAN_RANGES_MAX     400000U /* of data and metadata together */

/* Metadata comes before data, but gets at most a quarter of the budget or this size, whichever is
 * more. Without this limit, a session that read all metadata would leave no room for data. */
#define PLAN_METADATA_BYTES_MIN (UINT64_C(32) << 20)

/* Below this probability a read loses time on average even on a hard disk: it saves a seek with
 * probability p and wastes the transfer with probability 1 - p. */
#define PLAN_MIN_PROBABILITY_DEFAULT 0.1

typedef struct PlanSummary {
    uint64_t n_files, n_directories, n_data_ranges, n_metadata;
    uint64_t data_bytes, metadata_bytes;
    uint64_t gap_bytes; /* bytes of gaps that are read because that is cheaper than seeking;
                           included in the sums above */
    uint64_t n_skipped[_PLAN_SKIP_MAX];
    usec_t estimated_usec; /* estimate of the cost model; USEC_INFINITY if offsets on the device are
                              unknown */
} PlanSummary;

/* Finds the predicted files below `root`, which must be the directory for which the volumes were
 * read. Leaves out the files that ownership_allows() (model/ownership.h) refuses for the set of the
 * user `uid`. Opens only regular files and directories on the volumes, follows no symlink, crosses
 * no mount and no automount, and never blocks. Several names of one file (hard links) become one
 * file with the maps of all names.
 *
 * If the prediction has no metadata of an ext2/3/4 filesystem, the metadata is derived from the
 * located files with libext2fs. If the prediction has metadata of the filesystem, only the metadata
 * of files that were created after `known_until` is derived, because an upgrade replaces files by
 * new ones. `known_until` is the wall clock of the last session whose metadata was observed. If it
 * is USEC_INFINITY, no metadata is derived in this case. Metadata of btrfs and xfs is always
 * derived. Returns 0, -ENOMEM, or the error of stat(2) for `root`. */
int plan_locate(const Prediction *p, const char *root, const VolumeTable *volumes, uint32_t uid,
                usec_t known_until, LocatedPlan **ret);

/* Selects, orders and merges the located objects. Takes ranges by falling probability, metadata
 * before data, until the budget is spent. This is algorithm 4.2 of the thesis (4.3.2) with one line
 * that is missing there: the size of a selected range is subtracted from the available memory. A
 * range that does not fit is left out, and smaller ranges after it may still fit. Among equally
 * likely ranges, those of files of root come first, then those that save more time per byte. Gaps
 * that are cheaper to read than to skip are paid from the same budget. Once a limit (PLAN_FILES_MAX
 * ...) is reached, the objects that exceed it are left out in the same order. Deterministic. Pure.
 * Returns 0 or -ENOMEM. `summary` may be NULL. */
int plan_compile(const LocatedPlan *l, const PlanParameters *p, PackContent **ret,
                 PlanSummary *summary);
