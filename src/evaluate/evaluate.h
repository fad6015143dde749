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
    Stage stage; /* _STAGE_INVALID: all stages */
    SimulateParameters parameters;
    unsigned budget_percent; /* share of the bytes of all objects; 0: parameters.budget_bytes
                                applies */
    uint64_t seed;
    bool chosen[EVALUATE_PREDICTORS_MAX]; /* by the index that predictor_name() takes */
    bool reliability;
    size_t n_predictors;
    bool draw; /* draw habits instead of using the recorded sessions */
    unsigned habits_users;
    uint64_t habits_seed;
    size_t habits_sessions;
    double best_guess; /* with drawn habits: how often the likeliest next application, by the true
                          probabilities, is the next to start */

    size_t n_traces;
    usec_t first_realtime, last_realtime; /* starts of the first and the last trace */
    SimulateInput input;
    uint64_t n_uses;       /* starts or accesses in the input, repeated starts included */
    uint64_t object_bytes; /* of all objects; saturates */
    SimulateReport reports[EVALUATE_PREDICTORS_MAX];
} Evaluation;

/* The options of the program. evaluate_parse_options() stores their values in `e`. It returns 0, or
 * a negative value after an error, which was reported. */
extern const Option evaluate_options[];
int evaluate_parse_options(Evaluation *e, Context *c);

/* Reads the files and directories of traces that `args` names into e->input, in the order of the
 * traces' own times. Every bad file is reported with one line. If there is a bad file, nothing is
 * evaluated, because the figures of a part of the traces could be mistaken for those of all traces.
 * Returns 0 or a negative errno, reported. */
int evaluate_read(Evaluation *e, char **args, int n);

/* Returns the name of the predictor of e->reports[i]. If habits were drawn, the oracle follows
 * after the predictors. After the last one the name is NULL. */
const char *evaluate_name(const Evaluation *e, size_t i);

/* Prints e->reports of the chosen predictors. Returns 0 or a negative errno, reported. */
int evaluate_print(const Evaluation *e);
