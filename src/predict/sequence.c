/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "predict/sequence.h"

#include <math.h>
#include <string.h>

/* Factor by which a case counts less for each newer case of the same context. */
#define RECENT_CASE 0.5
#define RECENT_ANY  0.9
/* This many hours before and after the present hour count as the same time of the day. */
#define HOURS_NEAR 2

#define MSEC_PER_HOUR  (UINT64_C(3600) * 1000)
#define MSEC_PER_DAY   (24 * MSEC_PER_HOUR)
#define HOURS_PER_WEEK (7U * 24)
#define MSEC_PER_WEEK  (7 * MSEC_PER_DAY)

/* Rows of counts in addition to the rows of the experts. */
enum {
    COUNT_ALIKE_ANY = SEQUENCES,
    COUNT_HOUR_ANY,
    COUNT_FOLLOWS, /* by application: 1 + the application that followed it last in the present
                      session */
    COUNT_SEEN, /* by application: number of the latest session that counted it in "unused"; -1: the
                   present session has started it */
    COUNT_RAN,  /* by expert: weight of the cases in which the application ran */
    COUNTS = COUNT_RAN + SEQUENCES,
};

void sequence_done(Sequence *s)
{
    free(s->chances);
    *s = (Sequence){0};
}

/* Returns the local time at a moment of the wall clock. People's habits follow the local time. */
static uint64_t local_msec(const SequenceSituation *x, uint64_t msec)
{
    uint64_t back = (uint64_t)-x->utc_offset_msec;

    if (x->utc_offset_msec >= 0)
        return msec + (uint64_t)x->utc_offset_msec;
    return msec - MIN(msec, back);
}

static uint64_t day_of(const SequenceSituation *x, uint64_t msec)
{
    return local_msec(x, msec) / MSEC_PER_DAY;
}

/* Returns the local time since the week began, on Monday. 1970-01-01 was a Thursday. */
static uint64_t time_of_week(const SequenceSituation *x, uint64_t msec)
{
    return (local_msec(x, msec) + 3 * MSEC_PER_DAY) % MSEC_PER_WEEK;
}

/* Lists for each hour of the week whether it counts as the same time as the hour of `msec`. Every
 * start of the log is compared, so a table saves most of the divisions. */
static void list_same_hours(const SequenceSituation *x, uint64_t msec,
                            bool ret[static HOURS_PER_WEEK])
{
    unsigned now = (unsigned)(time_of_week(x, msec) / MSEC_PER_HOUR);

    for (unsigned i = 0; i < HOURS_PER_WEEK; i++) {
        unsigned a = i % 24, b = now % 24, apart = a > b ? a - b : b - a;
        bool weekend = i / 24 >= 5;

        ret[i] = weekend == (now / 24 >= 5) && MIN(apart, 24 - apart) <= HOURS_NEAR;
    }
}

/* Returns true if `offset` after the time `begin` of a week is one of the hours. */
static bool is_same_hour(const bool hours[static HOURS_PER_WEEK], uint64_t begin, uint64_t offset)
{
    uint64_t t = begin + offset;

    return hours[(t < MSEC_PER_WEEK ? t : t % MSEC_PER_WEEK) / MSEC_PER_HOUR];
}

/* The counts, and the weight of the next case of each "recent" expert. */
typedef struct Counting {
    const SequenceSituation *x;
    double *rows[COUNTS];
    double cases[SEQUENCES]; /* weight of all cases; 0: the applications that ran are not counted */
    double any_recent, one_recent, two_recent;
    uint32_t ran[SESSION_LOG_STARTS_MAX]; /* the applications that ran at the time of the case */
    size_t n_ran;
    uint32_t session; /* number of the session in COUNT_SEEN */
    /* The hours of the week that count as the same time as now, and as the beginning of the present
     * session. */
    bool now_hours[HOURS_PER_WEEK], begin_hours[HOURS_PER_WEEK];
} Counting;

/* What all starts of a session share. */
typedef struct CountedSession {
    const LoggedSession *session;
    double weight, alike;
    uint64_t begin; /* time of the week */
    bool same_day;
} CountedSession;

/* Returns how far the session agrees with the present one: the number of cases with the same
 * successor, less half of the number of cases with another successor, plus the points for its time.
 * The result is limited to -6..6. */
