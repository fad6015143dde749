/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/markup.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

void markup_done(Markup *m)
{
    free(m->text);
    *m = (Markup){0};
}

static void fail(Markup *m, int error)
{
    m->error = m->error < 0 ? m->error : error;
}

static void add_bytes(Markup *m, const char *bytes, size_t n)
{
    if (m->error < 0)
        return;
    if (grow_array(&m->text, &m->allocated, m->n + n + 1, 1) < 0) {
        fail(m, -ENOMEM);
        return;
    }
    memcpy(m->text + m->n, bytes, n);
    m->n += n;
    m->text[m->n] = 0;
}

static void add(Markup *m, const char *s)
{
    add_bytes(m, s, strlen(s));
}

static const char *entity(uint32_t c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static void add_escaped(Markup *m, const char *text)
{
    char buf[16];
    uint32_t c = 0;

    while (*text) {
        size_t n = text_read_character(text, &c);

        if (n == 0 || c < 0x20 || c == 0x7f) {
            snprintf(buf, sizeof(buf), "\\x%02x", (unsigned char)*text);
            add(m, buf);
        } else if (text_is_hidden(c)) {
            snprintf(buf, sizeof(buf), "\\u{%x}", c);
            add(m, buf);
        } else if (entity(c))
            add(m, entity(c));
        else
            add_bytes(m, text, n);
        text += MAX(n, (size_t)1);
    }
}

static void add_formatted(Markup *m, const char *format, va_list ap)
{
    _cleanup_free_ char *text = NULL;

    if (vasprintf(&text, format, ap) < 0) {
        text = NULL;
        fail(m, -ENOMEM);
        return;
    }
    add_escaped(m, text);
}

static void end_start_tag(Markup *m)
{
    if (m->in_tag)
        add(m, ">");
    m->in_tag = false;
}

void markup_open(Markup *m, const char *element)
{
    end_start_tag(m);
    if (m->depth == MARKUP_DEPTH_MAX) {
        fail(m, -EINVAL);
        return;
    }
    m->open[m->depth++] = element;
    add(m, "<");
    add(m, element);
    m->in_tag = true;
}

/* Returns true for elements that never have content here. HTML requires end tags for all others. */
static bool is_void(const char *element)
{
    static const char *const names[] = {"meta", "br",   "hr",   "col",
                                        "path", "line", "rect", "circle"};

    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        if (strcmp(names[i], element) == 0)
            return true;
    return false;
}

void markup_close(Markup *m)
{
    const char *element;

    if (m->depth == 0) {
        fail(m, -EINVAL);
        return;
    }
    element = m->open[--m->depth];
    if (m->in_tag && is_void(element)) {
        add(m, "/>");
        m->in_tag = false;
        return;
    }
    end_start_tag(m);
    add(m, "</");
    add(m, element);
    add(m, ">");
}

static void begin_attribute(Markup *m, const char *name)
{
    if (!m->in_tag)
        fail(m, -EINVAL);
    add(m, " ");
    add(m, name);
    add(m, "=\"");
}

void markup_attribute(Markup *m, const char *name, const char *value)
{
    begin_attribute(m, name);
    add_escaped(m, value);
    add(m, "\"");
}

void markup_attributef(Markup *m, const char *name, const char *format, ...)
{
    va_list ap;

    begin_attribute(m, name);
    va_start(ap, format);
    add_formatted(m, format, ap);
    va_end(ap);
    add(m, "\"");
}

void markup_number(Markup *m, const char *name, double value)
{
    markup_attributef(m, name, "%.6g", round(value * 10) / 10);
}

void markup_text(Markup *m, const char *text)
{
    end_start_tag(m);
    add_escaped(m, text);
}

void markup_textf(Markup *m, const char *format, ...)
{
    va_list ap;

    end_start_tag(m);
    va_start(ap, format);
    add_formatted(m, format, ap);
    va_end(ap);
}

void markup_name(Markup *m, const char *name, size_t max)
{
    size_t n = 0, skip;
    const char *s;

    /* Continuation bytes do not begin a character. */
    for (s = name; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    if (n <= max) {
        markup_text(m, name);
        return;
    }
    skip = n - max + 1;
    for (s = name; *s; s++)
        if (((unsigned char)*s & 0xc0) != 0x80 && skip-- == 0)
            break;
    markup_text(m, "…");
    markup_text(m, s);
}

void markup_element(Markup *m, const char *element, const char *class, const char *format, ...)
{
    va_list ap;

    markup_open(m, element);
    if (class)
        markup_attribute(m, "class", class);
    end_start_tag(m);
    va_start(ap, format);
    add_formatted(m, format, ap);
    va_end(ap);
    markup_close(m);
}

void markup_literal(Markup *m, const char *text)
{
    end_start_tag(m);
    add(m, text);
}

int markup_finish(Markup *m, char **ret, size_t *ret_size)
{
    while (m->error >= 0 && m->depth > 0)
        markup_close(m);
    if (m->error >= 0)
        add(m, "\n");
    if (m->error < 0)
        return m->error;
    *ret_size = m->n;
    *ret = TAKE_PTR(m->text);
    *m = (Markup){0};
    return 0;
}

void markup_label(Markup *m, double x, double y, const char *class, const char *text)
{
    markup_open(m, "text");
    markup_number(m, "x", x);
    markup_number(m, "y", y);
    markup_attribute(m, "class", class);
    markup_text(m, text);
    markup_close(m);
}
