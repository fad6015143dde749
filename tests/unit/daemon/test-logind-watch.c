/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the queue of queries to logind, with a fake of libsystemd whose calls fail on request. The
 * definitions of the executable replace those of the library. */

#include "daemon/logind-watch.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SESSIONS  3
#define SLOTS_MAX 64

struct sd_bus_slot {
    void *userdata;
    sd_bus_destroy_t destroy;
};

static struct {
    int call, destroy_callback, floating; /* the results of these functions */
    sd_bus_message_handler_t on_list, on_properties, on_changed;
    sd_bus_slot *slots[SLOTS_MAX]; /* calls that are under way or done */
    const char *path;              /* of the next signal */
    const char *called;            /* the path of the last call */
    unsigned n_slots, n_calls, n_freed;
    unsigned n_listed; /* sessions read from the list */
    unsigned n_events[_STAGE_EVENT_MAX];
} fake;

/* --- libsystemd ------------------------------------------------------------------------------- */

int sd_event_add_time(sd_event *e, sd_event_source **ret, clockid_t clock, uint64_t usec,
                      uint64_t accuracy, sd_event_time_handler_t callback, void *userdata)
{
    return 0;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *s)
{
    return NULL;
}

sd_bus *sd_bus_ref(sd_bus *bus)
{
    return bus;
}

sd_bus *sd_bus_unref(sd_bus *bus)
{
    return NULL;
}

int sd_bus_add_match_async(sd_bus *bus, sd_bus_slot **ret, const char *match,
                           sd_bus_message_handler_t callback,
                           sd_bus_message_handler_t install_callback, void *userdata)
{
    if (strstr(match, "PropertiesChanged"))
        fake.on_changed = callback;
    return 0;
}

const char *sd_bus_message_get_path(sd_bus_message *m)
{
    return fake.path;
}

int sd_bus_message_new_method_call(sd_bus *bus, sd_bus_message **ret, const char *destination,
                                   const char *path, const char *interface, const char *member)
{
    *ret = NULL;
    fake.called = path;
    return 0;
}

int sd_bus_message_append(sd_bus_message *m, const char *types, ...)
{
    return 0;
}

int sd_bus_message_set_auto_start(sd_bus_message *m, int b)
{
    return 0;
}

sd_bus_message *sd_bus_message_unref(sd_bus_message *m)
{
    return NULL;
}

int sd_bus_call_async(sd_bus *bus, sd_bus_slot **ret, sd_bus_message *m,
                      sd_bus_message_handler_t callback, void *userdata, uint64_t usec)
{
    if (!ret) {
        fake.on_list = callback;
        return 1;
    }
    fake.n_calls++;
    if (fake.call < 0)
        return fake.call;
    fake.on_properties = callback;
    *ret = calloc(1, sizeof(**ret));
    assert_non_null(*ret);
    (*ret)->userdata = userdata;
    return 1;
}

int sd_bus_slot_set_destroy_callback(sd_bus_slot *slot, sd_bus_destroy_t callback)
{
    if (fake.destroy_callback < 0)
        return fake.destroy_callback;
    slot->destroy = callback;
    return 0;
}

/* A slot that floats belongs to the bus. */
int sd_bus_slot_set_floating(sd_bus_slot *slot, int b)
{
    if (fake.floating < 0)
        return fake.floating;
    assert_true(fake.n_slots < SLOTS_MAX);
    fake.slots[fake.n_slots++] = slot;
    return 1;
}

/* Frees a slot and calls its destroy callback, as the library does when the last reference is gone.
 * Freed memory is overwritten, so that a later use is noticed even without ASan. */
static void free_slot(sd_bus_slot *slot)
{
    if (slot->destroy) {
        memset(slot->userdata, 0, malloc_usable_size(slot->userdata));
        slot->destroy(slot->userdata);
        fake.n_freed++;
    }
    free(slot);
}

sd_bus_slot *sd_bus_slot_unref(sd_bus_slot *slot)
{
    for (unsigned i = 0; i < fake.n_slots; i++)
        if (slot == fake.slots[i])
            return NULL;
    if (slot)
        free_slot(slot);
    return NULL;
}

int sd_bus_message_is_method_error(sd_bus_message *m, const char *name)
{
    return 0;
}

/* Replies have no properties. */
int sd_bus_message_enter_container(sd_bus_message *m, char type, const char *contents)
{
    return type == 'a';
}

