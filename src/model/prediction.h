/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The objects that a model predicts for a stage. Of the types of the model, the planner uses only
 * this one. Plain data; pure. */

#include "base/ranges.h"
#include "base/time-util.h"
#include "base/vocabulary.h"

#include <stdbool.h>

typedef struct PredictedFile {
    char *path;         /* absolute, below the root */
    bool directory;     /* many sessions have opened it as a directory */
    double probability; /* that the file or directory is opened at all */
    bool touched;       /* `maps` are the pages that the application itself touched */
    usec_t first_use;   /* mean instant of its first use, since the stage's start */
    PredictedRange *
            maps; /* maps of the thesis (3.1.4); sorted by offset, disjoint; none for directories */
    size_t n_maps;
    bool metadata_unknown; /* the metadata of its stage was not observed, but that of another was */
} PredictedFile;

typedef struct PredictedMetadata {
    char *uuid;           /* of the filesystem */
    PredictedRange range; /* of the block device */
    bool assumed;         /* from replayed sessions, which may lack other metadata */
} PredictedMetadata;

typedef struct Prediction {
    Stage stage;
    usec_t ready;   /* time from the stage's start to the point that the user waits for, in sessions
                       without replay; 0: unknown */
    usec_t stalled; /* part of that time in which tasks waited for I/O */
    usec_t horizon; /* the prediction is for this time ahead (tau of the thesis) */
    PredictedFile *files;
    size_t n_files, allocated_files;
    PredictedMetadata *metadata; /* sorted by uuid, then offset */
    size_t n_metadata, allocated_metadata;
    PredictedMetadata
            *assumed; /* what replayed sessions have read of filesystems whose metadata was
                         observed. `metadata` lacks it; prediction_append() may add it */
    size_t n_assumed, allocated_assumed;
    PredictedMetadata *seen; /* of a start: metadata that any session has read, of filesystems of
                                which no control start shows the metadata. If a filesystem is
                                listed, the start needs no other metadata of it */
    size_t n_seen, allocated_seen;
} Prediction;

Prediction *prediction_free(Prediction *p);
DEFINE_CLEANUP(Prediction *, prediction_free);
#define _cleanup_prediction_ _cleanup_(prediction_freep)

/* Keeps the n files with the highest probability of being opened. Equally likely files are kept in
 * the order of their paths. Files are sorted by path afterwards. Metadata stays. */
void prediction_keep_likeliest(Prediction *p, size_t n);

/* Removes the files for which remove(list, path) returns true. */
void prediction_remove_files(Prediction *p, bool (*remove)(const char *list, const char *path),
                             const char *list);

/* Returns how many bytes of that range of the file are in ranges that are needed with at least this
 * probability. The files of `p` are sorted by path. */
uint64_t prediction_likely_bytes(const Prediction *p, const char *path, Range range,
                                 double min_probability);

/* Adds `more`, the prediction of a stage that begins the time `after` later than the stage of `p`.
 * The first use of each added file is shifted by `after`. If `more` knows `ready`, the
 * sum is ready when `more` is, and the stalls of both are added. Otherwise both times become
 * unknown (0). A file that is in both predictions is in the result twice: the planner unites the
 * two when it locates the file. If only one of the two has metadata that is not assumed,
 * `metadata_unknown` is set in the files of the other, and `metadata` also gets the `assumed`
 * metadata of the one: a replay of the first stage may have read the metadata of both. `more` loses
 * its files and metadata. Returns 0, or -ENOMEM with both predictions unchanged. */
int prediction_append(Prediction *p, Prediction *more, usec_t after);
