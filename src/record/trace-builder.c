/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Over 500 lines in one file: the steps that make one trace share the numbers of its rows, and each
 * step depends on those before it. */

#include "record/trace-builder.h"

#include "base/clock.h"
#include "base/log.h"
#include "observe/file-pages.h"
#include "record/looked-up.h"
#include "record/stage-metadata.h"
#include "record/stage-select.h"
#include "record/touched-rows.h"
#include "record/trace-facts.h"
#include "volume/mountinfo.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

/* How long the search for the resident pages of one file may take. */
#define FILE_USEC (20 * USEC_PER_MSEC)

/* How many accesses are added before give_way() is called. */
#define ACCESSES_PER_PAUSE 4096U

/* Stands for a run of headstart itself in TraceBuilder.runs. */
#define RUN_OWN (TRACE_NONE - 1)

/* What the trace contains about one of the observer's volumes. */
typedef struct BuiltVolume {
    uint32_t id;
    StageMetadata metadata;
} BuiltVolume;

struct TraceBuilder {
    Observer *o;
    StageRecord *s;     /* of the stage: the observer's, or `taken` */
    StageRecord *taken; /* owned; its snapshots are the observer's */
    ProcessRun *taken_runs;
    size_t n_taken_runs;
    trace_builder_pause_t pause; /* NULL: none */
    void *pause_arg;
    usec_t pause_due; /* CLOCK_MONOTONIC */
    const char *root;
    Trace *t;
    BuiltVolume *volumes; /* in the order of the observer's volumes */
    uint32_t *files;      /* object -> file of the trace, or TRACE_NONE */
    uint32_t *runs;       /* run -> application of the trace, TRACE_NONE or RUN_OWN */
};

/* A regular file or directory of the stage, resolved. */
typedef struct Resolved {
    int fd;           /* O_PATH */
    const char *path; /* on this machine */
    struct stat st;
    const Volume *volume;
    StageMetadata *metadata; /* of the volume */
} Resolved;

TraceBuilder *trace_builder_free(TraceBuilder *b)
{
    if (!b)
        return NULL;
    for (size_t i = 0; b->volumes && i < b->o->volumes.table.n; i++)
        stage_metadata_done(&b->volumes[i].metadata);
    if (b->taken) {
        event_log_free(b->taken->log);
        sampling_done(&b->taken->sampling);
        touched_done(&b->taken->touched);
    }
    free(b->taken);
    free(b->taken_runs);
    free(b->volumes);
    free(b->files);
    free(b->runs);
    trace_free(b->t);
    free(b);
    return NULL;
}

int trace_builder_new(Observer *o, TraceBuilder **ret)
{
    _cleanup_trace_builder_ TraceBuilder *b = calloc(1, sizeof(*b));
    const VolumeTable *volumes = &o->volumes.table;

    if (!b)
        return -ENOMEM;
    b->o = o;
    b->s = o->stage;
    b->t = trace_new(o->stage->stage);
    b->volumes = calloc(volumes->n + 1, sizeof(BuiltVolume));
    if (!b->t || !b->volumes)
        return -ENOMEM;
    b->t->duration = clock_now(CLOCK_BOOTTIME) - o->stage->start.boottime;
    for (size_t i = 0; i < volumes->n; i++) {
        int r = stage_metadata_observe(&b->volumes[i].metadata, &o->stage->snapshots,
                                       &volumes->volumes[i]);

        if (r < 0)
            return r;
    }
    *ret = TAKE_PTR(b);
    return 0;
}

