/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides when boot, login and session begin and end: a state machine over events of systemd,
 * logind and the kernel. Pure: events in, decisions out.
 *
 *            greeter up and quiet,          a user's session            it has settled
 *     boot ------------------------> none -------------------> login ------------------> session
 *       |    or default target              ^        |  gone before: dropped      |  gone, or long
 *       +---- user's session (automatic) ---|--------+                            |
 *                                           +-------------------------------------+
 *
 * A stage has settled when for some time tasks wait little for I/O and few applications start. A
 * login also needs mostly idle processors, because a desktop that is still drawing itself on a slow
 * machine may read nothing for seconds. After a time limit a boot or login ends even if it has not
 * settled.
 *
 * On a machine with a display manager a login session counts as a login if it is graphical, or if
 * it has a seat and is not on a console. On other machines logins on a console and by ssh count,
 * too. One stage is recorded at a time. If a user logs in while another user's login is being
 * recorded, the recording covers both, and its trace belongs to no single user.
 *
 * During a session further users log in without a login that is recorded, and users leave. The
 * session then continues with the users who are there. If it has one user, a further one counts
 * after `users_usec`. After two changes each further one waits for `users_usec` and twice as long
 * each time, so that nobody disturbs the session of another user by logging in and out. */

#include "base/time-util.h"
#include "base/uid.h"
#include "base/vocabulary.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct StageParameters {
    usec_t quiet_usec;         /* this much quiet time means settled */
    usec_t settle_max_usec;    /* after this time a stage ends even if it has not settled */
    usec_t boot_max_usec;      /* a boot that takes longer is not an ordinary one and is dropped */
    usec_t session_max_usec;   /* the recorded part of a session */
    usec_t late_max_usec;      /* a login that began longer ago is not recorded */
    usec_t sample_usec;        /* time between two samples while a stage may settle */
    usec_t users_usec;         /* a further user of a session counts after this time */
    unsigned pressure_percent; /* quiet: tasks waited for I/O at most this share of the time, … */
    unsigned starts_per_sec;   /* … at most this many applications started, … */
    unsigned busy_percent; /* … and, in a login, the busy time of all processors was at most this
                              share of the time */
    unsigned logins_max;   /* limit of logins recorded in one boot: later ones have warm caches */
    unsigned user_logins_max; /* limit of the logins of one user */
} StageParameters;

#define STAGE_PARAMETERS_DEFAULT                     \
    ((StageParameters){                              \
            .quiet_usec = 3 * USEC_PER_SEC,          \
            .settle_max_usec = 120 * USEC_PER_SEC,   \
            .boot_max_usec = 600 * USEC_PER_SEC,     \
            .session_max_usec = 1800 * USEC_PER_SEC, \
            .late_max_usec = 10 * USEC_PER_SEC,      \
            .sample_usec = 500 * USEC_PER_MSEC,      \
            .users_usec = 60 * USEC_PER_SEC,         \
            .pressure_percent = 10,                  \
            .starts_per_sec = 4,                     \
            .busy_percent = 50,                      \
            .logins_max = 16,                        \
            .user_logins_max = 4,                    \
    })

/* At most this many simultaneous login sessions; others are ignored. */
#define STAGE_SESSIONS_MAX 16384U

/* logind's class of a session. */
typedef enum SessionClass {
    SESSION_CLASS_OTHER, /* background, manager, lock-screen, and any that is not known */
    SESSION_CLASS_USER,
    SESSION_CLASS_GREETER,
} SessionClass;

/* Converts logind's word. NULL and unknown words are OTHER. */
SessionClass session_class_from_string(const char *s);

/* How a session started, as far as its PAM service shows. */
typedef enum LoginStart {
    LOGIN_START_UNKNOWN,   /* a service for both kinds of login, such as login(1) */
    LOGIN_START_AUTOMATIC, /* the display manager logged the user in without a password */
    LOGIN_START_REQUESTED, /* a user logged in over the network */
} LoginStart;

