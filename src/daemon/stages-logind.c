/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sessions, as logind tells of them. */

#include "base/log.h"
#include "base/macros.h"
#include "daemon/stages-bus.h"

#include <string.h>

#define LOGIND_SESSION     "org.freedesktop.login1.Session"
#define NO_SUCH_OBJECT     "org.freedesktop.DBus.Error.UnknownObject"
#define OPENING_MAX_USEC   (120 * USEC_PER_SEC) /* no longer is one asked whether it is open */
#define SESSIONS_ASKED_MAX 32U                  /* at once: a bus has limits of its own */

/* --- properties ------------------------------------------------------------------------------- */

/* Where a property goes, by its name and signature; of a structure, its first member. */
static void *place_of(Properties *p, const char *name, const char *contents, char *ret_type)
{
    const struct {
        const char *name, *contents;
        void *place;
    } table[] = {
            {"Class", "s", &p->class},
            {"Type", "s", &p->type},
            {"State", "s", &p->state},
            {"Seat", "(so)", &p->seat},
            {"User", "(uo)", &p->uid},
            {"TimestampMonotonic", "t", &p->since},
            {"LoadState", "s", &p->load_state},
            {"ActiveState", "s", &p->active_state},
            {"Job", "(uo)", &p->job},
            {"ActiveEnterTimestampMonotonic", "t", &p->active_since},
    };

    for (size_t i = 0; i < ELEMENTSOF(table); i++)
        if (strcmp(table[i].name, name) == 0 && strcmp(table[i].contents, contents) == 0) {
            *ret_type = contents[contents[0] == '(' ? 1 : 0];
            return table[i].place;
        }
    return NULL;
}

static int read_property(sd_bus_message *m, Properties *p)
{
    const char *name, *contents, *path;
    void *place;
    char type;
    int r = sd_bus_message_read_basic(m, 's', &name);

    if (r >= 0)
        r = sd_bus_message_peek_type(m, NULL, &contents);
    if (r < 0)
        return r;
    place = place_of(p, name, contents, &type);
    if (!place)
        return sd_bus_message_skip(m, "v");
    if (contents[0] != '(')
        return sd_bus_message_read(m, "v", contents, place);
    return sd_bus_message_read(m, "v", contents, place, &path);
}

int properties_read(sd_bus_message *m, Properties *p)
{
    int r = sd_bus_message_enter_container(m, 'a', "{sv}");

    *p = (Properties){.uid = UID_INVALID};
    while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
        r = read_property(m, p);
        if (r >= 0)
            r = sd_bus_message_exit_container(m);
    }
    return r;
}

bool property_is(const char *s, const char *word)
{
    return s && strcmp(s, word) == 0;
}

/* --- sessions --------------------------------------------------------------------------------- */

static int feed_session(SystemSource *s, const char *path, const Properties *p)
{
    StageEvent e = {
            .kind = property_is(p->state, "closing") ? STAGE_EVENT_SESSION_GONE
                                                     : STAGE_EVENT_SESSION,
            .age = system_age_of(p->since),
            .id = path,
            .uid = p->uid,
            .class = session_class_from_string(p->class),
            .graphical = property_is(p->type, "x11") || property_is(p->type, "wayland") ||
                         property_is(p->type, "mir"),
            .console = property_is(p->type, "tty"),
            .seat = p->seat && *p->seat,
    };

    /* A greeter that is online is one that another session covers. */
    e.active = property_is(p->state, "active") ||
               (e.class != SESSION_CLASS_GREETER && property_is(p->state, "online"));
    return system_feed(s, &e);
}

static void ask_sessions(SystemSource *s);
static void queue_session(SystemSource *s, const char *path, bool listed);

static void remember_opening(SystemSource *s, const char *path)
{
    size_t n = strlen(path);
    Question *q;

    for (q = s->opening; q; q = q->next)
        if (strcmp(q->path, path) == 0)
            return;
    q = calloc(1, sizeof(*q) + n + 1);
    if (!q)
        return;
    memcpy(q->path, path, n + 1);
    q->next = s->opening;
    s->opening = q;
    if (sd_event_source_set_time_relative(s->recheck, RECHECK_USEC) < 0 ||
        sd_event_source_set_enabled(s->recheck, SD_EVENT_ONESHOT) < 0)
        log_debug("Cannot ask again for sessions that open, ignoring.");
}

int logind_on_recheck(sd_event_source *source _unused_, uint64_t usec _unused_, void *arg)
{
    SystemSource *s = arg;

    while (s->opening) {
        Question *q = s->opening;

        s->opening = q->next;
        queue_session(s, q->path, false);
        free(q);
    }
    ask_sessions(s);
    return 0;
}

