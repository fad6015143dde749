/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/log.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

static int max_level = LOG_INFO;

void log_parse_environment(void)
{
    static const char *const names[] = {"emerg",   "alert",  "crit", "err",
                                        "warning", "notice", "info", "debug"};
    const char *e = getenv("SYSTEMD_LOG_LEVEL");

    if (!e)
        return;
    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        if (strcasecmp(e, names[i]) == 0 || (e[0] == (char)('0' + i) && e[1] == 0))
            max_level = (int)i;
}

const char *error_text(int error)
{
    error = error < 0 ? -error : error;
    switch (error) {
    case E2BIG:
        return "too large";
    case EBADMSG:
        return "damaged, or not of the expected format";
    case EMEDIUMTYPE:
        return "a file of another kind";
    case EPROTONOSUPPORT:
        return "a file of another format version";
    default:
        return strerror(error);
    }
}

void format_message(char *buf, size_t size, int error, const char *format, va_list ap)
{
    char with_text[1024];
    int saved = errno;
    size_t n = 0;

    /* libc would print strerror(3) for "%m". The text can become part of the format, because no
     * text contains '%'. */
    for (const char *p = format; *p && n + 1 < sizeof(with_text);) {
        if (p[0] == '%' && p[1] == 'm') {
            for (const char *t = error_text(error); *t && n + 1 < sizeof(with_text);)
                with_text[n++] = *t++;
            p += 2;
            continue;
        }
        if (p[0] == '%' && p[1] && n + 2 < sizeof(with_text))
            with_text[n++] = *p++;
        with_text[n++] = *p++;
    }
    with_text[n] = 0;
    vsnprintf(buf, size, with_text, ap);
    text_neutralize(buf);
    errno = saved;
}

int log_full(int level, int error, const char *format, ...)
{
    char line[2048];
    va_list ap;
    int saved = errno, n = 0;

    if (error < 0)
        error = -error;
    if (level <= max_level) {
        if (getenv("JOURNAL_STREAM"))
            n = snprintf(line, sizeof(line), "<%d>", level);
        va_start(ap, format);
        format_message(line + n, sizeof(line) - (size_t)n, error, format, ap);
        va_end(ap);
        /* One write(2) prints the whole line, so that lines of several processes do not mix. */
        size_t l = strlen(line);
        if (l > sizeof(line) - 2)
            l = sizeof(line) - 2;
        line[l] = '\n';
        if (write(STDERR_FILENO, line, l + 1) < 0) {
            /* This failure cannot be reported. */
        }
    }
    errno = saved;
    return -error;
}
