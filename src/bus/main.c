/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* headstart-bus offers org.headstart1 on the system bus: read-only figures for settings panels of
 * desktops (headstart-bus(8)). The bus starts the program for the first call. The program exits
 * when no call has come for some seconds. */

#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "base/parse.h"
#include "bus/snapshot.h"
#include "system/call-filter.h"

#include <fcntl.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "config-paths.h"

#define NAME      "org.headstart1"
#define PATH      "/org/headstart1"
#define INTERFACE "org.headstart1.Status"
#define IDLE_USEC (10 * USEC_PER_SEC)
/* All calls within this time are answered from one reading of the files. */
#define FRESH_USEC (2 * USEC_PER_SEC)

enum {
    OPTION_HELP = 1,
    OPTION_VERSION,
    OPTION_STATE,
    OPTION_ROOT,
    OPTION_IDLE,
};

static const Option options[] = {
        {OPTION_HELP, 'h', "help", NULL, "Show this help"},
        {OPTION_VERSION, 0, "version", NULL, "Show the version"},
        {OPTION_STATE, 0, "state", "DIR", "State directory [" HEADSTART_STATE_DIR "]"},
        {OPTION_ROOT, 0, "root", "DIR", "Read /etc and /proc below DIR [/]"},
        {OPTION_IDLE, 0, "idle", "TIME", "Exit after TIME without a call [10s]"},
        {0},
};

typedef struct Service {
    const char *state_dir;
    int system_fd;
    usec_t idle_usec;
    Snapshot snapshot;
    bool known;       /* the files could be read at least once */
    usec_t read_usec; /* CLOCK_MONOTONIC, when the files were read last; 0: never */
    int error;        /* of that reading */
} Service;

/* Updates the figures that the properties show. An error is reported once, not for each call,
 * because any user can call. */
static void refresh(Service *s)
{
    usec_t now = clock_now(CLOCK_MONOTONIC);
    Snapshot fresh;
    int r;

    if (s->read_usec > 0 && now - s->read_usec < FRESH_USEC)
        return;
    r = snapshot_read(s->state_dir, s->system_fd, clock_now(CLOCK_REALTIME), &fresh);
    if (r < 0 && r != s->error)
        log_warning_errno(r, "headstart-bus: %s: %m", s->state_dir);
    s->read_usec = now;
    s->error = r;
    if (r < 0)
        return;
    snapshot_done(&s->snapshot);
    s->snapshot = fresh;
    s->known = true;
}

/* Runs before each message is handled. Returns 0 to handle it, or an error that the caller gets. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    Service *s = userdata;

    if (!sd_bus_message_is_method_call(m, NULL, NULL))
        return 0;
    refresh(s);
    return s->known ? 0 : s->error;
}

static int append_figures(sd_bus_message *reply, const StageFigures *f)
{
    int r = sd_bus_message_open_container(reply, 'a', "{sv}");

#define APPEND(name, type, value) \
    if (r >= 0)                   \
    r = sd_bus_message_append(reply, "{sv}", name, type, value)
    APPEND("LastUSec", "t", f->last_usec);
    APPEND("Replayed", "t", f->n_replayed);
    APPEND("Control", "t", f->n_control);
    APPEND("Known", "b", f->known);
    APPEND("Saved", "d", f->saved);
    APPEND("SavedLow", "d", f->saved_low);
    APPEND("SavedHigh", "d", f->saved_high);
    APPEND("WithUSec", "t", f->with_usec);
    APPEND("WithoutUSec", "t", f->without_usec);
    APPEND("OffReason", "s", f->off_reason);
#undef APPEND
    return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_sender(sd_bus_message *m, uid_t *ret)
{
    sd_bus_creds *creds = NULL;
    int r = sd_bus_query_sender_creds(m, SD_BUS_CREDS_EUID, &creds);

    if (r >= 0)
        r = sd_bus_creds_get_euid(creds, ret);
    sd_bus_creds_unref(creds);
    return r;
}

/* Handles GetOwnLogins() -> a{sv}, which returns the figures of the caller's logins. */
static int get_own_logins(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    const Service *s = userdata;
    sd_bus_message *reply = NULL;
    StageFigures f;
    uid_t uid;
    int r = get_sender(m, &uid);

    if (r >= 0)
        r = snapshot_own_logins(s->state_dir, &s->snapshot, uid, clock_now(CLOCK_REALTIME), &f);
    if (r >= 0)
        r = sd_bus_message_new_method_return(m, &reply);
    if (r >= 0)
        r = append_figures(reply, &f);
    if (r >= 0)
        r = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return r;
}

