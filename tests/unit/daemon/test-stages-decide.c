/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the stages of whole boots, as tables of events and expected decisions. */

#include "base/macros.h"
#include "daemon/stages-decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define U UID_INVALID

/* What happens in a line of a test. QUIET, BUSY, STARTING, DRAWING and BLIND each stand for all
 * sample events after the previous line, one every half second. */
typedef enum What {
    END,
    FINISHED,
    MANAGER,
    NO_MANAGER,
    OPENS, /* a session that is not up yet */
    IS_UP,
    GONE,
    LIST,   /* the list of all sessions begins */
    LISTED, /* that list ends */
    QUIET,
    BUSY,     /* I/O pressure of 40 % */
    STARTING, /* no I/O pressure, ten applications a second */
    DRAWING,  /* no I/O pressure, no starts, but a processor is busy */
    BLIND,    /* quiet, and the pressure is not known */
    NOTHING,
} What;

typedef struct Line {
    double second;
    What what;
    const char *id;
    uint32_t uid;
    const char *class;
    const char *kind; /* "seat graphical", "seat console", "remote", … */
    double age;
    const char *service;
    StageAction expect;
    Stage stage;
    uint32_t stage_uid;
    bool drop, others, automatic;
    double settled; /* expected StageDecision.settled_ago in seconds; 0: any */
} Line;

#define BEGINS(s, u) .expect = STAGE_ACTION_BEGIN, .stage = (s), .stage_uid = (u)
#define PAUSES       .expect = STAGE_ACTION_PAUSE, .stage = _STAGE_INVALID, .stage_uid = U
#define SHARES       .expect = STAGE_ACTION_SHARE, .stage = _STAGE_INVALID, .stage_uid = U
#define CHANGES(u)   .expect = STAGE_ACTION_USERS, .stage = STAGE_SESSION, .stage_uid = (u)
#define SCREEN       .class = "user", .kind = "seat graphical"
#define CONSOLE      .class = "user", .kind = "seat console"
#define SSH          .class = "user", .kind = "remote console"
#define GREETER      .id = "c1", .uid = 120, .class = "greeter", .kind = "seat graphical"

typedef struct Teller {
    StageMachine *m;
    double now;
    uint64_t stalled, starts, busy;
} Teller;

static bool told(const char *kind, const char *word)
{
    return kind && strstr(kind, word);
}

static void feed(Teller *t, const Line *l, double second, StageDecision *ret)
{
    StageEvent e = {
            .now = (usec_t)((int64_t)(second * 1e6) + (int64_t)(5000 * USEC_PER_SEC)),
            .age = (usec_t)(l->age * 1e6),
            .id = l->id,
            .uid = l->uid,
            .class = session_class_from_string(l->class),
            .graphical = told(l->kind, "graphical"),
            .console = told(l->kind, "console"),
            .seat = told(l->kind, "seat"),
            .start = login_start_from_service(l->service),
            .has_pressure = l->what != BLIND,
            .has_busy = l->what != BLIND,
    };
    static const StageEventKind kinds[] = {
            [FINISHED] = STAGE_EVENT_BOOT_FINISHED,
            [MANAGER] = STAGE_EVENT_DISPLAY_MANAGER,
            [NO_MANAGER] = STAGE_EVENT_DISPLAY_MANAGER,
            [OPENS] = STAGE_EVENT_SESSION,
            [IS_UP] = STAGE_EVENT_SESSION,
            [GONE] = STAGE_EVENT_SESSION_GONE,
            [LIST] = STAGE_EVENT_LIST_BEGIN,
            [LISTED] = STAGE_EVENT_LIST_END,
            [QUIET] = STAGE_EVENT_SAMPLE,
            [BUSY] = STAGE_EVENT_SAMPLE,
            [STARTING] = STAGE_EVENT_SAMPLE,
            [DRAWING] = STAGE_EVENT_SAMPLE,
            [BLIND] = STAGE_EVENT_SAMPLE,
            [NOTHING] = STAGE_EVENT_TIME,
    };
    double span = second > t->now ? second - t->now : 0;

    e.kind = kinds[l->what];
    e.active = l->what == MANAGER || l->what == IS_UP;
    t->stalled += l->what == BUSY ? (uint64_t)(span * 4e5) : 0;
    t->starts += l->what == STARTING ? (uint64_t)(span * 10) : 0;
    t->busy += (uint64_t)(span * (l->what == DRAWING ? 9e5 : 2e5));
    e.busy_usec = t->busy;
    e.stalled_usec = t->stalled;
    e.n_starts = t->starts;
    t->now = second;
    assert_int_equal(stage_machine_feed(t->m, &e, ret), 0);
}

static void expect(const Line *l, int line, const StageDecision *d)
{
    if (d->action == l->expect &&
        (d->action == STAGE_ACTION_NONE ||
         (d->uid == l->stage_uid && d->drop == l->drop && d->stage == l->stage &&
          d->others == l->others && d->automatic == l->automatic)) &&
        (l->settled == 0 || d->settled_ago == (usec_t)(l->settled * 1e6)))
        return;
    fail_msg("line %d (second %g): got action %d stage %d uid %u drop %d others %d automatic %d "
             "settled %g, not %d %d %u %d %d %d %g",
             line, l->second, d->action, (int)d->stage, d->uid, d->drop, d->others, d->automatic,
             (double)d->settled_ago / 1e6, l->expect, (int)l->stage, l->stage_uid, l->drop,
             l->others, l->automatic, l->settled);
}

