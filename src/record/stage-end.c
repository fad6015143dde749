/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From a stage's log to its trace. The order matters: the metadata snapshot before anything else is
 * looked at, since resolving paths, FIEMAP and libext2fs read metadata themselves. */

#include "record/recorder-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/open.h"
#include "record/residency.h"
#include "record/stage-metadata.h"
#include "record/stage-select.h"
#include "volume/mountinfo.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* How long looking at the pages of one file may take. */
#define STAGE_END_FILE_USEC (20 * USEC_PER_MSEC)

/* What became of a volume in the trace. */
typedef struct VolumeEnd {
    uint32_t id; /* in the trace */
    StageMetadata metadata;
} VolumeEnd;

/* Headstart's own. */
#define RUN_OWN (TRACE_NONE - 1)

typedef struct StageEnd {
    Recorder *r;
    Trace *t;
    VolumeEnd *volumes; /* as r->volumes */
    uint32_t *files;    /* object -> file of the trace, or TRACE_NONE */
    uint32_t *runs;     /* run -> application of the trace, TRACE_NONE or RUN_OWN */
} StageEnd;

static int add_volumes(StageEnd *s)
{
    const VolumeTable *t = &s->r->volumes;

    for (size_t i = 0; i < t->n; i++) {
        const Volume *v = &t->volumes[i];
        TraceVolume o = {
                .uuid = v->uuid,
                .fstype = v->fstype,
                .subvolume = v->subvolume,
                .mountpoint = v->mountpoint,
                .device = v->device,
                .scheduler = v->scheduler,
                .device_class = v->device_class,
                .rotational = v->rotational,
                .size_bytes = v->size_bytes,
        };
        int k = trace_add_volume(s->t, &o, &s->volumes[i].id);

        if (k < 0)
            return k;
    }
    return 0;
}

/* Adds the pages of the file that were reclaimed since. When that happened the kernel does not say:
 * in a boot and in the first login after it the stage read them, days later it need not have. 0, 1
 * if the ranges are not complete, or -ENOMEM. */
static int add_reclaimed(const Recorder *r, int fd, usec_t deadline, TraceFile *f)
{
    _cleanup_range_set_ RangeSet seen = {0};
    int cut, k;

    if (r->stage != STAGE_BOOT && (r->stage != STAGE_LOGIN || r->n_logins > 1))
        return 0;
    if (r->options.no_cachestat || cachestat_count(fd, CACHESTAT_EVICTED, 0, f->size_bytes) <= 0)
        return 0;
    cut = cachestat_ranges(fd, CACHESTAT_SEEN, f->size_bytes, deadline, &seen);
    if (cut < 0)
        return cut == -ENOMEM ? cut : 0;
    k = range_set_unite(&f->resident, &seen);
    return k < 0 ? k : cut;
}

/* 0, 1 if the ranges are not complete, or -ENOMEM. */
static int read_residency(Recorder *r, int path_fd, TraceFile *f)
{
    usec_t deadline = clock_now(CLOCK_MONOTONIC) + STAGE_END_FILE_USEC;
    _cleanup_close_ int fd = fd_reopen(path_fd, O_RDONLY | O_NOATIME);
    int cut, k;

    if (fd < 0)
        return 0; /* it may not be opened: no ranges */
    cut = residency_read(fd, f->size_bytes, deadline, &f->resident);
    if (cut >= 0) {
        k = add_reclaimed(r, fd, deadline, f);
        return k < 0 ? k : cut || k;
    }
    if (cut == -EPERM && r->observable) {
        log_warning("The kernel does not say which pages of other users' files are resident "
                    "(CAP_FOWNER in this user namespace?): whole files are assumed");
        r->observable = false;
    }
    return cut == -ENOMEM ? cut : 0;
}

/* Adds what was seen of the file while the stage ran, as far as the file is still so long. The
 * sample is used up. */
static int add_samples(Recorder *r, uint32_t object, TraceFile *f)
{
    Range whole = {0, f->size_bytes};
    const RangeSet all = {&whole, 1, 1};
    _cleanup_range_set_ RangeSet sample = {0}, clipped = {0};
    int k;

    if (object >= r->sampling.n || r->sampling.files[object].n == 0 || f->size_bytes == 0)
        return 0;
    sample = r->sampling.files[object];
    r->sampling.files[object] = (RangeSet){0};
    k = range_set_intersect(&sample, &all, &clipped);
    return k < 0 ? k : range_set_unite(&f->resident, &clipped);
}

