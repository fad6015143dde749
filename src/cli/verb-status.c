/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart status: prints whether headstart is on, what it saves, what this boot replayed, how
 * fresh the packs are, and which problems there are. It reads no whole trace or model, so that it
 * answers at once. Over 500 lines in one file: one table for each section of the output, and the
 * one list that prints them. */

#include "base/clock.h"
#include "base/json-util.h"
#include "base/kernel.h"
#include "base/log.h"
#include "base/rooted.h"
#include "command/cli-state.h"
#include "command/style.h"
#include "device/probe.h"
#include "pack/pack.h"
#include "plan/cost-model.h"
#include "state/packs.h"
#include "state/replay-status.h"
#include "state/rerecord.h"
#include "state/trace-store.h"
#include "view/checks.h"
#include "view/devices.h"
#include "view/launch-history.h"
#include "view/visible.h"
#include "volume/mount-table.h"
#include "volume/root-kind.h"

#include <fcntl.h>
#include <string.h>

#include "config-paths.h"

/* The number of applications whose starts are shown in the text. The JSON output contains all
 * applications. */
#define LAUNCHES_SHOWN 5U

/* The facts about one stage. */
typedef struct StageStatus {
    uint64_t n_traces;
    uint64_t recorded;        /* CLOCK_REALTIME of the last trace; COUNT_UNKNOWN: none */
    uint64_t duration;        /* of the last trace; COUNT_UNKNOWN: none */
    const char *policy;       /* of the pack; NULL: no usable pack */
    const char *reason;       /* the reason for this policy; NULL: unknown */
    usec_t without, with;     /* predicted time without replay, and with it; 0: unknown */
    uint64_t bytes;           /* number of bytes that the pack reads */
    uint64_t planned;         /* CLOCK_REALTIME when the pack was planned */
    bool bad;                 /* the pack cannot be used */
    ReplayStatusList replays; /* in this boot */
} StageStatus;

typedef struct Status {
    bool switched_off; /* headstart=0 */
    bool disabled;     /* headstart disable */
    bool ostree;
    const char *selinux; /* NULL: not enabled */
    char *root;          /* root_kind_to_string() and the subvolume; NULL: unknown */
    char *rerecord;      /* stages, "boot, login"; NULL: none */
    uint64_t n_learned;  /* traces in the model; COUNT_UNKNOWN: no model */
    DeviceStore devices;
    char *devices_error; /* the reason why the file of devices cannot be used */
    usec_t now;          /* wall clock */
    Benefits benefits;
    bool visible;  /* the user cannot read the state: only visible figures are shown */
    Effect logins; /* set only with `visible`: the effect on the logins of all users */
    char state[16];
    LaunchHistory launches;
    Checks checks;
    StageStatus stages[_STAGE_MAX];
} Status;

static void status_done(Status *s)
{
    for (Stage i = 0; i < _STAGE_MAX; i++)
        replay_status_list_done(&s->stages[i].replays);
    device_store_done(&s->devices);
    free(s->devices_error);
    benefits_done(&s->benefits);
    launch_history_done(&s->launches);
    checks_done(&s->checks);
    free(s->root);
    free(s->rerecord);
}

static bool rooted_exists(int system_fd, const char *path)
{
    _cleanup_close_ int fd = rooted_open(system_fd, path, O_PATH);

    return fd >= 0;
}

static void read_traces(int state_fd, Status *s)
{
    _cleanup_trace_names_ TraceNames names = {0};

    if (state_list_traces(state_fd, &names) < 0)
        return;
    for (size_t i = 0; i < names.n; i++)
        s->stages[names.items[i].stage].n_traces++;
    /* Only the head of the last readable trace of each stage is read. */
    for (Stage stage = 0; stage < _STAGE_MAX; stage++)
        for (size_t i = names.n; i-- > 0;) {
            _cleanup_free_ char *path = NULL;
            TraceIdentity id;

            if (names.items[i].stage != stage)
                continue;
            if (asprintf(&path, STATE_TRACES "/%s", names.items[i].name) < 0)
                break;
            if (trace_peek(state_fd, path, &id) < 0)
                continue;
            s->stages[stage].recorded = id.start_realtime;
            s->stages[stage].duration = id.duration;
            break;
        }
}