static void tell(const Line *lines)
{
    StageParameters p = STAGE_PARAMETERS_DEFAULT;
    Teller t = {.m = stage_machine_new(&p, 5000 * USEC_PER_SEC)};

    assert_non_null(t.m);
    for (const Line *l = lines; l->what != END; l++) {
        StageDecision d;

        /* The samples before the last one must not decide anything. */
        if (l->what >= QUIET && l->what <= BLIND)
            while (t.now + 0.5 < l->second) {
                Line on_the_way = {.second = t.now + 0.5, .what = l->what};

                feed(&t, &on_the_way, t.now + 0.5, &d);
                expect(&on_the_way, (int)(l - lines), &d);
            }
        feed(&t, l, l->second, &d);
        expect(l, (int)(l - lines), &d);
        assert_non_null(stage_machine_awaits(t.m));
    }
    stage_machine_free(t.m);
}

#define TEST(name, ...)                                           \
    static void name(void **state)                                \
    {                                                             \
        static const Line lines[] = {__VA_ARGS__, {.what = END}}; \
        tell(lines);                                              \
    }

/* A greeter, a login, a logout, another login. The last busy sample covers half a second, and the
 * activity counts until the middle of it. */
TEST(desktop, {2, MANAGER}, {8, OPENS, GREETER}, {9, IS_UP, GREETER}, {10, FINISHED}, {14, BUSY},
     {16.5, QUIET},
     {17, QUIET, PAUSES, .settled = 3.25}, /* three seconds after the last busy sample */
     {60, OPENS, "2", 1000, SCREEN, BEGINS(STAGE_LOGIN, 1000)}, {61, IS_UP, "2", 1000, SCREEN},
     {62, GONE, GREETER}, {70, BUSY}, {73, QUIET, BEGINS(STAGE_SESSION, 1000), .settled = 3.25},
     {80, BUSY}, {500, GONE, "2", PAUSES}, {510, OPENS, GREETER},
     {520, OPENS, "4", 1001, SCREEN, BEGINS(STAGE_LOGIN, 1001)})

/* A second user logs in while the first stays. The session stage then belongs to both users until
 * the second one leaves. */
TEST(second_user, {2, NO_MANAGER}, {10, FINISHED, PAUSES},
     {60, IS_UP, "2", 1000, CONSOLE, BEGINS(STAGE_LOGIN, 1000)},
     {63.5, QUIET, BEGINS(STAGE_SESSION, 1000)},
     {90, IS_UP, "4", 1001, CONSOLE, BEGINS(STAGE_LOGIN, 1001)},
     {93.5, QUIET, BEGINS(STAGE_SESSION, 1001), .others = true}, {95, NOTHING},
     {200, GONE, "4", BEGINS(STAGE_SESSION, 1000)}, {300, NOTHING}, {500, GONE, "2", PAUSES})

/* The first user leaves, and the session of the second goes on alone. */
TEST(first_user_leaves, {2, NO_MANAGER}, {10, FINISHED, PAUSES},
     {60, IS_UP, "2", 1000, CONSOLE, BEGINS(STAGE_LOGIN, 1000)},
     {63.5, QUIET, BEGINS(STAGE_SESSION, 1000)},
     {90, IS_UP, "4", 1001, CONSOLE, BEGINS(STAGE_LOGIN, 1001)},
     {93.5, QUIET, BEGINS(STAGE_SESSION, 1001), .others = true}, {95, NOTHING},
     {200, GONE, "2", CHANGES(1001)}, {300, NOTHING}, {500, GONE, "4", PAUSES})
/* A further user changes the session after a minute. A login that began eleven seconds before it is
 * known is not recorded. */
TEST(users_come_and_go, {2, NO_MANAGER}, {10, FINISHED, PAUSES},
     {60, IS_UP, "2", 1000, CONSOLE, BEGINS(STAGE_LOGIN, 1000)},
     {63.5, QUIET, BEGINS(STAGE_SESSION, 1000)}, {80, IS_UP, "4", 1001, CONSOLE, .age = 11},
     {128, NOTHING}, {130, NOTHING, CHANGES(1000), .others = true}, {131, NOTHING},
     {132, GONE, "4", CHANGES(1000)}, {133, IS_UP, "5", 1001, CONSOLE, .age = 11}, {134, GONE, "5"},
     {160, IS_UP, "6", 1002, CONSOLE, .age = 11}, {208, NOTHING}, {209, GONE, "6"}, {300, NOTHING},
     {500, GONE, "2", PAUSES})
/* A user turns a session of ssh into one of a screen and back, in a loop. The third change waits
 * for a minute and the fourth for two. */