/* Fills in a file that the trace did not have yet. 0, 1 if its ranges are not complete, or -ENOMEM.
 */
static int fill_file(StageEnd *s, int fd, const struct stat *st, const char *path, VolumeEnd *e,
                     const Volume *v, TraceFile *f)
{
    int cut = 0, k;

    f->inode = st->st_ino;
    f->size_bytes = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
    f->mtime_nsec = (int64_t)timespec_nsec(&st->st_mtim);
    if (S_ISREG(st->st_mode) && s->r->observable)
        cut = read_residency(s->r, fd, f);
    if (cut < 0)
        return cut;
    k = stage_metadata_note(&e->metadata, v, path, st->st_ino);
    return k < 0 ? k : cut;
}

/* Charges the ranges that came to the file, and drops those beyond the user's share. True if there
 * were any. */
static bool limit_ranges(UserShares *shares, uint16_t user, size_t before, RangeSet *ranges)
{
    size_t added = ranges->n > before ? ranges->n - before : 0;
    size_t left = (size_t)user_shares_left(shares, user, SHARED_RANGES);

    user_shares_charge(shares, user, SHARED_RANGES, MIN(added, left));
    if (added <= left)
        return false;
    ranges->n = before + left;
    return true;
}

/* Resolves one object and makes it a file of the trace. Those that were opened and are gone are
 * counted. 1; 0 if the user's share is used up; -ENOMEM, -E2BIG. */
static int add_object(StageEnd *s, const StageObject *x)
{
    Recorder *r = s->r;
    _cleanup_close_ int fd = -EBADF;
    char path[PATH_MAX];
    const char *below;
    const Volume *v;
    VolumeEnd *e;
    TraceFile *f;
    LoggedObject o;
    struct stat st;
    uint32_t id, path_id;
    size_t ranges;
    int k, cut = 0;

    event_log_object(r->log, x->object, &o);
    fd = fanotify_resolve(r->fanotify, &o, path, sizeof(path));
    if (fd < 0 || fstat(fd, &st) < 0) {
        s->t->n_unresolved += x->opened;
        return 1;
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 1; /* a symlink, socket or device: nothing to read ahead */
    v = volume_by_dev(&r->volumes, st.st_dev);
    below = recorder_below_root(r, path);
    if (!v || !below)
        return 1;
    e = &s->volumes[v - r->volumes.volumes];
    if (!user_shares_take(&r->shares, x->user, SHARED_PATH_BYTES, strlen(below) + 1))
        return 0;
    user_shares_charge(&r->shares, x->user, SHARED_FILES, 1);

    k = trace_add_path(s->t, below, &path_id);
    if (k == -EINVAL)
        return 1; /* a name longer than the format allows */
    if (k >= 0)
        k = trace_add_file(s->t, path_id, e->id, S_ISDIR(st.st_mode), &id);
    if (k < 0)
        return k;
    s->files[x->object] = id;
    f = &s->t->files[id];
    ranges = f->resident.n;
    if (f->inode == 0)
        cut = fill_file(s, fd, &st, path, e, v, f);
    k = cut < 0 ? cut : f->directory ? 0 : add_samples(r, x->object, f);
    if (k < 0)
        return k;
    if (limit_ranges(&r->shares, x->user, ranges, &f->resident) || cut)
        r->shares.users[x->user].n_files_cut++;
    return 1;
}

/* Adds the object at its user's expense, if the shares have room. */
static int add_for_user(StageEnd *s, const StageObject *x)
{
    UserShares *shares = &s->r->shares;
    usec_t start = clock_now(CLOCK_MONOTONIC);
    int k = 0;

    if (user_shares_left(shares, x->user, SHARED_FILES) > 0 &&
        user_shares_left(shares, x->user, SHARED_END_USEC) > 0) {
        k = add_object(s, x);
        user_shares_charge(shares, x->user, SHARED_END_USEC, clock_now(CLOCK_MONOTONIC) - start);
    }
    if (k == 0)
        shares->users[x->user].n_files_left_out++;
    return k;
}

static int add_objects(StageEnd *s)
{
    _cleanup_free_ StageObject *objects = NULL;
    const ProcessRun *runs;
    size_t n, n_runs;
    int k;

    runs = process_table_runs(s->r->processes, &n_runs);
    k = stage_select(s->r->log, runs, n_runs, &s->r->shares, &objects, &n);
    for (size_t i = 0; k >= 0 && i < n; i++)
        k = add_for_user(s, &objects[i]);
    return k < 0 ? k : 0;
}

static int add_runs(StageEnd *s)
{
    size_t n;
    const ProcessRun *runs = process_table_runs(s->r->processes, &n);

    s->runs = calloc(n + 1, sizeof(uint32_t));
    if (!s->runs)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const ProcessRun *p = &runs[i];
        uint32_t object = p->object, file;
        bool own = p->own;
        TraceLifetime l;
        int k;

        /* An execve that failed belongs to the run before it, a script's env to the script. */
        for (uint32_t a = p->same_as; a != PROCESS_NONE; a = runs[a].same_as) {
            object = runs[a].object;
            own = runs[a].own;
        }
        file = object == PROCESS_NONE ? TRACE_NONE : s->files[object];
        s->runs[i] = own ? RUN_OWN : TRACE_NONE;
        if (own || file == TRACE_NONE || s->t->files[file].directory)
            continue;
        k = trace_add_application(s->t, file, &s->runs[i]);
        if (k < 0)
            return k;
        if (p->same_as != PROCESS_NONE)
            continue;
        l = (TraceLifetime){
                .application = s->runs[i],
                .pid = p->pid,
                .uid = p->uid,
                .start = p->start,
                .end = p->n_processes > 0 ? USEC_INFINITY : MAX(p->start, p->end),
        };
        k = trace_add_lifetime(s->t, &l);
        if (k < 0)
            return k;
    }
    return 0;
}

