/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "plan/stage-time.h"

#include "plan/stage-time-internal.h"

static const usec_t bins[] = {
        1 * USEC_PER_MSEC,   20 * USEC_PER_MSEC,  50 * USEC_PER_MSEC, 100 * USEC_PER_MSEC,
        200 * USEC_PER_MSEC, 500 * USEC_PER_MSEC, 1 * USEC_PER_SEC,   0};

/* The parts of the time of a whole sweep, in per cent, for which the stage may be held. */
static const unsigned holds_percent[] = {10, 20, 30, 40, 50, 60, 70, 80, 90};

/* For stages with more reads, predictions try only every fourth of these bins and hold times. The
 * time of a prediction grows with the number of reads, and large stages gain little if all are
 * tried. */
#define READS_MANY 20000U

static size_t stride_of(const StageSequence *s)
{
    return s->n > READS_MANY ? 4 : 1;
}

static bool seeks(const StageFacts *f)
{
    for (size_t i = 0; i < f->n_devices; i++)
        if (f->devices[i].profile->seek_max_usec > 0)
            return true;
    return false;
}

static int predict_concurrent(const StageSequence *s, StagePrediction *p)
{
    for (size_t i = 0; i < ELEMENTSOF(bins); i += stride_of(s)) {
        usec_t t = 0;
        int r = stage_play(s, &(StageReplay){.bin = bins[i]}, &t, NULL);

        if (r < 0)
            return r;
        if (t < p->usec[POLICY_CONCURRENT]) {
            p->usec[POLICY_CONCURRENT] = t;
            p->concurrent_bin = bins[i];
        }
    }
    return 0;
}

/* The places at which a sweep may begin divide its data into so many parts. */
#define SWEEP_STARTS 24U

static int compare_places(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Returns the volume with most data on disks that seek. */
static uint32_t main_volume(const StageSequence *s)
{
    uint32_t best = 0, n = 0;
    uint64_t most = 0;

    for (size_t i = 0; i < s->n; i++)
        n = MAX(n, s->parts[i].volume + 1);
    for (uint32_t v = 0; v < n; v++) {
        uint64_t bytes = 0;

        for (size_t i = 0; i < s->n; i++)
            if (s->parts[i].volume == v && !s->parts[i].metadata &&
                s->f->devices[s->parts[i].device].profile->seek_max_usec > 0)
                bytes += s->parts[i].length;
        if (bytes > most) {
            most = bytes;
            best = v;
        }
    }
    return best;
}

/* Chooses where the whole sweep of `gate` begins. It has to gain more than 1 % to begin elsewhere
 * than at the first data. `p` has the time of the sweep that begins there, and *hold its hold. */
static int turn_sweep(const StageSequence *s, StagePrediction *p, usec_t *hold)
{
    _cleanup_free_ uint64_t *places = calloc(s->n + 1, sizeof(*places));
    usec_t least = p->usec[POLICY_GATE] - p->usec[POLICY_GATE] / 100;
    StageReplay replay = {.hold = USEC_INFINITY, .sweep_volume = main_volume(s)};
    size_t n = 0;

    if (!places)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++)
        if (!s->parts[i].metadata && s->parts[i].volume == replay.sweep_volume &&
            s->parts[i].place != PHYSICAL_UNKNOWN)
            places[n++] = s->parts[i].place;
    qsort(places, n, sizeof(*places), compare_places);
    for (size_t i = 1; i < SWEEP_STARTS && n >= SWEEP_STARTS; i += stride_of(s)) {
        usec_t t, held;
        int r;

        replay.sweep_start = places[n * i / SWEEP_STARTS];
        r = stage_play(s, &replay, &t, &held);
        if (r < 0)
            return r;
        if (t < least && held <= s->f->deadline) {
            p->usec[POLICY_GATE] = least = t;
            p->sweep_volume = replay.sweep_volume;
            p->sweep_start = replay.sweep_start;
            *hold = held;
        }
    }
    return 0;
}

/* Chooses between two forms of `gate`: to hold the stage for a whole sweep in physical order, or
 * for a part of a sweep in bins. A whole sweep does not depend on the times of first use, which may
 * be wrong. If a whole sweep fits the deadline, a part is therefore chosen only if it gains more
 * than 2 %. */
static int predict_gate(const StageSequence *s, StagePrediction *p)
{
    usec_t whole = 0, least = USEC_INFINITY;
    int r = stage_play(s, &(StageReplay){.hold = USEC_INFINITY}, &p->usec[POLICY_GATE], &whole);

    if (r >= 0 && seeks(s->f))
        r = turn_sweep(s, p, &whole);
    if (r < 0)
        return r;
    p->hold = whole;
    p->gate_whole = true;
    if (whole <= s->f->deadline)
        least = p->usec[POLICY_GATE] - p->usec[POLICY_GATE] / 50;
    /* On a disk that seeks, a part of a sweep is not tried if a whole sweep fits the deadline: the
     * cost of readers during the rest of the sweep was not measured. */
    if (seeks(s->f) && whole <= s->f->deadline)
        return 0;
    for (size_t i = 0; r >= 0 && i < ELEMENTSOF(bins); i += stride_of(s))
        for (size_t k = 0; r >= 0 && k < ELEMENTSOF(holds_percent); k += stride_of(s)) {
            usec_t hold = whole * holds_percent[k] / 100, t = USEC_INFINITY;

            r = stage_play(s, &(StageReplay){.bin = bins[i], .hold = hold}, &t, NULL);
            if (r >= 0 && t < least && hold <= s->f->deadline) {
                p->usec[POLICY_GATE] = least = t;
                p->hold = hold;
                p->gate_whole = false;
                p->gate_bin = bins[i];
            }
        }
    if (p->hold > s->f->deadline)
        p->usec[POLICY_GATE] = USEC_INFINITY;
    return r;
}

