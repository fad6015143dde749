/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The queue of questions to logind, with a fake of libsystemd whose calls fail on request. The
 * executable's own definitions take the place of the library's. */

#include "daemon/stages-bus.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SESSIONS 3

struct sd_bus_slot {
    void *userdata;
    sd_bus_destroy_t destroy;
    bool floating;
};

static struct {
    int call, destroy_callback, floating; /* what the function of that name returns */
    sd_bus_message_handler_t on_list;
    unsigned n_calls, n_freed, n_listed;
    StageEventKind last;
} fake;

/* --- libsystemd ------------------------------------------------------------------------------- */

int sd_bus_message_new_method_call(sd_bus *bus, sd_bus_message **ret, const char *destination,
                                   const char *path, const char *interface, const char *member)
{
    *ret = NULL;
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

int sd_bus_slot_set_floating(sd_bus_slot *slot, int b)
{
    if (fake.floating < 0)
        return fake.floating;
    slot->floating = b;
    return 1;
}

/* As the library does: the last reference calls the destroy callback. What is freed is overwritten,
 * so that a later use of it is seen without ASan, too. */
sd_bus_slot *sd_bus_slot_unref(sd_bus_slot *slot)
{
    if (!slot)
        return NULL;
    if (slot->destroy) {
        memset(slot->userdata, 0, malloc_usable_size(slot->userdata));
        slot->destroy(slot->userdata);
        fake.n_freed++;
    }
    free(slot);
    return NULL;
}

int sd_bus_message_enter_container(sd_bus_message *m, char type, const char *contents)
{
    return 1;
}

int sd_bus_message_read(sd_bus_message *m, const char *types, ...)
{
    static const char *const paths[SESSIONS] = {"/session/a", "/session/b", "/session/c"};
    va_list ap;

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

/* --- stages-system.c -------------------------------------------------------------------------- */

int system_feed(SystemSource *s, StageEvent *e)
{
    fake.last = e->kind;
    return 0;
}

int system_feed_kind(SystemSource *s, StageEventKind kind, const char *id)
{
    return system_feed(s, &(StageEvent){.kind = kind, .id = id});
}

bool system_is_error(SystemSource *s, sd_bus_message *m)
{
    return false;
}

usec_t system_age_of(usec_t monotonic)
{
    return 0;
}

/* --- tests ------------------------------------------------------------------------------------ */

/* Lists three sessions whose questions cannot be put, and expects that nothing is left of them:
 * neither counted as under way, nor in the queue, nor taken for a complete list. */
static void list_in_vain(void)
{
    SystemSource s = {.last = &s.first};

    assert_true(logind_ask(&s) >= 0);
    assert_int_equal(fake.on_list(NULL, &s, NULL), 0);
    assert_int_equal(fake.n_calls, SESSIONS);
    assert_int_equal(s.n_asked, 0);
    assert_int_equal(s.n_listed, 0);
    assert_true(s.list_failed);
    assert_null(s.first);
    assert_ptr_equal(s.last, &s.first);
    assert_int_equal(fake.last, STAGE_EVENT_LIST_BEGIN);
}

static void test_floating_fails(void **state)
{
    memset(&fake, 0, sizeof(fake));
    fake.floating = -ESTALE;
    list_in_vain();
    assert_int_equal(fake.n_freed, SESSIONS);
}

/* Here and below only a leak checker sees a question that nobody frees. */
static void test_destroy_callback_fails(void **state)
{
    memset(&fake, 0, sizeof(fake));
    fake.destroy_callback = -EINVAL;
    list_in_vain();
    assert_int_equal(fake.n_freed, 0);
}

static void test_call_fails(void **state)
{
    memset(&fake, 0, sizeof(fake));
    fake.call = -ENOTCONN;
    list_in_vain();
    assert_int_equal(fake.n_freed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_floating_fails),
            cmocka_unit_test(test_destroy_callback_fails),
            cmocka_unit_test(test_call_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
