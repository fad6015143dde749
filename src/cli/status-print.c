/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the status: one table for each section, in the order of what a reader asks. */

#include "cli/status.h"

#include "base/clock.h"
#include "base/json-util.h"
#include "base/log.h"
#include "command/style.h"
#include "device/probe.h"
#include "plan/cost-model.h"
#include "state/state.h"
#include "view/devices.h"

#include <fcntl.h>
#include <string.h>

/* The number of applications whose starts are shown in the text. The JSON output contains all
 * applications. */
#define LAUNCHES_SHOWN 5U

/* Where a line continues that does not fit the terminal. */
#define LINE_INDENT 4

static uint64_t number_in(json_object *o, const char *key)
{
    uint64_t n;

    return json_get_u64(o, key, UINT64_MAX - 1, &n) < 0 ? COUNT_UNKNOWN : n;
}

/* Returns the number of objects that the replay skipped, for whatever reason. */
static uint64_t n_skipped(json_object *o)
{
    json_object *skipped;
    uint64_t n = 0;

    if (!json_object_object_get_ex(o, "skipped", &skipped) ||
        !json_object_is_type(skipped, json_type_object))
        return COUNT_UNKNOWN;
    json_object_object_foreach(skipped, key, value)
    {
        uint64_t k = number_in(skipped, key);

        (void)value;
        n += k <= UINT32_MAX ? k : 0;
    }
    return n;
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
            {"SKIPPED", NULL, CELL_COUNT},
            {NULL, "skipped", CELL_JSON},
            {0},
    };
    static const char *const optional[] = {"METADATA,SKIPPED", "HELD,UNTIL", "UID", NULL};
    Table *t = table_new(columns);

    table_set_optional(t, optional);
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
                      number_in(x->object, "data_bytes"), number_in(x->object, "metadata_bytes"),
                      n_skipped(x->object),
                      json_object_get(json_object_object_get(x->object, "skipped")));
        }
    return t;
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
    static const char *const optional[] = {"MEASUREMENTS,PLANS", NULL};
    _cleanup_volume_table_ VolumeTable volumes = {0};
    Table *t = table_new(columns);
    char root[PATH_MAX];

    table_set_optional(t, optional);
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

/* Formats how long ago `at` (wall clock) was, as "3h ago". Returns buf; NULL: not known. */
#define AGE_MAX 32
static const char *age_to_text(uint64_t at, usec_t now, char buf[static AGE_MAX])
{
    usec_t minutes = (now - MIN(now, at)) / USEC_PER_SEC / 60;

    if (at == COUNT_UNKNOWN)
        return NULL;
    if (minutes < 60)
        snprintf(buf, AGE_MAX, "%umin ago", (unsigned)minutes);
    else if (minutes < 48 * 60)
        snprintf(buf, AGE_MAX, "%uh ago", (unsigned)(minutes / 60));
    else
        snprintf(buf, AGE_MAX, "%u days ago", (unsigned)MIN(minutes / 60 / 24, 99999U));
    return buf;
}

/* The columns of a pack, and their values in the same order. */
#define PACK_COLUMNS                                                                             \
    {"PACK", "pack_policy", CELL_STRING}, {"REASON", "pack_reason", CELL_STRING},                \
            {"BYTES", "pack_bytes", CELL_BYTES},                                                 \
            {NULL, "pack_planned_realtime_usec", CELL_REALTIME}, {"PLANNED", NULL, CELL_STRING}, \
            {"PREDICTED", "predicted_usec", CELL_TIMESPAN},                                      \
    {                                                                                            \
        "WITHOUT REPLAY", "predicted_without_usec", CELL_TIMESPAN                                \
    }
#define PACK_CELLS(k, now, buf)                                                             \
    (k)->bad ? "bad" : (k)->policy, (k)->reason, (k)->bytes, (k)->planned,                  \
            age_to_text((k)->planned, now, buf), (k)->with > 0 ? (k)->with : USEC_INFINITY, \
            (k)->without > 0 ? (k)->without : USEC_INFINITY

static Table *stage_table(const Status *s)
{
    static const Column columns[] = {
            {"STAGE", "stage", CELL_STRING},
            {NULL, "n_traces", CELL_COUNT},
            {NULL, "recorded_realtime_usec", CELL_REALTIME},
            {"RECORDED", NULL, CELL_STRING},
            {NULL, "duration_usec", CELL_TIMESPAN},
            PACK_COLUMNS,
            {0},
    };
    static const char *const optional[] = {"BYTES", "RECORDED", NULL};
    Table *t = table_new(columns);

    table_set_optional(t, optional);
    for (Stage i = 0; i < _STAGE_MAX; i++) {
        const StageStatus *k = s->stages + i;
        char recorded[AGE_MAX], planned[AGE_MAX];

        table_row(t, stage_to_string(i), k->n_traces, k->recorded,
                  age_to_text(k->recorded, s->now, recorded), k->duration,
                  PACK_CELLS(&k->pack, s->now, planned));
    }
    return t;
}

