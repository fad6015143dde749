/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The state of the cycle as JSON: docs/formats.md. */

#include "base/json-util.h"
#include "predict/mixture.h"
#include "session/cycle-internal.h"

/* The dump contains the first GUESSES_MAX guesses of each horizon and the first REQUESTS_MAX
 * requests. */
#define GUESSES_MAX  100U
#define REQUESTS_MAX 1000U

static void add(struct json_object *o, const char *key, struct json_object *value, bool *failed)
{
    if (!value || !json_add_member(o, key, value))
        *failed = true;
}

static void push(struct json_object *array, struct json_object *value, bool *failed)
{
    if (!value || !json_add_item(array, value))
        *failed = true;
}

static struct json_object *name_of(const Cycle *c, uint32_t item)
{
    const Names *names = &mixture_chains(c->mixture)->names;
    _cleanup_free_ char *name = json_escape_bytes(item < names->n ? names->names[item] : "?");

    return name ? json_object_new_string(name) : NULL;
}

static struct json_object *dump_guesses(const Cycle *c, const Guesses *g, bool *failed)
{
    struct json_object *a = json_object_new_array();

    for (size_t i = 0; a && i < g->n && i < GUESSES_MAX; i++) {
        struct json_object *o = json_object_new_object();

        push(a, o, failed);
        if (*failed)
            break;
        add(o, "application", name_of(c, g->guesses[i].item), failed);
        add(o, "probability", json_object_new_double(g->guesses[i].probability), failed);
    }
    return a;
}

static struct json_object *dump_requests(const CycleDecision *d, bool *failed)
{
    struct json_object *a = json_object_new_array();

    for (size_t i = 0; a && i < d->n_requests && i < REQUESTS_MAX; i++) {
        struct json_object *o = json_object_new_object();
        _cleanup_free_ char *path = json_escape_bytes(d->requests[i].path);

        push(a, o, failed);
        if (*failed || !path)
            break;
        add(o, "path", json_object_new_string(path), failed);
        add(o, "kind", json_object_new_string(prefetch_kind_to_string(d->requests[i].kind)),
            failed);
        add(o, "offset", json_object_new_uint64(d->requests[i].range.offset), failed);
        add(o, "length", json_object_new_uint64(d->requests[i].range.length), failed);
        add(o, "probability", json_object_new_double(d->requests[i].probability), failed);
    }
    return a;
}

static struct json_object *dump_running(const Cycle *c, bool *failed)
{
    const ChainsSession *session = &mixture_chains(c->mixture)->session;
    struct json_object *a = json_object_new_array();

    for (size_t i = 0; a && i < session->n_running; i++)
        push(a, name_of(c, session->running[i]), failed);
    return a;
}

struct json_object *cycle_dump(const Cycle *c)
{
    struct json_object *o = json_object_new_object();
    const CycleDecision *d = &c->latest;
    bool failed = false;

    if (!o)
        return NULL;
    add(o, "uid", json_object_new_int64(c->uid == UID_INVALID ? -1 : (int64_t)c->uid), &failed);
    add(o, "interval_usec", json_object_new_uint64(c->parameters.interval), &failed);
    add(o, "scan", json_object_new_boolean(c->parameters.scan), &failed);
    add(o, "predict", json_object_new_boolean(c->parameters.predict), &failed);
    add(o, "n_objects", json_object_new_uint64(c->objects.first_metadata), &failed);
    add(o, "state_bytes", json_object_new_uint64(chains_size(mixture_chains(c->mixture))), &failed);
    add(o, "n_learned", json_object_new_uint64(c->n_learned), &failed);
    add(o, "n_decisions", json_object_new_uint64(c->n_decisions), &failed);
    add(o, "verdict", json_object_new_string(cycle_verdict_to_string(d->verdict)), &failed);
    add(o, "budget_bytes", json_object_new_uint64(d->budget_bytes), &failed);
    add(o, "requested_bytes", json_object_new_uint64(d->requested_bytes), &failed);
    add(o, "n_beyond", json_object_new_uint64(d->n_beyond), &failed);
    add(o, "n_wasteful", json_object_new_uint64(d->n_wasteful), &failed);
    add(o, "n_refused", json_object_new_uint64(d->n_refused), &failed);
    add(o, "running", dump_running(c, &failed), &failed);
    add(o, "guesses", dump_guesses(c, &c->guesses[CYCLE_HORIZON_INTERVAL], &failed), &failed);
    add(o, "in_session", dump_guesses(c, &c->guesses[CYCLE_HORIZON_SESSION], &failed), &failed);
    add(o, "requests", dump_requests(d, &failed), &failed);
    if (failed) {
        json_object_put(o);
        return NULL;
    }
    return o;
}
