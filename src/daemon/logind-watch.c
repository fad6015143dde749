/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/logind-watch.h"

#include "base/log.h"
#include "base/macros.h"

#include <string.h>

#define NO_SUCH_OBJECT "org.freedesktop.DBus.Error.UnknownObject"
#define QUERIES_MAX \
    32U /* queries under way at once, because a bus limits the number of pending replies */
#define RECHECK_USEC      (250 * USEC_PER_MSEC)
#define OPENING_MAX_USEC  (120 * USEC_PER_SEC) /* older sessions are no longer rechecked */
#define RECHECK_PRECISION (10 * USEC_PER_MSEC)

/* A query of one session's properties. */
typedef struct Query {
    LogindWatch *w;
    struct Query *next;
    bool listed; /* the session is part of the list that is being made */
    char path[];
} Query;

struct LogindWatch {
    const BusListener *listener;
    sd_bus *bus;
    sd_event_source *recheck;
    Query *first, **last; /* not sent yet */
    Query *opening;    /* sessions in the state "opening": queried again later, because logind sends
                          no signal when they have been opened */
    unsigned n_sent;   /* calls that wait for a reply */
    unsigned n_listed; /* queued and sent calls that belong to the list */
    bool list_failed;
};

/* --- queries ---------------------------------------------------------------------------------- */

static void send_queries(LogindWatch *w);

/* Adds a query, unless one of this session waits to be sent: that one reads the newest properties
 * anyway. A user can change a property of the own session as often as the bus allows, and must not
 * delay the queries of other sessions. Returns 0 or -ENOMEM. */
static int add_query(LogindWatch *w, const char *path, bool listed)
{
    size_t n = strlen(path);
    Query *q = w->first;

    while (q && strcmp(q->path, path) != 0)
        q = q->next;
    if (q) {
        w->n_listed += listed && !q->listed;
        q->listed = q->listed || listed;
        return 0;
    }
    q = calloc(1, sizeof(*q) + n + 1);
    if (!q) {
        w->list_failed |= listed;
        return log_oom();
    }
    q->w = w;
    q->listed = listed;
    memcpy(q->path, path, n + 1);
    *w->last = q;
    w->last = &q->next;
    w->n_listed += listed;
    return 0;
}

static Query *free_queries(Query *q)
{
    while (q) {
        Query *next = q->next;

        free(q);
        q = next;
    }
    return NULL;
}

static void recheck_later(LogindWatch *w, const char *path)
{
    size_t n = strlen(path);
    Query *q;

    for (q = w->opening; q; q = q->next)
        if (strcmp(q->path, path) == 0)
            return;
    q = calloc(1, sizeof(*q) + n + 1);
    if (!q)
        return;
    memcpy(q->path, path, n + 1);
    q->next = w->opening;
    w->opening = q;
    if (q->next)
        return; /* the timer runs: further sessions must not put it off */
    if (sd_event_source_set_time_relative(w->recheck, RECHECK_USEC) < 0 ||
        sd_event_source_set_enabled(w->recheck, SD_EVENT_ONESHOT) < 0)
        log_debug("Cannot set the timer that rechecks opening sessions, ignoring.");
}

static int on_recheck(sd_event_source *source _unused_, uint64_t usec _unused_, void *arg)
{
    LogindWatch *w = arg;
    Query *opening = TAKE_PTR(w->opening);

    for (const Query *q = opening; q; q = q->next)
        (void)add_query(w, q->path, false);
    free_queries(opening);
    send_queries(w);
    return 0;
}

