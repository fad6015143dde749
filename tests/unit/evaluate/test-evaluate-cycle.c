/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the evaluation with the session cycle: from the same events both select the same objects
 * in the same order. What the evaluation judges is therefore what runs. */

#include "evaluate/random.h"
#include "evaluate/simulate.h"
#include "plan/cost-model.h"
#include "session/cycle-internal.h"
#include "util/model-util.h"

#define S          USEC_PER_SEC
#define USER       1000U
#define N_SESSIONS 30U

/* Six applications with files of their own, and a file that three of them share. No two start
 * within the three seconds in which a read is counted for several applications. */
static Model *learned(void)
{
    Model *m = model_of(session(STAGE_SESSION, USER, T0, 0,
                                "A>a=0-8 A>x=0-3 ?>u ?>u ?>u B>b=0-2,5-9 B>x ?>u ?>u ?>u C>c=0-1 "
                                "?>u ?>u ?>u D>d=0-5 D>x ?>u ?>u ?>u E>e=2-9 ?>u ?>u ?>u F>f=0-7",
                                NULL));

    /* Both begin without habits. */
    m->chains = chains_free(m->chains);
    return m;
}

/* Adds the objects and the applications of the cycle. */
static void add_objects(SimulateInput *in, const CycleObjects *m)
{
    uint32_t number;

    for (size_t i = 0; i < m->n_objects; i++)
        assert_int_equal(simulate_add_object(in, m->objects[i].range.length, &number), 0);
    for (size_t i = 0; i < m->n_items; i++) {
        for (uint32_t k = 0; k < m->items[i].n; k++)
            assert_true(m->chances[m->items[i].first + k] == 1);
        assert_int_equal(
                simulate_add_item(in, m->parts + m->items[i].first, m->items[i].n, &number), 0);
    }
}

static void add_event(SimulateInput *in, SimulateEventKind kind, usec_t at, uint32_t item)
{
    SimulateEvent e = {.at = at,
                       .user = USER,
                       .item = item,
                       .kind = kind,
                       .realtime = kind == SIMULATE_BEGIN ? T0 + at : 0};

    assert_int_equal(simulate_add_event(in, &e), 0);
}

/* Draws sessions in which each application usually follows the one before it, some start twice, and
 * some still run at the end. */
static void draw_events(SimulateInput *in, uint64_t seed)
{
    Random random = {seed};
    usec_t at = S;

    for (unsigned k = 0; k < N_SESSIONS; k++) {
        uint32_t next = random_below(&random, (uint32_t)in->n_items);
        bool runs[16] = {false};

        add_event(in, SIMULATE_BEGIN, at += 3600 * S, 0);
        for (unsigned i = 0; i < 8; i++) {
            add_event(in, SIMULATE_START, at += (1 + random_below(&random, 60)) * S, next);
            runs[next] = true;
            if (random_below(&random, 4) == 0)
                add_event(in, SIMULATE_START, at += S, next);
            for (uint32_t x = 0; x < in->n_items; x++)
                if (runs[x] && random_below(&random, 3) == 0) {
                    add_event(in, SIMULATE_EXIT, at += S, x);
                    runs[x] = false;
                }
            next = random_below(&random, 10) < 7 ? (next + 1) % (uint32_t)in->n_items
                                                 : random_below(&random, (uint32_t)in->n_items);
        }
        add_event(in, SIMULATE_END, at += 30 * S, 0);
    }
}

/* The objects of each selection, one selection after the other, with UINT32_MAX after each. */
typedef struct Selections {
    uint32_t *objects;
    size_t n, allocated, n_selections;
} Selections;

static void add_selection(const uint32_t *objects, size_t n, void *userdata)
{
    Selections *s = userdata;

    assert_int_equal(grow_array(&s->objects, &s->allocated, s->n + n + 1, sizeof(*s->objects)), 0);
    for (size_t i = 0; i < n; i++)
        s->objects[s->n++] = objects[i];
    s->objects[s->n++] = UINT32_MAX;
    s->n_selections++;
}

