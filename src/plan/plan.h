/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From what is predicted to what is replayed:
 *
 *     Prediction --plan_locate()--> LocatedPlan --plan_compile()--> PackContent --pack_write()-->
 * pack
 *
 * plan_locate() makes all the system calls (open, fstat, FIEMAP, libext2fs); plan_compile() decides
 * from what it found: cut at the budget, sort by physical block, merge what is cheaper read
 * through.
 *
 *     volume_table_read(AT_FDCWD, root, &volumes);
 *     plan_locate(prediction, root, &volumes, uid, known_until, &located);
 *     plan_compile(located, &parameters, &content, &summary);
 *     pack_write(content, &bytes, &size);
 *
 * Everything is the caller's to free. */

#include "base/ranges.h"
#include "model/prediction.h"
#include "pack/pack-writer.h"
#include "plan/budget.h"
#include "plan/cost-model.h"
#include "volume/extents.h"
#include "volume/volume.h"

/* Why something predicted is not in the plan; counted per reason. */
typedef enum PlanSkip {
    PLAN_SKIP_GONE,       /* no longer there */
    PLAN_SKIP_TYPE,       /* neither a regular file nor a directory now, or behind a symlink */
    PLAN_SKIP_FILESYSTEM, /* not on a local block-backed filesystem below the root */
    PLAN_SKIP_DENIED,     /* may not be opened */
    PLAN_SKIP_DUPLICATE,  /* another name of a file that is in already: what it says was added to
                             that */
    PLAN_SKIP_OWNER,      /* belongs to, or can be written by, somebody whom the set is not for */
    PLAN_SKIP_UNLIKELY,   /* below the minimum probability: maps and metadata ranges */
    PLAN_SKIP_BUDGET,     /* did not fit the budget: the same */
    PLAN_SKIP_LIMIT,      /* more files, names or ranges than a pack may hold */
    PLAN_SKIP_ERROR,      /* anything else */
    _PLAN_SKIP_MAX,
    _PLAN_SKIP_INVALID = -EINVAL,
} PlanSkip;

const char *plan_skip_to_string(PlanSkip s);

typedef struct LocatedFile {
    char *path; /* relative to its volume's mount point, "." for that itself */
    uint32_t volume;
    bool directory;
    bool of_root; /* root owns it */
    uint64_t inode;
    uint64_t size_bytes;
    int64_t mtime_nsec;
    int64_t ctime_nsec;
    double probability;
    usec_t first_use;
    PredictedRange *maps; /* clipped to the file */
    size_t n_maps;
    Extent *extents; /* all of them; none where FIEMAP is not supported */
    size_t n_extents;
} LocatedFile;

typedef struct LocatedMetadata {
    uint32_t volume;
    PredictedRange range; /* of the volume's block device */
} LocatedMetadata;

typedef struct LocatedPlan {
    Stage stage;
    const VolumeTable *volumes; /* borrowed */
    LocatedFile *files;
    size_t n_files, allocated_files;
    LocatedMetadata *metadata; /* by volume, then offset; disjoint */
    size_t n_metadata, allocated_metadata;
    uint64_t n_skipped[_PLAN_SKIP_MAX];
    bool metadata_derived; /* at least one volume's metadata came from libext2fs, not the model */
} LocatedPlan;

LocatedPlan *located_plan_free(LocatedPlan *p);
DEFINE_CLEANUP(LocatedPlan *, located_plan_free);
#define _cleanup_located_plan_ _cleanup_(located_plan_freep)

typedef struct PlanParameters {
    Policy policy;
    uint64_t budget_bytes;
    double min_probability;    /* what is less likely is left out */
    usec_t deadline_usec;      /* of `gate` */
    uint32_t control_interval; /* 0: no control sessions */
    uint64_t salt;
    usec_t now_realtime;
    usec_t volatile_since;    /* wall clock: files modified later are written in place while the
                                 machine runs; USEC_INFINITY: none */
    DeviceClass device_class; /* _DEVICE_CLASS_INVALID: as each volume says */
    const CostModel
            *cost_model; /* what the device was measured to be; NULL: typical of its class */
} PlanParameters;

/* A file whose content changed so shortly before the last session that was learned, or since, will
 * have changed again at the next: journals, databases, caches that are rewritten. */
#define PLAN_VOLATILE_USEC (24 * USEC_PER_HOUR)

/* Limits of one plan. A pack within them is within those of pack.h, and compiling it takes less
 * than 100 MB. A login of a desktop has some 5,000 files, 400 kB of names and 10,000 ranges. */
#define PLAN_FILES_MAX      100000U
#define PLAN_PATH_BYTES_MAX (UINT64_C(16) << 20)
#define PLAN_RANGES_MAX     400000U /* of data and metadata together */

/* Metadata comes before data, but has at most a quarter of the budget or this, whichever is more:
 * one session that looked at everything would leave no room for data. */
#define PLAN_METADATA_BYTES_MIN (UINT64_C(32) << 20)

/* Below this even a hard disk that would have to seek for it gains nothing on average: a seek saved
 * with probability p against the transfer spent with 1 - p. */
#define PLAN_MIN_PROBABILITY_DEFAULT 0.1
#define PLAN_DEADLINE_DEFAULT        (10 * USEC_PER_SEC)

typedef struct PlanSummary {
    uint64_t n_files, n_directories, n_data_ranges, n_metadata;
    uint64_t data_bytes, metadata_bytes;
    uint64_t gap_bytes; /* read through because that is cheaper than seeking; included above */
    uint64_t n_skipped[_PLAN_SKIP_MAX];
    usec_t estimated_usec; /* by the cost model; USEC_INFINITY where places are not physical */
} PlanSummary;

/* Finds what was predicted below `root`, the same directory that the volumes were read for. Leaves
 * out what ownership_allows() (base/ownership.h) refuses to the set of the user `uid`. Opens
 * nothing but regular files and directories on the volumes, follows no symlink, crosses no mount
 * and no automount, waits for nothing. Names of one file (hard links) become one file with the maps
 * of all. Metadata of an ext2/3/4 filesystem whose UUID the prediction does not know is derived
 * from the located files with libext2fs; of one that it knows, that of files made after
 * `known_until` (wall clock; USEC_INFINITY: none), the last session that was learned: an upgrade
 * replaces files by new ones. 0, -ENOMEM, or the error of looking at root. */
int plan_locate(const Prediction *p, const char *root, const VolumeTable *volumes, uint32_t uid,
                usec_t known_until, LocatedPlan **ret);

/* Pure: cuts, orders and merges. What is likely enough is taken by falling probability, metadata
 * before data, until the budget is spent (thesis 4.3.2, algorithm 4.2, with the line that it
 * forgot: what is selected is taken off what is available); what does not fit is left out, and
 * smaller ones after it may still fit. Of what is equally likely, files of root come first, then
 * what saves more time per byte. Gaps that are cheaper read through are paid for as well. The
 * limits (PLAN_FILES_MAX ...) cut in the same order. Deterministic. 0, -ENOMEM. `summary` may be
 * NULL. */
int plan_compile(const LocatedPlan *l, const PlanParameters *p, PackContent **ret,
                 PlanSummary *summary);
