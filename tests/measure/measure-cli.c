/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Measures how long `headstart status`, `explain` and `report` take on a large state: 3,000
 * sessions in the history, as many starts of applications as their files hold, a model of 1,000
 * applications, packs of the boot, of the login, of the logins of 8 users and of 32 launches, and
 * 16 measured devices. Prints the least, the median and the largest wall-clock time of each in
 * milliseconds, and the size of the report. Fails if a median or the size is above its limit. The
 * last line has all figures.
 *
 *     measure-cli HEADSTART [RUNS [SESSIONS APPLICATIONS]]   default 15 3000 1000 */

#include "base/clock.h"
#include "device/block-device.h"
#include "measure/history.h"
#include "model/model.h"
#include "pack/pack-writer.h"
#include "predict/mixture.h"
#include "state/device-store.h"
#include "state/launch-packs.h"
#include "state/packs.h"
#include "state/state.h"
#include "state/trace-store.h"
#include "util/synthetic.h"
#include "volume/volume.h"

#include <err.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define START     (UINT64_C(1760000000) * USEC_PER_SEC)
#define RUNS_MAX  1000U
#define LOGINS    40U /* the chains learn from this many logins */
#define USED_EACH 60U /* applications that each login starts */
#define USERS     8U  /* with a login pack of their own: `status` reads as many */
#define LAUNCHES  32U /* launch packs */

#define REPORT_BYTES_MAX 500000

