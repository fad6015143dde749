/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "chains/expert-weights.h"

#include <string.h>

/* The initial weights count as this many outcomes. */
#define EVIDENCE_START 10.0
/* The unit of credits, losses and promises, relative to the weight of an event. */
#define CREDIT_SCALE (1024.0 / (1U << DECAYED_SUM_BITS))
/* When a loss is computed, a smaller chance counts as this value. */
#define CHANCE_MIN 1e-6

unsigned expert_bucket(double n_known)
{
    return n_known < 2 ? 0 : n_known < 6 ? 1 : n_known < 16 ? 2 : 3;
}

unsigned horizon_class(usec_t horizon, double *ret_share_of_next)
{
    static const double ends[] = {HORIZON_SECONDS_USEC, HORIZON_MINUTES_USEC, HORIZON_SESSION_USEC};
    double t = min_double(max_double((double)horizon, ends[0]), ends[2]);
    unsigned class = t < ends[1] ? HORIZON_SECONDS : HORIZON_MINUTES;

    *ret_share_of_next = log(t / ends[class]) / log(ends[class + 1] / ends[class]);
    return class;
}

void expert_weights_next_init(double ret[static EXPERTS])
{
    static const double start[EXPERTS] = {
            [EXPERT_OWN] = 0.02,
            [EXPERT_LAST] = 0.10,
            [EXPERT_RUN] = 0.06,
            [EXPERTS_OF_HISTORY + EXPERT_OWN] = 0.02,
            [EXPERTS_OF_HISTORY + EXPERT_LAST] = 0.06,
            [EXPERTS_OF_HISTORY + EXPERT_RUN] = 0.04,
            [EXPERTS_OF_CHAINS + SEQUENCE_ANY] = 0.04,
            [EXPERTS_OF_CHAINS + SEQUENCE_ANY_RECENT] = 0.04,
            [EXPERTS_OF_CHAINS + SEQUENCE_ONE] = 0.12,
            [EXPERTS_OF_CHAINS + SEQUENCE_ONE_RECENT] = 0.08,
            [EXPERTS_OF_CHAINS + SEQUENCE_TWO] = 0.12,
            [EXPERTS_OF_CHAINS + SEQUENCE_TWO_RECENT] = 0.06,
            [EXPERTS_OF_CHAINS + SEQUENCE_THREE] = 0.06,
            [EXPERTS_OF_CHAINS + SEQUENCE_DAY] = 0.04,
            [EXPERTS_OF_CHAINS + SEQUENCE_HOUR] = 0.04,
            [EXPERTS_OF_CHAINS + SEQUENCE_ALIKE] = 0.06,
            [EXPERTS_OF_CHAINS + SEQUENCE_UNUSED] = 0.04,
    };

    memcpy(ret, start, sizeof(start));
}

void expert_weights_horizon_init(unsigned horizon, double ret[static HORIZON_EXPERTS])
{
    for (unsigned k = 0; k < HORIZON_EXPERTS; k++)
        ret[k] = 1.0 / HORIZON_EXPERTS;
    if (horizon < HORIZON_SESSION)
        return;
    /* Many starts follow before a session ends, so the next one alone says little about the
     * session. */
    for (unsigned k = 0; k < HORIZON_EXPERTS; k++)
        ret[k] = k == HORIZON_NEXT ? 0 : 1.0 / (HORIZON_EXPERTS - 1);
}

void expert_weights_update(const DecayedSum *credits, unsigned n, uint64_t now_weight,
                           double *weights)
{
    double sum = EVIDENCE_START;

    for (unsigned k = 0; k < n; k++) {
        double x = decayed_sum_value(credits[k]) / (double)now_weight / CREDIT_SCALE;

        weights[k] = x + EVIDENCE_START * weights[k];
        sum += x;
    }
    for (unsigned k = 0; k < n; k++)
        weights[k] /= sum;
}

static void add_credit(DecayedSum *sum, double amount, uint64_t now_weight)
{
    double x = amount * CREDIT_SCALE * (double)now_weight;

    sum->current = decayed_sum_saturating_add(sum->current, x < 0x1p63 ? (uint64_t)(x + 0.5) : 0);
}

void expert_weights_credit(DecayedSum *credits, unsigned n, uint64_t now_weight,
                           const double *chances, const double *weights, double amount)
{
    double sum = 0;

    for (unsigned k = 0; k < n; k++)
        sum += weights[k] * chances[k];
    for (unsigned k = 0; sum > 0 && k < n; k++)
        add_credit(&credits[k], amount * weights[k] * chances[k] / sum, now_weight);
}

