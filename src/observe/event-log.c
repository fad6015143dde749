/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "observe/event-log.h"

#include "base/hash.h"
#include "base/macros.h"
#include "observe/processes.h"

#include <string.h>

/* The head of an object in EventLog.bytes. The handle, the name and a NUL follow it. */
typedef struct Head {
    uint32_t filesystem;
    int32_t handle_type;
    uint16_t handle_size;
    uint16_t name_size;
    uint8_t directory, loader, env, own;
} Head;

struct EventLog {
    uint64_t seed; /* of the hash */
    uint8_t *bytes;
    size_t n_bytes, allocated_bytes;
    uint32_t *offsets; /* object -> into bytes */
    size_t n_objects, allocated_objects;
    uint32_t *slots; /* open-addressed hash table of object + 1; 0 is free */
    size_t n_slots;
    LoggedEvent *events;
    size_t n_events, allocated_events;
};

EventLog *event_log_new(void)
{
    EventLog *l = calloc(1, sizeof(*l));

    /* Users choose the names, but do not know this address. If they knew the seed, they could
     * choose thousands with one hash, and every lookup would be slow. */
    if (l)
        l->seed = (uint64_t)(uintptr_t)l;
    return l;
}

EventLog *event_log_free(EventLog *l)
{
    if (!l)
        return NULL;
    free(l->bytes);
    free(l->offsets);
    free(l->slots);
    free(l->events);
    free(l);
    return NULL;
}

static const Head *head_of(const EventLog *l, uint32_t object)
{
    return (const Head *)(l->bytes + l->offsets[object]);
}

static size_t record_size(const Head *h)
{
    return sizeof(Head) + h->handle_size + h->name_size + 1U;
}

static uint64_t hash_record(const EventLog *l, const Head *h)
{
    return hash64(h, record_size(h), l->seed);
}

static void put_slot(uint32_t *slots, size_t n_slots, uint64_t hash, uint32_t object)
{
    size_t i = hash & (n_slots - 1);

    while (slots[i])
        i = (i + 1) & (n_slots - 1);
    slots[i] = object + 1;
}

static int grow_slots(EventLog *l)
{
    size_t n = l->n_slots ? 2 * l->n_slots : 1024;
    uint32_t *slots;

    if (2 * (l->n_objects + 1) <= l->n_slots)
        return 0;
    slots = calloc(n, sizeof(uint32_t));
    if (!slots)
        return -ENOMEM;
    for (uint32_t i = 0; i < l->n_objects; i++)
        put_slot(slots, n, hash_record(l, head_of(l, i)), i);
    free(l->slots);
    l->slots = slots;
    l->n_slots = n;
    return 0;
}

/* Sets `loader`, `env` and `own` by the object's name. */
static void classify(LoggedObject *o)
{
    const char *slash = strrchr(o->name, '/'), *name = slash ? slash + 1 : o->name;

    o->loader = !o->directory && is_loader_name(name);
    o->env = !o->directory && is_env_name(name);
    o->own = !o->directory && is_own_name(name);
}

size_t event_log_object_bytes(const LoggedObject *o)
{
    return ALIGN_UP(sizeof(Head) + o->handle_size + o->name_size + 1U, (size_t)4);
}

typedef union Record {
    Head head;
    uint8_t bytes[sizeof(Head) + 128 + 4096];
} Record;

/* Writes the object in the form of EventLog.bytes. Its size is record_size(). */
static void make_record(const LoggedObject *o, Record *ret)
{
    LoggedObject named = *o;
    uint8_t *at = ret->bytes + sizeof(Head);

    if (o->handle_size)
        memcpy(at, o->handle, o->handle_size);
    named.name = memcpy(at + o->handle_size, o->name, o->name_size);
    at[o->handle_size + o->name_size] = 0;
    classify(&named);
    ret->head = (Head){
            .filesystem = o->filesystem,
            .handle_type = o->handle_type,
            .handle_size = o->handle_size,
            .name_size = o->name_size,
            .directory = o->directory,
            .loader = named.loader,
            .env = named.env,
            .own = named.own,
    };
}

static bool find_record(const EventLog *l, const Record *x, uint64_t hash, uint32_t *ret)
{
    size_t size = record_size(&x->head);

    for (size_t i = hash & (l->n_slots - 1); l->slots[i]; i = (i + 1) & (l->n_slots - 1)) {
        const Head *h = head_of(l, l->slots[i] - 1);

        if (record_size(h) == size && memcmp(h, x->bytes, size) == 0) {
            *ret = l->slots[i] - 1;
            return true;
        }
    }
    return false;
}

static int add_record(EventLog *l, const Record *x, uint64_t hash, uint32_t *ret)
{
    size_t size = record_size(&x->head), aligned = ALIGN_UP(size, (size_t)4);

    if (l->n_objects >= EVENT_LOG_OBJECTS_MAX || l->n_bytes + aligned > EVENT_LOG_BYTES_MAX)
        return -E2BIG;
    if (grow_array(&l->bytes, &l->allocated_bytes, l->n_bytes + aligned, 1) < 0 ||
        grow_array(&l->offsets, &l->allocated_objects, l->n_objects + 1, sizeof(uint32_t)) < 0)
        return -ENOMEM;
    memcpy(l->bytes + l->n_bytes, x->bytes, size);
    l->offsets[l->n_objects] = (uint32_t)l->n_bytes;
    l->n_bytes += aligned;
    put_slot(l->slots, l->n_slots, hash, (uint32_t)l->n_objects);
    *ret = (uint32_t)l->n_objects++;
    return 0;
}

int event_log_intern(EventLog *l, const LoggedObject *o, bool add, uint32_t *ret)
{
    Record x;
    uint64_t hash;
    int r;

    if (o->handle_size > 128 || o->name_size > (logged_object_has_path(o) ? 4095 : 255))
        return -EINVAL;
    make_record(o, &x);
    r = grow_slots(l);
    if (r < 0)
        return r;
    hash = hash_record(l, &x.head);
    if (find_record(l, &x, hash, ret))
        return 0;
    return add ? add_record(l, &x, hash, ret) : -ENOENT;
}

int event_log_add(EventLog *l, const LoggedEvent *e)
{
    if (l->n_events >= EVENT_LOG_EVENTS_MAX)
        return -E2BIG;
    if (grow_array(&l->events, &l->allocated_events, l->n_events + 1, sizeof(LoggedEvent)) < 0)
        return -ENOMEM;
    l->events[l->n_events++] = *e;
    return 0;
}

void event_log_spread(EventLog *l, size_t first, uint32_t since_msec, uint32_t until_msec)
{
    uint64_t n = l->n_events > first ? l->n_events - first : 0;

    for (uint64_t i = 0; i < n && since_msec < until_msec; i++)
        l->events[first + i].at_msec =
                since_msec + (uint32_t)((until_msec - since_msec) * (i + 1) / n);
}

void event_log_object(const EventLog *l, uint32_t object, LoggedObject *ret)
{
    const Head *h = head_of(l, object);
    const uint8_t *p = (const uint8_t *)(h + 1);

    *ret = (LoggedObject){
            .filesystem = h->filesystem,
            .handle_type = h->handle_type,
            .handle_size = h->handle_size,
            .name_size = h->name_size,
            .directory = h->directory,
            .loader = h->loader,
            .env = h->env,
            .own = h->own,
            .handle = p,
            .name = (const char *)p + h->handle_size,
    };
}

size_t event_log_n_objects(const EventLog *l)
{
    return l->n_objects;
}

const LoggedEvent *event_log_events(const EventLog *l, size_t *ret_n)
{
    *ret_n = l->n_events;
    return l->events;
}
