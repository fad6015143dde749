/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/visible.h"

#include "base/log.h"
#include "command/progress.h"

#include <fcntl.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "config-paths.h"

#define NAME      "org.headstart1"
#define PATH      "/org/headstart1"
#define INTERFACE "org.headstart1.Status"

typedef struct Call {
    sd_bus *bus;
    sd_bus_error error;
    sd_bus_message *reply;
} Call;

static void call_done(Call *x)
{
    sd_bus_error_free(&x->error);
    sd_bus_message_unref(x->reply);
    sd_bus_flush_close_unref(x->bus);
}

void visible_done(Visible *v)
{
    benefits_done(&v->benefits);
    launch_history_done(&v->launches);
}

bool visible_is_needed(const Context *c)
{
    return faccessat(AT_FDCWD, c->state, R_OK | X_OK, AT_EACCESS) < 0 && errno == EACCES;
}

/* Calls a method without arguments, and enters the array that it returns. */
static int call(Call *x, const char *method, const char *contents)
{
    x->reply = sd_bus_message_unref(x->reply);
    CHECK(sd_bus_call_method(x->bus, NAME, PATH, INTERFACE, method, &x->error, &x->reply, NULL));
    return sd_bus_message_enter_container(x->reply, 'a', contents);
}

static int read_history(Call *x, History *ret)
{
    _cleanup_history_ History h = {0};
    const char *line;
    int r = call(x, "GetHistory", "s");

    while (r >= 0 && (r = sd_bus_message_read(x->reply, "s", &line)) > 0) {
        r = grow_array(&h.sessions, &h.allocated, h.n + 1, sizeof(SessionRecord));
        if (r < 0)
            return r;
        r = session_record_from_line(line, strlen(line), &h.sessions[h.n]);
        h.n += r >= 0;
        h.n_bad += r < 0;
        r = 0;
    }
    if (r < 0)
        return r;
    *ret = h;
    h = (History){0};
    return 0;
}

static int read_launches(Call *x, LaunchRecords *ret)
{
    _cleanup_launch_records_ LaunchRecords l = {0};
    const char *line;
    int r = call(x, "GetOwnLaunches", "s");

    while (r >= 0 && (r = sd_bus_message_read(x->reply, "s", &line)) > 0) {
        r = grow_array(&l.items, &l.allocated, l.n + 1, sizeof(LaunchRecord));
        if (r < 0)
            return r;
        r = launch_record_from_line(line, strlen(line), &l.items[l.n]);
        l.n += r >= 0;
        l.n_bad += r < 0;
        r = 0;
    }
    if (r < 0)
        return r;
    *ret = l;
    l = (LaunchRecords){0};
    return 0;
}

/* Returns the word of a reason as a static string; NULL: no such word, for example "". */
static const char *known_reason(const char *word)
{
    return policy_reason_to_string(policy_reason_from_string(word));
}

/* Reads why the user's own logins are not replayed; *ret becomes NULL if they are. */
static int read_own_off_reason(Call *x, const char **ret)
{
    const char *key, *word;
    int r = call(x, "GetOwnLogins", "{sv}");

    *ret = NULL;
    while (r >= 0 && (r = sd_bus_message_enter_container(x->reply, 'e', "sv")) > 0) {
        r = sd_bus_message_read(x->reply, "s", &key);
        if (r >= 0 && strcmp(key, "OffReason") == 0) {
            r = sd_bus_message_read(x->reply, "v", "s", &word);
            *ret = r < 0 ? NULL : known_reason(word);
        } else if (r >= 0)
            r = sd_bus_message_skip(x->reply, "v");
        if (r >= 0)
            r = sd_bus_message_exit_container(x->reply);
    }
    return r;
}

static int read_property(Call *x, const char *name, char type, void *ret)
{
    return sd_bus_get_property_trivial(x->bus, NAME, PATH, INTERFACE, name, &x->error, type, ret);
}

/* Reads one of the properties PREFIX…, for example LoginSaved. */
static int read_figure(Call *x, const char *prefix, const char *name, char type, void *ret)
{
    char property[64];

    snprintf(property, sizeof(property), "%s%s", prefix, name);
    return read_property(x, property, type, ret);
}

