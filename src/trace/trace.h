/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A trace: what one recording of one stage observed. The recorder makes it (src/record), or it is
 * read from a file; the model learns from it. The struct is plain data; the builder functions keep
 * its tables consistent. Pure.
 *
 * Rows refer to one another by index into the trace's arrays; TRACE_NONE means "none" or "unknown".
 * Paths are absolute below the recorded root and contain no symbolic links. */

#include "base/ranges.h"
#include "base/time-util.h"
#include "base/uid.h"
#include "base/vocabulary.h"
#include "trace/trace-limits.h"

#define TRACE_NONE UINT32_MAX

/* The source of a volume's metadata ranges. */
typedef enum MetadataSource {
    METADATA_SOURCE_NONE,      /* not known: the metadata is not cached with the block device */
    METADATA_SOURCE_CACHESTAT, /* observed on the block device */
    METADATA_SOURCE_DERIVED,   /* computed by libext2fs from the recorded paths */
    _METADATA_SOURCE_MAX,
    _METADATA_SOURCE_INVALID = -EINVAL,
} MetadataSource;

/* How processes were assigned to applications. */
typedef enum ProcessSource {
    PROCESS_SOURCE_NONE,      /* opens carry no application */
    PROCESS_SOURCE_PROC,      /* /proc, when events are read: short-lived processes stay unknown */
    PROCESS_SOURCE_CONNECTOR, /* proc connector: fork, exec, exit and uid as they happen */
    _PROCESS_SOURCE_MAX,
    _PROCESS_SOURCE_INVALID = -EINVAL,
} ProcessSource;

/* Facts that exclude a trace from learning or comparisons, or determine its interpretation. */
typedef enum TraceFlags {
    TRACE_INCOMPLETE = 1 << 0,   /* opens are missing: the event queue overflowed, or opens of root
                                  * or of the trace's user were left out */
    TRACE_EXACT = 1 << 1,        /* read-ahead was lowered: ranges are exactly what was accessed */
    TRACE_REPLAYED = 1 << 2,     /* a pack was replayed: residency shows what replay read */
    TRACE_CONTROL = 1 << 3,      /* replay was deliberately off. In a session: at least one start of
                                  * an application was a control start */
    TRACE_SECOND_LOGIN = 1 << 4, /* not the first login of this boot */
    TRACE_SOFT_REBOOT = 1 << 5,
    TRACE_OFFLINE_UPDATE = 1 << 6,
    TRACE_FSCK = 1 << 7,
    TRACE_RESIDENCY_OFF =
            1 << 8, /* page ranges are unknown (no CAP_FOWNER), so whole files are assumed */
    TRACE_FOLLOWED = 1 << 9, /* the session cycle has learned which applications followed which */
    TRACE_LATE = 1 << 10, /* a boot: what was read between the mount of the root filesystem and the
                           * start of headstartd is missing */
    TRACE_AUTOLOGIN = 1 << 11, /* an automatic login: no greeter ran before it */
} TraceFlags;

typedef struct TraceVolume {
    char *uuid;       /* filesystem UUID as blkid prints it; "" if it has none */
    char *fstype;     /* "ext4", "xfs", … */
    char *subvolume;  /* btrfs: path of the mounted subvolume; "" elsewhere */
    char *mountpoint; /* below the recorded root; "/" for the root filesystem */
    char *device;     /* kernel name of the block device: "sda2", "dm-0", "loop3" */
    char *scheduler;  /* active I/O scheduler, "" if unknown */
    DeviceClass device_class;
    bool rotational;     /* the kernel's flag, which is not reliable */
    uint64_t size_bytes; /* of the block device */
    MetadataSource metadata_source;
    RangeSet metadata; /* bytes of the block device that the stage read */
} TraceVolume;

typedef struct TraceFile {
    uint32_t path;   /* into paths */
    uint32_t volume; /* into volumes, or TRACE_NONE */
    bool directory;
    bool looked_up; /* the stage looked the name up, but did not open the file; its type may be any.
                       Only volumes without a metadata source have such files. They have no size
                       and no ranges */
    uint64_t inode;
    uint64_t size_bytes;
    int64_t mtime_nsec; /* since the epoch; together with the size it identifies the version that
                           was recorded */
    RangeSet resident;  /* byte ranges that begin at page boundaries; empty for directories */
} TraceFile;

typedef struct TraceApplication {
    uint32_t file; /* into files: the executable or script */
} TraceApplication;

typedef struct TraceLifetime {
    uint32_t application; /* into applications */
    uint32_t pid;
    uint32_t uid; /* UID_INVALID: unknown */
    usec_t start; /* since the stage's start; 0 if the application started before the stage */
    usec_t end;   /* USEC_INFINITY: still running when the stage ended */
} TraceLifetime;

/* The start of an application lasts until nothing was opened for LAUNCH_GAP_USEC, but at most
 * LAUNCH_MAX_USEC. */