static int on_session(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    Question *q = arg;
    SystemSource *s = q->s;
    bool listed = q->listed;
    Properties p;
    int r = 0;

    s->n_asked--;
    if (system_is_error(s, m)) {
        /* Gone already is an answer, none is not. */
        if (listed && !sd_bus_message_is_method_error(m, NO_SUCH_OBJECT))
            s->list_failed = true;
    } else if (properties_read(m, &p) >= 0) {
        if (property_is(p.state, "opening") && system_age_of(p.since) < OPENING_MAX_USEC)
            remember_opening(s, q->path);
        r = feed_session(s, q->path, &p);
    }
    if (listed && --s->n_listed == 0 && !s->list_failed && r >= 0)
        r = system_feed_kind(s, STAGE_EVENT_LIST_END, NULL);
    ask_sessions(s);
    return r;
}

/* Sends one question. On success the pending call owns it and frees it; on failure it is freed. 0
 * or a negative errno. */
static int send_question(SystemSource *s, Question *q)
{
    sd_bus_message *m = NULL;
    sd_bus_slot *slot = NULL;
    int r;

    r = sd_bus_message_new_method_call(s->bus, &m, LOGIND, q->path, PROPERTIES, "GetAll");
    if (r >= 0)
        r = sd_bus_message_append(m, "s", LOGIND_SESSION);
    if (r >= 0)
        r = sd_bus_call_async(s->bus, &slot, m, on_session, q, ANSWER_USEC);
    sd_bus_message_unref(m);
    if (r >= 0)
        r = sd_bus_slot_set_destroy_callback(slot, free);
    if (r < 0)
        free(q);
    else
        r = sd_bus_slot_set_floating(slot, true);
    /* From here on the slot frees the question: now, if it does not float. */
    sd_bus_slot_unref(slot);
    return r;
}

static void ask_sessions(SystemSource *s)
{
    while (s->first && s->n_asked < SESSIONS_ASKED_MAX) {
        Question *q = s->first;
        bool listed = q->listed;

        s->first = q->next;
        if (!s->first)
            s->last = &s->first;
        if (send_question(s, q) >= 0)
            s->n_asked++;
        else if (listed && s->n_listed > 0) {
            s->n_listed--;
            s->list_failed = true;
        }
    }
}

void logind_forget(SystemSource *s)
{
    while (s->first) {
        Question *q = s->first;

        s->first = q->next;
        free(q);
    }
    while (s->opening) {
        Question *q = s->opening;

        s->opening = q->next;
        free(q);
    }
    s->last = &s->first;
    s->n_asked = s->n_listed = 0;
    s->list_failed = false;
}

static void queue_session(SystemSource *s, const char *path, bool listed)
{
    size_t n = strlen(path);
    Question *q = calloc(1, sizeof(*q) + n + 1);

    if (!q) {
        log_oom();
        s->list_failed |= listed;
        return;
    }
    q->s = s;
    q->listed = listed;
    memcpy(q->path, path, n + 1);
    *s->last = q;
    s->last = &q->next;
    s->n_listed += listed;
}

int logind_on_session_new(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    SystemSource *s = arg;
    const char *id, *path;

    if (sd_bus_message_read(m, "so", &id, &path) < 0)
        return 0;
    queue_session(s, path, false);
    ask_sessions(s);
    return 0;
}

int logind_on_session_removed(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    const char *id, *path;

    if (sd_bus_message_read(m, "so", &id, &path) < 0)
        return 0;
    return system_feed_kind(arg, STAGE_EVENT_SESSION_GONE, path);
}

/* Asked for anew as a whole: what a change of a session's type, class or state means, only all of
 * them together tell. */
int logind_on_session_changed(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    SystemSource *s = arg;
    const char *interface;

    if (sd_bus_message_read(m, "s", &interface) >= 0 && strcmp(interface, LOGIND_SESSION) == 0) {
        queue_session(s, sd_bus_message_get_path(m), false);
        ask_sessions(s);
    }
    return 0;
}

static int on_list(sd_bus_message *m, void *arg, sd_bus_error *error _unused_)
{
    SystemSource *s = arg;
    const char *id, *user, *seat, *path;
    uint32_t uid;
    int r;

    if (system_is_error(s, m) || sd_bus_message_enter_container(m, 'a', "(susso)") < 0)
        return 0;
    if (s->n_listed > 0) /* another list is under way: it names the same or will be told of more */
        s->list_failed = true;
    else
        s->list_failed = false;
    r = system_feed_kind(s, STAGE_EVENT_LIST_BEGIN, NULL);
    while (r >= 0 && sd_bus_message_read(m, "(susso)", &id, &uid, &user, &seat, &path) > 0)
        queue_session(s, path, true);
    if (r >= 0 && s->n_listed == 0 && !s->list_failed)
        r = system_feed_kind(s, STAGE_EVENT_LIST_END, NULL);
    ask_sessions(s);
    return r;
}

int logind_ask(SystemSource *s)
{
    sd_bus_message *m = NULL;
    int r;

    r = sd_bus_message_new_method_call(s->bus, &m, LOGIND, LOGIND_PATH, LOGIND_MANAGER,
                                       "ListSessions");
    /* It is not to be started earlier because of us: its coming is told of. */
    if (r >= 0)
        r = sd_bus_message_set_auto_start(m, false);
    if (r >= 0)
        r = sd_bus_call_async(s->bus, NULL, m, on_list, s, ANSWER_USEC);
    sd_bus_message_unref(m);
    return r;
}
