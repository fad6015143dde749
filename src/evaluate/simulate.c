/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Over 500 lines in one file: one pass over the events, whose steps share one Simulation. */

#include "evaluate/simulate.h"

#include "evaluate/simulate-internal.h"

#include <math.h>
#include <string.h>

/* The largest number of cycles in one gap between events. This limit bounds the work after a jump
 * of the clock. */
#define CYCLES_MAX 10000U

#define PROBABILITY_MIN 1e-6 /* probability of an item without a guess, for the log loss */
#define POINT_GAP_MAX   (60 * USEC_PER_SEC) /* after this gap a prediction is scored in any case */
#define NEXT_MIN        1e-4

static void simulation_done(Simulation *s)
{
    free(s->objects);
    running_set_done(&s->running);
    free(s->uses);
    free(s->uses_first);
    free(s->uses_next);
    guesses_done(&s->guesses);
    guesses_done(&s->kept);
    guesses_done(&s->scored);
    free(s->offered);
    free(s->selected);
    free(s->candidates);
    free(s->queue);
    free(s->worth);
    object_scores_done(&s->scores);
    object_scores_done(&s->kept_scores);
}

void simulate_parameters_init(SimulateParameters *p)
{
    *p = (SimulateParameters){
            .cache_unit = CACHE_UNLIMITED,
            .budget_bytes = UINT64_MAX,
            .training = 0.55,
            .learn_on = true,
            .horizon = 20 * USEC_PER_SEC,
            .select_horizon = 20 * USEC_PER_SEC,
            .selection = {.minimum_use = 0, .maximum_waste = 1},
            .seek_bytes = SIMULATE_SEEK_BYTES,
    };
}

void simulate_bound_waste(SimulateParameters *p, double maximum_waste)
{
    p->selection = SELECTION_PARAMETERS_DEFAULT;
    p->selection.maximum_waste = maximum_waste;
}

static uint64_t clock_now(const Simulation *s)
{
    return s->p->clock_nsec ? s->p->clock_nsec(s->p->clock_userdata) : 0;
}

/* A flag in uses_next while a point is scored: the next use was guessed. */
#define GUESSED (SIZE_MAX / 2 + 1)

/* Returns whether the item is used within the horizon and in this session; marks the use as
 * guessed. */
static bool is_used(Simulation *s, uint32_t item, usec_t until)
{
    const SimulatedUse *u;

    if (item >= s->in->n_items || s->uses_next[item] >= s->uses_first[item + 1])
        return false;
    u = &s->uses[s->uses_next[item]];
    if (u->session != s->session || u->at > until)
        return false;
    s->uses_next[item] |= GUESSED;
    return true;
}

/* Returns the log loss of one guess, and counts it in its bin. */
static double score_guess(Simulation *s, const Guess *g, usec_t until)
{
    double p = g->probability;
    unsigned b = MIN((unsigned)(p * SIMULATE_BINS), SIMULATE_BINS - 1U);
    SimulateBin *bin = &s->report->bins[b];
    bool used = is_used(s, g->item, until);

    bin->n++;
    bin->used += used;
    bin->sum += p;
    s->bin_n[b]++;
    s->bin_excess[b] += (double)used - p;
    p = MIN(MAX(p, PROBABILITY_MIN), 1 - PROBABILITY_MIN);
    return used ? -log(p) : -log1p(-p);
}

/* Returns the log loss of the uses after the event that were not guessed. Each item counts once. */
static double score_missed(const Simulation *s, size_t event, usec_t until)
{
    const SimulateInput *in = s->in;
    double sum = 0;

    for (size_t i = event + 1; i < in->n_events; i++) {
        const SimulateEvent *e = &in->events[i];

        if (e->kind == SIMULATE_BEGIN || e->kind == SIMULATE_END || e->at > until)
            break;
        if (e->kind != SIMULATE_EXIT && !(s->uses_next[e->item] & GUESSED) &&
            s->uses_next[e->item] < s->uses_first[e->item + 1] &&
            s->uses[s->uses_next[e->item]].event == i)
            sum -= log(PROBABILITY_MIN);
    }
    return sum;
}

/* Compares the guesses for the horizon of the report with the uses. */
static int score_point(Simulation *s, size_t event)
{
    const Guesses *g = &s->scored;
    usec_t until = s->now + MIN(s->p->horizon, USEC_INFINITY - s->now);
    double sum = 0;
    int r;

    if (s->report->n_log_loss > 0 && s->now < s->last_point + MIN(s->p->horizon / 4, POINT_GAP_MAX))
        return 0;
    s->last_point = s->now;
    r = predictor_predict(s->predictor, s->now, s->p->horizon, &s->scored);
    if (r < 0)
        return r;
    for (size_t i = 0; i < g->n; i++)
        sum += score_guess(s, &g->guesses[i], until);
    sum += score_missed(s, event, until);
    for (size_t i = 0; i < g->n; i++)
        if (g->guesses[i].item < s->in->n_items)
            s->uses_next[g->guesses[i].item] &= ~GUESSED;
    s->report->log_loss += sum;
    s->report->n_log_loss++;
    return 0;
}