int trace_builder_take(TraceBuilder *b, uint64_t keep_from, trace_builder_pause_t pause, void *arg)
{
    StageRecord *live = b->o->stage, *taken = malloc(sizeof(*taken));
    const ProcessRun *runs;
    ProcessRun *copy = NULL;
    size_t n;
    int r = -ENOMEM;

    runs = process_table_runs(b->o->processes, &n);
    copy = calloc(n + 1, sizeof(*copy));
    if (taken && copy) {
        if (n > 0)
            memcpy(copy, runs, n * sizeof(*copy));
        *taken = *live;
        r = observer_hand_over(b->o, keep_from, &taken->log);
    }
    if (r < 0) {
        free(taken);
        free(copy);
        return r;
    }
    live->sampling = (Sampling){0};
    live->touched = (Touched){0};
    b->s = b->taken = taken;
    b->taken_runs = copy;
    b->n_taken_runs = n;
    b->pause = pause;
    b->pause_arg = arg;
    return 0;
}

static const ProcessRun *runs_of(const TraceBuilder *b, size_t *ret_n)
{
    if (!b->taken)
        return process_table_runs(b->o->processes, ret_n);
    *ret_n = b->n_taken_runs;
    return b->taken_runs;
}

/* Lets the caller do what cannot wait, if that is due. The pauses take at most half of the time, so
 * users who open files as fast as they can cannot prevent the trace. */
static void give_way(TraceBuilder *b)
{
    usec_t start = b->pause ? clock_now(CLOCK_MONOTONIC) : 0, end;

    if (!b->pause || start < b->pause_due)
        return;
    b->pause(b->pause_arg);
    end = clock_now(CLOCK_MONOTONIC);
    b->pause_due = end + MAX(TRACE_BUILDER_PAUSE_USEC, end - start);
}

const char *trace_path_below(const char *root, const char *path)
{
    size_t l = strlen(root);

    if (!path_is_below(path, root))
        return NULL;
    while (l > 0 && root[l - 1] == '/')
        l--;
    return path[l] ? path + l : "/";
}

/* --- volumes ---------------------------------------------------------------------------------- */

/* Returns how many foreign volumes the trace has room for. Users can attach any number of them, so
 * the other volumes come first. */
static size_t room_for_foreign(const VolumeTable *volumes)
{
    size_t n = 0;

    for (size_t i = 0; i < volumes->n; i++)
        n += !volume_is_foreign(&volumes->volumes[i]);
    return TRACE_VOLUMES_MAX - MIN(n, (size_t)TRACE_VOLUMES_MAX);
}

/* Adds the volumes that the trace has room for. The others get the id TRACE_NONE, and their files
 * are left out, as those of unknown volumes are. */