TEST(users_change_in_a_loop, {2, NO_MANAGER}, {10, FINISHED, PAUSES},
     {60, IS_UP, "2", 1000, CONSOLE, BEGINS(STAGE_LOGIN, 1000)},
     {63.5, QUIET, BEGINS(STAGE_SESSION, 1000)}, {80, IS_UP, "4", 1001, CONSOLE, .age = 11},
     {200, NOTHING, CHANGES(1000), .others = true}, {201, GONE, "4", CHANGES(1000)},
     {202, IS_UP, "5", 1001, CONSOLE, .age = 100}, {260, NOTHING},
     {262, NOTHING, CHANGES(1000), .others = true}, {263, GONE, "5"},
     {264, IS_UP, "6", 1001, CONSOLE, .age = 100}, {265, GONE, "6"}, {381, NOTHING},
     {382.5, NOTHING, CHANGES(1000)}, {500, GONE, "2", PAUSES})
/* Of a login that two users share, first one and then the other is left. */
TEST(shared_users_leave, {2, NO_MANAGER}, {10, FINISHED, PAUSES},
     {60, IS_UP, "2", 1000, CONSOLE, BEGINS(STAGE_LOGIN, 1000)},
     {60.5, IS_UP, "4", 1001, CONSOLE, SHARES},
     {64, QUIET, BEGINS(STAGE_SESSION, U), .others = true}, {95, NOTHING},
     {200, GONE, "4", CHANGES(1000)}, {210, IS_UP, "5", 1001, CONSOLE, .age = 11}, {220, NOTHING},
     {221, GONE, "2", CHANGES(1001)}, {300, NOTHING}, {500, GONE, "5", PAUSES})

/* Two users log in at the same time, and the session stage belongs to both. It lasts until both
 * have left. The one who stays has it alone. */
TEST(common_session, {2, NO_MANAGER}, {10, FINISHED, PAUSES},
     {60, IS_UP, "2", 1000, CONSOLE, BEGINS(STAGE_LOGIN, 1000)},
     {60.5, IS_UP, "4", 1001, CONSOLE, SHARES},
     {64, QUIET, BEGINS(STAGE_SESSION, U), .others = true}, {95, NOTHING},
     {200, GONE, "4", CHANGES(1000)}, {300, NOTHING}, {500, GONE, "2", PAUSES})

/* The greeter is up and quiet while a job still delays the default target. */
TEST(hanging_job, {2, MANAGER}, {9, IS_UP, GREETER}, {9.5, QUIET}, {12.5, QUIET, PAUSES},
     {99, FINISHED})

/* A greeter that is never quiet: the upper bound counts from the moment when its session became
 * active, not from the moment when the session opened. */
TEST(never_quiet, {2, MANAGER}, {3, OPENS, GREETER}, {9, IS_UP, GREETER}, {129.5, BUSY, PAUSES},
     {140, OPENS, "2", 1000, SCREEN, BEGINS(STAGE_LOGIN, 1000)}, {141, IS_UP, "2", 1000, SCREEN},
     {150, FINISHED}, {260.5, STARTING, BEGINS(STAGE_SESSION, 1000)})

/* Starts of applications prevent quiet. Without pressure information only they count. */
TEST(starts_alone, {2, MANAGER}, {9, IS_UP, GREETER}, {20, STARTING}, {23, BLIND, PAUSES})

/* A greeter may keep a processor busy; a login that keeps one busy has not settled. */
TEST(draws, {2, MANAGER}, {9, IS_UP, GREETER}, {9.5, DRAWING}, {12.5, DRAWING, PAUSES},
     {13, FINISHED}, {30, IS_UP, "1", 1000, SCREEN, BEGINS(STAGE_LOGIN, 1000)}, {50, DRAWING},
     {53, QUIET, BEGINS(STAGE_SESSION, 1000)})

/* The display manager fails, or shows no greeter. */
TEST(manager_fails, {2, MANAGER}, {9, FINISHED}, {20, NO_MANAGER, PAUSES})
TEST(no_greeter, {2, MANAGER}, {9, FINISHED}, {128, NOTHING}, {130, NOTHING, PAUSES})
/* A greeter that dies and starts again has to settle again. */
TEST(greeter_dies, {2, MANAGER}, {9, IS_UP, GREETER}, {11.5, QUIET}, {11.6, GONE, GREETER},
     {13, IS_UP, GREETER}, {16, QUIET}, {16.5, QUIET, PAUSES})

/* No display manager: the default target ends the boot; a console or ssh is a login. */
TEST(server, {2, NO_MANAGER}, {9, FINISHED, PAUSES},
     {30, IS_UP, "1", 0, SSH, BEGINS(STAGE_LOGIN, 0)}, {30.5, QUIET},
     {33.5, QUIET, BEGINS(STAGE_SESSION, 0)}, {40, GONE, "1", PAUSES},
     {50, IS_UP, "2", 1000, CONSOLE, BEGINS(STAGE_LOGIN, 1000)})
/* A login over ssh during the boot does not end the boot, and is not recorded later. Its session
 * begins when a login would have ended at the latest. */
TEST(early_ssh, {2, NO_MANAGER}, {5, IS_UP, "1", 0, SSH, .service = "sshd"}, {9, FINISHED, PAUSES},
     {9.5, IS_UP, "1", 0, SSH, .service = "sshd"}, {124, NOTHING},
     {126, NOTHING, BEGINS(STAGE_SESSION, 0)}, {130, GONE, "1", PAUSES})
/* A session without a seat that is no login over the network, such as that of a kiosk's service,
 * does not end the boot either. It is recorded from the end of the boot on, unless it began long
 * before. */
