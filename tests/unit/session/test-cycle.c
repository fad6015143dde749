/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the session cycle: session/cycle.h. */

#include "plan/cost-model.h"
#include "predict/object-scores.h"
#include "session/cycle-internal.h"
#include "util/chains-util.h"
#include "util/model-util.h"

#include <json-c/json.h>

#define S   USEC_PER_SEC
#define MIB (UINT64_C(1) << 20)

static const CycleSnapshot plenty = {
        .memory = {.total_bytes = 4096 * MIB,
                   .free_bytes = 2048 * MIB,
                   .available_bytes = 2048 * MIB},
};

/* Makes a model in which A reads /f/a, and B reads two ranges of /f/b and lists /f/d. C opens /f/c,
 * of which no page was resident. */
static Model *small_model(void)
{
    Model *m = model_of(
            session(STAGE_SESSION, 1000, T0, 0, "A>a=0-4 B>b=0-2,5-9 B>d/ C>c Z>z=0-1", NULL));

    learn(&m, session(STAGE_LOGIN, 1000, T0 + USEC_PER_HOUR, 0, "A>a=0-4 B>b=0-2,5-9 B>d/ Z>z=0-1",
                      NULL));
    return m;
}

static CycleParameters parameters(void)
{
    CycleParameters p;

    cycle_parameters_init(&p);
    p.minsize_bytes = 0;
    return p;
}

static Cycle *make(const CycleParameters *p, Model *m)
{
    Cycle *c;

    assert_int_equal(cycle_new(p, m, H, 1000, &c), 0);
    return c;
}

static int observe(Cycle *c, usec_t at, const char *path, bool started)
{
    return cycle_observe(
            c, &(CycleEvent){.time = {at, T0 + at}, .uid = 1000, .started = started, .path = path});
}

/* Adds sessions in which B starts 5 s after A, and both exit. Returns the time after the last
 * session. */
static usec_t habit(Cycle *c, unsigned sessions, usec_t at)
{
    for (unsigned i = 0; i < sessions; i++, at += 1000 * S) {
        assert_int_equal(cycle_begin(c, (EventTime){at, T0 + at}), 0);
        assert_int_equal(observe(c, at + 100 * S, "/bin/A", true), 1);
        assert_int_equal(observe(c, at + 105 * S, "/bin/B", true), 1);
        assert_int_equal(observe(c, at + 400 * S, "/bin/A", false), 0);
        assert_int_equal(observe(c, at + 400 * S, "/bin/B", false), 0);
        cycle_end(c, (EventTime){at + 500 * S, T0 + at + 500 * S});
    }
    return at;
}

static double worth(const PrefetchRequest *w)
{
    return w->probability *
           object_worth(w->range.length,
                        cost_seek_bytes(device_profile_of_class(DEVICE_CLASS_UNKNOWN)));
}

static CycleDecision decide(Cycle *c, usec_t at, const CycleSnapshot *s)
{
    CycleDecision d;

    assert_int_equal(cycle_decide(c, (EventTime){at, T0 + at}, s, &d), 0);
    for (size_t i = 0; i < d.n_requests; i++) {
        assert_true(d.requests[i].probability >= 0 && d.requests[i].probability <= 1);
        if (i == 0)
            continue;
        if (d.requests[i].kind != PREFETCH_METADATA) {
            assert_int_not_equal(d.requests[i - 1].kind, PREFETCH_METADATA);
            assert_true(worth(&d.requests[i - 1]) >= worth(&d.requests[i]) - 1e-9);
        } else if (d.requests[i - 1].kind == PREFETCH_METADATA) {
            assert_true(d.requests[i - 1].probability >= d.requests[i].probability);
        }
    }
    assert_true(d.requested_bytes <= d.budget_bytes);
    return d;
}

static const PrefetchRequest *requested(const CycleDecision *d, const char *path, uint64_t offset)
{
    for (size_t i = 0; i < d->n_requests; i++)
        if (strcmp(d->requests[i].path, path) == 0 && d->requests[i].range.offset == offset)
            return &d->requests[i];
    return NULL;
}

/* Makes a cycle that has learned that B follows A; A has just started. */
static Cycle *after_a(const CycleParameters *p, usec_t *ret_now)
{
    _cleanup_model_ Model *m = small_model();
    Cycle *c = make(p, m);
    usec_t now = habit(c, 10, 1000 * S);

    assert_int_equal(cycle_begin(c, (EventTime){now, T0 + now}), 0);
    assert_int_equal(observe(c, now + 100 * S, "/bin/A", true), 1);
    *ret_now = now + 101 * S;
    return c;
}

