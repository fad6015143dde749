/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Over 500 lines in one file: one object whose events, model and thread share its fields. */

#include "daemon/prefetcher.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/json-util.h"
#include "base/log.h"
#include "config/config.h"
#include "daemon/prefetcher-model.h"
#include "daemon/state-write.h"
#include "session/decision-interval.h"
#include "session/launch-thread.h"
#include "session/machine.h"
#include "session/prefetch-thread.h"
#include "state/launch-packs.h"
#include "trace/trace.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define DUMP_NAME "session.json"

struct Prefetcher {
    PrefetcherOptions o;
    char *root; /* as realpath(3) returns it */
    Recorder *recorder;
    uint32_t uid;
    Config config;
    Cycle *cycle;
    PrefetchThread *thread;
    LaunchThread *launches; /* NULL: starts are not replayed, or executions cannot be watched */
    usec_t launches_since;  /* CLOCK_REALTIME: starts are replayed since then; USEC_INFINITY: they
                               are not */
    bool unrecorded;        /* prefetcher_end_recording() */
    bool ending;            /* prefetcher_end() */
    usec_t decided_at, saved_at;
    usec_t decision_interval; /* the minimum time until the next decision … */
    uint64_t n_starts;        /* … and the starts since `decided_at` */

    /* The model that this process last read from the disk or wrote to the disk. If the file differs
     * from this model, another program has written the file. */
    bool on_disk;               /* there was a model */
    uint64_t known_revision;    /* chains_revision() of that model */
    usec_t known_halflife_usec; /* half-life of that model */
    ModelSave *saving;          /* a save that is under way, … */
    uint64_t saving_revision;   /* … and chains_revision() of what it saves */
    bool was_left;              /* a save was left behind and may still end, … */
    uint64_t left_revision;     /* … and chains_revision() of what it saves */

    sd_event *event;
    sd_event_source *timer, *reload, *dump, *packs;
};

static usec_t now(void)
{
    return clock_now(CLOCK_MONOTONIC);
}

static EventTime event_time(void)
{
    return (EventTime){now(), clock_now(CLOCK_REALTIME)};
}

/* --- loading ---------------------------------------------------------------------------------- */

static void warn_config(void *arg, const char *file, unsigned line, const char *message)
{
    log_warning("headstartd: %s:%u: %s", file, line, message);
}

static CycleParameters cycle_parameters(const Config *c)
{
    CycleParameters p;

    cycle_parameters_init(&p);
    p.interval = c->cycle_usec;
    p.scan = c->scan;
    p.predict = c->predict;
    p.battery = c->battery;
    p.minsize_bytes = c->min_size_bytes;
    p.exclude = c->exclude;
    p.budget = c->session_budget;
    p.selection.maximum_waste = c->maximum_waste_percent / 100.0;
    return p;
}

