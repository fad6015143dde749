/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by recorder.c (while a stage runs) and stage-end.c (what is made of it). */

#include "record/cachestat.h"
#include "record/event-log.h"
#include "record/fanotify.h"
#include "record/following.h"
#include "record/proc-connector.h"
#include "record/proc-facts.h"
#include "record/processes.h"
#include "record/recorder.h"
#include "record/sampling.h"
#include "record/user-shares.h"
#include "volume/volume.h"

/* A filesystem that is being watched; its index is the number its events carry. */
typedef struct WatchedVolume {
    uint64_t st_dev;
    bool mounted;
    bool has_snapshot;
    RangeSet resident_before; /* metadata that was resident when the stage began */
    RangeSet seen_before;     /* the same, and what had been and was reclaimed */
    RangeSet resident_since;  /* what was seen resident while it ran */
} WatchedVolume;

struct Recorder {
    RecorderOptions options;
    char *root;
    char *run_dir;
    Fanotify *fanotify;
    int connector_fd; /* -EBADF: /proc instead */
    ProcReader *proc;
    ProcessTable *processes;
    EventLog *log;        /* between stages it knows only what the processes run */
    UserShares shares;    /* of the log, and of the trace that is made of it */
    bool recording;       /* a stage */
    Following *following; /* NULL: nobody wants to know */
    recorder_tell_t tell;
    void *tell_arg;
    VolumeTable volumes;
    WatchedVolume *watched;
    size_t n_watched, allocated_watched;
    bool observable; /* residency of all users' files can be observed */
    bool read_ahead_lowered;
    char *limits;

    Stage stage;
    uint32_t uid;
    usec_t start_boottime, start_realtime;
    usec_t last_reap;
    Sampling sampling;
    unsigned n_logins; /* that began in our time */
    bool complained;   /* of events that cannot be read */
    uint64_t n_overflows, n_lost, n_own;
    uint64_t n_starts; /* since ever */
    size_t compact_at; /* runs in the table, between stages */

    sd_event *event;
    sd_event_source *timer, *mounts;
    usec_t drain_interval;
    int mountinfo_fd;
};

/* The path as traces name it: below the recorded root, borrowed. NULL if it lies elsewhere. */
const char *recorder_below_root(const Recorder *r, const char *path);

/* Tells of what has started and exited. 0 or -ENOMEM. */
int recorder_tell(Recorder *r);

/* How long one snapshot of a volume's metadata may take: a device of 20 GB takes 2 ms. */
#define RECORDER_SNAPSHOT_USEC (300 * USEC_PER_MSEC)

/* Metadata of the volume in the page cache of its block device, by cachestat. -EOPNOTSUPP where the
 * filesystem keeps its metadata elsewhere; -ENOSYS or -EPERM where the kernel has no cachestat or
 * refuses it; -ETIME if it takes longer than RECORDER_SNAPSHOT_USEC. */
int recorder_snapshot(Recorder *r, const Volume *v, CachestatWhat what, RangeSet *ret);

/* Forgets all but the processes that go on and what they run. 0 or -ENOMEM. */
int recorder_begin_log(Recorder *r);

/* If this recorder has lowered read-ahead. */
void recorder_give_back_read_ahead(Recorder *r);

/* Fills in what the trace says of machine and session. 0 or -ENOMEM. */
int recorder_fill_facts(const Recorder *r, Trace *t);

/* The trace of the stage that has just ended. */
int recorder_make_trace(Recorder *r, Trace **ret);