static int add_volumes(TraceBuilder *b)
{
    const VolumeTable *volumes = &b->o->volumes.table;
    size_t n_foreign = 0, room = room_for_foreign(volumes);

    for (size_t i = 0; i < volumes->n; i++) {
        const Volume *v = &volumes->volumes[i];
        TraceVolume t = {
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
        bool foreign = volume_is_foreign(v);
        int r;

        b->volumes[i].id = TRACE_NONE;
        if (foreign ? n_foreign == room : b->t->n_volumes - n_foreign == TRACE_VOLUMES_MAX)
            continue;
        n_foreign += foreign;
        r = trace_add_volume(b->t, &t, &b->volumes[i].id);
        if (r < 0)
            return r;
    }
    if (b->t->n_volumes < volumes->n)
        log_debug("%zu of %zu volumes are left out of the trace", volumes->n - b->t->n_volumes,
                  volumes->n);
    return 0;
}

static int add_metadata(TraceBuilder *b)
{
    const VolumeTable *volumes = &b->o->volumes.table;

    for (size_t i = 0; i < volumes->n; i++) {
        StageMetadata *m = &b->volumes[i].metadata;
        TraceVolume *v;
        int r;

        if (b->volumes[i].id == TRACE_NONE)
            continue;
        v = &b->t->volumes[b->volumes[i].id];
        r = stage_metadata_finish(m, &volumes->volumes[i]);
        if (r < 0)
            return r;
        v->metadata_source = m->source;
        v->metadata = m->ranges;
        m->ranges = (RangeSet){0};
    }
    return 0;
}

/* --- page ranges ------------------------------------------------------------------------------ */

/* Returns true if pages that were read and have been reclaimed belong to the stage. The kernel does
 * not report when a page was read or reclaimed. In a boot and in the first login after it the stage
 * is assumed to have read the page. In a later login or a session the page may have been read days
 * before. */
static bool counts_reclaimed(const StageRecord *s)
{
    return (s->stage == STAGE_BOOT || (s->stage == STAGE_LOGIN && s->n_logins <= 1)) &&
           !s->snapshots.no_cachestat;
}

/* Reads the resident and the reclaimed ranges of the file. Returns 0, 1 if the ranges are not
 * complete, or -ENOMEM. */
static int read_residency(TraceBuilder *b, const Resolved *x, TraceFile *f)
{
    StageRecord *s = b->s;
    FilePagesQuery query = {
            .size_bytes = f->size_bytes,
            .deadline = clock_now(CLOCK_MONOTONIC) + FILE_USEC,
            .reclaimed = counts_reclaimed(s),
    };
    int cut = file_pages_read(volume_call_dev(x->volume), x->fd, &query, &f->resident);

    if (cut == -EPERM && s->residency_known) {
        log_warning("The kernel does not say which pages of other users' files are resident "
                    "(CAP_FOWNER in this user namespace?): whole files are assumed");
        s->residency_known = b->o->stage->residency_known = false;
    }
    if (cut == -ETIMEDOUT)
        return 1;
    return cut >= 0 || cut == -ENOMEM ? cut : 0;
}

/* Adds the ranges that Sampling found resident while the stage ran, clipped to the present size of
 * the file. Removes them from `s`. */
static int add_sample(Sampling *s, uint32_t object, TraceFile *f)
{
    Range whole = {0, f->size_bytes};
    const RangeSet all = {&whole, 1, 1};
    _cleanup_range_set_ RangeSet sample = {0}, clipped = {0};
    int r;

    if (object >= s->n || s->files[object].n == 0 || f->size_bytes == 0)
        return 0;
    sample = s->files[object];
    s->files[object] = (RangeSet){0};
    r = range_set_intersect(&sample, &all, &clipped);
    return r < 0 ? r : range_set_unite(&f->resident, &clipped);
}

/* Charges the user for the ranges that were added to the file, and drops those beyond the user's
 * share. Returns true if it dropped any. */
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

/* --- files ------------------------------------------------------------------------------------ */

/* Opens an object with O_PATH. Returns 1; 0 if a trace does not hold the object, because of its
 * type, its volume or its encryption; -ENOENT if the object is gone. `path` is the buffer for
 * x->path. */
static int resolve(TraceBuilder *b, uint32_t object, char *path, size_t size, Resolved *x)
{
    const VolumeTable *volumes = &b->o->volumes.table;
    LoggedObject o;

    event_log_object(b->s->log, object, &o);
    x->fd = fanotify_resolve(b->o->fanotify, &o, path, size);
    if (x->fd < 0 || fstat(x->fd, &x->st) < 0)
        return -ENOENT;
    if (!S_ISREG(x->st.st_mode) && !S_ISDIR(x->st.st_mode))
        return 0; /* a symlink, socket or device: nothing to read ahead */
    x->path = path;
    x->volume = volume_by_dev(volumes, x->st.st_dev);
    if (!x->volume || !watched_volumes_may_name(&b->o->volumes, x->volume, x->fd))
        return 0;
    if (b->volumes[x->volume - volumes->volumes].id == TRACE_NONE)
        return 0;
    x->metadata = &b->volumes[x->volume - volumes->volumes].metadata;
    return 1;
}

/* Fills in a file that the trace did not have yet. Returns 0, 1 if its ranges are not complete, or
 * -ENOMEM. */
static int fill_file(TraceBuilder *b, const Resolved *x, TraceFile *f)
{
    StageRecord *s = b->s;
    bool regular = S_ISREG(x->st.st_mode);
    int cut = 0, r;

    f->inode = x->st.st_ino;
    f->size_bytes = regular ? (uint64_t)x->st.st_size : 0;
    f->mtime_nsec = (int64_t)timespec_nsec(&x->st.st_mtim);
    if (regular && s->residency_known)
        cut = read_residency(b, x, f);
    if (cut < 0)
        return cut;
    r = stage_metadata_add(x->metadata, x->volume, x->path, x->st.st_ino);
    return r < 0 ? r : cut;
}

/* Charges the user for the bytes of the path and for one file, but not for the names in the path,
 * for which add_file() charges. Returns false and charges nothing if the user's share has no room
 * for them. */
static bool charge_path(UserShares *shares, uint16_t user, const char *path)
{
    size_t n_names = 0;

    for (const char *p = path; *p; p++)
        n_names += *p == '/';
    if (user_shares_left(shares, user, SHARED_NAMES) < n_names ||
        !user_shares_try_charge(shares, user, SHARED_PATH_BYTES, strlen(path) + 1))
        return false;
    user_shares_charge(shares, user, SHARED_FILES, 1);
    return true;
}

/* Adds the resolved object to the trace, which may contain a file with that path already. */
static int add_file(TraceBuilder *b, const StageObject *object, const Resolved *x, const char *path)
{
    StageRecord *s = b->s;
    uint32_t volume = b->volumes[x->volume - b->o->volumes.table.volumes].id, id, path_id;
    size_t ranges, n_names = b->t->n_paths;
    TraceFile *f;
    int cut = 0, r;

    r = trace_add_path(b->t, path, &path_id);
    user_shares_charge(&s->shares, object->user, SHARED_NAMES, b->t->n_paths - n_names);
    if (r == -EINVAL)
        return 0; /* a name longer than the format allows */
    if (r >= 0)
        r = trace_add_file(b->t, path_id, volume, S_ISDIR(x->st.st_mode), &id);
    if (r < 0)
        return r;
    b->files[object->object] = id;
    f = &b->t->files[id];
    ranges = f->resident.n;
    if (f->inode == 0)
        cut = fill_file(b, x, f);
    r = cut < 0 ? cut : f->directory ? 0 : add_sample(&s->sampling, object->object, f);
    if (r < 0)
        return r;
    if (limit_ranges(&s->shares, object->user, ranges, &f->resident) || cut)
        s->shares.users[object->user].n_files_cut++;
    return 0;
}

/* Resolves one object and adds it. An object that was opened and is gone is counted. Returns 1; 0
 * if the user's share has no room for its path; -ENOMEM or -E2BIG. */
static int add_object(TraceBuilder *b, const StageObject *object)
{
    UserShares *shares = &b->s->shares;
    char path[PATH_MAX];
    Resolved x = {.fd = -EBADF};
    const char *below;
    int r = resolve(b, object->object, path, sizeof(path), &x);
    _cleanup_close_ int fd _unused_ = x.fd;

    if (r < 0)
        b->t->n_unresolved += object->opened;
    if (r <= 0)
        return 1;
    below = trace_path_below(b->root, x.path);
    if (!below)
        return 1;
    if (!charge_path(shares, object->user, below))
        return 0;
    r = add_file(b, object, &x, below);
    return r < 0 ? r : 1;
}

/* Returns true if the recorder received a request to stop. Its signals are blocked and are read
 * later. systemd waits 10 s for the recorder to end (TimeoutStopSec=). */
static bool stop_is_pending(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) == 1;
}

