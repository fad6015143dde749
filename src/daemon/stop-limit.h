/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Ends headstartd if the disk does not answer while the main thread must stop. */

/* Starts a thread that waits for SIGTERM. If the main thread waits for a disk and does not take the
 * signal, the thread writes one log line after eight seconds and ends the process with _exit(2).
 * The caller has blocked SIGTERM. TimeoutStopSec= of the unit is longer. Returns 0 or a negative
 * errno. */
int stop_limit_watch(void);

/* Called when the main thread has taken SIGTERM. Starts a thread that ends the process eight
 * seconds from now. If the thread cannot be started, there is no limit. */
void stop_limit_begin(void);
