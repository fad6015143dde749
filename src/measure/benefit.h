/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Computes from the history what replay gains on this machine. It decides which sessions are
 * comparable, how often a session without replay is needed, and whether a harmful policy is
 * switched off. Pure. */

#include "measure/effect.h"
#include "measure/session-record.h"

/* Why a session is left out of the comparison. */
typedef enum SessionExclusion {
    EXCLUSION_NONE,
    EXCLUSION_LIGHT,
    EXCLUSION_UNSETTLED,
    EXCLUSION_SECOND_LOGIN,
    EXCLUSION_SHARED,
    EXCLUSION_SOFT_REBOOT,
    EXCLUSION_OFFLINE_UPDATE,
    EXCLUSION_FSCK,
    EXCLUSION_EXACT,
    EXCLUSION_PARTLY_REPLAYED, /* a control session for one pack, in which another was replayed */
    EXCLUSION_FIRST,           /* the packages before this session are unknown */
    EXCLUSION_OTHER_DISK,      /* on another disk than the newest session */
    EXCLUSION_UPGRADED,        /* packages or the kernel changed since the previous session */
    EXCLUSION_WITH_LOGIN,      /* a boot that an automatic login ended, whose time contains it */
    EXCLUSION_WITHOUT_BOOT,    /* an automatic login whose time does not contain its boot */
    EXCLUSION_AUTOLOGIN,       /* an automatic login, unlike most of the newest logins */
    EXCLUSION_GREETER,         /* a login at a greeter, unlike most of the newest logins */
    EXCLUSION_OTHER_POLICY,    /* another policy than that of the newest replay */
    EXCLUSION_OLD,             /* enough newer sessions are compared */
    EXCLUSION_ALONE,           /* no session with replay, of the same user, is near it */
    _SESSION_EXCLUSION_MAX,
    _SESSION_EXCLUSION_INVALID = -EINVAL,
} SessionExclusion;

/* Returns a text for people, such as "first session after an upgrade", or NULL for
 * EXCLUSION_NONE. */
const char *session_exclusion_to_string(SessionExclusion e);

/* Sets exclusions[i] for each of n sessions. The sessions are of any stages, the oldest first. */
void sessions_exclude(const SessionRecord *sessions, size_t n, SessionExclusion *exclusions);

/* Like sessions_exclude(), and also sets EXCLUSION_OLD and EXCLUSION_ALONE. The sessions with
 * EXCLUSION_NONE are then exactly those that the effects of the newest `window` sessions count.
 * Returns 0 or -ENOMEM. */
int sessions_label(const SessionRecord *sessions, size_t n, size_t window,
                   SessionExclusion *exclusions);

/* At most this many users have a verdict of their own. */
#define BENEFIT_USERS_MAX 16U

/* The benefit of one stage. No user decides for another: `harmful` and `slower` also hold when the
 * sessions of any one user are left out. */
typedef struct Benefit {
    Effect effect; /* with its 95 % interval */
    bool slower;   /* by the estimate, sessions with replay take longer */
    bool harmful;  /* the policy was shown to do harm and must be off */
    uint32_t harmed_users[BENEFIT_USERS_MAX]; /* the policy was shown to do harm to these users; it
                                                 must be off for them */
    size_t n_harmed_users;
    Effect evidence; /* the effect in the last BENEFIT_VERDICT_USEC, or, if replay was used in this
                        time, in the newest BENEFIT_VERDICT_SESSIONS sessions if they are more; with
                        the wider interval that decides `harmful` */
    Policy policy;  /* the policy to which the effect belongs; _POLICY_INVALID: nothing was replayed
                       yet */
    bool automatic; /* most of the newest logins are automatic: the logins are compared, each with
                       its boot, and the boots are not compared alone */
    /* Sessions are drawn in blocks (benefit_control_interval()). */
    size_t n_undrawn;       /* comparable sessions with replay that came before the first block, at
                               most BENEFIT_UNDRAWN */
    size_t n_drawn;         /* sessions since then */
    size_t n_since_control; /* sessions since the last control session or exact recording */
    size_t n_paused;        /* sessions for which an exact recording takes the place of a control
                               session, once replay was shown to gain time */
    usec_t last_control_usec; /* wall clock; 0: there was none */
    size_t n_left_out;        /* sessions that are not comparable */
} Benefit;

