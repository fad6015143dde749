/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From a stage's log to its trace. The order matters: the metadata snapshot before anything else is
 * looked at, since resolving paths, FIEMAP and libext2fs read metadata themselves. */

#include "base/open.h"
#include "record/recorder-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "record/residency.h"
#include "record/stage-metadata.h"
#include "volume/mountinfo.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

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

/* Pages of the file that were reclaimed since. When that was the kernel does not say: it is the
 * stage's doing in a boot and in the first login after it, but not days later. */
static int add_reclaimed(const Recorder *r, int fd, TraceFile *f)
{
    _cleanup_range_set_ RangeSet seen = {0};
    int k;

    if (r->stage != STAGE_BOOT && (r->stage != STAGE_LOGIN || r->n_logins > 1))
        return 0;
    if (r->options.no_cachestat || cachestat_count(fd, CACHESTAT_EVICTED, 0, f->size_bytes) <= 0)
        return 0;
    k = cachestat_ranges(fd, CACHESTAT_SEEN, f->size_bytes, &seen);
    if (k < 0)
        return k == -ENOMEM ? k : 0;
    return range_set_unite(&f->resident, &seen);
}

static int read_residency(Recorder *r, int path_fd, TraceFile *f)
{
    _cleanup_close_ int fd = fd_reopen(path_fd, O_RDONLY | O_NOATIME);
    int k;

    if (fd < 0)
        return 0; /* not ours to see: no ranges */
    k = residency_read(fd, f->size_bytes, &f->resident);
    if (k >= 0)
        return add_reclaimed(r, fd, f);
    if (k == -EPERM && r->truth) {
        log_warning("The kernel does not say which pages of other users' files are resident "
                    "(CAP_FOWNER in this user namespace?): whole files are assumed");
        r->truth = false;
    }
    return k == -ENOMEM ? k : 0;
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

/* Resolves one object and makes it a file of the trace. Gone ones that were opened are counted. */
static int add_object(StageEnd *s, uint32_t object, bool opened)
{
    Recorder *r = s->r;
    _cleanup_close_ int fd = -EBADF;
    char path[PATH_MAX];
    const char *below;
    const Volume *v;
    VolumeEnd *e;
    LoggedObject o;
    struct stat st;
    uint32_t id, path_id;
    int k;

    event_log_object(r->log, object, &o);
    fd = fanotify_resolve(r->fanotify, &o, path, sizeof(path));
    if (fd < 0 || fstat(fd, &st) < 0) {
        s->t->n_unresolved += opened;
        return 0;
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0; /* a symlink, socket or device: nothing to read ahead */
    v = volume_by_dev(&r->volumes, st.st_dev);
    below = recorder_below_root(r, path);
    if (!v || !below)
        return 0;
    e = &s->volumes[v - r->volumes.volumes];

    k = trace_add_path(s->t, below, &path_id);
    if (k == -EINVAL)
        return 0; /* a name longer than the format allows */
    if (k >= 0)
        k = trace_add_file(s->t, path_id, e->id, S_ISDIR(st.st_mode), &id);
    if (k < 0)
        return k;
    s->files[object] = id;
    if (s->t->files[id].inode == 0) {
        TraceFile *f = &s->t->files[id];

        f->inode = st.st_ino;
        f->size_bytes = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
        f->mtime_nsec = (int64_t)timespec_nsec(&st.st_mtim);
        if (S_ISREG(st.st_mode) && r->truth) {
            k = read_residency(r, fd, f);
            if (k < 0)
                return k;
        }
        k = stage_metadata_note(&e->metadata, v, path, st.st_ino);
        if (k < 0)
            return k;
    }
    return s->t->files[id].directory ? 0 : add_samples(r, object, &s->t->files[id]);
}

enum { WANTED_RUN = 1, WANTED_OPENED };

static int add_objects(StageEnd *s)
{
    size_t n = event_log_n_objects(s->r->log), n_events, n_runs;
    const LoggedEvent *events = event_log_events(s->r->log, &n_events);
    const ProcessRun *runs = process_table_runs(s->r->processes, &n_runs);
    _cleanup_free_ uint8_t *wanted = calloc(n + 1, 1);

    if (!wanted)
        return -ENOMEM;
    for (size_t i = 0; i < n_runs; i++)
        if (runs[i].object != PROCESS_NONE && !runs[i].own)
            wanted[runs[i].object] = WANTED_RUN;
    for (size_t i = 0; i < n_events; i++)
        wanted[events[i].object] = WANTED_OPENED;
    for (uint32_t i = 0; i < n; i++) {
        int k = wanted[i] ? add_object(s, i, wanted[i] == WANTED_OPENED) : 0;

        if (k < 0)
            return k;
    }
    return 0;
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
