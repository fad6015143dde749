/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* This file has over 500 lines because it contains all states and transitions of one state
 * machine. */

#include "daemon/stages-decide.h"

#include "base/macros.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

typedef struct LoginSession {
    UT_hash_handle hh; /* hashed by id */
    uint32_t uid;
    SessionClass class;
    LoginStart start;
    usec_t began; /* on StageMachine.clock; 0: when this clock was 0, or before */
    bool active, graphical, console, seat;
    bool listed;     /* named since the last LIST_BEGIN */
    bool considered; /* it was decided whether its login is recorded */
    bool member;     /* it belongs to the login that is being recorded */
    bool oom;
    char id[];
} LoginSession;

/* How often a user has logged in since the state machine was created. */
typedef struct LoginUser {
    UT_hash_handle hh; /* hashed by UID */
    uint32_t uid;
    unsigned n_logins, n_attempts;
    bool oom;
} LoginUser;

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(elt) ((elt)->oom = true)

struct StageMachine {
    StageParameters p;
    LoginSession *sessions;
    LoginUser *users;
    usec_t last;  /* `now` of the last event */
    usec_t clock; /* the clock of this state machine, from CLOCK_ZERO; never steps back */
    Stage stage;  /* _STAGE_INVALID: none */
    uint32_t uid;
    usec_t since;       /* when the stage began */
    bool enough;        /* the session's recording has ended */
    uint32_t served;    /* the only user of the session; UID_INVALID: there are several */
    usec_t changed;     /* when `served` was set */
    unsigned n_changes; /* how often it has changed in this session */
    usec_t finished;    /* when the boot finished; USEC_INFINITY: not yet */
    bool display_manager_known, display_manager;
    bool greeter; /* a greeter has run in this boot */
    unsigned n_logins, n_members;
    LoginUser *beginner; /* the user whose session began the login that is being recorded */
    /* The following are valid while the stage may settle. Otherwise `measuring` is
     * USEC_INFINITY. */
    usec_t measuring; /* start of the measurement */
    usec_t sampled;   /* the last sample; USEC_INFINITY: none yet */
    uint64_t stalled_usec, n_starts, busy_usec;
    usec_t quiet_since;  /* the last sample that was not quiet */
    usec_t active_until; /* the middle of the time before that sample */
};

/* An event may have happened before headstartd started. The clock starts at CLOCK_ZERO, so that the
 * times of such events are not negative. */
#define CLOCK_ZERO (24 * USEC_PER_HOUR)

/* If the PAM service does not show whether a login is automatic, a session that begins within this
 * time after the boot is an automatic login. */
#define AUTOLOGIN_AFTER_USEC (2 * USEC_PER_SEC)

/* A login that ends before it settles does not count as a login, but recording it takes effort.
 * Therefore the attempts of a user are limited, too: to this many for each login that
 * user_logins_max permits. */
#define ATTEMPTS_PER_LOGIN 8

/* One further user who comes and leaves changes the users of a session twice without delay. */
#define FREE_CHANGES         2U
#define CHANGE_DOUBLINGS_MAX 10U

SessionClass session_class_from_string(const char *s)
{
    static const char *const users[] = {"user", "user-early", "user-light", "user-early-light"};

    if (s && strcmp(s, "greeter") == 0)
        return SESSION_CLASS_GREETER;
    return string_table_lookup(users, ELEMENTSOF(users), s) >= 0 ? SESSION_CLASS_USER
                                                                 : SESSION_CLASS_OTHER;
}

LoginStart login_start_from_service(const char *s)
{
    static const char suffix[] = "-autologin";
    size_t n = s ? strlen(s) : 0;

    if (n > strlen(suffix) && strcmp(s + n - strlen(suffix), suffix) == 0)
        return LOGIN_START_AUTOMATIC;
    return s && strcmp(s, "sshd") == 0 ? LOGIN_START_REQUESTED : LOGIN_START_UNKNOWN;
}

StageMachine *stage_machine_new(const StageParameters *p, usec_t now)
{
    StageMachine *m = calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    m->p = *p;
    m->last = now;
    m->clock = m->since = CLOCK_ZERO;
    m->stage = STAGE_BOOT;
    m->uid = UID_INVALID;
    m->finished = m->measuring = m->sampled = USEC_INFINITY;
    return m;
}