static int report_session(const LogindWatch *w, const char *path, const BusProperties *p)
{
    StageEvent e = {
            .kind = bus_property_is(p->state, "closing") ? STAGE_EVENT_SESSION_GONE
                                                         : STAGE_EVENT_SESSION,
            .age = bus_age_of(p->since),
            .id = path,
            .uid = p->uid,
            .class = session_class_from_string(p->class),
            .graphical = bus_session_is_graphical(p),
            .console = bus_property_is(p->type, "tty"),
            .seat = bus_session_has_seat(p),
            .start = login_start_from_service(p->service),
    };

    /* A greeter that is only "online" is hidden by another session. */
    e.active = bus_property_is(p->state, "active") ||
               (e.class != SESSION_CLASS_GREETER && bus_property_is(p->state, "online"));
    return w->listener->on_event(w->listener->arg, &e);
}

static int on_properties(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    Query *q = arg;
    LogindWatch *w = q->w;
    BusProperties p;
    int r = 0;

    w->n_sent--;
    if (bus_reply_is_error(w->listener, m)) {
        /* The list stays complete if a session of it has ended meanwhile. */
        if (q->listed && !sd_bus_message_is_method_error(m, NO_SUCH_OBJECT))
            w->list_failed = true;
    } else if (bus_properties_read(m, &p) >= 0) {
        if (bus_property_is(p.state, "opening") && bus_age_of(p.since) < OPENING_MAX_USEC)
            recheck_later(w, q->path);
        r = report_session(w, q->path, &p);
    }
    if (q->listed && --w->n_listed == 0 && !w->list_failed && r >= 0)
        r = bus_report(w->listener, STAGE_EVENT_LIST_END, NULL);
    send_queries(w);
    return r;
}

/* Sends one query. On success the pending call owns the query and frees it; on failure this
 * function frees the query. Returns 0 or a negative errno. */
static int send_query(LogindWatch *w, Query *q)
{
    sd_bus_message *m = NULL;
    sd_bus_slot *slot = NULL;
    int r;

    r = sd_bus_message_new_method_call(w->bus, &m, BUS_LOGIND, q->path, BUS_PROPERTIES, "GetAll");
    if (r >= 0)
        r = sd_bus_message_append(m, "s", BUS_LOGIND_SESSION);
    if (r >= 0)
        r = sd_bus_call_async(w->bus, &slot, m, on_properties, q, BUS_REPLY_USEC);
    sd_bus_message_unref(m);
    if (r >= 0)
        r = sd_bus_slot_set_destroy_callback(slot, free);
    if (r < 0)
        free(q);
    else
        r = sd_bus_slot_set_floating(slot, true);
    /* From here on the slot owns the query. If the slot does not float, this call frees the slot
     * and the query. */
    sd_bus_slot_unref(slot);
    return r;
}

static void send_queries(LogindWatch *w)
{
    while (w->first && w->n_sent < QUERIES_MAX) {
        Query *q = w->first;
        bool listed = q->listed;

        w->first = q->next;
        if (!w->first)
            w->last = &w->first;
        if (send_query(w, q) >= 0)
            w->n_sent++;
        else if (listed && w->n_listed > 0) {
            w->n_listed--;
            w->list_failed = true;
        }
    }
}

/* --- signals ---------------------------------------------------------------------------------- */

static int on_session_new(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    LogindWatch *w = arg;
    const char *id, *path;

    if (sd_bus_message_read(m, "so", &id, &path) < 0)
        return 0;
    (void)add_query(w, path, false);
    send_queries(w);
    return 0;
}

static int on_session_removed(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    const LogindWatch *w = arg;
    const char *id, *path;

    if (sd_bus_message_read(m, "so", &id, &path) < 0)
        return 0;
    return bus_report(w->listener, STAGE_EVENT_SESSION_GONE, path);
}

/* Queries all properties, because the meaning of a changed type, class or state depends on the
 * others. */
static int on_session_changed(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    LogindWatch *w = arg;
    const char *interface;

    if (sd_bus_message_read(m, "s", &interface) >= 0 &&
        strcmp(interface, BUS_LOGIND_SESSION) == 0) {
        (void)add_query(w, sd_bus_message_get_path(m), false);
        send_queries(w);
    }
    return 0;
}

