/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/prefetcher.h"

#include "base/atomic-file.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/json-util.h"
#include "base/log.h"
#include "daemon/prefetcher-model.h"
#include "pack/checksum.h"
#include "session/machine.h"
#include "session/prefetch-thread.h"
#include "trace/trace.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>

#define DUMP_NAME "session.json"
/* Of starts that come together, one prediction is enough. */
#define AT_ONCE_USEC (250 * USEC_PER_MSEC)

struct Prefetcher {
    PrefetcherOptions o;
    char *root; /* as realpath(3) has it */
    Recorder *recorder;
    uint32_t uid;
    Config config;
    Cycle *cycle;
    PrefetchThread *thread;
    uint64_t known_chains;  /* checksum of what the disk holds as far as we know */
    uint64_t saving_chains; /* of what is being saved */
    bool on_disk;           /* there is a model, as far as we know */
    ModelSave *saving;
    uint64_t n_saved, n_saving; /* events learned from */
    usec_t saved_at, decided_at;
    sd_event *event;
    sd_event_source *timer, *reload, *dump;
};

static usec_t now(void)
{
    return clock_now(CLOCK_MONOTONIC);
}

static void warn_config(void *arg, const char *file, unsigned line, const char *message)
{
    log_warning("headstartd: %s:%u: %s", file, line, message);
}

static CycleParameters parameters_of(const Config *c)
{
    CycleParameters p;

    cycle_parameters_init(&p);
    p.interval = c->cycle_usec;
    p.scan = c->scan;
    p.predict = c->predict;
    p.battery = c->battery;
    p.minsize_bytes = c->min_size_bytes;
    p.exclude = c->exclude;
    p.budget = (BudgetParameters){
            .formula = c->session_budget.mode == CONFIG_BUDGET_THESIS  ? BUDGET_THESIS
                       : c->session_budget.mode == CONFIG_BUDGET_BYTES ? BUDGET_FIXED
                                                                       : BUDGET_AVAILABLE,
            .fixed_bytes = c->session_budget.bytes,
            .total_percent = c->mem_total_percent,
            .free_percent = c->mem_free_percent,
            .cached_percent = c->mem_cached_percent,
    };
    return p;
}

/* 0 for none. */
static uint64_t sum_of(const Chains *c)
{
    _cleanup_free_ char *text = NULL;

    return c && chains_to_json(c, &text) >= 0 ? pack_hash(text, strlen(text), 0) : 0;
}

/* Configuration and model. The present cycle goes on unless the disk holds other chains than those
 * it began with or saved: then somebody has put them there, and they count. *ret_anew: other chains
 * were taken. */
