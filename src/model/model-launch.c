/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Starts of applications: their observation in one trace, and their prediction by the model. */

#include "model/model-launch.h"
#include "model/model-followers.h"
#include "model/model-internal.h"

#include <string.h>

typedef struct Start {
    usec_t at;
    usec_t latest; /* the last opening of a file by the application or a helper */
    uint32_t application;
    bool part; /* of an earlier start of the same application */
} Start;

struct Launches {
    Start *starts; /* by time */
    size_t n, n_begun;
    usec_t *begun; /* application -> its latest start so far; USEC_INFINITY: none */
    bool *observed;
    size_t n_applications;
};

Launches *launches_free(Launches *l)
{
    if (!l)
        return NULL;
    free(l->starts);
    free(l->begun);
    free(l->observed);
    free(l);
    return NULL;
}

static int compare_starts(const void *a, const void *b)
{
    const Start *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->application < y->application ? -1 : x->application > y->application;
}

int launches_new(const Trace *t, const uint32_t *applications, size_t n_applications,
                 Launches **ret)
{
    _cleanup_(launches_freep) Launches *l = calloc(1, sizeof(*l));

    if (!l)
        return -ENOMEM;
    l->n_applications = n_applications;
    l->starts = calloc(t->n_lifetimes + 1, sizeof(*l->starts));
    l->begun = reallocarray(NULL, n_applications + 1, sizeof(*l->begun));
    l->observed = calloc(n_applications + 1, sizeof(bool));
    if (!l->starts || !l->begun || !l->observed)
        return -ENOMEM;
    for (size_t i = 0; i < n_applications; i++)
        l->begun[i] = USEC_INFINITY;
    /* In the other stages everything starts at the same time. What ran before the session has start
     * 0. */
    for (size_t i = 0; t->stage == STAGE_SESSION && i < t->n_lifetimes; i++)
        if (t->lifetimes[i].start > 0)
            l->starts[l->n++] = (Start){
                    .at = t->lifetimes[i].start,
                    .latest = t->lifetimes[i].start,
                    .application = applications[t->lifetimes[i].application],
            };
    if (l->n > 0)
        qsort(l->starts, l->n, sizeof(*l->starts), compare_starts);
    *ret = TAKE_PTR(l);
    return 0;
}

static bool is_open(const Start *s, usec_t at)
{
    return !s->part && at - s->at <= LAUNCH_MAX_USEC && at - s->latest <= LAUNCH_GAP_USEC;
}

/* Returns the index of the first start to which an access at that time may belong. */
static size_t find_first_open(const Launches *l, usec_t at)
{
    size_t i = l->n_begun;

    while (i > 0 && l->n_begun - i < LAUNCH_LOOK_BACK &&
           at - l->starts[i - 1].at <= LAUNCH_MAX_USEC)
        i--;
    return i;
}

/* Notes that the start has begun. */
static void begin(Launches *l, Start *s)
{
    for (size_t i = find_first_open(l, s->at); i < l->n_begun; i++)
        s->part = s->part ||
                  (l->starts[i].application == s->application && is_open(&l->starts[i], s->at));
    l->begun[s->application] = s->at;
    l->observed[s->application] = true;
    l->n_begun++;
}

static LaunchUser *find_user(LaunchUser *users, size_t n, uint32_t application)
{
    for (size_t i = 0; i < n; i++)
        if (users[i].application == application)
            return &users[i];
    return NULL;
}

/* Adds the latest starts, on whose behalf any process may read. */
static size_t add_others(const Launches *l, usec_t at, LaunchUser *users, size_t n)
{
    size_t end = n + LAUNCH_OTHERS_MAX;

    for (size_t i = l->n_begun; i-- > 0 && n < end;) {
        const Start *s = &l->starts[i];

        if (at - s->at > LAUNCH_OTHERS_USEC)
            break;
        if (!find_user(users, n, s->application))
            users[n++] = (LaunchUser){s->application, at - s->at, true};
    }
    return n;
}

/* Returns true if the application starts shortly after that time. */
static bool starts_soon(const Launches *l, usec_t at, uint32_t application)
{
    for (size_t i = l->n_begun;
         i < l->n && i - l->n_begun < LAUNCH_LOOK_BACK && l->starts[i].at - at <= LAUNCH_EARLY_USEC;
         i++)
        if (l->starts[i].application == application)
            return true;
    return false;
}