static void test_start_is_answered(void **state)
{
    CycleParameters p = parameters();
    usec_t now;
    _cleanup_cycle_ Cycle *c = after_a(&p, &now);
    CycleDecision d = decide(c, now, &plenty);
    const PrefetchRequest *w;

    assert_int_equal(d.verdict, CYCLE_PREFETCH);
    assert_int_equal(d.budget_bytes, 1024 * MIB);
    w = requested(&d, "/f/b", 0);
    assert_non_null(w);
    assert_int_equal(w->range.length, 2 * PAGE);
    assert_true(w->probability > 0.25);
    assert_non_null(requested(&d, "/f/b", 5 * PAGE));
    w = requested(&d, "/f/d", 0);
    assert_non_null(w);
    assert_int_equal(w->kind, PREFETCH_DIRECTORY);
    /* Neither A, which runs, nor C, which has never started, is predicted. */
    assert_null(requested(&d, "/f/a", 0));
    assert_null(requested(&d, "/f/c", 0));
    assert_int_equal(d.requested_bytes, 6 * PAGE);
    /* B has started: nothing is left to predict. */
    assert_int_equal(observe(c, now + S, "/bin/B", true), 1);
    d = decide(c, now + S, &plenty);
    assert_int_equal(d.n_requests, 0);
    assert_int_equal(d.verdict, CYCLE_PREFETCH);
}

/* Without events, later decisions request at most as many objects as the first, and nothing is
 * learned. */
static void test_steady(void **state)
{
    CycleParameters p = parameters();
    usec_t now;
    _cleanup_cycle_ Cycle *c = after_a(&p, &now);
    CycleDecision d = decide(c, now, &plenty);
    size_t n = d.n_requests;
    uint64_t learned = cycle_n_learned(c);

    for (unsigned i = 1; i < 5; i++) {
        d = decide(c, now + i * 20 * S, &plenty);
        assert_true(d.n_requests <= n);
    }
    assert_int_equal(cycle_n_learned(c), learned);
}

static void test_budget(void **state)
{
    CycleParameters p = parameters();
    CycleSnapshot s = plenty;
    usec_t now;
    _cleanup_cycle_ Cycle *c = after_a(&p, &now);
    CycleDecision d;

    s.memory.available_bytes = 2 * 3 * PAGE; /* half of it has room for the first range only */
    d = decide(c, now, &s);
    assert_int_equal(d.budget_bytes, 3 * PAGE);
    assert_int_equal(d.n_beyond, 1);
    assert_int_equal(d.requested_bytes, 2 * PAGE);
    assert_non_null(requested(&d, "/f/d", 0)); /* costs nothing */

    p.budget.formula = BUDGET_THESIS;
    assert_int_equal(cycle_reload(c, &p, NULL), 0);
    s.memory = (MemoryFacts){
            .total_bytes = 100, .free_bytes = 20, .available_bytes = 90, .cached_bytes = 50};
    d = decide(c, now, &s);
    assert_int_equal(d.budget_bytes, 10 + 15);
}

static void test_switches(void **state)
{
    CycleParameters p = parameters();
    CycleSnapshot s = plenty;
    usec_t now;
    _cleanup_cycle_ Cycle *c = after_a(&p, &now);
    _cleanup_model_ Model *m = small_model();
    CycleDecision d;

    s.on_battery = true;
    d = decide(c, now, &s);
    assert_int_equal(d.verdict, CYCLE_BATTERY);
    assert_int_equal(d.n_requests, 0);
    p.battery = true;
    assert_int_equal(cycle_reload(c, &p, m), 0);
    d = decide(c, now, &s);
    assert_int_equal(d.verdict, CYCLE_PREFETCH);
    assert_true(d.n_requests > 0);
    s.memory_pressure = 30;
    d = decide(c, now, &s);
    assert_int_equal(d.verdict, CYCLE_PRESSURE);
    assert_int_equal(d.n_requests, 0);
    s.memory_pressure = 0;
    s.hot = true;
    d = decide(c, now, &s);
    assert_int_equal(d.verdict, CYCLE_HEAT);
    assert_int_equal(d.n_requests, 0);
    p.predict = false;
    assert_int_equal(cycle_reload(c, &p, m), 0);
    d = decide(c, now, &plenty);
    assert_int_equal(d.verdict, CYCLE_OFF);
    assert_int_equal(d.n_requests, 0);
}

