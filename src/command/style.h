/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Colours on a terminal. In a pipe, with $NO_COLOR, or with TERM=dumb, there are none. */

typedef enum Style {
    STYLE_GOOD,
    STYLE_NOTE,
    STYLE_BAD,
    STYLE_TITLE,
} Style;

/* Return the escape sequences that begin and end the style, or "". */
const char *style_on(Style s);
const char *style_off(void);