TEST(early_kiosk, {2, NO_MANAGER}, {5, IS_UP, "1", 1000, .class = "user", .kind = ""},
     {9, FINISHED, BEGINS(STAGE_LOGIN, 1000), .automatic = true}, {9.5, QUIET},
     {12.5, QUIET, BEGINS(STAGE_SESSION, 1000)})
TEST(very_early_kiosk, {2, NO_MANAGER}, {5, IS_UP, "1", 1000, .class = "user", .kind = ""},
     {19, FINISHED, PAUSES})
/* With a display manager, logins on a console and by ssh do not count. Logins by xrdp, and logins
 * of an unknown type on a seat, count. */
TEST(consoles_beside_a_greeter, {2, MANAGER}, {9, IS_UP, GREETER}, {9.5, QUIET},
     {12.5, QUIET, PAUSES}, {13, FINISHED}, {30, IS_UP, "1", 0, SSH}, {31, IS_UP, "2", 0, CONSOLE},
     {32, IS_UP, "3", 1000, .class = "user", .kind = "remote graphical", BEGINS(STAGE_LOGIN, 1000)},
     {32.5, GONE, "3", .expect = STAGE_ACTION_PAUSE, .stage = _STAGE_INVALID, .stage_uid = U,
      .drop = true},
     {33, IS_UP, "4", 1001, .class = "user", .kind = "seat", BEGINS(STAGE_LOGIN, 1001)})
/* A session whose type becomes known late. */
TEST(type_comes_late, {2, MANAGER}, {9, IS_UP, GREETER}, {9.5, QUIET}, {12.5, QUIET, PAUSES},
     {30, OPENS, "1", 1000, CONSOLE}, {31, OPENS, "1", 1000, SCREEN, BEGINS(STAGE_LOGIN, 1000)})

/* Automatic login: it begins during the boot and ends after the boot has finished. */
TEST(automatic, {2, MANAGER},
     {8, OPENS, "1", 1000, SCREEN, BEGINS(STAGE_LOGIN, 1000), .automatic = true},
     {8.5, IS_UP, "1", 1000, SCREEN}, {15, QUIET}, {16, FINISHED}, {16.5, QUIET},
     {19.5, QUIET, BEGINS(STAGE_SESSION, 1000)})
TEST(automatic_console, {2, NO_MANAGER},
     {8, IS_UP, "1", 1000, CONSOLE, BEGINS(STAGE_LOGIN, 1000), .automatic = true}, {9, FINISHED},
     {9.5, QUIET}, {12.5, QUIET, BEGINS(STAGE_SESSION, 1000)})
/* A session that begins less than two seconds after the end of the boot is automatic, because no
 * person types that fast. A later one may be a person's. */
TEST(automatic_after_the_boot, {2, NO_MANAGER}, {9, FINISHED, PAUSES},
     {10.9, IS_UP, "1", 1000, CONSOLE, BEGINS(STAGE_LOGIN, 1000), .automatic = true})
TEST(typed_after_the_boot, {2, NO_MANAGER}, {9, FINISHED, PAUSES},
     {11.1, IS_UP, "1", 1000, CONSOLE, BEGINS(STAGE_LOGIN, 1000)})
/* With the PAM service of an automatic login, the session is automatic however late it begins. */
TEST(automatic_by_service, {2, MANAGER}, {9, FINISHED},
     {20, IS_UP, "1", 1000, SCREEN, .service = "gdm-autologin", BEGINS(STAGE_LOGIN, 1000),
      .automatic = true})
/* With the PAM service of sshd, the session is never automatic, however early it begins. */
TEST(requested_by_service, {2, NO_MANAGER}, {9, FINISHED, PAUSES},
     {9.5, IS_UP, "1", 1000, SSH, .service = "sshd", BEGINS(STAGE_LOGIN, 1000)})
/* GDM logs a user in after a timeout at its greeter. This is not automatic, since a greeter has
 * run. */
TEST(timed_at_a_greeter, {2, MANAGER}, {8, IS_UP, GREETER}, {9, FINISHED},
     {20, IS_UP, "2", 1000, SCREEN, .service = "gdm-autologin", BEGINS(STAGE_LOGIN, 1000)})
TEST(typed_at_a_quick_greeter, {2, MANAGER}, {8, IS_UP, GREETER},
     {9, IS_UP, "2", 1000, SCREEN, BEGINS(STAGE_LOGIN, 1000)})
/* The boot never finishes: the login ends by its upper bound. */
TEST(automatic_hangs, {2, MANAGER},
     {8, IS_UP, "1", 1000, SCREEN, BEGINS(STAGE_LOGIN, 1000), .automatic = true}, {127, NOTHING},
     {128.1, NOTHING, BEGINS(STAGE_SESSION, 1000)})

/* A login session that ends before it has settled: without another session, and next to one. */
TEST(gone_early, {2, NO_MANAGER}, {9, FINISHED, PAUSES},
     {30, IS_UP, "1", 7, SSH, BEGINS(STAGE_LOGIN, 7)},
     {31, GONE, "1", .expect = STAGE_ACTION_PAUSE, .stage = _STAGE_INVALID, .stage_uid = U,
      .drop = true},
     {40, IS_UP, "2", 8, SSH, BEGINS(STAGE_LOGIN, 8)}, {40.5, QUIET},
     {43.5, QUIET, BEGINS(STAGE_SESSION, 8)}, {50, IS_UP, "3", 9, SSH, BEGINS(STAGE_LOGIN, 9)},
     {51, GONE, "3", .expect = STAGE_ACTION_BEGIN, .stage = STAGE_SESSION, .stage_uid = 8,
      .drop = true},
     {52, GONE, "2", PAUSES})

