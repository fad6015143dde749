/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model/model-select.h"

#include "model/ownership.h"
#include "trace/trace-trim.h"

/* Classes of users to which a file is charged; the most trusted first. */
typedef enum UserClass {
    CLASS_ROOT, /* also if the user is not known; only the limits of the whole stage apply to this
                   class */
    CLASS_OWN,
    CLASS_SYSTEM,
    CLASS_FOREIGN,
    CLASS_NONE, /* not set yet */
} UserClass;

typedef struct User {
    UserClass class;
    uint32_t uid;
} User;

/* What remains of the limits. */
typedef struct Room {
    uint64_t files, path_bytes, ranges;
} Room;

typedef struct Share {
    uint32_t uid;
    Room room;
} Share;

typedef struct Candidate {
    uint32_t file;
    User user;
    double known; /* share of sessions that opened it */
    bool executed;
    usec_t first;
} Candidate;

typedef struct Selection {
    const Model *m;
    Trace *t;
    Candidate *candidates; /* one for each file */
    User *applications;    /* application -> user */
    Share *shares;         /* by uid */
    size_t n_shares;
    Room room;
    bool *keep;
} Selection;

static void selection_done(Selection *x)
{
    free(x->candidates);
    free(x->applications);
    free(x->shares);
    free(x->keep);
}

static const Room room_all = {TRACE_RECORD_FILES_MAX, TRACE_RECORD_PATH_BYTES_MAX,
                              TRACE_RECORD_RANGES_MAX};
static const Room room_user = {TRACE_RECORD_USER_FILES_MAX, TRACE_RECORD_USER_PATH_BYTES_MAX,
                               TRACE_RECORD_USER_RANGES_MAX};

static Room need_of(const Trace *t, uint32_t file)
{
    return (Room){1, trace_path_bytes(t, t->files[file].path), t->files[file].resident.n};
}

static bool fits(const Room *room, const Room *need)
{
    return need->files <= room->files && need->path_bytes <= room->path_bytes &&
           need->ranges <= room->ranges;
}

static void subtract_room(Room *room, const Room *need)
{
    room->files -= need->files;
    room->path_bytes -= need->path_bytes;
    room->ranges -= need->ranges;
}

static User user_of(const Trace *t, uint32_t uid)
{
    return (User){
            .class = uid == 0 || uid == UID_INVALID    ? CLASS_ROOT
                     : uid == t->uid                   ? CLASS_OWN
                     : uid <= OWNERSHIP_SYSTEM_UID_MAX ? CLASS_SYSTEM
                                                       : CLASS_FOREIGN,
            .uid = uid,
    };
}

static void trust(User *u, User other)
{
    if (other.class < u->class)
        *u = other;
}

static int compare_shares(const void *a, const void *b)
{
    const Share *x = a, *y = b;

    return x->uid < y->uid ? -1 : x->uid > y->uid;
}

static int find_users(Selection *x)
{
    const Trace *t = x->t;
    size_t n = 0;

    x->applications = calloc(t->n_applications + 1, sizeof(User));
    x->shares = calloc(t->n_lifetimes + 1, sizeof(Share));
    if (!x->applications || !x->shares)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_applications; i++)
        x->applications[i].class = CLASS_NONE;
    for (size_t i = 0; i < t->n_lifetimes; i++) {
        x->shares[i] = (Share){t->lifetimes[i].uid, room_user};
        trust(&x->applications[t->lifetimes[i].application], user_of(t, t->lifetimes[i].uid));
    }
    x->shares[t->n_lifetimes] = (Share){t->uid, room_user};
    qsort(x->shares, t->n_lifetimes + 1, sizeof(Share), compare_shares);
    for (size_t i = 0; i < t->n_lifetimes + 1; i++)
        if (i == 0 || x->shares[i].uid != x->shares[n - 1].uid)
            x->shares[n++] = x->shares[i];
    x->n_shares = n;
    /* If no lifetime names the user of an application, the session's user counts. */
    for (size_t i = 0; i < t->n_applications; i++)
        if (x->applications[i].class == CLASS_NONE)
            x->applications[i] = user_of(t, t->uid);
    return 0;
}

/* Returns the share of sessions of this stage and user that opened the file, according to the
 * model. */