#define MUST(call)                                              \
    do {                                                        \
        int _r = (call);                                        \
        if (_r < 0)                                             \
            errx(EXIT_FAILURE, "%s: %s", #call, strerror(-_r)); \
    } while (0)

/* Sets nearly all remaining members, so that the lines are as long as those of a real machine. */
static void add_machine(SessionRecord *s)
{
    s->firmware_usec = s->loader_usec = s->kernel_usec = s->initrd_usec = 2345678;
    s->finished_usec = s->io_some_usec = s->io_full_usec = 3456789;
    s->disk_reads = 2711;
    s->disk_read_bytes = s->replay_data_bytes = 139000000;
    s->replay_usec = s->predicted_usec = 2712345;
    s->replay_files = 2345;
    s->replay_metadata_bytes = s->usage.waste_bytes = s->usage.miss_bytes = 6123456;
    s->usage.waste_files = s->usage.miss_files = 34;
    s->memory_bytes = UINT64_C(24) << 30;
    snprintf(s->boot_id, sizeof(s->boot_id), "0123456789abcdef0123456789abcdef");
    snprintf(s->kernel, sizeof(s->kernel), "6.12.48+deb13-amd64");
    snprintf(s->distribution, sizeof(s->distribution), "debian 13");
    snprintf(s->device, sizeof(s->device), "nvme0n1p2");
    snprintf(s->scheduler, sizeof(s->scheduler), "mq-deadline");
}

/* Boots and logins alternate. */
static usec_t session_start(size_t i)
{
    return START + i * 12 * USEC_PER_HOUR;
}

static void write_session(int fd, const SessionRecord *s)
{
    _cleanup_free_ char *line = NULL;
    size_t size;

    MUST(session_record_to_line(s, &line, &size));
    if (write(fd, line, size) != (ssize_t)size)
        err(EXIT_FAILURE, "cannot write the history");
}

static int create_file(int state_fd, const char *name)
{
    int fd = openat(state_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0)
        err(EXIT_FAILURE, "%s", name);
    return fd;
}

/* Writes the older half of the sessions to the older file, without an fsync(2) for each line. */
static void make_history(int state_fd, size_t n)
{
    _cleanup_close_ int old = create_file(state_fd, HISTORY_OLD_FILE);
    _cleanup_close_ int new = create_file(state_fd, HISTORY_FILE);

    for (size_t i = 0; i < n; i++) {
        SessionRecord x = session_record_empty(i % 2 == 0 ? STAGE_BOOT : STAGE_LOGIN), *s = &x;
        bool control = i % 12 < 2;

        s->start_realtime_usec = session_start(i);
        s->ready_usec = (control ? 9000 : 4000) * USEC_PER_MSEC + i * 7919 % 500000;
        s->policy = POLICY_GATE;
        s->flags = control ? SESSION_CONTROL : 0;
        s->packages_usec = START;
        s->usage = (PackUsage){.source = USAGE_PER_FILE, .hit_files = 900, .hit_bytes = 50000000};
        s->usage.planned[9] = 900;
        s->usage.opened[9] = 890;
        snprintf(s->outcome, sizeof(s->outcome), "%s", control ? "control" : "done");
        add_machine(s);
        /* A control session that replayed anything would be left out of the comparison. */
        if (control) {
            s->replay_usec = s->replay_files = s->replay_data_bytes = s->replay_metadata_bytes = 0;
            s->usage.source = USAGE_PER_PAGE;
        }
        write_session(i < n / 2 ? old : new, s);
    }
}

/* Writes starts of 40 applications until the files were rotated, so that they are as large as they
 * become. Each of a user's days is a boot with one start of each application. */
static void make_launches(int state_fd)
{
    enum { APPLICATIONS = 40, DAYS = 75 };

    for (size_t day = 0; day < DAYS; day++) {
        _cleanup_launch_records_ LaunchRecords l = {0};

        l.items = calloc(APPLICATIONS, sizeof(LaunchRecord));
        if (!l.items)
            errx(EXIT_FAILURE, "out of memory");
        for (; l.n < APPLICATIONS; l.n++) {
            LaunchRecord *x = &l.items[l.n];
            bool control = (day + l.n) % 8 == 3;

            *x = (LaunchRecord){
                    .uid = 1000,
                    .start_realtime_usec = START + (day * 24 + l.n % 10) * USEC_PER_HOUR,
                    .took_usec = (control ? 2000 : 1200) * USEC_PER_MSEC + day * 7919 % 500000,
                    .files = 300 + l.n,
                    .replayed = control ? LAUNCH_CONTROL : LAUNCH_REPLAYED,
                    .packages_usec = START,
            };
            snprintf(x->application, sizeof(x->application), "/usr/bin/application-%zu", l.n);
            snprintf(x->boot_id, sizeof(x->boot_id), "%032zx", day);
        }
        MUST(launches_append(state_fd, &l));
    }
}

static const char *application_name(const Trace *t, size_t i, char buf[static TRACE_PATH_MAX])
{
    const TraceFile *f = &t->files[t->applications[i % t->n_applications].file];

    MUST(trace_format_path(t, f->path, buf, TRACE_PATH_MAX));
    return buf;
}

/* Makes chains from logins in which applications start one after the other. The sets of
 * applications of successive logins overlap. */
static void make_chains(const Trace *t, Model *m)
{
    EventTime now = {.at = USEC_PER_SEC, .realtime = START};
    char name[TRACE_PATH_MAX];

    MUST(chains_new(DECAYED_SUM_HALFLIFE_DEFAULT, MIXTURE_CHAIN_WINDOW, &m->chains));
    for (unsigned login = 0; login < LOGINS; login++) {
        chains_set_time(m->chains, now);
        MUST(chains_begin(m->chains, 1000));
        for (unsigned i = 0; i < USED_EACH; i++) {
            uint32_t id;

            now.at += 2 * USEC_PER_SEC;
            now.realtime += 2 * USEC_PER_SEC;
            chains_set_time(m->chains, now);
            MUST(chains_add_name(
                    m->chains, application_name(t, (size_t)login * 25 + i * (1 + login % 3), name),
                    &id));
            MUST(chains_start(m->chains, id));
        }
        chains_end(m->chains);
    }
}

/* --- packs ------------------------------------------------------------------------------------ */

/* Adds the file and its resident ranges, which lie one after the other on the device from *place
 * on. */
static void add_pack_file(const Trace *t, const TraceFile *f, uint64_t *place, PackContentVolume *v)
{
    char path[TRACE_PATH_MAX];

    MUST(trace_format_path(t, f->path, path, sizeof(path)));
    MUST(grow_array(&v->files, &v->allocated_files, v->n_files + 1, sizeof(*v->files)));
    v->files[v->n_files] = (PackContentFile){
            .path = strdup(path + 1),
            .directory = f->directory,
            .inode = f->inode,
            .size_bytes = f->size_bytes,
            .mtime_nsec = f->mtime_nsec,
            .need = USEC_INFINITY,
            .probability = 0.9,
    };
    for (size_t i = 0; i < f->resident.n; i++) {
        const Range *x = &f->resident.ranges[i];

        MUST(grow_array(&v->data, &v->allocated_data, v->n_data + 1, sizeof(*v->data)));
        v->data[v->n_data++] = (PlacedRange){
                .file = (uint32_t)v->n_files,
                .offset = x->offset,
                .length = x->length,
                .physical = *place,
                .need = USEC_INFINITY,
                .probability = 0.9,
        };
        *place += 4 * x->length;
    }
    v->n_files++;
}

static void add_pack_metadata(const RangeSet *metadata, PackContentVolume *v)
{
    v->metadata = calloc(metadata->n + 1, sizeof(*v->metadata));
    if (!v->metadata)
        errx(EXIT_FAILURE, "out of memory");
    for (; v->n_metadata < metadata->n; v->n_metadata++)
        v->metadata[v->n_metadata] =
                (PackContentMetadata){.offset = metadata->ranges[v->n_metadata].offset,
                                      .length = metadata->ranges[v->n_metadata].length,
                                      .probability = 0.9};
}

static int by_inode(const void *a, const void *b)
{
    const TraceFile *const *x = a, *const *y = b;

    return ((*x)->inode > (*y)->inode) - ((*x)->inode < (*y)->inode);
}

/* A filesystem of this machine: packs and devices of it make `status` and `explain` compute the
 * profile of its disk. Without one (NULL) both skip that. */
static const Volume *local_volume(const VolumeTable *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->volumes[i].block_dev != 0 && t->volumes[i].uuid[0])
            return &t->volumes[i];
    return NULL;
}