size_t launches_feed(Launches *l, usec_t at, uint32_t application,
                     LaunchUser ret[static LAUNCH_USERS_MAX])
{
    usec_t begun;
    bool early;
    size_t n = 0;

    while (l->n_begun < l->n && l->starts[l->n_begun].at <= at)
        begin(l, &l->starts[l->n_begun]);
    ret[n++] = (LaunchUser){application, USEC_INFINITY, false};
    n = add_others(l, at, ret, n);
    early = starts_soon(l, at, application);
    begun = early ? at : l->begun[application];
    for (size_t i = find_first_open(l, at); i < l->n_begun; i++) {
        Start *s = &l->starts[i];
        bool own = s->application == application;
        LaunchUser *u;

        if (!is_open(s, at) || !(own || (begun != USEC_INFINITY && begun > s->at)))
            continue;
        s->latest = at;
        u = find_user(ret, n, s->application);
        if (!u && n < LAUNCH_USERS_MAX) {
            u = &ret[n++];
            u->application = s->application;
        }
        if (u) {
            u->delay = at - s->at;
            u->other = false;
        }
    }
    if (early && ret[0].delay == USEC_INFINITY) {
        ret[0].delay = 0;
        l->observed[application] = true;
    }
    return n;
}

bool launches_observed(const Launches *l, uint32_t application)
{
    return l->observed[application];
}

/* --- prediction ------------------------------------------------------------------------------- */

/* Returns what is known of the pages that a start needs of the file: the pages that the application
 * itself touched, or else those that were in memory after it was opened. */
static const ModelResidency *launch_residency(const ModelUse *u, const ModelStageFile *f)
{
    return u->touched ? u->touched : model_best_residency(f);
}

/* Returns the bytes of the ranges that at least `min_probability` of the starts needed. */
static uint64_t needed_bytes(const ModelResidency *best, double needed, double min_probability)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < best->ranges.n; i++)
        if (needed * decayed_sum_ratio(best->ranges.ranges[i].weight, best->sessions) >=
            min_probability)
            bytes += best->ranges.ranges[i].length;
    return bytes;
}

static int compare_stage_files(const void *a, const void *b)
{
    uint32_t x = ((const ModelStageFile *)a)->file, y = ((const ModelStageFile *)b)->file;

    return x < y ? -1 : x > y;
}

/* Returns the stage's record of a file. In a valid model each file that a use names has such a
 * record. */
static const ModelStageFile *stage_file(const ModelStage *s, uint32_t file)
{
    const ModelStageFile key = {.file = file};

    return s->n_files == 0 ? NULL
                           : bsearch(&key, s->files, s->n_files, sizeof(key), compare_stage_files);
}

/* A script executes a program if its starts read the executable in at least this share of the
 * sessions. At most EXECUTED_MAX programs are considered. */
#define EXECUTED_SHARE_MIN 0.5
#define EXECUTED_MAX       32U

/* Returns true if control starts of the application have shown which metadata of the filesystem
 * (NULL: of any one) they need. */
static bool is_needed_known(const ModelStage *s, const char *application, const char *uuid)
{
    for (size_t i = 0; i < s->n_metadata; i++)
        if (s->metadata[i].application && s->metadata[i].ranges.n > 0 &&
            strcmp(s->metadata[i].application, application) == 0 &&
            (!uuid || strcmp(s->metadata[i].uuid, uuid) == 0))
            return true;
    return false;
}

static int compare_launches(const void *a, const void *b)
{
    const ModelLaunch *x = a, *y = b;
    double v = x->sessions * (double)x->bytes, w = y->sessions * (double)y->bytes;
    double own = x->sessions * (double)x->touched_bytes;
    double other = y->sessions * (double)y->touched_bytes;

    if (x->helper != y->helper)
        return x->helper ? 1 : -1;
    if (x->helper && own != other)
        return own > other ? -1 : 1;
    return v != w ? (v > w ? -1 : 1) : strcmp(x->path, y->path);
}

/* Lists in ret[] the programs that a script executes: the applications whose executables its starts
 * read in at least half of the sessions. Returns their number, at most n_max. An application is a
 * script if its own file was not touched, because its interpreter does not map it. */
static size_t list_executed(const Followers *f, uint32_t application, uint32_t *ret, size_t n_max)
{
    const ModelStage *s = f->s;
    const ModelUse *own = model_find_use(s, application, s->applications[application].file);
    size_t n = 0;

    if (!own || own->touched)
        return 0;
    for (size_t i = f->first_use[application]; i < f->first_use[application + 1] && n < n_max;
         i++) {
        const ModelUse *u = &s->uses[i];
        const ModelApplication *a = model_find_application(s, u->file);

        if (a && a != &s->applications[application] && !decayed_sum_is_zero(a->launched) &&
            decayed_sum_ratio(u->launched, s->applications[application].launched) >=
                    EXECUTED_SHARE_MIN)
            ret[n++] = (uint32_t)(a - s->applications);
    }
    return n;
}