#define LAUNCH_GAP_USEC (3 * USEC_PER_SEC)
#define LAUNCH_MAX_USEC (30 * USEC_PER_SEC)

typedef struct TraceAccess {
    usec_t at;            /* since the stage's start, never decreasing */
    uint32_t file;        /* into files */
    uint32_t application; /* into applications, or TRACE_NONE */
    AccessKind kind;
} TraceAccess;

/* The pages of a file that processes of an application had touched through mappings some seconds
 * after the application was started (observe/touched.h). Unlike `resident` they do not depend on
 * what was in memory before. A control start has further rows: the pages that it needed of other
 * files of its launch set (session/launch-use.h). */
typedef struct TraceTouched {
    uint32_t application; /* into applications */
    uint32_t file;        /* into files */
    RangeSet ranges;      /* of the file, in bytes; never empty */
} TraceTouched;

/* The metadata of a filesystem that a control start of an application needed: what it read, and
 * what of its launch set was in memory already (session/launch-use.h). */
typedef struct TraceNeeded {
    uint32_t application; /* into applications */
    uint32_t volume;      /* into volumes */
    RangeSet ranges;      /* bytes of the block device; never empty */
} TraceNeeded;

/* The opens of a user that the recorder left out because they exceeded the user's share
 * (trace-limits.h, observe/user-shares.h). */
typedef struct TraceLeftOut {
    uint32_t uid; /* UID_INVALID: users that are not known */
    uint64_t n_events;
    uint64_t n_files; /* files and directories */
    uint64_t n_cut;   /* files of the trace whose resident ranges are not complete */
} TraceLeftOut;

/* The time until the stage was ready for its user, and how much of it was I/O and computation. */
typedef struct TraceTiming {
    usec_t ready;   /* since the stage's start: the end of the boot's jobs, or the moment from which
                       a login was quiet; 0: unknown, and so are the other fields */
    usec_t stalled; /* until then: how long tasks waited for I/O ("some" of pressure stall
                       information) */
    usec_t busy;    /* until then: CPU time of all processors together */
    uint32_t n_cpus; /* online */
} TraceTiming;

/* The totals of the kernel at one moment of the stage, less those at its start. */
typedef struct TraceSample {
    usec_t at;      /* since the stage's start, rising */
    usec_t busy;    /* CPU time of all processors */
    usec_t stalled; /* tasks waited for I/O ("some" of pressure stall information) */
} TraceSample;

/* The start and the end of the replay of this stage, since the stage's start; 0: before the stage.
 */
typedef struct TraceReplay {
    bool known;
    usec_t start, end;
} TraceReplay;

#define TRACE_CPUS_MAX 65536U

/* One node of the path tree: "/" is node 0 and its own parent. */
typedef struct TracePath {
    uint32_t parent;
    char *name;
} TracePath;

typedef struct Trace {
    Stage stage;
    unsigned flags;     /* TraceFlags */
    char *boot_id;      /* of the kernel, 32 hex digits, or "" */
    char *kernel;       /* uname release */
    char *distribution; /* ID and VERSION_ID of os-release: "debian 12", or "" */
    uint32_t uid;       /* user of the login or session; UID_INVALID for a boot, or if unknown */
    usec_t start_realtime;
    usec_t start_boottime;
    usec_t duration; /* of the stage */
    TraceTiming timing;
    TraceReplay replay;
    Policy policy; /* of the replay that ran in this stage */
    ProcessSource process_source;
    uint64_t n_unknown_application; /* accesses whose application stayed unknown */
    uint64_t n_unresolved;          /* opened objects that were gone when the trace was made */
    uint64_t n_own;                 /* accesses of headstart itself, left out */
    uint64_t n_overflows;           /* times the event queue overflowed */

    TraceVolume *volumes;
    size_t n_volumes, allocated_volumes;
    TracePath *paths;
    size_t n_paths, allocated_paths;
    TraceFile *files;
    size_t n_files, allocated_files;
    TraceApplication *applications;
    size_t n_applications, allocated_applications;
    TraceLifetime *lifetimes;
    size_t n_lifetimes, allocated_lifetimes;
    TraceAccess *accesses;
    size_t n_accesses, allocated_accesses;

    TraceTouched *touched; /* by application, then file */
    size_t n_touched, allocated_touched;

    TraceNeeded *needed; /* by application, then volume */
    size_t n_needed, allocated_needed;

    TraceLeftOut *left_out; /* one row for each user, in rising order of the UID */
    size_t n_left_out, allocated_left_out;

    TraceSample *samples;
    size_t n_samples, allocated_samples;

    struct TraceIndex *index; /* lookup tables of the builder; NULL in a trace that was read */
} Trace;

/* Returns a new, empty trace of that stage; NULL if out of memory. */
Trace *trace_new(Stage stage);
Trace *trace_free(Trace *t);
DEFINE_CLEANUP(Trace *, trace_free);
#define _cleanup_trace_ _cleanup_(trace_freep)