static int predict(Simulation *s, size_t event)
{
    const ObjectTable table = {
            .items = s->in->items,
            .n_items = s->in->n_items,
            .parts = s->in->parts,
            .n_objects = s->in->n_objects,
            .worth = s->worth,
    };
    uint64_t start = clock_now(s);
    int r;

    s->n_predictions++;
    r = predictor_rank(s->predictor, s->now, s->p->select_horizon, &s->guesses);
    if (r < 0)
        return r;
    s->report->predict_nsec += clock_now(s) - start;
    s->report->n_predicted++;
    s->kept.n = 0;
    if (simulate_asks_for_use(s)) {
        r = predictor_predict(s->predictor, s->now, USEC_INFINITY, &s->kept);
        if (r < 0)
            return r;
    }
    r = object_scores_compute(&s->scores, &table, &s->guesses);
    if (r >= 0 && simulate_asks_for_use(s))
        r = object_scores_compute(&s->kept_scores, &table, &s->kept);
    if (r < 0)
        return r;
    r = simulate_select(s);
    if (r < 0)
        return r;
    return s->now >= s->session_start + s->p->grace ? score_point(s, event) : 0;
}

/* Events */

static void use_object(Simulation *s, uint32_t o, bool scored, bool *covered)
{
    SimulatedObject *x = &s->objects[o];
    SimulateReport *r = s->report;
    bool was_cached = x->cached, arrived;
    usec_t at = MAX(s->now, s->stalled_to);

    s->stalled_to = simulate_disk_demand(s, o, at);
    arrived = was_cached && s->stalled_to == at;
    if (scored) {
        bool selected = x->selected == s->n_predictions && s->n_predictions > 0;

        r->stall_usec += (double)(s->stalled_to - at);

        r->n_objects++;
        r->n_selected += selected;
        r->n_cached += arrived;
        r->n_late += was_cached && !arrived;
        *covered = *covered && selected;
    }
    if (x->unused) {
        x->unused = false;
        r->n_reads_used++;
        r->n_in_time += arrived;
        r->lead_usec += (double)(s->now - x->issued);
    }
    simulate_cache_use(s, o);
}

static void use_item(Simulation *s, uint32_t item)
{
    const ItemParts *it = &s->in->items[item];
    bool scored = s->testing && s->now >= s->session_start + s->p->grace;
    bool covered = true;

    if (!s->testing)
        return;
    if (scored) {
        double sum = 0, mine = 0;

        for (size_t i = 0; i < s->guesses.n; i++) {
            sum += s->guesses.guesses[i].probability;
            if (s->guesses.guesses[i].item == item)
                mine = s->guesses.guesses[i].probability;
        }
        s->report->n_scored++;
        s->report->n_first += s->guesses.n > 0 && s->guesses.guesses[0].item == item;
        s->report->next_log_loss -= log(MAX(sum > 0 ? mine / sum : 0, NEXT_MIN));
    }
    for (uint32_t j = 0; j < it->n; j++)
        use_object(s, s->in->parts[it->first + j], scored, &covered);
    if (scored && it->n > 0)
        s->report->n_covered += covered;
}

/* Adds the guesses of the session to the sums over the sessions. */
static void end_bins(Simulation *s)
{
    for (unsigned b = 0; b < SIMULATE_BINS; b++) {
        SimulateBin *bin = &s->report->bins[b];
        double e = s->bin_excess[b], n = s->bin_n[b];

        bin->ee += e * e;
        bin->en += e * n;
        bin->nn += n * n;
        s->bin_excess[b] = s->bin_n[b] = 0;
    }
}

static int end_session(Simulation *s)
{
    if (!s->in_session)
        return 0;
    s->in_session = false;
    end_bins(s);
    running_set_clear(&s->running);
    simulate_cache_clear(s);
    s->guesses.n = 0;
    return predictor_end(s->predictor, s->now);
}

static int begin_session(Simulation *s, uint32_t user, usec_t realtime)
{
    int r = end_session(s);

    if (r < 0)
        return r;
    s->in_session = true;
    s->session++;
    s->session_start = s->now;
    if (realtime > 0)
        predictor_set_wall_clock(s->predictor, s->now, realtime);
    return predictor_begin(s->predictor, s->now, user);
}

