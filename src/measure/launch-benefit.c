/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "measure/launch-benefit.h"

#include "base/names.h"

#include <string.h>

#define INTERVAL_ERROR 0.05

const char *launch_exclusion_to_string(LaunchExclusion e)
{
    static const char *const names[_LAUNCH_EXCLUSION_MAX] = {
            [LAUNCH_EXCLUSION_FIRST] = "first start",
            [LAUNCH_EXCLUSION_AGAIN] = "not the first start of its boot",
            [LAUNCH_EXCLUSION_UPGRADED] = "first start after an upgrade",
            [LAUNCH_EXCLUSION_OLD] = "enough newer starts",
            [LAUNCH_EXCLUSION_ALONE] = "no start with replay near it",
    };

    return (int)e < 0 || e >= _LAUNCH_EXCLUSION_MAX ? NULL : names[e];
}

void launch_benefits_done(LaunchBenefits *b)
{
    free(b->items);
    free(b->exclusions);
    *b = (LaunchBenefits){0};
}

/* --- which starts are comparable -------------------------------------------------------------- */

static LaunchExclusion exclude(const LaunchRecord *x, const LaunchRecord *before)
{
    if (!before)
        return LAUNCH_EXCLUSION_FIRST;
    if (*x->boot_id && strcmp(x->boot_id, before->boot_id) == 0)
        return LAUNCH_EXCLUSION_AGAIN;
    return x->packages_usec != before->packages_usec ? LAUNCH_EXCLUSION_UPGRADED
                                                     : LAUNCH_EXCLUSION_NONE;
}

/* Sets the exclusion of each record, and the number of its application. */
static int exclude_all(const LaunchRecords *l, Names *names, uint32_t *applications,
                       LaunchExclusion *exclusions)
{
    _cleanup_free_ const LaunchRecord **before = calloc(l->n + 1, sizeof(const LaunchRecord *));

    if (!before)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++) {
        const LaunchRecord *x = &l->items[i];

        CHECK(names_add(names, x->application, UINT32_MAX, &applications[i]));
        exclusions[i] = exclude(x, before[applications[i]]);
        before[applications[i]] = x;
    }
    return 0;
}

/* --- the effects ------------------------------------------------------------------------------ */

typedef struct Starts {
    const LaunchRecords *records;
    const LaunchExclusion *exclusions;
    const uint32_t *applications; /* by record */
    EffectSession *v;             /* the comparable starts of one application, or of all */
    usec_t *times;
    size_t n;
} Starts;

/* Selects the comparable starts of an application, or of all applications if it is UINT32_MAX. */
static void select_starts(Starts *s, uint32_t application)
{
    s->n = 0;
    for (size_t i = 0; i < s->records->n; i++) {
        const LaunchRecord *x = &s->records->items[i];
        bool all = application == UINT32_MAX;

        if (s->exclusions[i] != LAUNCH_EXCLUSION_NONE ||
            (!all && s->applications[i] != application))
            continue;
        s->times[s->n] = x->start_realtime_usec;
        s->v[s->n++] = (EffectSession){.seconds = (double)x->took_usec / USEC_PER_SEC,
                                       .replayed = x->replayed == LAUNCH_REPLAYED,
                                       .group = all ? s->applications[i] : x->uid};
    }
}

static void count_left_out(const Starts *s, LaunchBenefits *b)
{
    for (size_t i = 0; i < s->records->n; i++)
        if (s->exclusions[i] != LAUNCH_EXCLUSION_NONE) {
            b->items[s->applications[i]].benefit.n_left_out++;
            b->all.n_left_out++;
        }
}

/* Counts the starts for the draw of control starts: at most one for each boot, because all starts
 * of an application in a boot are drawn together. */
static void count_starts(const Starts *s, LaunchBenefits *b)
{
    for (size_t i = 0; i < s->records->n; i++) {
        const LaunchRecord *x = &s->records->items[i];

        if (s->exclusions[i] != LAUNCH_EXCLUSION_AGAIN)
            benefit_count(
                    &b->items[s->applications[i]].benefit,
                    s->exclusions[i] == LAUNCH_EXCLUSION_NONE && x->replayed == LAUNCH_REPLAYED,
                    x->replayed == LAUNCH_CONTROL ? SESSION_CONTROL : 0, x->start_realtime_usec);
    }
}

/* Labels the comparable starts of an application that its effect does not count. `uses` has room
 * for all starts. Returns 0 or -ENOMEM. */
static int label_application(Starts *s, uint32_t application, EffectUse *uses, LaunchBenefits *b)
{
    size_t k = 0;

    select_starts(s, application);
    CHECK(effect_find_uses(s->v, s->n, uses));
    for (size_t i = 0; i < s->records->n; i++) {
        EffectUse use;

        if (b->exclusions[i] != LAUNCH_EXCLUSION_NONE || s->applications[i] != application)
            continue;
        use = uses[k++];
        if (use == EFFECT_COUNTED)
            continue;
        b->exclusions[i] = use == EFFECT_OLD ? LAUNCH_EXCLUSION_OLD : LAUNCH_EXCLUSION_ALONE;
        b->items[application].benefit.n_left_out++;
    }
    return 0;
}