/* Without scanning the cycle does not learn, but still uses what was learned before. */
static void test_no_scan(void **state)
{
    _cleanup_model_ Model *m = small_model();
    CycleParameters p = parameters();
    _cleanup_cycle_ Cycle *c = make(&p, m), *d = NULL;
    _cleanup_model_ Model *again = small_model();
    usec_t now = habit(c, 10, 1000 * S);
    CycleDecision x;

    assert_int_equal(cycle_learned(c, &again->chains), 0);
    p.scan = false;
    d = make(&p, again);
    assert_null(again->chains);
    assert_int_equal(cycle_begin(d, (EventTime){now, T0 + now}), 0);
    assert_int_equal(observe(d, now + 100 * S, "/bin/A", true), 1);
    assert_int_equal(cycle_n_learned(d), 0);
    x = decide(d, now + 101 * S, &plenty);
    assert_non_null(requested(&x, "/f/b", 0));
    assert_null(requested(&x, "/f/a", 0));
    assert_int_equal(observe(d, now + 110 * S, "/bin/A", false), 0);
    cycle_end(d, (EventTime){now + 120 * S, T0});
}

/* Objects whose probability is below `minimum_use` are not requested, however much room there is.
 */
#define MANY_APPLICATIONS 200U
#define MANY_FILES        120U
#define MANY_RANGES       400U

/* Makes a session in which many applications use many files of many ranges. S uses two files of one
 * range. The gaps between the ranges of a file are one page, but every tenth is three pages. */
static Trace *fragmented_session(void)
{
    _cleanup_free_ char *uses = NULL;
    size_t size;
    FILE *text = open_memstream(&uses, &size);
    Trace *t;

    fputs("S>/usr/lib/x=0-1 S>y=0-1", text);
    for (unsigned a = 0; a < MANY_APPLICATIONS; a++)
        for (unsigned f = 0; f < MANY_FILES; f++)
            fprintf(text, " P%u>f%u", a, f);
    fclose(text);
    t = session(STAGE_SESSION, 1000, T0, 0, uses, NULL);
    t->duration = 1000000 * S;
    for (uint32_t i = 0; i < t->n_files; i++)
        if (t->paths[t->files[i].path].name[0] == 'f')
            for (uint64_t k = 0, page = 0; k < MANY_RANGES; k++, page += k % 10 ? 2 : 4) {
                assert_int_equal(range_set_insert(&t->files[i].resident, page * PAGE, PAGE), 0);
                t->files[i].size_bytes = (page + 1) * PAGE;
            }
    return t;
}

/* The parts of all applications take a bounded memory. An application with few parts has them all,
 * and a file has at most 256 objects, which the largest gaps divide. */
static void test_parts_are_bounded(void **state)
{
    CycleParameters p = parameters();
    _cleanup_model_ Model *m = model_of(fragmented_session());
    _cleanup_cycle_ Cycle *c = make(&p, m);
    size_t n_of_file = 0, n_wide_gaps = 0, n_small = 0, n_large = 0;

    for (size_t i = 0; i < c->objects.first_metadata; i++) {
        const CycleObject *o = &c->objects.objects[i];

        if (strcmp(c->objects.paths[o->path].text, "/f/f0") != 0)
            continue;
        n_of_file++;
        n_wide_gaps += i > 0 && o[-1].path == o->path &&
                       o->range.offset - range_end(&o[-1].range) == 3 * PAGE;
    }
    assert_int_equal(n_of_file, 256);
    assert_int_equal(n_wide_gaps, MANY_RANGES / 10 - 1);
    assert_true(c->objects.n_parts <= CYCLE_PARTS_MAX);
    assert_true(c->objects.n_parts > CYCLE_PARTS_MAX - MANY_APPLICATIONS);
    for (size_t i = 0; i < c->objects.n_items; i++) {
        n_small += c->objects.items[i].n == 2;
        n_large += c->objects.items[i].n == (CYCLE_PARTS_MAX - 2) / MANY_APPLICATIONS;
    }
    assert_int_equal(n_small, 1);
    assert_int_equal(n_large, MANY_APPLICATIONS);
}