static uint32_t object_of(const Cycle *c, const PrefetchRequest *r)
{
    const CycleObjects *m = &c->objects;

    for (uint32_t i = 0; i < m->n_objects; i++)
        if (m->paths[m->objects[i].path].text == r->path &&
            m->objects[i].range.offset == r->range.offset)
            return i;
    fail();
    return UINT32_MAX;
}

static void run_cycle(Cycle *c, const SimulateInput *in, uint64_t budget, Selections *ret)
{
    const CycleSnapshot machine = {
            .memory = {.total_bytes = 16 * budget, .available_bytes = 2 * budget}};

    for (size_t i = 0; i < in->n_events; i++) {
        const SimulateEvent *e = &in->events[i];
        EventTime t = {e->at, T0 + e->at};
        uint32_t selected[64];
        CycleDecision d;

        if (e->kind == SIMULATE_BEGIN)
            assert_int_equal(cycle_begin(c, t), 0);
        else if (e->kind == SIMULATE_END)
            cycle_end(c, t);
        else
            assert_true(cycle_observe(
                                c, &(CycleEvent){
                                           .time = t,
                                           .uid = USER,
                                           .started = e->kind == SIMULATE_START,
                                           .path = mixture_chains(c->mixture)->names.names[e->item],
                                   }) >= 0);
        if (e->kind == SIMULATE_END)
            continue;
        assert_int_equal(cycle_decide(c, t, &machine, &d), 0);
        assert_int_equal(d.budget_bytes, budget);
        assert_true(d.n_requests <= ELEMENTSOF(selected));
        for (size_t k = 0; k < d.n_requests; k++)
            selected[k] = object_of(c, &d.requests[k]);
        add_selection(selected, d.n_requests, ret);
    }
}

static void compare(const SelectionParameters *selection, uint64_t budget, uint64_t seed)
{
    _cleanup_model_ Model *m = learned();
    _cleanup_cycle_ Cycle *c = NULL;
    _cleanup_simulate_input_ SimulateInput in = {0};
    _cleanup_predictor_ Predictor *p = NULL;
    Selections judged = {0}, ran = {0};
    SimulateReport report;
    SimulateParameters sp;
    CycleParameters cp;

    cycle_parameters_init(&cp);
    cp.minsize_bytes = 0;
    cp.selection = *selection;
    assert_int_equal(cycle_new(&cp, m, H, USER, &c), 0);
    add_objects(&in, &c->objects);
    draw_events(&in, seed);

    simulate_parameters_init(&sp);
    sp.training = 0;
    sp.budget_bytes = budget;
    sp.selection = *selection;
    sp.select_horizon = cp.interval;
    sp.seek_bytes = cost_seek_bytes(device_profile_of_class(DEVICE_CLASS_UNKNOWN));
    sp.selected = add_selection;
    sp.selected_userdata = &judged;
    assert_int_equal(predictor_new("mixture", NULL, 1, &p), 0);
    assert_int_equal(simulate(&in, &sp, p, &report), 0);
    assert_true(report.hit_rate > 0.1);

    run_cycle(c, &in, budget, &ran);
    assert_int_equal(ran.n_selections, judged.n_selections);
    assert_int_equal(ran.n, judged.n);
    assert_memory_equal(ran.objects, judged.objects, ran.n * sizeof(*ran.objects));
    free(ran.objects);
    free(judged.objects);
}

static void test_cycle_selects_what_is_judged(void **state)
{
    const SelectionParameters product = SELECTION_PARAMETERS_DEFAULT;
    const SelectionParameters others[] = {{0.2, 0.15}, {0, 0.3}, {0.6, 1}, {0, 1}};

    for (uint64_t seed = 1; seed <= 2; seed++) {
        compare(&product, 64 * PAGE, seed);
        compare(&product, 12 * PAGE, seed);
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
            compare(&others[i], 64 * PAGE, seed);
            compare(&others[i], 12 * PAGE, seed);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_cycle_selects_what_is_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
