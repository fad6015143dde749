/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The value in sysfs that an exact recording lowers: read_ahead_kb. */

/* The value during an exact recording that requests no other value. An access then reads only the
 * page that it touches. */
#define READ_AHEAD_EXACT_KB 4U

/* A file in the runtime directory with the values that are to be restored: "PATH OLD NEW" in each
 * line (record/read-ahead.h). */
#define READ_AHEAD_RECORD "read-ahead"
