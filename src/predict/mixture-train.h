/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Trains chains from a recorded session, as the session cycle does from a live one. Pure. */

#include "chains/chains.h"
#include "trace/trace.h"

/* The maximum number of applications of one trace that are followed: the first ones in the trace.
 * The time of training grows with the square of the number of running applications. */
#define MIXTURE_TRAIN_APPLICATIONS_MAX 500U

/* A session that claims to have lasted longer is refused. */
#define MIXTURE_TRAIN_USEC_MAX (USEC_INFINITY / 4)

/* Trains `*chains` with the starts and exits of the trace's user and of processes whose user is not
 * known. Returns the chains through `*chains`. If the trace's user is not known, the starts and
 * exits of all users count. `*chains` may be NULL; new chains have the half-life `halflife_usec`.
 * Applications that needed fewer than `minsize_bytes` bytes of files in total are not followed:
 * they are short-lived tools, which start at once from any disk (thesis 5.2.1, model.minsize). A
 * trace that at `now_realtime` is older than the largest plausible step (decay-clock.h) does not
 * show whether the present clock is wrong. Sums therefore decay by all of the time from the chains'
 * latest time to the trace. The function learns nothing from traces of boots and logins. The order
 * of the traces does not change the counts, but it changes the weights of the experts.
 * `utc_offset_sec` is as in mixture_set_utc_offset(), at the time of the trace. Returns 1 if
 * something was learned, 0 if not, -EBADMSG (an index is out of range), -E2BIG, -ENOMEM. After a
 * failure `*chains` still has everything that it had, and may contain a part of the trace. */
int mixture_train(Chains **chains, usec_t halflife_usec, uint64_t minsize_bytes, const Trace *t,
                  usec_t now_realtime, int64_t utc_offset_sec);
