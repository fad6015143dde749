/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/benefit.h"

#include "base/macros.h"

#include <string.h>

#define INTERVAL_ERROR 0.05

#define NEWEST_LOGINS         5U
#define BLOCK_SESSIONS        10U
#define INTERVAL_SUSPECT      2U
#define INTERVAL_SHOWN        101U
#define COLD_LOGIN_LONG       10.0 /* seconds */
#define CONTROL_DISTANCE_USEC (48 * USEC_PER_HOUR)

const char *session_exclusion_to_string(SessionExclusion e)
{
    static const char *const names[_SESSION_EXCLUSION_MAX] = {
            [EXCLUSION_LIGHT] = "not recorded: the policy is off",
            [EXCLUSION_UNSETTLED] = "never settled",
            [EXCLUSION_SECOND_LOGIN] = "not the first login of its boot",
            [EXCLUSION_SHARED] = "several users at once",
            [EXCLUSION_SOFT_REBOOT] = "soft reboot",
            [EXCLUSION_OFFLINE_UPDATE] = "offline update",
            [EXCLUSION_FSCK] = "filesystem check",
            [EXCLUSION_EXACT] = "exact recording",
            [EXCLUSION_PARTLY_REPLAYED] = "partly replayed",
            [EXCLUSION_FIRST] = "first session",
            [EXCLUSION_OTHER_DISK] = "another disk",
            [EXCLUSION_UPGRADED] = "first session after an upgrade",
            [EXCLUSION_WITH_LOGIN] = "counts with its automatic login",
            [EXCLUSION_WITHOUT_BOOT] = "automatic login, timed without its boot",
            [EXCLUSION_AUTOLOGIN] = "automatic login",
            [EXCLUSION_GREETER] = "login at a greeter",
            [EXCLUSION_OTHER_POLICY] = "another policy",
            [EXCLUSION_OLD] = "enough newer sessions",
            [EXCLUSION_ALONE] = "no session with replay near it",
    };

    return (int)e < 0 || e >= _SESSION_EXCLUSION_MAX ? NULL : names[e];
}

static bool was_upgraded(const SessionRecord *s, const SessionRecord *before)
{
    return strcmp(s->kernel, before->kernel) != 0 || s->packages_usec != before->packages_usec;
}

/* Returns true if the session counts as one without replay, or is a control session, but a pack was
 * replayed nevertheless: that of all users at the greeter, or that of the user at the login. Its
 * files were partly in memory. The use of a pack is observed per file only if a pack was replayed.
 */
static bool was_partly_replayed(const SessionRecord *s)
{
    return session_was_replayed(s) ? s->flags & SESSION_CONTROL : s->usage.source == USAGE_PER_FILE;
}

/* Properties of a boot that make an automatic login in it incomparable, too. */
#define BOOT_FLAGS (SESSION_SOFT_REBOOT | SESSION_OFFLINE_UPDATE | SESSION_FSCK | SESSION_EXACT)

/* Returns true if the session is an automatic login in that boot, the last one before it (NULL:
 * none). */
static bool is_automatic_login_of(const SessionRecord *s, const SessionRecord *boot)
{
    return s->stage == STAGE_LOGIN && s->flags & SESSION_AUTOLOGIN && boot && *s->boot_id &&
           strcmp(s->boot_id, boot->boot_id) == 0;
}

/* Returns why the session is not comparable, or EXCLUSION_NONE. `flags` are its flags, and those of
 * BOOT_FLAGS that the boot of an automatic login has. `before` is the previous session of its
 * stage, or NULL. */
static SessionExclusion exclude(const SessionRecord *s, unsigned flags, const SessionRecord *before)
{
    static const struct {
        unsigned flag;
        SessionExclusion exclusion;
    } map[] = {
            {SESSION_LIGHT, EXCLUSION_LIGHT},
            {SESSION_SECOND_LOGIN, EXCLUSION_SECOND_LOGIN},
            {SESSION_SHARED, EXCLUSION_SHARED},
            {SESSION_SOFT_REBOOT, EXCLUSION_SOFT_REBOOT},
            {SESSION_OFFLINE_UPDATE, EXCLUSION_OFFLINE_UPDATE},
            {SESSION_FSCK, EXCLUSION_FSCK},
            {SESSION_EXACT, EXCLUSION_EXACT},
            {SESSION_UNSETTLED, EXCLUSION_UNSETTLED},
    };

    for (size_t i = 0; i < ELEMENTSOF(map); i++)
        if (flags & map[i].flag)
            return map[i].exclusion;
    if (s->ready_usec == SESSION_UNKNOWN || s->ready_usec == 0)
        return EXCLUSION_UNSETTLED;
    if (s->flags & SESSION_AUTOLOGIN && s->began_usec == SESSION_UNKNOWN)
        return EXCLUSION_WITHOUT_BOOT;
    if (was_partly_replayed(s))
        return EXCLUSION_PARTLY_REPLAYED;
    if (!before)
        return EXCLUSION_FIRST;
    return was_upgraded(s, before) ? EXCLUSION_UPGRADED : EXCLUSION_NONE;
}