static int append_sessions(sd_bus_message *reply, const Service *s, uid_t uid)
{
    const History *h = &s->snapshot.history;
    int r = 0;

    for (size_t i = 0; r >= 0 && i < h->n; i++) {
        _cleanup_free_ char *line = NULL;
        size_t n;

        if (!snapshot_is_visible(&h->sessions[i], uid))
            continue;
        r = session_record_to_line(&h->sessions[i], &line, &n);
        if (r >= 0)
            r = sd_bus_message_append(reply, "s", line);
    }
    return r;
}

static int append_launches(sd_bus_message *reply, const Service *s, uid_t uid)
{
    _cleanup_launch_records_ LaunchRecords l = {0};
    int r = snapshot_own_launches(s->state_dir, uid, &l);

    for (size_t i = 0; r >= 0 && i < l.n; i++) {
        _cleanup_free_ char *line = NULL;
        size_t n;

        r = launch_record_to_line(&l.items[i], &line, &n);
        if (r >= 0)
            r = sd_bus_message_append(reply, "s", line);
    }
    return r;
}

/* Answers a call with the lines that `append` adds for the caller: as. */
static int send_lines(sd_bus_message *m, const Service *s,
                      int (*append)(sd_bus_message *reply, const Service *s, uid_t uid))
{
    sd_bus_message *reply = NULL;
    uid_t uid;
    int r = get_sender(m, &uid);

    if (r >= 0)
        r = sd_bus_message_new_method_return(m, &reply);
    if (r >= 0)
        r = sd_bus_message_open_container(reply, 'a', "s");
    if (r >= 0)
        r = append(reply, s, uid);
    if (r >= 0)
        r = sd_bus_message_close_container(reply);
    if (r >= 0)
        r = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return r;
}

/* Handles GetHistory() -> as, which returns the lines of the history that are for boots or for the
 * caller's logins, oldest first. */
static int get_history(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    return send_lines(m, userdata, append_sessions);
}

/* Handles GetOwnLaunches() -> as, which returns the recorded starts of the caller's applications,
 * oldest first. */
static int get_own_launches(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
    return send_lines(m, userdata, append_launches);
}

static int get_version(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    return sd_bus_message_append(reply, "s", HEADSTART_VERSION);
}

#define FIELD(name, type, field) \
    SD_BUS_PROPERTY(name, type, NULL, offsetof(Service, snapshot.field), 0)