/* Converts the PAM service of a session. Names that end in "-autologin" (those of gdm, lightdm and
 * sddm) are AUTOMATIC, sshd is REQUESTED; NULL and all others are UNKNOWN. */
LoginStart login_start_from_service(const char *s);

typedef enum StageEventKind {
    STAGE_EVENT_TIME,            /* time has passed, nothing else */
    STAGE_EVENT_BOOT_FINISHED,   /* default target reached or startup finished, `age` ago */
    STAGE_EVENT_DISPLAY_MANAGER, /* `active`: one runs or will run; not `active`: none will run */
    STAGE_EVENT_SESSION,         /* a login session is new or has changed */
    STAGE_EVENT_SESSION_GONE,    /* the login session `id` has ended */
    STAGE_EVENT_LIST_BEGIN,      /* a list of all login sessions follows, one event each, … */
    STAGE_EVENT_LIST_END,        /* … and is complete: sessions that it did not name are gone */
    STAGE_EVENT_SAMPLE,          /* counters of the kernel */
    _STAGE_EVENT_MAX,
} StageEventKind;

typedef struct StageEvent {
    StageEventKind kind;
    usec_t now;  /* on any clock that runs while the machine does; a step back counts as no time */
    usec_t age;  /* how long ago the boot finished (BOOT_FINISHED) or the session began (SESSION) */
    bool active; /* DISPLAY_MANAGER; SESSION: the session is up (active or online), not opening */
    const char *id;
    uint32_t uid;
    SessionClass class;
    bool graphical; /* its type is x11, wayland or mir */
    bool console;   /* its type is tty */
    bool seat;      /* it has a seat */
    LoginStart start;
    /* SAMPLE: counters since some fixed moment */
    bool has_pressure, has_busy;
    uint64_t stalled_usec; /* time that tasks waited for I/O */
    uint64_t busy_usec;    /* time that processors were busy */
    uint64_t n_starts;     /* applications started */
} StageEvent;

typedef enum StageAction {
    STAGE_ACTION_NONE,
    STAGE_ACTION_BEGIN,  /* `stage` begins; what is being recorded ends */
    STAGE_ACTION_PAUSE,  /* what is being recorded ends, nothing begins yet */
    STAGE_ACTION_SHARE,  /* the login that is being recorded has several users now */
    STAGE_ACTION_ENOUGH, /* the session continues, but its recording ends */
    STAGE_ACTION_USERS,  /* the session and its recording continue, but other users are logged in */
} StageAction;

typedef struct StageDecision {
    StageAction action;
    Stage stage;
    uint32_t uid;       /* USERS: the only user who is logged in, or the session's if `others` */
    bool drop;          /* the stage that ends was cut short and gets no trace */
    bool others;        /* BEGIN of a session, USERS: further users are logged in */
    bool automatic;     /* an automatic login begins: no greeter has run */
    usec_t settled_ago; /* how long ago the stage that ends was complete: since then it has been
                           quiet, or the default target was reached then; USEC_INFINITY: it ended
                           for another reason */
} StageDecision;

typedef struct StageMachine StageMachine;

/* Returns a machine that is in the stage boot at `now`, or NULL if out of memory. */
StageMachine *stage_machine_new(const StageParameters *p, usec_t now);
StageMachine *stage_machine_free(StageMachine *m);

/* Processes one event and decides. Returns 0, or -ENOMEM; the event is then lost. */
int stage_machine_feed(StageMachine *m, const StageEvent *e, StageDecision *ret);

/* Returns the condition that the present state waits for, as static text for people. */
const char *stage_machine_awaits(const StageMachine *m);

/* Returns how long after the last event the next event is due. This event must be a SAMPLE if
 * *ret_sample is set; otherwise it may be any event. USEC_INFINITY: no event is needed until
 * something happens. */
usec_t stage_machine_next(const StageMachine *m, bool *ret_sample);
