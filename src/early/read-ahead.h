/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Lowers read-ahead before the system manager runs, if the next boot is to be recorded exactly
 * (STATE/rerecord-boot, docs/formats.md). headstartd restores it from the record, which has the
 * form of record/read-ahead.h. If nobody claims the recording, the process that offers it restores
 * the value. */

typedef struct EarlyReadAhead {
    int fd; /* of read_ahead_kb; -EBADF: nothing was lowered */
    unsigned old_kb, new_kb;
} EarlyReadAhead;

#define EARLY_READ_AHEAD_NULL \
    {                         \
        .fd = -EBADF          \
    }

/* Closes the descriptor. The value stays as it is. */
void early_read_ahead_done(EarlyReadAhead *a);

/* Lowers the read-ahead of the disk below `root_fd` (the root filesystem) if an exact recording is
 * requested in `pack_dir` (early_find_pack_dir(); NULL: in the state directory), and writes the
 * record to `run`, a directory. Returns 1 if the value was lowered; 0 if no exact recording is
 * requested, the value is low enough already, or a record exists; or a negative errno, and then the
 * value is as it was. */
int early_read_ahead_lower(int root_fd, const char *pack_dir, const char *run, EarlyReadAhead *ret);

/* Sets the old value again, unless another program has changed it since, and removes the record.
 * `run_fd` is the runtime directory. Uses no path below /sys, because the initrd moves /sys. */
void early_read_ahead_restore(const EarlyReadAhead *a, int run_fd);
