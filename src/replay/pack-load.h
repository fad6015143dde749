/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the pack of headstart-replay without delaying the boot if the disk hangs. */

#include "replay/report.h"

typedef struct PackLoadOptions {
    char *const *paths; /* ends with NULL and has at least one path */
    Policy policy;      /* replaces the policy of the pack; _POLICY_INVALID: the pack decides */
    usec_t timeout;     /* from report->hold.start; after that nobody waits for the pack */
} PackLoadOptions;

typedef struct LoadedPack {
    const char *path; /* borrowed: the path that was read */
    char *buf;        /* the buffer into which `pack` points */
    Pack pack;
    bool ready_sent; /* READY=1 was sent before the pack was loaded */
    bool is_control; /* the pack draws a control session for this boot (pack_is_control()), and no
                        other boot was one since the pack was planned (boot/last-control.h) */
} LoadedPack;

void loaded_pack_done(LoadedPack *p);
#define _cleanup_loaded_pack_ _cleanup_(loaded_pack_done)

/* Reads the first file of `paths` that exists, as a whole and in a separate thread, and validates
 * it. Files of the same name are copies of one another (state/early-pack.h), and of these the
 * newest is read: if the filesystem of the first is mounted later, an old file may lie below its
 * mount point. The file is not mapped, so that it cannot change after validation. To be called
 * once.
 *
 * The time until the pack is loaded is part of the hold (report->hold). Sends READY=1 at the end of
 * the hold: at hold_unread_until(), or earlier if the header of the pack was read and demands it.
 * Notes the end of such a hold in the report and saves it (report_save()).
 *
 * Returns 0, or a negative errno after one line was logged. After -ETIMEDOUT the thread still runs,
 * and the process must end with _exit(2). */
int pack_load(const PackLoadOptions *o, Report *report, LoadedPack *ret);
