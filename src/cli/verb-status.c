/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart status: reads whether headstart is on, what it saves, what this boot replayed, how
 * fresh the packs are, and which problems there are. It reads no whole trace or model, so that it
 * answers at once. */

#include "cli/status.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/rooted.h"
#include "command/cli-state.h"
#include "pack/pack.h"
#include "relocate/relocation.h"
#include "state/packs.h"
#include "state/rerecord.h"
#include "state/trace-store.h"
#include "system/kernel.h"
#include "system/thread.h"
#include "view/visible.h"
#include "volume/mount-table.h"
#include "volume/root-kind.h"

#include <fcntl.h>
#include <string.h>

#include "config-paths.h"

/* The second thread parses JSON and expands packs. */
#define SECOND_STACK_BYTES ((size_t)1 << 20)

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

static void set_pack(const PackHeader *h, PackStatus *s)
{
    const Pack p = {.header = h};

    s->planned = le64toh(h->created_realtime_usec);
    s->policy = policy_to_string(h->policy);
    if (h->reason != POLICY_REASON_UNKNOWN)
        s->reason = policy_reason_to_string(h->reason);
    s->without = pack_predicted_usec(&p, POLICY_OFF);
    s->with = pack_predicted_usec(&p, (Policy)h->policy);
    s->bytes = le64toh(h->total_metadata_bytes) + le64toh(h->total_data_bytes);
}

/* Adds what the packs for everyone are. checks_add_state() adds the reason of a bad pack. */
static void set_stage_packs(const StagePacks *packs, Status *s)
{
    for (Stage i = 0; i < _STAGE_MAX; i++) {
        const StagePack *p = &packs->stages[i];
        PackStatus *k = &s->stages[i].pack;

        k->bad = p->result < 0;
        if (p->result <= 0)
            continue;
        set_pack(p->pack.header, k);
        k->relocation_usec = relocation_gain_usec(&p->pack);
    }
}

static const PackStatus no_pack = {
        .uid = UID_INVALID, .bytes = COUNT_UNKNOWN, .planned = COUNT_UNKNOWN};

/* Reads the newest login packs of users. */
static void read_user_packs(const Context *c, int state_fd, Status *s)
{
    _cleanup_user_packs_ UserPacks users = {0};

    if (packs_list_users(state_fd, &users) < 0)
        return;
    s->n_users = MIN(users.n, (size_t)CHECK_USERS_SHOWN);
    s->n_further_users = users.n - s->n_users;
    for (size_t i = 0; i < s->n_users; i++) {
        PackStatus *k = s->users + i;
        PackHeader h;
        int r;

        *k = no_pack;
        k->uid = users.items[i].uid;
        r = checks_add_user_pack(&s->checks, c, state_fd, k->uid, &h);
        k->bad = r < 0;
        if (r > 0)
            set_pack(&h, k);
    }
}

/* Suggests `headstart relocate` where it gains more than a second. */
static void suggest_relocation(Status *s)
{
    double usec = 0;
    char text[FORMAT_TIMESPAN_MAX];

    for (Stage i = 0; i < _STAGE_MAX; i++)
        usec += s->stages[i].pack.relocation_usec;
    if (usec > RELOCATION_SUGGESTED_USEC)
        checks_add(&s->checks, "layout", CHECK_NOTE, "the disk seeks while the packs are read",
                   "headstart relocate",
                   "the files of the packs are spread over the disk (up to %s)",
                   format_timespan(text, sizeof(text), (usec_t)usec));
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
    s->launches = v.launches;
    s->all_logins = v.all_logins;
    s->all_launches = v.all_launches;
    s->off_logins = v.off_logins;
    memcpy(s->state, v.state, sizeof(s->state));
    return 0;
}

/* What a second thread reads. Parsing the lines of both histories is most of the time of `status`,
 * so one thread parses the sessions, and the other parses the starts and expands the packs. */
typedef struct SecondPart {
    const Context *c;
    int state_fd;
    usec_t now;
    LaunchHistory launches;
    bool readable; /* the starts */
    int result;    /* of reading the starts */
    StagePacks packs;
} SecondPart;

static void second_part_done(SecondPart *p)
{
    launch_history_done(&p->launches);
    stage_packs_done(&p->packs);
}

static void *read_second_part(void *arg)
{
    SecondPart *p = arg;

    p->result =
            launch_history_read_if_possible(p->c, p->state_fd, p->now, &p->launches, &p->readable);
    stage_packs_read(p->state_fd, &p->packs);
    return NULL;
}

/* Reads the sessions, and the second part at the same time. A file that cannot be read becomes a
 * problem. Returns 0, or -ENOMEM, which was reported. */
static int read_both_parts(Status *s, SecondPart *second)
{
    bool sessions = true;
    pthread_t thread;
    bool started = thread_start(&thread, SECOND_STACK_BYTES, read_second_part, second) >= 0;
    int r = benefits_read_if_possible(second->c, second->state_fd, s->now, &s->benefits, &sessions);

    if (started)
        pthread_join(thread, NULL);
    else
        read_second_part(second);
    if (r < 0)
        return r;
    if (second->result < 0)
        return cli_error(second->result, "%m");
    s->launches = second->launches;
    second->launches = (LaunchHistory){0};
    if (!sessions || !second->readable)
        checks_add_history(&s->checks, second->c, second->state_fd);
    return 0;
}

/* Returns 0, or an error that was reported. */
static int read_state(const Context *c, Status *s)
{
    _cleanup_(second_part_done) SecondPart second = {.c = c, .state_fd = -EBADF, .now = s->now};
    _cleanup_close_ int fd = -EBADF;
    int r;

    if (visible_is_needed(c))
        return read_visible(c, s);
    r = cli_state_open(c, false, &fd);
    second.state_fd = fd;
    if (r >= 0)
        r = read_both_parts(s, &second);
    if (r < 0 && r != -ENOENT)
        return r;
    checks_add_state(&s->checks, c, fd, &second.packs, &s->benefits);
    if (fd < 0)
        return 0;
    read_traces(fd, s);
    checks_add_model(&s->checks, c, fd, &s->n_learned);
    r = state_load_devices(fd, &s->devices, &s->devices_error);
    if (r < 0 && !s->devices_error)
        s->devices_error = strdup(error_text(r));
    if (s->devices_error)
        checks_add_bad_devices(&s->checks, c, s->devices_error);
    set_stage_packs(&second.packs, s);
    read_user_packs(c, fd, s);
    suggest_relocation(s);
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
                .pack = no_pack,
        };
    read_system(c, &s);
    read_replays(c, &s);
    r = read_state(c, &s);
    if (r < 0)
        return r;
    return status_print(c, &s);
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
