/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From a stage's log to its trace. The order matters: the metadata snapshot before anything else is
 * looked at, since resolving paths, FIEMAP and libext2fs read metadata themselves. */

#include "record/recorder-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "record/residency.h"
#include "volume/ext2-metadata.h"
#include "volume/mountinfo.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Inode numbers, each once. */
typedef struct InodeSet {
    uint64_t *inodes;
    size_t n, allocated;
    struct Parent *parents; /* inode -> directories that were looked up with all above them */
} InodeSet;

typedef struct Parent {
    UT_hash_handle hh;
    uint64_t inode;
    bool oom;
} Parent;

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

/* What became of a volume in the trace, and its metadata. */
typedef struct VolumeEnd {
    uint32_t id; /* in the trace */
    RangeSet metadata;
    MetadataSource source;
    InodeSet inodes; /* seen: for deriving */
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

static int inode_set_add(InodeSet *s, uint64_t inode)
{
    int r = grow_array(&s->inodes, &s->allocated, s->n + 1, sizeof(uint64_t));

    if (r >= 0)
        s->inodes[s->n++] = inode;
    return r;
}

/* 1 if it is new as a parent, 0 if it was there, -ENOMEM. */
static int inode_set_add_parent(InodeSet *s, uint64_t inode)
{
    Parent *p;
    int r;

    HASH_FIND(hh, s->parents, &inode, sizeof(inode), p);
    if (p)
        return 0;
    p = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->inode = inode;
    HASH_ADD(hh, s->parents, inode, sizeof(p->inode), p);
    if (p->oom) {
        free(p);
        return -ENOMEM;
    }
    r = inode_set_add(s, inode);
    return r < 0 ? r : 1;
}

static int compare_inodes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void inode_set_sort(InodeSet *s)
{
    if (s->n > 0)
        qsort(s->inodes, s->n, sizeof(uint64_t), compare_inodes);
}

static void inode_set_done(InodeSet *s)
{
    Parent *p, *tmp;

    HASH_ITER (hh, s->parents, p, tmp) {
        HASH_DEL(s->parents, p);
        free(p);
    }
    free(s->inodes);
}

static const WatchedVolume *watched_of(const Recorder *r, const Volume *v)
{
    for (size_t i = 0; i < r->n_watched; i++)
        if (r->watched[i].st_dev == v->st_dev)
            return &r->watched[i];
    return NULL;
}

/* Blocks resident now, or seen so meanwhile, that were not when the stage began. */
static int snapshot_volume(Recorder *r, const Volume *v, VolumeEnd *e)
{
    const WatchedVolume *w = watched_of(r, v);
    _cleanup_range_set_ RangeSet now = {0}, seen = {0};
    int k;

    if (!w || !w->has_snapshot)
        return 0;
    k = recorder_snapshot(r, v, &now);
    if (k < 0)
        return k == -ENOMEM ? k : 0;
    k = range_set_union(&now, &w->resident_since, &seen);
    if (k >= 0)
        k = range_set_subtract(&seen, &w->resident_before, &e->metadata);
    if (k >= 0)
        e->source = METADATA_SOURCE_CACHESTAT;
    return k;
}

/* Keeps what libext2fs agrees is metadata; asks it for all where cachestat could not be asked. */
static int check_metadata(Recorder *r, const Volume *v, VolumeEnd *e)
{
    Ext2Metadata *m = NULL;
    char device[300];
    int k;

    if (strncmp(v->fstype, "ext", 3) != 0)
        return 0;
    snprintf(device, sizeof(device), "/dev/%s", v->device);
    k = ext2_metadata_open(device, &m);
    if (k < 0) {
        log_debug_errno(k, "libext2fs cannot read %s, ignoring: %m", device);
        return k == -ENOMEM ? k : 0;
    }
    if (e->source == METADATA_SOURCE_CACHESTAT) {
        RangeSet kept = {0};

        k = ext2_metadata_filter(m, &e->metadata, &kept);
        if (k >= 0) {
            range_set_done(&e->metadata);
            e->metadata = kept;
        }
    } else {
        inode_set_sort(&e->inodes);
        for (size_t i = 0; i < e->inodes.n && k != -ENOMEM; i++)
            if (i == 0 || e->inodes.inodes[i] != e->inodes.inodes[i - 1])
                k = ext2_metadata_of_inode(m, e->inodes.inodes[i], &e->metadata);
        e->source = METADATA_SOURCE_DERIVED;
    }
    ext2_metadata_free(m);
    return k == -ENOMEM ? k : 0;
}

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

/* Inodes of the file and of the directories above, for deriving metadata: a lookup reads them all.
 */
static int note_inodes(const Volume *v, const char *path, uint64_t inode, InodeSet *inodes)
{
    char p[PATH_MAX];
    struct stat st;
    int k = inode_set_add(inodes, inode);

    snprintf(p, sizeof(p), "%s", path);
    for (char *slash = strrchr(p, '/'); k >= 0 && slash; slash = strrchr(p, '/')) {
        slash[slash == p] = 0; /* "/" itself stays */
        if (!path_is_below(p, v->target) || lstat(p, &st) < 0 || st.st_dev != v->st_dev)
            return 0;
        k = inode_set_add_parent(inodes, st.st_ino);
        if (k == 0 || slash == p)
            return 0; /* and all above it are known */
    }
    return k < 0 ? k : 0;
}

static int read_residency(Recorder *r, int path_fd, TraceFile *f)
{
    _cleanup_close_ int fd = -EBADF;
    char proc[64];
    int k;

    snprintf(proc, sizeof(proc), "/proc/self/fd/%d", path_fd);
    fd = open(proc, O_RDONLY | O_NOATIME | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return 0; /* not ours to see: no ranges */
    k = residency_read(fd, f->size_bytes, &f->resident);
    if (k == -EPERM && r->truth) {
        log_warning("The kernel does not say which pages of other users' files are resident "
                    "(CAP_FOWNER in this user namespace?): whole files are assumed");
        r->truth = false;
    }
    return k == -ENOMEM ? k : 0;
}

/* Adds what was seen of the file while the stage ran, as far as the file is still so long. */
static int add_samples(const Recorder *r, uint32_t object, TraceFile *f)
{
    Range whole = {0, f->size_bytes};
    const RangeSet all = {&whole, 1, 1};
    _cleanup_range_set_ RangeSet clipped = {0};
    RangeSet sum = {0};
    int k;

    if (object >= r->sampling.n || r->sampling.files[object].n == 0 || f->size_bytes == 0)
        return 0;
    k = range_set_intersect(&r->sampling.files[object], &all, &clipped);
    if (k >= 0)
        k = range_set_union(&f->resident, &clipped, &sum);
    if (k < 0)
        return k;
    range_set_done(&f->resident);
    f->resident = sum;
    return 0;
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
        f->mtime_nsec = (int64_t)st.st_mtim.tv_sec * (int64_t)NSEC_PER_SEC + st.st_mtim.tv_nsec;
        if (S_ISREG(st.st_mode) && r->truth) {
            k = read_residency(r, fd, f);
            if (k < 0)
                return k;
        }
        if (e->source != METADATA_SOURCE_CACHESTAT && strncmp(v->fstype, "ext", 3) == 0) {
            k = note_inodes(v, path, st.st_ino, &e->inodes);
            if (k < 0)
                return k;
        }
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
    for (size_t i = 0; s->volumes && i < s->r->volumes.n; i++) {
        range_set_done(&s->volumes[i].metadata);
        inode_set_done(&s->volumes[i].inodes);
    }
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
        k = snapshot_volume(r, &r->volumes.volumes[i], &s.volumes[i]);
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

        k = check_metadata(r, &r->volumes.volumes[i], &s.volumes[i]);
        o->metadata_source = s.volumes[i].source;
        o->metadata = s.volumes[i].metadata;
        s.volumes[i].metadata = (RangeSet){0};
    }
    if (k >= 0)
        k = recorder_fill_facts(r, s.t);
    if (k < 0)
        return k;
    *ret = TAKE_PTR(s.t);
    return 0;
}