/* Adds the object and charges its user. Returns 1; 0 if the share has no room or the recorder must
 * stop; -ENOMEM or -E2BIG. */
static int add_for_user(TraceBuilder *b, const StageObject *object)
{
    UserShares *shares = &b->s->shares;
    usec_t start = clock_now(CLOCK_MONOTONIC);
    int r;

    if (user_shares_left(shares, object->user, SHARED_FILES) == 0 ||
        user_shares_left(shares, object->user, SHARED_END_USEC) == 0 || stop_is_pending())
        return 0;
    r = add_object(b, object);
    user_shares_charge(shares, object->user, SHARED_END_USEC, clock_now(CLOCK_MONOTONIC) - start);
    return r;
}

/* Adds each object for the first of its users who has room for it. Counts the others under the UID
 * of their likeliest user. */
static int add_selected(TraceBuilder *b, const StageObject *objects, size_t n)
{
    StageRecord *s = b->s;
    _cleanup_free_ bool *done = calloc(event_log_n_objects(s->log) + 1, sizeof(bool));

    if (!done)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        int r;

        give_way(b);
        r = done[objects[i].object] ? 1 : add_for_user(b, &objects[i]);
        if (r < 0)
            return r;
        done[objects[i].object] = r > 0;
    }
    for (size_t i = 0; i < n; i++) {
        s->shares.users[objects[i].user].n_files_left_out += !done[objects[i].object];
        done[objects[i].object] = true;
    }
    return 0;
}