static int label_starts(Starts *s, LaunchBenefits *b)
{
    _cleanup_free_ EffectUse *uses = calloc(s->records->n + 1, sizeof(*uses));

    if (!uses)
        return -ENOMEM;
    select_starts(s, UINT32_MAX);
    CHECK(effect_find_uses(s->v, s->n, uses));
    for (size_t i = 0; i < s->n; i++)
        b->all.n_left_out += uses[i] != EFFECT_COUNTED;
    for (uint32_t i = 0; i < b->n; i++)
        CHECK(label_application(s, i, uses, b));
    return 0;
}

static size_t n_starts(const LaunchBenefit *b)
{
    return b->benefit.effect.n_replayed + b->benefit.effect.n_control;
}

static int by_starts(const void *a, const void *b)
{
    const LaunchBenefit *x = a, *y = b;

    if (n_starts(x) != n_starts(y))
        return n_starts(x) > n_starts(y) ? -1 : 1;
    return strcmp(x->application, y->application);
}

static int compute(Starts *s, usec_t now, LaunchBenefits *b)
{
    select_starts(s, UINT32_MAX);
    b->all.policy = POLICY_CONCURRENT;
    CHECK(effect_compute(s->v, s->n, INTERVAL_ERROR, &b->all.effect));
    for (uint32_t i = 0; i < b->n; i++) {
        b->items[i].benefit.policy = POLICY_CONCURRENT;
        select_starts(s, i);
        CHECK(benefit_judge(s->v, s->times, s->n, now, &b->items[i].benefit));
    }
    count_left_out(s, b);
    count_starts(s, b);
    return label_starts(s, b);
}

int launch_benefits_compute(const LaunchRecords *l, usec_t now, LaunchBenefits *ret)
{
    _cleanup_free_ uint32_t *applications = calloc(l->n + 1, sizeof(*applications));
    _cleanup_free_ EffectSession *v = calloc(l->n + 1, sizeof(*v));
    _cleanup_free_ usec_t *times = calloc(l->n + 1, sizeof(*times));
    _cleanup_launch_benefits_ LaunchBenefits b = {.exclusions =
                                                          calloc(l->n + 1, sizeof(*b.exclusions))};
    _cleanup_(names_done) Names names = {0};
    Starts s = {l, b.exclusions, applications, v, times, 0};

    if (!applications || !v || !times || !b.exclusions)
        return -ENOMEM;
    CHECK(exclude_all(l, &names, applications, b.exclusions));
    b.n = names.n;
    b.items = calloc(b.n + 1, sizeof(*b.items));
    if (!b.items)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++)
        b.items[applications[i]].application = l->items[i].application;
    CHECK(compute(&s, now, &b));
    if (b.n > 1)
        qsort(b.items, b.n, sizeof(*b.items), by_starts);
    *ret = b;
    b = (LaunchBenefits){0};
    return 0;
}

Benefit launch_benefits_find(const LaunchBenefits *b, const char *application)
{
    for (size_t i = 0; i < b->n; i++)
        if (strcmp(b->items[i].application, application) == 0)
            return b->items[i].benefit;
    return (Benefit){.policy = _POLICY_INVALID};
}

/* The most starts whose median is computed. */
#define UNREPLAYED_MAX 15U

static int compare_usec(const void *a, const void *b)
{
    usec_t x = *(const usec_t *)a, y = *(const usec_t *)b;

    return x < y ? -1 : x > y;
}

usec_t launch_benefits_unreplayed_usec(const LaunchRecords *l, const char *application,
                                       uint32_t uid)
{
    usec_t took[UNREPLAYED_MAX];
    const LaunchRecord *first = NULL; /* the earliest start so far in its boot */
    size_t n = 0;

    /* From the latest to the earliest start. The starts of a boot follow one another. */
    for (size_t i = l->n; i-- > 0 && n < UNREPLAYED_MAX;) {
        const LaunchRecord *x = &l->items[i];

        if (x->uid != uid || strcmp(x->application, application) != 0)
            continue;
        if (first && (!*x->boot_id || strcmp(x->boot_id, first->boot_id) != 0) &&
            first->replayed != LAUNCH_REPLAYED)
            took[n++] = first->took_usec;
        first = x;
    }
    if (first && n < UNREPLAYED_MAX && first->replayed != LAUNCH_REPLAYED)
        took[n++] = first->took_usec;
    if (n == 0)
        return 0;
    qsort(took, n, sizeof(*took), compare_usec);
    return took[n / 2];
}

usec_t launch_benefits_observed_until(const LaunchRecords *l, const char *application, uint32_t uid,
                                      usec_t now)
{
    usec_t newest = 0;
    bool observed = false;

    for (size_t i = 0; i < l->n; i++) {
        const LaunchRecord *x = &l->items[i];

        if (x->replayed != LAUNCH_CONTROL || (uid != UID_INVALID && x->uid != uid) ||
            strcmp(x->application, application) != 0)
            continue;
        observed = true;
        if (x->start_realtime_usec <= now)
            newest = MAX(newest, x->start_realtime_usec);
    }
    return observed ? newest : USEC_INFINITY;
}