/* Writes a pack of that name with every `step`-th file of the trace, in the order of the inodes. */
static void write_pack(int state_fd, const char *name, const Trace *t, const Volume *local,
                       Policy policy, size_t step)
{
    _cleanup_pack_content_ PackContent *c = calloc(1, sizeof(*c));
    _cleanup_free_ const TraceFile **files = calloc(t->n_files + 1, sizeof(*files));
    PackContentVolume *v = c ? calloc(1, sizeof(*v)) : NULL;
    const TraceVolume *volume = &t->volumes[0];
    _cleanup_free_ void *bytes = NULL;
    uint64_t place = 0;
    size_t size, n = 0;

    if (!c || !files || !v)
        errx(EXIT_FAILURE, "out of memory");
    *c = (PackContent){.stage = t->stage,
                       .policy = policy,
                       .created_realtime = clock_now(CLOCK_REALTIME),
                       .volumes = v,
                       .n_volumes = 1,
                       .allocated_volumes = 1};
    *v = (PackContentVolume){
            .device_size = volume->size_bytes,
            .fstype = strdup(volume->fstype),
            .mountpoint = strdup(volume->mountpoint),
            .device_class = volume->device_class,
            .flags = PACK_VOLUME_ROTATIONAL | PACK_VOLUME_PHYSICAL | PACK_VOLUME_SEEKS_SLOWLY,
    };
    if (local) {
        memcpy(v->uuid, local->uuid_bytes, sizeof(v->uuid));
        v->subvolume_id = local->subvolume_id;
    }
    for (size_t i = 0; i < t->n_files; i += step)
        files[n++] = &t->files[i];
    qsort(files, n, sizeof(*files), by_inode);
    for (size_t i = 0; i < n; i++)
        add_pack_file(t, files[i], &place, v);
    if (step == 1)
        add_pack_metadata(&volume->metadata, v);
    MUST(pack_write(c, &bytes, &size));
    MUST(packs_write(state_fd, name, bytes, size));
}

/* Writes the pack of the trace's stage; of a login also those of users and of launches. */
static void make_packs(int state_fd, const Trace *t, const Volume *local)
{
    char name[LAUNCH_PACK_NAME_MAX], path[TRACE_PATH_MAX];

    write_pack(state_fd, state_pack_name(t->stage), t, local,
               t->stage == STAGE_BOOT ? POLICY_GATE : POLICY_IDLE, 1);
    if (t->stage != STAGE_LOGIN)
        return;
    for (uint32_t user = 0; user < USERS; user++)
        write_pack(state_fd, packs_name(name, STAGE_LOGIN, 1000 + user), t, local, POLICY_IDLE, 1);
    for (uint32_t i = 0; i < LAUNCHES; i++)
        write_pack(state_fd,
                   launch_pack_name(name, 1000, launch_pack_hash(application_name(t, i, path))), t,
                   local, POLICY_CONCURRENT, 40);
}

