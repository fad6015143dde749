/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The recorded starts of applications, and what replay gains for them. */

#include "measure/launch-benefit.h"
#include "view/benefits.h"

typedef struct LaunchHistory {
    LaunchRecords records;
    LaunchBenefits benefits;
    const char *off; /* word of the reason why starts are not replayed; NULL: they are */
} LaunchHistory;

void launch_history_done(LaunchHistory *h);
#define _cleanup_launch_history_ _cleanup_(launch_history_done)

/* Computes the benefits of h->records as of `now` (wall clock). Returns 0 or -ENOMEM. */
int launch_history_compute(LaunchHistory *h, usec_t now);

/* Reads the starts and computes the benefits as of `now` (wall clock). Without a state directory
 * (`state_fd` -EBADF) there are no starts. Returns 0, or an error that was reported. */
int launch_history_read(const Context *c, int state_fd, usec_t now, LaunchHistory *ret);

/* Like launch_history_read(), but if the starts cannot be read, sets *ret_readable to false and
 * returns no starts. It reports nothing, so that a second thread can call it. Returns 0 or
 * -ENOMEM. */
int launch_history_read_if_possible(const Context *c, int state_fd, usec_t now, LaunchHistory *ret,
                                    bool *ret_readable);

/* Returns an object with the effect on all applications together and an array `applications`, which
 * has one object for each application. `stages` has the benefits of boots and logins. Returns NULL
 * if memory runs out. */
json_object *launch_history_to_json(const LaunchHistory *h, const Benefits *stages, usec_t now);
