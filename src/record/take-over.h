/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Continues the recording that headstart-init has begun (handover.h). */

#include "record/moment.h"
#include "record/observer.h"

/* Claims the descriptors that systemd kept for headstartd or that headstart-init offers in
 * `run_dir`, and gives them to the observer: the fanotify group and, if there is one, the proc
 * connector. *ret_start is the time at which the root filesystem was marked; its wall clock time
 * follows from the present wall clock. Returns 1 if the recording was taken over; 0 if nothing is
 * offered, or if it cannot be used (one line is logged). */
int take_over_recording(const char *run_dir, Observer *observer, Moment *ret_start);