static int load_config(Prefetcher *p)
{
    _cleanup_close_ int root_fd = open(p->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return root_fd < 0 ? -errno : config_load(root_fd, warn_config, NULL, &p->config, NULL);
}

/* Reads the model, reduced to PREFETCHER_MODEL_LIMITS. *ret is NULL if there is no model. It is
 * also NULL if the session begins and there is too little memory to read the model. */
static int load_model(Prefetcher *p, Model **ret)
{
    size_t dropped = 0;
    int r = prefetcher_model_load(p->o.state, &PREFETCHER_MODEL_LIMITS, ret, &dropped);

    if ((r == -ENOMEM || r == -EPROTONOSUPPORT) && !p->cycle) {
        log_warning("headstartd: %s/model.json %s: this session begins without it", p->o.state,
                    r == -ENOMEM ? "needs more memory than there is"
                                 : "was written by a newer version, which runs after a restart");
        p->on_disk = true;
        return 0;
    }
    if (r < 0)
        return r;
    if (dropped > 0)
        log_notice("headstartd: %s/model.json is too large for a session, which leaves out the "
                   "%zu files and metadata ranges that the fewest sessions used",
                   p->o.state, dropped);
    p->on_disk = *ret;
    return 0;
}

/* Reads configuration and model. The cycle continues with its own chains if the disk holds the
 * chains that it began with or saved last. If the disk holds others, an administrator has installed
 * or deleted chains, and a new cycle begins with those on the disk. *ret_replaced: true if the
 * cycle began with chains from the disk. */
static int load(Prefetcher *p, bool *ret_replaced)
{
    _cleanup_model_ Model *m = NULL;
    CycleParameters parameters;
    EventTime t;
    uint64_t revision;
    usec_t halflife_usec;
    Cycle *cycle;
    int r;

    r = load_config(p);
    if (r >= 0)
        r = load_model(p, &m);
    if (r < 0)
        return r;
    *ret_replaced = false;
    parameters = cycle_parameters(&p->config);
    revision = chains_revision(m ? m->chains : NULL);
    halflife_usec = m ? m->halflife_usec : p->config.halflife_usec;
    if (p->cycle && m &&
        (revision == p->known_revision || (p->was_left && revision == p->left_revision)) &&
        halflife_usec == p->known_halflife_usec)
        return cycle_reload(p->cycle, &parameters, m);
    r = cycle_new(&parameters, m, halflife_usec, p->uid, &cycle);
    if (r < 0)
        return r;
    if (p->cycle)
        log_notice(m ? "headstartd: model.json holds other chains than were saved: the session "
                       "cycle continues with them"
                     : "headstartd: there is no model any more: the session cycle forgets what it "
                       "has learned since");
    cycle_free(p->cycle);
    p->cycle = cycle;
    p->known_revision = revision;
    p->known_halflife_usec = halflife_usec;
    *ret_replaced = m;
    t = event_time();
    cycle_set_utc_offset(p->cycle, clock_utc_offset_sec(t.realtime));
    return cycle_begin(p->cycle, t);
}

/* Cancels the requests, which come from the old model, and loads again. */
static int reload(Prefetcher *p, bool *ret_replaced)
{
    int r = p->thread ? prefetch_thread_request(p->thread, NULL, 0) : 0;

    return r < 0 ? r : load(p, ret_replaced);
}

/* --- saving ----------------------------------------------------------------------------------- */

static void on_application(void *arg, const RecordedApplication *a);

/* Continues after a save that wrote nothing, because another program has deleted the model or has
 * given it other chains. Chains from the disk lack the present session, so the running applications
 * are reported again. Returns 0 or a negative errno. */
static int continue_with_model(Prefetcher *p, int error)
{
    bool replaced = false;
    int r;

    if (p->ending && error == -ESTALE) {
        log_notice("headstartd: model.json holds other chains than were saved: what this session "
                   "has learned since is not saved");
        return 0;
    }
    r = reload(p, &replaced);
    return r >= 0 && replaced && !p->ending ? recorder_follow(p->recorder, on_application, p) : r;
}

static void finish_saving(Prefetcher *p, bool wait)
{
    int r;

    if (!p->saving)
        return;
    r = model_save_finish(&p->saving, wait ? p->recorder : NULL);
    if (r == -EAGAIN)
        return;
    if (r == -ENOENT || r == -ESTALE) {
        r = continue_with_model(p, r);
        if (r >= 0)
            return;
    }
    if (r == -ETIMEDOUT) {
        p->was_left = true;
        p->left_revision = p->saving_revision;
        log_warning("headstartd: %s does not answer: what was learned is not saved", p->o.state);
        return;
    }
    if (r < 0) {
        log_warning_errno(r, "headstartd: cannot save what was learned to %s/model.json: %m",
                          p->o.state);
        return;
    }
    p->known_revision = p->saving_revision;
    p->on_disk = true;
}

static void start_saving(Prefetcher *p)
{
    Chains *learned;
    int r;

    finish_saving(p, false);
    p->saved_at = now();
    if (p->saving || cycle_revision(p->cycle) == p->known_revision)
        return;
    r = cycle_learned(p->cycle, &learned);
    if (r >= 0) {
        const ModelKnown known = {
                .was_there = p->on_disk,
                .revision = p->known_revision,
                .left_revision = p->was_left ? p->left_revision : p->known_revision,
        };

        p->saving_revision = chains_revision(learned);
        r = model_save_start(p->o.state, learned, &known, &p->saving);
    }
    /* That the disk does not answer was reported when a write was left behind. */
    if (r < 0 && r != -ETIMEDOUT)
        log_warning_errno(r, "headstartd: cannot save what was learned: %m");
}

/* --- the cycle -------------------------------------------------------------------------------- */

/* Excludes files that the thread refused to read for this user, so that they take no share of the
 * budget. */
static int exclude_refused(Prefetcher *p)
{
    _cleanup_(prefetch_paths_done) PrefetchPaths refused;
    int r = 0;

    prefetch_thread_move_refused(p->thread, &refused);
    for (size_t i = 0; r >= 0 && i < refused.n; i++)
        r = cycle_refuse(p->cycle, refused.paths[i]);
    return r;
}

static void decide(Prefetcher *p)
{
    CycleSnapshot snapshot;
    CycleDecision d = {.verdict = _CYCLE_VERDICT_INVALID};
    EventTime t = event_time();
    int r;

    p->decision_interval = decision_interval_next(p->decision_interval, t.at - p->decided_at,
                                                  p->n_starts, p->config.cycle_usec);
    p->n_starts = 0;
    p->decided_at = t.at;
    /* Summer time begins or ends, or the user travels. */
    cycle_set_utc_offset(p->cycle, clock_utc_offset_sec(t.realtime));
    if (prefetch_thread_check(&p->thread) > 0)
        log_notice("headstartd: a disk does not answer: nothing is read ahead from it in this "
                   "session");
    r = exclude_refused(p);
    if (r >= 0)
        r = machine_snapshot(AT_FDCWD, &snapshot);
    if (r >= 0)
        r = cycle_decide(p->cycle, t, &snapshot, &d);
    if (r >= 0)
        r = prefetch_thread_request(p->thread, d.requests, d.n_requests);
    if (r < 0)
        log_debug_errno(r, "headstartd: cannot predict, ignoring: %m");
}

static void schedule(Prefetcher *p, usec_t at, usec_t accuracy)
{
    if (sd_event_source_set_time_accuracy(p->timer, accuracy) < 0 ||
        sd_event_source_set_time(p->timer, at) < 0 ||
        sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT) < 0)
        log_debug("headstartd: cannot set the session cycle's timer, ignoring");
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *arg)
{
    Prefetcher *p = arg;

    decide(p);
    finish_saving(p, false);
    if (p->config.save_interval_usec != USEC_INFINITY &&
        now() >= p->saved_at + p->config.save_interval_usec)
        start_saving(p);
    schedule(p, p->decided_at + p->config.cycle_usec, USEC_PER_SEC);
    return 0;
}

