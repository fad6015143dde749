/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Trains a model's chains from a recorded session, as the session cycle does from a live one. Pure.
 */

#include "model/model.h"
#include "trace/trace.h"

/* Applications with fewer bytes of files are not followed (thesis 5.2.1, model.minsize): they are
 * short-lived tools, and start at once from any disk. */
#define MIXTURE_MINSIZE_BYTES 2000000U

/* A session that claims to have lasted longer is refused. */
#define MIXTURE_TRAIN_USEC_MAX (USEC_INFINITY / 4)

/* Feeds the starts and exits of the trace's user (of everybody, if that is not known) to the
 * mixture with the model's chains, and leaves those in the model. Traces of other stages than
 * session teach it nothing. `m` without chains gets new ones. In any order of traces the same
 * counts come out; what the mixture learns about its experts depends on what it knew. 1 if
 * something was learned, 0 if not, -EBADMSG (indexes that lead nowhere), -E2BIG, -ENOMEM: then the
 * model has lost nothing, but may have learned a part. */
int mixture_train(Model *m, const Trace *t);