static double known_share(const Model *m, const ModelStage *s, const Trace *t, uint32_t file)
{
    char path[TRACE_PATH_MAX];
    size_t lo = 0, hi;
    uint32_t id;

    if (!s || trace_format_path(t, t->files[file].path, path, sizeof(path)) < 0)
        return 0;
    id = model_find_file(m, path);
    hi = id == MODEL_NONE ? 0 : s->n_files;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (s->files[mid].file == id)
            return decayed_sum_ratio(s->files[mid].used, s->sessions);
        if (s->files[mid].file < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return 0;
}

static const ModelStage *stage_of(const Model *m, const Trace *t)
{
    for (size_t i = 0; i < m->n_stages; i++)
        if (m->stages[i].stage == t->stage &&
            m->stages[i].uid == (t->stage == STAGE_BOOT ? UID_INVALID : t->uid))
            return &m->stages[i];
    return NULL;
}

static int list_candidates(Selection *x)
{
    const ModelStage *s = stage_of(x->m, x->t);
    const Trace *t = x->t;

    x->candidates = calloc(t->n_files + 1, sizeof(Candidate));
    if (!x->candidates)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->n_files; i++)
        x->candidates[i] = (Candidate){
                .file = i,
                .user.class = CLASS_NONE,
                .known = known_share(x->m, s, t, i),
                .first = USEC_INFINITY,
        };
    for (size_t i = 0; i < t->n_applications; i++) {
        Candidate *c = &x->candidates[t->applications[i].file];

        c->executed = true;
        trust(&c->user, x->applications[i]);
    }
    for (size_t i = t->n_accesses; i-- > 0;) {
        Candidate *c = &x->candidates[t->accesses[i].file];

        c->first = t->accesses[i].at;
        trust(&c->user, t->accesses[i].application == TRACE_NONE
                                ? user_of(t, t->uid)
                                : x->applications[t->accesses[i].application]);
    }
    return 0;
}

static int compare_candidates(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    bool x_foreign = x->user.class >= CLASS_FOREIGN, y_foreign = y->user.class >= CLASS_FOREIGN;

    if (x_foreign != y_foreign)
        return x_foreign ? 1 : -1;
    if (x->known != y->known)
        return x->known > y->known ? -1 : 1;
    if (x->executed != y->executed)
        return x->executed ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

/* Returns the share of the user, or NULL for root and for files that no user opened. */
static Share *share_of(Selection *x, User u)
{
    const Share key = {.uid = u.uid};

    if (u.class == CLASS_ROOT || u.class == CLASS_NONE)
        return NULL;
    return bsearch(&key, x->shares, x->n_shares, sizeof(Share), compare_shares);
}

static void select_file(Selection *x, const Candidate *c)
{
    Share *share = share_of(x, c->user);
    Room need = need_of(x->t, c->file);

    if (!fits(&x->room, &need) || (share && !fits(&share->room, &need)))
        return;
    subtract_room(&x->room, &need);
    if (share)
        subtract_room(&share->room, &need);
    x->keep[c->file] = true;
}

/* Returns true if the trace is so small that all of it fits into the share of one user. */
static bool is_small(const Trace *t)
{
    Room room = room_user;

    for (uint32_t i = 0; i < t->n_files; i++) {
        Room need = need_of(t, i);

        if (!fits(&room, &need))
            return false;
        subtract_room(&room, &need);
    }
    return true;
}

int model_select(const Model *m, Trace *t, size_t *ret_dropped)
{
    _cleanup_(selection_done) Selection x = {.m = m, .t = t, .room = room_all};
    size_t before = t->n_files;
    int r;

    if (is_small(t)) {
        *ret_dropped = 0;
        return 0;
    }
    x.keep = calloc(t->n_files + 1, sizeof(bool));
    if (!x.keep)
        return -ENOMEM;
    r = find_users(&x);
    if (r >= 0)
        r = list_candidates(&x);
    if (r < 0)
        return r;
    qsort(x.candidates, t->n_files, sizeof(Candidate), compare_candidates);
    for (size_t i = 0; i < t->n_files; i++)
        select_file(&x, &x.candidates[i]);
    r = trace_keep_files(t, x.keep);
    if (r >= 0)
        *ret_dropped = before - t->n_files;
    return r;
}
