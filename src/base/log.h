/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes one line per message to stderr, with the <N> prefix of sd-daemon(3) if stderr is the
 * journal ($JOURNAL_STREAM is set). Libraries log at debug level only. The caller that decides what
 * an error means logs it once. In a message, "%m" stands for error_text() of the errno that the
 * caller passes. */

#include "base/macros.h"

#include <stdarg.h>
#include <syslog.h>

/* Returns the text of an errno, positive or negative. Functions that read files return some numbers
 * with a meaning of their own, such as E2BIG for a file that is larger than a limit. For these
 * numbers the text states that meaning; strerror(3) would say "Argument list too long". */
const char *error_text(int error);

/* Like vsnprintf(3), but "%m" is error_text(error). A name in the message cannot begin a line of
 * its own or control a terminal: control characters become "?", see text_neutralize(). Keeps errno.
 */
void format_message(char *buf, size_t size, int error, const char *format, va_list ap)
        _printf_(4, 0);

/* Reads $SYSTEMD_LOG_LEVEL (a name or 0..7). If it is valid, messages above this level are not
 * printed. The default is LOG_INFO. */
void log_parse_environment(void);

/* Prints the message if `level` is enabled. Returns -abs(error), so that
 * `return log_error_errno(r, "...: %m")` prints and returns the error. */
int log_full(int level, int error, const char *format, ...) _printf_(3, 4);

#define log_debug(...)                log_full(LOG_DEBUG, 0, __VA_ARGS__)
#define log_info(...)                 log_full(LOG_INFO, 0, __VA_ARGS__)
#define log_notice(...)               log_full(LOG_NOTICE, 0, __VA_ARGS__)
#define log_warning(...)              log_full(LOG_WARNING, 0, __VA_ARGS__)
#define log_error(...)                log_full(LOG_ERR, 0, __VA_ARGS__)
#define log_debug_errno(error, ...)   log_full(LOG_DEBUG, error, __VA_ARGS__)
#define log_warning_errno(error, ...) log_full(LOG_WARNING, error, __VA_ARGS__)
#define log_error_errno(error, ...)   log_full(LOG_ERR, error, __VA_ARGS__)
#define log_oom()                     log_full(LOG_ERR, 12, "Out of memory.")