static void test_minimum_use(void **state)
{
    CycleParameters p = parameters();
    usec_t now;
    _cleanup_cycle_ Cycle *c = NULL;
    CycleDecision d;

    p.selection.minimum_use = 1;
    c = after_a(&p, &now);
    d = decide(c, now, &plenty);
    assert_int_equal(d.verdict, CYCLE_PREFETCH);
    assert_int_equal(d.n_requests, 0);
}

/* Metadata that the user's sessions needed often enough is requested after all other requests, if
 * the budget has room. The running applications do not matter. */
static void test_metadata(void **state)
{
    CycleParameters p = parameters();
    _cleanup_model_ Model *m = small_model();
    _cleanup_cycle_ Cycle *c = NULL;
    CycleSnapshot s = plenty;
    usec_t now;
    CycleDecision d;

    for (unsigned i = 0; i < 8; i++)
        learn(&m, session(STAGE_SESSION, 1000, T0 + i * S, 0, "A>a=0-4",
                          i == 0   ? "0-2,10-11,20-21"
                          : i <= 3 ? "0-2,20-21"
                                   : "0-2"));
    learn(&m, session(STAGE_SESSION, 1001, T0, 0, "A>a=0-4", "30-31"));
    learn(&m, session(STAGE_LOGIN, 1000, T0, 0, "A>a=0-4", "40-41"));
    c = make(&p, m);
    now = habit(c, 10, 1000 * S);
    assert_int_equal(cycle_begin(c, (EventTime){now, T0 + now}), 0);
    assert_int_equal(observe(c, now + 100 * S, "/bin/A", true), 1);
    now += 101 * S;
    d = decide(c, now, &plenty);
    assert_non_null(requested(&d, "/f/b", 0));
    assert_int_equal(d.requests[d.n_requests - 1].kind, PREFETCH_METADATA);
    assert_near(requested(&d, UUID, 0)->probability, 1);
    assert_int_equal(requested(&d, UUID, 0)->range.length, 2 * PAGE);
    assert_near(requested(&d, UUID, 20 * PAGE)->probability, 0.5);
    assert_null(requested(&d, UUID, 10 * PAGE)); /* 1 of 8 */
    assert_null(requested(&d, UUID, 30 * PAGE)); /* of another user's session */
    assert_null(requested(&d, UUID, 40 * PAGE)); /* of a login, which has a pack */
    assert_int_equal(d.requested_bytes, (6 + 3) * PAGE);

    s.memory.available_bytes = 2 * 7 * PAGE;
    d = decide(c, now, &s);
    assert_int_equal(d.n_beyond, 1);
    assert_non_null(requested(&d, "/f/b", 0));
    assert_non_null(requested(&d, UUID, 20 * PAGE));
    assert_null(requested(&d, UUID, 0));

    p.selection.minimum_use = 0.6;
    assert_int_equal(cycle_reload(c, &p, m), 0);
    d = decide(c, now, &plenty);
    assert_non_null(requested(&d, UUID, 0));
    assert_null(requested(&d, UUID, 20 * PAGE));
}

/* One session in which everything was looked up does not fill the memory. */
static void test_metadata_is_bounded(void **state)
{
    CycleParameters p = parameters();
    _cleanup_model_ Model *m = model_of(session(STAGE_SESSION, 1000, T0, 0, "A>a=0-4",
                                                "0-3000,10000-13000,20000-30000,40000-40001"));
    _cleanup_cycle_ Cycle *c = make(&p, m);
    CycleDecision d;

    assert_int_equal(observe(c, S, "/bin/A", true), 1);
    d = decide(c, 2 * S, &plenty);
    assert_int_equal(d.n_requests, 2);
    assert_non_null(requested(&d, UUID, 0));
    assert_non_null(requested(&d, UUID, 40000 * PAGE)); /* 12 MB fit, 24 MB do not */
}

/* Observations decay by the wall clock, also while the machine is off. */
static void test_two_clocks(void **state)
{
    CycleParameters p = parameters();
    usec_t now;
    _cleanup_cycle_ Cycle *c = after_a(&p, &now);
    _cleanup_chains_ Chains *learned = NULL;

    assert_int_equal(cycle_learned(c, &learned), 0);
    assert_int_equal(learned->generation, decayed_sum_generation(T0, H));
    for (unsigned i = 0; i <= DECAYED_SUM_SPAN; i++) {
        cycle_end(c, (EventTime){now, T0 + i * H + now});
        now += S;
        assert_int_equal(cycle_begin(c, (EventTime){now, T0 + i * H + now}), 0);
    }
    chains_free(learned);
    assert_int_equal(cycle_learned(c, &learned), 0);
    assert_int_equal(learned->generation, decayed_sum_generation(T0, H) + 1);
    assert_true(learned->seen == now);
}