static int add_objects(TraceBuilder *b)
{
    _cleanup_free_ StageObject *objects = NULL;
    StageRecord *s = b->s;
    const ProcessRun *runs;
    size_t n, n_runs;
    int r;

    b->files = malloc((event_log_n_objects(s->log) + 1) * sizeof(uint32_t));
    if (!b->files)
        return -ENOMEM;
    memset(b->files, 0xff, (event_log_n_objects(s->log) + 1) * sizeof(uint32_t));
    runs = runs_of(b, &n_runs);
    r = stage_select(s, runs, n_runs, &objects, &n);
    if (r >= 0)
        r = add_selected(b, objects, n);
    fanotify_resolve_done(b->o->fanotify);
    return r < 0 ? r : 0;
}

/* --- applications and accesses ---------------------------------------------------------------- */

/* Adds the lifetime of a run, unless the run ended before the stage began. */
static int add_lifetime(TraceBuilder *b, const ProcessRun *p, uint32_t application)
{
    const StageRecord *s = b->s;
    usec_t end = MAX(p->start, p->end);

    if (p->n_processes == 0 && s->zero_boottime + end < s->start.boottime)
        return 0;
    return trace_add_lifetime(
            b->t, &(TraceLifetime){
                          .application = application,
                          .pid = p->pid,
                          .uid = p->uid,
                          .start = stage_record_time(s, p->start),
                          .end = p->n_processes > 0 ? USEC_INFINITY : stage_record_time(s, end),
                  });
}