void expert_losses_add(DecayedSum *losses, unsigned n, uint64_t now_weight, const double *chances,
                       double amount)
{
    for (unsigned k = 0; k < n; k++)
        add_credit(&losses[k], -amount * log(max_double(chances[k], CHANCE_MIN)), now_weight);
}

void expert_losses_apply(const DecayedSum *losses, unsigned n, uint64_t now_weight, double scale,
                         double *log_weights)
{
    for (unsigned k = 0; k < n; k++)
        log_weights[k] -= scale * decayed_sum_value(losses[k]) / (double)now_weight / CREDIT_SCALE;
}

void expert_promises_count(double counts[static PROMISE_BINS][PROMISE_SUMS], double p, bool came)
{
    double *bin = counts[MIN((unsigned)(p * PROMISE_BINS), PROMISE_BINS - 1U)];

    bin[PROMISE_N]++;
    bin[PROMISE_SUM] += p;
    bin[PROMISE_CAME] += came;
}

void expert_promises_add(DecayedSum promises[static PROMISE_BINS][PROMISE_SUMS],
                         uint64_t now_weight, const double counts[PROMISE_BINS][PROMISE_SUMS])
{
    for (unsigned i = 0; i < PROMISE_BINS; i++)
        for (unsigned k = 0; counts[i][PROMISE_N] > 0 && k < PROMISE_SUMS; k++)
            add_credit(&promises[i][k], counts[i][k] / counts[i][PROMISE_N], now_weight);
}

bool expert_promises_valid(const ExpertWeights *w)
{
    for (unsigned c = 0; c < HORIZON_CLASSES; c++)
        for (unsigned i = 0; i < PROMISE_BINS; i++)
            if (!decayed_sum_within(w->promises[c][i][PROMISE_CAME], w->promises[c][i][PROMISE_N]))
                return false;
    return true;
}

static double log_odds(double p)
{
    return log(p) - log1p(-p);
}

static double clamp_chance(double p)
{
    return min_double(max_double(p, CHANCE_MIN), 1 - CHANCE_MIN);
}

double expert_promises_correct(const DecayedSum promises[static PROMISE_BINS][PROMISE_SUMS],
                               uint64_t now_weight, double start, double p)
{
    double at = min_double(max_double(p * PROMISE_BINS - 0.5, 0), PROMISE_BINS - 1);
    unsigned low = (unsigned)at, high = MIN(low + 1, PROMISE_BINS - 1U);
    double sums[PROMISE_SUMS], promised, came;

    for (unsigned i = 0; i < PROMISE_SUMS; i++)
        sums[i] = ((1 - (at - low)) * decayed_sum_value(promises[low][i]) +
                   (at - low) * decayed_sum_value(promises[high][i])) /
                  (double)now_weight / CREDIT_SCALE;
    if (sums[PROMISE_N] <= 0)
        return p;
    p = clamp_chance(p);
    promised = clamp_chance(sums[PROMISE_SUM] / sums[PROMISE_N]);
    came = clamp_chance((sums[PROMISE_CAME] + start * promised) / (sums[PROMISE_N] + start));
    return 1 / (1 + exp(-(log_odds(p) + log_odds(came) - log_odds(promised))));
}

void expert_weights_sums(ExpertWeights *w, DecayedSum **ret)
{
    for (unsigned i = 0; i < EXPERT_BUCKETS * EXPERTS; i++)
        *ret++ = &w->next[i / EXPERTS][i % EXPERTS];
    for (unsigned i = 0; i < HORIZON_CLASSES * HORIZON_EXPERTS; i++)
        *ret++ = &w->horizon[i / HORIZON_EXPERTS][i % HORIZON_EXPERTS];
    for (unsigned i = 0; i < HORIZON_CLASSES * HORIZON_LOSSES; i++)
        *ret++ = &w->losses[i / HORIZON_LOSSES][i % HORIZON_LOSSES];
    for (unsigned i = 0; i < HORIZON_CLASSES * PROMISE_BINS * PROMISE_SUMS; i++)
        *ret++ = &w->promises[i / (PROMISE_BINS * PROMISE_SUMS)][i / PROMISE_SUMS % PROMISE_BINS]
                             [i % PROMISE_SUMS];
}
