/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which objects are worth reading ahead. The session cycle and the evaluation use the same
 * functions, so that the evaluation measures what runs. Pure.
 *
 * The caller offers the objects in the order of their scores (object-scores.h). An object is
 * selected under three conditions. It is used before the session ends with a probability of at
 * least `minimum_use`. It fits into the rest of the budget. If it has to be read, the expected
 * waste of the session's reads stays within the share `maximum_waste` of their bytes. The expected
 * waste of a read is its size times the probability that the session does not use it.
 *
 * With a bound on waste, the objects that would be selected without the bound are considered first,
 * and of these the ones that save most time per byte of expected waste. Other objects are selected
 * only if the bound refuses some of these. */

#include "base/macros.h"

typedef struct SelectionParameters {
    double minimum_use;   /* 0..1 */
    double maximum_waste; /* 0..1; 1: no bound */
} SelectionParameters;

/* The parameters of the session cycle (docs/predictors.md: how they were chosen). */
#define SELECTION_PARAMETERS_DEFAULT           \
    (SelectionParameters)                      \
    {                                          \
        .minimum_use = 0.2, .maximum_waste = 1 \
    }

/* What a session has read ahead. Zeroed: nothing. */
typedef struct SelectionReads {
    uint64_t bytes;
    double expected_waste; /* bytes */
} SelectionReads;

typedef enum SelectionVerdict {
    SELECTION_SELECTED,
    SELECTION_UNLIKELY, /* its use is less probable than minimum_use */
    SELECTION_BEYOND,   /* it does not fit into the budget */
    SELECTION_WASTEFUL, /* the expected waste would exceed its bound */
    _SELECTION_VERDICT_MAX,
    _SELECTION_VERDICT_INVALID = -EINVAL,
} SelectionVerdict;

typedef struct SelectionCandidate {
    uint64_t bytes;
    double use;   /* probability that the session uses it from now on */
    double worth; /* object_worth(): the time that its use saves per byte */
    bool present; /* the session has read it ahead or used it already: selecting it reads nothing */
    SelectionVerdict verdict; /* set by selection_choose() */
} SelectionCandidate;

/* One selection. `reads` is borrowed from the caller, who zeroes it when a session begins. */
typedef struct Selection {
    SelectionParameters parameters;
    uint64_t budget_bytes, selected_bytes;
    SelectionReads *reads;
} Selection;

/* Returns false also if a parameter is NaN. */
bool selection_parameters_valid(const SelectionParameters *p);

/* Decides about n objects, which are in the order of their scores. Sets their verdicts. Adds the
 * bytes of the selected objects to `selected_bytes`, and those that have to be read to `reads`.
 * Returns 0, or -ENOMEM; then the verdicts are undefined and nothing was added. */
int selection_choose(Selection *s, SelectionCandidate *candidates, size_t n);

/* Takes back from `reads` an object that was selected and then not read. */
void selection_cancel(SelectionReads *reads, const SelectionCandidate *c);