static int observe(Simulation *s, const SimulateEvent *e)
{
    static const PredictorEventKind kinds[] = {
            [SIMULATE_START] = PREDICTOR_START,
            [SIMULATE_EXIT] = PREDICTOR_EXIT,
            [SIMULATE_ACCESS] = PREDICTOR_ACCESS,
    };
    uint64_t start = clock_now(s);
    int r;

    r = predictor_observe(s->predictor, &(PredictorEvent){
                                                .at = s->now,
                                                .user = e->user,
                                                .item = e->item,
                                                .kind = kinds[e->kind],
                                        });
    s->report->observe_nsec += clock_now(s) - start;
    s->report->n_observed++;
    return r;
}

static int handle_event(Simulation *s, size_t i)
{
    const SimulateEvent *e = &s->in->events[i];
    int r;

    if (e->kind == SIMULATE_END)
        return end_session(s);
    if (e->kind == SIMULATE_BEGIN || !s->in_session) {
        r = begin_session(s, e->user, e->kind == SIMULATE_BEGIN ? e->realtime : 0);
        if (r < 0 || e->kind == SIMULATE_BEGIN)
            return r < 0 ? r : s->testing ? predict(s, i) : 0;
    }
    if (e->kind == SIMULATE_START) {
        r = running_set_start(&s->running, e->item);
        if (r < 0)
            return r;
        if (r > 0)
            use_item(s, e->item);
    } else if (e->kind == SIMULATE_EXIT)
        running_set_exit(&s->running, e->item);
    else
        use_item(s, e->item);

    while (s->uses_next[e->item] < s->uses_first[e->item + 1] &&
           s->uses[s->uses_next[e->item]].event <= i)
        s->uses_next[e->item]++;
    if (!s->testing || s->p->learn_on) {
        r = observe(s, e);
        if (r < 0)
            return r;
    }
    return s->testing ? predict(s, i) : 0;
}

/* Sets is_use[i] if event i uses its item: by an access, or by a start while the item does not run.
 * Counts the uses of each item in uses_first. */
static int find_uses(Simulation *s, bool *is_use)
{
    const SimulateInput *in = s->in;

    for (size_t i = 0; i < in->n_events; i++) {
        const SimulateEvent *e = &in->events[i];
        int r = e->kind == SIMULATE_ACCESS;

        if (e->kind == SIMULATE_BEGIN || e->kind == SIMULATE_END) {
            running_set_clear(&s->running);
            continue;
        }
        if (e->kind == SIMULATE_START)
            r = running_set_start(&s->running, e->item);
        else if (e->kind == SIMULATE_EXIT)
            running_set_exit(&s->running, e->item);
        if (r < 0)
            return r;
        is_use[i] = r > 0;
        s->uses_first[e->item] += r > 0;
    }
    running_set_clear(&s->running);
    return 0;
}

/* Fills the lists of uses. uses_first contains the position at which the list of each item
 * begins. */
static void list_uses(Simulation *s, const bool *is_use)
{
    const SimulateInput *in = s->in;
    uint32_t session = 0;
    usec_t now = 0;
    bool in_session = false;

    for (size_t i = 0; i < in->n_items; i++)
        s->uses_next[i] = s->uses_first[i];
    for (size_t i = 0; i < in->n_events; i++) {
        const SimulateEvent *e = &in->events[i];

        now = MAX(now, e->at);
        if (e->kind == SIMULATE_BEGIN || (e->kind != SIMULATE_END && !in_session)) {
            session++;
            in_session = true;
        }
        if (e->kind == SIMULATE_END)
            in_session = false;
        if (is_use[i])
            s->uses[s->uses_next[e->item]++] = (SimulatedUse){i, now, session};
    }
    for (size_t i = 0; i < in->n_items; i++)
        s->uses_next[i] = s->uses_first[i];
}

/* Lists the uses of each item. */
static int index_uses(Simulation *s)
{
    const SimulateInput *in = s->in;
    _cleanup_free_ bool *is_use = calloc(in->n_events + 1, sizeof(*is_use));
    size_t sum = 0;
    int r;

    s->uses_first = calloc(in->n_items + 2, sizeof(*s->uses_first));
    s->uses_next = calloc(in->n_items + 1, sizeof(*s->uses_next));
    s->uses = calloc(in->n_events + 1, sizeof(*s->uses));
    if (!is_use || !s->uses_first || !s->uses_next || !s->uses)
        return -ENOMEM;
    r = find_uses(s, is_use);
    if (r < 0)
        return r;
    for (size_t i = 0; i <= in->n_items; i++) {
        size_t n = s->uses_first[i];

        s->uses_first[i] = sum;
        sum += n;
    }
    list_uses(s, is_use);
    return 0;
}