static void test_minsize(void **state)
{
    CycleParameters p = parameters();
    _cleanup_model_ Model *m = small_model();
    _cleanup_cycle_ Cycle *c = NULL;

    p.minsize_bytes = 5 * PAGE; /* A has 4, B 6 */
    c = make(&p, m);
    assert_int_equal(observe(c, 10 * S, "/bin/A", true), 0);
    assert_int_equal(observe(c, 11 * S, "/bin/B", true), 1);
    assert_int_equal(observe(c, 12 * S, "/bin/unheard-of", true), 0);
    assert_int_equal(cycle_n_learned(c), 1);
}

static void test_prefixes(void **state)
{
    CycleParameters p = parameters();
    usec_t now;
    _cleanup_cycle_ Cycle *c = NULL, *d = NULL, *e = NULL;
    _cleanup_model_ Model *m = small_model(), *n = small_model();
    CycleDecision x;

    p.exclude = " /f/b\t/nowhere ! ";
    c = after_a(&p, &now);
    x = decide(c, now, &plenty);
    assert_int_equal(x.n_requests, 1);
    assert_non_null(requested(&x, "/f/d", 0));

    p.exclude = "/ !/f !/bin/B"; /* everything except /f and /bin/B */
    d = make(&p, m);
    assert_int_equal(observe(d, 10 * S, "/bin/A", true), 0);
    assert_int_equal(observe(d, 11 * S, "/bin/B", true), 1);

    p.exclude = "/bin/A/ /bi"; /* only whole names count */
    e = make(&p, n);
    assert_int_equal(observe(e, 10 * S, "/bin/A", true), 0);
    assert_int_equal(observe(e, 10 * S, "/bin/AB", true), 1);
}

static void test_other_users(void **state)
{
    CycleParameters p = parameters();
    _cleanup_model_ Model *m = small_model();
    _cleanup_cycle_ Cycle *c = make(&p, m);
    CycleEvent e = {.time = {S, T0}, .uid = 0, .started = true, .path = "/bin/A"};

    assert_int_equal(cycle_observe(c, &e), 0);
    e.uid = UID_INVALID;
    assert_int_equal(cycle_observe(c, &e), 1);
}

/* Invalid events do no harm. */
static void test_hostile(void **state)
{
    CycleParameters p = parameters();
    _cleanup_model_ Model *m = small_model();
    _cleanup_cycle_ Cycle *c = make(&p, m);
    _cleanup_chains_ Chains *learned = NULL;
    _cleanup_free_ char *text = NULL;
    usec_t at = 5000 * S;

    /* An exit without a start, an end without a beginning. */
    cycle_end(c, (EventTime){at, T0});
    assert_int_equal(observe(c, at, "/bin/A", false), 0);
    /* Starts and exits in one batch, at one instant. */
    assert_int_equal(observe(c, at, "/bin/A", true), 1);
    assert_int_equal(observe(c, at, "/bin/A", false), 0);
    decide(c, at, &plenty);
    /* Two processes of one application, and the same pid reported twice: the application runs until
     * both are gone.
     */
    assert_int_equal(observe(c, at, "/bin/B", true), 1);
    assert_int_equal(observe(c, at, "/bin/B", true), 0);
    assert_int_equal(observe(c, at, "/bin/B", false), 0);
    assert_int_equal(observe(c, at, "/bin/B", true), 0);
    assert_int_equal(observe(c, at, "/bin/B", false), 0);
    assert_int_equal(observe(c, at, "/bin/B", false), 0);
    assert_int_equal(observe(c, at, "/bin/B", false), 0);
    assert_int_equal(observe(c, at, "/bin/B", true), 1);
    /* Clocks that jump forward, back, and to their limits. */
    for (unsigned i = 0; i < 6; i++) {
        static const usec_t ats[] = {0, 1, USEC_INFINITY, 17, USEC_INFINITY - 1, 6000 * S};
        static const usec_t walls[] = {USEC_INFINITY, 0, 5, T0, 0, USEC_INFINITY - 1};
        CycleEvent e = {{ats[i], walls[i]}, 1000, i % 2, "/bin/A"};
        CycleDecision d;

        assert_true(cycle_observe(c, &e) >= 0);
        assert_int_equal(cycle_decide(c, (EventTime){ats[5 - i], walls[i]}, &plenty, &d), 0);
    }
    /* Names that are not UTF-8, or empty. */
    assert_true(observe(c, at, "/bin/\xff\x01%", true) >= 0);
    assert_true(observe(c, at, "", true) >= 0);
    cycle_end(c, (EventTime){at, T0});
    assert_int_equal(cycle_learned(c, &learned), 0);
    assert_int_equal(chains_to_json(learned, &text), 0);
    chains_free(learned);
    assert_int_equal(chains_from_json(text, strlen(text), &learned), 0);
}

