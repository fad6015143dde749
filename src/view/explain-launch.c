/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "view/explain-launch.h"

#include "base/clock.h"
#include "base/directory.h"
#include "base/log.h"
#include "state/launch-packs.h"
#include "view/launch-history.h"
#include "view/pack-entry.h"

#include <fcntl.h>
#include <string.h>

/* The pack of a launch set. */
typedef struct LaunchSet {
    uint32_t uid; /* UID_INVALID: for users without a set of their own */
    uint64_t hash;
    const char *application; /* path; NULL: the model does not know the application */
} LaunchSet;

typedef struct LaunchSets {
    LaunchSet *items;
    size_t n, allocated;
} LaunchSets;

static void launch_sets_done(LaunchSets *l)
{
    free(l->items);
}

/* Returns the path of the application with that hash, or NULL. */
static const char *find_application(const Model *m, uint64_t hash)
{
    for (size_t i = 0; i < m->n_stages; i++)
        for (size_t k = 0; k < m->stages[i].n_applications; k++) {
            uint32_t file = m->stages[i].applications[k].file;

            if (m->stages[i].stage == STAGE_SESSION && file != MODEL_NONE &&
                launch_pack_hash(m->files[file].path) == hash)
                return m->files[file].path;
        }
    return NULL;
}

static int compare_sets(const void *a, const void *b)
{
    const LaunchSet *x = a, *y = b;
    int k = strcmp(x->application ? x->application : "", y->application ? y->application : "");

    if (k != 0)
        return k;
    /* The set for everyone comes first. */
    return x->uid + 1 != y->uid + 1 ? (x->uid + 1 > y->uid + 1) - (x->uid + 1 < y->uid + 1)
                                    : (x->hash > y->hash) - (x->hash < y->hash);
}

static int list_sets(int state_fd, const Model *m, LaunchSets *l)
{
    _cleanup_closedir_ DIR *dir = NULL;
    const struct dirent *e;
    LaunchSet s;

    CHECK(directory_open(state_fd, ".", O_NOFOLLOW, &dir));
    while (l->n < LAUNCH_SETS_READ && (e = directory_next(dir))) {
        if (!launch_pack_parse_name(e->d_name, &s.uid, &s.hash))
            continue;
        CHECK(grow_array(&l->items, &l->allocated, l->n + 1, sizeof(s)));
        s.application = find_application(m, s.hash);
        l->items[l->n++] = s;
    }
    if (l->n > 0)
        qsort(l->items, l->n, sizeof(*l->items), compare_sets);
    return 0;
}

static void add_set(Table *t, const LaunchSet *s, const PackEntry *e, const LaunchHistory *h)
{
    const PackHeader *p = e->pack.header;
    Benefit b = launch_benefits_find(&h->benefits, s->application ? s->application : "");
    const Effect *f = &b.effect;
    char text[BENEFIT_TEXT_MAX], interval[INTERVAL_TEXT_MAX];

    table_row(t, s->application ? s->application : "(unknown)",
              s->uid == UID_INVALID ? COUNT_UNKNOWN : (uint64_t)s->uid, policy_to_string(p->policy),
              p->reason != POLICY_REASON_UNKNOWN ? policy_reason_to_string(p->reason) : NULL,
              (int)e->found, e->found ? e->probability : -1, e->bytes, e->total,
              f->known ? benefit_to_short_text(&b, text) : "too few starts",
              f->known ? effect_interval_to_text(f, interval) : NULL, (uint64_t)f->n_replayed,
              (uint64_t)f->n_control, effect_to_json(f, h->off));
}

int explain_launch_sets(const Context *c, int state_fd, const Model *m, uint32_t file,
                        uint64_t limit, Table **ret)
{
    static const Column columns[] = {
            {"APPLICATION", "application", CELL_PATH},
            {"UID", "uid", CELL_COUNT},
            {"POLICY", "policy", CELL_STRING},
            {"REASON", "reason", CELL_STRING},
            {"IN SET", "in_set", CELL_BOOLEAN},
            {"PROBABILITY", "probability", CELL_PROBABILITY},
            {"DATA", "file_bytes", CELL_BYTES},
            {"WHOLE SET", "bytes", CELL_BYTES},
            {"EFFECT", NULL, CELL_STRING},
            {"95 % INTERVAL", NULL, CELL_STRING},
            {"REPLAYED", NULL, CELL_COUNT},
            {"WITHOUT", NULL, CELL_COUNT},
            {NULL, "benefit", CELL_JSON},
            {0},
    };
    static const char *const optional[] = {"REASON,WHOLE SET", "REPLAYED,WITHOUT", "UID,POLICY",
                                           "PROBABILITY,DATA", NULL};
    _cleanup_(launch_sets_done) LaunchSets l = {0};
    _cleanup_launch_history_ LaunchHistory h = {0};
    uint64_t own = launch_pack_hash(m->files[file].path);
    _cleanup_table_ Table *t = NULL;
    size_t n = 0;
    int r = list_sets(state_fd, m, &l);

    if (r < 0)
        return cli_error(r, "%s: %m", c->state);
    r = launch_history_read(c, state_fd, clock_now(CLOCK_REALTIME), &h);
    if (r < 0)
        return r;
    t = table_new(columns);
    table_set_optional(t, optional);
    for (size_t i = 0; i < l.n; i++) {
        _cleanup_pack_entry_ PackEntry e = {0};
        char name[LAUNCH_PACK_NAME_MAX];

        /* `headstart doctor` reports packs that cannot be used. */
        if (pack_entry_read(state_fd, launch_pack_name(name, l.items[i].uid, l.items[i].hash),
                            m->files[file].path, &e) < 0 ||
            (!e.found && l.items[i].hash != own))
            continue;
        if (limit == 0 || n < limit)
            add_set(t, &l.items[i], &e, &h);
        n++;
    }
    table_set_total(t, n);
    *ret = TAKE_PTR(t);
    return 0;
}
