/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When boot, login and session begin and end: a state machine over what systemd, logind and the
 * kernel say. Pure: events in, decisions out.
 *
 *            greeter up and quiet,          a user's session            it has settled
 *     boot ------------------------> none -------------------> login ------------------> session
 *       |    or default target              ^        |  gone before: dropped      |  gone, or long
 *       +---- user's session (automatic) ---|--------+                            |
 *                                           +-------------------------------------+
 *
 * Settled is measured: little I/O pressure and few application starts for some time, and for a
 * login processors that are mostly idle (a desktop that still draws itself reads nothing for
 * seconds where they are slow), with an upper bound. On a machine whose display manager starts,
 * only graphical sessions and those of a seat that are none of a console are logins; elsewhere
 * those of a console or of ssh are, too. One stage is recorded at a time: who logs in while
 * another's login is being recorded joins it, and it is then nobody's own. */

#include "base/time-util.h"
#include "base/uid.h"
#include "base/vocabulary.h"

#include <stdbool.h>
#include <stdint.h>


typedef struct StageParameters {
    usec_t quiet_usec;         /* so long it has to be quiet to count as settled */
    usec_t settle_max_usec;    /* after that it counts as settled in any case */
    usec_t boot_max_usec;      /* a boot that is not done by then is not an ordinary one */
    usec_t session_max_usec;   /* so much of a session is recorded */
    usec_t late_max_usec;      /* a login that began longer ago has been missed */
    usec_t sample_usec;        /* how often to look while waiting for quiet */
    unsigned pressure_percent; /* quiet: tasks waited for I/O at most that much of the time */
    unsigned starts_per_sec;   /* and at most so many applications started */
    unsigned busy_percent;     /* after a login: and processors had that much of one to do */
    unsigned logins_max;       /* of one boot; the caches are warm from the second on */
} StageParameters;

#define STAGE_PARAMETERS_DEFAULT                     \
    ((StageParameters){                              \
            .quiet_usec = 3 * USEC_PER_SEC,          \
            .settle_max_usec = 120 * USEC_PER_SEC,   \
            .boot_max_usec = 600 * USEC_PER_SEC,     \
            .session_max_usec = 1800 * USEC_PER_SEC, \
            .late_max_usec = 10 * USEC_PER_SEC,      \
            .sample_usec = 500 * USEC_PER_MSEC,      \
            .pressure_percent = 10,                  \
            .starts_per_sec = 4,                     \
            .busy_percent = 50,                      \
            .logins_max = 16,                        \
    })

/* Sessions beyond that many at once are not looked at. */
#define STAGE_SESSIONS_MAX 16384U

typedef enum SessionClass {
    SESSION_CLASS_OTHER, /* background, manager, lock-screen, whatever comes */
    SESSION_CLASS_USER,
    SESSION_CLASS_GREETER,
} SessionClass;

/* logind's words. NULL and unknown ones are OTHER. */
SessionClass session_class_from_string(const char *s);

typedef enum StageEventKind {
    STAGE_EVENT_TIME,            /* nothing but `now` */
    STAGE_EVENT_BOOT_FINISHED,   /* default target reached or startup finished, `age` ago */
    STAGE_EVENT_DISPLAY_MANAGER, /* `active`: it runs, or is about to; else there will be none */
    STAGE_EVENT_SESSION,         /* a session is there, or has changed */
    STAGE_EVENT_SESSION_GONE,    /* `id` */
    STAGE_EVENT_LIST_BEGIN,      /* from here on all sessions there are, one by one, … */
    STAGE_EVENT_LIST_END,        /* … and those not named are gone */
    STAGE_EVENT_SAMPLE,          /* counters */
    _STAGE_EVENT_MAX,
} StageEventKind;

typedef struct StageEvent {
    StageEventKind kind;
    usec_t now;  /* any clock that does not stop; steps back count as no time */
    usec_t age;  /* BOOT_FINISHED, SESSION: how long ago that was, or began */
    bool active; /* DISPLAY_MANAGER; SESSION: it is up (active or online), not opening */
    const char *id;
    uint32_t uid;
    SessionClass class;
    bool graphical; /* its type is x11, wayland or mir */
    bool console;   /* its type is tty */
    bool seat;      /* it has one */
    bool has_pressure;
    uint64_t stalled_usec; /* SAMPLE: time that tasks waited for I/O, since ever */
    bool has_busy;
    uint64_t busy_usec; /* SAMPLE: time that processors were busy, since ever */
    uint64_t n_starts;  /* SAMPLE: applications started, since ever */
} StageEvent;

typedef enum StageAction {
    STAGE_ACTION_NONE,
    STAGE_ACTION_BEGIN,  /* `stage` begins; what is being recorded ends */
    STAGE_ACTION_PAUSE,  /* what is being recorded ends, nothing begins yet */
    STAGE_ACTION_SHARE,  /* the login that is being recorded is that of several users */
    STAGE_ACTION_ENOUGH, /* the session goes on, but enough of it was recorded */
} StageAction;

typedef struct StageDecision {
    StageAction action;
    Stage stage;
    uint32_t uid;
    bool drop;   /* what ends is not worth a trace: it did not come to its end */
    bool others; /* a session that begins: further users are logged in */
} StageDecision;

typedef struct StageMachine StageMachine;

/* Begins in boot at `now`. NULL if out of memory. */
StageMachine *stage_machine_new(const StageParameters *p, usec_t now);
StageMachine *stage_machine_free(StageMachine *m);

/* Takes in one event. 0, or -ENOMEM: then the event was not seen. */
int stage_machine_feed(StageMachine *m, const StageEvent *e, StageDecision *ret);

/* What it waits for, for people; a static text. */
const char *stage_machine_waits_for(const StageMachine *m);

/* When it wants the next event, at the latest, from the last one on: a SAMPLE if *ret_sample, else
 * any. USEC_INFINITY: only when something happens. */
usec_t stage_machine_next(const StageMachine *m, bool *ret_sample);

/* The stage that is going on, or _STAGE_INVALID. */
Stage stage_machine_stage(const StageMachine *m);