static void test_bad_parameters(void **state)
{
    CycleParameters p = parameters();
    _cleanup_model_ Model *m = small_model();
    Cycle *c = NULL;

    assert_int_equal(chains_new(H, 600 * S, &m->chains), 0);
    p.interval = 0;
    assert_int_equal(cycle_new(&p, m, H, 0, &c), -EINVAL);
    assert_non_null(m->chains); /* the model keeps its chains */
    p = parameters();
    p.selection.minimum_use = NAN;
    assert_int_equal(cycle_new(&p, m, H, 0, &c), -EINVAL);
    p = parameters();
    assert_int_equal(cycle_new(&p, NULL, 0, 0, &c), -EINVAL);
    assert_null(c);
}

/* Tests a cycle with no model, and a cycle with an empty model. */
static void test_nothing_known(void **state)
{
    CycleParameters p = parameters();
    _cleanup_model_ Model *m = model_new(H);
    _cleanup_cycle_ Cycle *c = make(&p, NULL), *d = make(&p, m);
    CycleDecision x;

    x = decide(c, S, &plenty);
    assert_int_equal(x.n_requests, 0);
    assert_int_equal(observe(d, S, "/bin/A", true), 1);
    x = decide(d, S, &plenty);
    assert_int_equal(x.n_requests, 0);
}

/* A cycle is saved in the middle of a session, restored, and saved again. Both saves give the same
 * bytes, and the restored cycle predicts the same as the original. */
static void test_save_restore(void **state)
{
    CycleParameters p = parameters();
    usec_t now;
    _cleanup_cycle_ Cycle *c = after_a(&p, &now), *d = NULL;
    _cleanup_model_ Model *m = small_model(), *loaded = NULL;
    _cleanup_free_ char *first = NULL, *second = NULL, *error = NULL;
    size_t size, again;
    CycleDecision x;

    assert_int_equal(cycle_learned(c, &m->chains), 0);
    assert_int_equal(model_to_json(m, &first, &size), 0);
    assert_int_equal(model_from_json(first, size, &loaded, &error), 0);
    assert_int_equal(model_to_json(loaded, &second, &again), 0);
    assert_int_equal(size, again);
    assert_memory_equal(first, second, size);
    /* Saving has not changed the original. */
    x = decide(c, now, &plenty);
    assert_non_null(requested(&x, "/f/b", 0));

    d = make(&p, loaded);
    now += 2000 * S;
    assert_int_equal(cycle_begin(d, (EventTime){now, T0 + now}), 0);
    assert_int_equal(observe(d, now + 100 * S, "/bin/A", true), 1);
    x = decide(d, now + 101 * S, &plenty);
    assert_non_null(requested(&x, "/f/b", 0));
    /* Nothing is learned twice: the text is the same after restoring and saving again. */
    free(second);
    second = NULL;
    loaded = model_free(loaded);
    assert_int_equal(model_from_json(first, size, &loaded, &error), 0);
    cycle_free(d);
    d = make(&p, loaded);
    assert_int_equal(cycle_learned(d, &loaded->chains), 0);
    assert_int_equal(model_to_json(loaded, &second, &again), 0);
    assert_string_equal(first, second);
}

/* An object that only some of the starts need has a smaller probability than one that all starts
 * need. An application's objects come from all stages. */