/* Returns a table of the newest login packs of users. */
static Table *user_table(const Status *s)
{
    static const Column columns[] = {{"UID", "uid", CELL_COUNT}, PACK_COLUMNS, {0}};
    Table *t = table_new(columns);

    for (size_t i = 0; i < s->n_users; i++) {
        char planned[AGE_MAX];

        table_row(t, (uint64_t)s->users[i].uid, PACK_CELLS(&s->users[i], s->now, planned));
    }
    if (s->n_further_users > 0)
        table_set_heading(t, "Login packs of users: the newest %zu of %llu", s->n_users,
                          (unsigned long long)s->n_users + s->n_further_users);
    return t;
}

/* Returns the state in one line. If a step is missing, the line names its command. */
static const char *summary(const Status *s)
{
    uint64_t traces = 0;
    bool packs = false;

    for (Stage i = 0; i < _STAGE_MAX; i++) {
        traces += s->stages[i].n_traces;
        packs = packs || s->stages[i].pack.policy;
    }
    for (size_t i = 0; i < s->n_users; i++)
        packs = packs || s->users[i].policy;
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
    if (s->benefits.history.n > 0)
        return "nothing to replay: the recordings are gone";
    return "nothing was recorded yet";
}

static bool has_problem(const Checks *checks)
{
    for (size_t i = 0; i < checks->n; i++)
        if (checks->items[i].result == CHECK_PROBLEM)
            return true;
    return false;
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
static void print_launches(const LaunchHistory *h, const char *name)
{
    static const Column columns[] = {
            {"APPLICATION", "application", CELL_PATH},
            {"EFFECT", NULL, CELL_STRING},
            {"95 % INTERVAL", NULL, CELL_STRING},
            {"REPLAYED", NULL, CELL_COUNT},
            {"WITHOUT", NULL, CELL_COUNT},
            {0},
    };
    _cleanup_table_ Table *t = table_new(columns);
    char text[BENEFIT_TEXT_MAX], buf[REPLAY_OFF_TEXT_MAX];
    const char *off = replay_off_to_text(STAGE_SESSION, h->off, buf);

    if (h->records.n == 0 && !off) {
        printf("%s: none was recorded yet\n", name);
        return;
    }
    cli_print_wrapped(0, LINE_INDENT, "%s: %s", name,
                      effect_to_text(&h->benefits.all.effect, "starts", off, text));
    for (size_t i = 0; i < h->benefits.n && table_n_rows(t) < LAUNCHES_SHOWN; i++) {
        const Effect *e = &h->benefits.items[i].benefit.effect;
        char interval[INTERVAL_TEXT_MAX];

        if (e->known)
            table_row(t, h->benefits.items[i].application,
                      benefit_to_short_text(&h->benefits.items[i].benefit, text),
                      effect_interval_to_text(e, interval), (uint64_t)e->n_replayed,
                      (uint64_t)e->n_control);
    }
    if (table_n_rows(t) > 0) {
        putchar('\n');
        (void)table_print(t);
    }
}

/* Prints what replay saves in a stage. If that is not known yet, also prints how many sessions were
 * left out, because their number would otherwise seem wrong. */
static void print_benefit(const Benefits *all, Stage stage, const char *name)
{
    const Benefit *b = &all->stages[stage];
    char text[BENEFIT_TEXT_MAX];

    cli_print_wrapped(0, LINE_INDENT, "%s: %s", name, benefits_to_text(all, stage, text));
    if (!b->effect.known && !all->off[stage] && b->n_left_out > 0 &&
        (stage != STAGE_BOOT || !b->automatic))
        printf("    Left out: %zu; 'headstart history' shows why\n", b->n_left_out);
}

/* Prints what replay saves for all users together. */
static void print_of_all(const Status *s)
{
    char text[BENEFIT_TEXT_MAX], off[REPLAY_OFF_TEXT_MAX];

    cli_print_wrapped(0, LINE_INDENT, "Logins of all users: %s",
                      effect_to_text(&s->all_logins, "sessions",
                                     replay_off_to_text(STAGE_LOGIN, s->off_logins, off), text));
    cli_print_wrapped(0, LINE_INDENT, "Launches of all users: %s",
                      effect_to_text(&s->all_launches, "starts",
                                     replay_off_to_text(STAGE_SESSION, s->launches.off, off),
                                     text));
}

/* Prints the lines above the tables: whether headstart is on, and what replay saves. */
static void print_head(const Status *s)
{
    bool off = s->switched_off || s->disabled, wrong = has_problem(&s->checks);
    bool ready = strcmp(summary(s), "ready") == 0;

    printf("%sStatus: %s%s%s%s%s\n",
           style_on(off               ? STYLE_BAD
                    : ready && !wrong ? STYLE_GOOD
                                      : STYLE_NOTE),
           off ? "" : "on (", summary(s),
           ready && wrong ? ", but something is wrong, see below" : "", off ? "" : ")",
           style_off());
    print_benefit(&s->benefits, STAGE_BOOT, "Boot");
    print_benefit(&s->benefits, STAGE_LOGIN, s->visible ? "Your logins" : "Login");
    if (s->visible)
        print_of_all(s);
    print_launches(&s->launches, s->visible ? "Your launches" : "Launches");
}

/* Prints the figures for a user who cannot read the state. */
static int print_visible(const Context *c, const Status *s)
{
    static const Column columns[] = {
            {NULL, "status", CELL_STRING},        {NULL, "benefit", CELL_JSON},
            {NULL, "all_logins", CELL_JSON},      {NULL, "all_launches", CELL_JSON},
            {NULL, "launches", CELL_JSON},        {"Replayed in this boot", "replayed", CELL_TABLE},
            {NULL, "switched_off", CELL_BOOLEAN}, {0},
    };
    _cleanup_table_ Table *t = table_new(columns);
    int r;

    table_row(t, summary(s), benefits_to_json(&s->benefits, s->now),
              effect_to_json(&s->all_logins, s->off_logins),
              effect_to_json(&s->all_launches, s->launches.off),
              launch_history_to_json(&s->launches, &s->benefits, s->now), replay_table(s),
              (int)s->switched_off);
    if (c->json == JSON_OFF)
        print_head(s);
    r = cli_print_fields(c, t);
    if (r >= 0 && c->json == JSON_OFF && !c->quiet)
        puts("\nRoot sees more: packs, devices, and what is wrong.");
    return r;
}

/* Prints the facts below the tables. Text has only those that differ from those of most
 * machines. */
static int print_facts(const Context *c, const Status *s)
{
    const Column columns[] = {
            {"Traces learned", "n_learned", CELL_COUNT},
            {s->rerecord ? "Recorded without replay" : NULL, "rerecord", CELL_STRING},
            {"Root filesystem", "root", CELL_STRING},
            {s->ostree ? "OSTree" : NULL, "ostree", CELL_BOOLEAN},
            {s->selinux ? "SELinux" : NULL, "selinux", CELL_STRING},
            {"State", "state", CELL_PATH},
            {0},
    };
    _cleanup_table_ Table *t = table_new(columns);

    table_row(t, s->n_learned, s->rerecord, s->root, (int)s->ostree, s->selinux, c->state);
    putchar('\n');
    return cli_print_fields(c, t);
}

static int print(const Context *c, Status *s)
{
    static const Column columns[] = {
            {NULL, "status", CELL_STRING},
            {NULL, "benefit", CELL_JSON},
            {"Replayed in this boot", "replayed", CELL_TABLE},
            {"Stages", "stages", CELL_TABLE},
            {"Login packs of users", "users", CELL_TABLE},
            {NULL, "n_further_users", CELL_COUNT},
            {"What is wrong", "problems", CELL_TABLE},
            {NULL, "n_learned", CELL_COUNT},
            {NULL, "rerecord", CELL_STRING},
            {NULL, "root", CELL_STRING},
            {NULL, "ostree", CELL_BOOLEAN},
            {NULL, "selinux", CELL_STRING},
            {NULL, "state", CELL_PATH},
            {NULL, "switched_off", CELL_BOOLEAN},
            {NULL, "launches", CELL_JSON},
            {"Measured devices", "devices", CELL_TABLE},
            {NULL, "devices_error", CELL_STRING},
            {0},
    };
    _cleanup_table_ Table *t = table_new(columns);
    int r;

    table_row(t, summary(s), benefits_to_json(&s->benefits, s->now), replay_table(s),
              stage_table(s), user_table(s), s->n_further_users, problem_table(&s->checks),
              s->n_learned, s->rerecord, s->root, (int)s->ostree, s->selinux, c->state,
              (int)s->switched_off, launch_history_to_json(&s->launches, &s->benefits, s->now),
              device_table(c, s), s->devices_error);
    if (c->json == JSON_OFF)
        print_head(s);
    r = cli_print_fields(c, t);
    return r >= 0 && c->json == JSON_OFF ? print_facts(c, s) : r;
}

int status_print(const Context *c, Status *s)
{
    return s->visible ? print_visible(c, s) : print(c, s);
}