int model_list_launches(const Model *sum, double min_probability, uint64_t min_bytes,
                        ModelLaunch **ret, size_t *ret_n)
{
    const ModelStage *s = sum->n_stages > 0 ? &sum->stages[0] : &(ModelStage){0};
    _cleanup_free_ ModelLaunch *l = calloc(s->n_applications + 1, sizeof(*l));
    _cleanup_(followers_done) Followers followers = {0};
    uint32_t executed[EXECUTED_MAX];
    double one = (double)decayed_sum_weight(sum->clock, sum->halflife_usec);
    size_t n = 0, k = 0;

    if (!l || followers_init(&followers, s) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_applications; i++) {
        const ModelApplication *a = &s->applications[i];
        uint64_t bytes = 0, touched = 0;

        followers_note(&followers, i, executed,
                       list_executed(&followers, i, executed, EXECUTED_MAX));
        for (; k < s->n_uses && s->uses[k].application == i; k++) {
            double needed = followers_share(&followers, &s->uses[k]);
            const ModelStageFile *f =
                    needed >= min_probability ? stage_file(s, s->uses[k].file) : NULL;
            uint64_t part =
                    f ? needed_bytes(launch_residency(&s->uses[k], f), needed, min_probability) : 0;

            bytes += part;
            touched += s->uses[k].touched ? part : 0;
        }
        if (a->file != MODEL_NONE && !decayed_sum_is_zero(a->launched) && bytes >= min_bytes)
            l[n++] = (ModelLaunch){
                    .path = sum->files[a->file].path,
                    .application = i,
                    .sessions = decayed_sum_value(a->launched) / one,
                    .bytes = bytes,
                    .touched_bytes = touched,
                    .helper = followers.helpers[i],
                    .controlled = is_needed_known(s, sum->files[a->file].path, NULL),
            };
    }
    if (n > 0)
        qsort(l, n, sizeof(*l), compare_launches);
    *ret = TAKE_PTR(l);
    *ret_n = n;
    return 0;
}

/* Lists the metadata that a start of the application needs, where control starts show it, and what
 * it may need of the other filesystems. Returns 0 or -ENOMEM. */
static int predict_metadata(const ModelStage *s, const char *application, Prediction *p)
{
    for (size_t i = 0; i < s->n_metadata; i++) {
        const ModelMetadata *d = &s->metadata[i];

        if (d->application && strcmp(d->application, application) == 0)
            CHECK(model_predict_metadata(d, &p->metadata, &p->n_metadata, &p->allocated_metadata));
        else if (!d->application && !is_needed_known(s, application, d->uuid))
            CHECK(model_predict_metadata(d, &p->seen, &p->n_seen, &p->allocated_seen));
    }
    return 0;
}

/* Returns the pages that the application touched of the file, or else those that a program touched
 * that it executes: a script touches no page of the libraries of its program. Of several programs,
 * the one that touched most counts. NULL: none is known. */
static const ModelResidency *find_touched(const ModelStage *s, const ModelUse *u,
                                          const uint32_t *executed, size_t n)
{
    const ModelResidency *best = u->touched;
    uint64_t most = 0;

    for (size_t i = 0; !u->touched && i < n; i++) {
        const ModelUse *v = model_find_use(s, executed[i], u->file);
        uint64_t bytes = v && v->touched ? needed_bytes(v->touched, 1, 0) : 0;

        if (bytes > most) {
            most = bytes;
            best = v->touched;
        }
    }
    return best;
}

int model_predict_launch(const Model *sum, uint32_t application, Prediction **ret)
{
    const ModelStage *s = &sum->stages[0];
    _cleanup_prediction_ Prediction *p = calloc(1, sizeof(Prediction));
    _cleanup_(followers_done) Followers followers = {0};
    uint32_t executed[EXECUTED_MAX];
    size_t n_executed;
    int r = p ? followers_init(&followers, s) : -ENOMEM;

    if (r < 0)
        return r;
    n_executed = list_executed(&followers, application, executed, EXECUTED_MAX);
    followers_note(&followers, application, executed, n_executed);
    for (size_t i = followers.first_use[application];
         r >= 0 && i < followers.first_use[application + 1]; i++) {
        const ModelUse *u = &s->uses[i];
        const ModelResidency *touched;
        const ModelStageFile *f = stage_file(s, u->file);
        double needed = followers_share(&followers, u);

        if (!f || needed <= 0)
            continue;
        touched = find_touched(s, u, executed, n_executed);
        r = model_predict_file(sum, f, touched ? touched : model_best_residency(f), needed, needed,
                               decayed_sum_mean_usec(u->delay, u->launched), p);
        if (r >= 0)
            p->files[p->n_files - 1].touched = touched != NULL;
    }
    if (r >= 0 && s->applications[application].file != MODEL_NONE)
        r = predict_metadata(s, sum->files[s->applications[application].file].path, p);
    if (r < 0)
        return r;
    p->stage = STAGE_SESSION;
    *ret = TAKE_PTR(p);
    return 0;
}