static void test_part_of_the_starts(void **state)
{
    CycleParameters p = parameters();
    _cleanup_model_ Model *m = small_model();
    _cleanup_cycle_ Cycle *c = NULL;
    usec_t now;
    CycleDecision x;

    learn(&m,
          session(STAGE_SESSION, 1000, T0 + 2 * USEC_PER_HOUR, 0, "A>a=0-4 B>b=0-2 B>e=0-1", NULL));
    c = make(&p, m);
    now = habit(c, 10, 1000 * S);
    assert_int_equal(cycle_begin(c, (EventTime){now, T0 + now}), 0);
    assert_int_equal(observe(c, now + 100 * S, "/bin/A", true), 1);
    x = decide(c, now + 101 * S, &plenty);
    assert_non_null(requested(&x, "/f/e", 0));
    assert_true(requested(&x, "/f/e", 0)->probability <
                0.6 * requested(&x, "/f/b", 0)->probability);
    assert_true(requested(&x, "/f/b", 5 * PAGE)->probability <
                requested(&x, "/f/b", 0)->probability);
}

/* Returns P(file | it starts) of the only application with objects of that file. */
static double chance_of(const Cycle *c, const char *path)
{
    const CycleObjects *m = &c->objects;

    for (size_t i = 0; i < m->n_parts; i++)
        if (strcmp(m->paths[m->objects[m->parts[i]].path].text, path) == 0)
            return (double)m->chances[i];
    return 0;
}

static uint64_t length_of(const Cycle *c, const char *path)
{
    const CycleObjects *m = &c->objects;
    uint64_t sum = 0;

    for (size_t i = 0; i < m->n_objects; i++)
        if (strcmp(m->paths[m->objects[i].path].text, path) == 0)
            sum += m->objects[i].range.length;
    return sum;
}

/* User 1000 opens x in each of four runs of A, user 1001 in none of 36. The share of the user's own
 * runs decides, with everybody's as a prior. */
static void test_maps_of_the_user(void **state)
{
    static const uint32_t uids[] = {1000, 1001, 1002, UID_INVALID};
    CycleParameters p = parameters();
    _cleanup_model_ Model *m = model_new(H);
    double x[4], a[4], y[4];

    for (unsigned i = 0; i < 36; i++)
        learn(&m, session(STAGE_SESSION, 1001, T0 + i * S, 0, "A>a=0-8 A>y=0-1 B>b=0-2", NULL));
    for (unsigned i = 0; i < 4; i++)
        learn(&m, session(STAGE_SESSION, 1000, T0 + (36 + i) * S, 0,
                          "A>a=0-2 A>x=0-2 A>z=0-1 C>c=0-1", NULL));
    for (unsigned i = 0; i < ELEMENTSOF(uids); i++) {
        _cleanup_cycle_ Cycle *c = NULL;

        assert_int_equal(cycle_new(&p, m, H, uids[i], &c), 0);
        x[i] = chance_of(c, "/f/x");
        y[i] = chance_of(c, "/f/y");
        a[i] = chance_of(c, "/f/a");
        assert_int_equal(length_of(c, "/f/x"), 2 * PAGE);
        /* The ranges of user 1000 are those of its own sessions. */
        assert_int_equal(length_of(c, "/f/a"), uids[i] == 1000 ? 2 * PAGE : 8 * PAGE);
        /* User 1000 has never run B: everybody's maps count. */
        assert_true(chance_of(c, "/f/b") > 0.99);
        assert_true(chance_of(c, "/f/c") > 0.99);
        assert_true(uids[i] != 1000 || chance_of(c, "/f/z") > 0.69);
    }
    assert_true(fabs(x[0] - (4 + 2 * 0.1) / (4 + 2)) < 1e-3);
    assert_true(fabs(x[1] - (0 + 2 * 0.1) / (36 + 2)) < 1e-3);
    assert_true(fabs(y[0] - (0 + 2 * 0.9) / (4 + 2)) < 1e-3);
    assert_true(x[0] > 0.69 && x[1] < 0.2 && y[1] > 0.9);
    assert_true(a[0] > 0.99);
    /* A user without sessions, and an unknown user, have everybody's maps. */
    for (unsigned i = 2; i < 4; i++)
        assert_true(fabs(x[i] - 0.1) < 1e-3 && fabs(y[i] - 0.9) < 1e-3);
}

/* A refused file is not requested again, and its share of the budget goes to others, also after the
 * model was loaded again. */