/* Returns true if an earlier prefetcher of this session has learned from the start, and the process
 * has ended. The recorder reports all runs of a recorded session to a new prefetcher. */
static bool is_over(const Prefetcher *p, const RecordedApplication *a)
{
    char path[32];

    if (!a->started || a->at_boottime >= p->o.known_boottime)
        return false;
    snprintf(path, sizeof(path), "/proc/%" PRIu32, a->pid);
    return access(path, F_OK) < 0;
}

static void on_application(void *arg, const RecordedApplication *a)
{
    Prefetcher *p = arg;
    usec_t boottime = clock_now(CLOCK_BOOTTIME);
    usec_t ago = boottime > a->at_boottime ? boottime - a->at_boottime : 0;
    EventTime t = event_time();
    int r;

    if (is_over(p, a))
        return; /* the cycle ignores an exit without a start */
    /* The cycle's clock is CLOCK_MONOTONIC: in suspended time no application can start. */
    r = cycle_observe(p->cycle,
                      &(CycleEvent){
                              .time = {t.at - MIN(ago, t.at), t.realtime - MIN(ago, t.realtime)},
                              .uid = a->uid,
                              .started = a->started,
                              .path = a->path,
                      });
    if (r < 0)
        log_debug_errno(r, "headstartd: cannot learn from an application, ignoring: %m");
    else if (r > 0) {
        p->n_starts++;
        schedule(p, MAX(t.at, p->decided_at + p->decision_interval), USEC_PER_MSEC);
    }
}

/* Returns true if starts of applications are to be replayed. With LaunchReplay=auto executions are
 * watched as soon as an application is predicted to gain, and to the end of the session. */