static double agreement(const Counting *c, const LoggedSession *s)
{
    uint32_t before = 0;
    double score = 0;

    /* The same time of the day counts as two cases, and the same parity of the day as one. */
    if (is_same_hour(c->begin_hours, time_of_week(c->x, s->begin_msec), 0))
        score += 2;
    if (day_of(c->x, s->begin_msec) % 2 == day_of(c->x, c->x->present.begin_msec) % 2)
        score += 1;

    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t a = s->starts[i].application;
        double follows = c->rows[COUNT_FOLLOWS][before];

        if (follows > 0)
            score += follows == a + 1.0 ? 1 : -0.5;
        before = a;
    }
    return min_double(max_double(score, -6), 6);
}

/* Counts start i of the session as a case for an expert, and notes which applications could not
 * have started in this case because they ran. */
static void count_case(Counting *c, unsigned expert, const LoggedSession *s, uint32_t i,
                       double weight)
{
    double *ran = c->rows[COUNT_RAN + expert];

    c->rows[expert][s->starts[i].application] += weight;
    c->cases[expert] += weight;
    for (size_t k = 0; k < c->n_ran; k++)
        ran[c->ran[k]] += weight;
}

/* Lists the applications that ran at start i of the session. */
static void list_ran(Counting *c, const LoggedSession *s, uint32_t i)
{
    c->n_ran = 0;
    for (uint32_t k = 0; k < i; k++)
        if (s->starts[k].end_msec > s->starts[i].at_msec)
            c->ran[c->n_ran++] = s->starts[k].application;
}

/* Counts start i of a session. `before` lists the three applications that started before it, the
 * latest first. */
static void count_start(Counting *c, const CountedSession *l, uint32_t i,
                        const uint32_t before[static 3])
{
    const uint32_t *now = c->x->before;
    const LoggedSession *s = l->session;
    bool near = is_same_hour(c->now_hours, l->begin, s->starts[i].at_msec);
    uint32_t a = s->starts[i].application;

    c->rows[SEQUENCE_ANY][a] += l->weight;
    c->rows[SEQUENCE_ANY_RECENT][a] += c->any_recent;
    c->any_recent *= RECENT_ANY;
    c->rows[COUNT_ALIKE_ANY][a] += l->alike;
    if (near)
        c->rows[COUNT_HOUR_ANY][a] += l->weight;
    if (before[0] != now[0])
        return;
    list_ran(c, s, i);
    count_case(c, SEQUENCE_ONE, s, i, l->weight);
    count_case(c, SEQUENCE_ONE_RECENT, s, i, c->one_recent);
    c->one_recent *= RECENT_CASE;
    count_case(c, SEQUENCE_ALIKE, s, i, l->alike);
    if (l->same_day)
        count_case(c, SEQUENCE_DAY, s, i, l->weight);
    if (near)
        count_case(c, SEQUENCE_HOUR, s, i, l->weight);
    if (before[1] != now[1])
        return;
    count_case(c, SEQUENCE_TWO, s, i, l->weight);
    count_case(c, SEQUENCE_TWO_RECENT, s, i, c->two_recent);
    c->two_recent *= RECENT_CASE;
    if (before[2] == now[2])
        count_case(c, SEQUENCE_THREE, s, i, l->weight);
}

/* Counts the starts of a session, the newest first. */
static void count_session(Counting *c, const LoggedSession *s, double weight, double alike)
{
    const CountedSession l = {
            .session = s,
            .weight = weight,
            .alike = alike,
            .begin = time_of_week(c->x, s->begin_msec),
            .same_day = day_of(c->x, s->begin_msec) % 2 == day_of(c->x, c->x->now_msec) % 2,
    };

    for (uint32_t i = s->n; i-- > 0;) {
        const uint32_t before[3] = {
                i > 0 ? s->starts[i - 1].application : 0,
                i > 1   ? s->starts[i - 2].application
                : i > 0 ? 0
                        : SEQUENCE_NONE,
                i > 2   ? s->starts[i - 3].application
                : i > 1 ? 0
                        : SEQUENCE_NONE,
        };

        count_start(c, &l, i, before);
    }
}

/* Counts the applications that a session of the log started and the present one has not started. */
static void count_unused(Counting *c, const LoggedSession *s, double weight)
{
    double *seen = c->rows[COUNT_SEEN];

    c->session++;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t a = s->starts[i].application;

        if (seen[a] < 0 || seen[a] == c->session)
            continue;
        seen[a] = c->session;
        c->rows[SEQUENCE_UNUSED][a] += weight;
    }
}

/* Turns the counts of a row into a distribution over the applications that do not run, smoothed by
 * a simpler one that counts as `cases` cases. An application that ran in some of the cases could
 * not start in them, so its count is divided by the other cases only. */