/* Returns the policy of the newest replay of that stage, or _POLICY_INVALID if there is none. */
static Policy newest_policy(const SessionRecord *sessions, size_t n, Stage stage)
{
    for (size_t i = n; i-- > 0;)
        if (sessions[i].stage == stage && session_was_replayed(&sessions[i]))
            return sessions[i].policy;
    return _POLICY_INVALID;
}

/* Returns the disk of the newest session, or "" if no session states its disk. */
static const char *newest_disk(const SessionRecord *sessions, size_t n)
{
    for (size_t i = n; i-- > 0;)
        if (*sessions[i].disk)
            return sessions[i].disk;
    return "";
}

/* Returns true if most of the newest logins were automatic. The time of such a login contains its
 * boot. */
static bool are_automatic(const SessionRecord *sessions, size_t n)
{
    size_t logins = 0, automatic = 0;

    for (size_t i = n; i-- > 0 && logins < NEWEST_LOGINS;)
        if (sessions[i].stage == STAGE_LOGIN) {
            logins++;
            automatic += (sessions[i].flags & SESSION_AUTOLOGIN) != 0;
        }
    return automatic * 2 > logins;
}

/* Returns why the login is not comparable with the newest logins, or EXCLUSION_NONE. */
static SessionExclusion exclude_by_greeter(const SessionRecord *s, bool automatic)
{
    if (s->stage != STAGE_LOGIN || !!(s->flags & SESSION_AUTOLOGIN) == automatic)
        return EXCLUSION_NONE;
    return automatic ? EXCLUSION_GREETER : EXCLUSION_AUTOLOGIN;
}

void sessions_exclude(const SessionRecord *sessions, size_t n, SessionExclusion *exclusions)
{
    const SessionRecord *before[_STAGE_MAX] = {0};
    bool automatic = are_automatic(sessions, n);
    const char *disk = newest_disk(sessions, n);
    Policy policy[_STAGE_MAX];

    for (Stage stage = 0; stage < _STAGE_MAX; stage++)
        policy[stage] = newest_policy(sessions, n, stage);
    for (size_t i = 0; i < n; i++) {
        const SessionRecord *s = &sessions[i], *boot = before[STAGE_BOOT];
        bool contains_boot = is_automatic_login_of(s, boot);

        exclusions[i] = exclude(s, s->flags | (contains_boot ? boot->flags & BOOT_FLAGS : 0),
                                before[s->stage]);
        if (contains_boot && exclusions[boot - sessions] == EXCLUSION_UNSETTLED)
            exclusions[boot - sessions] = EXCLUSION_WITH_LOGIN;
        if (exclusions[i] == EXCLUSION_NONE && *s->disk && strcmp(s->disk, disk) != 0)
            exclusions[i] = EXCLUSION_OTHER_DISK;
        if (exclusions[i] == EXCLUSION_NONE)
            exclusions[i] = exclude_by_greeter(s, automatic);
        if (exclusions[i] == EXCLUSION_NONE && session_was_replayed(s) &&
            s->policy != policy[s->stage])
            exclusions[i] = EXCLUSION_OTHER_POLICY;
        before[s->stage] = s;
    }
}

static EffectSession effect_session(const SessionRecord *s)
{
    return (EffectSession){.seconds = (double)session_compared_usec(s) / USEC_PER_SEC,
                           .replayed = session_was_replayed(s),
                           .group = s->uid};
}

static SessionExclusion use_to_exclusion(EffectUse u)
{
    return u == EFFECT_OLD ? EXCLUSION_OLD : u == EFFECT_ALONE ? EXCLUSION_ALONE : EXCLUSION_NONE;
}

/* Labels the sessions of a stage that effect_compute() does not count. */
static int label_stage(const SessionRecord *sessions, size_t n, Stage stage, SessionExclusion *e)
{
    _cleanup_free_ EffectSession *v = calloc(n + 1, sizeof(*v));
    _cleanup_free_ EffectUse *uses = calloc(n + 1, sizeof(*uses));
    size_t k = 0;

    if (!v || !uses)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (sessions[i].stage == stage && e[i] == EXCLUSION_NONE)
            v[k++] = effect_session(&sessions[i]);
    CHECK(effect_find_uses(v, k, uses));
    k = 0;
    for (size_t i = 0; i < n; i++)
        if (sessions[i].stage == stage && e[i] == EXCLUSION_NONE)
            e[i] = use_to_exclusion(uses[k++]);
    return 0;
}