static bool wants_launches(const Prefetcher *p)
{
    _cleanup_close_ int state_fd = -EBADF;

    if (p->config.launch_replay != LAUNCH_MODE_AUTO)
        return p->config.launch_replay == LAUNCH_MODE_YES;
    if (p->launches_since != USEC_INFINITY)
        return true;
    state_fd = open(p->o.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return state_fd >= 0 && launch_packs_are_replayed(state_fd, NULL);
}

/* Starts or stops launch replay, as the configuration and the launch sets require. If the start
 * fails, the session continues without launch replay. A thread that was stopped stays, because the
 * trace and the history of the session need its results. */
static void update_launches(Prefetcher *p)
{
    const LaunchOptions o = {
            .root = p->root,
            .state = p->o.state,
            .uid = p->uid,
            .maximum_pressure = cycle_parameters(&p->config).maximum_pressure,
    };
    bool wanted = wants_launches(p);
    int r = 0;

    if (p->launches)
        launch_thread_switch(p->launches, wanted);
    else if (wanted)
        r = launch_thread_new(&o, &p->launches);
    if (r < 0)
        log_debug_errno(r, "headstartd: starts of applications are not replayed: %m");
    if (p->unrecorded)
        launch_thread_end_recording(p->launches);
    if (!wanted || !p->launches)
        p->launches_since = USEC_INFINITY;
    else if (p->launches_since == USEC_INFINITY)
        p->launches_since = clock_now(CLOCK_REALTIME);
}

/* `headstart plan` has written a file. If it is the first set that is to be replayed, executions
 * are watched from now on. */
static int on_pack(sd_event_source *source _unused_, const struct inotify_event *e, void *arg)
{
    Prefetcher *p = arg;
    _cleanup_close_ int state_fd = -EBADF;

    if (p->launches_since != USEC_INFINITY || p->config.launch_replay != LAUNCH_MODE_AUTO)
        return 0;
    if (e->mask & IN_Q_OVERFLOW)
        update_launches(p);
    if (e->mask & IN_Q_OVERFLOW || e->len == 0)
        return 0;
    state_fd = open(p->o.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state_fd >= 0 && launch_pack_is_replayed(state_fd, e->name, NULL))
        update_launches(p);
    return 0;
}

/* --- signals ---------------------------------------------------------------------------------- */

static int on_reload(sd_event_source *source _unused_, const struct signalfd_siginfo *si _unused_,
                     void *arg)
{
    Prefetcher *p = arg;
    bool replaced = false;
    int r;

    finish_saving(p, true);
    if (state_write_disk_hangs())
        return 0;
    r = reload(p, &replaced);
    /* Chains from the disk lack the present session, so the running applications are reported
     * again. That must not happen after the administrator has deleted everything; `replaced` is
     * false then. */
    if (r >= 0 && replaced)
        r = recorder_follow(p->recorder, on_application, p);
    update_launches(p);
    malloc_trim(0);
    if (r < 0)
        log_warning_errno(r, "headstartd: cannot reload: %m");
    schedule(p, now(), USEC_PER_MSEC);
    return 0;
}

static struct json_object *dump_report(const PrefetchReport *r)
{
    struct json_object *o = json_object_new_object();
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {
            {"n_passes", r->n_passes},
            {"n_files", r->n_files},
            {"n_skipped", r->n_skipped},
            {"n_directories", r->n_directories},
            {"n_refused", r->n_refused},
            {"n_reads", r->n_reads},
            {"read_bytes", r->read_bytes},
            {"pass_files", r->pass_files},
            {"pass_missing_bytes", r->pass_missing_bytes},
            {"working", r->working},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++)
        json_add_member(o, rows[i].key, json_object_new_uint64(rows[i].value));
    return o;
}

static struct json_object *dump_launches(const LaunchReport *r)
{
    struct json_object *o = json_object_new_object();
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {
            {"n_starts", r->n_starts},         {"n_replayed", r->n_replayed},
            {"n_resident", r->n_resident},     {"n_control", r->n_control},
            {"n_dropped", r->n_dropped},       {"n_stopped", r->n_stopped},
            {"n_observed", r->n_observed},     {"read_bytes", r->read_bytes},
            {"latency_usec", r->latency_usec},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++)
        json_add_member(o, rows[i].key, json_object_new_uint64(rows[i].value));
    return o;
}

static int on_dump(sd_event_source *source _unused_, const struct signalfd_siginfo *si _unused_,
                   void *arg)
{
    Prefetcher *p = arg;
    _cleanup_json_ struct json_object *o = cycle_dump(p->cycle);
    const char *text;
    PrefetchReport report;
    LaunchReport launches;
    char path[PATH_MAX];
    int r = -ENOMEM;

    prefetch_thread_report(p->thread, &report);
    launch_thread_report(p->launches, &launches);
    if (json_add_member(o, "prefetch", dump_report(&report)) &&
        json_add_member(o, "launch", dump_launches(&launches))) {
        text = json_to_text(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
        snprintf(path, sizeof(path), "%s/" DUMP_NAME, p->o.run_dir ? p->o.run_dir : p->o.state);
        r = text ? atomic_file_write(AT_FDCWD, path, text, strlen(text), 0600) : -ENOMEM;
    }
    if (r < 0)
        log_warning_errno(r, "headstartd: cannot write " DUMP_NAME ": %m");
    return 0;
}

/* --- beginning and end ------------------------------------------------------------------------ */

static void prefetcher_free(Prefetcher *p)
{
    sd_event_source_disable_unref(p->timer);
    sd_event_source_disable_unref(p->reload);
    sd_event_source_disable_unref(p->dump);
    sd_event_source_disable_unref(p->packs);
    sd_event_unref(p->event);
    launch_thread_free(p->launches);
    prefetch_thread_free(p->thread);
    cycle_free(p->cycle);
    free(p->root);
    free(p);
}

static int set_up(Prefetcher *p)
{
    bool replaced;
    int r;

    p->root = realpath(p->o.root, NULL);
    if (!p->root)
        return -errno;
    r = load(p, &replaced);
    malloc_trim(0); /* reading a model takes several times the memory that it keeps */
    if (r >= 0)
        r = prefetch_thread_new(p->root, p->uid, &p->thread);
    if (r >= 0)
        r = sd_event_add_time_relative(p->event, &p->timer, CLOCK_MONOTONIC, 0, USEC_PER_MSEC,
                                       on_timer, p);
    if (r >= 0)
        r = sd_event_add_signal(p->event, &p->reload, SIGHUP, on_reload, p);
    if (r >= 0)
        r = sd_event_add_signal(p->event, &p->dump, SIGUSR2, on_dump, p);
    /* Without the watch, the next session notices the new sets. */
    if (r >= 0 && sd_event_add_inotify(p->event, &p->packs, p->o.state, IN_MOVED_TO | IN_ONLYDIR,
                                       on_pack, p) < 0)
        log_debug("headstartd: cannot watch %s, ignoring", p->o.state);
    if (r >= 0)
        update_launches(p); /* behind the watch, so that no new set is missed */
    return r < 0 ? r : recorder_follow(p->recorder, on_application, p);
}

int prefetcher_new(const PrefetcherOptions *o, Recorder *recorder, sd_event *event, uint32_t uid,
                   Prefetcher **ret)
{
    Prefetcher *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return log_oom();
    p->o = *o;
    p->recorder = recorder;
    p->event = sd_event_ref(event);
    p->uid = uid;
    p->launches_since = USEC_INFINITY;
    p->saved_at = now();
    r = set_up(p);
    if (r < 0) {
        prefetcher_free(p);
        return log_warning_errno(r, "headstartd: no session cycle: %m");
    }
    *ret = p;
    return 0;
}

void prefetcher_end_recording(Prefetcher *p)
{
    if (!p)
        return;
    p->unrecorded = true;
    launch_thread_end_recording(p->launches);
}

void prefetcher_take_results(Prefetcher *p, uint32_t uid, SessionResults *ret)
{
    PrefetchReport report;
    LaunchReport launches;

    *ret = SESSION_RESULTS_EMPTY;
    if (!p)
        return;
    prefetch_thread_report(p->thread, &report);
    launch_thread_report(p->launches, &launches);
    ret->flags = (report.read_bytes + launches.read_bytes > 0 ? TRACE_REPLAYED : 0) |
                 (launch_report_has_control(&launches, uid) ? TRACE_CONTROL : 0) |
                 (cycle_n_learned(p->cycle) > 0 ? TRACE_FOLLOWED : 0);
    ret->launches_since = p->launches_since;
    launch_thread_log(p->launches, &ret->launch_log);
    launch_thread_take_uses(p->launches, &ret->launch_uses);
}

Prefetcher *prefetcher_end(Prefetcher *p)
{
    PrefetchReport report;
    LaunchReport launches;

    if (!p)
        return NULL;
    p->ending = true;
    (void)recorder_follow(p->recorder, NULL, NULL);
    launch_thread_report(p->launches, &launches);
    p->launches = launch_thread_free(p->launches);
    prefetch_thread_report(p->thread, &report);
    p->thread = prefetch_thread_free(p->thread);
    finish_saving(p, true);
    cycle_end(p->cycle, event_time());
    start_saving(p);
    finish_saving(p, true);
    log_info("headstartd: session cycle: %" PRIu64 " starts and exits, %" PRIu64
             " bytes read ahead in %" PRIu64 " reads",
             cycle_n_learned(p->cycle), report.read_bytes, report.n_reads);
    if (launches.n_starts > 0)
        log_info("headstartd: %" PRIu64 " starts of applications: %" PRIu64 " replayed (%" PRIu64
                 " bytes), %" PRIu64 " in memory",
                 launches.n_starts, launches.n_replayed, launches.read_bytes, launches.n_resident);
    prefetcher_free(p);
    return NULL;
}