static void read_pack(int state_fd, Stage stage, StageStatus *s)
{
    _cleanup_free_ char *buf = NULL;
    Pack p;
    int r;

    if (!state_pack_name(stage))
        return;
    r = packs_read(state_fd, state_pack_name(stage), &buf, &p, NULL);
    if (r == -ENOENT)
        return;
    s->bad = r < 0;
    if (r < 0)
        return;
    s->planned = le64toh(p.header->created_realtime_usec);
    s->policy = policy_to_string(p.header->policy);
    if (p.header->reason != POLICY_REASON_UNKNOWN)
        s->reason = policy_reason_to_string(p.header->reason);
    s->without = pack_predicted_usec(&p, POLICY_OFF);
    s->with = pack_predicted_usec(&p, (Policy)p.header->policy);
    s->bytes = le64toh(p.header->total_metadata_bytes) + le64toh(p.header->total_data_bytes);
}

static uint64_t number_in(json_object *o, const char *key)
{
    uint64_t n;

    return json_get_u64(o, key, UINT64_MAX - 1, &n) < 0 ? COUNT_UNKNOWN : n;
}

static Table *replay_table(const Status *s)
{
    static const Column columns[] = {
            {"STAGE", "stage", CELL_STRING},
            {"UID", "uid", CELL_COUNT},
            {"POLICY", "policy", CELL_STRING},
            {"OUTCOME", "outcome", CELL_STRING},
            {"HELD", "held_usec", CELL_TIMESPAN},
            {"UNTIL", "hold_end", CELL_STRING},
            {"AFTER", "start_boottime_usec", CELL_TIMESPAN},
            {"TOOK", "duration_usec", CELL_TIMESPAN},
            {"FILES", "files", CELL_COUNT},
            {"DATA", "data_bytes", CELL_BYTES},
            {"METADATA", "metadata_bytes", CELL_BYTES},
            {0},
    };
    Table *t = table_new(columns);

    for (Stage i = 0; i < _STAGE_MAX; i++)
        for (size_t k = 0; k < s->stages[i].replays.n; k++) {
            const ReplayStatus *x = &s->stages[i].replays.items[k];
            const char *policy = NULL, *outcome = NULL, *hold_end = NULL;

            (void)json_get_string(x->object, "policy", &policy);
            (void)json_get_string(x->object, "outcome", &outcome);
            (void)json_get_string(x->object, "hold_end", &hold_end);
            table_row(t, stage_to_string(i),
                      x->uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)x->uid, policy, outcome,
                      number_in(x->object, "held_usec"), hold_end,
                      number_in(x->object, "start_boottime_usec"),
                      number_in(x->object, "duration_usec"), number_in(x->object, "files"),
                      number_in(x->object, "data_bytes"), number_in(x->object, "metadata_bytes"));
        }
    return t;
}

/* Returns the names of the stages that will be recorded without replay; the caller frees the
 * string. Returns NULL if there are none. */
static char *read_rerecord(int state_fd)
{
    char name[RERECORD_NAME_MAX], *all = NULL;

    for (Stage i = 0; i < _STAGE_MAX; i++) {
        char *more;

        if (faccessat(state_fd, rerecord_name(name, i), F_OK, 0) < 0)
            continue;
        if (asprintf(&more, "%s%s%s", all ? all : "", all ? ", " : "", stage_to_string(i)) < 0)
            break;
        free(all);
        all = more;
    }
    return all;
}

/* Reads whether headstart is on, and properties of the system that may limit it. */
static void read_system(const Context *c, Status *s)
{
    _cleanup_mount_table_ MountTable mounts = {0};
    const char *subvolume;
    uint64_t enforcing;
    RootKind kind;

    s->switched_off = kernel_command_line_has(c->system_fd, "headstart=0");
    s->disabled = rooted_exists(c->system_fd, HEADSTART_SYSCONF_DIR "/disabled");
    s->ostree = rooted_exists(c->system_fd, "/run/ostree-booted");
    if (rooted_read_u64(c->system_fd, "/sys/fs/selinux/enforce", &enforcing) >= 0)
        s->selinux = enforcing ? "enforcing" : "permissive";
    if (mount_table_read(c->system_fd, &mounts) < 0)
        return;
    kind = root_kind(&mounts, &subvolume);
    if (subvolume && asprintf(&s->root, "%s %s", root_kind_to_string(kind), subvolume) >= 0)
        return;
    s->root = (int)kind >= 0 ? strdup(root_kind_to_string(kind)) : NULL;
}