static int on_list(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    LogindWatch *w = arg;
    const char *id, *user, *seat, *path;
    uint32_t uid;
    int r;

    if (bus_reply_is_error(w->listener, m) || sd_bus_message_enter_container(m, 'a', "(susso)") < 0)
        return 0;
    /* If another list is still being made, the replies of both lists are mixed. Then no list can
     * say which sessions are gone, and LIST_END is not reported. */
    w->list_failed = w->n_listed > 0;
    r = bus_report(w->listener, STAGE_EVENT_LIST_BEGIN, NULL);
    while (r >= 0 && sd_bus_message_read(m, "(susso)", &id, &uid, &user, &seat, &path) > 0)
        (void)add_query(w, path, true);
    if (r >= 0 && w->n_listed == 0 && !w->list_failed)
        r = bus_report(w->listener, STAGE_EVENT_LIST_END, NULL);
    send_queries(w);
    return r;
}

int logind_watch_list(LogindWatch *w)
{
    sd_bus_message *m = NULL;
    int r;

    r = sd_bus_message_new_method_call(w->bus, &m, BUS_LOGIND, BUS_LOGIND_PATH, BUS_LOGIND_MANAGER,
                                       "ListSessions");
    /* Without this flag the bus would start logind earlier than the boot does. */
    if (r >= 0)
        r = sd_bus_message_set_auto_start(m, false);
    if (r >= 0)
        r = sd_bus_call_async(w->bus, NULL, m, on_list, w, BUS_REPLY_USEC);
    sd_bus_message_unref(m);
    return r;
}

/* --- the connection --------------------------------------------------------------------------- */

int logind_watch_connect(LogindWatch *w, sd_bus *bus)
{
#define FROM_LOGIND "type='signal',sender='" BUS_LOGIND "',"
    static const struct {
        const char *rule;
        sd_bus_message_handler_t handler;
    } matches[] = {
            {FROM_LOGIND "path='" BUS_LOGIND_PATH "',interface='" BUS_LOGIND_MANAGER
                         "',member='SessionNew'",
             on_session_new},
            {FROM_LOGIND "path='" BUS_LOGIND_PATH "',interface='" BUS_LOGIND_MANAGER
                         "',member='SessionRemoved'",
             on_session_removed},
            {FROM_LOGIND "path_namespace='" BUS_LOGIND_PATH "/session',interface='" BUS_PROPERTIES
                         "',member='PropertiesChanged'",
             on_session_changed},
    };
    int r = 0;

    w->bus = sd_bus_ref(bus);
    for (size_t i = 0; r >= 0 && i < ELEMENTSOF(matches); i++)
        r = sd_bus_add_match_async(bus, NULL, matches[i].rule, matches[i].handler, NULL, w);
    return r < 0 ? r : logind_watch_list(w);
}

void logind_watch_disconnect(LogindWatch *w)
{
    w->first = free_queries(w->first);
    w->opening = free_queries(w->opening);
    w->last = &w->first;
    w->n_sent = w->n_listed = 0;
    w->list_failed = false;
    w->bus = sd_bus_unref(w->bus);
}

int logind_watch_new(sd_event *event, const BusListener *listener, LogindWatch **ret)
{
    LogindWatch *w = calloc(1, sizeof(*w));
    int r;

    if (!w)
        return -ENOMEM;
    w->listener = listener;
    w->last = &w->first;
    r = sd_event_add_time(event, &w->recheck, CLOCK_MONOTONIC, USEC_INFINITY, RECHECK_PRECISION,
                          on_recheck, w);
    if (r < 0) {
        free(w);
        return r;
    }
    *ret = w;
    return 0;
}

LogindWatch *logind_watch_free(LogindWatch *w)
{
    if (!w)
        return NULL;
    logind_watch_disconnect(w);
    sd_event_source_disable_unref(w->recheck);
    free(w);
    return NULL;
}
