/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads facts about processes from /proc. Looks up no path on a network, FUSE or autofs filesystem,
 * because the recorder must not wait for a server. Looks up a path on another disk than that of "/"
 * with disk_call() (system/disk-call.h). */

#include "base/macros.h"

typedef struct ProcReader ProcReader;

/* Makes a reader. Returns 0, -ENOMEM, or the error of opening or reading /proc/self/mountinfo. */
int proc_reader_new(ProcReader **ret);
ProcReader *proc_reader_free(ProcReader *x);

typedef struct ProcFacts {
    char exe[4096];   /* path of the executable. "" for kernel threads; if the path cannot be read;
                         if it may lead to another file in the mount namespace of this process; and
                         if names there may be encrypted (volume/mountinfo.h) */
    uint64_t exe_dev; /* st_dev of the executable; 0 if unknown */
    bool remote;      /* the executable lies on a filesystem that may hang, so the path must not be
                         looked up */
    uint32_t parent;
    uint32_t uid; /* of proc_user() */
} ProcFacts;

/* Reads the facts about a process. Returns 0, or -ESRCH if its status cannot be read (usually the
 * process is gone). */
int proc_facts_read(ProcReader *x, uint32_t pid, ProcFacts *ret);

/* Returns the user to whom the process belongs: its real UID, with one exception. If that UID is
 * root's or may be a subordinate one (subuid(5)), and the process is in the session of a person, it
 * belongs to this person. A set-user-ID program therefore belongs to the user who started it, and
 * so does the root of a user's container. UID_INVALID: the process is gone. */
uint32_t proc_user(uint32_t pid);

/* Pure: returns the UID of the slice user-UID.slice in the text of /proc/PID/cgroup, or
 * UID_INVALID. */
uint32_t proc_cgroup_user(const char *text);

/* Stores the process and its ancestors in `ret`, the parent first, at most `max` (above 0) in all.
 * Ends at process 1, which is left out, and where a process is gone. Returns the number, at least
 * 1. */
size_t proc_lineage(uint32_t pid, uint32_t *ret, size_t max);

/* Calls `each` for every process. Returns 0, the error of opening /proc, or the first negative
 * value that `each` returned. */
int proc_scan(ProcReader *x, int (*each)(uint32_t pid, const ProcFacts *facts, void *arg),
              void *arg);
