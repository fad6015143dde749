/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Completes the system call filter of a unit. A unit denies calls by name, so it cannot deny a call
 * that systemd does not know, such as a call of a kernel that is newer than systemd.
 *
 * Refuses with ENOSYS every later call of this thread, of its later threads and of its children
 * whose number is above that of set_mempolicy_home_node(2) (Linux 5.17), except cachestat(2).
 * systemd 250 and later know all calls up to that number, except uretprobe(2) and uprobe(2), which
 * only trampolines of the kernel make. Does nothing if the process runs outside a unit's sandbox:
 * without a filter, or without no_new_privs. Returns 1 if the filter is in effect, 0 outside a
 * sandbox, or the negative errno of prctl(2). */
int call_filter_complete(void);