static int add_runs(TraceBuilder *b)
{
    size_t n;
    const ProcessRun *runs = runs_of(b, &n);

    b->runs = calloc(n + 1, sizeof(uint32_t));
    if (!b->runs)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const ProcessRun *p = &runs[i], *whole = p;
        uint32_t file;
        int r;

        /* An execve that failed belongs to the previous run, and an interpreter that env(1)
         * executes for a script belongs to the script. */
        while (whole->same_as != PROCESS_NONE)
            whole = &runs[whole->same_as];
        file = whole->object == PROCESS_NONE ? TRACE_NONE : b->files[whole->object];
        b->runs[i] = whole->own ? RUN_OWN : TRACE_NONE;
        if (whole->own || file == TRACE_NONE || b->t->files[file].directory ||
            stage_record_leaves_out(b->s, user_shares_row(&b->s->shares, p->uid)))
            continue;
        r = trace_add_application(b->t, file, &b->runs[i]);
        if (r >= 0 && whole == p)
            r = add_lifetime(b, p, b->runs[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_touched(TraceBuilder *b)
{
    const VolumeTable *volumes = &b->o->volumes.table;
    _cleanup_free_ uint64_t *devs = calloc(b->t->n_volumes + 1, sizeof(uint64_t));
    const ProcessRun *runs;
    size_t n;

    if (!devs)
        return -ENOMEM;
    for (size_t i = 0; i < volumes->n; i++)
        if (b->volumes[i].id != TRACE_NONE)
            devs[b->volumes[i].id] = volumes->volumes[i].mount_dev;
    runs = runs_of(b, &n);
    return touched_add_rows(&b->s->touched, devs, runs, n, b->runs, b->t);
}

static int add_accesses(TraceBuilder *b)
{
    size_t n, n_runs;
    const LoggedEvent *events = event_log_events(b->s->log, &n);

    runs_of(b, &n_runs);
    for (size_t i = 0; i < n; i++) {
        TraceAccess a = {
                .at = stage_record_time(b->s, events[i].at_msec * USEC_PER_MSEC),
                .file = b->files[events[i].object],
                .application = events[i].run < n_runs ? b->runs[events[i].run] : TRACE_NONE,
                .kind = (AccessKind)events[i].kind,
        };
        int r;

        if (i % ACCESSES_PER_PAUSE == 0)
            give_way(b);
        if (events[i].own_start)
            a.application = TRACE_NONE;
        if (a.application == RUN_OWN) {
            b->t->n_own++; /* the process was not known to be headstart's when it opened this */
            continue;
        }
        if (a.file == TRACE_NONE || stage_record_leaves_out(b->s, events[i].user))
            continue;
        b->t->n_unknown_application += a.application == TRACE_NONE && !events[i].own_start;
        r = trace_add_access(b->t, &a);
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- names that were looked up ---------------------------------------------------------------- */

/* How long the search for these names may take. It reads directories from the disk, while the user
 * may be logging in. A later session searches what this search does not reach. */
#define LOOKED_UP_USEC USEC_PER_SEC

/* Returns true if the names on the file's volume are searched. The metadata of ext2, ext3 and ext4
 * is recorded by other means. */
static bool searches(const TraceBuilder *b, const TraceFile *f)
{
    const VolumeTable *volumes = &b->o->volumes.table;

    for (size_t i = 0; i < volumes->n; i++)
        if (b->volumes[i].id == f->volume)
            return !volume_is_ext(&volumes->volumes[i]);
    return false;
}

/* Searches the directories of the stage's files, each once. Of a boot it also searches the
 * directories that this finds. A name in a directory of which the boot opened no file is found in
 * this way, for example the target of a symlink. The trace of a login has a user, and other users
 * look up names in those directories meanwhile. */
static int add_looked_up(TraceBuilder *b)
{
    Trace *t = b->t;
    size_t n_opened = t->n_files, left = LOOKED_UP_MAX, n_searched = 0;
    usec_t due = clock_now(CLOCK_MONOTONIC) + LOOKED_UP_USEC;
    _cleanup_free_ bool *searched = NULL;

    for (size_t i = 0; i < (b->s->stage == STAGE_BOOT ? t->n_files : n_opened); i++) {
        const TraceFile *f = &t->files[i];
        uint32_t volume = f->volume, directory = f->directory ? f->path : t->paths[f->path].parent;
        bool search;
        int r;

        if (grow_array_zeroed(&searched, &n_searched, t->n_paths + 1, sizeof(bool)) < 0)
            return -ENOMEM;
        search = !searched[directory] && searches(b, f);
        searched[directory] = true;
        if (!search)
            continue;
        if (left == 0 || stop_is_pending() || clock_now(CLOCK_MONOTONIC) >= due)
            break;
        give_way(b);
        r = looked_up_add(t, directory, volume, &b->o->volumes.table, b->root, &left);
        if (r < 0)
            return r;
    }
    return 0;
}

int trace_builder_build(TraceBuilder *b, const char *root, const char *run_dir, Trace **ret)
{
    int r;

    b->root = root;
    r = add_volumes(b);
    if (r >= 0)
        r = add_objects(b);
    give_way(b);
    if (r >= 0)
        r = add_runs(b);
    give_way(b);
    if (r >= 0)
        r = add_touched(b);
    if (r >= 0)
        r = add_accesses(b);
    give_way(b);
    if (r >= 0 && b->s->stage != STAGE_SESSION)
        r = add_looked_up(b);
    if (r >= 0)
        r = add_metadata(b);
    give_way(b);
    if (r >= 0)
        r = trace_add_facts(b->t, b->s, root, run_dir);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(b->t);
    return 0;
}