/* Logins on two seats at once: the login belongs to no single user and ends when both have
 * settled. */
TEST(two_seats, {2, MANAGER}, {9, IS_UP, GREETER}, {9.5, QUIET}, {12.5, QUIET, PAUSES},
     {13, FINISHED}, {30, IS_UP, "1", 1000, SCREEN, BEGINS(STAGE_LOGIN, 1000)}, {30.5, QUIET},
     {32, QUIET}, {32.5, OPENS, "2", 1001, SCREEN, SHARES}, {35, QUIET},
     {36, IS_UP, "2", 1001, SCREEN}, {36.5, QUIET}, {37, GONE, "1"},
     {39.5, QUIET, BEGINS(STAGE_SESSION, U)}, {39.6, NOTHING, CHANGES(1001)},
     {50, GONE, "2", PAUSES})
/* A second session of the same user, a user manager and cron cause no decision. */
TEST(same_user, {2, NO_MANAGER}, {9, FINISHED, PAUSES},
     {30, IS_UP, "1", 7, SSH, BEGINS(STAGE_LOGIN, 7)},
     {30.1, IS_UP, "2", 7, .class = "user-light", .kind = "remote console"},
     {30.2, IS_UP, "3", 7, .class = "manager", .kind = ""},
     {30.3, IS_UP, "4", 0, .class = "background", .kind = ""}, {30.8, QUIET},
     {33.8, QUIET, BEGINS(STAGE_SESSION, 7)}, {34, GONE, "1"}, {40, GONE, "2", PAUSES})

/* Sessions of unknown classes, and of classes that are no login of a user, are ignored. A session
 * of the class user-early is a login. */
TEST(classes, {2, NO_MANAGER}, {9, FINISHED, PAUSES},
     {10, IS_UP, "1", 1, .class = "user-incomplete", .kind = "seat"},
     {11, IS_UP, "2", 1, .class = "lock-screen", .kind = "seat"},
     {12, IS_UP, "3", 1, .class = "", .kind = "seat"},
     {13, IS_UP, "4", 1, .class = "useruseruser", .kind = "seat"},
     {14, IS_UP, "5", 1, .class = NULL, .kind = "seat"},
     {15, IS_UP, "6", 0, .class = "user-early", .kind = "seat", BEGINS(STAGE_LOGIN, 0)})

/* logind comes back, and the list shows what happened meanwhile. */
TEST(list, {2, NO_MANAGER}, {9, FINISHED, PAUSES}, {30, IS_UP, "1", 7, SSH, BEGINS(STAGE_LOGIN, 7)},
     {31, LIST}, {31.1, IS_UP, "1", 7, SSH}, {31.2, LISTED}, {31.5, QUIET},
     {34.5, QUIET, BEGINS(STAGE_SESSION, 7)}, {40, LIST}, {40.1, LISTED, PAUSES},
     /* Sessions that began while logind was away: one 11 s ago, which is too long for a login, and
      * one 9 s ago. */
     {50, IS_UP, "2", 7, SSH, .age = 11},
     {60, IS_UP, "3", 8, SSH, .age = 9, BEGINS(STAGE_LOGIN, 8)})

/* headstartd starts when everything is up already, as after `rerecord --now`: there is no boot, and
 * no login of the sessions that are there. The session of the user begins.
 */
TEST(late_start, {0.1, LIST}, {0.1, IS_UP, "1", 1000, SCREEN, .age = 300}, {0.1, NO_MANAGER},
     {0.2, FINISHED, .age = 400, .expect = STAGE_ACTION_PAUSE, .stage = _STAGE_INVALID,
      .stage_uid = U, .drop = true},
     {0.3, LISTED, BEGINS(STAGE_SESSION, 1000)}, {0.4, IS_UP, "3", 1002, SSH, .age = 5},
     {5, IS_UP, "2", 1001, SSH, BEGINS(STAGE_LOGIN, 1001)})
/* Before it is known whether there is a display manager, no session counts as a login. */
TEST(unknown_kind, {3, IS_UP, "1", 1000, CONSOLE},
     {4, NO_MANAGER, BEGINS(STAGE_LOGIN, 1000), .automatic = true})

/* There is never a bus, or the boot takes longer than ten minutes. */
TEST(no_bus, {599, NOTHING},
     {601, NOTHING, .expect = STAGE_ACTION_PAUSE, .stage = _STAGE_INVALID, .stage_uid = U,
      .drop = true})
TEST(long_session, {2, NO_MANAGER}, {9, FINISHED, PAUSES},
     {30, IS_UP, "1", 7, SSH, BEGINS(STAGE_LOGIN, 7)}, {30.5, QUIET},
     {33.5, QUIET, BEGINS(STAGE_SESSION, 7)}, {1833, NOTHING},
     {1834, NOTHING, .expect = STAGE_ACTION_ENOUGH, .stage = STAGE_SESSION, .stage_uid = 7},
     {1835, NOTHING}, {1900, GONE, "1", PAUSES})