/* Writes as many devices as are kept, with as many samples as are kept. */
static void make_devices(int state_fd, const Volume *local)
{
    _cleanup_free_ char *identity = NULL;
    _cleanup_device_store_ DeviceStore store = {0};

    if (local && block_device_identity(AT_FDCWD, local->block_dev, &identity) < 0)
        identity = NULL;
    for (unsigned i = 0; i < DEVICE_STORE_MAX; i++) {
        char uuid[DEVICE_UUID_MAX];
        DeviceRecord *d;

        snprintf(uuid, sizeof(uuid), "2c1b4d1e-90a5-4a0e-8f43-%012x", i);
        d = i == 0 && identity ? device_store_add(&store, local->uuid, identity)
                               : device_store_add(&store, uuid, "naa.5000c500a1b2c3d4 ST1000DM010");
        if (!d)
            errx(EXIT_FAILURE, "out of memory");
        d->measured_realtime = START + i;
        d->n_plans = 4;
        for (DeviceSampleKind k = 0; k < _DEVICE_SAMPLE_KIND_MAX; k++)
            for (uint32_t n = 0; n < DEVICE_SAMPLES_MAX; n++) {
                bool single = k == DEVICE_SAMPLE_FAR || k == DEVICE_SAMPLE_NEAR;
                DeviceSample sample = {.distance = single ? (UINT64_C(1) << 28) * n : 0,
                                       .length = 4096,
                                       .requests = single ? 1 : 32,
                                       .depth = 1 + n % 4,
                                       .plan = 1 + n / 32,
                                       .usec = 8000 + n * 37};

                if (!device_sample_is_valid(k, &sample))
                    errx(EXIT_FAILURE, "a sample of a device is not valid");
                device_samples_add(&d->samples, k, &sample);
            }
    }
    MUST(state_write_devices(state_fd, &store));
}

/* --- the model and the traces ----------------------------------------------------------------- */

/* Returns when the newest session of the stage in the history began. */
static usec_t newest_start(size_t n_sessions, Stage s)
{
    size_t last = n_sessions - 1;

    return session_start(last % 2 == (s == STAGE_BOOT ? 0 : 1) ? last : last - 1);
}

/* Writes the model, the traces of a boot and a login, and their packs. *ret_application becomes the
 * path of an application. */
static void make_model(const char *state, int state_fd, const Volume *local, size_t n_sessions,
                       size_t n_applications, char ret_application[static TRACE_PATH_MAX])
{
    _cleanup_model_ Model *m = model_new(DECAYED_SUM_HALFLIFE_DEFAULT);

    for (Stage s = STAGE_BOOT; s <= STAGE_LOGIN; s++) {
        SyntheticParameters p = synthetic_login(s);
        _cleanup_trace_ Trace *t = NULL;
        _cleanup_free_ char *path = NULL;

        p.stage = s;
        p.n_applications = n_applications;
        p.start_realtime = newest_start(n_sessions, s);
        MUST(synthetic_trace(&p, &t));
        MUST(model_learn(&m, t, p.start_realtime + USEC_PER_HOUR));
        MUST(trace_store(state, t, &path));
        make_packs(state_fd, t, local);
        if (s == STAGE_LOGIN) {
            make_chains(t, m);
            application_name(t, t->n_applications / 2, ret_application);
        }
    }
    MUST(state_write_model(state_fd, m));
    printf("%zu files, %zu + %zu applications, %zu chains\n", m->n_files,
           m->stages[0].n_applications, m->stages[1].n_applications,
           m->chains->histories[0]->n_pairs);
}

/* --- measurement ------------------------------------------------------------------------------ */