/* The builder. Each function trace_add_…() returns 0, -ENOMEM, -E2BIG or -EINVAL. If it has a
 * parameter `ret`, *ret becomes the number of the row on success. Strings are copied. Adding the
 * same path, file or application again finds the first one. A trace that was read has no lookup
 * tables, so that adding paths, files or applications fails (-EINVAL). */

/* Frees the builder's lookup tables. No path, file or application can be added after this call.
 * trace_from_json() calls it. */
void trace_end_building(Trace *t);

/* Adds a copy of the volume, its strings and its metadata. */
int trace_add_volume(Trace *t, const TraceVolume *v, uint32_t *ret);
/* Interns an absolute path. Returns -EINVAL if the path is not absolute, is too long, or contains
 * ".", ".." or an empty name. */
int trace_add_path(Trace *t, const char *path, uint32_t *ret);
/* Finds or adds the file with that path; in a new file only path, volume and directory are set.
 * Returns -E2BIG also if the paths of all files would exceed TRACE_PATH_BYTES_MAX. */
int trace_add_file(Trace *t, uint32_t path, uint32_t volume, bool directory, uint32_t *ret);
int trace_add_application(Trace *t, uint32_t file, uint32_t *ret);
int trace_add_lifetime(Trace *t, const TraceLifetime *l);

/* Returns true if a filesystem was checked, that is, if a checker ran for at least ten seconds.
 * Pure. */
bool trace_has_fsck(const Trace *t);
/* Adds a row; UIDs must rise (-EINVAL otherwise). */
int trace_add_left_out(Trace *t, const TraceLeftOut *l);
/* Adds a sample. Times must rise and totals must not fall (-EINVAL otherwise). */
int trace_add_sample(Trace *t, const TraceSample *s);
/* Returns true if all samples follow the rules of trace_add_sample() and there are at most
 * TRACE_SAMPLES_MAX of them. */
bool trace_samples_valid(const Trace *t);
/* Estimates for how long tasks waited for I/O until the stage was ready. Returns at least
 * timing.stalled and at most timing.ready. Pure.
 *
 * The kernel's measure ("some") is a mean over the processors of the time in which a task waited,
 * weighted by the time in which the processor was not idle (psi_avgs_work() in kernel/sched/psi.c).
 * It is too low if the waiting tasks change between processors, or if another processor computes
 * meanwhile. On n processors that computed for b, it is at least w^2 / (n (w + b)) if tasks waited
 * for w. For each interval between two samples, the estimate is therefore the time in which no
 * processor computed, within the limits that the kernel's measure sets. A time in which nothing
 * computed and hardly anything waited is a timer's, and does not count. */
usec_t trace_waited(const Trace *t);
/* Adds an access. `at` must not fall from one access to the next (-EINVAL otherwise). */
int trace_add_access(Trace *t, const TraceAccess *a);

/* Adds a row and takes over *ranges, which must not be empty. Rows must rise by application, then
 * file (-EINVAL otherwise). On failure *ranges is untouched. */
int trace_add_touched(Trace *t, uint32_t application, uint32_t file, RangeSet *ranges);

/* Adds rows at their places in the order. `rows` rise by application, then file; their ranges are
 * not empty (-EINVAL otherwise). Of several rows with the same application and file, the one that
 * the trace has counts, or else the first one. Takes over the ranges of the rows that are added,
 * which become empty. Returns 0; or -EINVAL, -E2BIG or -ENOMEM with nothing changed. */
int trace_merge_touched(Trace *t, TraceTouched *rows, size_t n);

/* Adds a row and takes over *ranges, which must not be empty. Rows must rise by application, then
 * volume (-EINVAL otherwise). On failure *ranges is untouched. */
int trace_add_needed(Trace *t, uint32_t application, uint32_t volume, RangeSet *ranges);

/* Returns the number of bytes that the full path takes as text, with its NUL. */
size_t trace_path_bytes(const Trace *t, uint32_t path);

/* Writes the path as text into buf; -ENAMETOOLONG if it does not fit. */
int trace_format_path(const Trace *t, uint32_t path, char *buf, size_t size);

/* Checks every index, order and limit of the struct, and that each path fits TRACE_PATH_MAX.
 * Returns 0, -EBADMSG, -ENOMEM. */
int trace_validate(const Trace *t);

/* Returns one clause for log lines that lists what was left out for each of the first few users,
 * and the number of further users: "UID 1000: 30 opens, 2 files, incomplete page ranges in 1 files;
 * UID 1001: …". The caller frees it. Returns NULL if nothing was left out or memory is short. */
char *trace_describe_left_out(const Trace *t);

const char *metadata_source_to_string(MetadataSource s);
MetadataSource metadata_source_from_string(const char *s);
const char *process_source_to_string(ProcessSource s);
ProcessSource process_source_from_string(const char *s);
