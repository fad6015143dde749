/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Limits the size of one trace. There are two sets of limits:
 *
 * - TRACE_RECORD_*: the most that the recorder keeps of one stage, and that learning takes from one
 *   trace. Objects beyond these limits are left out; the likeliest objects are kept. A boot and a
 *   login open 3,000 to 15,000 files with paths of 60 to 90 bytes.
 * - TRACE_*_MAX without RECORD: the most that builder and reader accept. The builder refuses more
 *   with -E2BIG, but a path or a number that is too large with -EINVAL. The reader refuses it with
 *   -EBADMSG, and a file of more than TRACE_JSON_SIZE_MAX with -E2BIG. These limits bound the
 *   memory that a reader needs for a hostile file. They are larger than the first set, so that a
 *   trace of a recorder with larger limits is still readable.
 *
 * "Path bytes" is the sum over files of the length of the full path with its NUL. A trace stores
 * paths as a tree; learning writes each path out. */

/* Limits of one stage, for all users together. */
#define TRACE_RECORD_FILES_MAX      60000U
#define TRACE_RECORD_PATH_BYTES_MAX (8U * 1024 * 1024)
#define TRACE_RECORD_NAMES_MAX      400000U /* nodes of the path tree */
#define TRACE_RECORD_RANGES_MAX     500000U

/* Limits of one user other than root in one stage. Root, and all other users together, may each
 * take three quarters of the limits above (observe/user-shares.h). */
#define TRACE_RECORD_USER_FILES_MAX      15000U
#define TRACE_RECORD_USER_PATH_BYTES_MAX (2U * 1024 * 1024)
#define TRACE_RECORD_USER_NAMES_MAX      60000U
#define TRACE_RECORD_USER_RANGES_MAX     100000U

/* Limits of the format. */
#define TRACE_ACCESSES_MAX   1000000U
#define TRACE_LIFETIMES_MAX  1000000U
#define TRACE_FILES_MAX      250000U
#define TRACE_PATHS_MAX      500000U              /* nodes of the path tree */
#define TRACE_PATH_BYTES_MAX (256U * 1024 * 1024) /* full paths of all files */
#define TRACE_RANGES_MAX     2000000U             /* resident ranges of all files; touched ones */
#define TRACE_TOUCHED_MAX    250000U              /* pairs of an application and a file */
#define TRACE_NEEDED_MAX     4096U                /* pairs of an application and a volume */
#define TRACE_LEFT_OUT_MAX   4096U                /* users */
#define TRACE_VOLUMES_MAX    4096U
#define TRACE_SAMPLES_MAX    128U                  /* of CPU and pressure */
#define TRACE_PATH_MAX       4096U                 /* bytes of one path, NUL included */
#define TRACE_NUMBER_MAX     ((uint64_t)INT64_MAX) /* instants, counts, sizes, ends of ranges */
#define TRACE_JSON_SIZE_MAX  (64U * 1024 * 1024)   /* bytes of one trace's file */