/* Runs the command with standard output in the file `output`. Returns how long it took. */
static usec_t run_once(char *const *argv, const char *output)
{
    usec_t start = clock_now(CLOCK_MONOTONIC);
    pid_t child = fork();
    int status;

    if (child == 0) {
        int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
            _exit(126);
        execv(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
        errx(EXIT_FAILURE, "%s failed", argv[2]);
    return clock_now(CLOCK_MONOTONIC) - start;
}

static int by_time(const void *a, const void *b)
{
    const usec_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

typedef struct Measurement {
    const char *name, *verb, *argument;
    usec_t limit, median;
    off_t output_bytes;
} Measurement;

/* Measures one verb. */
static void measure(const char *headstart, const char *state, size_t runs, Measurement *m)
{
    _cleanup_free_ char *option = NULL, *output = NULL;
    usec_t times[RUNS_MAX];
    char *argv[] = {(char *)headstart, NULL, (char *)m->verb, (char *)m->argument, NULL};
    struct stat st;

    if (asprintf(&option, "--state=%s", state) < 0 || asprintf(&output, "%s/output", state) < 0)
        errx(EXIT_FAILURE, "out of memory");
    argv[1] = option;
    run_once(argv, output);
    for (size_t i = 0; i < runs; i++)
        times[i] = run_once(argv, output);
    qsort(times, runs, sizeof(*times), by_time);
    if (stat(output, &st) < 0 || st.st_size == 0)
        errx(EXIT_FAILURE, "%s printed nothing", m->verb);
    m->median = times[runs / 2];
    m->output_bytes = st.st_size;
    printf("%-20s %7.1f %7.1f %7.1f ms, limit %.0f ms\n", m->name, (double)times[0] / 1e3,
           (double)m->median / 1e3, (double)times[runs - 1] / 1e3, (double)m->limit / 1e3);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *w)
{
    return remove(path);
}

static void remove_state(const char *state)
{
    if (nftw(state, remove_one, 8, FTW_DEPTH | FTW_PHYS) < 0)
        warn("%s", state);
}

int main(int argc, char **argv)
{
    size_t runs = argc > 2 ? strtoul(argv[2], NULL, 10) : 15;
    size_t n_sessions = argc > 4 ? strtoul(argv[3], NULL, 10) : 3000;
    size_t n_applications = argc > 4 ? strtoul(argv[4], NULL, 10) : 1000;
    char state[] = "/tmp/measure-cli.XXXXXX", application[TRACE_PATH_MAX];
    _cleanup_volume_table_ VolumeTable volumes = {0};
    _cleanup_close_ int fd = -EBADF;
    const Volume *local;
    Measurement verbs[] = {
            {"status", "status", NULL, 50 * USEC_PER_MSEC, 0, 0},
            {"explain", "explain", application, 100 * USEC_PER_MSEC, 0, 0},
            {"explain --last-login", "explain", "--last-login", 100 * USEC_PER_MSEC, 0, 0},
            {"report", "report", NULL, USEC_PER_SEC, 0, 0},
    };
    const Measurement *report = &verbs[ELEMENTSOF(verbs) - 1];
    unsigned n_missed = 0;

    if (argc < 2 || runs == 0 || runs > RUNS_MAX || n_sessions < 2)
        errx(EXIT_FAILURE, "usage: measure-cli HEADSTART [RUNS [SESSIONS APPLICATIONS]]");
    if (!mkdtemp(state) || (fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        err(EXIT_FAILURE, "%s", state);
    MUST(volume_table_read(AT_FDCWD, "/", &volumes));
    local = local_volume(&volumes);
    make_history(fd, n_sessions);
    make_launches(fd);
    make_model(state, fd, local, n_sessions, n_applications, application);
    make_devices(fd, local);
    for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
        measure(argv[1], state, runs, &verbs[i]);
        n_missed += verbs[i].median > verbs[i].limit;
    }
    n_missed += report->output_bytes > REPORT_BYTES_MAX;
    for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
        printf("%s %.1f of %.0f ms, ", verbs[i].name, (double)verbs[i].median / 1e3,
               (double)verbs[i].limit / 1e3);
    printf("report of %lld of %d bytes, %u limits missed\n", (long long)report->output_bytes,
           REPORT_BYTES_MAX, n_missed);
    remove_state(state);
    return n_missed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