StageMachine *stage_machine_free(StageMachine *m)
{
    LoginSession *s, *next;
    LoginUser *u, *next_user;

    if (!m)
        return NULL;
    HASH_ITER (hh, m->sessions, s, next) {
        HASH_DEL(m->sessions, s);
        free(s);
    }
    HASH_ITER (hh, m->users, u, next_user) {
        HASH_DEL(m->users, u);
        free(u);
    }
    free(m);
    return NULL;
}

/* --- login sessions --------------------------------------------------------------------------- */

static LoginSession *find_session(const StageMachine *m, const char *id)
{
    LoginSession *s;

    HASH_FIND_STR(m->sessions, id, s);
    return s;
}

static void remove_session(StageMachine *m, LoginSession *s)
{
    if (!s)
        return;
    m->n_members -= s->member;
    HASH_DEL(m->sessions, s);
    free(s);
}

static int put_session(StageMachine *m, const StageEvent *e)
{
    LoginSession *s = find_session(m, e->id);

    if (!s) {
        size_t n = strlen(e->id);

        if (HASH_COUNT(m->sessions) >= STAGE_SESSIONS_MAX)
            return 0;
        s = calloc(1, sizeof(*s) + n + 1);
        if (!s)
            return -ENOMEM;
        memcpy(s->id, e->id, n + 1);
        s->began = m->clock - MIN(e->age, m->clock);
        HASH_ADD_STR(m->sessions, id, s);
        if (s->oom) {
            free(s);
            return -ENOMEM;
        }
    }
    s->uid = e->uid;
    s->class = e->class;
    s->start = e->start;
    m->greeter = m->greeter || e->class == SESSION_CLASS_GREETER;
    s->active = e->active;
    s->graphical = e->graphical;
    s->console = e->console;
    s->seat = e->seat;
    s->listed = true;
    return 0;
}

static void begin_list(StageMachine *m)
{
    for (LoginSession *s = m->sessions; s; s = s->hh.next)
        s->listed = false;
}

static void end_list(StageMachine *m)
{
    LoginSession *s, *next;

    HASH_ITER (hh, m->sessions, s, next)
        if (!s->listed)
            remove_session(m, s);
}

static bool is_login(const StageMachine *m, const LoginSession *s)
{
    if (s->class != SESSION_CLASS_USER || !m->display_manager_known)
        return false;
    return !m->display_manager || s->graphical || (s->seat && !s->console);
}

static bool greeter_is_active(const StageMachine *m)
{
    for (const LoginSession *s = m->sessions; s; s = s->hh.next)
        if (s->class == SESSION_CLASS_GREETER && s->active)
            return true;
    return false;
}

/* --- quiet ------------------------------------------------------------------------------------ */

static void stop_measuring(StageMachine *m)
{
    m->measuring = m->sampled = USEC_INFINITY;
}

static void start_measuring(StageMachine *m)
{
    if (m->measuring != USEC_INFINITY)
        return;
    m->measuring = m->quiet_since = m->active_until = m->clock;
    m->sampled = USEC_INFINITY;
}

/* Returns true if little happened in the `span` before the sample. Divides the span before it
 * multiplies, and does not multiply the counters, so that nothing overflows. */
static bool is_quiet(const StageMachine *m, const StageEvent *e, usec_t span)
{
    usec_t starts_max = span / USEC_PER_SEC * m->p.starts_per_sec +
                        span % USEC_PER_SEC * m->p.starts_per_sec / USEC_PER_SEC;

    if (e->n_starts - m->n_starts > MAX(starts_max, (usec_t)1))
        return false;
    if (e->has_pressure && e->stalled_usec - m->stalled_usec > span / 100 * m->p.pressure_percent)
        return false;
    return !e->has_busy || m->stage != STAGE_LOGIN ||
           e->busy_usec - m->busy_usec <= span / 100 * m->p.busy_percent;
}

static void add_sample(StageMachine *m, const StageEvent *e)
{
    bool comparable = m->sampled != USEC_INFINITY && e->stalled_usec >= m->stalled_usec &&
                      e->n_starts >= m->n_starts && e->busy_usec >= m->busy_usec;
    usec_t span = m->clock - m->sampled;

    if (m->measuring == USEC_INFINITY)
        return;
    /* A sample that follows the last one so soon is not used. The next sample covers its time. */
    if (comparable && span < m->p.sample_usec / 4)
        return;
    if (!comparable || !is_quiet(m, e, span)) {
        m->quiet_since = m->clock;
        m->active_until = comparable ? m->clock - span / 2 : m->clock;
    }
    m->sampled = m->clock;
    m->stalled_usec = e->stalled_usec;
    m->n_starts = e->n_starts;
    m->busy_usec = e->busy_usec;
}

