/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes HTML and SVG as text. It is the only place that escapes: every text and attribute passes
 * through it, so a file name cannot end an element, an attribute or a script. The output is
 * well-formed XML and valid HTML. Pure.
 *
 * Names are bytes. Bytes that are not valid UTF-8 and control characters are written as \xNN.
 * Invisible characters and those that change the direction of a text are written as \u{NNNN}. The
 * text therefore shows what a name contains. */

#include "base/macros.h"

#include <stdarg.h>

#define MARKUP_DEPTH_MAX 32U

/* A document that grows. The writer remembers the first error, so callers check only the result of
 * markup_finish(). Zeroed is valid and empty. */
typedef struct Markup {
    char *text;
    size_t n, allocated;
    int error;
    bool in_tag; /* the start tag of the innermost element is not closed yet */
    const char *open[MARKUP_DEPTH_MAX]; /* element names; not copied */
    unsigned depth;
} Markup;

void markup_done(Markup *m);
#define _cleanup_markup_ _cleanup_(markup_done)

/* Begins an element. Names of elements and attributes are constants of the caller. */
void markup_open(Markup *m, const char *element);

/* Ends the innermost element. Elements without content in HTML and shapes of SVG get no end tag. */
void markup_close(Markup *m);

/* Add an attribute to the element that was just begun. */
void markup_attribute(Markup *m, const char *name, const char *value);
void markup_attributef(Markup *m, const char *name, const char *format, ...) _printf_(3, 4);

/* Adds a coordinate or length as an attribute with at most one decimal, for SVG. */
void markup_number(Markup *m, const char *name, double value);

/* Add text to the element. */
void markup_text(Markup *m, const char *text);
void markup_textf(Markup *m, const char *format, ...) _printf_(2, 3);

/* Adds a path or another long name as text. A name of more than `max` characters is shortened to
 * "…" and its last characters. */
void markup_name(Markup *m, const char *name, size_t max);

/* Adds an element with a class (NULL: none) and this text. */
void markup_element(Markup *m, const char *element, const char *class, const char *format, ...)
        _printf_(4, 5);

/* Adds a <text> of SVG at that position, with a class. */
void markup_label(Markup *m, double x, double y, const char *class, const char *text);

/* Adds text without escaping: style sheets, and documents that were written with these functions.
 */
void markup_literal(Markup *m, const char *text);

/* Ends all open elements; the caller frees *ret. Returns 0, -ENOMEM, or -EINVAL (too many open
 * elements, or a call that does not fit the state of the document). */
int markup_finish(Markup *m, char **ret, size_t *ret_size);