static bool input_valid(const SimulateInput *in)
{
    for (size_t i = 0; i < in->n_events; i++) {
        const SimulateEvent *e = &in->events[i];

        if ((int)e->kind < 0 || e->kind >= _SIMULATE_EVENT_KIND_MAX)
            return false;
        if (e->kind != SIMULATE_BEGIN && e->kind != SIMULATE_END && e->item >= in->n_items)
            return false;
    }
    for (size_t i = 0; i < in->n_items; i++)
        if (in->items[i].first > in->n_parts || in->items[i].n > in->n_parts - in->items[i].first)
            return false;
    for (size_t i = 0; i < in->n_parts; i++)
        if (in->parts[i] >= in->n_objects)
            return false;
    return true;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

/* Predicts every `cycle` until the next event, which comes at `until`. */
static int predict_cycles(Simulation *s, size_t next, usec_t until)
{
    if (s->p->cycle == 0 || !s->testing || !s->in_session)
        return 0;
    for (unsigned k = 0; k < CYCLES_MAX && until - s->now > s->p->cycle; k++) {
        int r;

        s->now += s->p->cycle;
        r = predict(s, next - 1);
        if (r < 0)
            return r;
    }
    return 0;
}

static int run(Simulation *s)
{
    const SimulateInput *in = s->in;
    size_t n_training = (size_t)((double)in->n_events * s->p->training);

    for (size_t i = 0; i < in->n_events; i++) {
        usec_t at = MAX(s->now, in->events[i].at);
        int r;

        if (s->p->progress)
            s->p->progress(i, in->n_events, s->p->progress_userdata);
        r = predict_cycles(s, i, at);
        if (r < 0)
            return r;
        s->now = at;
        s->testing = i >= n_training;
        r = handle_event(s, i);
        if (r < 0)
            return r;
    }
    return end_session(s);
}

static bool parameters_valid(const SimulateParameters *p)
{
    return p->training >= 0 && p->training <= 1 && p->selection.minimum_use >= 0 &&
           p->selection.maximum_waste >= 0 && p->selection.maximum_waste <= 1 &&
           p->minimum_probability >= 0 && (int)p->cache_unit >= 0 &&
           p->cache_unit < _CACHE_UNIT_MAX &&
           (p->cache_unit != CACHE_BYTES || p->budget_bytes == UINT64_MAX ||
            p->budget_bytes <= p->cache_size);
}

static int set_up(Simulation *s)
{
    const SimulateInput *in = s->in;

    s->objects = calloc(in->n_objects + 1, sizeof(*s->objects));
    s->selected = calloc(in->n_objects + 1, sizeof(*s->selected));
    s->offered = calloc(in->n_objects + 1, sizeof(*s->offered));
    s->candidates = calloc(in->n_objects + 1, sizeof(*s->candidates));
    s->queue = calloc(in->n_objects + 1, sizeof(*s->queue));
    if (!s->objects || !s->selected || !s->offered || !s->candidates || !s->queue)
        return -ENOMEM;
    /* If files are counted, all objects have equal worth. */
    if (s->p->cache_unit != CACHE_FILES || s->p->budget_bytes != UINT64_MAX) {
        s->worth = calloc(in->n_objects + 1, sizeof(*s->worth));
        if (!s->worth)
            return -ENOMEM;
        for (size_t i = 0; i < in->n_objects; i++)
            s->worth[i] = object_worth(in->object_bytes[i], s->p->seek_bytes);
    }
    return index_uses(s);
}

static void finish_report(const Simulation *s, SimulateReport *r)
{
    r->read_bytes = s->read_bytes;
    r->wasted_bytes = s->wasted_bytes;
    r->state_bytes = predictor_size(s->predictor);
    r->hit_rate = ratio((double)r->n_selected, (double)r->n_objects);
    r->cache_hit_rate = ratio((double)r->n_cached, (double)r->n_objects);
    r->accuracy = r->read_bytes > 0 ? ratio((double)r->n_reads_used, (double)r->n_reads) : NAN;
    r->coverage = ratio((double)r->n_covered, (double)r->n_scored);
    r->first_right = ratio((double)r->n_first, (double)r->n_scored);
    r->waste = ratio((double)r->wasted_bytes, (double)r->read_bytes);
}

int simulate(const SimulateInput *in, const SimulateParameters *parameters, Predictor *p,
             SimulateReport *ret)
{
    SimulateReport report = {.n_events = in->n_events};
    _cleanup_(simulation_done) Simulation s = {
            .in = in,
            .p = parameters,
            .predictor = p,
            .report = &report,
            .newest = SIMULATE_NO_OBJECT,
            .oldest = SIMULATE_NO_OBJECT,
    };
    int r;

    if (!parameters_valid(parameters) || !input_valid(in))
        return -EINVAL;
    r = set_up(&s);
    if (r >= 0)
        r = run(&s);
    if (r < 0)
        return r;
    finish_report(&s, &report);
    *ret = report;
    return 0;
}