static bool is_settled(const StageMachine *m)
{
    return m->measuring != USEC_INFINITY && m->sampled != USEC_INFINITY &&
           m->clock - m->quiet_since >= m->p.quiet_usec;
}

/* --- stages ----------------------------------------------------------------------------------- */

static void leave(StageMachine *m, StageAction action, Stage stage, uint32_t uid, bool drop,
                  StageDecision *ret)
{
    for (LoginSession *s = m->sessions; s && m->n_members > 0; s = s->hh.next)
        if (s->member) {
            s->member = false;
            m->n_members--;
        }
    m->stage = stage;
    m->uid = uid;
    m->since = m->clock;
    m->enough = false;
    stop_measuring(m);
    *ret = (StageDecision){.action = action,
                           .stage = stage,
                           .uid = uid,
                           .drop = drop,
                           .settled_ago = USEC_INFINITY};
}

static void pause_stage(StageMachine *m, bool drop, StageDecision *ret)
{
    leave(m, STAGE_ACTION_PAUSE, _STAGE_INVALID, UID_INVALID, drop, ret);
}

static bool others_are_logged_in(const StageMachine *m, uint32_t uid)
{
    for (const LoginSession *s = m->sessions; s; s = s->hh.next)
        if (is_login(m, s) && s->uid != uid)
            return true;
    return false;
}

/* Returns a session of `uid` or, if that user is not logged in, of the user who logged in last.
 * Returns NULL if no user is logged in. */
static const LoginSession *find_login(const StageMachine *m, uint32_t uid)
{
    const LoginSession *best = NULL;

    for (const LoginSession *s = m->sessions; s; s = s->hh.next)
        if (is_login(m, s) &&
            (!best || s->uid == uid || (best->uid != uid && s->began > best->began)))
            best = s;
    return best;
}

/* Returns true for a login of a further user in the session of one, if it does not count yet: a
 * program that logs in for a second every minute must not change the session each time. */
static bool is_too_young(const StageMachine *m, const LoginSession *s)
{
    return m->served != UID_INVALID && s->uid != m->served &&
           m->clock - s->began <= m->p.users_usec;
}

/* Returns the only user of the session, or UID_INVALID if there are several. */
static uint32_t only_user(const StageMachine *m)
{
    const LoginSession *best = find_login(m, m->served);

    for (const LoginSession *s = m->sessions; s && best; s = s->hh.next)
        if (is_login(m, s) && s->uid != best->uid &&
            (best->uid != m->served || !is_too_young(m, s)))
            return UID_INVALID;
    return best ? best->uid : UID_INVALID;
}

/* Begins the session of `uid` or, if that user is no longer logged in, of the user who logged in
 * last. Pauses if no user is logged in. */
static void begin_session(StageMachine *m, uint32_t uid, bool drop, StageDecision *ret)
{
    const LoginSession *best = find_login(m, uid);

    if (!best) {
        pause_stage(m, drop, ret);
        return;
    }
    leave(m, STAGE_ACTION_BEGIN, STAGE_SESSION, uid == UID_INVALID ? uid : best->uid, drop, ret);
    ret->others = others_are_logged_in(m, best->uid);
    /* That one user of a shared login is left is decided later, because the recording belongs to no
     * single user. */
    m->served = ret->others ? UID_INVALID : ret->uid;
    m->changed = m->clock;
    m->n_changes = 0;
}

static void join(StageMachine *m, LoginSession *s, StageDecision *ret)
{
    s->member = true;
    m->n_members++;
    stop_measuring(m); /* the new session has to settle, too */
    if (s->uid == m->uid || m->uid == UID_INVALID)
        return;
    m->uid = UID_INVALID;
    if (ret->action == STAGE_ACTION_NONE)
        ret->action = STAGE_ACTION_SHARE;
    ret->uid = UID_INVALID;
}

/* Counts an attempt to record a login of that user. Returns the user, or NULL if the user has made
 * too many attempts or if memory runs out. */