/* A step of the clock backwards counts as no time, so that bounds are reached later. */
TEST(clock_back, {2, MANAGER}, {9, IS_UP, GREETER}, {9.5, QUIET}, {11, QUIET}, {-3000, QUIET},
     {-2999, QUIET}, {-2998.5, QUIET, PAUSES},
     {-2990, IS_UP, "2", 1000, SCREEN, BEGINS(STAGE_LOGIN, 1000)})

/* Ten thousand sessions at once, which all end: only the first begins a login. */
static void many_sessions(void **state)
{
    StageParameters p = STAGE_PARAMETERS_DEFAULT;
    StageMachine *m = stage_machine_new(&p, 0);
    StageEvent e = {.now = 1, .kind = STAGE_EVENT_DISPLAY_MANAGER};
    StageDecision d;
    unsigned n[2] = {0}, most = 0;
    bool sample;

    assert_int_equal(stage_machine_feed(m, &e, &d), 0);
    e.kind = STAGE_EVENT_BOOT_FINISHED;
    assert_int_equal(stage_machine_feed(m, &e, &d), 0);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < 10000; i++) {
            char id[32];

            snprintf(id, sizeof(id), "s%u", i);
            e = (StageEvent){
                    .kind = round ? STAGE_EVENT_SESSION_GONE : STAGE_EVENT_SESSION,
                    .now = ++e.now,
                    .id = id,
                    .uid = i,
                    .class = SESSION_CLASS_USER,
                    .active = true,
            };
            assert_int_equal(stage_machine_feed(m, &e, &d), 0);
            n[round] += d.action != STAGE_ACTION_NONE;
        }
    assert_int_equal(n[0], 2); /* the login, and the decision that it is shared */
    assert_int_equal(n[1], 1);
    assert_true(d.action == STAGE_ACTION_PAUSE && d.drop);
    assert_true(stage_machine_next(m, &sample) == USEC_INFINITY && !sample);

    /* Sessions begin one after the other, and each ends at once. Only a bounded number of them
     * begins a login. */
    for (unsigned i = 0; i < 1000; i++) {
        e.kind = STAGE_EVENT_SESSION;
        e.id = "x";
        e.now++;
        assert_int_equal(stage_machine_feed(m, &e, &d), 0);
        most += d.action == STAGE_ACTION_BEGIN && d.stage == STAGE_LOGIN;
        e.kind = STAGE_EVENT_SESSION_GONE;
        assert_int_equal(stage_machine_feed(m, &e, &d), 0);
    }
    assert_in_range(most, 16, 200);
    stage_machine_free(m);
}

/* The number of known sessions is bounded: a further one is ignored until another has ended. */
static void too_many_sessions(void **state)
{
    StageParameters p = STAGE_PARAMETERS_DEFAULT;
    StageMachine *m = stage_machine_new(&p, 0);
    StageEvent e = {.now = 1, .kind = STAGE_EVENT_DISPLAY_MANAGER};
    StageDecision d;

    assert_int_equal(stage_machine_feed(m, &e, &d), 0);
    e.kind = STAGE_EVENT_BOOT_FINISHED;
    assert_int_equal(stage_machine_feed(m, &e, &d), 0);
    e.kind = STAGE_EVENT_SESSION;
    e.class = SESSION_CLASS_OTHER;
    for (unsigned i = 0; i < STAGE_SESSIONS_MAX; i++) {
        char id[32];

        snprintf(id, sizeof(id), "s%u", i);
        e.id = id;
        e.now++;
        assert_int_equal(stage_machine_feed(m, &e, &d), 0);
    }
    e.id = "late";
    e.class = SESSION_CLASS_USER;
    e.active = true;
    assert_int_equal(stage_machine_feed(m, &e, &d), 0);
    assert_int_equal(d.action, STAGE_ACTION_NONE);
    assert_int_equal(
            stage_machine_feed(
                    m, &(StageEvent){.kind = STAGE_EVENT_SESSION_GONE, .now = e.now, .id = "s0"},
                    &d),
            0);
    assert_int_equal(stage_machine_feed(m, &e, &d), 0);
    assert_int_equal(d.action, STAGE_ACTION_BEGIN);
    assert_int_equal(d.stage, STAGE_LOGIN);
    stage_machine_free(m);
}

/* The number of logins that settle and are recorded in one boot is bounded, too. */
static void many_logins(void **state)
{
    StageParameters p = STAGE_PARAMETERS_DEFAULT;
    Teller t = {.m = stage_machine_new(&p, 5000 * USEC_PER_SEC)};
    unsigned logins = 0;
    StageDecision d;

    feed(&t, &(Line){.what = NO_MANAGER}, 1, &d);
    feed(&t, &(Line){.what = FINISHED}, 2, &d);
    for (unsigned i = 0; i < 50; i++) {
        double at = 10 + i * 20;

        feed(&t, &(Line){.what = IS_UP, .id = "1", .uid = i, SSH}, at, &d);
        logins += d.stage == STAGE_LOGIN;
        for (double more = 0.5; more < 5; more += 0.5)
            feed(&t, &(Line){.what = QUIET}, at + more, &d);
        assert_string_equal(stage_machine_awaits(t.m), "the end of the session");
        feed(&t, &(Line){.what = GONE, .id = "1"}, at + 6, &d);
        assert_int_equal(d.action, STAGE_ACTION_PAUSE);
    }
    assert_int_equal(logins, p.logins_max);
    stage_machine_free(t.m);
}