int sd_bus_message_read(sd_bus_message *m, const char *types, ...)
{
    static const char *const paths[SESSIONS] = {"/session/a", "/session/b", "/session/c"};
    va_list ap;

    if (strcmp(types, "s") == 0) {
        va_start(ap, types);
        *va_arg(ap, const char **) = "org.freedesktop.login1.Session";
        va_end(ap);
        return 1;
    }
    if (fake.n_listed == SESSIONS)
        return 0;
    va_start(ap, types);
    *va_arg(ap, const char **) = "id";
    *va_arg(ap, uint32_t *) = 1000;
    *va_arg(ap, const char **) = "user";
    *va_arg(ap, const char **) = "";
    *va_arg(ap, const char **) = paths[fake.n_listed++];
    va_end(ap);
    return 1;
}

/* --- the listener ----------------------------------------------------------------------------- */

static int on_event(void *arg, StageEvent *e)
{
    fake.n_events[e->kind]++;
    return 0;
}

static void on_reply(void *arg)
{
}

static const BusListener listener = {.on_event = on_event, .on_reply = on_reply};

/* --- tests ------------------------------------------------------------------------------------ */

/* Lists the sessions. */
static void list(LogindWatch *w)
{
    fake.n_listed = fake.n_calls = 0;
    assert_int_equal(logind_watch_list(w), 1);
    assert_int_equal(fake.on_list(NULL, w, NULL), 0);
    assert_int_equal(fake.n_calls, SESSIONS);
}

/* Lists three sessions, and the query for each of them fails: this list never ends. The failed
 * queries do not affect the next list, which ends once all its queries have a reply. */
static void list_twice(void)
{
    LogindWatch *w;

    assert_int_equal(logind_watch_new(NULL, &listener, &w), 0);
    list(w);
    assert_int_equal(fake.n_slots, 0);
    assert_int_equal(fake.n_events[STAGE_EVENT_LIST_END], 0);

    fake.call = fake.destroy_callback = fake.floating = 0;
    list(w);
    assert_int_equal(fake.n_slots, SESSIONS);
    for (unsigned i = 0; i < SESSIONS; i++) {
        assert_int_equal(fake.n_events[STAGE_EVENT_LIST_END], 0);
        assert_int_equal(fake.on_properties(NULL, fake.slots[i]->userdata, NULL), 0);
        free_slot(fake.slots[i]);
    }
    assert_int_equal(fake.n_events[STAGE_EVENT_LIST_BEGIN], 2);
    assert_int_equal(fake.n_events[STAGE_EVENT_SESSION], SESSIONS);
    assert_int_equal(fake.n_events[STAGE_EVENT_LIST_END], 1);
    assert_null(logind_watch_free(w));
}

static void test_floating_fails(void **state)
{
    memset(&fake, 0, sizeof(fake));
    fake.floating = -ESTALE;
    list_twice();
    assert_int_equal(fake.n_freed, 2 * SESSIONS);
}

/* Without the destroy callback, only a leak checker notices a query that is never freed. The same
 * holds for the next test. */
static void test_destroy_callback_fails(void **state)
{
    memset(&fake, 0, sizeof(fake));
    fake.destroy_callback = -EINVAL;
    list_twice();
    assert_int_equal(fake.n_freed, SESSIONS);
}

static void reply(unsigned slot)
{
    assert_int_equal(fake.on_properties(NULL, fake.slots[slot]->userdata, NULL), 0);
    free_slot(fake.slots[slot]);
}

/* A user changes a property of a session in a loop. The queue has one query of this session, and
 * the session of another user is queried next. */
static void test_many_changes(void **state)
{
    unsigned sent;
    LogindWatch *w;

    memset(&fake, 0, sizeof(fake));
    assert_int_equal(logind_watch_new(NULL, &listener, &w), 0);
    assert_int_equal(logind_watch_connect(w, NULL), 1);
    assert_non_null(fake.on_changed);
    fake.path = "/session/a";
    for (int i = 0; i < 1000; i++)
        assert_int_equal(fake.on_changed(NULL, w, NULL), 0);
    sent = fake.n_calls;
    assert_true(sent < SLOTS_MAX / 2 + 1);
    fake.path = "/session/b";
    assert_int_equal(fake.on_changed(NULL, w, NULL), 0);
    assert_int_equal(fake.n_calls, sent);
    reply(0);
    assert_string_equal(fake.called, "/session/a");
    reply(1);
    assert_string_equal(fake.called, "/session/b");
    for (unsigned i = 2; i < fake.n_slots; i++)
        reply(i);
    assert_int_equal(fake.n_calls, sent + 2);
    assert_null(logind_watch_free(w));
}

static void test_call_fails(void **state)
{
    memset(&fake, 0, sizeof(fake));
    fake.call = -ENOTCONN;
    list_twice();
    assert_int_equal(fake.n_freed, SESSIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_floating_fails),
            cmocka_unit_test(test_destroy_callback_fails),
            cmocka_unit_test(test_call_fails),
            cmocka_unit_test(test_many_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