static LoginUser *count_attempt(StageMachine *m, uint32_t uid)
{
    LoginUser *u;

    HASH_FIND(hh, m->users, &uid, sizeof(uid), u);
    if (!u) {
        if (HASH_COUNT(m->users) >= STAGE_SESSIONS_MAX)
            return NULL;
        u = calloc(1, sizeof(*u));
        if (!u)
            return NULL;
        u->uid = uid;
        HASH_ADD(hh, m->users, uid, sizeof(uid), u);
        if (u->oom) {
            free(u);
            return NULL;
        }
    }
    if (u->n_attempts >= ATTEMPTS_PER_LOGIN * m->p.user_logins_max)
        return NULL;
    u->n_attempts++;
    return u;
}

/* Counts a login of that user that is recorded. Returns the user, or NULL if no further login of
 * the user is to be recorded or if memory runs out. Because the logins and attempts of each user
 * are limited, one user cannot use up the recordings of others. */
static LoginUser *count_login(StageMachine *m, uint32_t uid)
{
    LoginUser *u = count_attempt(m, uid);

    if (!u || m->n_logins >= m->p.logins_max || u->n_logins >= m->p.user_logins_max)
        return NULL;
    u->n_logins++;
    m->n_logins++;
    return u;
}

/* Returns true for an automatic login: no greeter has run, and the PAM service is one of automatic
 * logins. If the service does not show it (LOGIN_START_UNKNOWN), the session must begin during the
 * boot or so soon after it that no person can have typed a name and a password. */
static bool is_automatic(const StageMachine *m, const LoginSession *s)
{
    if (m->greeter || s->start == LOGIN_START_REQUESTED)
        return false;
    return s->start == LOGIN_START_AUTOMATIC || m->finished == USEC_INFINITY ||
           s->began < m->finished + AUTOLOGIN_AFTER_USEC;
}

/* Decides what to do about a new login session, or about one that has become a login. */
static void consider(StageMachine *m, LoginSession *s, StageDecision *ret)
{
    LoginUser *user;
    bool automatic;

    if (!is_login(m, s))
        return;
    /* A session without a seat does not end a boot. A login over the network is then no login to
     * record; any other session, for example of a kiosk's service, is considered again when the
     * boot has finished. */
    if (m->stage == STAGE_BOOT && !s->seat && m->finished == USEC_INFINITY) {
        s->considered = s->start == LOGIN_START_REQUESTED;
        return;
    }
    s->considered = true;
    if (s->began < CLOCK_ZERO || m->clock - s->began > m->p.late_max_usec)
        return;
    if (m->stage == STAGE_LOGIN) {
        /* A login that several users share is learned for none of them. Therefore one user can do
         * this to the logins of others only as often as the attempts of this user permit. */
        if (count_attempt(m, s->uid))
            join(m, s, ret);
        return;
    }
    user = count_login(m, s->uid);
    if (!user) {
        if (m->stage != STAGE_SESSION)
            begin_session(m, s->uid, false, ret);
        return;
    }
    m->beginner = user;
    automatic = is_automatic(m, s);
    leave(m, STAGE_ACTION_BEGIN, STAGE_LOGIN, s->uid, false, ret);
    ret->automatic = automatic;
    join(m, s, ret);
}

/* Returns for how long the stage has been quiet; USEC_INFINITY: it has not settled. The last
 * activity may have ended at any time before the sample that shows it, so the middle of that time
 * has no systematic error. */
static usec_t settled_ago(const StageMachine *m)
{
    return is_settled(m) ? m->clock - m->active_until : USEC_INFINITY;
}

static void check_boot(StageMachine *m, StageDecision *ret)
{
    bool finished = m->finished != USEC_INFINITY;
    bool finished_earlier = m->finished < CLOCK_ZERO; /* before headstartd started */
    bool overdue = !finished && m->clock - m->since > m->p.boot_max_usec;
    usec_t ago;

    if (finished_earlier || overdue)
        pause_stage(m, true, ret);
    else if (finished && m->display_manager_known && !m->display_manager) {
        pause_stage(m, false, ret);
        ret->settled_ago = m->clock - m->finished;
    } else if (greeter_is_active(m))
        start_measuring(m);
    else
        stop_measuring(m);
    if (m->stage != STAGE_BOOT)
        return;
    /* The bounds serve display managers without a greeter, and greeters that are never quiet. */
    ago = settled_ago(m);
    if (ago != USEC_INFINITY ||
        (m->measuring != USEC_INFINITY && m->clock - m->measuring > m->p.settle_max_usec) ||
        (finished && m->clock - m->finished > m->p.settle_max_usec)) {
        pause_stage(m, false, ret);
        ret->settled_ago = ago;
    }
}