static void add_device(Table *t, const Volume *v, const DeviceRecord *r)
{
    const DeviceProfile *d;
    DeviceEstimate e;
    uint64_t samples = 0;

    device_estimate(&r->samples, v->size_bytes, &v->profile, &e);
    device_refine(&e.profile, r->sweeps, r->n_sweeps);
    d = &e.profile;
    for (DeviceSampleKind k = 0; k < _DEVICE_SAMPLE_KIND_MAX; k++)
        samples += r->samples.n[k];
    table_row(t, v->mountpoint, v->device, (uint64_t)(d->rate_bytes_per_usec * USEC_PER_SEC),
              (uint64_t)d->fixed_usec, (uint64_t)d->depth,
              e.seeks_slowly ? (uint64_t)cost_mean_move_usec(d) : COUNT_UNKNOWN, samples,
              (uint64_t)r->n_plans, (int)!device_probe_wanted(&r->samples), (int)e.seeks_slowly,
              (uint64_t)d->seek_min_usec, (uint64_t)d->seek_max_usec,
              (uint64_t)d->half_rotation_usec, d->wait_bytes, r->measured_realtime,
              (uint64_t)r->n_sweeps);
}

/* Returns a table of the mounted filesystems whose device was measured. */
static Table *device_table(const Context *c, Status *s)
{
    static const Column columns[] = {
            {"MOUNT", "mountpoint", CELL_STRING},
            {"DEVICE", "device", CELL_STRING},
            {"PER SECOND", "rate_bytes_per_sec", CELL_BYTES},
            {"LATENCY", "latency_usec", CELL_TIMESPAN},
            {"DEPTH", "depth", CELL_COUNT},
            {"SEEK", "seek_mean_usec", CELL_TIMESPAN},
            {"MEASUREMENTS", "n_measurements", CELL_COUNT},
            {"PLANS", "n_plans", CELL_COUNT},
            {"COMPLETE", "complete", CELL_BOOLEAN},
            {NULL, "seeks_slowly", CELL_BOOLEAN},
            {NULL, "seek_min_usec", CELL_TIMESPAN},
            {NULL, "seek_max_usec", CELL_TIMESPAN},
            {NULL, "half_rotation_usec", CELL_TIMESPAN},
            {NULL, "wait_bytes", CELL_BYTES},
            {NULL, "measured_realtime_usec", CELL_REALTIME},
            {NULL, "n_sweeps", CELL_COUNT},
            {0},
    };
    _cleanup_volume_table_ VolumeTable volumes = {0};
    Table *t = table_new(columns);
    char root[PATH_MAX];

    if (s->devices.n == 0 || !realpath(c->root, root) ||
        volume_table_read(AT_FDCWD, root, &volumes) < 0)
        return t;
    for (size_t i = 0; i < volumes.n; i++) {
        const DeviceRecord *r = devices_find(&s->devices, &volumes.volumes[i]);

        if (r)
            add_device(t, &volumes.volumes[i], r);
    }
    return t;
}

static Table *stage_table(const Status *s)
{
    static const Column columns[] = {
            {"STAGE", "stage", CELL_STRING},
            {"TRACES", "n_traces", CELL_COUNT},
            {"LAST RECORDED", "recorded_realtime_usec", CELL_REALTIME},
            {"TOOK", "duration_usec", CELL_TIMESPAN},
            {"PACK", "pack_policy", CELL_STRING},
            {"REASON", "pack_reason", CELL_STRING},
            {"PREDICTED", "predicted_usec", CELL_TIMESPAN},
            {"WITHOUT", "predicted_without_usec", CELL_TIMESPAN},
            {"BYTES", "pack_bytes", CELL_BYTES},
            {"PLANNED", "pack_planned_realtime_usec", CELL_REALTIME},
            {0},
    };
    Table *t = table_new(columns);

    for (Stage i = 0; i < _STAGE_MAX; i++) {
        const StageStatus *k = s->stages + i;

        table_row(t, stage_to_string(i), k->n_traces, k->recorded, k->duration,
                  k->bad ? "bad" : k->policy, k->reason, k->with > 0 ? k->with : USEC_INFINITY,
                  k->without > 0 ? k->without : USEC_INFINITY, k->bytes, k->planned);
    }
    return t;
}