#define STAGE_FIELDS(prefix, stage)                                                           \
    FIELD(prefix "LastUSec", "t", stage.last_usec),                                           \
            FIELD(prefix "Replayed", "t", stage.n_replayed),                                  \
            FIELD(prefix "Control", "t", stage.n_control),                                    \
            FIELD(prefix "Known", "b", stage.known), FIELD(prefix "Saved", "d", stage.saved), \
            FIELD(prefix "SavedLow", "d", stage.saved_low),                                   \
            FIELD(prefix "SavedHigh", "d", stage.saved_high),                                 \
            FIELD(prefix "WithUSec", "t", stage.with_usec),                                   \
            FIELD(prefix "WithoutUSec", "t", stage.without_usec),                             \
            FIELD(prefix "Policy", "s", stage.policy),                                        \
            FIELD(prefix "Harmful", "b", stage.harmful),                                      \
            FIELD(prefix "OffReason", "s", stage.off_reason)

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        FIELD("Enabled", "b", enabled),
        FIELD("State", "s", state),
        STAGE_FIELDS("Boot", boot),
        STAGE_FIELDS("Login", login),
        FIELD("LaunchReplayed", "t", launch.n_replayed),
        FIELD("LaunchControl", "t", launch.n_control),
        FIELD("LaunchKnown", "b", launch.known),
        FIELD("LaunchSaved", "d", launch.saved),
        FIELD("LaunchSavedLow", "d", launch.saved_low),
        FIELD("LaunchSavedHigh", "d", launch.saved_high),
        FIELD("LaunchOffReason", "s", launch.off_reason),
        SD_BUS_METHOD("GetOwnLogins", "", "a{sv}", get_own_logins, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetHistory", "", "as", get_history, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetOwnLaunches", "", "as", get_own_launches, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

/* Handles calls until none has come for `idle_usec`. Then releases the name, so that the bus starts
 * a new process for later calls, and answers the calls that have arrived before that. */
static int serve(sd_bus *bus, usec_t idle_usec)
{
    bool released = false;
    int r;

    for (;;) {
        while ((r = sd_bus_process(bus, NULL)) > 0)
            continue;
        if (r < 0 || released)
            return r;
        r = sd_bus_wait(bus, idle_usec);
        if (r < 0 && r != -EINTR)
            return r;
        if (r == 0) {
            r = sd_bus_release_name(bus, NAME);
            if (r < 0)
                return r;
            released = true;
        }
    }
}

static int run(Service *s)
{
    sd_bus *bus = NULL;
    int r = sd_bus_open_system(&bus);

    if (r >= 0)
        r = sd_bus_add_filter(bus, NULL, on_message, s);
    if (r >= 0)
        r = sd_bus_add_object_vtable(bus, NULL, PATH, INTERFACE, vtable, s);
    if (r >= 0)
        r = sd_bus_request_name(bus, NAME, 0);
    if (r >= 0)
        r = serve(bus, s->idle_usec);
    sd_bus_flush_close_unref(bus);
    return r < 0 ? log_error_errno(r, "headstart-bus: the system bus: %m") : 0;
}

static void help(void)
{
    puts("headstart-bus [OPTIONS…]\n\n"
         "Answer questions on the system bus about what headstart saves.\n\n"
         "Options:");
    options_print(options);
    puts("\nSee the headstart-bus(8) man page for details.");
}

/* Returns 1 to continue, 0 if nothing is left to do, or -EINVAL after it reported wrong usage. */
static int parse(int argc, char **argv, Service *s, const char **ret_root)
{
    Options o = {.own = options, .argc = argc, .argv = argv};
    const char *value;
    int k, n;

    while ((k = options_next(&o, &value)) > 0)
        switch (k) {
        case OPTION_HELP:
            help();
            return 0;
        case OPTION_VERSION:
            puts("headstart-bus " HEADSTART_VERSION);
            return 0;
        case OPTION_STATE:
            s->state_dir = value;
            break;
        case OPTION_IDLE:
            if (parse_timespan(value, &s->idle_usec) < 0)
                return options_refuse("headstart-bus", "--idle=%s: not a time span", value);
            break;
        default:
            *ret_root = value;
        }
    if (k < 0)
        return options_refuse("headstart-bus", "%s", o.message);
    (void)options_arguments(&o, &n);
    return n > 0 ? options_refuse("headstart-bus", "takes no arguments") : 1;
}

int main(int argc, char **argv)
{
    Service s = {.state_dir = HEADSTART_STATE_DIR, .system_fd = AT_FDCWD, .idle_usec = IDLE_USEC};
    const char *root = NULL;
    int r;

    (void)call_filter_complete(); /* without it, the unit's own filter still applies */
    log_parse_environment();
    r = parse(argc, argv, &s, &root);
    if (r <= 0)
        return r < 0 ? 2 : EXIT_SUCCESS;
    if (root) {
        s.system_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s.system_fd < 0) {
            log_error_errno(errno, "headstart-bus: %s: %m", root);
            return EXIT_FAILURE;
        }
    }
    r = run(&s);
    snapshot_done(&s.snapshot);
    closep(&s.system_fd);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
