/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the parts of headstart-evaluate share: options (options.c), reading the traces (traces.c),
 * running the simulation (main.c), printing (report.c). */

#include "cli/cli.h"
#include "evaluate/habits.h"
#include "evaluate/simulate.h"
#include "evaluate/trace-input.h"

#define EVALUATE_PREDICTORS_MAX 32

typedef struct Evaluation {
    const Context *c;
    TraceLevel level;
    Stage stage; /* _STAGE_INVALID: of all stages */
    SimulateParameters parameters;
    unsigned budget_percent; /* of all objects' bytes; 0: budget_bytes stands as it is */
    uint64_t seed;
    bool chosen[EVALUATE_PREDICTORS_MAX]; /* by the number of predictor_name() */
    bool reliability;
    size_t n_predictors;
    bool draw; /* habits, instead of judging by what was recorded */
    unsigned habits_users;
    uint64_t habits_seed;
    size_t habits_sessions;
    double best_guess; /* of the habits that were drawn */

    size_t n_traces;
    usec_t first_realtime, last_realtime; /* starts of the first and the last trace */
    SimulateInput input;
    uint64_t n_uses;       /* starts or accesses in it, repeated starts included */
    uint64_t object_bytes; /* of all objects; saturates */
    SimulateReport reports[EVALUATE_PREDICTORS_MAX];
} Evaluation;

/* The options of the verb, for the table of verbs; takes them into `e`. 0, or what
 * cli_next_option() returned, reported. */
extern const Option evaluate_options[];
int evaluate_take_options(Evaluation *e, Context *c);

/* Reads what `args` names, files and directories of traces, into e->input, in the order of the
 * traces' own times. Every file that is at fault is reported with a line, and then nothing is
 * judged: figures of a part would be taken for those of the whole. 0 or a negative errno, reported.
 */
int evaluate_read(Evaluation *e, char **args, int n);

/* Whom e->reports[i] is about: the predictors, then, if habits were drawn, the oracle that knows
 * them; NULL beyond. */
const char *evaluate_name(const Evaluation *e, size_t i);

/* Prints e->reports of those that were chosen. 0 or a negative errno, reported. */
int evaluate_print(const Evaluation *e);
