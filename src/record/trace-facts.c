/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/trace-facts.h"

#include "base/rooted.h"
#include "state/replay-status.h"
#include "system/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

/* Returns ID and VERSION_ID of os-release below the root, for example "debian 12"; the caller frees
 * it. NULL: out of memory. */
static char *read_distribution(int root_fd)
{
    static const char *const places[] = {"etc/os-release", "usr/lib/os-release"};
    _cleanup_free_ char *text = NULL;
    char id[64] = "", version[64] = "";
    char *joined;

    for (size_t i = 0; root_fd >= 0 && !text && i < ELEMENTSOF(places); i++)
        rooted_read(root_fd, places[i], 65536, &text, NULL);
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

/* Adds the time of the replay with the status `o`. Several replays of a stage count as one. */
static void add_replay_time(struct json_object *o, Trace *t)
{
    uint64_t start, duration;
    usec_t end;

    if (json_get_u64(o, "start_boottime_usec", UINT64_MAX / 4, &start) < 0 ||
        json_get_u64(o, "duration_usec", UINT64_MAX / 4, &duration) < 0)
        return;
    end = start + duration - MIN(start + duration, t->start_boottime);
    start -= MIN(start, t->start_boottime);
    t->replay.start = t->replay.known ? MIN(t->replay.start, start) : start;
    t->replay.end = MAX(t->replay.end, end);
    t->replay.known = true;
}

/* Opens the reports of headstart-replay of this stage. Returns 0 or a negative errno. */
static int read_replays(const char *run_dir, Stage stage, ReplayStatusList *ret)
{
    _cleanup_close_ int fd = run_dir ? open(run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -EBADF;

    return fd < 0 ? -ENOENT : replay_status_read(fd, stage, ret);
}

/* Returns true if the report belongs to that user. The user of a login is not always known. */
static bool is_of_user(const ReplayStatus *s, uint32_t uid)
{
    return s->uid == UID_INVALID || uid == UID_INVALID || s->uid == uid;
}

/* Returns the policy of the replay, or POLICY_OFF if it has read nothing and will read nothing. A
 * replay that was stopped before it opened a file was replaced by that of the user's own pack. */
static Policy replayed_policy(json_object *o)
{
    const char *policy, *outcome;
    uint64_t files;

    if (json_get_string(o, "policy", &policy) < 0 || json_get_string(o, "outcome", &outcome) < 0 ||
        (int)policy_from_string(policy) <= POLICY_OFF)
        return POLICY_OFF;
    if (strcmp(outcome, "stopped") == 0 && json_get_u64(o, "files", UINT64_MAX - 1, &files) >= 0 &&
        files == 0)
        return POLICY_OFF;
    return strcmp(outcome, "done") == 0 || strcmp(outcome, "running") == 0 ||
                           strcmp(outcome, "stopped") == 0
                   ? policy_from_string(policy)
                   : POLICY_OFF;
}

bool trace_is_replayed(const char *run_dir, Stage stage, uint32_t uid)
{
    _cleanup_replay_status_ ReplayStatusList l = {0};

    if (read_replays(run_dir, stage, &l) < 0)
        return false;
    for (size_t i = 0; i < l.n; i++)
        if (is_of_user(&l.items[i], uid) && replayed_policy(l.items[i].object) != POLICY_OFF)
            return true;
    return false;
}

/* Adds what headstart-replay reported of this stage. If headstart-replay ran or still runs,
 * residency includes what it has read. The status stays in /run for the whole boot, because the
 * replayed data stays in memory and a second login finds it there.
 */
static void add_replay(const char *run_dir, Trace *t)
{
    _cleanup_replay_status_ ReplayStatusList l = {0};

    t->policy = POLICY_OFF;
    if (read_replays(run_dir, t->stage, &l) < 0)
        return;
    for (size_t i = 0; i < l.n; i++) {
        json_object *o = l.items[i].object;
        Policy policy = replayed_policy(o);
        const char *outcome;

        if (!is_of_user(&l.items[i], t->uid))
            continue;
        if (json_get_string(o, "outcome", &outcome) >= 0 && strcmp(outcome, "control") == 0)
            t->flags |= TRACE_CONTROL;
        if (policy != POLICY_OFF) {
            t->policy = policy;
            t->flags |= TRACE_REPLAYED;
            add_replay_time(o, t);
        }
    }
}

static int compare_uids(const void *a, const void *b)
{
    const TraceLeftOut *x = a, *y = b;

    return (x->uid > y->uid) - (x->uid < y->uid);
}

/* Adds for each user what was left out. Of all this, only lost opens of root or of the stage's own
 * user make the trace incomplete, so no user can spoil the trace of another user or of a boot. */
static int add_left_out(const StageRecord *s, Trace *t)
{
    _cleanup_free_ TraceLeftOut *rows = calloc(s->shares.n + 1, sizeof(*rows));
    size_t n = 0;
    int r = 0;

    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < s->shares.n; i++) {
        const UserShare *u = &s->shares.users[i];

        if (u->n_events_left_out == 0 && u->n_files_left_out == 0 && u->n_files_cut == 0)
            continue;
        if (u->n_events_left_out > 0 &&
            (u->uid == 0 || (u->uid == s->uid && u->uid != UID_INVALID)))
            t->flags |= TRACE_INCOMPLETE;
        rows[n++] =
                (TraceLeftOut){u->uid, u->n_events_left_out, u->n_files_left_out, u->n_files_cut};
    }
    if (n > 0)
        qsort(rows, n, sizeof(*rows), compare_uids);
    for (size_t i = 0; r >= 0 && i < n; i++)
        r = trace_add_left_out(t, &rows[i]);
    return r;
}

static int add_machine(Trace *t, int root_fd)
{
    char boot_id[KERNEL_BOOT_ID_SIZE] = "";
    struct utsname u;

    (void)kernel_boot_id(AT_FDCWD, boot_id); /* on failure "": unknown */
    free(t->boot_id);
    free(t->kernel);
    free(t->distribution);
    t->boot_id = strdup(boot_id);
    t->kernel = uname(&u) == 0 ? strdup(u.release) : strdup("");
    t->distribution = read_distribution(root_fd);
    return t->boot_id && t->kernel && t->distribution ? 0 : -ENOMEM;
}

/* Returns true if this boot installs an update (systemd.offline-updates(7)). */
static bool has_offline_update(int root_fd)
{
    return root_fd >= 0 &&
           (faccessat(root_fd, "system-update", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
            faccessat(root_fd, "etc/system-update", F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

static unsigned flags_of(const StageRecord *s, const Trace *t, int root_fd)
{
    bool boot = s->stage == STAGE_BOOT;

    return (s->n_overflows > 0 ? TRACE_INCOMPLETE : 0) |
           (s->residency_known ? 0 : TRACE_RESIDENCY_OFF) | (s->exact ? TRACE_EXACT : 0) |
           (s->late ? TRACE_LATE : 0) |
           (s->stage == STAGE_LOGIN && s->n_logins > 1 ? TRACE_SECOND_LOGIN : 0) |
           (boot && has_offline_update(root_fd) ? TRACE_OFFLINE_UPDATE : 0) |
           (boot && trace_has_fsck(t) ? TRACE_FSCK : 0);
}

int trace_add_facts(Trace *t, const StageRecord *s, const char *root, const char *run_dir)
{
    _cleanup_close_ int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = add_machine(t, root_fd);

    if (r < 0)
        return r;
    t->uid = s->uid;
    t->start_realtime = s->start.realtime;
    t->start_boottime = s->start.boottime;
    t->timing = s->timing;
    t->process_source = s->has_connector ? PROCESS_SOURCE_CONNECTOR : PROCESS_SOURCE_PROC;
    t->n_own += s->n_own;
    t->n_overflows = s->n_overflows;
    t->flags |= flags_of(s, t, root_fd);
    add_replay(run_dir, t);
    for (size_t i = 0; i < s->n_samples; i++) {
        r = trace_add_sample(t, &s->samples[i]);
        if (r < 0)
            return r;
    }
    return add_left_out(s, t);
}