/* Returns the state in one line. If a step is missing, the line names its command. */
static const char *summary(const Status *s)
{
    uint64_t traces = 0;
    bool packs = false;

    for (Stage i = 0; i < _STAGE_MAX; i++) {
        traces += s->stages[i].n_traces;
        packs = packs || s->stages[i].policy;
    }
    if (s->switched_off)
        return "off (headstart=0 on the kernel command line)";
    if (s->disabled)
        return "off (headstart disable)";
    if (packs || strcmp(s->state, "ready") == 0)
        return "ready";
    if (s->visible)
        return strcmp(s->state, "empty") == 0 ? "nothing was recorded yet" : s->state;
    if (s->n_learned != COUNT_UNKNOWN)
        return "learned, no pack planned yet (headstart plan)";
    if (traces > 0)
        return "recorded, nothing learned yet (headstart learn)";
    return "nothing was recorded yet";
}

static Table *problem_table(const Checks *checks)
{
    static const Column columns[] = {
            {"FOUND", "found", CELL_STRING},
            {"TO DO", "remedy", CELL_STRING},
            {NULL, "check", CELL_STRING},
            {NULL, "cost", CELL_STRING},
            {0},
    };
    Table *t = table_new(columns);

    for (size_t i = 0; i < checks->n; i++) {
        const Check *x = &checks->items[i];

        if (x->result != CHECK_OK)
            table_row(t, x->found, x->remedy, x->name, x->cost);
    }
    return t;
}

/* Prints what replay saves when applications start: for all applications together, and for those
 * with the most starts that can be compared. */
static void print_launches(const LaunchHistory *h)
{
    static const Column columns[] = {
            {"APPLICATION", "application", CELL_PATH},
            {"EFFECT", "effect", CELL_STRING},
            {0},
    };
    _cleanup_table_ Table *t = table_new(columns);
    char text[BENEFIT_TEXT_MAX];

    if (h->records.n == 0) {
        puts("Launches: none was recorded yet");
        return;
    }
    printf("Launches: %s\n", effect_to_text(&h->benefits.all.effect, "starts", text));
    for (size_t i = 0; i < h->benefits.n && table_n_rows(t) < LAUNCHES_SHOWN; i++)
        if (h->benefits.items[i].benefit.effect.known)
            table_row(t, h->benefits.items[i].application,
                      benefit_to_text(&h->benefits.items[i].benefit, "starts", text));
    if (table_n_rows(t) > 0) {
        putchar('\n');
        (void)table_print(t);
    }
}

/* Prints the lines above the tables: whether headstart is on, and what replay saves. */
static void print_head(const Status *s)
{
    bool off = s->switched_off || s->disabled, ready = strcmp(summary(s), "ready") == 0;
    char text[BENEFIT_TEXT_MAX];

    printf("%sStatus: %s%s%s%s\n",
           style_on(off     ? STYLE_BAD
                    : ready ? STYLE_GOOD
                            : STYLE_NOTE),
           off ? "" : "on (", summary(s), off ? "" : ")", style_off());
    for (Stage i = STAGE_BOOT; i <= STAGE_LOGIN; i++)
        printf("%s: %s\n",
               i == STAGE_BOOT ? "Boot"
               : s->visible    ? "Your logins"
                               : "Login",
               benefit_to_text(&s->benefits.stages[i], "sessions", text));
    if (s->visible)
        printf("Logins of all users: %s\n", effect_to_text(&s->logins, "sessions", text));
    if (!s->visible)
        print_launches(&s->launches);
    putchar('\n');
}

/* Prints the figures for a user who cannot read the state. */
static int print_visible(const Context *c, const Status *s)
{
    static const Column columns[] = {
            {NULL, "status", CELL_STRING},
            {NULL, "benefit", CELL_JSON},
            {"Replayed in this boot", "replayed", CELL_TABLE},
            {NULL, "switched_off", CELL_BOOLEAN},
            {0},
    };
    _cleanup_table_ Table *t = table_new(columns);
    int r;

    table_row(t, summary(s), benefits_to_json(&s->benefits, s->now), replay_table(s),
              (int)s->switched_off);
    if (c->json == JSON_OFF)
        print_head(s);
    r = cli_print_fields(c, t);
    if (r >= 0 && c->json == JSON_OFF && !c->quiet)
        puts("\nRoot sees more: packs, devices, and what is wrong.");
    return r;
}

