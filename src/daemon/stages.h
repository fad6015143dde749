/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A stage source reports when a recording stage ends and the next one begins. It calls back from
 * the event loop, and the daemon acts on the call. There are two sources: a list of stages that
 * SIGUSR1 steps through (for a tree that is not this machine's root), and the system itself
 * (stages-system.c). */

#include "base/time-util.h"
#include "base/vocabulary.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* Values of StageChange.next that are not stages. */
#define STAGE_PAUSE  ((Stage)_STAGE_MAX)       /* no stage begins yet */
#define STAGE_SHARED ((Stage)(_STAGE_MAX + 1)) /* the stage continues, but has several users */
#define STAGE_ENOUGH ((Stage)(_STAGE_MAX + 2)) /* the stage continues, but its recording ends */
#define STAGE_USERS  ((Stage)(_STAGE_MAX + 3)) /* the session continues with other users */

typedef struct StageChange {
    Stage next;   /* the stage that begins, or one of the above; _STAGE_INVALID: there is no further
                     stage */
    uint32_t uid; /* user of the login or session; UID_INVALID: several users, or not known.
                     STAGE_USERS: the only user, if there are no others */
    bool drop;    /* the stage that ends was cut short: it gets no trace */
    bool others;  /* a session begins or has changed, and users other than `uid` are logged in */
    bool automatic;     /* an automatic login begins: no greeter has run */
    usec_t settled_ago; /* how long ago the stage that ends was complete; USEC_INFINITY: not known,
                           or it ended before it was complete */
} StageChange;

/* The times at which the parts of a boot began and at which the startup finished, as the system
 * manager reports them: in microseconds on CLOCK_MONOTONIC. The fields of firmware and loader are
 * the times from their beginnings to the start of the kernel. 0: not known, or not reached yet. */
typedef struct BootTimes {
    uint64_t firmware_usec, loader_usec, initrd_usec, userspace_usec, finish_usec;
} BootTimes;

/* The callbacks of a source. All functions get `arg`. on_change() returns 0, or a negative errno
 * that ends the loop. The list of stages calls on_change() only. */
typedef struct StageCallbacks {
    int (*on_change)(void *arg, const StageChange *c);
    void (*on_awaits)(
            void *arg,
            const char *condition); /* the condition that ends the stage, as static text */
    void (*on_ready)(void *arg, Stage stage, usec_t age); /* see recorder_note_ready() */
    uint64_t (*count_starts)(void *arg); /* applications started since the daemon began */
    void *arg;
} StageCallbacks;

typedef struct StageSource StageSource;

/* Creates a source that goes to the next of the stages at each SIGUSR1. The signal must be blocked.
 * Returns 0, -EINVAL (no stage, or too many) or another negative errno. */
int stage_source_new_list(sd_event *event, const Stage *stages, size_t n,
                          const StageCallbacks *callbacks, StageSource **ret);

/* Creates a source that follows systemd and logind over the system bus ($DBUS_SYSTEM_BUS_ADDRESS).
 * It connects as soon as there is a bus, and again after the bus has come back. The first stage is
 * boot. Never blocks. Reads /proc and /sys below root_fd (AT_FDCWD: "/"), which it borrows. Returns
 * 0 or a negative errno. */
int stage_source_new_system(sd_event *event, int root_fd, const StageCallbacks *callbacks,
                            StageSource **ret);

StageSource *stage_source_free(StageSource *s);

/* Asks systemd to start a unit without waiting for the reply. Returns 0, -EOPNOTSUPP (the source
 * does not know systemd), -ENOTCONN, or another negative errno if the call cannot be sent. */
int stage_source_start_unit(StageSource *s, const char *unit);

/* Returns the times of this boot that are known so far, or zeros if the source does not know
 * systemd. */
BootTimes stage_source_boot_times(const StageSource *s);

/* Returns the first stage. */
Stage stage_source_first(const StageSource *s);
