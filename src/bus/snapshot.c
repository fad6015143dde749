/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bus/snapshot.h"

#include "base/rooted.h"
#include "config/config.h"
#include "measure/launch-benefit.h"
#include "state/launch-packs.h"
#include "state/packs.h"
#include "state/state.h"
#include "state/trace-store.h"
#include "system/kernel.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>

#include "config-paths.h"

void snapshot_done(Snapshot *s)
{
    history_done(&s->history);
}

static uint64_t usec_of(double seconds)
{
    return (uint64_t)llround(seconds * USEC_PER_SEC);
}

static int read_figures(const SessionRecord *sessions, size_t n, Stage stage, usec_t now,
                        StageFigures *ret)
{
    Benefit b;
    int r = benefit_compute(sessions, n, stage, now, &b);

    if (r < 0)
        return r;
    *ret = (StageFigures){
            .n_replayed = b.effect.n_replayed,
            .n_control = b.effect.n_control,
            .known = b.effect.known,
            .policy = (int)b.policy < 0 ? "" : policy_to_string(b.policy),
            .harmful = b.harmful,
            .off_reason = "",
    };
    for (size_t i = n; i-- > 0 && ret->last_usec == 0;)
        if (sessions[i].stage == stage && sessions[i].ready_usec != SESSION_UNKNOWN)
            ret->last_usec = sessions[i].ready_usec;
    if (!b.effect.known)
        return 0;
    ret->saved = b.effect.saved;
    ret->saved_low = b.effect.saved_low;
    ret->saved_high = b.effect.saved_high;
    ret->with_usec = usec_of(b.effect.replayed_seconds);
    ret->without_usec = usec_of(b.effect.control_seconds);
    return 0;
}

static int read_launches(int state_fd, usec_t now, LaunchFigures *f)
{
    _cleanup_launch_records_ LaunchRecords records = {0};
    _cleanup_launch_benefits_ LaunchBenefits benefits = {0};
    const Effect *e = &benefits.all.effect;

    CHECK(launches_read(state_fd, &records));
    CHECK(launch_benefits_compute(&records, now, &benefits));
    f->n_replayed = e->n_replayed;
    f->n_control = e->n_control;
    f->known = e->known;
    if (!e->known)
        return 0;
    f->saved = e->saved;
    f->saved_low = e->saved_low;
    f->saved_high = e->saved_high;
    return 0;
}

static const char *word_of(PolicyReason r)
{
    return (int)r < 0 ? "" : policy_reason_to_string(r);
}

/* Returns why no start is replayed. Lines of the configuration that cannot be used are reported by
 * others. */
static const char *read_launch_off(int system_fd, int state_fd)
{
    Config c = config_default();
    PolicyReason off = POLICY_REASON_CONFIGURED;

    (void)config_load(system_fd, NULL, NULL, &c, NULL);
    if (c.launch_replay != LAUNCH_MODE_NO)
        (void)launch_packs_are_replayed(state_fd, &off);
    return word_of(off);
}

static const char *state_name(int state_fd, bool enabled)
{
    _cleanup_trace_names_ TraceNames names = {0};
    uint64_t n_learned;

    if (!enabled)
        return "off";
    if (packs_exist(state_fd))
        return "ready";
    if (state_peek_model(state_fd, &n_learned) >= 0)
        return "learned";
    return state_list_traces(state_fd, &names) >= 0 && names.n > 0 ? "recorded" : "empty";
}

static bool is_enabled(int system_fd)
{
    _cleanup_close_ int mark = rooted_open(system_fd, HEADSTART_SYSCONF_DIR "/disabled", O_PATH);

    return mark < 0 && !kernel_command_line_has(system_fd, "headstart=0");
}

int snapshot_read(const char *state_dir, int system_fd, usec_t now, Snapshot *ret)
{
    Snapshot s = {.enabled = is_enabled(system_fd)};
    _cleanup_close_ int fd = -EBADF;
    int r = state_directory_open(state_dir, false, &fd);

    if (r < 0 && r != -ENOENT)
        return r;
    s.state = r < 0 ? (s.enabled ? "empty" : "off") : state_name(fd, s.enabled);
    r = r < 0 ? 0 : history_read(fd, HISTORY_WINDOW, &s.history);
    if (r >= 0 && fd >= 0)
        r = read_launches(fd, now, &s.launch);
    if (r >= 0)
        r = read_figures(s.history.sessions, s.history.n, STAGE_BOOT, now, &s.boot);
    if (r >= 0)
        r = read_figures(s.history.sessions, s.history.n, STAGE_LOGIN, now, &s.login);
    if (r < 0) {
        snapshot_done(&s);
        return r;
    }
    if (fd >= 0) {
        s.boot.off_reason = word_of(packs_off_reason(fd, STAGE_BOOT, UID_INVALID));
        s.login.off_reason = word_of(packs_off_reason(fd, STAGE_LOGIN, UID_INVALID));
    }
    s.launch.off_reason = read_launch_off(system_fd, fd);
    *ret = s;
    return 0;
}

bool snapshot_is_visible(const SessionRecord *s, uint32_t uid)
{
    return s->stage == STAGE_BOOT || (uid != UID_INVALID && s->uid == uid);
}

int snapshot_own_launches(const char *state_dir, uint32_t uid, LaunchRecords *ret)
{
    _cleanup_launch_records_ LaunchRecords l = {0};
    _cleanup_close_ int fd = -EBADF;
    size_t n = 0;
    int r = state_directory_open(state_dir, false, &fd);

    if (r >= 0)
        r = launches_read(fd, &l);
    if (r < 0 && r != -ENOENT)
        return r;
    for (size_t i = 0; i < l.n; i++)
        if (uid != UID_INVALID && l.items[i].uid == uid)
            l.items[n++] = l.items[i];
    l.n = n;
    *ret = l;
    l = (LaunchRecords){0};
    return 0;
}

int snapshot_own_logins(const char *state_dir, const Snapshot *s, uint32_t uid, usec_t now,
                        StageFigures *ret)
{
    _cleanup_free_ SessionRecord *own = calloc(s->history.n + 1, sizeof(SessionRecord));
    _cleanup_close_ int fd = -EBADF;
    size_t n = 0;
    int r;

    if (!own)
        return -ENOMEM;
    /* Boots are kept, because they show when packages have changed. */
    for (size_t i = 0; i < s->history.n; i++)
        if (snapshot_is_visible(&s->history.sessions[i], uid))
            own[n++] = s->history.sessions[i];
    r = read_figures(own, n, STAGE_LOGIN, now, ret);
    if (r >= 0 && state_directory_open(state_dir, false, &fd) >= 0)
        ret->off_reason = word_of(packs_off_reason(fd, STAGE_LOGIN, uid));
    return r;
}