/* Lets user 1001 log in and out so often that no further login of this user is recorded. */
static double use_up_attempts(Teller *t, double at)
{
    StageDecision d;

    for (unsigned i = 0; i < 100; i++, at += 2) {
        feed(t, &(Line){.what = IS_UP, .id = "1", .uid = 1001, SSH}, at, &d);
        feed(t, &(Line){.what = GONE, .id = "1"}, at + 1, &d);
    }
    return at;
}

/* A user who has made too many attempts neither makes the login of another user a shared one, nor
 * delays its end, nor ends the session of another user. */
static void one_user_who_disturbs_logins(void **state)
{
    StageParameters p = STAGE_PARAMETERS_DEFAULT;
    Teller t = {.m = stage_machine_new(&p, 5000 * USEC_PER_SEC)};
    double at, shared = 0;
    StageDecision d;

    feed(&t, &(Line){.what = NO_MANAGER}, 1, &d);
    feed(&t, &(Line){.what = FINISHED}, 2, &d);
    at = use_up_attempts(&t, 10);
    feed(&t, &(Line){.what = IS_UP, .id = "2", .uid = 1000, SSH}, at, &d);
    assert_true(d.stage == STAGE_LOGIN && d.uid == 1000);
    for (unsigned i = 0; i < 100 && d.stage != STAGE_SESSION; i++, at += 0.5) {
        feed(&t, &(Line){.what = IS_UP, .id = "1", .uid = 1001, SSH}, at + 0.1, &d);
        shared += d.action == STAGE_ACTION_SHARE;
        feed(&t, &(Line){.what = GONE, .id = "1"}, at + 0.2, &d);
        feed(&t, &(Line){.what = QUIET}, at + 0.5, &d);
    }
    assert_true(shared == 0);
    assert_true(d.action == STAGE_ACTION_BEGIN && d.stage == STAGE_SESSION && d.uid == 1000);
    assert_true(d.settled_ago != USEC_INFINITY);
    feed(&t, &(Line){.what = IS_UP, .id = "1", .uid = 1001, SSH}, at + 1, &d);
    assert_int_equal(d.action, STAGE_ACTION_NONE);
    stage_machine_free(t.m);
}

/* The quick logins of one user, settled or not, do not prevent recordings of others. */
static void one_users_logins(void **state)
{
    StageParameters p = STAGE_PARAMETERS_DEFAULT;
    Teller t = {.m = stage_machine_new(&p, 5000 * USEC_PER_SEC)};
    unsigned logins = 0;
    double at = 10;
    StageDecision d;

    feed(&t, &(Line){.what = NO_MANAGER}, 1, &d);
    feed(&t, &(Line){.what = FINISHED}, 2, &d);
    for (unsigned i = 0; i < 1000; i++, at += 20) {
        feed(&t, &(Line){.what = IS_UP, .id = "1", .uid = 1001, SSH}, at, &d);
        logins += d.stage == STAGE_LOGIN;
        for (double more = 0.5; i % 2 && more < 5; more += 0.5)
            feed(&t, &(Line){.what = QUIET}, at + more, &d);
        feed(&t, &(Line){.what = GONE, .id = "1"}, at + 6, &d);
    }
    assert_in_range(logins, p.user_logins_max, 8 * p.user_logins_max);
    feed(&t, &(Line){.what = IS_UP, .id = "2", .uid = 1000, SSH}, at, &d);
    assert_int_equal(d.action, STAGE_ACTION_BEGIN);
    assert_int_equal(d.stage, STAGE_LOGIN);
    assert_int_equal(d.uid, 1000);
    stage_machine_free(t.m);
}

/* Counters that step back, wrap or jump do not cause decisions. */
static void hostile_counters(void **state)
{
    static const uint64_t values[] = {5, 3, UINT64_MAX, 0, UINT64_MAX, 1, 1};
    StageParameters p = STAGE_PARAMETERS_DEFAULT;
    Teller t = {.m = stage_machine_new(&p, 5000 * USEC_PER_SEC)};
    StageDecision d;

    feed(&t, &(Line){.what = MANAGER}, 1, &d);
    feed(&t, &(Line){.what = IS_UP, GREETER}, 2, &d);
    for (size_t i = 0; i < ELEMENTSOF(values); i++) {
        StageEvent e = {
                .kind = STAGE_EVENT_SAMPLE,
                .now = (5003 + i) * USEC_PER_SEC,
                .has_pressure = true,
                .stalled_usec = values[i],
                .n_starts = values[ELEMENTSOF(values) - 1 - i],
        };

        assert_int_equal(stage_machine_feed(t.m, &e, &d), 0);
        assert_int_equal(d.action, STAGE_ACTION_NONE);
    }
    /* The clock jumps to its limit and back. */
    for (size_t i = 0; i < 4; i++) {
        StageEvent e = {.kind = STAGE_EVENT_TIME, .now = i % 2 ? 0 : UINT64_MAX, .age = UINT64_MAX};

        assert_int_equal(stage_machine_feed(t.m, &e, &d), 0);
    }
    stage_machine_free(t.m);
}