int sessions_label(const SessionRecord *sessions, size_t n, size_t window,
                   SessionExclusion *exclusions)
{
    size_t n_old = n > window ? n - window : 0;

    sessions_exclude(sessions, n_old, exclusions);
    for (size_t i = 0; i < n_old; i++)
        if (exclusions[i] == EXCLUSION_NONE)
            exclusions[i] = EXCLUSION_OLD;
    sessions_exclude(sessions + n_old, n - n_old, exclusions + n_old);
    for (Stage s = 0; s < _STAGE_MAX; s++)
        CHECK(label_stage(sessions + n_old, n - n_old, s, exclusions + n_old));
    return 0;
}

/* --- the benefit of a stage ------------------------------------------------------------------- */

void benefit_count(Benefit *b, bool replayed, unsigned flags, usec_t start_realtime_usec)
{
    if (flags & SESSION_EXACT)
        b->n_paused = INTERVAL_SHOWN;
    else if (b->n_paused > 0)
        b->n_paused--;
    if (b->n_undrawn == BENEFIT_UNDRAWN)
        b->n_drawn++;
    else if (replayed)
        b->n_undrawn++;
    if (flags & (SESSION_CONTROL | SESSION_EXACT)) {
        b->n_since_control = 0;
        b->last_control_usec = start_realtime_usec;
    } else
        b->n_since_control++;
}

static bool takes_longer(const Effect *e)
{
    return e->estimated && e->saved < 0;
}

static bool shows_harm(const Effect *e)
{
    return e->known && e->saved_high < 0;
}

/* Returns the index, `from` or above, of the first session whose user has no earlier session, or n.
 */
static size_t next_user(const EffectSession *v, size_t n, size_t from)
{
    for (size_t i = from; i < n; i++) {
        size_t k = 0;

        while (k < i && v[k].group != v[i].group)
            k++;
        if (k == i)
            return i;
    }
    return n;
}

/* Computes the effect of the sessions of one user, or, with `others`, of all other sessions. `buf`
 * has room for n sessions. Returns 0 or -ENOMEM. */
static int effect_of_user(const EffectSession *v, size_t n, uint32_t user, bool others,
                          double error, EffectSession *buf, Effect *ret)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        if ((v[i].group == user) != others)
            buf[k++] = v[i];
    return effect_compute(buf, k, error, ret);
}

/* Corrects the verdicts if the sessions are those of several users. A verdict for all stays only if
 * it also holds when the sessions of any one user are left out, so that no user decides for
 * another. A user's own sessions decide for this user. Returns 0 or -ENOMEM. */
static int judge_users(const EffectSession *v, size_t n, size_t first, Benefit *b)
{
    _cleanup_free_ EffectSession *buf = calloc(n + 1, sizeof(*buf));
    bool single = next_user(v, n, 1) == n;

    if (!buf)
        return -ENOMEM;
    for (size_t i = 0; i < n && !single; i = next_user(v, n, i + 1)) {
        Effect e;

        if (b->slower) {
            CHECK(effect_of_user(v, n, v[i].group, true, INTERVAL_ERROR, buf, &e));
            b->slower = takes_longer(&e);
        }
        if (b->harmful) {
            CHECK(effect_of_user(v + first, n - first, v[i].group, true, BENEFIT_VERDICT_ERROR, buf,
                                 &e));
            b->harmful = shows_harm(&e);
        }
    }
    for (size_t i = first; i < n; i = next_user(v + first, n - first, i + 1 - first) + first) {
        Effect e = b->evidence;

        if (!single)
            CHECK(effect_of_user(v + first, n - first, v[i].group, false, BENEFIT_VERDICT_ERROR,
                                 buf, &e));
        if (shows_harm(&e) && b->n_harmed_users < BENEFIT_USERS_MAX)
            b->harmed_users[b->n_harmed_users++] = v[i].group;
    }
    return 0;
}

static bool was_replayed_since(const EffectSession *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].replayed)
            return true;
    return false;
}

int benefit_judge(const EffectSession *v, const usec_t *starts, size_t n, usec_t now, Benefit *b)
{
    usec_t since = now - MIN(now, BENEFIT_VERDICT_USEC);
    size_t first = 0;

    b->slower = b->harmful = false;
    b->n_harmed_users = 0;
    CHECK(effect_compute(v, n, INTERVAL_ERROR, &b->effect));
    /* A time after `now` comes from a wrong clock: that session may be as old as its neighbours. */
    while (first < n && (starts[first] < since || starts[first] > now))
        first++;
    if (was_replayed_since(v + first, n - first))
        first = MIN(first, n > BENEFIT_VERDICT_SESSIONS ? n - BENEFIT_VERDICT_SESSIONS : 0);
    /* `harmful` is decided again after every session, so it needs a wider interval. */
    CHECK(effect_compute(v + first, n - first, BENEFIT_VERDICT_ERROR, &b->evidence));
    b->slower = takes_longer(&b->effect);
    b->harmful = shows_harm(&b->evidence);
    return judge_users(v, n, first, b);
}

