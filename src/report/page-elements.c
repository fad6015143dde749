/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/page-elements.h"

#include "report/axis.h"

#include <inttypes.h>
#include <math.h>

/* Computes the civil date of a number of days since 1970-01-01 (H. Hinnant: chrono-compatible
 * low-level date algorithms, civil_from_days). */
static void civil_date(int64_t days, int *year, unsigned *month, unsigned *day)
{
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
    unsigned doe = (unsigned)(z - era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153;

    *day = doy - (153 * mp + 2) / 5 + 1;
    *month = mp < 10 ? mp + 3 : mp - 9;
    *year = (int)(yoe + era * 400) + (*month <= 2);
}

const char *page_format_time(usec_t t, char buf[static PAGE_TIME_MAX])
{
    uint64_t minutes = t / (60 * USEC_PER_SEC);
    unsigned month, day;
    int year;

    civil_date((int64_t)(minutes / 1440), &year, &month, &day);
    snprintf(buf, PAGE_TIME_MAX, "%04d-%02u-%02u %02u:%02u", year, month, day,
             (unsigned)(minutes / 60 % 24), (unsigned)(minutes % 60));
    return buf;
}

void page_figure(Markup *m, const char *stage, const char *name, double value, const char *text)
{
    markup_open(m, "data");
    markup_attributef(m, "value", "%.9g", value);
    markup_attributef(m, "data-figure", "%s%s%s", stage ? stage : "", stage ? "." : "", name);
    markup_text(m, text);
    markup_close(m);
}

void page_count(Markup *m, const char *stage, const char *name, uint64_t n)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRIu64, n);
    page_figure(m, stage, name, (double)n, text);
}

void page_seconds(Markup *m, const char *stage, const char *name, double seconds)
{
    char text[AXIS_LABEL_MAX];

    page_figure(m, stage, name, seconds, axis_duration((usec_t)llround(seconds * 1e6), text));
}

void page_percent(Markup *m, const char *stage, const char *name, double share)
{
    double percent = round(100 * share);
    char text[32];

    snprintf(text, sizeof(text), "%s%.0f %%", percent < 0 ? "\u2212" : "", fabs(percent));
    page_figure(m, stage, name, share, text);
}

void page_table(Markup *m, const char *caption, const char *const *columns, size_t n)
{
    markup_open(m, "table");
    markup_element(m, "caption", NULL, "%s", caption);
    markup_open(m, "thead");
    markup_open(m, "tr");
    for (size_t i = 0; i < n; i++) {
        const char *title = columns[i];
        bool optional = *title == '?', text = title[optional] == '-';

        markup_open(m, "th");
        markup_attribute(m, "scope", "col");
        if (optional || text)
            markup_attribute(m, "class", !text ? "optional" : optional ? "text optional" : "text");
        markup_text(m, title + optional + text);
        markup_close(m);
    }
    markup_close(m);
    markup_close(m);
    markup_open(m, "tbody");
}

void page_table_end(Markup *m)
{
    markup_close(m);
    markup_close(m);
}