static void blend(const Counting *c, unsigned row, const double *simpler, double cases)
{
    const SequenceSituation *x = c->x;
    const double *ran = row < SEQUENCES ? c->rows[COUNT_RAN + row] : NULL;
    double *counts = c->rows[row], all = row < SEQUENCES ? c->cases[row] : 0, sum = 0;

    for (size_t i = 1; i < x->n_applications; i++) {
        double could = all > 0 ? max_double(all - ran[i], 0) + cases : 1;

        counts[i] = x->runs[i] ? 0 : (counts[i] + cases * simpler[i]) / could;
        sum += counts[i];
    }
    for (size_t i = 1; i < x->n_applications && sum > 0; i++)
        counts[i] /= sum;
}

static void weigh_sessions(Sequence *s, const SequenceSituation *x, const Counting *c)
{
    double most = -INFINITY;

    for (size_t i = 0; i < x->log->n; i++) {
        const LoggedSession *l = &x->log->sessions[i];
        uint64_t latest = x->log->sessions[x->log->n - 1].begin_msec;

        s->decayed[i] = exp2(-(double)(latest - l->begin_msec) / (double)x->halflife_msec);
        s->alike[i] = agreement(c, l);
        most = max_double(most, s->alike[i]);
    }
    for (size_t i = 0; i < x->log->n; i++)
        s->alike[i] = s->decayed[i] * exp(s->alike[i] - most);
}

static void blend_all(const Counting *c, double *even)
{
    static const struct {
        unsigned row, simpler;
        double cases;
    } steps[] = {
            {SEQUENCE_ANY_RECENT, SEQUENCE_ANY, 1},   {SEQUENCE_ONE, SEQUENCE_ANY, 1},
            {SEQUENCE_ONE_RECENT, SEQUENCE_ONE, 0.5}, {SEQUENCE_TWO, SEQUENCE_ONE, 1},
            {SEQUENCE_TWO_RECENT, SEQUENCE_TWO, 0.5}, {SEQUENCE_THREE, SEQUENCE_TWO, 1},
            {SEQUENCE_DAY, SEQUENCE_ONE, 1},          {COUNT_HOUR_ANY, SEQUENCE_ANY, 1},
            {SEQUENCE_HOUR, COUNT_HOUR_ANY, 1},       {COUNT_ALIKE_ANY, SEQUENCE_ANY, 0.5},
            {SEQUENCE_ALIKE, COUNT_ALIKE_ANY, 0.5},   {SEQUENCE_UNUSED, SEQUENCE_ANY, 0.2},
    };

    blend(c, SEQUENCE_ANY, even, 1);
    for (size_t i = 0; i < ELEMENTSOF(steps); i++)
        blend(c, steps[i].row, c->rows[steps[i].simpler], steps[i].cases);
}

int sequence_compute(Sequence *s, const SequenceSituation *x)
{
    Counting c = {.x = x, .any_recent = 1, .one_recent = 1, .two_recent = 1};
    size_t n = x->n_applications, n_candidates = 0;
    uint32_t before = 0;
    double *even;
    int r = grow_array(&s->chances, &s->allocated, (COUNTS + 1) * n, sizeof(*s->chances));

    if (r < 0)
        return r;
    memset(s->chances, 0, (COUNTS + 1) * n * sizeof(*s->chances));
    for (unsigned k = 0; k < COUNTS; k++)
        c.rows[k] = s->chances + k * n;
    even = s->chances + COUNTS * n;
    list_same_hours(x, x->now_msec, c.now_hours);
    list_same_hours(x, x->present.begin_msec, c.begin_hours);
    for (uint32_t i = 0; i < x->present.n; i++) {
        uint32_t a = x->present.starts[i].application;

        c.rows[COUNT_FOLLOWS][before] = a + 1.0;
        c.rows[COUNT_SEEN][a] = -1;
        before = a;
    }
    weigh_sessions(s, x, &c);
    count_session(&c, &x->present, 1, 1);
    for (size_t i = x->log->n; i-- > 0;) {
        count_session(&c, &x->log->sessions[i], s->decayed[i], s->alike[i]);
        count_unused(&c, &x->log->sessions[i], s->decayed[i]);
    }
    for (size_t i = 1; i < n; i++)
        n_candidates += !x->runs[i];
    for (size_t i = 1; i < n && n_candidates > 0; i++)
        even[i] = x->runs[i] ? 0 : 1.0 / (double)n_candidates;
    blend_all(&c, even);
    return 0;
}