static int add_accesses(StageEnd *s)
{
    size_t n, n_runs;
    const LoggedEvent *events = event_log_events(s->r->log, &n);

    process_table_runs(s->r->processes, &n_runs);
    for (size_t i = 0; i < n; i++) {
        TraceAccess a = {
                .at = events[i].at_msec * USEC_PER_MSEC,
                .file = s->files[events[i].object],
                .application = events[i].run < n_runs ? s->runs[events[i].run] : TRACE_NONE,
                .kind = (AccessKind)events[i].kind,
        };
        int k;

        if (a.application == RUN_OWN) {
            s->t->n_own++; /* of a process that was not known to be ours at the time */
            continue;
        }
        if (a.file == TRACE_NONE)
            continue;
        if (a.application == TRACE_NONE)
            s->t->n_unknown_application++;
        k = trace_add_access(s->t, &a);
        if (k < 0)
            return k;
    }
    return 0;
}

static void stage_end_done(StageEnd *s)
{
    for (size_t i = 0; s->volumes && i < s->r->volumes.n; i++)
        stage_metadata_done(&s->volumes[i].metadata);
    free(s->volumes);
    free(s->files);
    free(s->runs);
    trace_free(s->t);
}

int recorder_make_trace(Recorder *r, Trace **ret)
{
    _cleanup_(stage_end_done) StageEnd s = {.r = r};
    int k = 0;

    s.t = trace_new(r->stage);
    s.volumes = calloc(r->volumes.n + 1, sizeof(VolumeEnd));
    if (!s.t || !s.volumes)
        return -ENOMEM;
    s.t->duration = clock_now(CLOCK_BOOTTIME) - r->start_boottime;
    for (size_t i = 0; k >= 0 && i < r->volumes.n; i++)
        k = stage_metadata_snapshot(&s.volumes[i].metadata, r, &r->volumes.volumes[i]);
    /* Twice: what the connector says is settled one batch later. */
    for (int i = 0; k >= 0 && i < 2; i++)
        k = recorder_drain(r);
    if (k < 0)
        return k;

    s.files = malloc((event_log_n_objects(r->log) + 1) * sizeof(uint32_t));
    if (!s.files)
        return -ENOMEM;
    memset(s.files, 0xff, (event_log_n_objects(r->log) + 1) * sizeof(uint32_t));
    k = add_volumes(&s);
    if (k >= 0)
        k = add_objects(&s);
    fanotify_resolve_done(r->fanotify);
    if (k >= 0)
        k = add_runs(&s);
    if (k >= 0)
        k = add_accesses(&s);
    for (size_t i = 0; k >= 0 && i < r->volumes.n; i++) {
        TraceVolume *o = &s.t->volumes[s.volumes[i].id];
        StageMetadata *m = &s.volumes[i].metadata;

        k = stage_metadata_finish(m, &r->volumes.volumes[i]);
        o->metadata_source = m->source;
        o->metadata = m->ranges;
        m->ranges = (RangeSet){0};
    }
    if (k >= 0)
        k = recorder_fill_facts(r, s.t);
    if (k < 0)
        return k;
    *ret = TAKE_PTR(s.t);
    return 0;
}
