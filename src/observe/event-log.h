/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The log of opened objects in compact form. Objects are interned by (filesystem, directory handle,
 * name) as fanotify reports them, and resolved to paths when the stage has ended, or earlier for an
 * executable that is reported (recorder_follow()). The log limits its own size; user-shares.h
 * limits each user's part of it. Pure. */

#include "base/time-util.h"
#include "base/vocabulary.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An object. The object is identified by the file handle of a directory and a name in it ("." is
 * the directory itself). Where the kernel gives no such handle, it is identified by its path and,
 * if the filesystem has handles, by its own handle. */
typedef struct LoggedObject {
    uint32_t filesystem;  /* the caller's number, EVENT_LOG_REMOTE or EVENT_LOG_UNWATCHED */
    int32_t handle_type;  /* for open_by_handle_at(2) */
    uint16_t handle_size; /* 0: it is known by its path alone */
    uint16_t name_size;   /* without a NUL */
    bool directory;
    bool loader, env, own; /* is_loader_name(), is_env_name(), is_own_name() of its name */
    const uint8_t *handle; /* handle and name are borrowed from the log */
    const char *name;      /* NUL-terminated; an absolute path if logged_object_has_path() */
} LoggedObject;

static inline bool logged_object_has_path(const LoggedObject *o)
{
    return o->name[0] == '/';
}

/* The filesystem number of objects that are identified by their path because their filesystem may
 * hang. Such a path is never looked up. */
#define EVENT_LOG_REMOTE UINT32_MAX
/* The filesystem number of objects that are identified by their path because their filesystem is
 * not watched. */
#define EVENT_LOG_UNWATCHED (UINT32_MAX - 1)

typedef struct LoggedEvent {
    uint32_t object;
    uint32_t run;     /* of the process table, or UINT32_MAX */
    uint32_t at_msec; /* since StageRecord.zero_boottime */
    uint16_t user;    /* row of UserShares of the user who opened it */
    uint8_t kind;     /* AccessKind */
    bool own_start;   /* opened by this recorder before it began to read events; has no run */
} LoggedEvent;

typedef struct EventLog EventLog;

/* The events take at most 16 MB. */
#define EVENT_LOG_EVENTS_MAX  1000000U
#define EVENT_LOG_OBJECTS_MAX 500000U
#define EVENT_LOG_BYTES_MAX   (48U * 1024 * 1024) /* objects with handle and name */

EventLog *event_log_new(void);
EventLog *event_log_free(EventLog *l);

/* Returns how many bytes the object takes in the log. */
size_t event_log_object_bytes(const LoggedObject *o);

/* Finds the object, or adds it if `add` is true; *ret is its number. `loader`, `env` and `own` are
 * ignored. Returns 0; -ENOENT (not there, and not to be added), -ENOMEM, -E2BIG (the log is full),
 * -EINVAL (over 255 bytes of name, 128 of handle, or 4,095 of path). */
int event_log_intern(EventLog *l, const LoggedObject *o, bool add, uint32_t *ret);
/* Adds an event. Returns 0, -ENOMEM, or -E2BIG (the log is full). */
int event_log_add(EventLog *l, const LoggedEvent *e);

/* Spreads the events from number `first` on evenly over the time (since_msec, until_msec]. The
 * kernel queues events in their order but without a time, so the events of one batch happened at
 * some time since the batch before. */
void event_log_spread(EventLog *l, size_t first, uint32_t since_msec, uint32_t until_msec);

void event_log_object(const EventLog *l, uint32_t object, LoggedObject *ret);
size_t event_log_n_objects(const EventLog *l);
const LoggedEvent *event_log_events(const EventLog *l, size_t *ret_n);