/* Starts to take samples once the boot has finished and all sessions of the login are up. Therefore
 * an automatic login includes the rest of the boot. */
static void measure_login(StageMachine *m)
{
    bool up = m->finished != USEC_INFINITY;

    for (const LoginSession *s = m->sessions; s && up; s = s->hh.next)
        up = !s->member || s->active;
    if (up)
        start_measuring(m);
}

static void check_login(StageMachine *m, StageDecision *ret)
{
    usec_t ago = settled_ago(m);

    if (m->n_members == 0) {
        m->n_logins--;
        m->beginner->n_logins--;
        begin_session(m, m->uid, true, ret);
    } else if (ago != USEC_INFINITY || m->clock - m->since > m->p.settle_max_usec) {
        begin_session(m, m->uid, false, ret);
        ret->settled_ago = ago;
    }
}

/* Returns how long the users of the session stay as they are after the last change. This time
 * doubles, because a user can log in and out, or change the type of a session, in a loop. The
 * session of a user who has left ends at once. */
static usec_t change_delay(const StageMachine *m)
{
    const LoginSession *left = m->served == UID_INVALID ? NULL : find_login(m, m->served);

    if (m->n_changes < FREE_CHANGES ||
        (m->served != UID_INVALID && (!left || left->uid != m->served)))
        return 0;
    return m->p.users_usec << MIN(m->n_changes - FREE_CHANGES, CHANGE_DOUBLINGS_MAX);
}

static void change_users(StageMachine *m, StageDecision *ret)
{
    m->served = only_user(m);
    m->changed = m->clock;
    m->n_changes++;
    *ret = (StageDecision){
            .action = STAGE_ACTION_USERS,
            .stage = STAGE_SESSION,
            .uid = m->served == UID_INVALID ? m->uid : m->served,
            .others = m->served == UID_INVALID,
            .settled_ago = USEC_INFINITY,
    };
}

static void check_session(StageMachine *m, StageDecision *ret)
{
    bool there = false;

    for (const LoginSession *s = m->sessions; s && !there; s = s->hh.next)
        there = is_login(m, s) && (s->uid == m->uid || m->uid == UID_INVALID);
    if (!there)
        begin_session(m, m->uid, false, ret);
    else if (m->served != only_user(m) && m->clock - m->changed >= change_delay(m))
        change_users(m, ret);
    else if (!m->enough && m->clock - m->since > m->p.session_max_usec) {
        m->enough = true;
        *ret = (StageDecision){
                .action = STAGE_ACTION_ENOUGH,
                .stage = STAGE_SESSION,
                .uid = m->uid,
                .settled_ago = USEC_INFINITY,
        };
    }
}

/* Begins the session of a user whose login is not recorded, because it began before headstartd
 * started or was known late. The session begins when a login that is recorded would have ended at
 * the latest. */
static void check_pause(StageMachine *m, StageDecision *ret)
{
    const LoginSession *s = find_login(m, UID_INVALID);

    if (s && m->clock - s->began > m->p.settle_max_usec)
        begin_session(m, s->uid, false, ret);
}

static void advance_clock(StageMachine *m, usec_t now)
{
    if (now > m->last)
        m->clock += MIN(now - m->last, USEC_INFINITY / 2 - m->clock);
    m->last = now;
}

/* Updates sessions, counters and flags from the event. Returns 0 or -ENOMEM. */
static int apply_event(StageMachine *m, const StageEvent *e)
{
    switch (e->kind) {
    case STAGE_EVENT_BOOT_FINISHED:
        if (m->finished == USEC_INFINITY)
            m->finished = m->clock - MIN(e->age, m->clock);
        break;
    case STAGE_EVENT_DISPLAY_MANAGER:
        m->display_manager_known = true;
        m->display_manager = e->active;
        break;
    case STAGE_EVENT_SESSION:
        return put_session(m, e);
    case STAGE_EVENT_SESSION_GONE:
        remove_session(m, find_session(m, e->id));
        break;
    case STAGE_EVENT_LIST_BEGIN:
        begin_list(m);
        break;
    case STAGE_EVENT_LIST_END:
        end_list(m);
        break;
    case STAGE_EVENT_SAMPLE:
        add_sample(m, e);
        break;
    default:
        break;
    }
    return 0;
}

