/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The trace as JSON text (json-c). Format version 1: docs/formats.md. Pure: text in memory. */

#include "trace/trace.h"

#define TRACE_FORMAT_VERSION 1

/* Serialises; the caller frees *ret (NUL-terminated, *ret_size bytes without the NUL).
 * 0 or -ENOMEM. */
int trace_to_json(const Trace *t, char **ret, size_t *ret_size);

/* Parses and validates. -EBADMSG (not JSON, truncated, fields wrong), -EPROTONOSUPPORT (another
 * version), -EMEDIUMTYPE (JSON, but not a headstart trace), -E2BIG, -ENOMEM. *ret_error, if not
 * NULL, is set to one line of text for the person who gave us the file (static or caller frees:
 * always allocated, NULL if none). */
int trace_from_json(const char *text, size_t size, Trace **ret, char **ret_error);
