/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/explain.h"

#include "base/atomic-file.h"
#include "measure/benefit.h"
#include "measure/history.h"
#include "measure/pack-usage.h"
#include "state/packs.h"
#include "state/state.h"
#include "state/trace-store.h"

#include <inttypes.h>
#include <string.h>

typedef struct UsedFile {
    char *path;
    uint64_t bytes;
} UsedFile;

typedef struct UsedFiles {
    UsedFile *items;
    size_t n, allocated;
} UsedFiles;

/* The facts that explain_session() shows about a session. */
typedef struct Explanation {
    SessionRecord session;
    SessionExclusion exclusion;
    PolicyReason reason;            /* of the policy; unknown if neither the session's line nor a
                                       pack of that time has it */
    UsedFiles files[_FILE_USE_MAX]; /* misses and waste */
    bool compared;                  /* the session's trace was compared with a pack */
    bool planned_later;             /* that pack was planned after the session */
    bool failed;                    /* out of memory */
} Explanation;

static void explanation_done(Explanation *x)
{
    for (int use = 0; use < _FILE_USE_MAX; use++) {
        for (size_t i = 0; i < x->files[use].n; i++)
            free(x->files[use].items[i].path);
        free(x->files[use].items);
    }
}

static int find_session(const Context *c, int state_fd, Stage stage, Explanation *x)
{
    _cleanup_free_ SessionExclusion *exclusions = NULL;
    _cleanup_history_ History h = {0};
    int r = history_read(state_fd, HISTORY_WINDOW, &h);

    if (r < 0)
        return cli_error(r, "%s/" HISTORY_FILE ": %m", c->state);
    exclusions = calloc(h.n + 1, sizeof(*exclusions));
    if (!exclusions || sessions_label(h.sessions, h.n, HISTORY_WINDOW, exclusions) < 0)
        return cli_error(ENOMEM, "%m");
    for (size_t i = h.n; i-- > 0;)
        if (h.sessions[i].stage == stage) {
            x->session = h.sessions[i];
            x->exclusion = exclusions[i];
            if (*x->session.reason)
                x->reason = policy_reason_from_string(x->session.reason);
            return 0;
        }
    return cli_error(ENODATA, "%s: no %s was recorded yet", c->state, stage_to_string(stage));
}

static void note_file(void *arg, const FileUsage *f)
{
    Explanation *x = arg;
    UsedFiles *l = &x->files[f->use];

    if (f->use == FILE_USE_HIT || x->failed)
        return;
    x->failed = grow_array(&l->items, &l->allocated, l->n + 1, sizeof(UsedFile)) < 0;
    if (x->failed)
        return;
    l->items[l->n] = (UsedFile){.path = strdup(f->path), .bytes = f->bytes};
    x->failed = !l->items[l->n].path;
    l->n += !x->failed;
}

/* Returns the trace of the session, or NULL if the trace was removed or cannot be read. */
static Trace *find_trace(int state_fd, const SessionRecord *s)
{
    _cleanup_trace_names_ TraceNames names = {0};

    if (state_list_traces(state_fd, &names) < 0)
        return NULL;
    for (size_t i = names.n; i-- > 0;) {
        _cleanup_free_ char *path = NULL, *error = NULL;
        _cleanup_trace_ Trace *t = NULL;
        TraceIdentity id;
        int r;

        if (names.items[i].stage != s->stage ||
            asprintf(&path, STATE_TRACES "/%s", names.items[i].name) < 0)
            continue;
        r = trace_peek(state_fd, path, &id);
        if (r >= 0 && id.start_realtime != s->start_realtime_usec)
            continue;
        if ((r >= 0 || r == -ENODATA) && state_read_trace(state_fd, path, &t, &error) >= 0 &&
            t->start_realtime == s->start_realtime_usec)
            return TAKE_PTR(t);
    }
    return NULL;
}

/* Compares the session's trace with the pack of the session's user or, if this user has none, with
 * the pack for all users. */
static void compare(int state_fd, Explanation *x)
{
    const SessionRecord *s = &x->session;
    _cleanup_trace_ Trace *t = find_trace(state_fd, s);
    _cleanup_free_ char *buf = NULL;
    PackUsage usage;
    Pack p;

    if (packs_read_of(state_fd, s->stage, s->uid, &buf, &p) < 0)
        return;
    x->planned_later = le64toh(p.header->created_realtime_usec) > s->start_realtime_usec;
    if (!*s->reason && !x->planned_later && (Policy)p.header->policy == s->policy)
        x->reason = (PolicyReason)p.header->reason;
    x->compared = t && pack_usage_compare(&p, t, note_file, x, &usage) >= 0 && !x->failed;
}