/* Reads the figures that logins ("Login") and starts of applications ("Launch") have. */
static int read_effect(Call *x, const char *prefix, Effect *ret)
{
    uint64_t replayed, control;
    Effect e = {0};
    int known;

    CHECK(read_figure(x, prefix, "Replayed", 't', &replayed));
    CHECK(read_figure(x, prefix, "Control", 't', &control));
    CHECK(read_figure(x, prefix, "Known", 'b', &known));
    CHECK(read_figure(x, prefix, "Saved", 'd', &e.saved));
    CHECK(read_figure(x, prefix, "SavedLow", 'd', &e.saved_low));
    CHECK(read_figure(x, prefix, "SavedHigh", 'd', &e.saved_high));
    e.n_replayed = replayed;
    e.n_control = control;
    e.estimated = e.known = known;
    *ret = e;
    return 0;
}

/* The service publishes times of logins, and none of starts. */
static int read_logins(Call *x, Effect *ret)
{
    uint64_t with, without;
    Effect e;

    CHECK(read_effect(x, "Login", &e));
    CHECK(read_property(x, "LoginWithUSec", 't', &with));
    CHECK(read_property(x, "LoginWithoutUSec", 't', &without));
    e.replayed_seconds = (double)with / USEC_PER_SEC;
    e.control_seconds = (double)without / USEC_PER_SEC;
    *ret = e;
    return 0;
}

/* Reads why boots ("Boot"), logins or starts are not replayed; *ret becomes NULL if they are. */
static int read_off_reason(Call *x, const char *property, const char **ret)
{
    _cleanup_free_ char *word = NULL;

    CHECK(sd_bus_get_property_string(x->bus, NAME, PATH, INTERFACE, property, &x->error, &word));
    *ret = known_reason(word);
    return 0;
}

static int read_all(Call *x, uint32_t control_interval, Visible *v)
{
    _cleanup_free_ char *state = NULL;

    CHECK(sd_bus_open_system(&x->bus));
    v->benefits.control_interval = control_interval;
    for (Stage s = 0; s < _STAGE_MAX; s++)
        v->benefits.planned_intervals[s] = INTERVAL_HIDDEN;
    CHECK(read_history(x, &v->benefits.history));
    CHECK(read_launches(x, &v->launches.records));
    CHECK(read_logins(x, &v->all_logins));
    CHECK(read_effect(x, "Launch", &v->all_launches));
    CHECK(read_off_reason(x, "BootOffReason", &v->benefits.off[STAGE_BOOT]));
    CHECK(read_off_reason(x, "LoginOffReason", &v->off_logins));
    CHECK(read_off_reason(x, "LaunchOffReason", &v->launches.off));
    CHECK(read_own_off_reason(x, &v->benefits.off[STAGE_LOGIN]));
    CHECK(sd_bus_get_property_string(x->bus, NAME, PATH, INTERFACE, "State", &x->error, &state));
    snprintf(v->state, sizeof(v->state), "%s", state);
    return 0;
}

int visible_read(const Context *c, usec_t now, Visible *ret)
{
    _cleanup_(call_done) Call x = {.error = SD_BUS_ERROR_NULL};
    _cleanup_visible_ Visible v = {0};
    Progress progress;
    int r;

    /* The service reads only the machine's own state. With a fixture the service is asked about
     * every state directory, because the tests start a service of their own for it. */
    if (strcmp(c->state, HEADSTART_STATE_DIR) != 0 && c->system_fd == AT_FDCWD)
        return cli_error(EACCES, "%s: %m", c->state);
    progress = progress_start("Waiting for headstart-bus", c->quiet);
    r = read_all(&x, c->config.control_interval, &v);
    progress_done(&progress);
    if (r >= 0)
        r = benefits_compute(&v.benefits, now);
    if (r >= 0)
        r = launch_history_compute(&v.launches, now);
    if (r < 0)
        return cli_error(r, "only root may read %s, and headstart-bus does not answer: %s",
                         c->state, x.error.message ? x.error.message : error_text(r));
    *ret = v;
    v = (Visible){0};
    return 0;
}
