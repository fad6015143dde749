/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a trace says of the machine and the session it was recorded in. */

#include "base/kernel.h"
#include "record/recorder-internal.h"

#include "base/atomic-file.h"
#include "base/replay-status.h"
#include "base/rooted.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

/* ID and VERSION_ID of os-release below the root: "debian 12". */
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

/* What headstart-replay said of this stage, if it ran or runs: residency then shows what it read.
 * /run holds one boot's, and what was replayed stays in memory for a second login too. */
static void read_replay_status(const Recorder *r, Trace *t)
{
    _cleanup_close_ int fd =
            r->run_dir ? open(r->run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -EBADF;
    _cleanup_replay_status_ ReplayStatusList l = {0};

    t->policy = POLICY_OFF;
    if (fd < 0 || replay_status_read(fd, t->stage, &l) < 0)
        return;
    for (size_t i = 0; i < l.n; i++) {
        const char *policy, *outcome;
        uint64_t files;

        /* Who logged in is not always known. */
        if (l.items[i].uid != UID_INVALID && t->uid != UID_INVALID && l.items[i].uid != t->uid)
            continue;
        if (json_get_string(l.items[i].object, "policy", &policy) < 0 ||
            json_get_string(l.items[i].object, "outcome", &outcome) < 0)
            continue;
        if (strcmp(outcome, "control") == 0)
            t->flags |= TRACE_CONTROL;
        /* Stopped before it began: the user's own took its place. */
        if (strcmp(outcome, "stopped") == 0 &&
            json_get_u64(l.items[i].object, "files", UINT64_MAX - 1, &files) >= 0 && files == 0)
            continue;
        if ((strcmp(outcome, "done") == 0 || strcmp(outcome, "running") == 0 ||
             strcmp(outcome, "stopped") == 0) &&
            (int)policy_from_string(policy) > POLICY_OFF) {
            t->policy = policy_from_string(policy);
            t->flags |= TRACE_REPLAYED;
        }
    }
}

static int compare_uids(const void *a, const void *b)
{
    const TraceLeftOut *x = a, *y = b;

    return (x->uid > y->uid) - (x->uid < y->uid);
}

/* What was left out of each user. Only lost opens of root or of the stage's own user make the trace
 * incomplete: nobody can spoil another user's trace, or that of a boot. */
static int add_left_out(const Recorder *r, Trace *t)
{
    _cleanup_free_ TraceLeftOut *rows = calloc(r->shares.n + 1, sizeof(*rows));
    size_t n = 0;
    int k = 0;

    if (!rows)
        return -ENOMEM;
    if (r->n_overflows > 0)
        t->flags |= TRACE_INCOMPLETE;
    for (size_t i = 0; i < r->shares.n; i++) {
        const UserShare *u = &r->shares.users[i];

        if (u->n_events_left_out == 0 && u->n_files_left_out == 0 && u->n_files_cut == 0)
            continue;
        if (u->n_events_left_out > 0 &&
            (u->uid == 0 || (u->uid == r->uid && u->uid != UID_INVALID)))
            t->flags |= TRACE_INCOMPLETE;
        rows[n++] =
                (TraceLeftOut){u->uid, u->n_events_left_out, u->n_files_left_out, u->n_files_cut};
    }
    if (n > 0)
        qsort(rows, n, sizeof(*rows), compare_uids);
    for (size_t i = 0; k >= 0 && i < n; i++)
        k = trace_add_left_out(t, &rows[i]);
    return k;
}

int recorder_fill_facts(const Recorder *r, Trace *t)
{
    _cleanup_close_ int root = open(r->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char boot_id[KERNEL_BOOT_ID_SIZE] = "";
    struct utsname u;
    int k;

    (void)kernel_boot_id(AT_FDCWD, boot_id); /* failing that: "", unknown */
    free(t->boot_id);
    free(t->kernel);
    free(t->distribution);
    t->boot_id = strdup(boot_id);
    t->kernel = uname(&u) == 0 ? strdup(u.release) : strdup("");
    t->distribution = read_distribution(root);
    if (!t->boot_id || !t->kernel || !t->distribution)
        return -ENOMEM;
    t->uid = r->uid;
    t->start_realtime = r->start_realtime;
    t->start_boottime = r->start_boottime;
    t->process_source = r->connector_fd >= 0 ? PROCESS_SOURCE_CONNECTOR : PROCESS_SOURCE_PROC;
    t->n_own += r->n_own;
    t->n_overflows = r->n_overflows;
    k = add_left_out(r, t);
    if (k < 0)
        return k;
    if (!r->observable)
        t->flags |= TRACE_RESIDENCY_OFF;
    if (r->read_ahead_lowered)
        t->flags |= TRACE_EXACT;
    if (t->stage == STAGE_LOGIN && r->n_logins > 1)
        t->flags |= TRACE_SECOND_LOGIN;
    /* systemd.offline-updates(7) */
    if (t->stage == STAGE_BOOT && root >= 0 &&
        (faccessat(root, "system-update", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
         faccessat(root, "etc/system-update", F_OK, AT_SYMLINK_NOFOLLOW) == 0))
        t->flags |= TRACE_OFFLINE_UPDATE;
    if (t->stage == STAGE_BOOT && trace_has_fsck(t))
        t->flags |= TRACE_FSCK;
    read_replay_status(r, t);
    return 0;
}
