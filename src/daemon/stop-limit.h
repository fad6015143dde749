/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Ends headstartd if the disk does not answer while the main thread must stop. */

/* Starts a thread that ends the process with _exit(2) eight seconds after SIGTERM has arrived, with
 * one log line, if the main thread does not take the signal because it waits for a disk. The caller
 * has blocked SIGTERM. TimeoutStopSec= of the unit is longer. Returns 0 or a negative errno. */
int stop_limit_watch(void);

/* The main thread has taken the signal: starts a thread that ends the process eight seconds from
 * now. A thread that cannot be started has no other effect than that the limit is missing. */
void stop_limit_begin(void);