/* Control sessions are drawn after this many comparable sessions with replay. */
#define BENEFIT_UNDRAWN 3U

/* A policy that is off because of its harm is tried again after this time. */
#define BENEFIT_VERDICT_USEC (90 * 24 * USEC_PER_HOUR)

/* The verdict needs about this many sessions. A machine that boots every week has fewer in
 * BENEFIT_VERDICT_USEC. */
#define BENEFIT_VERDICT_SESSIONS 30U

/* A policy is switched off if the interval of its effect, computed with this error, lies below
 * zero. The interval is computed again after each session, so its error is much smaller than 0.05.
 * A simulation in docs/benefit.md shows how often a policy is switched off by mistake. */
#define BENEFIT_VERDICT_ERROR 0.015

/* Computes the first six members of *b, as of `now` (wall clock), from n comparable sessions,
 * oldest first, which began at `starts`. A time after `now` ends no row of old sessions. The group
 * of a session is its user. The other members stay. Returns 0 or -ENOMEM. */
int benefit_judge(const EffectSession *v, const usec_t *starts, size_t n, usec_t now, Benefit *b);

/* Counts one more session of the stage, for benefit_control_interval(). The session began at that
 * wall-clock time. `replayed`: it is comparable and was replayed. Of `flags` (SessionFlags) only
 * SESSION_CONTROL and SESSION_EXACT count. */
void benefit_count(Benefit *b, bool replayed, unsigned flags, usec_t start_realtime_usec);

/* Returns true if the policy must be off for that user (UID_INVALID: for all users). */
bool benefit_is_harmful(const Benefit *b, uint32_t uid);

/* Decides whether a pack keeps the policy `old` of the pack before, although the planner predicts
 * less time for another policy. Returns the reason: POLICY_REASON_MEASURED if the interval of the
 * gain of `old` lies above zero; POLICY_REASON_UNDECIDED if at least BENEFIT_UNDRAWN comparable
 * sessions were replayed with `old` and there is no interval yet, or it contains zero. Returns
 * POLICY_REASON_UNKNOWN if the policy is not kept: the interval lies below zero, or too few
 * sessions were replayed with `old`, for example because the machine has another disk. */
PolicyReason benefit_keeps(const Benefit *b, Policy old);

/* Writes for people why a stage is not replayed: "off (BootPolicy=off)", or "not replayed: no
 * policy is predicted to gain more than it may cost". `reason` is the word of a PolicyReason.
 * STAGE_SESSION stands for the starts of applications in sessions. Returns buf, or NULL if `reason`
 * is NULL. */
#define REPLAY_OFF_TEXT_MAX 112
const char *replay_off_to_text(Stage stage, const char *reason,
                               char buf[static REPLAY_OFF_TEXT_MAX]);

/* Computes the benefit of a stage as of `now` (wall clock). Returns 0 or -ENOMEM. */
int benefit_compute(const SessionRecord *sessions, size_t n, Stage stage, usec_t now, Benefit *ret);

/* Returns N if the next session of a stage is to be a control session with probability 1 / N; 0:
 * no control session. `cold_login_seconds`: the time of a login without replay; 0: not known.
 *
 *   - The first BENEFIT_UNDRAWN sessions with replay: no control session.
 *   - Then 1 in 10, until the interval excludes zero. The sessions form blocks of ten, and one
 *     session of each block is drawn, each with the same probability. N is therefore the number of
 *     sessions that are left in the block, or 0 if the block already has its control session. N is
 *     at least 2, because the boots that follow use the same N until the next plan.
 *   - While `slower` holds: 1 in 2. A control session then costs nothing.
 *   - Once replay was shown to gain time: 1 in 101. A control session loses the gain of one
 *     session, so it costs 1 % of the gain of the other hundred. An exact recording costs the
 *     same, so it is followed by 101 sessions without a control session.
 *   - If a login without replay takes over 10 seconds: no control session within two days of the
 *     last one. */
uint32_t benefit_control_interval(const Benefit *b, double cold_login_seconds, usec_t now);
