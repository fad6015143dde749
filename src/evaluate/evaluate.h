/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Shared by the parts of headstart-evaluate: options (options.c), reading the traces (traces.c),
 * running the simulation (main.c), printing (report.c). */

#include "command/cli.h"
#include "evaluate/habits.h"
#include "evaluate/simulate.h"
#include "evaluate/trace-input.h"

#define EVALUATE_PREDICTORS_MAX 32

typedef struct Evaluation {
    const Context *c;
    TraceLevel level;
    Stage stage; /* _STAGE_INVALID: of all stages */
    SimulateParameters parameters;
    unsigned budget_percent; /* of the bytes of all objects; 0: budget_bytes counts */
    uint64_t seed;
    bool chosen[EVALUATE_PREDICTORS_MAX]; /* by the number of predictor_name() */
    bool reliability;
    size_t n_predictors;
    bool draw; /* draw habits instead of using the recorded sessions */
    unsigned habits_users;
    uint64_t habits_seed;
    size_t habits_sessions;
    double best_guess; /* of the drawn habits */

    size_t n_traces;
    usec_t first_realtime, last_realtime; /* starts of the first and the last trace */
    SimulateInput input;
    uint64_t n_uses;       /* starts or accesses in the input, repeated starts included */
    uint64_t object_bytes; /* of all objects; saturates */
    SimulateReport reports[EVALUATE_PREDICTORS_MAX];
} Evaluation;

/* The options of the verb, for the table of verbs. The function stores their values in `e`. 0, or
 * the result of cli_next_option(), reported. */
extern const Option evaluate_options[];
int evaluate_parse_options(Evaluation *e, Context *c);

/* Reads the files and directories of traces that `args` names into e->input, in the order of the
 * traces' own times. Every bad file is reported with one line. Then nothing is evaluated, because
 * figures of a part could be mistaken for those of the whole. 0 or a negative errno, reported. */
int evaluate_read(Evaluation *e, char **args, int n);

/* The name of the predictor of e->reports[i]. After the predictors comes the oracle, if habits were
 * drawn; NULL after the last. */
const char *evaluate_name(const Evaluation *e, size_t i);

/* Prints e->reports of the chosen predictors. 0 or a negative errno, reported. */
int evaluate_print(const Evaluation *e);
