/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From a stage's log to its trace. The order matters: the metadata snapshot before anything else is
 * looked at, since resolving paths, FIEMAP and libext2fs read metadata themselves. */

#include "record/recorder-internal.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/json-util.h"
#include "base/log.h"
#include "base/rooted.h"
#include "record/residency.h"
#include "volume/ext2-metadata.h"
#include "volume/mountinfo.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>


/* What became of a volume in the trace, and its metadata. */
typedef struct VolumeEnd {
    uint32_t id; /* in the trace */
    RangeSet metadata;
    MetadataSource source;
    RangeSet inodes; /* seen: for deriving */
} VolumeEnd;

typedef struct StageEnd {
    Recorder *r;
    Trace *t;
    VolumeEnd *volumes;  /* as r->volumes */
    uint32_t *files;     /* object -> file of the trace, or TRACE_NONE */
    uint32_t *runs;      /* run -> application of the trace, or TRACE_NONE */
} StageEnd;

static const WatchedVolume *watched_of(const Recorder *r, const Volume *v)
{
    for (size_t i = 0; i < r->n_watched; i++)
        if (r->watched[i].st_dev == v->st_dev)
            return &r->watched[i];
    return NULL;
}

/* Blocks resident now that were not when the stage began. */
static int snapshot_volume(Recorder *r, const Volume *v, VolumeEnd *e)
{
    const WatchedVolume *w = watched_of(r, v);
    _cleanup_range_set_ RangeSet now = {0};
    int k;

    if (!w || !w->has_snapshot)
        return 0;
    k = recorder_snapshot(r, v, &now);
    if (k < 0)
        return k == -ENOMEM ? k : 0;
    k = range_set_subtract(&now, &w->resident_before, &e->metadata);
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
        for (size_t i = 0; i < e->inodes.n && k != -ENOMEM; i++)
            for (uint64_t n = e->inodes.ranges[i].start;
                 n < e->inodes.ranges[i].end && k != -ENOMEM; n++)
                k = ext2_metadata_of_inode(m, n, &e->metadata);
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

/* The path as the trace names it: below the recorded root. NULL if it lies elsewhere. */
static const char *below_root(const Recorder *r, const char *path)
{
    size_t l = strlen(r->root);

    if (!path_is_below(path, r->root))
        return NULL;
    while (l > 0 && r->root[l - 1] == '/')
        l--;
    return path[l] ? path + l : "/";
}

/* Inodes of the directories above, for deriving metadata: a lookup reads them all. */
static void note_parents(const Recorder *r, const Volume *v, const char *path, RangeSet *inodes)
{
    char p[PATH_MAX];
    struct stat st;

    snprintf(p, sizeof(p), "%s", path);
    for (char *slash = strrchr(p, '/'); slash && slash > p; slash = strrchr(p, '/')) {
        *slash = 0;
        if (!path_is_below(p, v->target) || lstat(p, &st) < 0 || st.st_dev != v->st_dev ||
            range_set_contains(inodes, st.st_ino))
            return;
        if (range_set_add(inodes, st.st_ino, st.st_ino + 1) < 0)
            return;
    }
}

static int read_residency(int path_fd, TraceFile *f)
{
    _cleanup_close_ int fd = -EBADF;
    char proc[64];
    int k;

    snprintf(proc, sizeof(proc), "/proc/self/fd/%d", path_fd);
    fd = open(proc, O_RDONLY | O_NOATIME | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return 0; /* not ours to see: no ranges */
    k = residency_read(fd, f->size_bytes, &f->resident);
    return k == -ENOMEM ? k : 0;
}

/* Resolves one object and makes it a file of the trace. Gone ones are counted. */
static int add_object(StageEnd *s, uint32_t object)
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
        s->t->n_unresolved++;
        return 0;
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0; /* a symlink, socket or device: nothing to read ahead */
    v = volume_by_dev(&r->volumes, st.st_dev);
    below = below_root(r, path);
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
            k = read_residency(fd, f);
            if (k < 0)
                return k;
        }
        if (e->source != METADATA_SOURCE_CACHESTAT && strncmp(v->fstype, "ext", 3) == 0) {
            k = range_set_add(&e->inodes, st.st_ino, st.st_ino + 1);
            if (k < 0)
                return k;
            note_parents(r, v, path, &e->inodes);
        }
    }
    return 0;
}