static void services(void **state)
{
    assert_int_equal(login_start_from_service("gdm-autologin"), LOGIN_START_AUTOMATIC);
    assert_int_equal(login_start_from_service("lightdm-autologin"), LOGIN_START_AUTOMATIC);
    assert_int_equal(login_start_from_service("sshd"), LOGIN_START_REQUESTED);
    assert_int_equal(login_start_from_service("login"), LOGIN_START_UNKNOWN);
    assert_int_equal(login_start_from_service("-autologin"), LOGIN_START_UNKNOWN);
    assert_int_equal(login_start_from_service("autologin-x"), LOGIN_START_UNKNOWN);
    assert_int_equal(login_start_from_service(""), LOGIN_START_UNKNOWN);
    assert_int_equal(login_start_from_service(NULL), LOGIN_START_UNKNOWN);
}

/* Checks when the next event is due. */
static void wakes(void **state)
{
    StageParameters p = STAGE_PARAMETERS_DEFAULT;
    Teller t = {.m = stage_machine_new(&p, 5000 * USEC_PER_SEC)};
    StageDecision d;
    bool sample;

    assert_true(stage_machine_next(t.m, &sample) > p.boot_max_usec && !sample);
    feed(&t, &(Line){.what = MANAGER}, 100, &d);
    assert_in_range(stage_machine_next(t.m, &sample), 499 * USEC_PER_SEC, 501 * USEC_PER_SEC);
    feed(&t, &(Line){.what = IS_UP, GREETER}, 101.2, &d);
    assert_true(stage_machine_next(t.m, &sample) == 3 * p.sample_usec / 5 && sample);
    feed(&t, &(Line){.what = QUIET}, 101.6, &d);
    assert_true(stage_machine_next(t.m, &sample) == p.sample_usec && sample);
    for (double s = 102.1; s < 106; s += 0.5)
        feed(&t, &(Line){.what = QUIET}, s, &d);
    assert_true(stage_machine_next(t.m, &sample) == USEC_INFINITY && !sample);
    feed(&t, &(Line){.what = IS_UP, "1", 1000, SCREEN, .age = 20}, 110, &d);
    assert_in_range(stage_machine_next(t.m, &sample), 100 * USEC_PER_SEC, 101 * USEC_PER_SEC);
    assert_false(sample);
    /* Another user, whose login is not recorded, changes the session after a minute. */
    feed(&t, &(Line){.what = IS_UP, "1", 1000, SCREEN, .age = 200}, 230, &d);
    assert_int_equal(d.stage, STAGE_SESSION);
    assert_true(stage_machine_next(t.m, &sample) > p.users_usec && !sample);
    feed(&t, &(Line){.what = IS_UP, "2", 1001, SCREEN, .age = 20}, 250, &d);
    assert_in_range(stage_machine_next(t.m, &sample), 40 * USEC_PER_SEC, 41 * USEC_PER_SEC);
    assert_false(sample);
    stage_machine_free(t.m);
    assert_null(stage_machine_free(NULL));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
            cmocka_unit_test(desktop),
            cmocka_unit_test(second_user),
            cmocka_unit_test(first_user_leaves),
            cmocka_unit_test(users_come_and_go),
            cmocka_unit_test(users_change_in_a_loop),
            cmocka_unit_test(shared_users_leave),
            cmocka_unit_test(common_session),
            cmocka_unit_test(hanging_job),
            cmocka_unit_test(never_quiet),
            cmocka_unit_test(starts_alone),
            cmocka_unit_test(draws),
            cmocka_unit_test(manager_fails),
            cmocka_unit_test(no_greeter),
            cmocka_unit_test(greeter_dies),
            cmocka_unit_test(server),
            cmocka_unit_test(early_ssh),
            cmocka_unit_test(early_kiosk),
            cmocka_unit_test(very_early_kiosk),
            cmocka_unit_test(consoles_beside_a_greeter),
            cmocka_unit_test(type_comes_late),
            cmocka_unit_test(automatic),
            cmocka_unit_test(automatic_console),
            cmocka_unit_test(automatic_hangs),
            cmocka_unit_test(gone_early),
            cmocka_unit_test(two_seats),
            cmocka_unit_test(same_user),
            cmocka_unit_test(classes),
            cmocka_unit_test(list),
            cmocka_unit_test(late_start),
            cmocka_unit_test(unknown_kind),
            cmocka_unit_test(automatic_after_the_boot),
            cmocka_unit_test(typed_after_the_boot),
            cmocka_unit_test(typed_at_a_quick_greeter),
            cmocka_unit_test(automatic_by_service),
            cmocka_unit_test(requested_by_service),
            cmocka_unit_test(timed_at_a_greeter),
            cmocka_unit_test(services),
            cmocka_unit_test(no_bus),
            cmocka_unit_test(long_session),
            cmocka_unit_test(clock_back),
            cmocka_unit_test(many_sessions),
            cmocka_unit_test(too_many_sessions),
            cmocka_unit_test(many_logins),
            cmocka_unit_test(one_users_logins),
            cmocka_unit_test(one_user_who_disturbs_logins),
            cmocka_unit_test(hostile_counters),
            cmocka_unit_test(wakes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