bool benefit_is_harmful(const Benefit *b, uint32_t uid)
{
    for (size_t i = 0; i < b->n_harmed_users; i++)
        if (uid != UID_INVALID && b->harmed_users[i] == uid)
            return true;
    return b->harmful;
}

int benefit_compute(const SessionRecord *sessions, size_t n, Stage stage, usec_t now, Benefit *ret)
{
    _cleanup_free_ SessionExclusion *exclusions = calloc(n + 1, sizeof(*exclusions));
    _cleanup_free_ EffectSession *v = calloc(n + 1, sizeof(*v));
    _cleanup_free_ usec_t *starts = calloc(n + 1, sizeof(*starts));
    _cleanup_free_ EffectUse *uses = calloc(n + 1, sizeof(*uses));
    Benefit b = {.policy = newest_policy(sessions, n, stage),
                 .automatic = are_automatic(sessions, n)};
    size_t k = 0;
    int r;

    if (!exclusions || !v || !starts || !uses)
        return -ENOMEM;
    sessions_exclude(sessions, n, exclusions);
    for (size_t i = 0; i < n; i++) {
        const SessionRecord *s = &sessions[i];

        if (s->stage != stage)
            continue;
        benefit_count(&b, exclusions[i] == EXCLUSION_NONE && session_was_replayed(s), s->flags,
                      s->start_realtime_usec);
        if (exclusions[i] != EXCLUSION_NONE) {
            b.n_left_out++;
            continue;
        }
        starts[k] = s->start_realtime_usec;
        v[k++] = effect_session(s);
    }
    CHECK(effect_find_uses(v, k, uses));
    for (size_t i = 0; i < k; i++)
        b.n_left_out += uses[i] != EFFECT_COUNTED;
    r = benefit_judge(v, starts, k, now, &b);
    if (r >= 0)
        *ret = b;
    return r;
}

const char *replay_off_to_text(Stage stage, const char *reason,
                               char buf[static REPLAY_OFF_TEXT_MAX])
{
    static const char *const settings[_STAGE_MAX] = {"BootPolicy=off", "LoginPolicy=off",
                                                     "LaunchReplay=no"};
    PolicyReason r = policy_reason_from_string(reason);

    if (!reason)
        return NULL;
    if (r == POLICY_REASON_CONFIGURED)
        snprintf(buf, REPLAY_OFF_TEXT_MAX, "off (%s)", settings[stage]);
    else if (r == POLICY_REASON_NO_GAIN || r == POLICY_REASON_HARMFUL)
        snprintf(buf, REPLAY_OFF_TEXT_MAX, "not replayed: %s", policy_reason_to_text(r));
    else
        snprintf(buf, REPLAY_OFF_TEXT_MAX, "not replayed");
    return buf;
}

PolicyReason benefit_keeps(const Benefit *b, Policy old)
{
    const Effect *e = &b->effect;
    bool shown = e->known && e->saved_low > 0;

    if (b->policy != old || shows_harm(e) || (!shown && e->n_replayed < BENEFIT_UNDRAWN))
        return POLICY_REASON_UNKNOWN;
    return shown ? POLICY_REASON_MEASURED : POLICY_REASON_UNDECIDED;
}

/* Returns how many sessions are left in the present block, but at least 2, or 0 if the block
 * already has a control session. */
static uint32_t left_in_block(const Benefit *b)
{
    uint32_t position = (uint32_t)(b->n_drawn % BLOCK_SESSIONS);

    return b->n_since_control < position ? 0 : MAX(BLOCK_SESSIONS - position, 2U);
}

/* Returns true if the last control session (0: there was none) began less than two days before
 * `now`. A time that is two days or more after `now` comes from a wrong clock. It does not count,
 * because it would prevent control sessions until the clock reaches it. */
static bool is_near(usec_t last_control_usec, usec_t now)
{
    usec_t distance = MAX(last_control_usec, now) - MIN(last_control_usec, now);

    return last_control_usec > 0 && distance < CONTROL_DISTANCE_USEC;
}

uint32_t benefit_control_interval(const Benefit *b, double cold_login_seconds, usec_t now)
{
    const Effect *e = &b->effect;

    if (e->n_replayed < BENEFIT_UNDRAWN)
        return 0;
    if (cold_login_seconds > COLD_LOGIN_LONG && is_near(b->last_control_usec, now))
        return 0;
    if (e->known && e->saved_low > 0)
        return b->n_paused > 0 ? 0 : INTERVAL_SHOWN;
    return b->slower ? INTERVAL_SUSPECT : left_in_block(b);
}