static int add_objects(StageEnd *s)
{
    size_t n = event_log_n_objects(s->r->log), n_events, n_runs;
    const LoggedEvent *events = event_log_events(s->r->log, &n_events);
    const ProcessRun *runs = process_table_runs(s->r->processes, &n_runs);
    _cleanup_free_ bool *wanted = calloc(n + 1, sizeof(bool));

    if (!wanted)
        return -ENOMEM;
    for (size_t i = 0; i < n_events; i++)
        wanted[events[i].object] = true;
    for (size_t i = 0; i < n_runs; i++)
        if (runs[i].object != PROCESS_NONE && !runs[i].own)
            wanted[runs[i].object] = true;
    for (uint32_t i = 0; i < n; i++) {
        int k = wanted[i] ? add_object(s, i) : 0;

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
        uint32_t file = p->object == PROCESS_NONE ? TRACE_NONE : s->files[p->object];
        TraceLifetime l;
        int k;

        s->runs[i] = TRACE_NONE;
        if (p->own || file == TRACE_NONE || s->t->files[file].directory)
            continue;
        k = trace_add_application(s->t, file, &s->runs[i]);
        if (k < 0)
            return k;
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

/* ID and VERSION_ID of os-release below the root: "debian 12". */
static char *read_distribution(const char *root)
{
    static const char *const places[] = {"etc/os-release", "usr/lib/os-release"};
    _cleanup_close_ int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_free_ char *text = NULL;
    char id[64] = "", version[64] = "";
    char *joined;

    for (size_t i = 0; fd >= 0 && !text && i < ELEMENTSOF(places); i++)
        rooted_read(fd, places[i], 65536, &text, NULL);
    for (char *save = NULL, *line = text ? strtok_r(text, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        char *value = strchr(line, '=');

        if (!value)
            continue;
        *value++ = 0;
        value += *value == '"';
        value[strcspn(value, "\"")] = 0;
        if (strcmp(line, "ID") == 0)
            snprintf(id, sizeof(id), "%.60s", value);
        else if (strcmp(line, "VERSION_ID") == 0)
            snprintf(version, sizeof(version), "%.60s", value);
    }
    return asprintf(&joined, "%s%s%s", id, *version ? " " : "", version) < 0 ? NULL : joined;
}

static char *read_boot_id(void)
{
    _cleanup_free_ char *text = NULL;
    char id[33];
    size_t n = 0;

    if (rooted_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 256, &text, NULL) >= 0)
        for (const char *c = text; *c && n < 32; c++)
            if (*c != '-' && *c != '\n')
                id[n++] = *c;
    id[n] = 0;
    return strdup(id);
}

/* What headstart-replay said of this stage, if it ran: residency then shows what it read. */
static void read_replay_status(Recorder *r, Trace *t)
{
    _cleanup_json_ struct json_object *o = NULL;
    _cleanup_free_ char *text = NULL;
    const char *reason, *word;
    char path[4200];
    uint64_t start;
    size_t size;

    if (!r->run_dir)
        return;
    snprintf(path, sizeof(path), "%s/replay-%s.json", r->run_dir, stage_to_string(t->stage));
    if (file_read_whole(AT_FDCWD, path, 65536, &text, &size) < 0 ||
        json_parse(text, size, 4, &o, &reason) < 0 || json_get_string(o, "policy", &word) < 0 ||
        json_get_u64(o, "start_boottime_usec", UINT64_MAX, &start) < 0)
        return;
    /* The login pack is replayed before the login begins, the boot pack maybe before we started;
     * /run holds one boot's, so it is this stage's. */
    if ((int)policy_from_string(word) > POLICY_OFF) {
        t->policy = policy_from_string(word);
        t->flags |= TRACE_REPLAYED;
    }
}

static int fill_facts(Recorder *r, Trace *t)
{
    struct utsname u;

    free(t->boot_id);
    free(t->kernel);
    free(t->distribution);
    t->boot_id = read_boot_id();
    t->kernel = uname(&u) == 0 ? strdup(u.release) : strdup("");
    t->distribution = read_distribution(r->root);
    if (!t->boot_id || !t->kernel || !t->distribution)
        return -ENOMEM;
    t->uid = r->uid;
    t->start_realtime = r->start_realtime;
    t->start_boottime = r->start_boottime;
    t->process_source = r->connector_fd >= 0 ? PROCESS_SOURCE_CONNECTOR : PROCESS_SOURCE_PROC;
    t->n_own = r->n_own;
    t->n_overflows = r->n_overflows;
    if (r->n_overflows > 0 || r->n_dropped > 0)
        t->flags |= TRACE_INCOMPLETE;
    if (!r->truth)
        t->flags |= TRACE_RESIDENCY_OFF;
    if (r->read_ahead_lowered)
        t->flags |= TRACE_EXACT;
    read_replay_status(r, t);
    return 0;
}

static void stage_end_done(StageEnd *s)
{
    for (size_t i = 0; s->volumes && i < s->r->volumes.n; i++) {
        range_set_done(&s->volumes[i].metadata);
        range_set_done(&s->volumes[i].inodes);
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
    if (k >= 0)
        k = recorder_drain(r);
    if (k < 0)
        return k;

    s.files = malloc((event_log_n_objects(r->log) + 1) * sizeof(uint32_t));
    if (!s.files)
        return -ENOMEM;
    memset(s.files, 0xff, (event_log_n_objects(r->log) + 1) * sizeof(uint32_t));
    k = fill_facts(r, s.t);
    if (k >= 0)
        k = add_volumes(&s);
    if (k >= 0)
        k = add_objects(&s);
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
    if (k < 0)
        return k;
    *ret = TAKE_PTR(s.t);
    return 0;
}