static int load(Prefetcher *s, bool *ret_anew)
{
    _cleanup_close_ int root_fd = open(s->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_model_ Model *m = NULL;
    CycleParameters p;
    size_t dropped = 0;
    bool too_large;
    Cycle *cycle;
    uint64_t sum;
    int r;

    if (root_fd < 0)
        return -errno;
    r = config_load(root_fd, warn_config, NULL, &s->config, NULL);
    if (r >= 0)
        r = prefetcher_model_load(s->o.state, &PREFETCHER_MODEL_LIMITS, &m, &dropped);
    too_large = r == -ENOMEM && !s->cycle;
    if (r < 0 && !too_large)
        return r;
    if (too_large)
        log_warning(
                "headstartd: %s/model.json needs more memory than there is: this session begins "
                "without it",
                s->o.state);
    else if (dropped > 0)
        log_notice(
                "headstartd: %s/model.json is too large for a session: without the %zu files and "
                "metadata ranges that the fewest sessions used",
                s->o.state, dropped);
    p = parameters_of(&s->config);
    s->on_disk = m || too_large;
    sum = sum_of(m ? m->chains : NULL);
    /* No model any more: all was forgotten, what is only in memory, too. */
    *ret_anew = false;
    if (s->cycle && m && sum == s->known_chains)
        return cycle_reload(s->cycle, &p, m);
    r = cycle_new(&p, m, s->config.halflife_usec, s->uid, &cycle);
    if (r < 0)
        return r;
    if (s->cycle)
        log_notice(m ? "headstartd: the model holds other chains than were saved; they are taken"
                     : "headstartd: there is no model any more: what was learned since is dropped");
    cycle_free(s->cycle);
    s->cycle = cycle;
    s->known_chains = sum;
    *ret_anew = m;
    s->n_saved = 0;
    r = cycle_begin(s->cycle, now(), clock_now(CLOCK_REALTIME));
    return r;
}

/* Saving */

static void finish_saving(Prefetcher *s, bool wait)
{
    bool anew;
    int r;

    if (!s->saving)
        return;
    r = model_save_finish(&s->saving, wait);
    if (r == -EAGAIN)
        return;
    if (r == -ENOENT) {
        /* Forgotten while it waited; whoever did that tells us yet, or has died. What is being
         * backoff in was wanted by what goes. */
        r = s->thread ? prefetch_thread_request(s->thread, NULL, 0) : 0;
        if (r >= 0)
            r = load(s, &anew);
        if (r >= 0)
            return;
    }
    if (r < 0) {
        log_warning_errno(r, "headstartd: cannot save what was learned to %s/model.json: %m",
                          s->o.state);
        return;
    }
    s->n_saved = s->n_saving;
    s->known_chains = s->saving_chains;
    s->on_disk = true;
}

static void save(Prefetcher *s)
{
    Chains *learned;
    int r;

    finish_saving(s, false);
    s->saved_at = now();
    if (s->saving || cycle_n_learned(s->cycle) == s->n_saved)
        return;
    r = cycle_learned(s->cycle, &learned);
    if (r >= 0) {
        s->n_saving = cycle_n_learned(s->cycle);
        s->saving_chains = sum_of(learned);
        r = model_save_start(s->o.state, learned, s->on_disk, &s->saving);
    }
    if (r < 0)
        log_warning_errno(r, "headstartd: cannot save what was learned: %m");
}

/* The cycle */

/* What the thread may not read for this user takes no share of the budget any more. */
static int note_refusals(Prefetcher *s)
{
    _cleanup_(prefetch_paths_done) PrefetchPaths refused;
    int r = 0;

    prefetch_thread_take_refused(s->thread, &refused);
    for (size_t i = 0; r >= 0 && i < refused.n; i++)
        r = cycle_refuse(s->cycle, refused.paths[i]);
    return r;
}

static void decide(Prefetcher *s)
{
    CycleSnapshot snapshot;
    CycleDecision d = {.verdict = _CYCLE_VERDICT_INVALID};
    int r;

    s->decided_at = now();
    r = note_refusals(s);
    if (r >= 0)
        r = machine_snapshot(AT_FDCWD, &snapshot);
    if (r >= 0)
        r = cycle_decide(s->cycle, s->decided_at, clock_now(CLOCK_REALTIME), &snapshot, &d);
    if (r >= 0)
        r = prefetch_thread_request(s->thread, d.requests, d.n_requests);
    if (r < 0)
        log_debug_errno(r, "headstartd: cannot predict, ignoring: %m");
}

static void schedule(Prefetcher *s, usec_t at, usec_t accuracy)
{
    if (sd_event_source_set_time_accuracy(s->timer, accuracy) < 0 ||
        sd_event_source_set_time(s->timer, at) < 0 ||
        sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT) < 0)
        log_debug("headstartd: cannot set the cycle's timer, ignoring");
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *arg)
{
    Prefetcher *s = arg;

    decide(s);
    finish_saving(s, false);
    if (s->config.save_interval_usec != USEC_INFINITY &&
        now() >= s->saved_at + s->config.save_interval_usec)
        save(s);
    schedule(s, s->decided_at + s->config.cycle_usec, USEC_PER_SEC);
    return 0;
}

static void on_application(void *arg, const RecordedApplication *a)
{
    Prefetcher *s = arg;
    usec_t boottime = clock_now(CLOCK_BOOTTIME);
    usec_t ago = boottime > a->at_boottime ? boottime - a->at_boottime : 0;
    usec_t at = now(), realtime = clock_now(CLOCK_REALTIME);
    int r;

    /* Time suspended is none in which anything could have started. */
    r = cycle_observe(s->cycle, &(CycleEvent){
                                        .at = at > ago ? at - ago : 0,
                                        .realtime = realtime > ago ? realtime - ago : 0,
                                        .uid = a->uid,
                                        .started = a->started,
                                        .path = a->path,
                                });
    if (r < 0)
        log_debug_errno(r, "headstartd: cannot learn from an application, ignoring: %m");
    else if (r > 0)
        schedule(s, MAX(at, s->decided_at + AT_ONCE_USEC), USEC_PER_MSEC);
}

/* Signals */