/* Predicts the start of an application next to replay. On a disk that seeks, the model of one
 * reader and one stream serves them in turn. In measured starts replay had most of the disk,
 * because it has many requests in the queue and the reader one. The start then takes as long as a
 * sweep and the computing after it, at most. */
static int predict_start(const StageSequence *s, StagePrediction *p)
{
    usec_t held = USEC_INFINITY;
    int r;

    p->concurrent_bin = MAX(s->f->bin, bins[0]);
    r = stage_play(s, &(StageReplay){.bin = p->concurrent_bin}, &p->usec[POLICY_CONCURRENT], NULL);
    if (r >= 0 && seeks(s->f))
        r = stage_play(s, &(StageReplay){.bin = p->concurrent_bin, .hold = USEC_INFINITY}, &held,
                       NULL);
    p->usec[POLICY_CONCURRENT] = MIN(p->usec[POLICY_CONCURRENT], held);
    return r;
}

#define N_CANDIDATES 4

/* Of candidates with equal times, the first one in these lists is chosen. On a disk that seeks,
 * several concurrent readers cost more than this model of one reader and one stream shows. The
 * model also takes a part of the recorded wait for computing, which makes the predicted times of
 * the two policies more similar than they are. On the bench's hard disk, it predicted 4.1 s for
 * `concurrent` and 4.7 s for `gate`; 3.8 s and 2.2 s were measured. A policy must therefore gain a
 * third to be chosen over `gate` there. */
static const Policy on_seeking[N_CANDIDATES] = {POLICY_IDLE, POLICY_GATE, POLICY_CONCURRENT,
                                                POLICY_METADATA};
static const Policy on_others[N_CANDIDATES] = {POLICY_IDLE, POLICY_CONCURRENT, POLICY_GATE,
                                               POLICY_METADATA};

/* What a hold costs a boot on a disk that does not seek, as a share of its computing time: a held
 * boot leaves the processors idle, and computes next to the rest of the replay afterwards. */
#define HOLD_COST 0.125

/* Returns whether the policy is faster than the best one so far, whose time is `best`. */
static bool is_faster(const StageSequence *s, const StagePrediction *p, Policy candidate,
                      usec_t best)
{
    usec_t t = p->usec[candidate];

    if (t != USEC_INFINITY && candidate == POLICY_GATE && p->best == POLICY_CONCURRENT &&
        !seeks(s->f))
        t += (usec_t)(s->warm * HOLD_COST);
    return t < best;
}

static void choose(const StageSequence *s, StagePrediction *p)
{
    const StageFacts *f = s->f;
    usec_t off = p->usec[POLICY_OFF], margin = (usec_t)((double)off * STAGE_TIME_MARGIN);
    usec_t best = f->ready > 0 || f->start ? off - MIN(MAX(margin, STAGE_TIME_GAIN_MIN), off)
                                           : USEC_INFINITY;
    const Policy *candidates = seeks(f) ? on_seeking : on_others;

    p->best = POLICY_OFF;
    p->reason = POLICY_REASON_NO_GAIN;
    for (size_t i = 0; i < N_CANDIDATES; i++)
        /* On a device whose readers do not disturb each other, a boot that was never measured is
         * not held, because its predicted times are only estimates. */
        if (is_faster(s, p, candidates[i], best) &&
            (f->ready > 0 || seeks(f) || candidates[i] != POLICY_GATE)) {
            p->best = candidates[i];
            p->reason = POLICY_REASON_FASTEST;
            best = p->usec[p->best];
            if (seeks(f) && p->best == POLICY_GATE)
                best -= best / 3;
        }
}

int stage_time_predict(const StageFacts *f, StagePrediction *ret)
{
    _cleanup_(stage_sequence_done) StageSequence s = {0};
    StagePrediction p = {0};
    double cold;
    int r;

    for (Policy i = 0; i < _POLICY_MAX; i++)
        p.usec[i] = USEC_INFINITY;
    r = stage_sequence_make(f, &s);
    if (r < 0)
        return r;
    cold = stage_cold_usec(&s);
    if (cold < 0)
        return -ENOMEM;
    p.usec[POLICY_OFF] = (usec_t)cold;
    if (f->start)
        r = predict_start(&s, &p);
    else if (f->waits)
        p.usec[POLICY_IDLE] = (usec_t)s.warm;
    else {
        r = stage_play(&s, &(StageReplay){.metadata_only = true}, &p.usec[POLICY_METADATA], NULL);
        if (r >= 0)
            r = predict_concurrent(&s, &p);
        if (r >= 0)
            r = predict_gate(&s, &p);
    }
    if (r < 0)
        return r;
    choose(&s, &p);
    *ret = p;
    return 0;
}