/* Considers each login session that may have become a login by this event. */
static void consider_logins(StageMachine *m, const StageEvent *e, StageDecision *ret)
{
    LoginSession *s;

    if (e->kind == STAGE_EVENT_SESSION) {
        s = find_session(m, e->id);
        if (s && !s->considered)
            consider(m, s, ret);
    } else if (e->kind == STAGE_EVENT_DISPLAY_MANAGER || e->kind == STAGE_EVENT_LIST_END ||
               e->kind == STAGE_EVENT_BOOT_FINISHED)
        for (s = m->sessions; s; s = s->hh.next)
            if (!s->considered)
                consider(m, s, ret);
}

static void check_stage(StageMachine *m, StageDecision *ret)
{
    if (m->stage == STAGE_BOOT)
        check_boot(m, ret);
    else if (m->stage == STAGE_LOGIN)
        check_login(m, ret);
    else if (m->stage == STAGE_SESSION)
        check_session(m, ret);
    else
        check_pause(m, ret);
}

int stage_machine_feed(StageMachine *m, const StageEvent *e, StageDecision *ret)
{
    StageDecision d = {.stage = _STAGE_INVALID, .uid = UID_INVALID, .settled_ago = USEC_INFINITY};
    int r;

    advance_clock(m, e->now);
    r = apply_event(m, e);
    if (r < 0)
        return r;
    /* A boot that had ended before headstartd started must be dropped here, before a login can end
     * it. */
    if (m->stage == STAGE_BOOT && m->finished < CLOCK_ZERO)
        check_boot(m, &d);
    consider_logins(m, e, &d);
    if (d.action == STAGE_ACTION_NONE)
        check_stage(m, &d);
    if (m->stage == STAGE_LOGIN)
        measure_login(m);
    *ret = d;
    return 0;
}

/* --- what the machine awaits ------------------------------------------------------------------ */

const char *stage_machine_awaits(const StageMachine *m)
{
    if (m->stage == STAGE_SESSION)
        return "the end of the session";
    if (m->stage != STAGE_BOOT && m->stage != STAGE_LOGIN)
        return "a login";
    if (m->measuring != USEC_INFINITY)
        return m->stage == STAGE_BOOT ? "the greeter to be quiet" : "the session to settle";
    if (m->finished == USEC_INFINITY)
        return "the end of the boot";
    if (m->stage == STAGE_LOGIN)
        return "the session to become active";
    return m->display_manager_known ? "the greeter" : "the display manager";
}

/* Returns the time until `span` has passed since `since`, at least 1. */
static usec_t time_left(usec_t clock, usec_t since, usec_t span)
{
    return span > clock - since ? span - (clock - since) + 1 : 1;
}

/* Returns the time until other users of the session may have to be decided. */
static usec_t users_due(const StageMachine *m)
{
    usec_t due = m->served == only_user(m) ? USEC_INFINITY
                                           : time_left(m->clock, m->changed, change_delay(m));

    for (const LoginSession *s = m->sessions; s; s = s->hh.next)
        if (is_login(m, s) && is_too_young(m, s))
            due = MIN(due, time_left(m->clock, s->began, m->p.users_usec));
    return due;
}

/* Samples lie on full half seconds of the clock, so the time from the beginning of a login to its
 * first sample differs from login to login. With a fixed time, all logins of nearly equal length
 * would have the same error. */
usec_t stage_machine_next(const StageMachine *m, bool *ret_sample)
{
    const LoginSession *login;
    usec_t enough;

    *ret_sample = m->measuring != USEC_INFINITY;
    if (*ret_sample)
        return m->sampled == USEC_INFINITY ? m->p.sample_usec - m->clock % m->p.sample_usec
                                           : m->p.sample_usec;
    switch (m->stage) {
    case STAGE_BOOT:
        return m->finished == USEC_INFINITY
                       ? time_left(m->clock, m->since, m->p.boot_max_usec)
                       : time_left(m->clock, m->finished, m->p.settle_max_usec);
    case STAGE_LOGIN:
        return time_left(m->clock, m->since, m->p.settle_max_usec);
    case STAGE_SESSION:
        enough = m->enough ? USEC_INFINITY : time_left(m->clock, m->since, m->p.session_max_usec);
        return MIN(enough, users_due(m));
    default:
        login = find_login(m, UID_INVALID); /* as in check_pause() */
        return login ? time_left(m->clock, login->began, m->p.settle_max_usec) : USEC_INFINITY;
    }
}