static int on_reload(sd_event_source *source _unused_, const struct signalfd_siginfo *si _unused_,
                     void *arg)
{
    Prefetcher *s = arg;
    bool anew = false;
    int r;

    finish_saving(s, true);
    /* What is being backoff in was wanted by what goes. */
    r = prefetch_thread_request(s->thread, NULL, 0);
    if (r >= 0)
        r = load(s, &anew);
    /* Other chains have yet to hear of this session; where all was forgotten, it is not told again.
     */
    if (r >= 0 && anew)
        r = recorder_follow(s->recorder, on_application, s);
    malloc_trim(0);
    if (r < 0)
        log_warning_errno(r, "headstartd: cannot reload: %m");
    schedule(s, now(), USEC_PER_MSEC);
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

    for (size_t i = 0; o && i < ELEMENTSOF(rows); i++)
        json_object_object_add(o, rows[i].key, json_object_new_uint64(rows[i].value));
    return o;
}

static int on_dump(sd_event_source *source _unused_, const struct signalfd_siginfo *si _unused_,
                   void *arg)
{
    Prefetcher *s = arg;
    _cleanup_json_ struct json_object *o = cycle_dump(s->cycle);
    const char *text;
    PrefetchReport report;
    char path[PATH_MAX];
    int r = -ENOMEM;

    prefetch_thread_report(s->thread, &report);
    if (o && json_object_object_add(o, "prefetch", dump_report(&report)) >= 0) {
        text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE);
        snprintf(path, sizeof(path), "%s/" DUMP_NAME, s->o.run_dir ? s->o.run_dir : s->o.state);
        r = text ? atomic_file_write(AT_FDCWD, path, text, strlen(text), 0600) : -ENOMEM;
    }
    if (r < 0)
        log_warning_errno(r, "headstartd: cannot dump the session's state: %m");
    return 0;
}

/* Beginning and end */

static void prefetcher_free(Prefetcher *s)
{
    sd_event_source_disable_unref(s->timer);
    sd_event_source_disable_unref(s->reload);
    sd_event_source_disable_unref(s->dump);
    sd_event_unref(s->event);
    prefetch_thread_free(s->thread);
    cycle_free(s->cycle);
    free(s->root);
    free(s);
}

static int set_up(Prefetcher *s)
{
    bool anew;
    int r;

    s->root = realpath(s->o.root, NULL);
    if (!s->root)
        return -errno;
    r = load(s, &anew);
    malloc_trim(0); /* a model is large as text */
    if (r >= 0)
        r = prefetch_thread_new(s->root, s->uid, &s->thread);
    if (r >= 0)
        r = sd_event_add_time_relative(s->event, &s->timer, CLOCK_MONOTONIC, 0, USEC_PER_MSEC,
                                       on_timer, s);
    if (r >= 0)
        r = sd_event_add_signal(s->event, &s->reload, SIGHUP, on_reload, s);
    if (r >= 0)
        r = sd_event_add_signal(s->event, &s->dump, SIGUSR2, on_dump, s);
    return r < 0 ? r : recorder_follow(s->recorder, on_application, s);
}

int prefetcher_new(const PrefetcherOptions *o, Recorder *recorder, sd_event *event, uint32_t uid,
                   Prefetcher **ret)
{
    Prefetcher *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return log_oom();
    s->o = *o;
    s->recorder = recorder;
    s->event = sd_event_ref(event);
    s->uid = uid;
    s->saved_at = now();
    r = set_up(s);
    if (r < 0) {
        prefetcher_free(s);
        return log_warning_errno(r, "headstartd: no session cycle: %m");
    }
    *ret = s;
    return 0;
}

unsigned prefetcher_trace_flags(const Prefetcher *s)
{
    PrefetchReport report;

    if (!s)
        return 0;
    prefetch_thread_report(s->thread, &report);
    return (report.read_bytes > 0 ? TRACE_REPLAYED : 0) |
           (cycle_n_learned(s->cycle) > 0 ? TRACE_FOLLOWED : 0);
}

Prefetcher *prefetcher_end(Prefetcher *s)
{
    PrefetchReport report;
    int r;

    if (!s)
        return NULL;
    (void)recorder_follow(s->recorder, NULL, NULL);
    prefetch_thread_report(s->thread, &report);
    s->thread = prefetch_thread_free(s->thread);
    finish_saving(s, true);
    r = cycle_end(s->cycle, now(), clock_now(CLOCK_REALTIME));
    if (r < 0)
        log_debug_errno(r, "headstartd: cannot end the session, ignoring: %m");
    save(s);
    finish_saving(s, true);
    log_info("headstartd: session cycle: %" PRIu64 " starts and exits, %" PRIu64
             " bytes read ahead in %" PRIu64 " reads",
             cycle_n_learned(s->cycle), report.read_bytes, report.n_reads);
    prefetcher_free(s);
    return NULL;
}