static void test_refused(void **state)
{
    CycleParameters p = parameters();
    CycleSnapshot s = plenty;
    usec_t now;
    _cleanup_cycle_ Cycle *c = after_a(&p, &now);
    _cleanup_model_ Model *m = small_model();
    CycleDecision d;

    learn(&m, session(STAGE_SESSION, 1001, T0 + 2 * USEC_PER_HOUR, 0,
                      "B>b=0-2,5-9 B>d/ B>huge=0-100 B>last=0-100", NULL));
    p.selection.minimum_use = 0.1; /* no run of this user needed them */
    assert_int_equal(cycle_reload(c, &p, m), 0);
    s.memory.available_bytes = 2 * 110 * PAGE;
    d = decide(c, now, &s);
    assert_non_null(requested(&d, "/f/huge", 0));
    assert_null(requested(&d, "/f/last", 0));
    assert_int_equal(d.n_beyond, 1);
    assert_int_equal(cycle_refuse(c, "/f/huge"), 0);
    assert_int_equal(cycle_refuse(c, "/f/huge"), 0);
    assert_int_equal(cycle_refuse(c, "/f/never-heard-of"), 0);
    assert_int_equal(cycle_refuse(c, UUID), 0);
    for (unsigned i = 0; i < 2; i++) {
        d = decide(c, now, &s);
        assert_null(requested(&d, "/f/huge", 0));
        assert_non_null(requested(&d, "/f/last", 0));
        assert_non_null(requested(&d, "/f/b", 0));
        assert_int_equal(d.n_beyond, 0);
        assert_int_equal(d.n_refused, 1);
        assert_int_equal(cycle_reload(c, &p, m), 0);
    }
}

/* Among objects of equal worth, those in directories of the distribution come first, even if
 * another path comes first in the alphabet. */
static void test_ties(void **state)
{
    CycleParameters p = parameters();
    CycleSnapshot s = plenty;
    _cleanup_model_ Model *m =
            model_of(session(STAGE_SESSION, 1000, T0, 0, "A>a=0-4 B>b=0-1 B>home=0-1", NULL));
    _cleanup_free_ char **to = calloc(m->n_files, sizeof(*to));
    _cleanup_cycle_ Cycle *c = NULL;
    usec_t now;
    CycleDecision d;

    to[model_find_file(m, "/f/b")] = strdup("/usr/lib/libc.so.6");
    assert_int_equal(model_move_files(m, to), 0);
    c = make(&p, m);
    now = habit(c, 10, 1000 * S);
    assert_int_equal(cycle_begin(c, (EventTime){now, T0 + now}), 0);
    assert_int_equal(observe(c, now + 100 * S, "/bin/A", true), 1);
    s.memory.available_bytes = 2 * PAGE;
    d = decide(c, now + 101 * S, &s);
    assert_int_equal(d.n_requests, 1);
    assert_int_equal(d.n_beyond, 1);
    assert_non_null(requested(&d, "/usr/lib/libc.so.6", 0));
}

static void test_dump(void **state)
{
    CycleParameters p = parameters();
    usec_t now;
    _cleanup_cycle_ Cycle *c = after_a(&p, &now);
    struct json_object *o, *x;

    decide(c, now, &plenty);
    o = cycle_dump(c);
    assert_non_null(o);
    assert_true(json_object_object_get_ex(o, "requests", &x));
    assert_true(json_object_array_length(x) >= 3);
    assert_true(json_object_object_get_ex(o, "running", &x));
    assert_string_equal(json_object_get_string(json_object_array_get_idx(x, 0)), "/bin/A");
    json_object_put(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_start_is_answered),
            cmocka_unit_test(test_steady),
            cmocka_unit_test(test_budget),
            cmocka_unit_test(test_switches),
            cmocka_unit_test(test_no_scan),
            cmocka_unit_test(test_parts_are_bounded),
            cmocka_unit_test(test_minimum_use),
            cmocka_unit_test(test_metadata),
            cmocka_unit_test(test_metadata_is_bounded),
            cmocka_unit_test(test_two_clocks),
            cmocka_unit_test(test_minsize),
            cmocka_unit_test(test_prefixes),
            cmocka_unit_test(test_other_users),
            cmocka_unit_test(test_hostile),
            cmocka_unit_test(test_bad_parameters),
            cmocka_unit_test(test_nothing_known),
            cmocka_unit_test(test_save_restore),
            cmocka_unit_test(test_part_of_the_starts),
            cmocka_unit_test(test_maps_of_the_user),
            cmocka_unit_test(test_refused),
            cmocka_unit_test(test_ties),
            cmocka_unit_test(test_dump),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