static int print(const Context *c, Status *s)
{
    /* Text has only the facts that differ from those of most machines. */
    const Column columns[] = {
            {NULL, "status", CELL_STRING},
            {NULL, "benefit", CELL_JSON},
            {"Replayed in this boot", "replayed", CELL_TABLE},
            {"Stages", "stages", CELL_TABLE},
            {"What is wrong", "problems", CELL_TABLE},
            {"Traces learned", "n_learned", CELL_COUNT},
            {s->rerecord ? "Recorded without replay" : NULL, "rerecord", CELL_STRING},
            {"Root filesystem", "root", CELL_STRING},
            {s->ostree ? "OSTree" : NULL, "ostree", CELL_BOOLEAN},
            {s->selinux ? "SELinux" : NULL, "selinux", CELL_STRING},
            {"State", "state", CELL_PATH},
            {NULL, "switched_off", CELL_BOOLEAN},
            {NULL, "launches", CELL_JSON},
            {"Measured devices", "devices", CELL_TABLE},
            {NULL, "devices_error", CELL_STRING},
            {0},
    };
    _cleanup_table_ Table *t = table_new(columns);
    int r;

    table_row(t, summary(s), benefits_to_json(&s->benefits, s->now), replay_table(s),
              stage_table(s), problem_table(&s->checks), s->n_learned, s->rerecord, s->root,
              (int)s->ostree, s->selinux, c->state, (int)s->switched_off,
              launch_history_to_json(&s->launches, s->now), device_table(c, s), s->devices_error);
    if (c->json == JSON_OFF)
        print_head(s);
    r = cli_print_fields(c, t);
    if (r >= 0 && c->json == JSON_OFF && s->devices_error)
        printf("\n%s/" STATE_DEVICES " cannot be used: %s\n", c->state, s->devices_error);
    return r;
}

/* Reads the figures for a user who cannot read the state. Returns 0, or an error that was
 * reported. */
static int read_visible(const Context *c, Status *s)
{
    Visible v;
    int r = visible_read(c, s->now, &v);

    if (r < 0)
        return r;
    s->visible = true;
    s->benefits = v.benefits;
    s->logins = v.logins;
    memcpy(s->state, v.state, sizeof(s->state));
    return 0;
}

/* Returns 0, or an error that was reported. */
static int read_state(const Context *c, Status *s)
{
    _cleanup_close_ int fd = -EBADF;
    int r;

    if (visible_is_needed(c))
        return read_visible(c, s);
    r = cli_state_open(c, false, &fd);

    if (r >= 0)
        r = benefits_read(c, fd, s->now, &s->benefits);
    if (r < 0 && r != -ENOENT)
        return r;
    checks_add_state(&s->checks, c, fd, &s->benefits);
    if (fd < 0)
        return 0;
    r = launch_history_read(c, fd, s->now, &s->launches);
    if (r < 0)
        return r;
    read_traces(fd, s);
    (void)state_peek_model(fd, &s->n_learned);
    r = state_load_devices(fd, &s->devices, &s->devices_error);
    if (r < 0 && !s->devices_error)
        s->devices_error = strdup(error_text(r));
    for (Stage i = 0; i < _STAGE_MAX; i++)
        read_pack(fd, i, s->stages + i);
    s->rerecord = read_rerecord(fd);
    return 0;
}

static void read_replays(const Context *c, Status *s)
{
    _cleanup_close_ int fd = rooted_open(c->system_fd, HEADSTART_RUN_DIR, O_RDONLY | O_DIRECTORY);

    for (Stage i = 0; fd >= 0 && i < _STAGE_MAX; i++)
        (void)replay_status_read(fd, i, &s->stages[i].replays);
}

static int run(Context *c)
{
    _cleanup_(status_done)
            Status s = {.n_learned = COUNT_UNKNOWN, .now = clock_now(CLOCK_REALTIME)};
    int r = cli_no_options(c);

    if (r < 0)
        return r;
    for (Stage i = 0; i < _STAGE_MAX; i++)
        s.stages[i] = (StageStatus){
                .recorded = COUNT_UNKNOWN,
                .duration = COUNT_UNKNOWN,
                .bytes = COUNT_UNKNOWN,
                .planned = COUNT_UNKNOWN,
        };
    read_system(c, &s);
    read_replays(c, &s);
    r = read_state(c, &s);
    if (r < 0)
        return r;
    return s.visible ? print_visible(c, &s) : print(c, &s);
}

const Verb verb_status = {
        .name = "status",
        .arguments = "",
        .summary = "Show whether headstart is on and what it saves",
        .description =
                "Shows what replay saves at boot and login on this machine, with a 95 % interval,\n"
                "what was replayed in this boot, the packs, the measured devices, and what is\n"
                "wrong. 'headstart doctor' checks more.",
        .run = run,
};
