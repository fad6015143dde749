/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The trace as JSON text. Format version 1: docs/formats.md. Pure: text in memory. */

#include "trace/trace.h"

#define TRACE_FORMAT_VERSION 1

/* Writes the trace as text; the caller frees *ret (*ret_size bytes, and a NUL). Returns 0 or
 * -ENOMEM. */
int trace_to_json(const Trace *t, char **ret, size_t *ret_size);

/* Parses and validates a trace. Returns 0; -EBADMSG (not JSON, truncated, too many values, a member
 * missing or wrong, a limit of the format exceeded), -EPROTONOSUPPORT (another version),
 * -EMEDIUMTYPE (JSON, but no headstart trace), -E2BIG (larger than TRACE_JSON_SIZE_MAX), -ENOMEM.
 * If ret_error is not NULL, *ret_error becomes one line with the reason why the file was refused,
 * which the caller frees. *ret_error is NULL on success, and may be NULL if memory is short. */
int trace_from_json(const char *text, size_t size, Trace **ret, char **ret_error);