static const char *why(const Explanation *x)
{
    const SessionRecord *s = &x->session;

    if (s->flags & SESSION_LIGHT)
        return "the policy is off, so the boot was not recorded either";
    if (strcmp(s->outcome, "control") == 0)
        return "a control session: replay was off to measure what it saves";
    if (strcmp(s->outcome, "disabled") == 0)
        return "headstart=0 was on the kernel command line";
    if (!*s->outcome && s->flags & SESSION_EXACT)
        return "an exact recording, which shows which data is really used";
    if (!*s->outcome && s->flags & SESSION_CONTROL)
        return "a control session that 'headstart measure' or 'headstart rerecord' requested";
    if (!*s->outcome)
        return "there was no pack, or headstart-replay did not run";
    return policy_reason_to_text(x->reason);
}

static int by_bytes(const void *a, const void *b)
{
    const UsedFile *x = a, *y = b;

    return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : strcmp(x->path, y->path);
}

static Table *file_table(const UsedFiles *l, uint64_t limit)
{
    static const Column columns[] = {
            {"FILE", "path", CELL_PATH},
            {"DATA", "bytes", CELL_BYTES},
            {0},
    };
    Table *t = table_new(columns);

    if (l->n > 0)
        qsort(l->items, l->n, sizeof(UsedFile), by_bytes);
    for (size_t i = 0; i < l->n && (limit == 0 || i < limit); i++)
        table_row(t, l->items[i].path, l->items[i].bytes);
    table_set_total(t, l->n);
    return t;
}

static int print(const Context *c, const Explanation *x, uint64_t limit)
{
    bool boot = x->session.stage == STAGE_BOOT;
    const Column columns[] = {
            {"When", "start_realtime_usec", CELL_REALTIME},
            {"Stage", "stage", CELL_STRING},
            {"User", "uid", CELL_COUNT},
            {"Took", "ready_usec", CELL_TIMESPAN},
            {"Predicted", "predicted_usec", CELL_TIMESPAN},
            {boot ? "Firmware" : NULL, "firmware_usec", CELL_TIMESPAN},
            {boot ? "Loader" : NULL, "loader_usec", CELL_TIMESPAN},
            {boot ? "Kernel" : NULL, "kernel_usec", CELL_TIMESPAN},
            {boot ? "Initrd" : NULL, "initrd_usec", CELL_TIMESPAN},
            {boot ? "Userspace" : NULL, "userspace_usec", CELL_TIMESPAN},
            {"Policy", "policy", CELL_STRING},
            {"Outcome", "outcome", CELL_STRING},
            {"Because", "why", CELL_STRING},
            {"Replay took", "replay_usec", CELL_TIMESPAN},
            {"Replay read", "replay_data_bytes", CELL_BYTES},
            {"Use observed", "usage", CELL_STRING},
            {"Hits", "hit_bytes", CELL_BYTES},
            {"Waste", "waste_bytes", CELL_BYTES},
            {"Misses", "miss_bytes", CELL_BYTES},
            {"Not compared because", "left_out", CELL_STRING},
            {"Files compared with the present pack", "compared", CELL_BOOLEAN},
            {"Planned after the session", "planned_later", CELL_BOOLEAN},
            {"Missed: read, and not in the pack", "missed", CELL_TABLE},
            {"Wasted: in the pack, and not used", "wasted", CELL_TABLE},
            {0},
    };
    const SessionRecord *s = &x->session;
    _cleanup_table_ Table *t = table_new(columns);

    table_row(t, s->start_realtime_usec, stage_to_string(s->stage),
              s->uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)s->uid, s->ready_usec,
              s->predicted_usec, s->firmware_usec, s->loader_usec, s->kernel_usec, s->initrd_usec,
              session_userspace_usec(s), policy_to_string(s->policy),
              *s->outcome ? s->outcome : NULL, why(x), s->replay_usec, s->replay_data_bytes,
              usage_source_to_string(s->usage.source), s->usage.hit_bytes, s->usage.waste_bytes,
              s->usage.miss_bytes, session_exclusion_to_string(x->exclusion), (int)x->compared,
              (int)x->planned_later, file_table(&x->files[FILE_USE_MISS], limit),
              file_table(&x->files[FILE_USE_WASTE], limit));
    return cli_print_fields(c, t);
}

int explain_session(const Context *c, int state_fd, Stage stage, uint64_t limit)
{
    _cleanup_(explanation_done) Explanation x = {0};
    int r = find_session(c, state_fd, stage, &x);

    if (r < 0)
        return r;
    compare(state_fd, &x);
    if (x.failed)
        return cli_error(ENOMEM, "%m");
    return print(c, &x, limit);
}
